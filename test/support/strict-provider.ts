/**
 * A model provider on loopback that is as strict as the real ones: it refuses a body that they refuse, and counts what its
 * prompt cache would have read. It answers by what it is told in the last message, in all three formats, streamed or whole.
 */

import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as textOfStream } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

/* oxlint-disable typescript/no-explicit-any */
type Any = any;

export type WireName = "anthropic" | "chat" | "responses";

export interface StrictRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly raw: string;
  readonly body: Any;
  /** Why a real provider would refuse it; empty if it would not. */
  readonly violations: readonly string[];
  readonly tokens: number;
  /** What a prompt cache would have read of it, in characters, and all of it. */
  readonly cached: number;
  readonly total: number;
  aborted: boolean;
}

export type Fault =
  | {
      readonly kind: "status";
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly body?: string;
    }
  | { readonly kind: "hang" | "die" }
  | { readonly kind: "slow"; readonly ms: number };

export interface StrictProvider {
  readonly url: string;
  readonly requests: StrictRequest[];
  /** Tokens that a request may have; larger ones are refused. */
  windowTokens: number;
  /** What happens to the next requests, one each. */
  readonly faults: Fault[];
  /** What it answers; by default words about the last message, or a call if it is asked for one. */
  answer: (wire: WireName, body: Any, number: number) => StrictAnswer;
  /** So much time has passed that its prompt cache is empty. */
  forget(): void;
  close(): Promise<void>;
}

export interface StrictAnswer {
  readonly text: string;
  readonly thinking?: string;
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly input: Any }[];
}

const hash = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);
export const signatureOf = (thinking: string): string => `sig-${hash(thinking)}`;

