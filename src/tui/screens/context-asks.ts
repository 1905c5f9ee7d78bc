import type { Performers } from "../port.ts";

export interface ContextAsks {
  readonly contextProbe: { readonly ask: { readonly n: number }; readonly told: string };
}

export const contextAsks: Performers<ContextAsks> = {
  contextProbe: async ({ n }) => String(n),
};
