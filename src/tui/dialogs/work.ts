/** Of many summaries that are written anew, one after the other: what is to be done, how far it is, what became of each. */

import type { SummaryId } from "../../core/model/types.ts";
import type { PlannedRewrite } from "../../core/maintenance/rewrite.ts";
import {
  aboutLines,
  aboveWords,
  changeOf,
  doneWords,
  signed,
  unreachedWords,
  uselessWords,
} from "../../format/rewrite.ts";
import type { Frame, Notice } from "../contract.ts";
import { fit } from "../widgets/draw.ts";
import { aboveForms, noticeOf, wayBack } from "./review.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { breakLines } from "../../format/width.ts";
import { oneLine } from "../../format/safe-text.ts";
import type { Page } from "../../format/page.ts";

/** What has been done of the plan. */
export interface Work {
  /** Whether drafts are applied without being looked at. */
  readonly isAuto: boolean;
  /** The number of the change that all of it is; null until something is applied. */
  readonly change: number | null;
  /** How often this one had been changed by others when it was to be applied. */
  readonly stales: number;
  /** Of the targets in their order; the next one is worked on. */
  readonly outcomes: readonly Outcome[];
  /** What was written from texts that are replaced. */
  readonly above: readonly SummaryId[];
}

export type Outcome = { readonly target: PlannedRewrite } & (
  | { readonly status: "applied"; readonly before: number; readonly after: number }
  | { readonly status: "unusable"; readonly reason: string }
  | { readonly status: "skipped" | "current" }
);

export const noWork: Work = { isAuto: false, change: null, stales: 0, outcomes: [], above: [] };

/** `Rewrite 38 summaries (25 leaves, 10 d1, 2 d2, 1 d3)?` */
export function questionOf(targets: readonly PlannedRewrite[], isRepair: boolean): string {
  const depths = [...Map.groupBy(targets, ({ depth }) => depth)]
    .toSorted(([a], [b]) => a - b)
    .map(([depth, of]) => (depth === 0 ? plural(of.length, "leaf", "leaves") : `${formatCount(of.length)} d${depth}`));
  const what = plural(targets.length, "summary", "summaries");
  return `${isRepair ? "Repair" : "Rewrite"} ${what} (${depths.join(", ")})?`;
}

/** `7/38` */
export const placeOf = ({ outcomes }: Work, targets: readonly PlannedRewrite[]): string =>
  `${formatCount(outcomes.length + 1)}/${formatCount(targets.length)}`;

/** How far it is, what is going on, and what became of those before, the newest at the bottom. */
export function drawWork(
  work: Work,
  targets: readonly PlannedRewrite[],
  frame: Frame,
  words: string,
): readonly string[] {
  const { columns, rows, paint } = frame;
  const target = targets[work.outcomes.length];
  const { applied, before, after, skipped, unusable } = totalsOf(work);
  const share = work.outcomes.length / Math.max(1, targets.length);
  const cells = Math.floor(share * columns);
  const head = [
    `${paint.strong(placeOf(work, targets))}  ${target === undefined ? "" : `${target.summary} (d${target.depth})`}`,
    `${"█".repeat(cells)}${paint.soft("░".repeat(columns - cells))}`,
    ...(words === "" ? [] : [words]),
    [
      applied === 0 ? "nothing is applied yet" : doneWords("so far", applied, before, after),
      ...(skipped === 0 ? [] : [`${skipped} skipped`]),
      ...(unusable.length === 0 ? [] : [`${unusable.length} of no use`]),
    ].join(", "),
    "",
  ];
  const room = Math.max(0, rows - head.length);
  const lines = room === 0 ? [] : work.outcomes.slice(-room).map((outcome) => outcomeLine(outcome, frame));
  const blank = Array.from({ length: room - lines.length }, () => "");
  return [...head, ...lines, ...blank].slice(0, Math.max(0, rows)).map((line) => fit(line, columns));
}

function outcomeLine(outcome: Outcome, { paint }: Page): string {
  const { summary, depth } = outcome.target;
  const name = `${paint.depth(depth, `d${depth}`)} ${summary}`;
  switch (outcome.status) {
    case "applied":
      return `${name}  ${changeOf(outcome.before, outcome.after)}`;
    case "unusable":
      return `${name}  ${paint.caution("of no use:")} ${oneLine(outcome.reason)}`;
    case "skipped":
      return `${name}  ${paint.soft("skipped")}`;
    case "current":
      return `${name}  ${paint.soft("says already what it wrote")}`;
  }
}

// ── What has been done ───────────────────────────────────────────────────────────────────────────────────────────────

function totalsOf({ outcomes, above }: Work) {
  const of = <T extends Outcome["status"]>(status: T) =>
    outcomes.filter((each): each is Extract<Outcome, { readonly status: T }> => each.status === status);
  const applied = of("applied");
  const written = new Set(applied.map(({ target }) => target.summary));
  return {
    applied: applied.length,
    before: applied.reduce((sum, { before }) => sum + before, 0),
    after: applied.reduce((sum, { after }) => sum + after, 0),
    skipped: of("skipped").length,
    current: of("current").length,
    unusable: of("unusable"),
    above: [...new Set(above)].filter((id) => !written.has(id)).length,
  };
}

/** `Rewrote 38 summaries. Total: 45,230t → 38,100t (-7,130)` */
export function noticeOfWork(work: Work, isRepair: boolean, frame: Frame): Notice {
  const { change } = work;
  const { applied, before, after, above } = totalsOf(work);
  if (change === null) return { tone: "said", text: "cancelled: nothing was changed" };
  const did = isRepair ? "Repaired" : "Rewrote";
  const total = `Total: ${formatCount(before)}t → ${formatCount(after)}t (${signed(after - before)})`;
  const words = `${did} ${plural(applied, "summary", "summaries")}. ${total}`;
  const text = noticeOf(words, [wayBack(change), ...aboveForms(above)], frame);
  return { tone: "good", text };
}

export function endLines(
  work: Work,
  targets: readonly PlannedRewrite[],
  isRepair: boolean,
  page: Page,
): readonly string[] {
  const { applied, before, after, skipped, current, unusable, above } = totalsOf(work);
  const unreached = targets.length - work.outcomes.length;
  const did = isRepair ? "repaired" : "rewrote";
  const lines = [
    ...(applied === 0 ? [] : [doneWords(did, applied, before, after)]),
    ...(current === 0 ? [] : [`${plural(current, "summary says", "summaries say")} already what the model wrote`]),
    ...(skipped === 0
      ? []
      : [
          `${plural(skipped, "summary was", "summaries were")} skipped, and the ${skipped === 1 ? "draft is" : "drafts are"} kept`,
        ]),
    ...(unusable.length === 0 ? [] : [uselessWords(unusable.length)]),
    ...unusable.flatMap(({ target, reason }) => aboutLines(page, target.summary, oneLine(reason))),
    ...(unreached === 0 ? [] : [`${unreachedWords(unreached)}; doing it again goes on there`]),
    ...(work.change === null ? ["nothing was changed"] : [`change ${work.change}: u takes it back`]),
    ...(above === 0 ? [] : [`${aboveWords(above)}: w there writes ${above === 1 ? "it" : "them"} anew`]),
  ];
  return lines.flatMap((line) => breakLines(line, page.columns));
}
