import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { chooseModel, endpointOf } from "./choose-model.ts";
import type { ModelFlags } from "./choose-model.ts";
import type { CustomProvider } from "./openclaw-files.ts";

const unset = { summaryModel: null, summaryProvider: null, summaryBaseUrl: null };
const openclawConfig = { agents: { defaults: { model: { primary: "anthropic/claude-sonnet-4-5" } } } };

describe("the chosen model", () => {
  it("comes from the flag, else the settings, else OpenClaw's config", () => {
    const settings = { ...unset, summaryModel: "openai/gpt-4.1" };
    const choose = chooseModel;
    assert.equal(
      choose({ flags: { model: "google/gemini-2.5-pro" }, settings, openclawConfig })?.model,
      "gemini-2.5-pro",
    );
    assert.equal(choose({ settings, openclawConfig })?.model, "gpt-4.1");
    assert.equal(choose({ settings: unset, openclawConfig })?.model, "claude-sonnet-4-5");
  });

  it("is null if none is configured", () => {
    assert.equal(chooseModel({ settings: unset, openclawConfig: null }), null);
    assert.equal(chooseModel({ settings: unset, openclawConfig: { agents: { defaults: { model: "opus" } } } }), null);
  });

  it("is found in every form that OpenClaw's config has had", () => {
    const model = "anthropic/claude-opus-4-5";
    const forms = [
      { agents: { defaults: { model: { primary: model } } } },
      { agents: { defaults: { model } } },
      { agent: { model } },
    ];
    for (const form of forms) {
      const choice = { provider: "anthropic", model: "claude-opus-4-5", baseUrl: null };
      assert.deepEqual(chooseModel({ settings: unset, openclawConfig: form }), choice);
    }
  });

  it("has the configured provider, else that of its name, else OpenClaw's", () => {
    const chosen = (summaryModel: string, summaryProvider: string | null): string => {
      const choice = chooseModel({ settings: { ...unset, summaryModel, summaryProvider }, openclawConfig });
      return `${choice?.provider} · ${choice?.model}`;
    };
    assert.equal(chosen("meta-llama/llama-4", "openrouter"), "openrouter · meta-llama/llama-4");
    assert.equal(chosen("openrouter/meta-llama/llama-4", "openrouter"), "openrouter · meta-llama/llama-4");
    assert.equal(chosen("openrouter/meta-llama/llama-4", null), "openrouter · meta-llama/llama-4");
    assert.equal(chosen("claude-haiku-4-5", null), "anthropic · claude-haiku-4-5");
    assert.equal(chosen("gemini/gemini-2.5-pro", null), "google · gemini-2.5-pro");
  });

  it("has the provider that its name tells, unless the host's is a custom one", () => {
    const chosen = (model: string, host: string | null): string | undefined => {
      const config = host === null ? null : { agents: { defaults: { model: `${host}/m` } } };
      return chooseModel({ flags: { model }, settings: unset, openclawConfig: config })?.provider;
    };
    const told = [
      ["claude-sonnet-4-20250514", "anthropic"],
      ["gpt-4.1-mini", "openai"],
      ["o3-mini", "openai"],
      ["gemini-2.5-pro", "google"],
    ] as const;
    for (const [model, provider] of told) {
      for (const host of [null, "anthropic", "openai", "google", "openrouter", "ollama"])
        assert.equal(chosen(model, host), provider, model);
      assert.equal(chosen(model, "acme"), "acme", model);
    }
    assert.equal(chosen("gpt-oss:20b", "ollama"), "ollama");
    for (const model of ["gpt-oss:20b", "llama4", "claude", "omni"])
      assert.throws(() => chosen(model, null), { code: "invalid", hint: /provider\/model/ });
  });

  it("does not send the key of one provider to the address of another", () => {
    const settings = { ...unset, summaryModel: "ollama/qwen3", summaryBaseUrl: "http://127.0.0.1:11434/v1" };
    const chosen = (model: string): string | null | undefined =>
      chooseModel({ flags: { model }, settings, openclawConfig })?.baseUrl;
    assert.equal(chosen("ollama/llama4"), settings.summaryBaseUrl);
    assert.equal(chosen("llama4"), settings.summaryBaseUrl);
    assert.equal(chosen("anthropic/claude-sonnet-4-5"), null);
  });

  it("uses the address and provider of the command line", () => {
    const settings = { ...unset, summaryModel: "ollama/qwen3", summaryBaseUrl: "http://127.0.0.1:11434/v1" };
    const chosen = (flags: ModelFlags): string => {
      const choice = chooseModel({ flags, settings, openclawConfig });
      return `${choice?.provider} · ${choice?.model} · ${choice?.baseUrl}`;
    };
    const elsewhere = "https://example.com/v1";
    assert.equal(chosen({ baseUrl: elsewhere }), `ollama · qwen3 · ${elsewhere}`);
    assert.equal(chosen({ provider: "ollama" }), "ollama · qwen3 · http://127.0.0.1:11434/v1");
    assert.equal(
      chosen({ provider: "OpenRouter", model: "meta-llama/llama-4" }),
      "openrouter · meta-llama/llama-4 · null",
    );
    assert.equal(chosen({ provider: "gemini", model: "x", baseUrl: elsewhere }), `google · x · ${elsewhere}`);
    assert.throws(() => chosen({ provider: "openai" }), { code: "invalid", hint: /--model/ });
  });

  it("is refused if the name is malformed", () => {
    const choose = (model: string, summaryProvider: string | null = null): unknown =>
      chooseModel({ flags: { model }, settings: { ...unset, summaryProvider }, openclawConfig: null });
    for (const flag of ["claude", "/claude", "anthropic/", ""]) {
      assert.throws(() => choose(flag), { code: "invalid", hint: /provider\/model/ });
    }
    const settings = { ...unset, summaryProvider: "openai" };
    assert.throws(() => chooseModel({ settings, openclawConfig }), { code: "invalid", hint: /LCM_SUMMARY_MODEL/ });
  });
});

