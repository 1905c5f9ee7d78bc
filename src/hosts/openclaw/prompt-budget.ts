/**
 * Computes how many tokens of a prompt we may fill. The host names a different budget several times in a turn, and only
 * the first excludes the system prompt and a reserve: that one counts, minus what the turn has grown since.
 * None of them accounts for tool schemas, for which an allowance is reserved (allowance.ts).
 */

import { tokensOf } from "../../core/assembly/present-message.ts";
import type { AssembleCall, CommitCall } from "./host-api.ts";
import type { SessionMemory } from "../shared/runtime.ts";
import { allowanceOf, learnFromCount } from "../shared/allowance.ts";
import { inputTokensOf } from "../shared/message-fields.ts";

/** For hosts that name no budget. */
const budgetDefault = 128_000;

/** One attempt to answer; each overflow leads to another attempt of the same turn. */
export interface Attempt {
  readonly session: string | undefined;
  /** The budget that the host named first. */
  readonly named: number;
  /** The reserve for output that it excludes. */
  readonly reserve: number;
  /** The largest budget of the tool loop, named when the turn consisted only of its prompt. */
  loop: number | null;
  /** Tokens of the prompt shown last. */
  shownTokens: number;
}

/** Only the first call of an attempt names the reserve for output; those of the tool loop do not. */
export const isFirstCall = ({ runtimeSettings }: AssembleCall): boolean =>
  typeof runtimeSettings?.limits?.maxOutputTokens === "number";

export const beginAttempt = ({ sessionKey, tokenBudget, runtimeSettings }: AssembleCall): Attempt => ({
  session: sessionKey,
  named: tokenBudget ?? budgetDefault,
  reserve: runtimeSettings?.limits?.maxOutputTokens ?? 0,
  loop: null,
  shownTokens: 0,
});

/** The tokens that this call may show besides `added` ones of the system prompt; negative if not even those fit. */
export function budgetOf(attempt: Attempt, call: AssembleCall, memory: SessionMemory, added: number): number {
  const given = call.tokenBudget ?? attempt.named;
  if (!isFirstCall(call)) attempt.loop = Math.max(attempt.loop ?? given, given);
  const grown = attempt.loop === null || isFirstCall(call) ? 0 : attempt.loop - given;
  const budget = Math.floor(attempt.named - grown - allowanceOf(memory, attempt.named) - added);
  memory.promptBudget = attempt.loop === null ? budget : Math.min(memory.promptBudget ?? budget, budget);
  return budget;
}

/** Learns from what the provider counted in the last answer of a turn. */
export function learnFromTurn(memory: SessionMemory, attempt: Attempt, call: CommitCall): void {
  const window = call.runtimeContext?.modelContextWindow;
  const at = call.messages.findLastIndex((message) => inputTokensOf(message) > 0);
  const last = call.messages[at];
  if (window === undefined || last === undefined || attempt.shownTokens === 0) return;
  const systemAndPrompt = window - attempt.reserve - attempt.named;
  const grown = call.messages.slice(1, at).reduce((sum, message) => sum + tokensOf(message), 0);
  learnFromCount(memory, attempt.named, inputTokensOf(last) - attempt.shownTokens - systemAndPrompt - grown);
}
