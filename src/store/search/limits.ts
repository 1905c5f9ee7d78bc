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

export const wordingsMax = 5;

export function checkRequest({ limit, also = [], mode, scope }: SearchRequest): void {
  if (also.length > wordingsMax)
    throw new LcmError("invalid", `also has ${also.length} wordings; the limit is ${wordingsMax}`);
  if (also.length > 0 && (mode === "regex" || scope === "files"))
    throw new LcmError("invalid", `also is for words, not for ${mode === "regex" ? "a regular expression" : "files"}`, {
      hint: mode === "regex" ? "join the alternatives with | or search for words" : "search for one wording at a time",
    });
  if (!Number.isInteger(limit) || limit < 1 || limit > 200)
    throw new LcmError("invalid", `limit ${limit} is not a whole number from 1 to 200`);
}
