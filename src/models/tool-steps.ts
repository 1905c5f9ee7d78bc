/**
 * Converts tools and earlier tool steps to the AI SDK's messages and back. The SDK cannot run the tools itself, so it
 * stops after every completion, and the caller decides how to continue.
 */

import type { AssistantModelMessage, ModelMessage, ToolModelMessage, ToolSet } from "ai";
import type { CompletionRequest, ToolCall, ToolStep } from "../core/model/store.ts";
import { estimateTokens } from "../core/base/tokens.ts";
import { isFields } from "./read-files.ts";
import type { Json } from "../core/base/json.ts";

type ToolRequest = Pick<CompletionRequest, "system" | "prompt" | "tools" | "steps">;

interface SdkInput {
  readonly messages: ModelMessage[];
  readonly tools?: ToolSet;
  readonly toolChoice?: "none";
}

/** The messages after the instructions, and the tools. */
export async function sdkInputOf({ prompt, tools = [], steps = [] }: ToolRequest): Promise<SdkInput> {
  const { assistantModelMessageSchema, jsonSchema } = await import("ai");
  const turns = steps.flatMap((step) => {
    // A step made by another model has no SDK message to repeat.
    const own = assistantModelMessageSchema.safeParse(step.completion.memo);
    return [own.success ? own.data : rebuildTurn(step.completion), resultsOf(step)];
  });
  const messages: ModelMessage[] = [{ role: "user", content: prompt }, ...turns];
  const offered = tools.map(({ name, description, parameters }) => {
    return [name, { description, inputSchema: jsonSchema(parameters) }] as const;
  });
  if (offered.length > 0) return { messages, tools: Object.fromEntries(offered) };
  // Some providers reject earlier calls without the tools they name, so these are listed but may not be called.
  const called = steps.flatMap(({ results }) => results.map(({ call }) => call.name));
  const inputSchema = jsonSchema({ type: "object" });
  const named = Object.fromEntries(called.map((name) => [name, { inputSchema }]));
  return called.length === 0 ? { messages } : { messages, tools: named, toolChoice: "none" };
}

/** The tool calls of a completion, and the model's own message, to be repeated in the next step. */
export function callsOf(
  called: readonly { readonly toolCallId: string; readonly toolName: string; readonly input: unknown }[],
  responses: readonly ModelMessage[],
): { readonly calls?: readonly ToolCall[]; readonly memo?: unknown } {
  if (called.length === 0) return {};
  // Arguments that the SDK could not parse are text.
  const calls = called.map(({ toolCallId: id, toolName: name, input }) => ({ id, name, args: toJson(input) }));
  // The SDK itself answers invalid calls; those answers are skipped.
  return { calls, memo: responses.find(({ role }) => role === "assistant") };
}

/** For providers that do not report output tokens. */
export const estimateOutput = (text: string, calls: readonly ToolCall[] = []): number =>
  estimateTokens(text) + sumOf(calls, (call) => estimateTokens(JSON.stringify(call)));

/** For providers that do not report input tokens. */
export const estimateInput = ({ system, prompt, tools = [], steps = [] }: ToolRequest): number =>
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
      // Providers accept only objects; the result explains what was wrong.
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

/** The SDK parsed it from JSON. */
const toJson = (value: unknown): Json => JSON.parse(JSON.stringify(value));
