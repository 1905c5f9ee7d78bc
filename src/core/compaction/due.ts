/** Decides whether a compaction is due, from the running totals and at most the fresh tail. */

import type { Settings } from "../model/settings.ts";
import type { Conversation } from "../model/types.ts";
import { checkBudget, pinTokens, promptBudgetDefault, promptTokens, targetShareOf } from "../model/prompt-cost.ts";
import type { Store } from "../model/store.ts";
import { sumTokens } from "../base/tokens.ts";

export interface Due {
  readonly kind: "sweep" | "incremental" | "nothing";
  readonly budget: number;
  readonly thresholdTokens: number;
  /** Where an automatic sweep stops; 0: when nothing is left to fold. */
  readonly targetTokens: number;
  /** Of the whole context as a prompt, estimated. */
  readonly promptTokens: number;
  /** Raw tokens outside the fresh tail; an upper bound, the whole context's, while that is within one chunk. */
  readonly rawTokens: number;
}

/** Standing instructions that a prompt repeats, at most; read only if they can decide whether the threshold is passed. */
async function pinsWithin(
  { store, settings }: { readonly store: Store; readonly settings: Settings },
  { id, totals }: Conversation,
  thresholdTokens: number,
  budget: number,
): Promise<number> {
  const most = Math.floor(settings.pinsShare * budget);
  const tokens = promptTokens(totals);
  if (tokens > thresholdTokens || tokens + most <= thresholdTokens) return 0;
  const pins = await store.pins(id, { inForce: true, limit: pinsRead });
  return Math.min(
    most,
    pins.reduce((sum, pin) => sum + pinTokens(pin), 0),
  );
}

/** Far more than fit any prompt. */
const pinsRead = 256;

/** Costs the same however long the conversation is: the fresh tail is read only when the totals do not decide. */
export async function due(
  deps: { readonly store: Store; readonly settings: Settings },
  conversation: Conversation,
  budget = conversation.promptBudget ?? promptBudgetDefault,
): Promise<Due> {
  checkBudget(budget);
  const { contextThreshold, contextTarget, leafChunkTokens, freshTailCount } = deps.settings;
  const { totals } = conversation;
  const thresholdTokens = Math.floor(contextThreshold * budget);
  const tokens = promptTokens(totals) + (await pinsWithin(deps, conversation, thresholdTokens, budget));
  const all = totals.contextMessageTokens;
  const tail = { kind: "message", limit: freshTailCount, keep: "newest" } as const;
  const rawTokens = all <= leafChunkTokens ? all : all - sumTokens(await deps.store.context(conversation.id, tail));
  const targetTokens = Math.round(targetShareOf(deps.settings) * budget);
  const facts = { budget, thresholdTokens, targetTokens, promptTokens: tokens, rawTokens };
  if (tokens > thresholdTokens) return { kind: "sweep", ...facts };
  return { kind: contextTarget === 0 && rawTokens > leafChunkTokens ? "incremental" : "nothing", ...facts };
}
