/** How the rewrite dialog looks in each phase: plan or preview, progress, review, trouble, report. */

import { missingModel, type PlannedRewrite } from "../../../core/maintenance/rewrite.ts";
import { formatCount, plural } from "../../../core/base/format.ts";
import { timestampToMs, type Timestamp } from "../../../core/base/time.ts";
import { callLines, modelLines } from "../../../format/model.ts";
import { textLines } from "../../../format/passages.ts";
import { breakLines, widthOf, wrap } from "../../../format/width.ts";
import { facts } from "../../../format/table.ts";
import { oneLine } from "../../../format/safe-text.ts";
import type { Page } from "../../../format/page.ts";
import { findingLines, planLines, skippedLines } from "../../../format/rewrite.ts";
import type { Asking, Frame, Destination } from "../../contract.ts";
import type { Scroll } from "../../keys.ts";
import type { Trouble } from "../../../operator/port.ts";
import { ends, fit, fitAll, laidOutOnce, place, rule, spinner } from "../../widgets/draw.ts";
import { scrolled } from "../../widgets/list.ts";
import type { PlannedWork, SourcePreview } from "../../../operator/rewrite.ts";
import { drawReview, headLines, scrolledReview, type Review } from "./review.ts";
import { drawWork, endLines, placeOf, questionOf, type Work } from "./work.ts";

export interface RewriteDialog extends Destination<"rewrite"> {
  /** Null until it is read. */
  readonly planned: PlannedWork | null;
  readonly isPlanning: boolean;
  readonly work: Work;
  readonly phase: Phase;
  /** The first visible line of the plan, the source or the report. */
  readonly top: number;
}

type Phase =
  /** `words`: what is being read. */
  | { readonly kind: "plan"; readonly words: string }
  | { readonly kind: "in flight"; readonly target: PlannedRewrite; readonly since: Timestamp }
  | { readonly kind: "review"; readonly review: Review }
  | { readonly kind: "applying"; readonly review: Review; readonly words: string; readonly isTooLate: boolean }
  /** `again`: the ask that failed. */
  | { readonly kind: "trouble"; readonly trouble: Trouble; readonly again: Asking }
  /** Shows the report. */
  | { readonly kind: "ended" };

export const isSingle = ({ select }: RewriteDialog): boolean => "summary" in select;
export const isRepair = ({ select }: RewriteDialog): boolean => "repair" in select;
export const targetsOf = ({ planned }: RewriteDialog): readonly PlannedRewrite[] => planned?.plan.targets ?? [];
export const isKept = ({ planned }: RewriteDialog): boolean => (planned?.plan.kept.length ?? 0) > 0;
export const isCurrent = ({ planned }: RewriteDialog): boolean => (planned?.plan.current.length ?? 0) > 0;
export const didWord = (state: RewriteDialog) => (isRepair(state) ? "Repaired" : "Rewrote");

export const currentTrouble: Trouble = {
  message: "its text is already this model's summary of the same sources",
  hint: "press f to ask for another text",
};

/** Why the model cannot be asked; null if it can. */
export function whyNot(state: RewriteDialog): string | null {
  const { planned } = state;
  if (planned === null) return "still planning";
  const { targets, skipped, model } = planned.plan;
  if (targets.length > 0) return model === null ? missingModel().message : null;
  return (isSingle(state) && skipped[0]?.reason) || nothingWords(state);
}

const nothingWords = (state: RewriteDialog): string => (isRepair(state) ? "nothing to repair" : "nothing to rewrite");

/** Takes all the room for texts to read, and only what it needs for a plan or a report. */
export function boxOf(state: RewriteDialog, frame: Frame): { readonly columns: number; readonly rows: number } {
  const { columns, rows } = frame;
  const whole = { columns: columns - (columns < 60 ? 4 : 6), rows: rows - (rows < 30 ? 2 : 4) };
  if (isSingle(state) || !["plan", "ended"].includes(state.phase.kind)) return whole;
  const width = Math.min(100, whole.columns);
  const page = { ...frame, columns: width, bounds: width };
  return { columns: width, rows: bodyOf(state, page).length + footOf(state, page).length };
}

export function scrolledDialog(state: RewriteDialog, by: Scroll, frame: Frame): RewriteDialog {
  const { phase } = state;
  if (phase.kind === "review" || phase.kind === "applying")
    return { ...state, phase: { ...phase, review: scrolledReview(phase.review, by, frame) } };
  const { lines, rows } = isSingle(state) ? previewOn(state, frame) : textOn(state, frame);
  return { ...state, top: scrolled(state.top, by, lines.length, rows) };
}

