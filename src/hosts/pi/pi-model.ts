/** Makes Pi's model available through our port: the session's own, or the one that the settings name. */

import { withDeadline } from "../../core/base/deadline.ts";
import { errorText } from "../../core/base/errors.ts";
import type { HostMessage } from "../../core/messages/codec.ts";
import type { Settings } from "../../core/model/settings.ts";
import type { Completion, CompletionRequest, Model } from "../../core/model/store.ts";
import { inputTokensOf, outputTokensOf, textOf } from "../shared/message-fields.ts";
import type { PiContext, PiModel } from "./pi-api.ts";

/** Null if no model is selected. */
export function createPiModel(context: PiContext | null, settings: Settings): Model | null {
  if (context === null) return null;
  const { model, modelRegistry } = context;
  const chosen = configuredModel(modelRegistry, settings) ?? model;
  if (chosen === undefined) return null;
  const ask = async (request: CompletionRequest): Promise<HostMessage> =>
    await withDeadline(settings.summaryTimeoutSeconds * 1_000, request.signal, async (signal) =>
      modelRegistry.complete(
        chosen,
        { systemPrompt: request.system, messages: [{ role: "user", content: request.prompt, timestamp: Date.now() }] },
        // Without a temperature, because some models take none.
        { maxTokens: request.maxOutputTokens, cacheRetention: "none", signal },
      ),
    );
  return {
    provider: chosen.provider,
    name: chosen.id,
    async complete(request) {
      try {
        return toCompletion(await ask(request), request.signal);
      } catch (error) {
        return refused(errorText(error), request.signal);
      }
    },
  };
}

function configuredModel(
  registry: PiContext["modelRegistry"],
  { summaryModel, summaryProvider }: Settings,
): PiModel | undefined {
  const [, provider = summaryProvider, id = ""] = /^(?:([^/]+)\/)?(.+)$/.exec(summaryModel ?? "") ?? [];
  return provider === null || id === "" ? undefined : registry.find(provider, id);
}

/** Pi reports a provider's failure as a message, without its status. */
function toCompletion(message: HostMessage, signal: AbortSignal | undefined): Completion {
  const { stopReason, content, errorMessage } = message;
  if (stopReason === "error" || stopReason === "aborted") return refused(errorText(errorMessage), signal);
  return {
    kind: "text",
    text: textOf(content),
    finish: stopReason === "length" ? "length" : "stop",
    inputTokens: inputTokensOf(message),
    outputTokens: outputTokensOf(message),
  };
}

const refused = (message: string, signal: AbortSignal | undefined): Completion => ({
  kind: "refused",
  refusal: signal?.aborted === true ? "cancelled" : "unreachable",
  message,
});
