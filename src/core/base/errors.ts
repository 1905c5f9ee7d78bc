/**
 * The one error class. It is for a world that refused: a bad argument, a missing row, a locked file. Expected
 * alternatives are values, and bugs are assertions; neither is an LcmError.
 */

export const errorCodes = ["invalid", "not_found", "conflict", "denied", "unavailable", "corrupt"] as const;

export type ErrorCode = (typeof errorCodes)[number];

/** One for all copies of this module: a host may load a plugin more than once into one process. */
const brand: unique symbol = Symbol.for("lossless-claw.error") as never;

export class LcmError extends Error {
  override readonly name = "LcmError";
  readonly [brand] = true;
  readonly code: ErrorCode;
  /** What to do about it, as a sentence a person can act on. */
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, options: { readonly cause?: unknown; readonly hint?: string } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && brand in value;
  }
}

const wordsMax = 300;

/** What somebody else threw or gave as a reason, on one line and not at length. It may be anything at all. */
export function errorText(error: unknown): string {
  try {
    const words = String(error instanceof Error ? error.message : error).slice(0, 4 * wordsMax);
    return words.replace(/\s+/g, " ").trim().slice(0, wordsMax).toWellFormed();
  } catch {
    return "it cannot be told why";
  }
}

/** An amount that a caller names, if it does. */
export function checkWhole(name: string, value: number | undefined): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) return;
  throw new LcmError("invalid", `${name} is ${value}, but must be a whole number of at least 1`);
}

/** For what cannot happen unless our own code is wrong. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`bug: ${message}`);
}
