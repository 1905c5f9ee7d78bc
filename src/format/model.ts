/** Describes the summary model: its name, the calls it needs, and how to fix a refusal. */

import type { Refusal } from "../core/model/types.ts";
import type { Spend } from "../core/model-calls/metering.ts";
import type { Cost } from "./cost.ts";
import { formatCount, plural } from "../core/base/format.ts";
import type { Page } from "./page.ts";

export interface NamedModel {
  /** `provider/model`. */
  readonly name: string;
  /** Where it was configured, for people. */
  readonly from: string;
  /** Why it cannot be used. */
  readonly problem: string | null;
}

export function modelLines({ paint }: Pick<Page, "paint">, model: NamedModel | null): readonly string[] {
  if (model === null) return ["none: summaries are extracted locally, without a model"];
  const { name, from, problem } = model;
  return [`${name} ${paint.soft(`(${from})`)}`, ...(problem === null ? [] : [paint.bad(problem)])];
}

export function callLines({ paint }: Pick<Page, "paint">, cost: Cost | null, spend: Spend | null): readonly string[] {
  if (cost === null || spend === null || cost.calls === 0) return [];
  const tokens = `about ${formatCount(cost.inputTokens)} tokens in, ${formatCount(cost.outputTokens)} out`;
  const left = Math.max(0, spend.callsMax - spend.usage.calls);
  const warning =
    cost.calls <= left
      ? []
      : [
          paint.caution(
            `only ${plural(left, "call")} left of ${formatCount(spend.callsMax)} per ${spend.windowMinutes} minutes`,
          ),
        ];
  const { calls, callsMax = calls } = cost;
  const most = callsMax > calls ? ` (up to ${formatCount(callsMax)} if answers are unusable)` : "";
  return [`${plural(calls, "call")}, ${tokens}${most}`, ...warning];
}

/** What to do about a refusal. `done` describes the work that is kept: `folded`, `applied`. */
export function refusalHint(
  refusal: Refusal,
  summariser: { readonly keyVariables: readonly string[] } | null,
  done: string,
  concurrency: number,
): string {
  switch (refusal) {
    case "auth":
    case "no_credential":
    case "breaker":
      return `log in with openclaw, set ${summariser?.keyVariables.join(" or ") ?? "its API key"}, or add the key to models.json`;
    case "ceiling":
      return "wait until the window has passed, or raise LCM_SPEND_CEILING_CALLS";
    case "timeout":
      return `raise LCM_SUMMARY_TIMEOUT_SECONDS${concurrency > 1 ? ", or pass --concurrency 1 to make one call at a time" : ""}`;
    case "unreachable":
      return "check the connection; if the model runs elsewhere, set --base-url or LCM_SUMMARY_BASE_URL";
    case "rate_limit":
    case "overloaded":
    case "cancelled":
      return `run it again later; what is ${done} is kept`;
    case "unknown_model":
    case "rejected":
    case "filtered":
    case "too_long":
      return "choose another model with --model or LCM_SUMMARY_MODEL";
  }
}
