/** What goes over the wire, for each format that is spoken, and what is made of every kind of answer. */

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Completion, CompletionRequest, Model, ToolStep } from "../core/model/store.ts";
import { estimateTokens } from "../core/base/tokens.ts";
import { makeScratch } from "../../test/support/scratch.ts";
import { scriptedTokens, startScriptedProvider } from "../../test/support/scripted-provider.ts";
import type { Asked, ScriptedProvider } from "../../test/support/scripted-provider.ts";
import { answerBytesMax } from "./guarded-fetch.ts";
import { checkModel, createModel } from "./provider-model.ts";
import type { ModelDeps } from "./provider-model.ts";

const request: CompletionRequest = {
  purpose: "leaf",
  conversation: null,
  system: "You write up conversations.",
  prompt: "Write up this one: [2026-02-17 15:37 UTC] [user] The kiln is booked.",
  temperature: 0.2,
  maxOutputTokens: 1_800,
};

const [expand, describing] = [
  {
    name: "lcm_expand",
    description: "Walk down.",
    parameters: { type: "object", properties: { summaryIds: { type: "array", items: { type: "string" } } } },
  },
  {
    name: "lcm_describe",
    description: "Look.",
    parameters: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
  },
] as const;
const question: CompletionRequest = { ...request, purpose: "expand", tools: [expand, describing] };
const expandArgs = { summaryIds: ["sum_0123456789abcdef"] };
const describeArgs = { id: "msg_42" };
const lookup = {
  kind: "answer",
  text: "Let me look.",
  reasoning: "Hm, a kiln.",
  calls: [
    { id: "call_1", name: "lcm_expand", args: JSON.stringify(expandArgs) },
    { id: "call_2", name: "lcm_describe", args: JSON.stringify(describeArgs) },
  ],
} as const;

interface Format {
  readonly name: string;
  readonly provider: string;
  readonly model: string;
  /** Where the operator says that the provider is, below the server's address. */
  readonly base: string;
  readonly custom?: object;
  readonly env: Record<string, string>;
  readonly path: string;
  readonly auth: Record<string, string | undefined>;
  /** The body as it should go out, without what is not ours to say. */
  readonly body: (temperature: number | undefined) => object;
  /** What is added to the body when tools are offered, and where turns stand in it. */
  readonly offer: object;
  readonly turnsAt: "messages" | "input" | "contents";
  /** The turns of a step with two calls, and of what came of them. */
  readonly step: readonly object[];
}

const chat = (model: string) => (temperature: number | undefined) => ({
  model,
  messages: [
    { role: "system", content: request.system },
    { role: "user", content: request.prompt },
  ],
  max_tokens: request.maxOutputTokens,
  ...(temperature === undefined ? {} : { temperature }),
});

const chatOffer = {
  tools: [expand, describing].map((offered) => ({ type: "function", function: offered })),
  tool_choice: "auto",
};

const chatStep = (more: { reasoning_content?: string }, second: string) => [
  {
    role: "assistant",
    content: lookup.text,
    ...more,
    tool_calls: lookup.calls.map(({ id, name, args }) => {
      return { id, type: "function", function: { name, arguments: args } };
    }),
  },
  { role: "tool", tool_call_id: "call_1", content: "It is booked for 9." },
  { role: "tool", tool_call_id: "call_2", content: second },
];

