/** Estimates the model calls and tokens of planned passes or rewrites, and tabulates them by depth. */

import type { PlannedPass } from "../core/compaction/plan-compaction.ts";
import { notesTokens, renderPrompt, type Templates } from "../core/prompts/summary.ts";
import { formatCount, plural } from "../core/base/format.ts";
import { estimateTokens } from "../core/base/tokens.ts";
import type { Paint } from "./paint.ts";
import { table } from "./table.ts";

export interface Cost {
  readonly calls: number;
  /** If every unusable answer leads to a second call. */
  readonly callsMax?: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
}

/** The time and speaker before each message in a prompt. */
const labelTokens = 14;

/** Assumes that the previous summary is as long as this one, and that no second attempt is needed. */
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
    inputTokens += fixed + previous + (pass.readTokens ?? pass.sourceTokens + labelTokens * pass.sources);
    outputTokens += pass.targetTokens + (pass.depth === 0 ? notesTokens : 0);
  }
  return { calls: passes.length, inputTokens, outputTokens };
}

/** One row per depth; `old` adds a column with the tokens of the texts to be replaced. */
export function passTable<P extends PlannedPass>(
  paint: Paint,
  passes: readonly P[],
  width: number | null,
  old?: (pass: P) => number,
): readonly string[] {
  const rows = [...Map.groupBy(passes, ({ depth }) => depth)]
    .toSorted(([a], [b]) => a - b)
    .map(([depth, of]) => {
      const sum = (value: (pass: P) => number): number => of.reduce((total, pass) => total + value(pass), 0);
      const sources = sum((pass) => pass.sources);
      return [
        `d${depth}`,
        formatCount(of.length),
        depth === 0 ? plural(sources, "message") : `${formatCount(sources)} × d${depth - 1}`,
        formatCount(sum((pass) => pass.sourceTokens)),
        ...(old === undefined ? [] : [formatCount(sum(old))]),
        `→ ${formatCount(sum((pass) => pass.targetTokens))}`,
      ];
    });
  return table(
    [
      { title: "depth" },
      { title: "summaries", align: "right" },
      { title: "from", align: "right", spare: true },
      { title: "tokens in", align: "right", spare: true },
      ...(old === undefined ? [] : [{ title: "old", align: "right" } as const]),
      { title: "target", align: "right" },
    ],
    rows,
    width,
    paint,
  );
}
