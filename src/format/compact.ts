/** Describes a compaction: what it would fold and at what cost, and what it folded. */

import type { CompactReport, CompactRequest } from "../core/compaction/compact.ts";
import type { CompactionPlan } from "../core/compaction/plan-compaction.ts";
import type { Level } from "../core/model/types.ts";
import type { Spend } from "../core/model-calls/metering.ts";
import type { Templates } from "../core/prompts/summary.ts";
import { formatCount, listed } from "../core/base/format.ts";
import { comparison } from "./bars.ts";
import { costOf, passTable, type Cost } from "./cost.ts";
import { callLines, modelLines, type NamedModel } from "./model.ts";
import type { Page } from "./page.ts";
import { dueWords } from "./status.ts";
import { facts } from "./table.ts";
import { padEnd } from "./width.ts";

export interface ShownCompaction extends CompactionPlan {
  readonly mode: CompactRequest["mode"];
  readonly targetTokens: number | null;
  readonly model: NamedModel | null;
  /** Null without a model. */
  readonly cost: Cost | null;
}

/** `templates` is null without a model. */
export const compactionPlanOf = (
  planned: CompactionPlan,
  { mode, targetTokens, customInstructions }: Partial<CompactRequest> & Pick<CompactRequest, "mode">,
  model: NamedModel | null,
  templates: Templates | null,
): ShownCompaction => ({
  ...planned,
  mode,
  targetTokens: targetTokens ?? null,
  model,
  cost: templates && costOf(planned, templates, customInstructions ?? null),
});

export const isMissed = ({ targetTokens }: ShownCompaction, tokens: number): boolean =>
  targetTokens !== null && tokens > targetTokens;

/** Whether anything would be folded, by planned passes or on the way to a target. */
export const isFolding = (plan: ShownCompaction): boolean => plan.passes.length > 0 || isMissed(plan, plan.tokensAfter);

/** `nothing`: the words for an empty plan. `isApplied`: the result follows, and is compared instead. */
export function compactionLines(
  page: Page,
  plan: ShownCompaction,
  spend: Spend | null,
  { nothing, isApplied = false }: { readonly nothing: string; readonly isApplied?: boolean },
): readonly string[] {
  const { paint, columns, bounds } = page;
  const { passes, model, cost, tokensBefore, tokensAfter } = plan;
  const bars = isApplied || passes.length === 0 ? [] : comparison(tokensBefore, tokensAfter, columns - 9, paint);
  const shown =
    passes.length === 0
      ? [nothingWords(plan, nothing)]
      : passTable(paint, passes, bounds && bounds - padded("").length - 2);
  return facts(
    [
      [padded("due"), dueWords(plan.due)],
      [
        "model",
        ...modelLines(page, isApplied && model ? { ...model, problem: null } : model),
        ...callLines(page, cost, spend),
      ],
      ["plan", ...shown, ...targetLines(plan)],
      ...(bars.length === 0 ? [] : [["prompt", ...bars] as const]),
    ],
    paint,
    bounds,
  );
}

/** Aligns the plan with the result below it. */
const padded = (name: string): string => padEnd(name, "folded".length);

const targetLines = (plan: ShownCompaction): readonly string[] =>
  isMissed(plan, plan.tokensAfter)
    ? [`the target of ${formatCount(plan.targetTokens ?? 0)} tokens is out of reach: about this much remains`]
    : [];

function nothingWords({ mode, due, targetTokens }: ShownCompaction, nothing: string): string {
  if (mode === "due" && due.kind === "nothing") return "nothing to do";
  if (targetTokens !== null) {
    const isReached = due.promptTokens <= targetTokens;
    return isReached ? `nothing to do: already at or below ${formatCount(targetTokens)}` : "no regular pass is left";
  }
  return nothing;
}

export function foldedLines(
  page: Page,
  { passes, tokensBefore, tokensAfter }: CompactReport,
  tookMs: number,
): readonly string[] {
  if (passes.length === 0) return [];
  const { paint, columns, bounds } = page;
  const depths = [...Map.groupBy(passes, ({ depth }) => depth)].toSorted(([a], [b]) => a - b);
  const made = depths.map(([depth, of]) => `${formatCount(of.length)} × d${depth}`);
  const levels = [...Map.groupBy(passes, ({ level }) => level)].map(([level, of]) =>
    levelWords(page, level, of.length),
  );
  return facts(
    [
      [padded("folded"), `${listed(made)} in ${(tookMs / 1_000).toFixed(1)} s`],
      ["levels", ...levels],
      ["prompt", ...comparison(tokensBefore, tokensAfter, columns - 9, paint)],
    ],
    paint,
    bounds,
  );
}

function levelWords({ paint }: Page, level: Level, count: number): string {
  const words = `${formatCount(count)} ${level}`;
  const why = levelReasons[level];
  return why === null ? words : `${level === "truncated" ? paint.caution(words) : words} ${paint.soft(why)}`;
}

const levelReasons: Readonly<Record<Level, string | null>> = {
  normal: null,
  aggressive: "(the model's first answer was unusable)",
  extractive: "(without a model)",
  truncated: "(the model gave no usable answer; `lcm doctor` lists them)",
};
