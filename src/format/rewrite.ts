/** Describes rewrites of summaries: the plan and its cost, the findings they fix, and the results. */

import type { Finding } from "../core/maintenance/inspect.ts";
import type { SummaryId } from "../core/model/types.ts";
import type { Templates } from "../core/prompts/summary.ts";
import type { PlannedRewrite, PlannedRewrites, RewriteReport, RewriteResult } from "../core/maintenance/rewrite.ts";
import type { Spend } from "../core/model-calls/metering.ts";
import { costOf, passTable, type Cost } from "./cost.ts";
import { callLines, modelLines, type NamedModel } from "./model.ts";
import { formatRange, parseTimestamp } from "../core/base/time.ts";
import { formatCount, plural } from "../core/base/format.ts";
import { breakLines } from "./width.ts";
import { facts } from "./table.ts";
import { oneLine } from "./safe-text.ts";
import type { Page } from "./page.ts";

export interface Kept {
  /** Summaries whose stored draft can be used. */
  readonly kept: readonly SummaryId[];
  /** Summaries whose text already is what the model wrote. */
  readonly current: readonly SummaryId[];
}

export function keptOf({ results }: RewriteReport): Kept {
  const of = (wanted: RewriteResult["status"]): readonly SummaryId[] =>
    results.flatMap(({ status, target }) => (status === wanted ? [target.summary] : []));
  return { kept: of("drafted"), current: of("current") };
}

export interface RewritesPlan extends PlannedRewrites, Kept {
  readonly model: NamedModel | null;
  readonly cost: Cost;
}

/** Drafts that are kept and texts that are current need no call. */
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
    // For a text below normal, a second, shorter attempt follows an unusable answer.
    callsMax: asked.reduce((calls, { level }) => calls + (level === "normal" ? 1 : 2), 0),
  };
}

/** `again`: how to request another text where the current one is already the model's. */
export function planLines(page: Page, plan: RewritesPlan, spend: Spend, again: string): readonly string[] {
  const { targets, model, cost, kept, current } = plan;
  if (targets.length === 0) return [];
  const currentWords = `${plural(current.length, "summary already has", "summaries already have")} the model's text; ${again}`;
  const keptWords = `${plural(kept.length, "draft")} from an earlier run will be used`;
  return facts(
    [
      [
        "model",
        ...(model === null ? ["none"] : [...modelLines(page, model), ...callLines(page, cost, spend)]),
        ...(kept.length > 0 ? [keptWords] : []),
        ...(current.length > 0 ? [currentWords] : []),
      ],
      [
        "plan",
        ...passTable(page.paint, targets, page.bounds && page.bounds - "model  ".length, ({ tokens }) => tokens),
      ],
    ],
    page.paint,
    page.bounds,
  );
}

export const skippedLines = (page: Page, { skipped, outside = [] }: PlannedRewrites): readonly string[] => [
  ...(skipped.length === 0
    ? []
    : [
        `${plural(skipped.length, "summary", "summaries")} cannot be rewritten:`,
        ...skipped.flatMap(({ summary, reason }) => aboutLines(page, summary, reason)),
      ]),
  ...(outside.length === 0
    ? []
    : [
        `${plural(outside.length, "summary is", "summaries are")} left out, because the context no longer has ` +
          `${outside.length === 1 ? "it" : "them"}; pass --summary ID to rewrite one:`,
        ...indented(listedInPart(outside), page.bounds),
      ]),
];

const idsShown = 8;

const listedInPart = (ids: readonly SummaryId[]): string => {
  const more = ids.length - idsShown;
  return `${ids.slice(0, idsShown).join(", ")}${more > 0 ? ` and ${formatCount(more)} more` : ""}`;
};

/** Each kind once: a conversation compacted without a model may have thousands of one kind. */
export function findingLines({ bounds }: Page, findings: readonly Finding[]): readonly string[] {
  const kinds = Map.groupBy(findings, ({ subject, message }) => message.replace(subject, "").replace(/\d+/g, ""));
  const lines = [...kinds.values()].flatMap(([first, ...rest]) => {
    const more = rest.length === 0 ? "" : ` (and ${formatCount(rest.length)} more)`;
    return first === undefined ? [] : indented(`${oneLine(first.message)}${more}`, bounds);
  });
  return findings.length === 0 ? [] : [`${plural(findings.length, "finding")} that a rewrite fixes:`, ...lines];
}

export const aboutLines = ({ bounds }: Page, summary: SummaryId, words: string): readonly string[] =>
  indented(`${summary}: ${words}`, bounds);

const indented = (text: string, bounds: number | null): readonly string[] =>
  breakLines(text, (bounds ?? Infinity) - 2).map((line) => `  ${line}`);

/** `d1, 36 children` */
export const kindWords = ({ depth, sources }: Pick<PlannedRewrite, "depth" | "sources">): string =>
  `d${depth}, ${depth === 0 ? plural(sources, "message") : plural(sources, "child", "children")}`;

/** `2026-02-17 15:37–21:14 UTC`; null if unknown. */
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

/** `rewrote 38 summaries: 45,230 → 38,100 tokens (-7,130)` */
export const doneWords = (did: string, count: number, before: number, after: number): string =>
  `${did} ${plural(count, "summary", "summaries")}: ${formatCount(before)} → ${formatCount(after)} tokens (${signed(after - before)})`;

export const uselessWords = (count: number): string =>
  `${plural(count, "summary keeps its", "summaries keep their")} text, because no answer was usable:`;

export const unreachedWords = (count: number): string =>
  `${plural(count, "summary was", "summaries were")} not reached`;

export const aboveWords = (count: number): string =>
  `${plural(count, "summary above was", "summaries above were")} written from the old ${count === 1 ? "text" : "texts"}`;
