/**
 * Errors: the one error class, with a code and a hint, and the text of errors that others throw.
 * An LcmError reports an outside cause (a bad argument, a locked file). Expected alternatives are values, bugs assertions.
 */

export const errorCodes = ["invalid", "not_found", "conflict", "denied", "unavailable", "corrupt"] as const;

export type ErrorCode = (typeof errorCodes)[number];

/** Shared by all copies of this module: a host may load a plugin more than once into one process. */
const brand: unique symbol = Symbol.for("lossless-claw.error") as never;

export class LcmError extends Error {
  override readonly name = "LcmError";
  readonly [brand] = true;
  readonly code: ErrorCode;
  /** What to do about it. */
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

const charactersMax = 300;

/** What other code threw or gave as a reason, on one line and cut to a bound. It may be any value. */
export function errorText(error: unknown): string {
  try {
    const text = String(error instanceof Error ? error.message : error).slice(0, 4 * charactersMax);
    return text.replace(/\s+/g, " ").trim().slice(0, charactersMax).toWellFormed();
  } catch {
    return "unknown error";
  }
}

/** Checks an optional amount. */
export function checkWhole(name: string, value: number | undefined): void {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 1)) return;
  throw new LcmError("invalid", `${name} is ${value}, but must be a whole number of at least 1`);
}

/** Checks a number before it is stored. */
export function checkAmount(name: string, value: number, max = Number.MAX_SAFE_INTEGER): void {
  if (Number.isSafeInteger(value) && value >= 0 && value <= max) return;
  throw new LcmError("invalid", `${name} is ${value}, but must be a whole number from 0 to ${max}`);
}

/** Fails only if our own code is wrong. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`bug: ${message}`);
}