const formats: readonly Format[] = [
  {
    name: "Anthropic messages",
    provider: "anthropic",
    model: "claude-sonnet-4-5",
    base: "",
    env: { ANTHROPIC_API_KEY: "sk-ant-api03-abc" },
    path: "/v1/messages",
    auth: { "x-api-key": "sk-ant-api03-abc", authorization: undefined },
    body: (temperature) => ({
      model: "claude-sonnet-4-5",
      max_tokens: request.maxOutputTokens,
      ...(temperature === undefined ? {} : { temperature }),
      system: [{ type: "text", text: request.system }],
      messages: [{ role: "user", content: [{ type: "text", text: request.prompt }] }],
    }),
    offer: {
      tools: [expand, describing].map(({ parameters, ...offered }) => ({ ...offered, input_schema: parameters })),
      tool_choice: { type: "auto" },
    },
    turnsAt: "messages",
    step: [
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: lookup.reasoning, signature: "signed" },
          { type: "text", text: lookup.text },
          { type: "tool_use", id: "call_1", name: "lcm_expand", input: expandArgs },
          { type: "tool_use", id: "call_2", name: "lcm_describe", input: describeArgs },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "call_1", content: "It is booked for 9." },
          { type: "tool_result", tool_use_id: "call_2", content: "There is no msg_42.", is_error: true },
        ],
      },
    ],
  },
  {
    name: "OpenAI responses",
    provider: "described",
    model: "gpt-4.1",
    base: "/v1",
    custom: { api: "openai-responses", apiKey: "${OPENAI_KEY_OF_MINE}" },
    env: { OPENAI_KEY_OF_MINE: "sk-proj-abc" },
    path: "/v1/responses",
    auth: { authorization: "Bearer sk-proj-abc" },
    body: (temperature) => ({
      model: "gpt-4.1",
      input: [
        { role: "system", content: request.system },
        { role: "user", content: [{ type: "input_text", text: request.prompt }] },
      ],
      max_output_tokens: request.maxOutputTokens,
      ...(temperature === undefined ? {} : { temperature }),
      store: false,
    }),
    offer: {
      tools: [expand, describing].map((offered) => ({ type: "function", ...offered, strict: false })),
      tool_choice: "auto",
    },
    turnsAt: "input",
    // Nothing is stored there, so nothing is called by its id.
    step: [
      { role: "assistant", content: lookup.text },
      ...lookup.calls.map(({ id, name, args }) => ({ type: "function_call", call_id: id, name, arguments: args })),
      { type: "function_call_output", call_id: "call_1", output: "It is booked for 9." },
      { type: "function_call_output", call_id: "call_2", output: '{"error":"There is no msg_42."}' },
    ],
  },
  {
    name: "OpenAI chat completions",
    provider: "openai",
    model: "gpt-4.1",
    base: "/v1",
    env: { OPENAI_API_KEY: "sk-proj-abc" },
    path: "/v1/chat/completions",
    auth: { authorization: "Bearer sk-proj-abc" },
    body: chat("gpt-4.1"),
    offer: chatOffer,
    turnsAt: "messages",
    step: chatStep({}, '{"error":"There is no msg_42."}'),
  },
  {
    name: "Google generateContent",
    provider: "google",
    model: "gemini-2.5-flash",
    base: "/v1beta",
    env: { GEMINI_API_KEY: "AIzaSyAbc" },
    path: "/v1beta/models/gemini-2.5-flash:generateContent",
    auth: { "x-goog-api-key": "AIzaSyAbc" },
    body: (temperature) => ({
      generationConfig: {
        maxOutputTokens: request.maxOutputTokens,
        ...(temperature === undefined ? {} : { temperature }),
      },
      contents: [{ role: "user", parts: [{ text: request.prompt }] }],
      systemInstruction: { parts: [{ text: request.system }] },
    }),
    offer: {
      tools: [
        {
          functionDeclarations: [expand, describing].map(({ parameters, ...offered }) => {
            return { ...offered, parametersJsonSchema: parameters };
          }),
        },
      ],
      toolConfig: { functionCallingConfig: { mode: "AUTO" } },
    },
    turnsAt: "contents",
    step: [
      {
        role: "model",
        parts: [
          { text: lookup.reasoning, thought: true },
          { text: lookup.text },
          { functionCall: { id: "call_1", name: "lcm_expand", args: expandArgs }, thoughtSignature: "signed" },
          { functionCall: { id: "call_2", name: "lcm_describe", args: describeArgs } },
        ],
      },
      {
        role: "user",
        parts: [
          {
            functionResponse: {
              id: "call_1",
              name: "lcm_expand",
              response: { name: "lcm_expand", content: "It is booked for 9." },
            },
          },
          {
            functionResponse: {
              id: "call_2",
              name: "lcm_describe",
              response: { name: "lcm_describe", error: "There is no msg_42." },
            },
          },
        ],
      },
    ],
  },
  {
    name: "OpenRouter",
    provider: "openrouter",
    model: "anthropic/claude-sonnet-4.5",
    base: "/api/v1",
    env: { OPENROUTER_API_KEY: "sk-or-v1-abc" },
    path: "/api/v1/chat/completions",
    auth: { authorization: "Bearer sk-or-v1-abc" },
    body: chat("anthropic/claude-sonnet-4.5"),
    offer: chatOffer,
    turnsAt: "messages",
    step: chatStep({ reasoning_content: lookup.reasoning }, "There is no msg_42."),
  },
  {
    name: "Ollama",
    provider: "ollama",
    model: "qwen3:8b",
    base: "",
    env: {},
    path: "/v1/chat/completions",
    auth: { authorization: undefined },
    body: chat("qwen3:8b"),
    offer: chatOffer,
    turnsAt: "messages",
    step: chatStep({ reasoning_content: lookup.reasoning }, "There is no msg_42."),
  },
];