describe("the endpoint of a model", () => {
  const custom = (provider: Partial<CustomProvider>): ReadonlyMap<string, CustomProvider> =>
    new Map([["acme", { baseUrl: null, api: null, apiKey: null, ...provider }]]);
  const endpoint = (provider: string, baseUrl: string | null = null, described = custom({})): string => {
    const { api, baseUrl: at, needsKey } = endpointOf({ provider, model: "m", baseUrl }, described);
    return `${api} ${at}${needsKey ? "" : " without a key"}`;
  };

  it("is known for the usual providers", () => {
    assert.equal(endpoint("anthropic"), "anthropic-messages https://api.anthropic.com/v1");
    assert.equal(endpoint("openai"), "openai-responses https://api.openai.com/v1");
    assert.equal(endpoint("google"), "google-generative-ai https://generativelanguage.googleapis.com/v1beta");
    assert.equal(endpoint("openrouter"), "openai-completions https://openrouter.ai/api/v1");
    assert.equal(endpoint("ollama"), "openai-completions http://127.0.0.1:11434/v1 without a key");
    assert.equal(endpoint("lmstudio"), "openai-completions http://127.0.0.1:1234/v1 without a key");
  });

  it("is the configured one, and needs a key unless it is local", () => {
    assert.equal(endpoint("openai", "https://gateway.example/v1/"), "openai-completions https://gateway.example/v1");
    assert.equal(endpoint("anthropic", "https://gateway.example"), "anthropic-messages https://gateway.example/v1");
    assert.equal(
      endpoint("ollama", "http://nas.lan:11434"),
      "openai-completions http://nas.lan:11434/v1 without a key",
    );
    for (const host of ["localhost", "127.0.0.2", "[::1]"]) {
      assert.match(endpoint("acme", `http://${host}:8000/v1`), /without a key$/);
    }
    assert.equal(endpoint("acme", "http://127.0.0.1.example/v1"), "openai-completions http://127.0.0.1.example/v1");
  });

  it("comes from OpenClaw's config for a custom provider", () => {
    const described = custom({ baseUrl: "https://acme.example/anthropic", api: "anthropic-messages" });
    assert.equal(endpoint("acme", null, described), "anthropic-messages https://acme.example/anthropic/v1");
    assert.equal(endpoint("acme", "https://other.example", described), "anthropic-messages https://other.example/v1");
    const native = custom({ baseUrl: "http://nas.lan:11434", api: "ollama" });
    assert.equal(endpoint("acme", null, native), "openai-completions http://nas.lan:11434/v1");
  });

  it("is refused, with a list of known ones, if unknown or malformed", () => {
    assert.throws(() => endpoint("nobody"), {
      code: "invalid",
      hint: /anthropic, openai, google.*acme.*models\.providers/,
    });
    assert.throws(() => endpoint("constructor"), { code: "invalid" });
    assert.throws(() => endpoint("acme", "acme.example/v1"), { code: "invalid", hint: /https:/ });
    assert.throws(() => endpoint("acme", "file:///etc/passwd"), { code: "invalid" });
    const described = custom({ baseUrl: "https://acme.example", api: "bedrock-converse-stream" });
    assert.throws(() => endpoint("acme", null, described), { code: "invalid", hint: /openai-completions/ });
  });
});
