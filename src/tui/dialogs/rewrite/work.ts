/** Progress of a rewrite over many summaries, and the report at its end. */

import type { SummaryId } from "../../../core/model/types.ts";
import type { PlannedRewrite } from "../../../core/maintenance/rewrite.ts";
import type { Page } from "../../../format/page.ts";
import { breakLines, widthOf } from "../../../format/width.ts";
import { oneLine } from "../../../format/safe-text.ts";
import { plural, formatCount } from "../../../core/base/format.ts";
import {
  aboutLines,
  aboveWords,
  changeOf,
  doneWords,
  signed,
  unreachedWords,
  uselessWords,
} from "../../../format/rewrite.ts";
import type { Frame, Notice } from "../../contract.ts";
import { fit } from "../../widgets/draw.ts";

export interface Work {
  /** Whether drafts are applied without a question. */
  readonly isAuto: boolean;
  /** The one change that records all rewrites; null until the first is applied. */
  readonly change: number | null;
  /** How often another process changed the current summary before its draft was applied. */
  readonly stales: number;
  /** In the order of the targets; the next target is the current one. */
  readonly outcomes: readonly Outcome[];
  /** Summaries that were written from replaced texts. */
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

/** The progress bar, what is going on, and the outcomes so far with the newest at the bottom. */
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
      applied === 0 ? "nothing applied yet" : doneWords("so far", applied, before, after),
      ...(skipped === 0 ? [] : [`${skipped} skipped`]),
      ...(unusable.length === 0 ? [] : [`${unusable.length} unusable`]),
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
      return `${name}  ${paint.caution("unusable:")} ${oneLine(outcome.reason)}`;
    case "skipped":
      return `${name}  ${paint.soft("skipped")}`;
    case "current":
      return `${name}  ${paint.soft("already up to date")}`;
  }
}

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

/** `Rewrote 38 summaries. Total: 45,230t → 38,100t (-7,130)`; a single one by its id. */
export function noticeOf(work: Work, did: "Rewrote" | "Repaired", isSingle: boolean, { columns }: Frame): Notice {
  const { change } = work;
  const { applied, before, after, skipped, above } = totalsOf(work);
  if (change === null) {
    const kept = `nothing was changed; ${skipped === 1 ? "the draft is" : "the drafts are"} kept`;
    return { tone: "info", text: skipped > 0 ? kept : "cancelled: nothing was changed" };
  }
  const [only] = work.outcomes;
  const words =
    isSingle && only !== undefined
      ? `${did} ${only.target.summary}: ${before}t → ${after}t (${after > before ? "+" : ""}${after - before})`
      : `${did} ${plural(applied, "summary", "summaries")}. Total: ${formatCount(before)}t → ${formatCount(after)}t (${signed(after - before)})`;
  const undo = [`u undoes change ${change}`, "u undoes it"];
  const outdated = above === 0 ? [] : [[aboveWords(above), `${formatCount(above)} above from the old text`]];
  // The status line is wider than the dialog's box by this.
  const room = columns + 3;
  const text = [undo, ...outdated].reduce((said, forms) => {
    const longer = forms.map((form) => `${said} · ${form}`);
    return longer.find((each) => widthOf(each) <= room) ?? said;
  }, words);
  return { tone: "good", text };
}

export function endLines(work: Work, did: string, of: number, page: Page): readonly string[] {
  const { applied, before, after, skipped, current, unusable, above } = totalsOf(work);
  const unreached = of - work.outcomes.length;
  const when = (count: number, words: string): readonly string[] => (count === 0 ? [] : [words]);
  return [
    ...when(applied, doneWords(did.toLowerCase(), applied, before, after)),
    ...when(current, `${plural(current, "summary is", "summaries are")} already up to date`),
    ...when(
      skipped,
      `${plural(skipped, "summary was", "summaries were")} skipped; the ${skipped === 1 ? "draft is" : "drafts are"} kept`,
    ),
    ...when(unusable.length, uselessWords(unusable.length)),
    ...unusable.flatMap(({ target, reason }) => aboutLines(page, target.summary, oneLine(reason))),
    ...when(unreached, `${unreachedWords(unreached)}; run it again to continue there`),
    work.change === null ? "nothing was changed" : `change ${work.change}: press u to undo`,
    ...when(above, `${aboveWords(above)}; press w there to rewrite ${above === 1 ? "it" : "them"}`),
  ].flatMap((line) => breakLines(line, page.columns));
}
