/** Estimates what a context costs as a prompt, and checks prompt budgets. */

import { estimateTokens } from "../base/tokens.ts";
import type { Pin, Totals } from "./types.ts";
import type { Settings } from "./settings.ts";
import { LcmError } from "../base/errors.ts";

/** Prompt budget of a conversation for which no host has set one. */
export const promptBudgetDefault = 128_000;

/** Rough cost of the element around a summary: about 100 tokens for a leaf, 270 for one with eight parents. */
export const summaryOverheadTokens = 130;

/** Cost of the whole context as a prompt, from the running totals alone. */
export const promptTokens = (totals: Totals): number =>
  totals.contextTokens + summaryOverheadTokens * (totals.contextItems - totals.contextMessages);

/** Rough cost of a standing instruction in a prompt: its words, and the element around them. */
export const pinTokens = ({ words }: Pick<Pin, "words">): number => estimateTokens(words) + 45;

/**
 * The share of the budget that automatic sweeps fold down to, and assembly fills up to by showing finer texts; 0: as
 * little as possible. Well below the threshold, so that a sweep is worth the cached prompt that it invalidates.
 */
export const targetShareOf = ({ contextTarget, contextThreshold }: Settings): number =>
  Math.min(contextTarget, 0.8 * contextThreshold);

/** Whether two budgets differ by no more than a host's budgets do from turn to turn. */
export const isSameBudget = (one: number, other: number, tolerance: number): boolean =>
  Math.abs(one - other) <= tolerance * Math.max(one, other);

export function checkBudget(budget: number): void {
  if (typeof budget === "number" && budget >= 0) return;
  const given = typeof budget === "number" ? String(budget) : JSON.stringify(budget);
  throw new LcmError("invalid", `the budget is ${given}, but must be a number of tokens`);
}
