/** The host's model behind our port: requests, and how failures are classified. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Refusal } from "../../core/model/types.ts";
import type { CompletionRequest } from "../../core/model/store.ts";
import type { LlmAnswer, LlmRequest } from "./host-api.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import { createHostModel } from "./host-model.ts";

const request: CompletionRequest = {
  purpose: "leaf",
  conversation: null,
  system: "You sum up.",
  prompt: "Sum this up.",
  maxOutputTokens: 300,
  temperature: 0.2,
};

const failure = (fields: Readonly<Record<string, unknown>>): Error => Object.assign(new Error("it failed"), fields);

function createWorld(
  answer: (asked: LlmRequest) => Promise<LlmAnswer>,
  settings: { readonly summaryModel?: string; readonly summaryProvider?: string; readonly seconds?: number } = {},
) {
  const asked: LlmRequest[] = [];
  const said: string[] = [];
  const llm = {
    async complete(each: LlmRequest): Promise<LlmAnswer> {
      asked.push(each);
      return await answer(each);
    },
  };
  const values = {
    ...resolveSettings({ env: {}, config: {} }).values,
    summaryModel: settings.summaryModel ?? null,
    summaryProvider: settings.summaryProvider ?? null,
    summaryTimeoutSeconds: settings.seconds ?? 60,
  };
  const runtime = { settings: { values }, warnOnce: (message: string) => void said.push(message) };
  const model = createHostModel(llm, runtime, { model: { provider: "anthropic", resolved: "claude" } });
  return { model, asked, said };
}

const good = async (): Promise<LlmAnswer> =>
  await Promise.resolve({
    text: "a summary",
    stopReason: "stop",
    usage: { inputTokens: 10, outputTokens: 5, cacheReadTokens: 100, cacheWriteTokens: 1_000 },
  });

describe("the host's model", () => {
  it("is asked for text, without choosing a model", async () => {
    const { model, asked } = createWorld(good);
    assert.deepEqual([model.provider, model.name], ["anthropic", "claude"]);
    await model.complete(request);
    const [{ signal, ...sent }] = asked as [LlmRequest];
    assert.ok(signal instanceof AbortSignal);
    assert.deepEqual(sent, {
      messages: [{ role: "user", content: "Sum this up." }],
      systemPrompt: "You sum up.",
      maxTokens: 300,
      temperature: 0.2,
      purpose: "lossless-claw.leaf",
    });
  });

  it("counts the provider's tokens, cached ones included", async () => {
    assert.deepEqual(await createWorld(good).model.complete(request), {
      kind: "text",
      text: "a summary",
      finish: "stop",
      inputTokens: 1_110,
      outputTokens: 5,
    });
  });

  it("reports a cut-off answer, and accepts one without counts", async () => {
    const { model } = createWorld(async () => await Promise.resolve({ text: "half of", stopReason: "length" }));
    assert.deepEqual(await model.complete(request), {
      kind: "text",
      text: "half of",
      finish: "length",
      inputTokens: 0,
      outputTokens: 0,
    });
  });
});

describe("a configured summary model", () => {
  const forbidden = failure({ code: "LLM_COMPLETION_NOT_AUTHORIZED" });

  it("is requested by its full name", async () => {
    const { model, asked } = createWorld(good, { summaryModel: "haiku", summaryProvider: "anthropic" });
    await model.complete(request);
    assert.equal(asked[0]?.model, "anthropic/haiku");
    const named = createWorld(good, { summaryModel: "openai/mini", summaryProvider: "anthropic" });
    await named.model.complete(request);
    assert.equal(named.asked[0]?.model, "openai/mini");
    assert.equal(named.model.name, "openai/mini");
  });

  it("is replaced by the host's own, with a warning, if the host does not allow it", async () => {
    const { model, asked, said } = createWorld(
      async ({ model: wished }) => (wished === undefined ? await good() : await Promise.reject(forbidden)),
      { summaryModel: "haiku" },
    );
    for (let call = 0; call < 3; call++) assert.equal((await model.complete(request)).kind, "text");
    assert.equal(asked.at(-1)?.model, undefined);
    assert.equal(new Set(said).size, 1, "always in the same words, which the runtime says once");
    assert.match(said[0] ?? "", /haiku.*allowModelOverride/);
  });

  it("is not replaced if it only fails", async () => {
    const { model, asked, said } = createWorld(async () => await Promise.reject(failure({ status: 529 })), {
      summaryModel: "haiku",
    });
    const answer = await model.complete(request);
    assert.equal(answer.kind === "refused" && answer.refusal, "overloaded");
    assert.deepEqual([asked.length, said.length], [1, 0]);
  });
});

describe("guarantee 21: a failure of the host's model is classified by its status, not its text", () => {
  const cases: readonly [string, unknown, Refusal][] = [
    ["401", failure({ status: 401 }), "auth"],
    ["403", failure({ statusCode: 403 }), "auth"],
    ["408", failure({ status: 408 }), "timeout"],
    ["413", failure({ status: 413 }), "too_long"],
    ["429", failure({ status: 429 }), "rate_limit"],
    ["500", failure({ status: 500 }), "overloaded"],
    ["529", failure({ status: 529 }), "overloaded"],
    ["400", failure({ status: 400 }), "rejected"],
    ["a reason of the host's", failure({ reason: "billing", status: 402 }), "auth"],
    ["a context that is too long", failure({ reason: "context_overflow" }), "too_long"],
    ["a model that does not exist", failure({ reason: "model_not_found", status: 404 }), "unknown_model"],
    ["a cause within", new Error("outside", { cause: failure({ status: 429 }) }), "rate_limit"],
    ["what the host does not allow", failure({ code: "LLM_COMPLETION_NOT_AUTHORIZED" }), "rejected"],
    ["words alone", new Error("401 unauthorized, rate limit, timeout, context too long"), "unreachable"],
    ["no error at all", "429", "unreachable"],
    ["nothing at all", undefined, "unreachable"],
    ["a time-out of somebody's", failure({ name: "TimeoutError" }), "timeout"],
  ];
  for (const [name, error, refusal] of cases) {
    it(`${name}: ${refusal}`, async () => {
      // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- a host may throw anything
      const { model } = createWorld(async () => await Promise.reject(error));
      const answer = await model.complete(request);
      assert.equal(answer.kind === "refused" && answer.refusal, refusal);
    });
  }

  for (const [stopReason, refusal] of [
    ["error", "unreachable"],
    ["aborted", "timeout"],
  ] as const) {
    it(`an answer of the host that ended with "${stopReason}": ${refusal}`, async () => {
      const { model } = createWorld(async () => await Promise.resolve({ text: "", stopReason }));
      const answer = await model.complete(request);
      assert.equal(answer.kind === "refused" && answer.refusal, refusal);
      const withdrawn = await model.complete({ ...request, signal: AbortSignal.abort() });
      assert.equal(withdrawn.kind === "refused" && withdrawn.refusal, "cancelled");
    });
  }

  it("an error with circular causes: unreachable", async () => {
    const round: Error & { cause?: unknown } = new Error("round");
    round.cause = round;
    const answer = await createWorld(async () => await Promise.reject(round)).model.complete(request);
    assert.equal(answer.kind === "refused" && answer.refusal, "unreachable");
  });

  /** Ends with its signal, like the host's. */
  const untilAborted = async ({ signal }: LlmRequest): Promise<LlmAnswer> =>
    await new Promise((_, reject) => {
      const end = (): void => reject(signal?.reason instanceof Error ? signal.reason : new Error("aborted"));
      if (signal?.aborted === true) end();
      else signal?.addEventListener("abort", end);
    });

  it("the caller has cancelled: cancelled", async () => {
    const stop = new AbortController();
    const answering = createWorld(untilAborted).model.complete({ ...request, signal: stop.signal });
    stop.abort();
    const answer = await answering;
    assert.equal(answer.kind === "refused" && answer.refusal, "cancelled");
  });

  it("one call took too long: timeout", async () => {
    // A timer behind a signal does not keep the process alive.
    const alive = setInterval(() => undefined, 1_000);
    const { model } = createWorld(untilAborted, { seconds: 0.02 });
    for (const signal of [undefined, new AbortController().signal]) {
      const answer = await model.complete(signal === undefined ? request : { ...request, signal });
      assert.equal(answer.kind === "refused" && answer.refusal, "timeout");
    }
    clearInterval(alive);
  });
});
