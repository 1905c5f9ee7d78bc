import type { Performers } from "../port.ts";

export interface MessagesAsks {
  readonly messagesProbe: { readonly ask: { readonly n: number }; readonly told: string };
}

export const messagesAsks: Performers<MessagesAsks> = {
  messagesProbe: async ({ n }) => String(n),
};