export function drawRewrite(state: RewriteDialog, frame: Frame): readonly string[] {
  const { phase, work } = state;
  const targets = targetsOf(state);
  switch (phase.kind) {
    case "plan":
      return isSingle(state) ? drawPreview(state, frame) : drawText(state, frame);
    case "ended":
      return drawText(state, frame);
    case "review": {
      const asked = isSingle(state)
        ? question("Replace the old text?", ["y yes", "n no", "d diff", "f ask again"], frame)
        : question(
            `${placeOf(work, targets)}  Replace the old text?`,
            ["y yes", "n skip", "A yes to all", "d diff", "esc stop"],
            frame,
          );
      return drawReview(phase.review, frame, asked);
    }
    case "applying": {
      const words = `${spinner(frame.beat)} ${phase.words} …`;
      return work.isAuto ? drawWork(work, targets, frame, words) : drawReview(phase.review, frame, words);
    }
    case "in flight":
      return isSingle(state) ? drawPreview(state, frame) : drawWork(work, targets, frame, waitingWords(state, frame));
    case "trouble":
      return drawTrouble(state, phase.trouble, frame);
  }
}

/** `asking scripted/one for sum_x (d1 prompt), 12 s of 120 s` */
function waitingWords(state: RewriteDialog, { now, beat }: Frame): string {
  const { phase, planned } = state;
  if (phase.kind !== "in flight" || planned === null) return "";
  const { summary, depth } = phase.target;
  const seconds = Math.max(0, Math.floor((timestampToMs(now) - timestampToMs(phase.since)) / 1_000));
  const what = `${isSingle(state) ? `for ${summary} ` : ""}(${depth === 0 ? "leaf" : `d${depth}`} prompt)`;
  const name = planned.plan.model?.name ?? "no model";
  return `${spinner(beat)} asking ${name} ${what}, ${seconds} s of ${planned.timeoutSeconds} s`;
}

/** A question, and as many of its keys as fit. */
function question(words: string, keys: readonly string[], { columns, paint }: Page): string {
  const shown = keys.filter((_, at) => widthOf(`${words}  ${keys.slice(0, at + 1).join(" · ")}`) <= columns);
  return `${paint.strong(words)}  ${paint.soft(shown.join(" · "))}`;
}

// ── The plan and the report ──────────────────────────────────────────────────────────────────────────────────────────

function drawText(state: RewriteDialog, frame: Frame): readonly string[] {
  const { lines, rows, foot } = textOn(state, frame);
  const top = Math.max(0, Math.min(state.top, lines.length - rows));
  const [gap = "", ...asked] = foot;
  const below = ends(gap, frame.paint.soft(place(top, rows, lines.length)), frame.columns);
  return [...fitAll(lines.slice(top), frame.columns, Math.min(rows, lines.length)), below, ...asked];
}

function textOn(state: RewriteDialog, frame: Frame) {
  const foot = footOf(state, frame);
  return { lines: bodyOf(state, frame), rows: Math.max(1, frame.rows - foot.length), foot };
}

function bodyOf(state: RewriteDialog, page: Page): readonly string[] {
  const { planned, phase, work } = state;
  if (phase.kind === "ended") return endLines(work, didWord(state), targetsOf(state).length, page);
  if (planned === null) return [];
  const { targets, skipped } = planned.plan;
  return targets.length + skipped.length === 0 ? [nothingWords(state)] : linesOfPlan(planned, page);
}

const linesOfPlan = laidOutOnce(({ plan, spend, findings }: PlannedWork, page) => [
  ...findingLines(page, findings),
  ...planLines(page, plan, spend, "press w on one, then f, to ask again"),
  ...skippedLines(page, plan),
]);

/** The question or the obstacle in the last lines, which are always visible. */
function footOf(state: RewriteDialog, page: Page & Partial<Frame>): readonly string[] {
  const { planned, phase, select } = state;
  const { paint, beat = 0, readOnly = null } = page;
  if (phase.kind === "ended") return ["", paint.soft("press ↵ to close")];
  if (planned === null) return [`${spinner(beat)} ${phase.kind === "plan" ? phase.words : ""} …`];
  const { targets, skipped, model } = planned.plan;
  if (targets.length === 0 && "summary" in select)
    return troubleLines(
      { message: `${select.summary} cannot be rewritten: ${skipped[0]?.reason ?? ""}`, hint: null },
      page,
    );
  if (targets.length === 0) return ["", paint.soft("press esc to go back")];
  if (model === null) {
    const { message, hint = null } = missingModel();
    return ["", ...troubleLines({ message, hint }, page)];
  }
  if (readOnly !== null) return ["", paint.caution(`nothing can be changed: ${readOnly}`)];
  if (!isSingle(state))
    return ["", question(questionOf(targets, isRepair(state)), ["y yes", "n no", "A yes to all"], page)];
  if (isCurrent(state)) return ["", question("Ask for another text?", ["f yes", "esc no"], page)];
  return isKept(state)
    ? ["", question("Show the stored draft?", ["↵ yes", "f ask again", "esc no"], page)]
    : ["", question("Send it to the model?", ["↵ yes", "esc no"], page)];
}

