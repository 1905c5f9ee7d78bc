/** Estimates what a context costs as a prompt, and checks prompt budgets. */

import type { Totals } from "./types.ts";
import type { Settings } from "./settings.ts";
import { LcmError } from "../base/errors.ts";

/** Prompt budget of a conversation for which no host has set one. */
export const promptBudgetDefault = 128_000;

/** Rough cost of the element around a summary: about 100 tokens for a leaf, 270 for one with eight parents. */
export const summaryOverheadTokens = 130;

/** Cost of the whole context as a prompt, from the running totals alone. */
export const promptTokens = (totals: Totals): number =>
  totals.contextTokens + summaryOverheadTokens * (totals.contextItems - totals.contextMessages);

/**
 * What automatic sweeps fold down to, and assembly fills up to by showing finer texts; 0: as little as possible. Well
 * below the threshold, so that a sweep is worth the cached prompt that it invalidates.
 */
export const contextTargetTokens = (
  settings: Pick<Settings, "contextTarget" | "contextThreshold">,
  budget: number,
): number => Math.round(Math.min(settings.contextTarget, 0.8 * settings.contextThreshold) * budget);

export function checkBudget(budget: number): void {
  if (!(budget >= 0)) throw new LcmError("invalid", `the budget is ${budget}, but must be a number of tokens`);
}
