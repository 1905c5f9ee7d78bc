/** Whether a compaction is due, from the running totals alone. */

import type { Settings } from "../model/settings.ts";
import type { Conversation, ConversationId } from "../model/types.ts";
import { checkBudget, promptBudgetDefault, promptTokens } from "../model/prompt-cost.ts";
import type { Store } from "../model/store.ts";
import { sumTokens } from "../base/tokens.ts";

export interface Due {
  readonly kind: "sweep" | "incremental" | "nothing";
  readonly budget: number;
  readonly thresholdTokens: number;
  readonly contextTokens: number;
  /** Raw tokens outside the fresh tail; what the totals say is an upper bound while they are below a chunk. */
  readonly rawTokens: number;
}

/** From the running totals, and the fresh tail only when they cannot tell: the same cost however long it is. */
export async function due(
  deps: { readonly store: Store; readonly settings: Settings },
  conversation: Conversation,
  budget = conversation.promptBudget ?? promptBudgetDefault,
): Promise<Due> {
  checkBudget(budget);
  const { contextThreshold, leafChunkTokens, freshTailCount } = deps.settings;
  const { totals } = conversation;
  const contextTokens = promptTokens(totals);
  const thresholdTokens = Math.floor(contextThreshold * budget);
  const rawTokens =
    totals.contextMessageTokens <= leafChunkTokens
      ? totals.contextMessageTokens
      : totals.contextMessageTokens - (await tailTokens(deps.store, conversation.id, freshTailCount));
  const facts = { budget, thresholdTokens, contextTokens, rawTokens };
  if (contextTokens > thresholdTokens) return { kind: "sweep", ...facts };
  return { kind: rawTokens > leafChunkTokens ? "incremental" : "nothing", ...facts };
}

async function tailTokens(store: Store, conversation: ConversationId, count: number): Promise<number> {
  return sumTokens(await store.context(conversation, { kind: "message", limit: count, keep: "newest" }));
}
