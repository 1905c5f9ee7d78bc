/** Reports errors: what happened, a hint on what to do, and the exit status. */

import { errorText, LcmError, type ErrorCode } from "../core/base/errors.ts";
import { createPaint } from "../format/paint.ts";
import { breakText } from "../format/width.ts";
import { harmless, jsonText } from "../format/safe-text.ts";
import type { Output } from "../format/page.ts";

export const exitInvalid = 2;
export const exitConflict = 4;
export const exitUnavailable = 6;
const exitUnexpected = 70;
/** The status that shells give a program ended by Ctrl-C. */
export const exitInterrupted = 130;

const statusOf: Readonly<Record<ErrorCode, number>> = {
  invalid: exitInvalid,
  not_found: 3,
  conflict: exitConflict,
  denied: 5,
  unavailable: exitUnavailable,
  corrupt: 7,
};

interface FailureOutput {
  readonly stdout: Pick<Output, "stream">;
  readonly stderr: Pick<Output, "stream" | "colour" | "columns">;
  readonly debug: boolean;
}

export const statusFor = (error: unknown): number => {
  const known = asLcmError(error);
  return known === null ? exitUnexpected : statusOf[known.code];
};

interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
}

/** The error as JSON output shows it. `typed` rewrites commands in the hint as they have to be typed here. */
export function failureOf(error: unknown, typed: (words: string) => string = (words) => words): Failure {
  const known = asLcmError(error);
  if (known === null) {
    const hint = "please report it, with the output of LCM_DEBUG=1";
    return { code: "unexpected", message: `unexpected error: ${errorText(error)}`, hint };
  }
  const { code, message, hint } = known;
  return { code, message, ...(hint !== undefined && { hint: typed(hint) }) };
}

/** Prints the error to stderr, or as JSON to stdout, and returns the exit status. */
export function reportFailure(
  output: FailureOutput,
  json: boolean,
  error: unknown,
  typed?: (words: string) => string,
): number {
  const { stdout, stderr, debug } = output;
  const failure = failureOf(error, typed);
  const { code, message, hint } = failure;
  if (json) stdout.stream.write(jsonText({ error: failure }));
  else {
    const paint = createPaint(stderr.colour);
    const say = (line: string): void => void stderr.stream.write(breakText(line, stderr.columns));
    say(`${paint.bad("error:")} ${harmless(message)}`);
    if (hint !== undefined && !(debug && code === "unexpected")) say(`${paint.soft("hint:")} ${harmless(hint)}`);
  }
  if (debug) stderr.stream.write(`${error instanceof Error ? (error.stack ?? "") : ""}\n`);
  return statusFor(error);
}

const systemCodes: ReadonlyMap<string, ErrorCode> = new Map([
  ["ENOENT", "not_found"],
  ["EEXIST", "conflict"],
  ["EISDIR", "invalid"],
  ["ENOTDIR", "invalid"],
  ["EACCES", "denied"],
  ["EPERM", "denied"],
  ["EROFS", "denied"],
  ["ENOSPC", "unavailable"],
  ["EDQUOT", "unavailable"],
  ["EIO", "unavailable"],
  ["EMFILE", "unavailable"],
]);

/** Translates errors of the operating system; null for unexpected errors. */
function asLcmError(error: unknown): LcmError | null {
  if (error instanceof LcmError) return error;
  const code = systemCodes.get(systemCodeOf(error) ?? "");
  return code === undefined ? null : new LcmError(code, errorText(error), { cause: error });
}

const systemCodeOf = (error: unknown): string | null =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;

/** The reader of our output is gone, as in `lcm export 1 | head`. */
export const isBrokenPipe = (error: unknown): boolean => systemCodeOf(error) === "EPIPE";
