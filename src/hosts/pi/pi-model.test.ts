/** Pi's model behind our port: which model is asked, and what its answers and failures become. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HostMessage } from "../../core/messages/codec.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import type { CompletionRequest } from "../../core/model/store.ts";
import type { PiContext, PiModel } from "./pi-api.ts";
import { createPiModel } from "./pi-model.ts";

const request: CompletionRequest = {
  purpose: "leaf",
  conversation: null,
  system: "You summarise.",
  prompt: "this",
  temperature: 0.2,
  maxOutputTokens: 900,
};
const own: PiModel = { provider: "acme", id: "large", contextWindow: 100_000 };
const other: PiModel = { provider: "acme", id: "family/small", contextWindow: 100_000 };

function ask(answer: () => HostMessage | Promise<HostMessage>, config = {}, model: PiModel | undefined = own) {
  const asked: unknown[] = [];
  const find = (provider: string, id: string) =>
    [own, other].find((each) => each.provider === provider && each.id === id);
  const complete = async (...given: readonly unknown[]): Promise<HostMessage> => {
    asked.push(...given);
    return await answer();
  };
  const context = { model, modelRegistry: { find, complete } } as unknown as PiContext;
  return { asked, port: createPiModel(context, resolveSettings({ env: {}, config }).values) };
}

const said: HostMessage = {
  role: "assistant",
  content: [
    { type: "thinking", thinking: "hm" },
    { type: "text", text: "It is so." },
  ],
  stopReason: "stop",
  usage: { input: 5, cacheRead: 2, cacheWrite: 1, output: 3 },
};

describe("Pi's model", () => {
  it("gets system prompt and prompt, and its text and counts come back", async () => {
    const { asked, port } = ask(() => said);
    assert.deepEqual(await port?.complete(request), {
      kind: "text",
      text: "It is so.",
      finish: "stop",
      inputTokens: 8,
      outputTokens: 3,
    });
    const [model, { systemPrompt, messages }, { maxTokens }] = asked as [PiModel, never, never];
    assert.deepEqual([model, systemPrompt, maxTokens], [own, "You summarise.", 900]);
    assert.equal((messages as HostMessage[])[0]?.["content"], "this");
  });

  it("is the session's, or the one that the settings name, if Pi has it", () => {
    const named = (config: object) => ask(() => said, config).port?.name;
    assert.equal(named({}), "large");
    assert.equal(named({ summaryModel: "acme/family/small" }), "family/small");
    assert.equal(named({ summaryModel: "large", summaryProvider: "acme" }), "large");
    assert.equal(named({ summaryModel: "unknown/one" }), "large");
    assert.equal(createPiModel(null, resolveSettings({ env: {}, config: {} }).values), null);
  });

  it("refuses, and never throws, when its provider fails or the caller gives up", async () => {
    const failed = ask(() => ({ role: "assistant", content: [], stopReason: "error", errorMessage: "500" })).port;
    assert.deepEqual(await failed?.complete(request), { kind: "refused", refusal: "unreachable", message: "500" });
    const thrown = await ask(() => Promise.reject(new Error("no key"))).port?.complete(request);
    assert.deepEqual(thrown, { kind: "refused", refusal: "unreachable", message: "no key" });
    const signal = AbortSignal.abort();
    const ended = await ask(() => Promise.reject(new Error("aborted"))).port?.complete({ ...request, signal });
    assert.equal(ended?.kind === "refused" && ended.refusal, "cancelled");
    const cut = await ask(() => ({ ...said, stopReason: "length" })).port?.complete(request);
    assert.equal(cut?.kind === "text" && cut.finish, "length");
  });
});
