import type { Performers } from "../port.ts";

export interface DagAsks {
  readonly dagProbe: { readonly ask: { readonly n: number }; readonly told: string };
}

export const dagAsks: Performers<DagAsks> = {
  dagProbe: async ({ n }) => String(n),
};
