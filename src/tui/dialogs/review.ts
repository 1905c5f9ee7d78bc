/**
 * A draft beside the text that it would replace, for the dialogs that rewrite one summary or many: side by side where
 * there is room, else below each other, or as a diff. And the words that both have for waiting, for trouble and for the end.
 */

import type { SummaryId } from "../../core/model/types.ts";
import type { PartOf } from "../../core/model/store.ts";
import { missingModel } from "../../core/maintenance/rewrite.ts";
import type { PlannedRewrite } from "../../core/maintenance/rewrite.ts";
import { diffLines, unifiedDiff } from "../../format/diff.ts";
import { textLines } from "../../format/passages.ts";
import type { Paint } from "../../format/paint.ts";
import { aboveWords, changeOf, kindWords, rangeWords } from "../../format/rewrite.ts";
import type { Ask } from "../asks.ts";
import type { Asking, Binding, Frame, LayerEvent, Step } from "../contract.ts";
import { beside, ends, fitAll, laidOutOnce, place, spinner } from "../widgets/draw.ts";
import { scrolled } from "../widgets/list.ts";
import type { Scroll } from "../keys.ts";
import type { Trouble } from "../port.ts";
import type { Drafted, PlannedWork } from "./rewrite-asks.ts";
import { timestampToMs } from "../../core/base/time.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { breakLines, widthOf, wrap } from "../../format/width.ts";
import { oneLine } from "../../format/safe-text.ts";
import type { Page } from "../../format/page.ts";

export interface Review {
  readonly target: PlannedRewrite;
  readonly draft: Drafted;
  readonly isDiff: boolean;
  /** The first line that is seen, of each text. */
  readonly top: number;
}

/** What such a dialog goes through. */
export type Phase =
  /** It shows what would be done; `words` say what is being read for that. */
  | { readonly kind: "plan"; readonly words: string }
  | { readonly kind: "in flight"; readonly target: PlannedRewrite; readonly since: Timestamp }
  | { readonly kind: "review"; readonly review: Review }
  | { readonly kind: "applying"; readonly review: Review; readonly words: string; readonly isTooLate: boolean }
  /** `again`: what was asked in vain. */
  | { readonly kind: "trouble"; readonly trouble: Trouble; readonly again: Asking }
  /** It shows what was done. */
  | { readonly kind: "ended" };

interface Dialog {
  readonly phase: Phase;
  /** The first line that is seen of what would be done, or was. */
  readonly top: number;
}

/** One slot for all that is asked: the next ends what was before. */
export const slot = "rewrite";

/** Whether it is in one of these phases. */
export const during =
  (...kinds: readonly Phase["kind"][]) =>
  ({ phase }: Dialog): boolean =>
    kinds.includes(phase.kind);

export const startReview = (target: PlannedRewrite, draft: Drafted): Review => ({
  target,
  draft,
  isDiff: false,
  top: 0,
});

/** Has a draft put in place. */
export const applying = <S extends Dialog>(state: S, review: Review, partOf: PartOf): Step<S> => ({
  state: { ...state, phase: { kind: "applying", review, words: "opening the database", isTooLate: false } },
  asks: [{ kind: "rewriteApply", slot, draft: review.draft, partOf }],
});

/** For keys that have to do with the draft that is looked at. */
export const ofReview = <S extends Dialog>(act: (state: S, review: Review, frame: Frame) => Step<S>) => ({
  when: during("review"),
  does: (state: S, frame: Frame): Step<S> =>
    state.phase.kind === "review" ? act(state, state.phase.review, frame) : { state },
});

/** The keys that both dialogs have. */
export const reviewKeys = <S extends Dialog>(
  apply: (state: S, review: Review) => Step<S>,
  retry: (state: S, again: Asking, frame: Frame) => Step<S>,
) =>
  ({
    apply: {
      keys: ["y", "enter"],
      short: "apply",
      says: "put the new text in place",
      changes: true,
      ...ofReview(apply),
    },
    retry: {
      keys: ["enter"],
      short: "again",
      says: "try again what did not work",
      changes: true,
      when: during("trouble"),
      does: (state: S, frame: Frame): Step<S> =>
        state.phase.kind === "trouble" ? retry(state, state.phase.again, frame) : { state },
    },
    diff: {
      keys: ["d"],
      short: "diff",
      says: "show what changes as a diff, or both texts again",
      ...ofReview<S>((state, review) => ({
        state: { ...state, phase: { kind: "review", review: { ...review, isDiff: !review.isDiff, top: 0 } } },
      })),
    },
  }) satisfies Record<string, Binding<S>>;

