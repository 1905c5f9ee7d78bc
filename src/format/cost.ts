/** What the model will be asked for in what was planned: passes of a compaction, or summaries to be written anew. */

import type { PlannedPass } from "../core/compaction/plan-compaction.ts";
import { renderPrompt } from "../core/prompts/summary.ts";
import type { Templates } from "../core/prompts/summary.ts";
import { estimateTokens } from "../core/base/tokens.ts";

export interface Cost {
  readonly calls: number;
  /** Where an answer of no use is followed by a second question. */
  readonly callsMax?: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** What stands before each message in a prompt: when it was said, and by whom. */
const labelTokens = 14;

/** About: a summary that comes before is as long as this one, and no second attempt is needed. */
export function costOf(
  { passes }: { readonly passes: readonly PlannedPass[] },
  templates: Templates,
  customInstructions: string | null,
): Cost {
  const around = new Map<number, number>();
  const tokensAround = ({ depth, targetTokens }: PlannedPass): number => {
    const input = {
      depth,
      targetTokens,
      level: "normal",
      previousContext: null,
      segment: "",
      customInstructions,
    } as const;
    const { system, prompt } = renderPrompt(templates, input);
    return estimateTokens(`${system}\n${prompt}`);
  };
  let inputTokens = 0;
  let outputTokens = 0;
  for (const pass of passes) {
    const fixed = around.get(pass.depth) ?? tokensAround(pass);
    around.set(pass.depth, fixed);
    const previous = pass.depth <= 1 ? pass.targetTokens : 0;
    inputTokens += fixed + previous + pass.sourceTokens + labelTokens * pass.sources;
    outputTokens += pass.targetTokens;
  }
  return { calls: passes.length, inputTokens, outputTokens };
}
