/**
 * The one error class. It is for a world that refused: a bad argument, a missing row, a locked file. Expected
 * alternatives are values, and bugs are assertions; neither is an LcmError.
 */

export const errorCodes = ["invalid", "not_found", "conflict", "denied", "unavailable", "corrupt"] as const;

export type ErrorCode = (typeof errorCodes)[number];

export class LcmError extends Error {
  override readonly name = "LcmError";
  readonly code: ErrorCode;
  /** What to do about it, as a sentence a person can act on. */
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, options: { readonly cause?: unknown; readonly hint?: string } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
  }
}

/** For what cannot happen unless our own code is wrong. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`bug: ${message}`);
}

export function assertNever(value: never): never {
  throw new Error(`bug: unexpected ${JSON.stringify(value)}`);
}
