/**
 * Classifies why a provider refused, by HTTP status and error codes. Messages are not used: they differ between providers
 * and change without notice.
 */

import { refusalByStatus, type Refusal } from "../core/model/types.ts";
import { listOf, parseJson, textAt, valueAt } from "./read-files.ts";

export interface Failure {
  /** Null if there was no response. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Null if it was not read completely. */
  readonly body: string | null;
  /** The code of a failed connection, such as ECONNREFUSED. */
  readonly networkCode: string | null;
  readonly message: string;
}

export interface Trouble {
  readonly refusal: Refusal;
  /** For people. */
  readonly detail: string;
  /** How long the provider asks to wait; null if unknown. */
  readonly retryAfterMs: number | null;
  /** Parameters that this model does not accept. */
  readonly rejected: readonly string[];
}

export function troubleOf(failure: Failure, nowMs: number): Trouble {
  const error = valueAt(parseJson(failure.body ?? ""), "error");
  const status = statusOf(failure, error);
  return {
    refusal: refusalByCode(error) ?? (status === null ? refusalByNetwork(failure) : refusalByStatus(status)),
    detail: [status === null ? failure.networkCode : `HTTP ${status}`, failure.message].filter(Boolean).join(", "),
    retryAfterMs: retryAfterMs(failure.headers, error, nowMs),
    rejected: status === 400 ? rejectedParameters(error) : [],
  };
}

const slowNetwork = ["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"];

function refusalByNetwork({ networkCode }: Failure): Refusal {
  return networkCode !== null && slowNetwork.includes(networkCode) ? "timeout" : "unreachable";
}

/** Codes that are more precise than the status. An exhausted quota needs the account owner; waiting does not help. */
const refusalOfCode: ReadonlyMap<unknown, Refusal> = new Map<unknown, Refusal>([
  ["context_length_exceeded", "too_long"],
  ["exceed_context_size_error", "too_long"],
  ["request_too_large", "too_long"],
  ["content_filter", "filtered"],
  ["content_policy_violation", "filtered"],
  ["insufficient_quota", "auth"],
  ["invalid_api_key", "auth"],
  ["API_KEY_INVALID", "auth"],
  ["model_not_found", "unknown_model"],
]);

function refusalByCode(error: unknown): Refusal | undefined {
  const details = valueAt(error, "details");
  const codes = [
    valueAt(error, "code"),
    valueAt(error, "type"),
    valueAt(details, "error_code"),
    ...listOf(details).map((detail) => valueAt(detail, "reason")),
  ];
  return codes.map((code) => refusalOfCode.get(code)).find((refusal) => refusal !== undefined);
}

/** Some gateways answer 200 and put the status of the provider into the body. */
function statusOf({ status, body }: Failure, error: unknown): number | null {
  if (status === null || status >= 400) return status;
  const code = valueAt(error, "code");
  if (typeof code === "number" && code >= 400 && code < 600) return code;
  // An incomplete response is a connection failure.
  return body === null ? null : status;
}

function rejectedParameters(error: unknown): readonly string[] {
  const details = valueAt(error, "details");
  const violations = listOf(details).flatMap((detail) => listOf(valueAt(detail, "fieldViolations")));
  return [valueAt(error, "param"), ...listOf(valueAt(details, "unsupported")), ...violations.map(fieldOf)].filter(
    (name) => typeof name === "string",
  );
}

const fieldOf = (violation: unknown): string | undefined => textAt(violation, "field")?.split(".").at(-1);

/** From a header in milliseconds, seconds or as a date, or from a duration in the body (Google). */
function retryAfterMs(headers: Failure["headers"], error: unknown, nowMs: number): number | null {
  const after = headers["retry-after"] ?? "";
  const delays = listOf(valueAt(error, "details")).map((detail) => textAt(detail, "retryDelay"));
  const delay = [
    Number.parseFloat(headers["retry-after-ms"] ?? ""),
    Number.parseFloat(after) * 1000,
    Date.parse(after) - nowMs,
    ...delays.map((text) => Number.parseFloat(text ?? "") * 1000),
  ].find((ms) => Number.isFinite(ms));
  return delay === undefined ? null : Math.max(0, delay);
}

const secretLike = /\b(?:sk-|gsk_|xai-|AIza|ya29\.|eyJ)[\w.*-]+|(?<=\bBearer\s+)\S+/g;
const detailCharsMax = 300;

/** One line without the given secrets, and without anything that looks like one. */
export function scrub(text: string, secrets: readonly (string | null)[]): string {
  let clean = text;
  for (const secret of secrets) if (secret) clean = clean.replaceAll(secret, "***");
  clean = clean.replace(secretLike, "***").replace(/\s+/g, " ").trim();
  return clean.length > detailCharsMax ? `${clean.slice(0, detailCharsMax)}…` : clean;
}
