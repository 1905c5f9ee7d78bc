/**
 * A model with tools, asked until it answers. It calls them as often as it likes, within bounds: a call that makes no
 * sense is told so and is no end of it, and a model that only ever calls is asked for an answer without any.
 */

import { errorText } from "../base/errors.ts";
import type { CompletionRequest, Model, ToolCall, ToolOffer, ToolStep } from "../model/store.ts";
import { completeWithin } from "./metering.ts";
import type { Json } from "../base/json.ts";
import { lastDelegatePrompt } from "../prompts/delegate.ts";

export interface LoopTool extends ToolOffer {
  run(args: Json): Promise<{ readonly text: string; readonly isError: boolean }>;
}

export interface LoopTask extends Pick<CompletionRequest, "system" | "prompt" | "conversation"> {
  readonly maxTokens: number;
  readonly signal: AbortSignal | undefined;
  readonly tools: readonly LoopTool[];
  readonly onStep: (step: number) => void;
}

export type LoopOutcome =
  | { readonly kind: "answered"; readonly text: string; /** Whether it ended early. */ readonly isCut?: boolean }
  | { readonly kind: "failed"; readonly reason: string };

const stepsMax = 8;
const callsMax = 8;
/** Beside the answer a model may think, and call tools. */
const roomTokens = 1_500;

/** Never throws for a model or a tool. Ends with the signal, if there is one. */
export async function runToolLoop(model: Model, task: LoopTask): Promise<LoopOutcome> {
  const { system, prompt, maxTokens, conversation, signal } = task;
  const steps: ToolStep[] = [];
  for (let step = 1; ; step++) {
    const tools = step > stepsMax ? [] : task.tools;
    task.onStep(step);
    const completion = await completeWithin(model, {
      purpose: "expand",
      conversation,
      system,
      // Some providers take no steps where no tools are offered, so what was read is told again in the last prompt.
      prompt: step > stepsMax ? lastDelegatePrompt(prompt, readingsOf(steps)) : prompt,
      temperature: 0.2,
      maxOutputTokens: maxTokens + roomTokens,
      ...(signal && { signal }),
      ...(tools.length > 0 && { tools: tools.map(toOffer), steps: [...steps] }),
    });
    if (completion.kind === "refused")
      return { kind: "failed", reason: `${model.name} did not answer (${completion.refusal}): ${completion.message}` };
    const calls = tools.length > 0 ? (completion.calls ?? []) : [];
    if (calls.length === 0) return { kind: "answered", text: completion.text, isCut: completion.finish === "length" };
    const results: ToolStep["results"][number][] = [];
    for (const [place, call] of calls.entries()) results.push({ call, ...(await runCall(tools, call, place)) });
    steps.push({ completion, results });
  }
}

const toOffer = ({ name, description, parameters }: ToolOffer): ToolOffer => ({ name, description, parameters });

const readingsOf = (steps: readonly ToolStep[]): readonly string[] =>
  steps.flatMap(({ results }) => results.flatMap(({ text, isError }) => (isError ? [] : [text])));

async function runCall(
  tools: readonly LoopTool[],
  { name, args }: ToolCall,
  place: number,
): Promise<{ readonly text: string; readonly isError: boolean }> {
  if (place >= callsMax) return { text: `not called: at most ${callsMax} calls at a time`, isError: true };
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined)
    return { text: `there is no tool ${name}; there is ${tools.map((each) => each.name).join(", ")}`, isError: true };
  try {
    return await tool.run(args);
  } catch (error) {
    // Told to the model like any other result: it can ask in another way, or answer from what it has.
    return { text: errorText(error), isError: true };
  }
}
