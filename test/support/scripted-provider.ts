/**
 * A model provider on the loopback interface that follows a script and records every request. It speaks each wire
 * format at the path of that format, so tests see what really goes over the wire.
 */

import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { text as textOf } from "node:stream/consumers";

export interface ScriptedAnswer {
  readonly kind: "answer";
  readonly text: string;
  readonly reasoning?: string;
  /** The tool it calls. Arguments are JSON text; formats that carry text send it unchanged. */
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly args: string }[];
  readonly finish?: "stop" | "length" | "filtered";
  /** Whether it reports token usage; it does if this is absent. */
  readonly usage?: boolean;
}

export type Step =
  | ScriptedAnswer
  /** Answers by what it was asked. */
  | { readonly kind: "reply"; readonly to: (body: Asked["body"]) => string }
  /** `error` goes into the error body, beside what each format requires there. */
  | {
      readonly kind: "error";
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly error?: object;
      /** Sent only once this many requests have arrived. */
      readonly afterAsked?: number;
    }
  | { readonly kind: "body"; readonly status: number; readonly body: string }
  /** Embeds each text, in the format of OpenAI. */
  | { readonly kind: "vectors"; readonly of: (text: string) => Iterable<number> }
  /** Answers without an end, until the connection is closed. */
  | { readonly kind: "endless"; readonly status: number }
  /** Accepts the request and never answers. */
  | { readonly kind: "hang" }
  /** Starts to answer, then drops the connection. */
  | { readonly kind: "cut" };

export interface Asked {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
  readonly atMs: number;
}

export interface ScriptedProvider {
  /** Without a path or a trailing slash. */
  readonly url: string;
  readonly asked: readonly Asked[];
  /** How many bytes of answers without an end it has sent. */
  endlessBytes(): number;
  /** What it does from now on, request by request; the last step repeats. */
  play(...steps: readonly Step[]): void;
  close(): Promise<void>;
}

export const scriptedTokens = { input: 321, output: 45 } as const;

