/** Failures of requests: every code with its HTTP status, and the body that says what went wrong. */

import { LcmError, errorText } from "../core/base/errors.ts";
import type { Failure, FailureCode } from "./contract.ts";

export const statuses = {
  invalid: 400,
  unauthorized: 401,
  denied: 403,
  not_found: 404,
  conflict: 409,
  too_large: 413,
  stopped: 499,
  bug: 500,
  corrupt: 500,
  unavailable: 503,
} as const satisfies Readonly<Record<FailureCode, number>>;

/** A refusal of a request that no `LcmError` names. */
export class Refused extends Error {
  readonly code: FailureCode;
  readonly hint: string | null;

  constructor(code: FailureCode, message: string, hint: string | null = null) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

export function failureOf(error: unknown, signal?: AbortSignal): Failure {
  if (error instanceof Refused) return { code: error.code, message: error.message, hint: error.hint };
  if (error instanceof LcmError) return { code: error.code, message: error.message, hint: error.hint ?? null };
  if (signal?.aborted === true) return { code: "stopped", message: "it was stopped", hint: null };
  return { code: "bug", message: errorText(error), hint: null };
}

export function failed(failure: Failure): Response {
  return Response.json({ error: failure }, { status: statuses[failure.code] });
}
