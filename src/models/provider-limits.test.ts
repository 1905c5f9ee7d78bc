import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { estimateTokens } from "../core/base/tokens.ts";
import { makeScratch } from "../../test/support/scratch.ts";
import { checkModel, createModel } from "./provider-model.ts";
import type { ModelDeps } from "./provider-model.ts";
import {
  request,
  question,
  expandArgs,
  describeArgs,
  lookup,
  formats,
  good,
  start,
  answered,
  stepOf,
  urlOf,
  refusalOf,
  messageOf,
} from "../../test/support/provider-model-ground.ts";

describe("a model behind a provider", { concurrency: 4 }, () => {
  const ollama = formats[5]!;
  const anthropic = formats[0]!;

  it("omits the temperature from then on once the provider has rejected it", async () => {
    const { server, model } = await start(ollama);
    server.play({ kind: "error", status: 400, error: { param: "temperature" } }, good);
    assert.equal((await model.complete(request)).kind, "text");
    assert.equal((await model.complete(request)).kind, "text");
    assert.deepEqual(
      server.asked.map(({ body }) => body["temperature"]),
      [0.2, undefined, undefined],
    );
  });

  it("omits it for all concurrent requests", async () => {
    const { server, model } = await start(ollama);
    const rejected = { kind: "error", status: 400, error: { param: "temperature" }, afterAsked: 2 } as const;
    server.play(rejected, rejected, good);
    const completions = await Promise.all([model.complete(request), model.complete(request)]);
    assert.deepEqual(completions.map(refusalOf), ["answered: The kiln is booked.", "answered: The kiln is booked."]);
  });

  it("does not retry because a message merely mentions a temperature", async () => {
    const { server, model } = await start(ollama);
    server.play({ kind: "error", status: 400, error: { message: "temperature is not supported" } }, good);
    assert.equal(refusalOf(await model.complete(request)), "rejected");
    assert.equal(server.asked.length, 1);
  });

  it("estimates the cost of an answer if the provider does not report it", async () => {
    const { server, model } = await start(ollama);
    server.play({ kind: "answer", text: "The kiln is booked.", usage: false });
    assert.partialDeepStrictEqual(await model.complete(request), {
      inputTokens: estimateTokens(request.system) + estimateTokens(request.prompt),
      outputTokens: estimateTokens("The kiln is booked."),
    });
  });

  it("estimates the cost of a step with everything before it", async () => {
    const { server, model } = await start(ollama);
    server.play({ ...lookup, usage: false }, { ...good, usage: false });
    const first = await answered(model, question);
    const second = await answered(model, { ...question, steps: [stepOf(first)] });
    const results = estimateTokens("It is booked for 9.") + estimateTokens("There is no msg_42.");
    assert.ok(first.outputTokens > estimateTokens(lookup.text));
    assert.equal(second.inputTokens, first.inputTokens + first.outputTokens + results);
  });

  for (const format of formats.filter(({ name }) => /OpenAI|Ollama/.test(name))) {
    it(`returns malformed calls as the model wrote them, and makes no further call: ${format.name}`, async () => {
      const { server, model } = await start(format);
      const calls = [
        { id: "call_1", name: "lcm_expand", args: '{"summaryIds": [' },
        { id: "call_2", name: "rm_rf", args: '{"path":"/"}' },
        { id: "call_3", name: "lcm_describe", args: "" },
        { id: "call_4", name: "lcm_describe", args: '{"id":7}' },
      ];
      server.play({ kind: "answer", text: "", calls }, good);
      const first = await answered(model, question);
      assert.deepEqual(
        first.calls?.map(({ args }) => args),
        ['{"summaryIds": [', { path: "/" }, {}, { id: 7 }],
      );
      assert.equal(server.asked.length, 1);
      const step = stepOf(first);
      const completion = await answered(model, { ...question, steps: [step] });
      assert.equal(completion.text, good.text);
      const sent = JSON.stringify(server.asked[1]?.body[format.turnsAt]);
      for (const { id } of calls) assert.equal(sent.split(`"${id}"`).length, 3, `${id} is a call and a result`);
    });
  }

  it("sends OpenAI's encrypted reasoning back, because nothing is stored there", async () => {
    const { server, model } = await start({ ...formats[1]!, model: "gpt-5" });
    server.play(lookup, good);
    const first = await answered(model, question);
    await answered(model, { ...question, steps: [stepOf(first)] });
    const [asked, next] = server.asked;
    assert.deepEqual(asked?.body["include"], ["reasoning.encrypted_content"]);
    assert.partialDeepStrictEqual(next?.body["input"], [
      { type: "reasoning", summary: [{ type: "summary_text", text: lookup.reasoning }], encrypted_content: "sealed" },
      { type: "function_call", call_id: "call_1" },
    ]);
    assert.doesNotMatch(JSON.stringify(next?.body), /item_reference|fc_call|msg_1"/);
  });

  it("splits the calls that OpenAI's models wrap into one, and answers each", async () => {
    const { server, model } = await start(formats[1]!);
    const uses = [
      { recipient_name: "functions.lcm_expand", parameters: expandArgs },
      { recipient_name: "functions.lcm_describe", parameters: describeArgs },
    ];
    const wrapped = { id: "call_1", name: "parallel", args: JSON.stringify({ tool_uses: uses }) };
    server.play({ kind: "answer", text: "", calls: [wrapped] }, good);
    const first = await answered(model, question);
    assert.deepEqual(
      first.calls?.map(({ name, args }) => [name, args]),
      [
        ["lcm_expand", expandArgs],
        ["lcm_describe", describeArgs],
      ],
    );
    await answered(model, { ...question, steps: [stepOf(first)] });
    assert.partialDeepStrictEqual(server.asked[1]?.body["input"], [
      { type: "function_call", call_id: first.calls?.[0]?.id },
      { type: "function_call", call_id: first.calls?.[1]?.id },
      { type: "function_call_output", call_id: first.calls?.[0]?.id },
      { type: "function_call_output", call_id: first.calls?.[1]?.id },
    ]);
  });

  it("guarantee 21: an address without a server is `unreachable`, after three tries", async () => {
    const { server, model, attempts } = await start(ollama);
    await server.close();
    assert.equal(refusalOf(await model.complete(request)), "unreachable");
    assert.equal(attempts(), 3);
  });

  it("guarantee 21: an incomplete answer is `unreachable`, and a web page is `overloaded`", async () => {
    const { server, model } = await start(ollama, { timeoutMs: 30_000 });
    server.play({ kind: "cut" });
    assert.equal(refusalOf(await model.complete(request)), "unreachable");
    server.play({ kind: "body", status: 200, body: "<html>Please log in to the network</html>" });
    assert.equal(refusalOf(await model.complete(request)), "overloaded");
  });

  it("one timeout covers all attempts and the waits between them", async () => {
    const { server, model } = await start(ollama, { timeoutMs: 4_000 });
    server.play({ kind: "error", status: 503, headers: { "retry-after-ms": "150" } }, { kind: "hang" });
    assert.equal(refusalOf(await model.complete(request)), "timeout");
    assert.equal(server.asked.length, 2);
  });

  it("makes no call if the caller has aborted before, or aborts while it waits", async () => {
    const { server, model } = await start(ollama, { timeoutMs: 10_000 });
    assert.equal(refusalOf(await model.complete({ ...request, signal: AbortSignal.abort() })), "cancelled");
    assert.equal(server.asked.length, 0);
    server.play({ kind: "error", status: 503, headers: { "retry-after": "8" } });
    const caller = new AbortController();
    const answer = model.complete({ ...request, signal: caller.signal }).then(refusalOf);
    while (server.asked.length === 0) await sleep(5);
    caller.abort();
    assert.equal(await Promise.race([answer, sleep(6_000, "waited to the end", { ref: false })]), "cancelled");
    assert.equal(server.asked.length, 1);
  });

  it("sends an Anthropic login as a bearer token with its header, and a key as a key", async () => {
    const { server, model } = await start({ ...anthropic, env: { ANTHROPIC_OAUTH_TOKEN: "sk-ant-oat01-abc" } });
    server.play(good);
    assert.equal((await model.complete(request)).kind, "text");
    const headers = server.asked[0]?.headers;
    assert.equal(headers?.authorization, "Bearer sk-ant-oat01-abc");
    assert.equal(headers?.["x-api-key"], undefined);
    assert.match(String(headers?.["anthropic-beta"]), /oauth-2025-04-20/);
  });

  it("guarantee 21: without a credential it reports which variable to set, every time, and makes no call", async () => {
    const asked: string[] = [];
    const model = await createModel(
      { provider: "anthropic", model: "claude-sonnet-4-5", baseUrl: null },
      {
        stateDir: makeScratch("no-credential"),
        env: {},
        timeoutMs: 30_000,
        fetch: (input) => Promise.reject(new Error(String(asked.push(urlOf(input))))),
      },
    );
    for (const refused of [await model.check?.(), await model.complete(request), await model.check?.()]) {
      assert.ok(refused?.kind === "refused" && refused.refusal === "no_credential");
      assert.match(refused.message, /^there is no credential for anthropic: set ANTHROPIC_API_KEY/);
    }
    assert.deepEqual(asked, []);
  });

  it("works as soon as the credential exists, without being recreated", async () => {
    const stateDir = makeScratch("late-credential");
    const sent: string[] = [];
    const model = await createModel(
      { provider: "anthropic", model: "claude-sonnet-4-5", baseUrl: null },
      {
        stateDir,
        env: {},
        timeoutMs: 30_000,
        fetch: (input, init) => {
          sent.push(new Headers(init?.headers).get("x-api-key") ?? urlOf(input));
          return Promise.resolve(Response.json({}, { status: 401 }));
        },
      },
    );
    assert.equal((await model.check?.())?.refusal, "no_credential");
    const key = { type: "api_key", provider: "anthropic", key: "sk-ant-api03-abc" };
    writeFileSync(join(stateDir, "auth-profiles.json"), JSON.stringify({ profiles: { "anthropic:me": key } }));
    assert.equal(await model.check?.(), null);
    assert.equal(refusalOf(await model.complete(request)), "auth", "a key that is refused is another matter");
    assert.deepEqual(sent, [key.key]);
  });

  it("guarantee 21: an unknown model is reported with its provider", async () => {
    const { server, model } = await start(ollama);
    server.play({ kind: "error", status: 404 });
    const completion = await model.complete(request);
    assert.equal(refusalOf(completion), "unknown_model");
    assert.match(messageOf(completion), /^ollama has no model "qwen3:8b": HTTP 404/);
  });

  it("reveals no secret, whatever the provider repeats in its message", async () => {
    const { server, model } = await start(anthropic);
    const message = "Incorrect key sk-ant-api03-abc, you sent Bearer shibboleth and sk-pro***xyz";
    server.play({ kind: "error", status: 401, error: { message } });
    const said = messageOf(await model.complete(request));
    assert.match(said, /^anthropic\/claude-sonnet-4-5 rejected the credential: HTTP 401, Incorrect key \*\*\*/);
    assert.doesNotMatch(said, /abc|shibboleth|xyz/);
  });

  it("reveals no secret if the request cannot be sent", async () => {
    const { model } = await start({ ...anthropic, env: { ANTHROPIC_API_KEY: "shib\nboleth" } });
    const completion = await model.complete(request);
    assert.equal(refusalOf(completion), "rejected");
    assert.doesNotMatch(messageOf(completion), /shib|boleth/);
  });
});

describe("the check of a model", () => {
  const check = async (provider: string, env: ModelDeps["env"] = {}, profiles: object = {}): Promise<string | null> => {
    const stateDir = makeScratch("check");
    writeFileSync(join(stateDir, "auth-profiles.json"), JSON.stringify({ profiles }));
    return await checkModel({ provider, model: "m", baseUrl: null }, { stateDir, env });
  };

  it("finds no problem if there is a key, or none is needed", async () => {
    assert.equal(await check("anthropic", { ANTHROPIC_API_KEY: "sk-ant-api03-abc" }), null);
    assert.equal(await check("openai", {}, { "openai:me": { type: "api_key", provider: "openai", key: "k" } }), null);
    assert.equal(await check("ollama"), null);
  });

  it("accepts a login that can be renewed, without renewing it, and rejects one that cannot", async () => {
    const login = { type: "oauth", provider: "anthropic", access: "a", refresh: "r", expires: 1, clientId: "c" };
    assert.match((await check("anthropic", {}, { "anthropic:me": login })) ?? "", /anthropic:me.*log in again/);
    const stateDir = makeScratch("check-login");
    const folder = join(stateDir, "agents", "main", "agent");
    mkdirSync(folder, { recursive: true });
    const text = JSON.stringify({ version: 1, profiles: { "anthropic:me": login } });
    writeFileSync(join(folder, "auth-profiles.json"), text);
    assert.equal(await checkModel({ provider: "anthropic", model: "m", baseUrl: null }, { stateDir, env: {} }), null);
    assert.equal(readFileSync(join(folder, "auth-profiles.json"), "utf8"), text);
  });

  it("names the provider's variable to set", async () => {
    assert.equal(
      await check("google"),
      "there is no credential for google: set GEMINI_API_KEY, or log in with openclaw",
    );
    assert.match((await check("openrouter")) ?? "", /OPENROUTER_API_KEY/);
  });

  it("reports an unknown provider", async () => {
    assert.equal(await check("foo"), 'unknown provider "foo", and no base URL is set');
  });
});
