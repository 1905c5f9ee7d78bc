/**
 * The model port over real providers, through the AI SDK. It is loaded when the first text is asked for: most commands
 * ask for none, and it takes longer to load than all the rest.
 *
 * One timeout covers a completion with all its attempts and waits. Nothing is thrown for a provider's trouble; what it
 * was is told by refusal.ts.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { APICallError, LanguageModel } from "ai";
import { beforeDeadline } from "../core/base/deadline.ts";
import { assert, LcmError } from "../core/base/errors.ts";
import type { Refusal } from "../core/model/types.ts";
import type { Completion, CompletionRequest, Model, Refused } from "../core/model/store.ts";
import { endpointOf } from "./choose-model.ts";
import type { Endpoint, ModelChoice } from "./choose-model.ts";
import { findCredential } from "./credentials.ts";
import type { CredentialDeps } from "./credentials.ts";
import { checkLogin, renewLogin } from "./oauth.ts";
import type { Renewed } from "./oauth.ts";
import { readCustomProviders, readOpenclawConfig } from "./openclaw-files.ts";
import type { Env } from "./openclaw-files.ts";
import { scrub, troubleOf } from "./refusal.ts";
import type { Failure, Trouble } from "./refusal.ts";
import { callsOf, estimateInput, estimateOutput, tell } from "./tool-steps.ts";

export interface ModelDeps {
  /** OpenClaw's, with its config, its providers and its auth profiles. */
  readonly stateDir: string;
  readonly env: Env;
  readonly timeoutMs: number;
  readonly fetch?: typeof fetch;
  /** Where logins are renewed, if not at their provider's own address. */
  readonly tokenUrl?: string;
}

const retriesMax = 2;
const retried: readonly Refusal[] = ["rate_limit", "overloaded", "unreachable"];
const backoffMs = 500;

/** What keeps a model from being asked, as a sentence; null if nothing does. Nobody is asked for it. */
export async function checkModel(
  choice: ModelChoice,
  deps: Pick<ModelDeps, "stateDir" | "env">,
): Promise<string | null> {
  try {
    const { credentials } = await findWay(choice, deps);
    return (await checkCredential(choice, credentials))?.message ?? null;
  } catch (error) {
    if (error instanceof LcmError) return error.message;
    throw error;
  }
}

/** A login that has to be renewed first counts as one, if that can be tried; what is accepted only the provider knows. */
async function checkCredential(
  { provider }: ModelChoice,
  credentials: Omit<CredentialDeps, "renew">,
): Promise<Refused | null> {
  const renew = async (file: string, profile: string): Promise<Renewed> =>
    (await checkLogin(file, profile, credentials.stateDir)) ?? { kind: "found", secret: "not asked for" };
  const credential = await findCredential(provider, { ...credentials, renew });
  return credential.kind === "found" ? null : credential;
}

/** Throws `invalid` if it is not known where and how to ask; whether there is a credential is seen when it is asked. */
export async function createModel(choice: ModelChoice, deps: ModelDeps): Promise<Model> {
  const { endpoint, credentials } = await findWay(choice, deps);
  const post = deps.fetch ?? fetch;
  const { stateDir, tokenUrl } = deps;
  const renewDeps = { stateDir, fetch: post, ...(tokenUrl === undefined ? {} : { tokenUrl }) };
  const credentialDeps = {
    ...credentials,
    renew: (file: string, profile: string) => renewLogin(file, profile, renewDeps),
  };
  let takesTemperature = true;

  const refused = (refusal: Refusal, detail: string): Refused => ({
    kind: "refused",
    refusal,
    message: `${toldOf(choice, refusal)}${detail === "" ? "" : `: ${detail}`}`,
  });

  async function ask(request: Wanted, secret: string | null, abortSignal: AbortSignal): Promise<Outcome> {
    const { generateText } = await import("ai");
    // It would write to the terminal that a setting was ignored; nobody there can do anything about it.
    globalThis.AI_SDK_LOG_WARNINGS ??= false;
    const result = await generateText({
      model: await languageModel(choice, endpoint, secret, post),
      instructions: request.system,
      ...(await tell(request)),
      maxOutputTokens: request.maxOutputTokens,
      ...(request.temperature === null ? {} : { temperature: request.temperature }),
      maxRetries: 0,
      abortSignal,
      ...(endpoint.api === "openai-responses" ? { providerOptions: { openai: { store: false } } } : {}),
    });
    if (result.finishReason === "content-filter") return refused("filtered", "");
    const finish = result.finishReason === "tool-calls" ? "stop" : result.finishReason;
    const called = callsOf(result.toolCalls, result.responseMessages);
    return {
      kind: "text",
      text: result.text,
      ...called,
      finish: finish === "stop" || finish === "length" ? finish : "other",
      inputTokens: result.usage.inputTokens ?? estimateInput(request),
      outputTokens: result.usage.outputTokens ?? estimateOutput(result.text, called.calls),
    };
  }

  async function attempt(request: Wanted, secret: string | null, signal: AbortSignal): Promise<Outcome> {
    try {
      return await ask(request, secret, signal);
    } catch (error) {
      signal.throwIfAborted();
      const { APICallError } = await import("ai");
      // What the SDK could not even send is a request that is wrong.
      if (!APICallError.isInstance(error)) return refused("rejected", scrub(String(error), [secret]));
      const trouble = troubleOf(failureOf(error), Date.now());
      return { ...refused(trouble.refusal, scrub(trouble.detail, [secret])), trouble };
    }
  }

  /** Throws only when it is cut short, by the signal. */
  async function attemptAll(request: CompletionRequest, signal: AbortSignal): Promise<Completion> {
    const deadline = performance.now() + deps.timeoutMs;
    signal.throwIfAborted();
    // Not itself cut short: a login that is being renewed must be written down.
    const credential = await beforeDeadline(signal, findCredential(choice.provider, credentialDeps), null);
    signal.throwIfAborted();
    assert(credential !== null, "only the signal comes before it");
    if (credential.kind === "refused") return credential;

    let retries = 0;
    for (;;) {
      const temperature = takesTemperature ? request.temperature : null;
      const outcome = await attempt({ ...request, temperature }, credential.secret, signal);
      if (outcome.kind === "text") return outcome;
      const { refusal, message, trouble } = outcome;
      if (temperature !== null && trouble?.rejected.includes("temperature")) {
        takesTemperature = false;
        continue;
      }
      const waitMs = trouble?.retryAfterMs ?? backoffMs * 2 ** retries * (1 + Math.random() / 4);
      const isHopeless = !retried.includes(refusal) || retries === retriesMax;
      if (isHopeless || performance.now() + waitMs >= deadline) return { kind: "refused", refusal, message };
      retries++;
      await sleep(waitMs, undefined, { signal });
    }
  }

  async function complete(request: CompletionRequest): Promise<Completion> {
    const timeout = AbortSignal.timeout(deps.timeoutMs);
    const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]);
    try {
      return await attemptAll(request, signal);
    } catch (error) {
      if (request.signal?.aborted) return refused("cancelled", "");
      if (timeout.aborted) return refused("timeout", `waited for ${deps.timeoutMs / 1000} s`);
      throw error;
    }
  }

  const check = async (): Promise<Refused | null> => await checkCredential(choice, credentials);
  return { provider: choice.provider, name: choice.model, check, complete };
}

