import type { Performers } from "../port.ts";

export interface TranscriptsAsks {
  readonly transcriptsProbe: { readonly ask: { readonly n: number }; readonly told: string };
}

export const transcriptsAsks: Performers<TranscriptsAsks> = {
  transcriptsProbe: async ({ n }) => String(n),
};
