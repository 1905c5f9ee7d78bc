/**
 * Calls real providers through the AI SDK, which is loaded on the first call because it is large. One timeout covers a
 * completion with all its attempts and waits. Failures of a provider are refusals, never exceptions.
 */

import { setTimeout as sleep } from "node:timers/promises";
import type { APICallError, LanguageModel } from "ai";
import { beforeDeadline } from "../core/base/deadline.ts";
import { assert, LcmError } from "../core/base/errors.ts";
import type { Refusal } from "../core/model/types.ts";
import type { Completion, CompletionRequest, Model, Refused } from "../core/model/store.ts";
import { endpointOf, type Endpoint, type ModelChoice } from "./choose-model.ts";
import { findCredential, type Credential, type CredentialDeps } from "./credentials.ts";
import { guardedFetch } from "./guarded-fetch.ts";
import { checkLogin, renewLogin, type Renewed } from "./oauth.ts";
import { readCustomProviders, readOpenclawConfig, type Env } from "./openclaw-files.ts";
import { scrub, troubleOf, type Failure, type Trouble } from "./refusal.ts";
import { callsOf, estimateInput, estimateOutput, sdkInputOf } from "./tool-steps.ts";

export interface ModelDeps {
  /** OpenClaw's state directory. */
  readonly stateDir: string;
  readonly env: Env;
  readonly timeoutMs: number;
  readonly fetch?: typeof fetch;
  /** Replaces the provider's address for renewing logins. */
  readonly tokenUrl?: string;
}

const retriesMax = 2;
const retried: readonly Refusal[] = ["rate_limit", "overloaded", "unreachable"];
const backoffMs = 500;

/** Why a model cannot be used, found without a call; null if nothing is wrong. */
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

/** An expired login counts as a credential if it can be renewed; only the provider knows if it is accepted. */
async function checkCredential(
  { provider }: ModelChoice,
  credentials: Omit<CredentialDeps, "renew">,
): Promise<Refused | null> {
  const renew = async (file: string, profile: string): Promise<Renewed> =>
    (await checkLogin(file, profile, credentials.stateDir)) ?? { kind: "found", secret: "not requested" };
  const credential = await findCredential(provider, { ...credentials, renew });
  return credential.kind === "found" ? null : credential;
}

/** Throws `invalid` if the address or API is unknown. A missing credential shows only when the model is called. */
export async function createModel(choice: ModelChoice, deps: ModelDeps): Promise<Model> {
  const { endpoint, credentials } = await findWay(choice, deps);
  const { stateDir, tokenUrl, fetch: post = fetch } = deps;
  const renewDeps = { stateDir, fetch: post, ...(tokenUrl === undefined ? {} : { tokenUrl }) };
  const renew = async (file: string, profile: string): Promise<Renewed> => await renewLogin(file, profile, renewDeps);
  return {
    ...modelAt(choice, endpoint, async () => await findCredential(choice.provider, { ...credentials, renew }), deps),
    check: async () => await checkCredential(choice, credentials),
  };
}

/** With a key that the caller has; it is kept nowhere else. */
export const createKeyedModel = (
  choice: ModelChoice,
  endpoint: Endpoint,
  secret: string,
  deps: Pick<ModelDeps, "timeoutMs" | "fetch">,
): Model => modelAt(choice, endpoint, async () => ({ kind: "found", secret }), deps);

