/**
 * The tool loop: asks a model with tools until it answers, within bounds. A wrong call gets an error as its result.
 * A model that never stops calling is finally asked without tools.
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
/** Beyond the answer, for reasoning and calls. */
const roomTokens = 1_500;

/** Never throws for trouble of the model or a tool. Ends when the signal aborts. */
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
      // Some providers reject steps without tools, so the last prompt repeats what was read.
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

/** The model sees an error like any other result, and can try another way or answer from what it has. */
async function runCall(tools: readonly LoopTool[], { name, args }: ToolCall, place: number) {
  const failed = (text: string) => ({ text, isError: true });
  if (place >= callsMax) return failed(`not called: at most ${callsMax} calls at a time`);
  const tool = tools.find((each) => each.name === name);
  const names = tools.map((each) => each.name).join(", ");
  if (tool === undefined) return failed(`there is no tool ${name}; the tools are ${names}`);
  try {
    return await tool.run(args);
  } catch (error) {
    return failed(errorText(error));
  }
}
