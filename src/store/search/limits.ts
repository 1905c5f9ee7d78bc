/** What bounds a search, wherever it looks: how many hits, how wide they are shown, and until when. */

import { LcmError } from "../../core/base/errors.ts";
import type { SearchRequest } from "../../core/model/store.ts";

/** When to stop, by the clock that tells the time. */
export interface Deadline {
  readonly deadlineMs: number;
  readonly nowMs: () => number;
}

export const isLate = ({ deadlineMs, nowMs }: Deadline): boolean => nowMs() >= deadlineMs;

/** How long there is, for whoever is told that it was not enough. */
export const timeoutMsOf = ({ deadlineMs, nowMs }: Deadline): number => Math.round(deadlineMs - nowMs());

/** Where a search stops if nothing else is said. */
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
