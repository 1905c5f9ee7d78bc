/**
 * How much of a prompt is ours. The host names a budget several times in a turn, and differently each time: before the
 * prompt it leaves out the system prompt and a reserve, and in the loop of tools it leaves out only what the turn has
 * grown to. So the first figure of an attempt holds, less what the turn has grown since.
 *
 * The schemas of tools are in none of them. What they take is learned from what the provider counted last: all that
 * it counted beyond what is accounted for is set aside from then on. Before that is known, a tenth is.
 */

import type { HostMessage } from "../../core/messages/codec.ts";
import { tokensOf } from "../../core/assembly/present-message.ts";
import type { AssembleCall, CommitCall } from "./host-api.ts";
import type { SessionMemory } from "./runtime.ts";
import { isObject } from "../../core/base/json.ts";

/** The budget of hosts that name none. */
const budgetDefault = 128_000;
const shareUnknown = 0.1;
/** Set aside in steps, so that a prompt's cut does not move with every turn. */
const step = 512;

/** What is known of one attempt to answer: of a turn there is one more after each overflow. */
export interface Attempt {
  readonly session: string | undefined;
  /** As the host named it first. */
  readonly named: number;
  /** The output's reserve that it has left out. */
  readonly reserve: number;
  /** The largest figure of the loop: that of its beginning, when the turn was only its prompt. */
  loop: number | null;
  /** Tokens of what was shown last. */
  shownTokens: number;
}

/** The first call of an attempt says what is kept for the output; those of the loop do not. */
export const isFirstCall = ({ runtimeSettings }: AssembleCall): boolean =>
  typeof runtimeSettings?.limits?.maxOutputTokens === "number";

export const beginAttempt = ({ sessionKey, tokenBudget, runtimeSettings }: AssembleCall): Attempt => ({
  session: sessionKey,
  named: tokenBudget ?? budgetDefault,
  reserve: runtimeSettings?.limits?.maxOutputTokens ?? 0,
  loop: null,
  shownTokens: 0,
});

/** What may be shown in this call beside `added` tokens of the system prompt; negative if not even they fit. */
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

/** After a restart nothing is remembered; but the budget that was stored says how much was set aside, if it is of the like. */
export function recallAllowance(memory: SessionMemory, { named }: Attempt, promptBudget: number | null): void {
  // Within a process what a turn had grown by would be set aside from the next one on, and never be given back.
  if (memory.allowance !== null || memory.promptBudget !== null) return;
  const aside = named - (promptBudget ?? named);
  if (aside > 0 && aside <= named / 2) memory.allowance = Math.ceil(aside / step) * step;
}

/** After a turn: what the provider counted, beyond what we know of. More is set aside at once, less by halves. */
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

/** After a prompt that was too long for the provider, whatever we and the host had reckoned. */
export function learnFromOverflow(memory: SessionMemory, named: number, counted: number | undefined): void {
  const over = counted === undefined ? 0 : counted - named;
  const more = Math.max(over, named * shareUnknown);
  memory.allowance = Math.min(named / 2, Math.ceil((allowanceOf(memory, named) + more) / step) * step);
}

/** What an assistant's message says its prompt took, with whatever came from a cache. */
function inputOf({ usage }: HostMessage): number {
  if (!isObject(usage)) return 0;
  const parts = [usage["input"], usage["cacheRead"], usage["cacheWrite"]];
  return parts.reduce<number>((sum, part) => sum + (typeof part === "number" ? part : 0), 0);
}