export async function startStrictProvider(): Promise<StrictProvider> {
  const requests: StrictRequest[] = [];
  const faults: Fault[] = [];
  let cache = createCache();
  const server = createServer((incoming, response) => {
    void textOfStream(incoming).then(async (raw) => {
      const path = (incoming.url ?? "").split("?")[0] ?? "";
      const isCount = path.endsWith("/count_tokens");
      const wire = wireAt(isCount ? path.slice(0, -"/count_tokens".length) : path);
      const json = (status: number, value: unknown, headers = {}): void => {
        response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
      };
      if (wire === null)
        return json(path.endsWith("/models") ? 200 : 404, { object: "list", data: [], echo: raw.length });
      let body: Any = null;
      try {
        body = JSON.parse(raw);
      } catch {
        requests.push({ ...nothing, path, headers: incoming.headers, raw, body });
        return json(400, { type: "error", error: { type: "invalid_request_error", message: "not JSON" } });
      }
      if (!listOf(wire, body).every?.((element) => typeof element === "object" && element !== null)) {
        requests.push({ ...nothing, path, headers: incoming.headers, raw, body });
        return json(400, {
          type: "error",
          error: { type: "invalid_request_error", message: "not a list of messages" },
        });
      }
      const violations = violationsIn(wire, body);
      const tokens = Math.ceil(raw.length / 4);
      const request = {
        path,
        headers: incoming.headers,
        raw,
        body,
        aborted: false,
        ...(isCount ? nothing : cache(wire, body)),
        violations,
        tokens,
      };
      if (isCount) return json(200, { input_tokens: tokens, echo: raw });
      requests.push(request);
      response.on("close", () => (request.aborted = !response.writableFinished));
      const fault = faults.shift();
      if (fault?.kind === "hang") return undefined;
      if (fault?.kind === "status") {
        response.writeHead(fault.status, { "content-type": "application/json", ...fault.headers });
        return void response.end(
          fault.body ?? JSON.stringify({ type: "error", error: { message: `fault ${fault.status}` } }),
        );
      }
      const error = { type: "invalid_request_error", code: "context_length_exceeded" };
      if (tokens > provider.windowTokens)
        return json(400, { type: "error", error: { ...error, message: "prompt is too long" } });
      if (violations.length > 0)
        return json(400, { type: "error", error: { type: "invalid_request_error", message: violations.join("; ") } });
      const answer = provider.answer(wire, body, requests.length);
      const usage = {
        input: tokens,
        cached: Math.floor(request.cached / 4),
        output: Math.ceil(answer.text.length / 4),
      };
      const whole = wholeAnswers[wire](answer, usage, requests.length);
      if (body.stream !== true) return json(200, whole);
      await stream(response, streams[wire](whole), fault ?? null);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const provider: StrictProvider = {
    url: `http://127.0.0.1:${port}`,
    requests,
    windowTokens: Infinity,
    faults,
    answer: answerByLast,
    forget() {
      cache = createCache();
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return provider;
}

const nothing = { violations: [], tokens: 0, cached: 0, total: 0, aborted: false };

const wireAt = (path: string): WireName | null => {
  if (path.endsWith("/v1/messages")) return "anthropic";
  if (path.endsWith("/chat/completions")) return "chat";
  return path.endsWith("/responses") ? "responses" : null;
};

const listOf = (wire: WireName, body: Any): Any[] => (wire === "responses" ? body.input : body.messages) ?? [];
const blocksOf = (content: Any): Any[] =>
  typeof content === "string" ? [{ type: "text", text: content }] : (content ?? []);

/**
 * `CALL name {json}` in the last message asks for a call, `TWICE` for two at once, `THINK` for a thought, `BIG n` for n
 * words. The id of a call that comes with a thought says so.
 */
export function answerByLast(wire: WireName, body: Any, number: number): StrictAnswer {
  const last = listOf(wire, body).at(-1);
  const texts = blocksOf(last?.content ?? last?.output).map(
    (block) => block.text ?? (typeof block.content === "string" ? block.content : ""),
  );
  // A host may put other texts beside what a person said, also such as quote earlier prompts.
  const text = texts.findLast((each) => /^(?:turn \d|CALL|in a fork|a small task)/.test(each)) ?? texts.join("\n");
  if ((body.tools ?? []).length === 0)
    return {
      text: `Summary ${number} of ${text.length} characters. ${"This was asked, and that was done. ".repeat(8)}`,
    };
  const isResult =
    last?.role === "tool" ||
    last?.type === "function_call_output" ||
    blocksOf(last?.content).some((b) => b.type === "tool_result");
  const thinking = /THINK/.test(text) ? { thinking: `thought ${number}` } : {};
  const call = isResult ? null : /CALL ([\w:]+) (\{.*?\})/.exec(text);
  if (call !== null) {
    const one = { name: call[1] ?? "", input: JSON.parse(call[2] ?? "{}") };
    const kind = "thinking" in thinking ? thoughtful : "call";
    const calls = (/TWICE/.test(text) ? [0, 1] : [0]).map((nth) => ({ id: `${kind}_${number}_${nth}`, ...one }));
    return { ...thinking, text: `calling ${one.name} (${number})`, calls };
  }
  const big = Number(/BIG (\d+)/.exec(text)?.[1] ?? 0);
  const words = Array.from({ length: big }, (_, at) => `word${at % 97}`).join(" ");
  return { ...thinking, text: `Reply ${number}: ${text.slice(0, 40)} ${words}`.trim() };
}

const thoughtful = "thoughtful_call";

// ── What a real provider refuses ─────────────────────────────────────────────────────────────────────────────────────

export function violationsIn(wire: WireName, body: Any): readonly string[] {
  if (wire === "anthropic") return anthropicViolations(body);
  return wire === "chat" ? chatViolations(body) : responsesViolations(body);
}

function anthropicViolations(body: Any): readonly string[] {
  const found: string[] = [];
  const messages: Any[] = body.messages;
  if (!Array.isArray(messages) || messages.length === 0) return ["messages: field required"];
  if (messages[0].role !== "user") found.push(`the first role is ${messages[0].role}`);
  const marks = JSON.stringify([body.tools, body.system, messages]).split('"cache_control"').length - 1;
  if (marks > 4) found.push(`${marks} cache_control`);
  let open: string[] = [];
  messages.forEach((message, at) => {
    if (!["user", "assistant"].includes(message.role)) found.push(`role ${message.role} at ${at}`);
    const extra = Object.keys(message).filter((field) => !["role", "content"].includes(field));
    if (extra.length > 0) found.push(`${extra.join()} at ${at}: extra inputs are not permitted`);
    const blocks = blocksOf(message.content);
    if (blocks.length === 0) found.push(`empty content at ${at}`);
    for (const block of blocks) {
      if (block.type === "text" && !block.text?.trim()) found.push(`empty text at ${at}`);
      if (block.type === "thinking" && block.signature !== signatureOf(block.thinking))
        found.push(`bad signature at ${at}`);
      if (block.type === "thinking" && message.role !== "assistant") found.push(`thinking of a user at ${at}`);
    }
    const results = blocks.filter((block) => block.type === "tool_result").map((block) => block.tool_use_id);
    for (const id of results) if (!open.includes(id)) found.push(`tool_result ${id} at ${at} without its tool_use`);
    for (const id of open) if (!results.includes(id)) found.push(`tool_use ${id} before ${at} without its tool_result`);
    const firstOther = blocks.findIndex((block) => block.type !== "tool_result");
    if (firstOther >= 0 && blocks.slice(firstOther).some((block) => block.type === "tool_result"))
      found.push(`tool_result behind other content at ${at}`);
    for (const name of blocks.flatMap(referencesIn))
      if (!(body.tools ?? []).some((tool: Any) => tool.name === name)) found.push(`tool_reference to no tool: ${name}`);
    const uses = blocks.filter((block) => block.type === "tool_use").map((block) => block.id);
    if (new Set(uses).size < uses.length) found.push(`tool_use ids repeat at ${at}`);
    open = message.role === "assistant" ? uses : [];
  });
  if (open.length > 0) found.push("the last tool_use has no result");
  // With thinking on, the answer that calls begin with must come back with its thought.
  const prompt = messages.findLastIndex((message) => message.role === "user" && !isResults(message));
  const kinds = blocksOf(messages[prompt + 1]?.content).map(({ id, type }) => (isThoughtful(id) ? thoughtful : type));
  const isAnswering = blocksOf(messages.at(-1).content).every(
    ({ type, text = "" }) => type === "tool_result" || text.startsWith("<system-reminder>"),
  );
  if (body.thinking !== undefined && isAnswering && kinds.includes(thoughtful) && !kinds.includes("thinking"))
    found.push("the thought before a call is missing");
  return found;
}

const isThoughtful = (id: Any): boolean => typeof id === "string" && id.startsWith(thoughtful);
const isResults = ({ content }: Any): boolean => blocksOf(content).some((block) => block.type === "tool_result");

/** Tools that a result has loaded. */
export const referencesIn = (block: Any): readonly string[] =>
  block.type === "tool_result" && Array.isArray(block.content)
    ? block.content.flatMap((inner: Any) => (inner.type === "tool_reference" ? [inner.tool_name] : []))
    : [];

function chatViolations(body: Any): readonly string[] {
  const found: string[] = [];
  let open: string[] = [];
  if (!Array.isArray(body.messages)) return ["messages: field required"];
  (body.messages as Any[]).forEach((message, at) => {
    if (message.role === "tool") {
      if (!open.includes(message.tool_call_id)) found.push(`tool ${message.tool_call_id} at ${at} without a call`);
      open = open.filter((id) => id !== message.tool_call_id);
      return;
    }
    if (open.length > 0) found.push(`calls ${open.join()} unanswered before ${at}`);
    open = (message.tool_calls ?? []).map((call: Any) => call.id);
    // An empty text is taken: OpenCode sends one for an answer that broke off.
    const isEmpty =
      (message.content ?? null) === null || (Array.isArray(message.content) && message.content.length === 0);
    if (isEmpty && open.length === 0) found.push(`empty message at ${at}: ${JSON.stringify(message).slice(0, 200)}`);
  });
  if (open.length > 0) found.push("the last calls are unanswered");
  return found;
}

function responsesViolations(body: Any): readonly string[] {
  const input: Any[] = Array.isArray(body.input) ? body.input : [];
  const found: string[] = [];
  const calls = new Map(input.flatMap((item, at) => ((item.type ?? "").endsWith("_call") ? [[item.call_id, at]] : [])));
  const outputs = new Map(
    input.flatMap((item, at) => ((item.type ?? "").endsWith("_call_output") ? [[item.call_id, at]] : [])),
  );
  for (const [id, at] of outputs)
    if (!((calls.get(id) ?? Infinity) < at)) found.push(`output ${id} without its call before it`);
  for (const id of calls.keys()) if (!outputs.has(id)) found.push(`call ${id} without an output`);
  input.forEach((item, at) => {
    const { type, role } = input[at + 1] ?? {};
    if (item.type === "reasoning" && !/reasoning|_call$/.test(type ?? "") && role !== "assistant")
      found.push(`reasoning at ${at} without what follows it`);
    if (item.type === undefined && item.role === undefined) found.push(`no type at ${at}`);
  });
  return found;
}

// ── The prompt cache ─────────────────────────────────────────────────────────────────────────────────────────────────

const lookback = 20;

/** Anthropic: the prefix up to a mark, looked up some blocks back. Others: the longest beginning of an earlier request. */
function createCache(): (wire: WireName, body: Any) => { readonly cached: number; readonly total: number } {
  const seen = new Set<string>();
  const earlier: string[] = [];
  return (wire, body) => {
    if (wire !== "anthropic") {
      const text = JSON.stringify([body.tools, body.instructions, listOf(wire, body)]);
      const cached = Math.max(0, ...earlier.map((each) => commonPrefix(each, text)));
      earlier.push(text);
      if (earlier.length > 12) earlier.shift();
      return { cached, total: text.length };
    }
    const blocks = [
      ...(body.tools ?? []),
      ...blocksOf(body.system),
      ...(body.messages ?? []).flatMap((m: Any) => blocksOf(m.content)),
    ];
    let [key, total] = ["", 0];
    const prefixes = blocks.map(({ cache_control: mark, ...block }) => {
      const text = JSON.stringify(block);
      key = hash(key + text);
      total += text.length;
      return { key, length: total, isMarked: mark !== undefined };
    });
    let cached = 0;
    prefixes.forEach(({ isMarked }, at) => {
      if (!isMarked) return;
      const hit = prefixes.slice(Math.max(0, at - lookback), at + 1).findLast((each) => seen.has(each.key));
      cached = Math.max(cached, hit?.length ?? 0);
    });
    for (const each of prefixes) if (each.isMarked) seen.add(each.key);
    return { cached, total };
  };
}

function commonPrefix(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at++;
  return at;
}

// ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Counted {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

const wholeAnswers: Readonly<Record<WireName, (answer: StrictAnswer, usage: Counted, number: number) => Any>> = {
  anthropic: ({ text, thinking, calls = [] }, { input, cached, output }, number) => ({
    id: `msg_${number}`,
    type: "message",
    role: "assistant",
    model: "scripted",
    content: [
      ...(thinking === undefined ? [] : [{ type: "thinking", thinking, signature: signatureOf(thinking) }]),
      { type: "text", text },
      ...calls.map((call) => ({ type: "tool_use", ...call })),
    ],
    stop_reason: calls.length > 0 ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: {
      input_tokens: input - cached,
      cache_read_input_tokens: cached,
      cache_creation_input_tokens: 0,
      output_tokens: output,
    },
  }),
  chat: ({ text, thinking, calls = [] }, { input, cached, output }, number) => ({
    id: `chat_${number}`,
    object: "chat.completion",
    created: 1,
    model: "scripted",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: text,
          ...(thinking === undefined ? {} : { reasoning_content: thinking }),
          ...(calls.length > 0
            ? {
                tool_calls: calls.map(({ id, name, input: args }) => ({
                  id,
                  type: "function",
                  function: { name, arguments: JSON.stringify(args) },
                })),
              }
            : {}),
        },
        finish_reason: calls.length > 0 ? "tool_calls" : "stop",
      },
    ],
    usage: {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cached },
    },
  }),
  responses: ({ text, calls = [] }, { input, cached, output }, number) => ({
    id: `resp_${number}`,
    object: "response",
    created_at: 1,
    status: "completed",
    model: "scripted",
    output: [
      { type: "reasoning", id: `rs_${number}`, summary: [], encrypted_content: `sealed-${number}` },
      {
        type: "message",
        id: `msg_${number}`,
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text, annotations: [] }],
      },
      ...calls.map(({ id, name: named, input: args }) => {
        // A tool of a namespace is named `namespace::tool` by scripts.
        const [name, namespace] = named.split("::").toReversed();
        return {
          type: "function_call",
          id: `fc_${id}`,
          call_id: id,
          name,
          ...(namespace === undefined ? {} : { namespace }),
          arguments: JSON.stringify(args),
          status: "completed",
        };
      }),
    ],
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: output,
      total_tokens: input + output,
    },
  }),
};

