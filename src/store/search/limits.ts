/** The limits of every search: number of hits, width of snippets, deadline and cancellation. */

import { LcmError } from "../../core/base/errors.ts";
import type { SearchRequest } from "../../core/model/store.ts";

/** When to stop, and the clock that decides it. */
export interface Deadline {
  readonly deadlineMs: number;
  readonly nowMs: () => number;
}

export const isLate = ({ deadlineMs, nowMs }: Deadline): boolean => nowMs() >= deadlineMs;

/** The time that is left, for the caveat that reports a timeout. */
export const timeoutMsOf = ({ deadlineMs, nowMs }: Deadline): number => Math.round(deadlineMs - nowMs());

export const searchTimeoutMsDefault = 10_000;

export const cancelled = (): LcmError => new LcmError("unavailable", "the search was cancelled");

export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw cancelled();
}

export const snippetWidth = 240;

export function checkLimit({ limit }: SearchRequest): void {
  if (!Number.isInteger(limit) || limit < 1 || limit > 200)
    throw new LcmError("invalid", `limit ${limit} is not a whole number from 1 to 200`);
}
