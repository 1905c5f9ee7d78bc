/** Runs work that may never end by itself, such as a runaway regular expression, and stops it at its deadline. */

import { createContext, Script, type Context } from "node:vm";
import { LcmError } from "../../core/base/errors.ts";
import type { Deadline } from "./limits.ts";

/** The longest time that a timer takes. */
const timeoutMsMax = 2 ** 31 - 1;

const script = new Script("work()");
let context: Context | null = null;

/** False if the deadline came first. Then the work was stopped anywhere, and what it has noted until then stays. */
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