function modelAt(
  choice: ModelChoice,
  endpoint: Endpoint,
  credentialOf: () => Promise<Credential>,
  { timeoutMs, fetch: post = fetch }: Pick<ModelDeps, "timeoutMs" | "fetch">,
): Model {
  let takesTemperature = true;

  /** Throws only if the signal aborts it. */
  async function attemptAll(request: CompletionRequest, signal: AbortSignal): Promise<Completion> {
    const deadline = performance.now() + timeoutMs;
    signal.throwIfAborted();
    // The search itself is not aborted: a renewed login must be saved.
    const credential = await beforeDeadline(signal, credentialOf(), null);
    signal.throwIfAborted();
    assert(credential !== null, "only the signal comes before it");
    if (credential.kind === "refused") return credential;
    const target: Target = { choice, endpoint, post: guardedFetch(post), secret: credential.secret, signal };
    let retries = 0;
    for (;;) {
      const temperature = takesTemperature ? request.temperature : null;
      const outcome = await attempt(target, { ...request, temperature });
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

  return {
    provider: choice.provider,
    name: choice.model,
    async complete(request) {
      const timeout = AbortSignal.timeout(timeoutMs);
      const signal = request.signal === undefined ? timeout : AbortSignal.any([request.signal, timeout]);
      try {
        return await attemptAll(request, signal);
      } catch (error) {
        if (request.signal?.aborted) return refused(choice, "cancelled", "");
        if (timeout.aborted) return refused(choice, "timeout", `waited ${timeoutMs / 1000} s`);
        throw error;
      }
    },
  };
}

/** The address and API of a model, and where its credential may be. */
async function findWay(choice: ModelChoice, { stateDir, env }: Pick<ModelDeps, "stateDir" | "env">) {
  const config = await readOpenclawConfig(stateDir, env);
  const providers = await readCustomProviders(stateDir, config);
  const endpoint = endpointOf(choice, providers);
  const custom = providers.get(choice.provider);
  return { endpoint, credentials: { stateDir, env, config, custom, needsKey: endpoint.needsKey } };
}

interface Target {
  readonly choice: ModelChoice;
  readonly endpoint: Endpoint;
  readonly post: typeof fetch;
  readonly secret: string | null;
  readonly signal: AbortSignal;
}

/** `temperature` is null for a model that does not accept one. */
type ModelRequest = Omit<CompletionRequest, "temperature"> & { readonly temperature: number | null };
type Outcome = Extract<Completion, { kind: "text" }> | (Refused & { readonly trouble?: Trouble });

async function attempt(target: Target, request: ModelRequest): Promise<Outcome> {
  try {
    return await generate(target, request);
  } catch (error) {
    const { secret } = target;
    target.signal.throwIfAborted();
    const { APICallError } = await import("ai");
    const own = causesOf(error).find((cause) => cause instanceof LcmError);
    if (own !== undefined) return refused(target.choice, "rejected", scrub(own.message, [secret]));
    // A request that the SDK could not even send is wrong.
    if (!APICallError.isInstance(error)) return refused(target.choice, "rejected", scrub(String(error), [secret]));
    const trouble = troubleOf(failureOf(error), Date.now());
    return { ...refused(target.choice, trouble.refusal, scrub(trouble.detail, [secret])), trouble };
  }
}

async function generate(target: Target, request: ModelRequest): Promise<Outcome> {
  const { generateText } = await import("ai");
  // The SDK would print to the terminal that it ignored a setting.
  globalThis.AI_SDK_LOG_WARNINGS ??= false;
  const result = await generateText({
    model: await languageModel(target),
    instructions: request.system,
    ...(await sdkInputOf(request)),
    maxOutputTokens: request.maxOutputTokens,
    ...(request.temperature === null ? {} : { temperature: request.temperature }),
    maxRetries: 0,
    abortSignal: target.signal,
    ...(target.endpoint.api === "openai-responses" ? { providerOptions: { openai: { store: false } } } : {}),
  });
  if (result.finishReason === "content-filter") return refused(target.choice, "filtered", "");
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

const sentences: Readonly<Partial<Record<Refusal, string>>> = {
  auth: "rejected the credential",
  rate_limit: "reported a rate limit",
  overloaded: "is overloaded or failing",
  unreachable: "cannot be reached",
  timeout: "did not answer in time",
  cancelled: "was cancelled",
  too_long: "does not accept a prompt of this length",
  filtered: "refused to process this text",
  rejected: "rejected the request",
};

function refused({ provider, model }: ModelChoice, refusal: Refusal, detail: string): Refused {
  const sentence =
    refusal === "unknown_model"
      ? `${provider} has no model "${model}"`
      : `${provider}/${model} ${sentences[refusal] ?? refusal}`;
  return { kind: "refused", refusal, message: `${sentence}${detail === "" ? "" : `: ${detail}`}` };
}

/** Passes everything explicitly, because the SDK reads the environment for what is missing. */
async function languageModel({ choice, endpoint, post: fetch, secret }: Target): Promise<LanguageModel> {
  const { provider, model } = choice;
  const { baseUrl: baseURL } = endpoint;
  const apiKey = secret ?? "none";
  switch (endpoint.api) {
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

/** The first code in the chain of causes. */
const networkCodeOf = (cause: unknown): string | null =>
  causesOf(cause).flatMap((at) => ("code" in at && typeof at.code === "string" ? at.code : []))[0] ?? null;

/** An error and what caused it, outermost first. */
function causesOf(error: unknown): readonly Error[] {
  const causes: Error[] = [];
  for (let at = error; at instanceof Error && !causes.includes(at); at = at.cause) causes.push(at);
  return causes;
}
