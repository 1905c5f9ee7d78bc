/** What tests of models behind a provider share. */

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import type { Completion, CompletionRequest, Model, ToolStep } from "../../src/core/model/store.ts";
import { makeScratch } from "./scratch.ts";
import { startScriptedProvider } from "./scripted-provider.ts";
import type { ScriptedProvider } from "./scripted-provider.ts";
import { createModel } from "../../src/models/provider-model.ts";
import type { ModelDeps } from "../../src/models/provider-model.ts";

export const request: CompletionRequest = {
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
export const question: CompletionRequest = { ...request, purpose: "expand", tools: [expand, describing] };
export const expandArgs = { summaryIds: ["sum_0123456789abcdef"] };
export const describeArgs = { id: "msg_42" };
export const lookup = {
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

export const formats: readonly Format[] = [
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

export const good = { kind: "answer", text: "The kiln is booked." } as const;

/** Closed after the test that starts it. */
export async function startServer(): Promise<ScriptedProvider> {
  const server = await startScriptedProvider();
  after(async () => await server.close().catch(() => undefined));
  return server;
}

export async function start(
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

export async function answered(model: Model, asked: CompletionRequest): Promise<Answered> {
  const completion = await model.complete(asked);
  assert.ok(completion.kind === "text", messageOf(completion));
  return completion;
}

/** The first call found something, the others did not. */
export const stepOf = (completion: Answered): ToolStep => ({
  completion,
  results: (completion.calls ?? []).map((call, at) => ({
    call,
    text: at === 0 ? "It is booked for 9." : "There is no msg_42.",
    isError: at > 0,
  })),
});

export const urlOf = (input: string | URL | Request): string => new Request(input).url;
export const refusalOf = (completion: Completion): string =>
  completion.kind === "refused" ? completion.refusal : `answered: ${completion.text}`;
export const messageOf = (completion: Completion): string => (completion.kind === "refused" ? completion.message : "");