interface StreamEvent {
  readonly event?: string;
  readonly data: Any;
}

const pieces = (text: string): readonly string[] => {
  const size = Math.max(1, Math.ceil(text.length / 3));
  return [text.slice(0, size), text.slice(size, 2 * size), text.slice(2 * size)].filter((piece) => piece !== "");
};

const typed = (data: Any): StreamEvent => ({ event: data.type, data });

const streams: Readonly<Record<WireName, (whole: Any) => readonly StreamEvent[]>> = {
  anthropic: (whole) => [
    typed({ type: "message_start", message: { ...whole, content: [], stop_reason: null } }),
    ...(whole.content as Any[]).flatMap((block, index) => {
      const delta = (value: Any): StreamEvent => typed({ type: "content_block_delta", index, delta: value });
      const empty = { text: { text: "" }, thinking: { thinking: "", signature: "" }, tool_use: { input: {} } }[
        block.type as "text"
      ];
      const deltas = {
        text: () => pieces(block.text).map((text) => delta({ type: "text_delta", text })),
        thinking: () => [
          ...pieces(block.thinking).map((thinking) => delta({ type: "thinking_delta", thinking })),
          delta({ type: "signature_delta", signature: block.signature }),
        ],
        tool_use: () =>
          pieces(JSON.stringify(block.input)).map((json) => delta({ type: "input_json_delta", partial_json: json })),
      }[block.type as "text"]();
      return [
        typed({ type: "content_block_start", index, content_block: { ...block, ...empty } }),
        ...deltas,
        typed({ type: "content_block_stop", index }),
      ];
    }),
    typed({ type: "message_delta", delta: { stop_reason: whole.stop_reason }, usage: whole.usage }),
    typed({ type: "message_stop" }),
  ],
  chat: (whole) => {
    const { message, finish_reason } = whole.choices[0];
    const chunk = (delta: Any, finish: string | null = null): StreamEvent => ({
      data: { id: whole.id, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] },
    });
    const calls = (message.tool_calls ?? []).map((call: Any, index: number) => ({ index, ...call }));
    return [
      ...pieces(message.reasoning_content ?? "").map((text) => chunk({ role: "assistant", reasoning_content: text })),
      ...pieces(message.content).map((content) => chunk({ role: "assistant", content })),
      ...(calls.length > 0 ? [chunk({ tool_calls: calls })] : []),
      chunk({}, finish_reason),
      { data: { id: whole.id, choices: [], usage: whole.usage } },
      { data: "[DONE]" },
    ];
  },
  responses: (whole) => [
    typed({ type: "response.created", response: { ...whole, status: "in_progress", output: [] } }),
    ...(whole.output as Any[]).flatMap((item, at) => [
      typed({ type: "response.output_item.added", output_index: at, item }),
      typed({ type: "response.output_item.done", output_index: at, item }),
    ]),
    typed({ type: "response.completed", response: whole }),
  ],
};

async function stream(response: ServerResponse, events: readonly StreamEvent[], fault: Fault | null): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const [at, { event, data }] of events.entries()) {
    if (response.destroyed) return;
    if (fault?.kind === "die" && at === 2) {
      await sleep(20); // What was written must be on its way.
      return void response.socket?.destroy();
    }
    if (fault?.kind === "slow") await sleep(fault.ms);
    const name = event === undefined ? "" : `event: ${event}\n`;
    response.write(`${name}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  }
  response.end();
}
