/** How a request fails, in words for people. */

import type { ErrorCode } from "../../core/base/errors.ts";

/** `unauthorized`: the secret is missing or wrong. `stopped`: a person stopped it. `bug`: ours. */
export type FailureCode = ErrorCode | "unauthorized" | "too_large" | "stopped" | "bug";

/** Sentences for people. A hint says what to do. */
export interface Failure {
  readonly code: FailureCode;
  readonly message: string;
  readonly hint: string | null;
}
