/** The limits of every search: number of hits, width of snippets, deadline and cancellation; and stopping at the deadline. */

import { createContext, Script, type Context } from "node:vm";
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

// ── Stopping ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The longest time that a timer takes. */
const timeoutMsMax = 2 ** 31 - 1;

const script = new Script("work()");
let context: Context | null = null;

/**
 * Runs work that may never end by itself, such as a runaway regular expression. False if the deadline came first: then the
 * work was stopped anywhere, and what it has noted until then stays.
 */
export function runUntil({ deadlineMs, nowMs }: Deadline, work: () => void): boolean {
  const timeout = Math.min(timeoutMsMax, Math.ceil(deadlineMs - nowMs()));
  if (timeout <= 0) return false;
  context ??= createContext({});
  context["work"] = work;
  try {
    script.runInContext(context, { timeout });
    return true;
  } catch (error) {
    if (isTimeout(error)) return false;
    if (error instanceof RangeError) throw tooLarge(error);
    throw error;
  } finally {
    context["work"] = undefined; // What it refers to may be large.
  }
}

/** Not an instance of our `Error`, because it comes from the other context. */
const isTimeout = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "code" in error && error.code === "ERR_SCRIPT_EXECUTION_TIMEOUT";

/** V8's stack for going back in a match is limited: alternatives in a repetition take some of it for every character. */
const tooLarge = (cause: RangeError): LcmError =>
  new LcmError("unavailable", "the regular expression needs too much memory for one of the texts", {
    cause,
    hint: String.raw`repeat a class instead of alternatives, such as [\s\S]* instead of (.|\s)*`,
  });