/** Where and how a model is asked, and where its credential may be. */
async function findWay(
  choice: ModelChoice,
  { stateDir, env }: Pick<ModelDeps, "stateDir" | "env">,
): Promise<{ readonly endpoint: Endpoint; readonly credentials: Omit<CredentialDeps, "renew"> }> {
  const config = await readOpenclawConfig(stateDir, env);
  const providers = await readCustomProviders(stateDir, config);
  const endpoint = endpointOf(choice, providers);
  const custom = providers.get(choice.provider);
  return { endpoint, credentials: { stateDir, env, config, custom, needsKey: endpoint.needsKey } };
}

/** A request as it is sent: without a temperature to a model that takes none. */
type Wanted = Omit<CompletionRequest, "temperature"> & { readonly temperature: number | null };
type Outcome = Extract<Completion, { kind: "text" }> | (Refused & { readonly trouble?: Trouble });

const sentences: Readonly<Partial<Record<Refusal, string>>> = {
  auth: "does not accept the credential",
  rate_limit: "asks to slow down",
  overloaded: "has trouble of its own",
  unreachable: "cannot be reached",
  timeout: "did not answer in time",
  cancelled: "was not waited for",
  too_long: "does not take a prompt of this length",
  filtered: "will not answer this text",
  rejected: "rejected the request",
};

const toldOf = ({ provider, model }: ModelChoice, refusal: Refusal): string =>
  refusal === "unknown_model"
    ? `${provider} has no model "${model}"`
    : `${provider}/${model} ${sentences[refusal] ?? refusal}`;

/** The SDK looks into the environment for what it is not given, so it is given everything. */
async function languageModel(
  { provider, model }: ModelChoice,
  { api, baseUrl: baseURL }: Endpoint,
  secret: string | null,
  fetch: typeof globalThis.fetch,
): Promise<LanguageModel> {
  const apiKey = secret ?? "none";
  switch (api) {
    case "anthropic-messages": {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      if (!apiKey.startsWith("sk-ant-oat")) return createAnthropic({ baseURL, fetch, apiKey })(model);
      const headers = { "anthropic-beta": "oauth-2025-04-20" };
      return createAnthropic({ baseURL, fetch, authToken: apiKey, headers })(model);
    }
    case "google-generative-ai": {
      const { createGoogle } = await import("@ai-sdk/google");
      return createGoogle({ baseURL, fetch, apiKey })(model);
    }
    case "openai-responses": {
      const { createOpenAI } = await import("@ai-sdk/openai");
      return createOpenAI({ baseURL, fetch, apiKey }).responses(model);
    }
    case "openai-completions": {
      if (provider === "openai") {
        const { createOpenAI } = await import("@ai-sdk/openai");
        return createOpenAI({ baseURL, fetch, apiKey }).chat(model);
      }
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      return createOpenAICompatible({ name: provider, baseURL, fetch, ...(secret === null ? {} : { apiKey }) })(model);
    }
  }
}

const failureOf = (error: APICallError): Failure => ({
  status: error.statusCode ?? null,
  headers: error.responseHeaders ?? {},
  body: error.responseBody ?? null,
  networkCode: networkCodeOf(error.cause),
  message: error.message,
});

/** The first code on the way down: causes are nested. */
function networkCodeOf(cause: unknown): string | null {
  for (let at = cause; at instanceof Error; at = at.cause) {
    if ("code" in at && typeof at.code === "string") return at.code;
  }
  return null;
}
