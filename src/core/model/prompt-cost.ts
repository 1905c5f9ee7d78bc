/** What items of a context cost in a prompt, and which budgets are allowed. */

import type { Totals } from "./types.ts";
import { LcmError } from "../base/errors.ts";
/** What the element around one summary costs, about: a leaf's is some 100 tokens, one with eight parents some 270. */
export const summaryOverheadTokens = 130;

/** What the whole context would cost as a prompt, from the running totals alone. */
export const promptTokens = (totals: Totals): number =>
  totals.contextTokens + summaryOverheadTokens * (totals.contextItems - totals.contextMessages);

/** A budget is a number of tokens; anything else is a mistake of the caller. */
export function checkBudget(budget: number): void {
  if (!(budget >= 0)) throw new LcmError("invalid", `${budget} is no budget`, { hint: "give a number of tokens" });
}

/** What a prompt of a conversation may take as long as no host has said. */
export const promptBudgetDefault = 128_000;
