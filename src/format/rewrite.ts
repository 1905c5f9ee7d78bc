/** Summaries that are to be written anew, as a person is told of them: what it takes, what is wrong, what became of it. */

import type { Finding } from "../core/maintenance/inspect.ts";
import type { SummaryId } from "../core/model/types.ts";
import type { Templates } from "../core/prompts/summary.ts";
import type { PlannedRewrite, PlannedRewrites, RewriteReport, RewriteResult } from "../core/maintenance/rewrite.ts";
import type { Spend } from "../core/model-calls/metering.ts";
import { costOf } from "./cost.ts";
import type { Cost } from "./cost.ts";
import { callLines, modelLines } from "./model.ts";
import type { NamedModel } from "./model.ts";
import { formatRange, parseTimestamp } from "../core/base/time.ts";
import { formatCount, plural } from "../core/base/format.ts";
import { breakLines } from "./width.ts";
import { facts, table } from "./table.ts";
import { oneLine } from "./safe-text.ts";
import type { Page } from "./page.ts";

// ── The plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Kept {
  /** Whose drafts need not be asked for again. */
  readonly kept: readonly SummaryId[];
  /** Those that say already what they would be made to say. */
  readonly current: readonly SummaryId[];
}

/** Of a look at what is kept. */
export function keptOf({ results }: RewriteReport): Kept {
  const of = (wanted: RewriteResult["status"]): readonly SummaryId[] =>
    results.flatMap(({ status, target }) => (status === wanted ? [target.summary] : []));
  return { kept: of("drafted"), current: of("current") };
}

export interface RewritesPlan extends PlannedRewrites, Kept {
  readonly model: NamedModel | null;
  readonly cost: Cost;
}

/** What the model will be asked for: all but what is kept, or stands already. */
export function costOfRewrites(
  { targets }: PlannedRewrites,
  { kept, current }: Kept,
  templates: Templates,
  customInstructions: string | null,
): Cost {
  const known = new Set([...kept, ...current]);
  const asked = targets.filter(({ summary }) => !known.has(summary));
  return {
    ...costOf({ passes: asked }, templates, customInstructions),
    // In the place of a poor text a second, shorter answer will do if the first is of no use.
    callsMax: asked.reduce((calls, { level }) => calls + (level === "normal" ? 1 : 2), 0),
  };
}

/** `again`: how another text is asked for where the model's own stands. */
export function planLines(page: Page, plan: RewritesPlan, spend: Spend, again: string): readonly string[] {
  const { targets, model, cost, kept, current } = plan;
  if (targets.length === 0) return [];
  const currentWords = `${plural(current.length, "summary says", "summaries say")} already what it wrote; ${again}`;
  const keptWords = `${plural(kept.length, "draft")} of an earlier run ${kept.length === 1 ? "is" : "are"} used`;
  return facts(
    [
      [
        "model",
        ...(model === null ? ["none"] : [...modelLines(page, model), ...callLines(page, cost, spend)]),
        ...(kept.length > 0 ? [keptWords] : []),
        ...(current.length > 0 ? [currentWords] : []),
      ],
      ["plan", ...depthTable(page, targets)],
    ],
    page.paint,
    page.bounds,
  );
}

function depthTable({ paint, bounds }: Page, targets: readonly PlannedRewrite[]): readonly string[] {
  const rows = [...Map.groupBy(targets, ({ depth }) => depth)]
    .toSorted(([a], [b]) => a - b)
    .map(([depth, of]) => {
      const sum = (value: (target: PlannedRewrite) => number): string =>
        formatCount(of.reduce((total, target) => total + value(target), 0));
      const sources = of.reduce((total, target) => total + target.sources, 0);
      const from = depth === 0 ? plural(sources, "message") : `${formatCount(sources)} × d${depth - 1}`;
      return [
        `d${depth}`,
        formatCount(of.length),
        from,
        sum((target) => target.sourceTokens),
        sum((target) => target.tokens),
        sum((target) => target.targetTokens),
      ];
    });
  return table(
    [
      { title: "depth" },
      { title: "summaries", align: "right" },
      { title: "from", align: "right", spare: true },
      { title: "tokens in", align: "right", spare: true },
      { title: "old", align: "right" },
      { title: "target", align: "right" },
    ],
    rows,
    bounds && bounds - "model  ".length,
    paint,
  );
}

export const skippedLines = (page: Page, { skipped }: PlannedRewrites): readonly string[] =>
  skipped.length === 0
    ? []
    : [
        `${plural(skipped.length, "summary", "summaries")} cannot be rewritten:`,
        ...skipped.flatMap(({ summary, reason }) => aboutLines(page, summary, reason)),
      ];

/** What a new text mends, each kind once: after a conversation without a model there may be thousands of one. */
export function findingLines({ bounds }: Page, findings: readonly Finding[]): readonly string[] {
  const kinds = Map.groupBy(findings, ({ subject, message }) => message.replace(subject, "").replace(/\d+/g, ""));
  const lines = [...kinds.values()].flatMap(([first, ...rest]) => {
    const more = rest.length === 0 ? "" : ` (and ${formatCount(rest.length)} more like it)`;
    return first === undefined ? [] : indented(`${oneLine(first.message)}${more}`, bounds);
  });
  return findings.length === 0 ? [] : [`${plural(findings.length, "finding")} that a new text mends:`, ...lines];
}

/** One of several, with what is to be said of it. */
export const aboutLines = ({ bounds }: Page, summary: SummaryId, words: string): readonly string[] =>
  indented(`${summary}: ${words}`, bounds);

const indented = (text: string, bounds: number | null): readonly string[] =>
  breakLines(text, (bounds ?? Infinity) - 2).map((line) => `  ${line}`);

// ── Each of them ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** `d1, 36 children` */
export const kindWords = ({ depth, sources }: Pick<PlannedRewrite, "depth" | "sources">): string =>
  `d${depth}, ${depth === 0 ? plural(sources, "message") : plural(sources, "child", "children")}`;

/** `2026-02-17 15:37–21:14 UTC`; null where it is not known. */
export function rangeWords(
  { earliestAt, latestAt }: Pick<PlannedRewrite, "earliestAt" | "latestAt">,
  zone: string,
): string | null {
  const from = parseTimestamp(earliestAt ?? "");
  return from === null ? null : formatRange(from, parseTimestamp(latestAt ?? "") ?? from, zone).replace(" – ", "–");
}

/** `-122 (1,523 → 1,401)` */
export const changeOf = (before: number, after: number): string =>
  `${signed(after - before)} (${formatCount(before)} → ${formatCount(after)})`;

export const signed = (change: number): string =>
  `${change < 0 ? "-" : change > 0 ? "+" : ""}${formatCount(Math.abs(change))}`;

// ── What became of them ──────────────────────────────────────────────────────────────────────────────────────────────

/** `rewrote 38 summaries: 45,230 → 38,100 tokens (-7,130)` */
export const doneWords = (did: string, count: number, before: number, after: number): string =>
  `${did} ${plural(count, "summary", "summaries")}: ${formatCount(before)} → ${formatCount(after)} tokens (${signed(after - before)})`;

export const uselessWords = (count: number): string =>
  `${plural(count, "summary keeps its", "summaries keep their")} text, no answer was of use:`;

export const unreachedWords = (count: number): string =>
  `${plural(count, "summary was", "summaries were")} not reached`;

export const aboveWords = (count: number): string =>
  `${plural(count, "summary above was", "summaries above were")} written from the old text`;
