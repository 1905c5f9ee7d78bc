/** What is said of the model that writes summaries: which it is, what it will be asked for, why it was not. */

import type { Refusal } from "../core/model/types.ts";
import type { Spend } from "../core/model-calls/metering.ts";
import type { Cost } from "./cost.ts";
import { formatCount, listed, plural } from "../core/base/format.ts";
import type { Page } from "./page.ts";

/** A model as people are told of it. */
export interface NamedModel {
  /** `provider/model`. */
  readonly name: string;
  /** What named it, as a person would say it. */
  readonly from: string;
  /** What keeps it from being asked. */
  readonly problem: string | null;
}

/** Who writes summaries, and what keeps it from being asked. */
export function modelLines({ paint }: Pick<Page, "paint">, model: NamedModel | null): readonly string[] {
  if (model === null) return ["none: summaries are extracted on this machine"];
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
            `only ${plural(left, "call")} left of ${formatCount(spend.callsMax)} in ${spend.windowMinutes} minutes`,
          ),
        ];
  const { calls, callsMax = calls } = cost;
  const most = callsMax > calls ? ` (${formatCount(callsMax)} if answers are of no use)` : "";
  return [`${plural(calls, "call")}, ${tokens}${most}`, ...warning];
}

/** What to do about a refusal. `done`: what is done of the work, and stays. */
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
      return `keys are looked for in OpenClaw's login profiles, in the environment (${listed(summariser?.keyVariables ?? [])}), then in models.json`;
    case "ceiling":
      return "LCM_SPEND_CEILING_CALLS allows more calls, and the window passes by itself";
    case "timeout":
      return `LCM_SUMMARY_TIMEOUT_SECONDS gives a call longer${concurrency > 1 ? ", --concurrency 1 asks for one at a time" : ""}`;
    case "unreachable":
      return "--base-url or LCM_SUMMARY_BASE_URL says where the model is, if not where its provider usually is";
    case "rate_limit":
    case "overloaded":
    case "cancelled":
      return `run it again later, what is ${done} stays`;
    case "unknown_model":
    case "rejected":
    case "filtered":
    case "too_long":
      return "--model or LCM_SUMMARY_MODEL names another model";
  }
}
