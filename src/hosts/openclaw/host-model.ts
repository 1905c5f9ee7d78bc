/**
 * Makes the host's model available through our port. The host chooses the model; another one needs the operator's
 * permission, and without it the host's is used. It takes and returns text only, without tools.
 */

import { refusalByStatus, type Refusal } from "../../core/model/types.ts";
import type { Completion, CompletionRequest, Model } from "../../core/model/store.ts";
import type { ResolvedSettings, Settings } from "../../core/model/settings.ts";
import { errorText } from "../../core/base/errors.ts";
import type { Llm, LlmAnswer, RuntimeSettings } from "./host-api.ts";
import type { Runtime } from "../shared/runtime.ts";
import { withDeadline } from "../../core/base/deadline.ts";

/** Warns once if the host does not allow the model that the operator configured. */
export function createHostModel(
  llm: Llm,
  runtime: { readonly settings: Pick<ResolvedSettings, "values"> } & Pick<Runtime, "warnOnce">,
  offered: RuntimeSettings = {},
): Model {
  const { values: settings } = runtime.settings;
  const configured = configuredModel(settings);
  const ask = async (request: CompletionRequest, model: string | null): Promise<LlmAnswer> =>
    await withDeadline(settings.summaryTimeoutSeconds * 1_000, request.signal, async (signal) =>
      llm.complete({
        messages: [{ role: "user", content: request.prompt }],
        systemPrompt: request.system,
        maxTokens: request.maxOutputTokens,
        temperature: request.temperature,
        signal,
        purpose: `lossless-claw.${request.purpose}`,
        ...(model === null ? {} : { model }),
      }),
    );
  return {
    provider: offered.model?.provider ?? "openclaw",
    name: configured ?? offered.model?.resolved ?? "the host's model",
    async complete(request) {
      try {
        if (configured === null) return toCompletion(await ask(request, null), request.signal);
        try {
          return toCompletion(await ask(request, configured), request.signal);
        } catch (error) {
          if (!isForbidden(error)) throw error;
          runtime.warnOnce(
            `summaryModel ${configured} is ignored in favour of the session's own model: OpenClaw lets a plugin choose a model ` +
              "only if plugins.entries.lossless-claw.llm.allowModelOverride is true",
          );
          return toCompletion(await ask(request, null), request.signal);
        }
      } catch (error) {
        return { kind: "refused", refusal: refusalOf(error, request.signal), message: errorText(error) };
      }
    },
  };
}

function configuredModel({ summaryModel, summaryProvider }: Settings): string | null {
  if (summaryModel === null) return null;
  return summaryModel.includes("/") || summaryProvider === null ? summaryModel : `${summaryProvider}/${summaryModel}`;
}

/** The host also returns a provider failure as an answer, without text and without the provider's status. */
function toCompletion({ text, stopReason, usage = {} }: LlmAnswer, signal: AbortSignal | undefined): Completion {
  const failure = failures.get(stopReason ?? "");
  if (failure !== undefined) {
    const refusal = signal?.aborted === true ? "cancelled" : failure;
    return { kind: "refused", refusal, message: "the model's provider failed; see OpenClaw's log" };
  }
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage;
  return {
    kind: "text",
    text,
    finish: stopReason === "length" ? "length" : "stop",
    inputTokens: inputTokens + cacheReadTokens + cacheWriteTokens,
    outputTokens,
  };
}

const failures: ReadonlyMap<string, Refusal> = new Map([
  ["error", "unreachable"],
  ["aborted", "timeout"],
]);

const isForbidden = (error: unknown): boolean => fieldOf(error, "code") === "LLM_COMPLETION_NOT_AUTHORIZED";

/** Judges by the host's reason or the provider's status, never by the text of a message. */
function refusalOf(error: unknown, signal: AbortSignal | undefined): Refusal {
  if (signal?.aborted === true) return "cancelled";
  if (fieldOf(error, "name") === "TimeoutError" || fieldOf(error, "name") === "AbortError") return "timeout";
  const reason = fieldOf(error, "reason");
  const named = typeof reason === "string" ? reasons.get(reason) : undefined;
  if (named !== undefined) return named;
  const status = fieldOf(error, "status") ?? fieldOf(error, "statusCode");
  if (typeof status === "number") return refusalByStatus(status);
  return isForbidden(error) ? "rejected" : "unreachable";
}

const reasons: ReadonlyMap<string, Refusal> = new Map([
  ["auth", "auth"],
  ["auth_permanent", "auth"],
  ["billing", "auth"],
  ["rate_limit", "rate_limit"],
  ["overloaded", "overloaded"],
  ["timeout", "timeout"],
  ["context_overflow", "too_long"],
  ["model_not_found", "unknown_model"],
  ["format", "rejected"],
]);

/** A field of an error or of one of its causes. */
function fieldOf(error: unknown, field: string): unknown {
  for (let each: unknown = error, depth = 0; typeof each === "object" && each !== null && depth < 4; depth++) {
    if (field in each) return (each as Readonly<Record<string, unknown>>)[field];
    each = "cause" in each ? each.cause : null;
  }
  return undefined;
}
