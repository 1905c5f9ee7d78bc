import type { Performers } from "../port.ts";

export interface RewriteAsks {
  readonly rewriteProbe: { readonly ask: { readonly n: number }; readonly told: string };
}

export const rewriteAsks: Performers<RewriteAsks> = {
  rewriteProbe: async ({ n }) => String(n),
};