export const troubled = <S extends Dialog>(state: S, trouble: Trouble, ask: Ask): Step<S> => ({
  state: { ...state, phase: { kind: "trouble", trouble, again: { ...ask, slot } } },
});

/** What was to be applied can still be; why it was not is on the status line. */
export function failed<S extends Dialog>(state: S, { ask, failure }: LayerEvent<"failed">): Step<S> {
  const { phase } = state;
  if (phase.kind !== "applying") return troubled(state, failure, ask);
  return { state: { ...state, phase: { kind: "review", review: phase.review } } };
}

/** What is written says how far it is; once it is being written it cannot be stopped. */
export function progressed<S extends Dialog>(state: S, { progress }: LayerEvent<"progress">): Step<S> {
  const { phase } = state;
  const { done, of } = progress;
  const words = of === null ? progress.words : `${progress.words}, ${formatCount(done)} of ${formatCount(of)}`;
  if (phase.kind === "plan") return { state: { ...state, phase: { ...phase, words } } };
  if (phase.kind !== "applying") return { state };
  return { state: { ...state, phase: { ...phase, words, isTooLate: done > 0 } } };
}

/** Scrolls the texts of a draft, or else what stands in their place, of which `measure` tells the size. */
export const scrolledIn =
  <S extends Dialog>(measure: (state: S, frame: Frame) => { readonly count: number; readonly rows: number }) =>
  (state: S, by: Scroll, frame: Frame): S => {
    const { phase } = state;
    if (phase.kind === "review" || phase.kind === "applying")
      return { ...state, phase: { ...phase, review: scrolledReview(phase.review, by, frame) } };
    const { count, rows } = measure(state, frame);
    return { ...state, top: scrolled(state.top, by, count, rows) };
  };

/** As much as there is: texts are to be read. */
export const wholeBox = ({ columns, rows }: Frame) => ({
  columns: columns - (columns < 60 ? 4 : 6),
  rows: rows - (rows < 30 ? 2 : 4),
});

// ── The texts ────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Pane {
  readonly head: string;
  readonly lines: readonly string[];
  readonly columns: number;
  /** For the lines, without the heading. */
  readonly rows: number;
}

/** How the panes stand to each other. They scroll together. */
interface Panes {
  readonly kind: "one" | "beside" | "stacked";
  readonly panes: readonly Pane[];
}

/** Narrower, and lines would hold a few words each; the frame of the box is not counted. */
const besideMin = 96;
const stackedRowsMin = 8;

/** What stands around the texts: who it is about above, what changes and what can be said to it below. */
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
  // What the shorter one does not need is the other's.
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
  // A terminal's tabs are as wide as they like.
  const [before = "", after = ""] = [draft.old.text, draft.summary.text].map((text) => text.replaceAll("\t", "    "));
  const diff = unifiedDiff(before, after);
  return diff === "" ? ["the two texts are the same"] : diffLines(paint, diff, columns);
});

/** The furthest that scrolling both leads. */
const lastTop = (panes: readonly Pane[]): number =>
  panes.reduce((most, { lines, rows }) => Math.max(most, lines.length - rows), 0);

/** After a key or the wheel, or where the room has become another. */
function scrolledReview(review: Review, by: Scroll, frame: Frame): Review {
  const { panes } = panesOf(review, frame);
  const rows = panes.reduce((least, pane) => Math.min(least, pane.rows), frame.rows);
  return { ...review, top: scrolled(review.top, by, lastTop(panes) + rows, rows) };
}

/** `asked`: what is to be said or pressed below. */
export function drawReview(review: Review, frame: Frame, asked: string): readonly string[] {
  const { columns, paint } = frame;
  const { old, summary, isKept } = review.draft;
  const { kind, panes } = panesOf(review, frame);
  const tops = panes.map(({ lines, rows }) => Math.max(0, Math.min(review.top, lines.length - rows)));
  const marks = panes.map(({ lines, rows }, at) => paint.soft(place(tops[at] ?? 0, rows, lines.length)));
  const [first = [], second = []] = panes.map((pane, at) => {
    const seen = fitAll(pane.lines.slice(tops[at]), pane.columns, pane.rows);
    return kind === "one" ? seen : [ends(pane.head, marks[at] ?? "", pane.columns), ...seen];
  });
  const [head = "", ...when] = headLines(review.target, frame).slice(0, headRows(frame));
  const level = old.level === summary.level ? "" : `, level ${old.level} → ${summary.level}`;
  const change = `Δ tokens: ${changeOf(old.tokens, summary.tokens)}${level}`;
  const kept = isKept ? paint.soft("a draft of an earlier time") : "";
  return [
    kind === "one" ? ends(head, marks[0] ?? "", columns) : head,
    ...when,
    ...(kind === "beside" ? besides(panes, first, second, paint) : [...first, ...second]),
    ...(footRows(frame) === 1 ? [] : [ends(change, kept, columns)]),
    asked,
  ];
}

