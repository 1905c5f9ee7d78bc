/**
 * Computes how many tokens of a prompt we may fill. The host names a different budget several times in a turn, and only
 * the first excludes the system prompt and a reserve: that one counts, minus what the turn has grown since.
 *
 * None of them accounts for tool schemas. Their size is learned from the provider's last count and reserved as an
 * allowance; until then, the allowance is a tenth of the budget.
 */

import type { HostMessage } from "../../core/messages/codec.ts";
import { tokensOf } from "../../core/assembly/present-message.ts";
import type { AssembleCall, CommitCall } from "./host-api.ts";
import type { SessionMemory } from "./runtime.ts";
import { isObject } from "../../core/base/json.ts";

/** For hosts that name no budget. */
const budgetDefault = 128_000;
const shareUnknown = 0.1;
/** The allowance changes in steps, so that the cut of a prompt does not move with every turn. */
const step = 512;

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

const allowanceOf = ({ allowance }: SessionMemory, named: number): number =>
  allowance ?? Math.ceil(named * shareUnknown);

/** After a restart, derives the allowance from the stored prompt budget, if that is plausible. */
export function recallAllowance(memory: SessionMemory, { named }: Attempt, promptBudget: number | null): void {
  // Not within a process: the growth of one turn would be reserved from then on.
  if (memory.allowance !== null || memory.promptBudget !== null) return;
  const aside = named - (promptBudget ?? named);
  if (aside > 0 && aside <= named / 2) memory.allowance = Math.ceil(aside / step) * step;
}

/** Learns from what the provider counted beyond what we know of: grows the allowance at once, shrinks it by halves. */
export function learnFromTurn(memory: SessionMemory, attempt: Attempt, call: CommitCall): void {
  const window = call.runtimeContext?.modelContextWindow;
  const at = call.messages.findLastIndex((message) => inputOf(message) > 0);
  const last = call.messages[at];
  if (window === undefined || last === undefined || attempt.shownTokens === 0) return;
  const systemAndPrompt = window - attempt.reserve - attempt.named;
  const grown = call.messages.slice(1, at).reduce((sum, message) => sum + tokensOf(message), 0);
  const beyond = inputOf(last) - attempt.shownTokens - systemAndPrompt - grown;
  const measured = Math.ceil(Math.min(Math.max(0, beyond), attempt.named / 2) / step) * step;
  const before = memory.allowance ?? measured;
  memory.allowance = measured >= before ? measured : before - Math.floor((before - measured) / 2 / step) * step;
}

/** Grows the allowance after the provider refused a prompt as too long. */
export function learnFromOverflow(memory: SessionMemory, named: number, counted: number | undefined): void {
  const over = counted === undefined ? 0 : counted - named;
  const more = Math.max(over, named * shareUnknown);
  memory.allowance = Math.min(named / 2, Math.ceil((allowanceOf(memory, named) + more) / step) * step);
}

/** The prompt tokens that an assistant message reports, cached ones included. */
function inputOf({ usage }: HostMessage): number {
  if (!isObject(usage)) return 0;
  const parts = [usage["input"], usage["cacheRead"], usage["cacheWrite"]];
  return parts.reduce<number>((sum, part) => sum + (typeof part === "number" ? part : 0), 0);
}
