/**
 * Tools, and the steps already made with them, in the AI SDK's words. The SDK is offered tools that it cannot run itself,
 * so it stops after every completion: who runs them, how often and within what bounds is for whoever asks to say.
 */

import type { AssistantModelMessage, ModelMessage, ToolModelMessage, ToolSet } from "ai";
import type { CompletionRequest, ToolCall, ToolStep } from "../core/model/store.ts";
import { estimateTokens } from "../core/base/tokens.ts";
import { isFields } from "./read-files.ts";
import type { Json } from "../core/base/json.ts";

type Asked = Pick<CompletionRequest, "system" | "prompt" | "tools" | "steps">;

interface Told {
  readonly messages: ModelMessage[];
  readonly tools?: ToolSet;
  readonly toolChoice?: "none";
}

/** What the model is told after its instructions, and what it may call. */
export async function tell({ prompt, tools = [], steps = [] }: Asked): Promise<Told> {
  const { assistantModelMessageSchema, jsonSchema } = await import("ai");
  const turns = steps.flatMap((step) => {
    // A step made elsewhere has no turn of ours to repeat.
    const own = assistantModelMessageSchema.safeParse(step.completion.memo);
    return [own.success ? own.data : rebuildTurn(step.completion), resultsOf(step)];
  });
  const messages: ModelMessage[] = [{ role: "user", content: prompt }, ...turns];
  const offered = tools.map(({ name, description, parameters }) => {
    return [name, { description, inputSchema: jsonSchema(parameters) }] as const;
  });
  if (offered.length > 0) return { messages, tools: Object.fromEntries(offered) };
  // Some providers take no record of calls without the tools that were called: these are named, and may not be called.
  const called = steps.flatMap(({ results }) => results.map(({ call }) => call.name));
  const inputSchema = jsonSchema({ type: "object" });
  const named = Object.fromEntries(called.map((name) => [name, { inputSchema }]));
  return called.length === 0 ? { messages } : { messages, tools: named, toolChoice: "none" };
}

/** What goes with a completion that wants something called: the calls, and the model's own turn for the next step. */
export function callsOf(
  called: readonly { readonly toolCallId: string; readonly toolName: string; readonly input: unknown }[],
  said: readonly ModelMessage[],
): { readonly calls?: readonly ToolCall[]; readonly memo?: unknown } {
  if (called.length === 0) return {};
  // Arguments are what the SDK parsed, or the text that it could not.
  const calls = called.map(({ toolCallId: id, toolName: name, input }) => ({ id, name, args: toJson(input) }));
  // The SDK answers calls that it thinks wrong; those answers are not the model's, and not ours.
  return { calls, memo: said.find(({ role }) => role === "assistant") };
}

/** For a provider that does not say how much it wrote. */
export const estimateOutput = (text: string, calls: readonly ToolCall[] = []): number =>
  estimateTokens(text) + sumOf(calls, (call) => estimateTokens(JSON.stringify(call)));

/** For a provider that does not say how much it read. */
export const estimateInput = ({ system, prompt, tools = [], steps = [] }: Asked): number =>
  estimateTokens(system) +
  estimateTokens(prompt) +
  sumOf(tools, (tool) => estimateTokens(JSON.stringify(tool))) +
  sumOf(steps, ({ completion, results }) => {
    return estimateOutput(completion.text, completion.calls) + sumOf(results, ({ text }) => estimateTokens(text));
  });

const sumOf = <T>(items: readonly T[], tokensOf: (item: T) => number): number =>
  items.reduce((tokens, item) => tokens + tokensOf(item), 0);

const rebuildTurn = ({ text, calls = [] }: ToolStep["completion"]): AssistantModelMessage => ({
  role: "assistant",
  content: [
    { type: "text", text },
    ...calls.map(({ id: toolCallId, name: toolName, args }) => {
      // Providers take only an object; what was wrong with anything else the result says.
      return { type: "tool-call" as const, toolCallId, toolName, input: isFields(args) ? args : {} };
    }),
  ],
});

const resultsOf = ({ results }: ToolStep): ToolModelMessage => ({
  role: "tool",
  content: results.map(({ call, text, isError }) => ({
    type: "tool-result",
    toolCallId: call.id,
    toolName: call.name,
    output: { type: isError ? "error-text" : "text", value: text },
  })),
});

/** It was JSON before the SDK parsed it. */
const toJson = (value: unknown): Json => JSON.parse(JSON.stringify(value));
