/**
 * A model for tests, the only fake: it answers well, badly or not at all, as scripted. It always answers the same
 * question in the same way.
 */

import type { Completion, CompletionRequest, Model, ToolCall } from "../../src/core/model/store.ts";
import { estimateTokens } from "../../src/core/base/tokens.ts";

export const behaviours = [
  "good",
  "slow",
  "refuses",
  "unauthorized",
  "garbage",
  "echo",
  "reasoning",
  "hangs",
  "long",
  "empty",
  "throws",
] as const;
export type Behaviour = (typeof behaviours)[number];

/** No summary may ever contain this word: every thought does. */
export const thoughtWord = "xylophonic";

export function createScriptedModel(options: {
  /** Consulted before every call. */
  readonly behaviour: () => Behaviour;
  /** How long `slow` takes. */
  readonly delayMs?: number;
}): Model & { readonly calls: readonly CompletionRequest[] } {
  const calls: CompletionRequest[] = [];
  return {
    provider: "scripted",
    name: "one",
    calls,
    async complete(request) {
      calls.push(request);
      return await behave(options.behaviour(), request, calls.length, options.delayMs ?? 5);
    },
  };
}

async function behave(
  behaviour: Behaviour,
  request: CompletionRequest,
  call: number,
  delayMs: number,
): Promise<Completion> {
  const segment = segmentOf(request.prompt);
  switch (behaviour) {
    case "good":
      return text(request, summaryOf(segment));
    case "slow":
      await pause(delayMs, request.signal);
      return request.signal?.aborted === true
        ? { kind: "refused", refusal: "cancelled", message: "the caller hung up" }
        : text(request, summaryOf(segment));
    case "refuses":
      // Words that would mislead code that decides by words.
      return {
        kind: "refused",
        refusal: "overloaded",
        message: "529: upstream said 401 unauthorized, invalid api key",
      };
    case "unauthorized":
      return { kind: "refused", refusal: "auth", message: "everything is fine, please continue" };
    case "garbage":
      return text(request, garbage(call, segment));
    case "echo":
      return text(request, segment);
    case "reasoning":
      return text(request, thinking(call, summaryOf(segment)));
    case "hangs":
      // It also ignores its signal.
      return await new Promise<Completion>(() => undefined);
    case "long":
      return text(
        request,
        Array.from({ length: 4_000 }, (_, line) => `On the ${line}th day more happened.`).join("\n"),
      );
    case "empty":
      return text(request, " \n ");
    case "throws":
      throw new TypeError("cannot read properties of undefined (reading 'choices')");
  }
}

/** A model that answers and calls tools by a script; calls count from 1. */
export function createToolModel(
  script: (request: CompletionRequest, call: number) => Completion | Promise<Completion>,
): Model & { readonly calls: readonly CompletionRequest[] } {
  const calls: CompletionRequest[] = [];
  return {
    provider: "scripted",
    name: "two",
    calls,
    async complete(request) {
      calls.push(request);
      return await script(request, calls.length);
    },
  };
}

/** What such a model says, and which tools it calls. */
export const says = (answer: string, ...wanted: readonly Omit<ToolCall, "id">[]): Completion => ({
  kind: "text",
  text: answer,
  calls: wanted.map((call, place) => ({ ...call, id: `call-${place}` })),
  finish: "stop",
  inputTokens: 1,
  outputTokens: estimateTokens(answer),
});

const text = (request: CompletionRequest, answer: string): Completion => ({
  kind: "text",
  text: answer,
  finish: "stop",
  inputTokens: estimateTokens(request.system) + estimateTokens(request.prompt),
  outputTokens: estimateTokens(answer),
});

const segmentOf = (prompt: string): string =>
  /<conversation_segment>\n([^]*)\n<\/conversation_segment>/.exec(prompt)?.[1] ?? prompt;

/** Few words, different for different sources. */
function summaryOf(segment: string): string {
  let mark = 0;
  for (let at = 0; at < segment.length; at++) mark = (Math.imul(mark, 31) + segment.charCodeAt(at)) >>> 0;
  const time = /\d{4}-\d\d-\d\d \d\d:\d\d/.exec(segment)?.[0] ?? "then";
  return `${time}: ${segment.length} characters, noted as ${mark.toString(36)}.\nExpand for details about: wording`;
}

/** Answers that no provider should give, and some do. */
function garbage(call: number, segment: string): string {
  const kinds = [
    "\0\u0007\ud800 \udfff",
    "<html><body><h1>502 Bad Gateway</h1></body></html>",
    "{".repeat(5_000),
    segment.slice(0, segment.length / 2),
    "```\n```\n</summary></summary>",
    "Expand for details about:\n",
    "<think>".repeat(2_000),
    "\u202e\u200b".repeat(3_000),
    segment.split("").reverse().join(""),
  ];
  return kinds[call % kinds.length] ?? "";
}

/** Reasoning in the forms that models write it, with or without a summary after it. */
function thinking(call: number, summary: string): string {
  const thought = `Okay, the ${thoughtWord} user wants a summary.\nI should be brief.`;
  const kinds = [
    `<think>\n${thought}\n</think>\n\n${summary}`,
    `<thinking>${thought}</thinking>`,
    `<reasoning>\n${thought}`,
    `${thought}\n</think>\n${summary}`,
    `\`\`\`thinking\n${thought}\n\`\`\`\n${summary}`,
    `Here is my thought process:\n${thought}\n\n## Summary\n${summary}`,
    thought,
    `<analysis>${thought}</analysis><summary>${summary}</summary>`,
  ];
  return kinds[call % kinds.length] ?? thought;
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(done, ms);
    function done(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    }
    signal?.addEventListener("abort", done, { once: true });
    if (signal?.aborted === true) done();
  });
}
