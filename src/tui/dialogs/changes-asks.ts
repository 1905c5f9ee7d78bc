import type { Performers } from "../port.ts";

export interface ChangesAsks {
  readonly changesProbe: { readonly ask: { readonly n: number }; readonly told: string };
}

export const changesAsks: Performers<ChangesAsks> = {
  changesProbe: async ({ n }) => String(n),
};