const besides = (panes: readonly Pane[], first: readonly string[], second: readonly string[], paint: Paint) =>
  beside(
    { lines: first, columns: 1 + (panes[0]?.columns ?? 0) },
    { lines: second, columns: 1 + (panes[1]?.columns ?? 0) },
    first.length,
    paint,
  );

/** `━━━ Rewrite: sum_f8ee4e7a5a7b7090 (d1, 36 children) ━━━`, and of when it is. */
export function headLines(target: PlannedRewrite, { columns, paint, zone }: Page): readonly string[] {
  const head = `━━━ Rewrite: ${target.summary} (${kindWords(target)})`;
  const closed = widthOf(head) + 4 > columns ? head : `${head} ━━━`;
  const range = rangeWords(target, zone);
  return [paint.depth(target.depth, closed), range === null ? "" : `Time range: ${range}`, ""];
}

// ── What is said ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** A question, or what is going on, and the keys that answer it as far as there is room. */
export function question(words: string, keys: readonly string[], { columns, paint }: Page): string {
  const shown = keys.filter((_, at) => widthOf(`${words}  ${keys.slice(0, at + 1).join(" · ")}`) <= columns);
  return `${paint.strong(words)}  ${paint.soft(shown.join(" · "))}`;
}

/** `asking scripted/one for sum_x (d1 prompt), 12 s of 120 s` */
export function waitingWords(
  what: string,
  { plan, timeoutSeconds }: PlannedWork,
  since: Timestamp,
  frame: Frame,
): string {
  const seconds = Math.max(0, Math.floor((timestampToMs(frame.now) - timestampToMs(since)) / 1_000));
  const name = plan.model?.name ?? "nobody";
  return `${spinner(frame.beat)} asking ${name} ${what}, ${seconds} s of ${timeoutSeconds} s`;
}

export const promptWords = ({ depth }: PlannedRewrite): string => `(${depth === 0 ? "leaf" : `d${depth}`} prompt)`;

export const uselessTrouble = (reason: string): Trouble => ({
  message: `the answer is of no use: ${reason}`,
  hint: "the old text stays, and nothing was changed",
});

export const currentTrouble: Trouble = {
  message: "it says already what this model wrote from the very same",
  hint: "f asks for another text",
};

export const staleTrouble = (reason: string): Trouble => ({
  message: `${reason}: nothing was applied`,
  hint: "↵ drafts it again, from what it stands for now",
});

export const troubleLines = ({ message, hint }: Trouble, page: Page): readonly string[] => [
  ...brokenUp(`✗ ${message}`, page).map(page.paint.caution),
  ...(hint === null ? [] : brokenUp(page.typed(hint), page).map(page.paint.soft)),
];

/** Why what is planned cannot be begun; null if it can. */
export function hindranceLines({ model }: PlannedWork["plan"], page: Page & Partial<Frame>): readonly string[] | null {
  const { readOnly = null } = page;
  if (model === null) {
    const { message, hint = null } = missingModel();
    return ["", ...troubleLines({ message, hint }, page)];
  }
  return readOnly === null ? null : ["", page.paint.caution(`nothing can be changed: ${readOnly}`)];
}

/** Between words where they fit, and within those that do not. */
const brokenUp = (text: string, { columns }: Page): readonly string[] =>
  breakLines(oneLine(text), columns).flatMap((line) => wrap(line, columns));

/** What was written from a text that is no more, as the status line says it. */
export const aboveForms = (count: number): readonly (readonly string[])[] =>
  count === 0 ? [] : [[aboveWords(count), `${formatCount(count)} above from the old text`]];

/** The way back, as the status line says it, in full or in short. */
export const wayBack = (change: number): readonly string[] => [`change ${change}, u takes it back`, "u takes it back"];

/** A notice of as much as fits: of each part the first form that does. The status line is wider than the box by this. */
const noticeSpare = 3;

export const noticeOf = (words: string, parts: readonly (readonly string[])[], { columns }: Frame): string =>
  parts.reduce((said, forms) => {
    const longer = forms.map((form) => `${said} · ${form}`);
    return longer.find((each) => widthOf(each) <= columns + noticeSpare) ?? said;
  }, words);

/** `Rewrote sum_x: 1523t → 1401t (-122)` */
export const rewroteWords = (id: SummaryId, before: number, after: number): string =>
  `Rewrote ${id}: ${before}t → ${after}t (${after > before ? "+" : ""}${after - before})`;
