import type { Performers } from "../port.ts";

export interface SearchAsks {
  readonly searchProbe: { readonly ask: { readonly n: number }; readonly told: string };
}

export const searchAsks: Performers<SearchAsks> = {
  searchProbe: async ({ n }) => String(n),
};
