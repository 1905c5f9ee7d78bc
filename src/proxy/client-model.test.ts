import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { clientModelOf } from "./client-model.ts";
import { urlUp } from "./forward.ts";
import { anthropic } from "./wires/anthropic.ts";
import { chat } from "./wires/chat.ts";
import { responses } from "./wires/responses.ts";

describe("the agent's own model", () => {
  const rest = { model: "m-1" };
  const messages = new URL("https://api.anthropic.com/v1/messages?beta=true");
  const completions = new URL("http://127.0.0.1:9/api/v1/chat/completions");

  it("is the one that it asks, at the same address, with its API key", () => {
    assert.deepEqual(
      clientModelOf({ wire: anthropic, url: messages, headers: { "x-api-key": "sk-ant-api03-abc" }, rest }),
      {
        api: "anthropic",
        provider: "anthropic",
        model: "m-1",
        baseUrl: "https://api.anthropic.com/v1",
        key: "sk-ant-api03-abc",
      },
    );
    const headers = { authorization: "Bearer sk-or-v1-abc" };
    const other = clientModelOf({ wire: chat, url: completions, headers, rest });
    assert.deepEqual([other?.provider, other?.baseUrl], ["127.0.0.1", "http://127.0.0.1:9/api/v1"]);
    const url = new URL("https://api.openai.com/v1/responses");
    const own = clientModelOf({ wire: responses, url, headers: { authorization: "Bearer sk-proj-1234" }, rest });
    assert.deepEqual([own?.provider, own?.baseUrl], ["openai", "https://api.openai.com/v1"]);
  });

  it("is at no other host, whatever the path", () => {
    const headers = { "x-api-key": "sk-ant-api03-abc" };
    for (const path of ["//evil.example/v1/messages", "@evil.example/v1/messages", "/\\\\evil.example/v1/messages"]) {
      const url = urlUp({ upstream: new URL("https://api.anthropic.com"), path });
      assert.equal(url.hostname, "api.anthropic.com", path);
      const own = clientModelOf({ wire: anthropic, url, headers, rest });
      assert.match(own?.baseUrl ?? "", /^https:\/\/api\.anthropic\.com\//, path);
    }
  });

  it("is not used with a subscription, or with anything that is not known to be an API key", () => {
    for (const token of ["sk-ant-oat01-abc", "sk-ant-ort01-abc", "eyJhbGciOi.J9.x", "gho_abcdef", "token", "", "sk-"]) {
      const bearer = { authorization: `Bearer ${token}` };
      assert.equal(clientModelOf({ wire: chat, url: completions, headers: bearer, rest }), null, token);
      const headers = { "x-api-key": token };
      assert.equal(clientModelOf({ wire: anthropic, url: messages, headers, rest }), null, token);
    }
    const headers = { authorization: "Bearer sk-ant-api03-abc" };
    assert.equal(clientModelOf({ wire: anthropic, url: messages, headers, rest }), null);
    assert.equal(clientModelOf({ wire: chat, url: completions, headers, rest: {} }), null);
  });
});