// ── One summary and its source ───────────────────────────────────────────────────────────────────────────────────────

function drawPreview(state: RewriteDialog, frame: Frame): readonly string[] {
  const { columns, paint } = frame;
  const { above, lines, rows, below } = previewOn(state, frame);
  const top = Math.max(0, Math.min(state.top, lines.length - rows));
  const mark = place(top, rows, lines.length);
  return [
    ...above,
    ...(lines.length === 0 ? [] : [rule(`source${mark === "" ? "" : ` ── ${mark}`}`, columns, paint)]),
    ...fitAll(lines.slice(top), columns, rows),
    ...below.map((line) => fit(line, columns)),
  ];
}

/** The facts, as much of the source as there is room for, and the question, which is always visible. */
function previewOn(state: RewriteDialog, frame: Frame) {
  const { planned, phase } = state;
  const [target] = targetsOf(state);
  const below =
    phase.kind === "in flight"
      ? ["", question(waitingWords(state, frame), ["esc cancels"], frame)]
      : footOf(state, frame);
  const preview = planned?.preview ?? null;
  if (planned === null || preview === null || target === undefined) return { above: [], lines: [], rows: 0, below };
  const above = targetLines(target, planned, frame);
  const room = frame.rows - below.length;
  const rows = Math.max(0, room - above.length - 1);
  const lines = rows < 1 ? [] : sourceLines(preview, frame);
  return { above: above.slice(0, room), lines, rows: lines.length === 0 ? 0 : rows, below };
}

const sourceLines = laidOutOnce(({ source, isWhole }: SourcePreview, page) =>
  textLines(page, isWhole ? source : `${source}\n… (shortened)`),
);

function targetLines(target: PlannedRewrite, { plan, spend, preview }: PlannedWork, page: Page): readonly string[] {
  const { depth, sources, sourceTokens, targetTokens, tokens, template } = target;
  const above = preview?.above ?? 0;
  const [head = "", range = ""] = headLines(target, page);
  const from = depth === 0 ? plural(sources, "message") : `${plural(sources, "summary", "summaries")} of d${depth - 1}`;
  const draft =
    plan.kept.length > 0
      ? ["stored by an earlier run: ↵ shows it without a model call, f asks again"]
      : plan.current.length > 0
        ? [`${currentTrouble.message}; ${currentTrouble.hint}`]
        : [];
  const outdated = above === 0 ? [] : [`${plural(above, "summary was", "summaries were")} written from this text`];
  return [
    head,
    ...(range === "" ? [] : [range]),
    ...facts(
      [
        ["source", `${from}, ${plural(sourceTokens, "token")}`],
        ["prompt", `${template}; ${formatCount(tokens)} tokens now, about ${formatCount(targetTokens)} wanted`],
        [
          "model",
          ...(plan.model === null ? ["none"] : [...modelLines(page, plan.model), ...callLines(page, plan.cost, spend)]),
        ],
        ...draft.map((words) => ["draft", words] as const),
        ...outdated.map((words) => ["above", words] as const),
      ],
      page.paint,
      page.bounds,
    ),
  ];
}

// ── Trouble ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function drawTrouble(state: RewriteDialog, trouble: Trouble, frame: Frame): readonly string[] {
  const lines = troubleLines(trouble, frame);
  const targets = targetsOf(state);
  const keys = isSingle(state)
    ? ["↵ yes", "f ask again", "esc no"]
    : ["↵ yes", state.planned === null ? "esc no" : "esc stops and keeps what was applied"];
  const head = isSingle(state)
    ? targets.slice(0, 1).flatMap((target) => headLines(target, frame))
    : state.planned === null
      ? []
      : drawWork(state.work, targets, { ...frame, rows: frame.rows - lines.length - 2 }, "");
  return [...head, ...lines, "", question("Try again?", keys, frame)];
}

const troubleLines = ({ message, hint }: Trouble, page: Page): readonly string[] => [
  ...brokenUp(`✗ ${message}`, page).map(page.paint.caution),
  ...(hint === null ? [] : brokenUp(page.typed(hint), page).map(page.paint.soft)),
];

/** Broken between words, and within those that are longer than a line. */
const brokenUp = (text: string, { columns }: Page): readonly string[] =>
  breakLines(oneLine(text), columns).flatMap((line) => wrap(line, columns));
