/**
 * Why a provider did not answer, told by the status and by the codes of its answer, never by the words of a message:
 * those are for people, differ between providers and change without notice.
 */

import { refusalByStatus } from "../core/model/types.ts";
import type { Refusal } from "../core/model/types.ts";
import { listOf, parseJson, textAt, valueAt } from "./read-files.ts";

/** What is left of a failed request. */
export interface Failure {
  /** Of the HTTP answer; null if none came. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string>>;
  /** The answer as it was sent; null if it was not read to its end. */
  readonly body: string | null;
  /** The system's name for a failure of the connection. */
  readonly networkCode: string | null;
  readonly message: string;
}

export interface Trouble {
  readonly refusal: Refusal;
  /** What was said about it, for people. */
  readonly detail: string;
  /** How long the provider asks to wait; null if it does not say. */
  readonly retryAfterMs: number | null;
  /** Parameters of the request that this model does not take. */
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

/** Codes that say more than their status. Out of credit is a matter of the account: no waiting helps. */
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

/** Some gateways answer 200 and put the status of the provider behind them into the body. */
function statusOf({ status, body }: Failure, error: unknown): number | null {
  if (status === null || status >= 400) return status;
  const code = valueAt(error, "code");
  if (typeof code === "number" && code >= 400 && code < 600) return code;
  // An answer that broke off was a matter of the connection.
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

/** A header in milliseconds, in seconds or as a date; or a duration in the body, as Google has it. */
function retryAfterMs(headers: Failure["headers"], error: unknown, nowMs: number): number | null {
  const after = headers["retry-after"] ?? "";
  const delays = listOf(valueAt(error, "details")).map((detail) => textAt(detail, "retryDelay"));
  const told = [
    Number.parseFloat(headers["retry-after-ms"] ?? ""),
    Number.parseFloat(after) * 1000,
    Date.parse(after) - nowMs,
    ...delays.map((delay) => Number.parseFloat(delay ?? "") * 1000),
  ].find((ms) => Number.isFinite(ms));
  return told === undefined ? null : Math.max(0, told);
}

const secretLike = /\b(?:sk-|gsk_|xai-|AIza|ya29\.|eyJ)[\w.*-]+|(?<=\bBearer\s+)\S+/g;
const detailCharsMax = 300;

/** One line without the secrets that were used, and without anything that looks like one. */
export function scrub(text: string, secrets: readonly (string | null)[]): string {
  let clean = text;
  for (const secret of secrets) if (secret) clean = clean.replaceAll(secret, "***");
  clean = clean.replace(secretLike, "***").replace(/\s+/g, " ").trim();
  return clean.length > detailCharsMax ? `${clean.slice(0, detailCharsMax)}…` : clean;
}
