/**
 * Serves the models behind the gateway on loopback: streams what a script says in both wire formats of the host. It
 * runs in the test's process, records every request, and is the only fake of the host tests.
 */

import { once } from "node:events";
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as textOf } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer, Asked, Reply, Said, Usage } from "./asked.ts";
import { readResponses, responsesStream } from "./responses-wire.ts";

export type { Answer, Asked, Reply };

export type Script = (asked: Asked) => Reply | Promise<Reply>;

export interface ModelServer {
  /** Without a path or a trailing slash. */
  readonly url: string;
  readonly asked: readonly Asked[];
  /** How requests are answered from now on. Before the first script every prompt is echoed. */
  script(next: Script): void;
  /** Clears the recorded requests. */
  forget(): void;
  close(): Promise<void>;
}

export const echo: Script = ({ prompt }) => `You said: ${prompt}`;

export async function startModelServer(): Promise<ModelServer> {
  let script = echo;
  const asked: Asked[] = [];
  let count = 0;
  const server = createServer((request, response) => {
    void textOf(request).then(async (body) => {
      if (request.method !== "POST") return response.writeHead(404).end();
      if (request.url?.includes("/count_tokens") === true)
        return response.end(JSON.stringify({ input_tokens: Math.ceil(body.length / 4) }));
      const now = readRequest(request.url ?? "", JSON.parse(body));
      asked.push(now);
      const nth = ++count;
      // A script that throws is a mistake of the test; the host shows it in the turn's error and in its log.
      const reply = await Promise.try(script, now).catch((error: unknown): Reply => ({
        kind: "error",
        status: 400,
        error: { message: `the script failed: ${String(error)}` },
      }));
      return perform(typeof reply === "string" ? { kind: "answer", text: reply } : reply, now, nth, response);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    script(next) {
      script = next;
    },
    forget() {
      asked.length = 0;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

type Json = ReturnType<typeof JSON.parse>;

function readRequest(path: string, body: Json): Asked {
  if (path.endsWith("/responses")) return { ...readTurn(body, "responses"), ...readResponses(body) };
  return readTurn(body, /\/messages(?:\?|$)/.test(path) ? "anthropic" : "openai");
}

function readTurn(body: Json, format: Asked["format"]): Asked {
  const all: readonly Said[] = (body.messages ?? []).flatMap(format === "anthropic" ? readAnthropic : readOpenai);
  const system = textIn(
    format === "anthropic" ? body.system : body.messages?.[0]?.role === "system" && body.messages[0],
  );
  const messages = all.filter(({ text }) => !text.startsWith("<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"));
  const prompted = messages.findLastIndex(({ role }) => role === "user");
  const isTurn = system.includes("<!-- openclaw:attempt:");
  return {
    kind: isTurn ? "turn" : "completion",
    format,
    model: body.model,
    session: (isTurn && /\| session=([^\s|]+)/.exec(`${system}\n${all.map(({ text }) => text).join("\n")}`)?.[1]) || "",
    system,
    messages,
    prompt: (messages[prompted]?.text ?? "")
      .replace(/^\[\w{3} \d{4}-\d\d-\d\d \d\d:\d\d [^\]]+\] /, "")
      .replace(/\n\nRuntime: agent=[^]*/, ""),
    results: messages.slice(prompted + 1).flatMap(({ role, text }) => (role === "tool" ? [text] : [])),
    tools: (body.tools ?? []).map((tool: Json) => tool.function?.name ?? tool.name),
    body,
    atMs: performance.now(),
  };
}

function textIn(content: Json): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map((part) => part.text ?? "").join("");
  return content ? textIn(content.content) : "";
}

function readOpenai({
  role,
  content,
  tool_calls: calls = [],
  reasoning_content: thinking = "",
}: Json): readonly Said[] {
  if (role === "system" || role === "developer") return [];
  const named = calls.map((call: Json) => ({ id: call.id, name: call.function.name }));
  return [{ role, text: textIn(content), thinking, calls: named }];
}

/** There, tool results come inside of user messages; here each is a message, as in the other format. */
function readAnthropic({ role, content }: Json): readonly Said[] {
  const parts: readonly Json[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const results = parts.filter(({ type }) => type === "tool_result");
  const others = parts.filter((part) => !results.includes(part));
  return [
    ...results.map((part): Said => ({ role: "tool", text: textIn(part.content), thinking: "", calls: [] })),
    ...(others.length === 0
      ? []
      : [{ role, text: textIn(others), thinking: thinkingIn(others), calls: callsIn(others) }]),
  ];
}

const thinkingIn = (parts: readonly Json[]): string => parts.map(({ thinking = "" }) => thinking).join("");

const callsIn = (parts: readonly Json[]): Said["calls"] =>
  parts.filter(({ type }) => type === "tool_use").map(({ id, name }) => ({ id, name }));

function perform(reply: Exclude<Reply, string>, asked: Asked, nth: number, response: ServerResponse): void {
  const stream = (answer: Answer): string => streams[asked.format](answer, asked, nth);
  const send = (status: number, type: string, body: string, headers: Readonly<Record<string, string>> = {}): void => {
    response.writeHead(status, { "content-type": type, ...headers }).end(body);
  };
  const fail = (status: number, error: object, headers?: Readonly<Record<string, string>>): void =>
    send(status, "application/json", JSON.stringify({ type: "error", error }), headers);
  switch (reply.kind) {
    case "answer":
      return send(200, "text/event-stream", stream(reply));
    case "overflow":
      return fail(400, overflows[asked.format]);
    case "error":
      return fail(reply.status, { message: "as the script says", type: "scripted", ...reply.error }, reply.headers);
    case "body":
      return send(reply.status, "application/json", reply.body);
    case "cut": {
      const [begun] = stream({ kind: "answer", text: "I was just about to" }).split("about to");
      response.writeHead(200, { "content-type": "text/event-stream" }).write(begun, () => response.destroy());
      return undefined;
    }
    case "drip":
      void drip(stream(reply.answer), reply, response);
      return undefined;
    case "hang":
      return undefined;
  }
}

const streams = {
  openai: openaiStream,
  anthropic: anthropicStream,
  responses: (answer: Answer, asked: Asked, nth: number): string =>
    responsesStream(answer, asked, nth, usageOf(answer, asked)),
} as const;

async function drip(
  whole: string,
  { pauseMs, breaks }: { readonly pauseMs: number; readonly breaks: boolean },
  response: ServerResponse,
): Promise<void> {
  const pieces = 8;
  const length = Math.ceil(whole.length / pieces);
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (let piece = 0; piece < (breaks ? pieces / 2 : pieces) && !response.destroyed; piece++) {
    response.write(whole.slice(piece * length, (piece + 1) * length));
    await sleep(pauseMs);
  }
  if (breaks) response.destroy();
  else response.end();
}

const overflows: Readonly<Record<Asked["format"], object>> = {
  responses: { message: "Your input exceeds the context window of this model.", code: "context_length_exceeded" },
  openai: {
    message: "This model's maximum context length is 64000 tokens. However, your messages resulted in 80000 tokens.",
    type: "invalid_request_error",
    param: "messages",
    code: "context_length_exceeded",
  },
  anthropic: { type: "invalid_request_error", message: "prompt is too long: 80000 tokens > 64000 maximum" },
};

function usageOf({ text = "", thinking = "", calls = [], usage }: Answer, { body }: Asked): Usage {
  const output = Math.ceil((text.length + thinking.length + JSON.stringify(calls).length) / 4);
  return { input: Math.ceil(JSON.stringify(body).length / 4), output, cacheRead: 0, cacheWrite: 0, ...usage };
}

function openaiStream(answer: Answer, asked: Asked, nth: number): string {
  const { input, output, cacheRead } = usageOf(answer, asked);
  const { text, thinking, calls = [], finish = "stop" } = answer;
  const chunk = (rest: object): string =>
    `data: ${JSON.stringify({ id: `chatcmpl-${nth}`, object: "chat.completion.chunk", created: 1_770_000_000, model: asked.model, ...rest })}\n\n`;
  const delta = (delta: object, finish_reason: string | null = null): string =>
    chunk({ choices: [{ index: 0, delta, finish_reason }] });
  return [
    delta({ role: "assistant" }),
    thinking === undefined ? "" : delta({ reasoning_content: thinking }),
    text === undefined ? "" : delta({ content: text }),
    ...calls.map(({ id, name, args }, index) => {
      const called = { name, arguments: JSON.stringify(args) };
      return delta({ tool_calls: [{ index, id: id ?? `call_${nth}_${index}`, type: "function", function: called }] });
    }),
    delta({}, calls.length > 0 ? "tool_calls" : finish),
    chunk({
      choices: [],
      usage: {
        prompt_tokens: input + cacheRead,
        completion_tokens: output,
        total_tokens: input + cacheRead + output,
        prompt_tokens_details: { cached_tokens: cacheRead },
      },
    }),
    "data: [DONE]\n\n",
  ].join("");
}

function anthropicStream(answer: Answer, asked: Asked, nth: number): string {
  const { input, output, cacheRead, cacheWrite } = usageOf(answer, asked);
  const { text, thinking, signature = "c2lnbmVk", calls = [], finish } = answer;
  const event = (type: string, rest: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
  let index = 0;
  const block = (start: object, ...deltas: readonly object[]): string => {
    const events = [
      event("content_block_start", { index, content_block: start }),
      ...deltas.map((delta) => event("content_block_delta", { index, delta })),
      event("content_block_stop", { index }),
    ];
    index += 1;
    return events.join("");
  };
  const usage = { input_tokens: input, cache_read_input_tokens: cacheRead, cache_creation_input_tokens: cacheWrite };
  const stop = calls.length > 0 ? "tool_use" : finish === "length" ? "max_tokens" : "end_turn";
  return [
    event("message_start", {
      message: {
        id: `msg_${nth}`,
        type: "message",
        role: "assistant",
        model: asked.model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { ...usage, output_tokens: 1 },
      },
    }),
    thinking === undefined
      ? ""
      : block(
          { type: "thinking", thinking: "", signature: "" },
          { type: "thinking_delta", thinking },
          { type: "signature_delta", signature },
        ),
    text === undefined ? "" : block({ type: "text", text: "" }, { type: "text_delta", text }),
    ...calls.map(({ id, name, args }, at) =>
      block(
        { type: "tool_use", id: id ?? `toolu_${nth}_${at}`, name, input: {} },
        { type: "input_json_delta", partial_json: JSON.stringify(args) },
      ),
    ),
    event("message_delta", { delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: output } }),
    event("message_stop", {}),
  ].join("");
}