for (const format of formats) {
  describe(`${format.name} over the wire`, { concurrency: 4 }, () => {
    it("sends the model, both texts, the limits and the credential, and returns the text and its cost", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "answer", text: "The kiln is booked.", reasoning: "Hm, a kiln." });
      assert.deepEqual(await model.complete(request), {
        kind: "text",
        text: "The kiln is booked.",
        finish: "stop",
        inputTokens: scriptedTokens.input,
        outputTokens: scriptedTokens.output,
      });
      const [asked] = server.asked;
      assert.equal(server.asked.length, 1);
      assert.equal(asked?.path, format.path);
      for (const [header, value] of Object.entries(format.auth)) assert.equal(asked?.headers[header], value, header);
      assert.deepEqual(asked?.body, format.body(0.2));
      assert.deepEqual([model.provider, model.name], [format.provider, format.model]);
    });

    it("sends the tools, returns the calls, and sends the whole step and its results with the next request", async () => {
      const { server, model } = await start(format);
      server.play(lookup, lookup, good);
      const first = await answered(model, question);
      assert.partialDeepStrictEqual(first, { text: lookup.text, finish: "stop", outputTokens: scriptedTokens.output });
      assert.deepEqual(first.calls, [
        { id: "call_1", name: "lcm_expand", args: expandArgs },
        { id: "call_2", name: "lcm_describe", args: describeArgs },
      ]);
      const second = await answered(model, { ...question, steps: [stepOf(first)] });
      const last = await answered(model, { ...question, steps: [stepOf(first), stepOf(second)] });
      assert.equal(last.text, good.text);
      assert.equal(last.calls, undefined);

      const told: object = format.body(0.2);
      const before: unknown[] = Reflect.get(told, format.turnsAt);
      for (const [steps, asked] of server.asked.entries()) {
        const turns = [...before, ...Array.from({ length: steps }, () => format.step).flat()];
        assert.deepEqual(asked.body, { ...told, ...format.offer, [format.turnsAt]: turns });
      }
      assert.equal(server.asked.length, 3);
    });

    it("guarantee 21: a credential that is no longer accepted at the second step is `auth`", async () => {
      const { server, model } = await start(format);
      server.play(lookup, { kind: "error", status: 401 });
      const first = await answered(model, question);
      assert.equal(refusalOf(await model.complete({ ...question, steps: [stepOf(first)] })), "auth");
      assert.equal(server.asked.length, 2);
    });

    it("rebuilds a step made by another model", async () => {
      const { server, model } = await start(format);
      server.play(good);
      const completion = { kind: "text", text: "", finish: "stop", inputTokens: 1, outputTokens: 1 } as const;
      const calls = [{ id: "call_1", name: "lcm_expand", args: '{"summaryIds' }];
      await answered(model, { ...question, steps: [stepOf({ ...completion, calls, memo: { of: "another" } })] });
      const sent = JSON.stringify(server.asked[0]?.body[format.turnsAt]);
      assert.match(sent, /"call_1".*It is booked for 9/);
      assert.doesNotMatch(sent, /summaryIds/);
    });

    it("lists the tools of earlier steps if none is offered, and allows no call", async () => {
      const { server, model } = await start(format);
      server.play(lookup, good);
      const first = await answered(model, question);
      await answered(model, { ...request, steps: [stepOf(first)] });
      const sent = server.asked[1]?.body ?? {};
      assert.match(JSON.stringify(sent["tools"]), /"lcm_expand".*"lcm_describe"/);
      assert.match(JSON.stringify([sent["tool_choice"], sent["toolConfig"]]), /"none"/i);
    });

    it("guarantee 21: a rejected credential is `auth`, and is not retried", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "error", status: 401 });
      assert.equal(refusalOf(await model.complete(request)), "auth");
      assert.equal(server.asked.length, 1);
    });

    it("waits as long as requested, and then retries", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "error", status: 429, headers: { "retry-after": "0.15" } }, good);
      assert.equal((await model.complete(request)).kind, "text");
      assert.equal(server.asked.length, 2);
      assert.ok(gapMs(server.asked) >= 145, `asked again after ${gapMs(server.asked)} ms`);
    });

    it("guarantee 21: gives up at once as `rate_limit` if asked to wait longer than the timeout", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "error", status: 429, headers: { "retry-after": "3600" } }, good);
      assert.equal(refusalOf(await model.complete(request)), "rate_limit");
      assert.equal(server.asked.length, 1);
    });

    it("guarantee 21: a failing provider is tried three times, and is then `overloaded`", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "error", status: 500, headers: { "retry-after-ms": "5" } });
      assert.equal(refusalOf(await model.complete(request)), "overloaded");
      assert.equal(server.asked.length, 3);
    });

    it("guarantee 21: a silent provider is a `timeout`, and is not retried", async () => {
      const { server, model } = await start(format, { timeoutMs: 500 });
      server.play({ kind: "hang" });
      assert.equal(refusalOf(await model.complete(request)), "timeout");
      assert.equal(server.asked.length, 1);
    });

    for (const status of [301, 302, 303, 307, 308]) {
      it(`guarantee 32: credential and conversation do not follow a redirect with status ${status}`, async () => {
        const { server, model } = await start(format);
        const elsewhere = await startServer();
        elsewhere.play(good);
        server.play({ kind: "error", status, headers: { location: `${elsewhere.url}${format.path}?of=somebody` } });
        const completion = await model.complete(request);
        assert.equal(refusalOf(completion), "rejected");
        assert.match(
          messageOf(completion),
          new RegExp(`redirects to ${elsewhere.url} \\(HTTP ${status}\\), which is not`),
        );
        assert.deepEqual([server.asked.length, elsewhere.asked.length], [1, 0]);
      });
    }

    it("guarantee 32: an answer without an end is read up to a cap", async () => {
      const { server, model } = await start(format, { timeoutMs: 30_000 });
      server.play({ kind: "endless", status: 200 });
      const completion = await model.complete(request);
      assert.equal(refusalOf(completion), "rejected");
      assert.match(messageOf(completion), /the answer is longer than 4194304 bytes$/);
      assert.equal(server.asked.length, 1);
      assert.ok(server.endlessBytes() < 4 * answerBytesMax, `${server.endlessBytes()} bytes were sent`);
    });

    it("guarantee 32: an error without an end is read up to a cap, and is classified by its status", async () => {
      const { server, model } = await start(format, { timeoutMs: 30_000 });
      server.play({ kind: "endless", status: 401 });
      assert.equal(refusalOf(await model.complete(request)), "auth");
      assert.equal(server.asked.length, 1);
      assert.ok(server.endlessBytes() < 4 * answerBytesMax, `${server.endlessBytes()} bytes were sent`);
    });

    it("stops when the caller aborts", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "hang" });
      const caller = new AbortController();
      const answer = model.complete({ ...request, signal: caller.signal });
      while (server.asked.length === 0) await sleep(5);
      caller.abort();
      assert.equal(refusalOf(await answer), "cancelled");
    });

    it("returns an empty answer as an empty text", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "answer", text: "" });
      assert.partialDeepStrictEqual(await model.complete(request), { kind: "text", text: "", finish: "stop" });
    });

    it("reports that an answer was cut off", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "answer", text: "The kiln is", finish: "length" });
      assert.partialDeepStrictEqual(await model.complete(request), { text: "The kiln is", finish: "length" });
    });

    it("does not mistake reasoning for an answer", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "answer", text: "", reasoning: "Hm, a kiln." });
      assert.partialDeepStrictEqual(await model.complete(request), { kind: "text", text: "" });
    });

    it("guarantee 21: a text that the provider refuses to process is `filtered`", async () => {
      const { server, model } = await start(format);
      server.play({ kind: "answer", text: "", finish: "filtered" });
      assert.equal(refusalOf(await model.complete(request)), "filtered");
    });
  });
}

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
    const { server, model } = await start(ollama, { timeoutMs: 2_000 });
    server.play({ kind: "cut" });
    assert.equal(refusalOf(await model.complete(request)), "unreachable");
    server.play({ kind: "body", status: 200, body: "<html>Please log in to the network</html>" });
    assert.equal(refusalOf(await model.complete(request)), "overloaded");
  });

  it("one timeout covers all attempts and the waits between them", async () => {
    const { server, model } = await start(ollama, { timeoutMs: 1_500 });
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
        timeoutMs: 1_000,
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
        timeoutMs: 1_000,
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

// ── Setting the scene ────────────────────────────────────────────────────────────────────────────────────────────────

const good = { kind: "answer", text: "The kiln is booked." } as const;
const servers: ScriptedProvider[] = [];
after(() => Promise.all(servers.map((server) => server.close().catch(() => undefined))));

async function startServer(): Promise<ScriptedProvider> {
  const server = await startScriptedProvider();
  servers.push(server);
  return server;
}

async function start(
  format: Format,
  options: Partial<ModelDeps> = {},
): Promise<{ server: ScriptedProvider; model: Model; attempts: () => number }> {
  const server = await startServer();
  const stateDir = makeScratch("model");
  if (format.custom !== undefined) {
    const described = { ...format.custom, baseUrl: server.url + format.base };
    mkdirSync(join(stateDir, "agents", "main", "agent"), { recursive: true });
    const models = JSON.stringify({ providers: { [format.provider]: described } });
    writeFileSync(join(stateDir, "agents", "main", "agent", "models.json"), models);
  }
  let attempts = 0;
  const loopbackOnly: typeof fetch = (input, init) => {
    attempts++;
    assert.ok(urlOf(input).startsWith(`${server.url}/`), `nothing goes to ${urlOf(input)}`);
    return fetch(input, init);
  };
  const { provider, model: name, env } = format;
  const model = await createModel(
    { provider, model: name, baseUrl: format.custom === undefined ? server.url + format.base : null },
    { stateDir, env, timeoutMs: 5_000, fetch: loopbackOnly, ...options },
  );
  return { server, model, attempts: () => attempts };
}

type Answered = Extract<Completion, { kind: "text" }>;

async function answered(model: Model, asked: CompletionRequest): Promise<Answered> {
  const completion = await model.complete(asked);
  assert.ok(completion.kind === "text", messageOf(completion));
  return completion;
}

/** The first call found something, the others did not. */
const stepOf = (completion: Answered): ToolStep => ({
  completion,
  results: (completion.calls ?? []).map((call, at) => ({
    call,
    text: at === 0 ? "It is booked for 9." : "There is no msg_42.",
    isError: at > 0,
  })),
});

const urlOf = (input: string | URL | Request): string => new Request(input).url;
const refusalOf = (completion: Completion): string =>
  completion.kind === "refused" ? completion.refusal : `answered: ${completion.text}`;
const messageOf = (completion: Completion): string => (completion.kind === "refused" ? completion.message : "");
const gapMs = ([first, second]: readonly Asked[]): number => (second?.atMs ?? NaN) - (first?.atMs ?? NaN);
