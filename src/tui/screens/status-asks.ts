import type { Performers } from "../port.ts";

export interface StatusAsks {
  readonly statusProbe: { readonly ask: { readonly n: number }; readonly told: string };
}

export const statusAsks: Performers<StatusAsks> = {
  statusProbe: async ({ n }) => String(n),
};
