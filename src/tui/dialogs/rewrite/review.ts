/** A draft beside the text it would replace: side by side, stacked, or as a diff. */

import type { PlannedRewrite } from "../../../core/maintenance/rewrite.ts";
import { diffLines, unifiedDiff } from "../../../format/diff.ts";
import { textLines } from "../../../format/passages.ts";
import { plural } from "../../../core/base/format.ts";
import { widthOf } from "../../../format/width.ts";
import type { Page } from "../../../format/page.ts";
import { changeOf, kindWords, rangeWords } from "../../../format/rewrite.ts";
import type { Frame } from "../../contract.ts";
import type { Scroll } from "../../keys.ts";
import { beside, ends, fitAll, laidOutOnce, place } from "../../widgets/draw.ts";
import { scrolled } from "../../widgets/list.ts";
import type { Drafted } from "../../../operator/rewrite.ts";

export interface Review {
  readonly target: PlannedRewrite;
  readonly draft: Drafted;
  readonly isDiff: boolean;
  /** The first visible line of each text. */
  readonly top: number;
}

interface Pane {
  readonly head: string;
  readonly lines: readonly string[];
  readonly columns: number;
  /** Without the heading. */
  readonly rows: number;
}

/** The panes scroll together. */
interface Panes {
  readonly kind: "one" | "beside" | "stacked";
  readonly panes: readonly Pane[];
}

/** Below this width, two columns would hold only a few words per line. */
const besideMin = 96;
const stackedRowsMin = 8;

const headRows = ({ rows }: Frame): number => (rows < 14 ? 1 : 3);
const footRows = ({ rows }: Frame): number => (rows < 8 ? 1 : 2);

function panesOf({ draft, isDiff }: Review, frame: Frame): Panes {
  const { columns } = frame;
  const rows = Math.max(1, frame.rows - headRows(frame) - footRows(frame));
  if (isDiff) return { kind: "one", panes: [{ head: "", lines: diffOf(draft, frame), columns, rows }] };
  const [before, after] = textsOf(draft, frame);
  if (columns >= besideMin)
    return { kind: "beside", panes: [before, after].map((pane) => ({ ...pane, rows: rows - 1 })) };
  if (rows < stackedRowsMin) {
    const lines = [before.head, ...before.lines, "", after.head, ...after.lines];
    return { kind: "one", panes: [{ head: "", lines, columns, rows }] };
  }
  // The shorter text leaves its spare rows to the longer one.
  const room = rows - 2;
  const least = Math.max(Math.floor(room / 2), room - after.lines.length);
  const above = Math.min(before.lines.length + 1, least);
  return {
    kind: "stacked",
    panes: [
      { ...before, rows: above },
      { ...after, rows: room - above },
    ],
  };
}

type Text = Omit<Pane, "rows">;

const textsOf = laidOutOnce((draft: Drafted, { columns, paint }): readonly [Text, Text] => {
  const isBeside = columns >= besideMin;
  const [left, right] = isBeside ? [Math.floor((columns - 3) / 2), Math.ceil((columns - 3) / 2)] : [columns, columns];
  const textOf = (name: string, { tokens, text }: Drafted["summary"], width: number, indent: string): Text => ({
    head: `${isBeside ? indent : ""}${paint.strong(name)} (${plural(tokens, "token")})`,
    lines: textLines({ bounds: width }, text, indent),
    columns: width,
  });
  return [
    textOf("OLD", draft.old, left, isBeside ? "" : "  "),
    textOf("NEW", draft.summary, right, isBeside ? " " : "  "),
  ];
});

const diffOf = laidOutOnce((draft: Drafted, { columns, paint }): readonly string[] => {
  // Terminals differ in the width of a tab.
  const [before = "", after = ""] = [draft.old.text, draft.summary.text].map((text) => text.replaceAll("\t", "    "));
  const diff = unifiedDiff(before, after);
  return diff === "" ? ["the two texts are identical"] : diffLines(paint, diff, columns);
});

const lastTop = (panes: readonly Pane[]): number =>
  panes.reduce((most, { lines, rows }) => Math.max(most, lines.length - rows), 0);

export function scrolledReview(review: Review, by: Scroll, frame: Frame): Review {
  const { panes } = panesOf(review, frame);
  const rows = panes.reduce((least, pane) => Math.min(least, pane.rows), frame.rows);
  return { ...review, top: scrolled(review.top, by, lastTop(panes) + rows, rows) };
}

/** `below`: the question or the progress in the last line. */
export function drawReview(review: Review, frame: Frame, below: string): readonly string[] {
  const { columns, paint } = frame;
  const { old, summary, isKept } = review.draft;
  const { kind, panes } = panesOf(review, frame);
  const tops = panes.map(({ lines, rows }) => Math.max(0, Math.min(review.top, lines.length - rows)));
  const marks = panes.map(({ lines, rows }, at) => paint.soft(place(tops[at] ?? 0, rows, lines.length)));
  const [first, second] = panes.map((pane, at) => {
    const seen = fitAll(pane.lines.slice(tops[at]), pane.columns, pane.rows);
    const lines = kind === "one" ? seen : [ends(pane.head, marks[at] ?? "", pane.columns), ...seen];
    return { lines, columns: pane.columns + 1 };
  });
  const [head = "", ...when] = headLines(review.target, frame).slice(0, headRows(frame));
  const level = old.level === summary.level ? "" : `, level ${old.level} → ${summary.level}`;
  const change = `Δ tokens: ${changeOf(old.tokens, summary.tokens)}${level}`;
  return [
    kind === "one" ? ends(head, marks[0] ?? "", columns) : head,
    ...when,
    ...(kind === "beside" && first !== undefined && second !== undefined
      ? beside(first, second, first.lines.length, paint)
      : [...(first?.lines ?? []), ...(second?.lines ?? [])]),
    ...(footRows(frame) === 1 ? [] : [ends(change, isKept ? paint.soft("stored draft") : "", columns)]),
    below,
  ];
}

/** `━━━ Rewrite: sum_f8ee4e7a5a7b7090 (d1, 36 children) ━━━`, then its time range. */
export function headLines(target: PlannedRewrite, { columns, paint, zone }: Page): readonly string[] {
  const head = `━━━ Rewrite: ${target.summary} (${kindWords(target)})`;
  const closed = widthOf(head) + 4 > columns ? head : `${head} ━━━`;
  const range = rangeWords(target, zone);
  return [paint.depth(target.depth, closed), range === null ? "" : `Time range: ${range}`, ""];
}
