/** What an adapter shows besides our own prompt: guidance about recall, and the host's own messages if we have none. */

import { pair } from "../../core/assembly/pair-results.ts";
import { tokensOf } from "../../core/assembly/present-message.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import { safeCuts, tiesOf } from "../../core/messages/tool-calls.ts";
import type { Conversation } from "../../core/model/types.ts";
import { recallGuidance } from "../../core/prompts/guidance.ts";

/** What the system prompt says about recall; null while the agent sees everything. */
export async function guidanceFor({ store }: Lcm, { id, totals }: Conversation): Promise<string | null> {
  const isRestarted = (await store.conversations({ familyOf: id, limit: 2 })).length > 1;
  const isFolded = totals.summaries > 0;
  return isFolded || isRestarted ? recallGuidance({ isFolded, isRestarted }) : null;
}

/** The newest of the host's own messages that fit, with tool calls and results kept together. */
export function newestFitting(messages: readonly HostMessage[], budget: number): readonly HostMessage[] {
  const sums = [0];
  for (const cost of messages.map(tokensOf).toReversed()) sums.push((sums.at(-1) ?? 0) + cost);
  const costFrom = (at: number): number => sums[messages.length - at] ?? 0;
  if (costFrom(0) <= budget) return messages;
  // Providers require that a user message comes first.
  const cuts = [...safeCuts(messages.map(tiesOf)), messages.length].filter(
    (at) => messages[at]?.["role"] !== "assistant",
  );
  for (const cut of cuts) {
    if (costFrom(cut) > budget) continue;
    // Stand-ins for results that are missing need room, too.
    const paired = pair(messages.slice(cut)).messages.map(({ message }) => message);
    if (sumTokens(paired) <= budget) return paired;
  }
  return [];
}

export const sumTokens = (messages: readonly HostMessage[]): number =>
  messages.reduce((sum, message) => sum + tokensOf(message), 0);