export async function startScriptedProvider(): Promise<ScriptedProvider> {
  let script: readonly Step[] = [];
  const asked: Asked[] = [];
  let endlessBytes = 0;
  function* spaces(): Generator<Buffer> {
    for (;;) {
      endlessBytes += 65_536;
      yield Buffer.alloc(65_536, " ");
    }
  }
  const server = createServer((request, response) => {
    void textOf(request).then((body) => {
      const path = request.url ?? "";
      const now: Asked = { path, headers: request.headers, body: JSON.parse(body), atMs: performance.now() };
      asked.push(now);
      const [step, ...later] = script;
      if (later.length > 0) script = later;
      const wanted = step?.kind === "error" ? (step.afterAsked ?? 0) : 0;
      const answer = (): unknown =>
        asked.length < wanted ? setTimeout(answer, 5) : perform(step, now, response, spaces);
      answer();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    asked,
    endlessBytes: () => endlessBytes,
    play(...steps) {
      script = steps;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

function perform(step: Step | undefined, asked: Asked, response: ServerResponse, spaces: () => Iterable<Buffer>): void {
  const send = (status: number, body: string, headers: Record<string, string> = {}): void => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
  };
  switch (step?.kind) {
    case "answer":
      return send(200, JSON.stringify(answerTo(asked, step)));
    case "reply":
      return send(200, JSON.stringify(answerTo(asked, { kind: "answer", text: step.to(asked.body) })));
    case "error": {
      const error = { message: "as the script says", type: "scripted", code: null, status: "SCRIPTED", ...step.error };
      return send(step.status, JSON.stringify({ type: "error", error }), step.headers);
    }
    case "body":
      return send(step.status, step.body);
    case "vectors": {
      const texts = asked.body["input"] as readonly string[];
      return send(200, JSON.stringify({ data: texts.map((text) => ({ embedding: [...step.of(text)] })) }));
    }
    case "endless":
      response.writeHead(step.status, { "content-type": "application/json" });
      Readable.from(spaces()).pipe(response);
      return undefined;
    case "cut":
      response.writeHead(200, { "content-type": "application/json", "content-length": "1000" });
      response.write("{", () => response.destroy());
      return undefined;
    case "hang":
      return undefined;
    case undefined:
      return send(501, "{}");
  }
}

function answerTo({ path, body }: Asked, answer: ScriptedAnswer): object {
  if (path.endsWith("/messages")) return anthropicMessage(answer);
  if (path.endsWith("/chat/completions")) return openaiCompletion(answer);
  if (path.endsWith("/responses")) return openaiResponse(answer, body);
  if (path.endsWith(":generateContent")) return googleContent(answer);
  throw new Error(`no wire format at ${path}`);
}

const finishOf = <T>(answer: ScriptedAnswer, words: { stop: T; length: T; filtered: T; calls?: T }): T =>
  (answer.calls === undefined ? undefined : words.calls) ?? words[answer.finish ?? "stop"];

const usageOf = (answer: ScriptedAnswer, input: string, output: string): object | undefined =>
  answer.usage === false ? undefined : { [input]: scriptedTokens.input, [output]: scriptedTokens.output };

const someIf = <T>(value: string | undefined, make: (value: string) => T): readonly T[] =>
  value === undefined || value === "" ? [] : [make(value)];

const anthropicMessage = (answer: ScriptedAnswer): object => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "scripted",
  content: [
    ...someIf(answer.reasoning, (thinking) => ({ type: "thinking", thinking, signature: "signed" })),
    ...someIf(answer.text, (text) => ({ type: "text", text })),
    ...(answer.calls ?? []).map(({ id, name, args }) => ({ type: "tool_use", id, name, input: JSON.parse(args) })),
  ],
  stop_reason: finishOf(answer, { stop: "end_turn", length: "max_tokens", filtered: "refusal", calls: "tool_use" }),
  stop_sequence: null,
  usage: usageOf(answer, "input_tokens", "output_tokens") ?? { input_tokens: 0, output_tokens: 0 },
});

const openaiCompletion = (answer: ScriptedAnswer): object => ({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1_770_000_000,
  model: "scripted",
  choices: [
    {
      index: 0,
      message: {
        role: "assistant",
        content: answer.text,
        reasoning_content: answer.reasoning,
        tool_calls: answer.calls?.map(({ id, name, args }) => {
          return { id, type: "function", function: { name, arguments: args } };
        }),
      },
      finish_reason: finishOf(answer, {
        stop: "stop",
        length: "length",
        filtered: "content_filter",
        calls: "tool_calls",
      }),
    },
  ],
  usage: usageOf(answer, "prompt_tokens", "completion_tokens"),
});

const openaiResponse = (answer: ScriptedAnswer, asked: Asked["body"]): object => ({
  id: "resp_1",
  object: "response",
  created_at: 1_770_000_000,
  model: "scripted",
  status: answer.finish === undefined || answer.finish === "stop" ? "completed" : "incomplete",
  incomplete_details: finishOf(answer, {
    stop: null,
    length: { reason: "max_output_tokens" },
    filtered: { reason: "content_filter" },
  }),
  output: [
    ...someIf(answer.reasoning, (text) => ({
      type: "reasoning",
      id: "rs_1",
      summary: [{ type: "summary_text", text }],
      ...(JSON.stringify(asked["include"])?.includes("encrypted_content") ? { encrypted_content: "sealed" } : {}),
    })),
    ...someIf(answer.text, (text) => ({
      type: "message",
      id: "msg_1",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text, annotations: [] }],
    })),
    ...(answer.calls ?? []).map(({ id, name, args }) => {
      return { type: "function_call", id: `fc_${id}`, call_id: id, name, arguments: args, status: "completed" };
    }),
  ],
  usage: usageOf(answer, "input_tokens", "output_tokens"),
});

const googleContent = (answer: ScriptedAnswer): object => ({
  candidates: [
    {
      content: {
        role: "model",
        parts: [
          ...someIf(answer.reasoning, (text) => ({ text, thought: true })),
          ...someIf(answer.text, (text) => ({ text })),
          // When calls are made together, only the first is signed, for all.
          ...(answer.calls ?? []).map(({ id, name, args }, at) => {
            return {
              functionCall: { id, name, args: JSON.parse(args) },
              ...(at === 0 && { thoughtSignature: "signed" }),
            };
          }),
        ],
      },
      finishReason: finishOf(answer, { stop: "STOP", length: "MAX_TOKENS", filtered: "SAFETY" }),
    },
  ],
  usageMetadata: usageOf(answer, "promptTokenCount", "candidatesTokenCount"),
});
