/**
 * A plan, then yes or no: what the dialogs have in common that change something without a model. The plan is shown in
 * the words of the command line, and nothing is written before a yes to exactly what is shown.
 */

import { wrapTextWithAnsi } from "@earendil-works/pi-tui";
import { obstacleLines, undoLines, undoRefusal } from "../../format/changes.ts";
import { dissolutionLines } from "../../format/dissolve.ts";
import { fixLines } from "../../format/findings.ts";
import { transplantationLines } from "../../format/transplant.ts";
import type { Asking, Binding, Frame, Module, Place, Step } from "../contract.ts";
import { ends, fitAll, spinner } from "../widgets/draw.ts";
import { createScroll, scrolled } from "../widgets/list.ts";
import type { Progress, Trouble } from "../port.ts";
import { isSameChange } from "./changes-asks.ts";
import type { ChangeRequest, PlannedChange } from "./changes-asks.ts";
import { breakLines } from "../../format/width.ts";
import { harmless } from "../../format/safe-text.ts";
import type { Page } from "../../format/page.ts";

type Kind = ChangeRequest["kind"];

export interface Planning<K extends Kind = Kind> {
  readonly kind: K;
  readonly request: ChangeRequest & { readonly kind: K };
  readonly phase: Phase;
  /** The first line that is seen. */
  readonly top: number;
}

type Phase =
  /** `shown`: what was planned before something else was asked for. */
  | { readonly kind: "planning"; readonly shown: PlannedChange | null }
  /** `isAgain`: it is not what was shown first. */
  | { readonly kind: "asking"; readonly planned: PlannedChange; readonly isAgain: boolean }
  | { readonly kind: "refused"; readonly refusal: Trouble }
  | { readonly kind: "applying"; readonly planned: PlannedChange; readonly progress: Progress };

/** One slot for all: what is planned no longer matters once it is applied. */
const planAsk = (request: ChangeRequest): Asking => ({ kind: "planChange", slot: "change", request });

/** Something else is wanted: what is shown stays until that is planned, and cannot be applied meanwhile. */
export const planAnew = <K extends Kind>(state: Planning<K>, request: Planning<K>["request"]): Step<Planning<K>> => ({
  state: { ...state, request, phase: { kind: "planning", shown: shownIn(state) } },
  asks: [planAsk(request)],
});

const shownIn = ({ phase }: Planning): PlannedChange | null =>
  phase.kind === "planning" ? phase.shown : phase.kind === "refused" ? null : phase.planned;

// ── The dialog ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** What tells one of these dialogs from the others. */
interface Given<K extends Kind> extends Pick<Module<Planning<K>>, "name" | "title"> {
  readonly request: (place: Place<K>) => Planning<K>["request"];
  /** Beside those that all have. */
  readonly keys?: readonly Binding<Planning<K>>[];
}

export function createPlan<K extends Kind>({ name, title, request, keys = [] }: Given<K>): Module<Planning<K>> {
  const scroll = createScroll<Planning<K>>((state, by, frame) => ({
    ...state,
    top: scrolled(state.top, by, bodyLines(state, frame).length, bodyRows(state, frame)),
  }));
  return {
    name,
    title,
    open: (place) => ({
      kind: place.kind,
      request: request(place),
      phase: { kind: "planning", shown: null },
      top: 0,
    }),
    box(state, frame) {
      const columns = Math.min(columnsMax, frame.columns - (frame.columns < 60 ? 4 : 8));
      const page = { ...frame, columns, bounds: columns };
      return { columns, rows: bodyLines(state, page).length + footLines(state, page).length };
    },
    keys: [
      {
        keys: ["y", "enter"],
        short: "apply",
        says: "do what is shown, after a backup",
        changes: true,
        when: ({ phase }) => !isRefused(phase),
        disabled: ({ phase }) => whyNotYet[phase.kind],
        does: apply,
      },
      { keys: ["n", "escape", "q"], says: "go back without changing anything", does: cancel },
      ...scroll.keys,
      ...keys,
    ],
    isBusy: ({ phase }) => phase.kind === "planning" || phase.kind === "applying",
    reads: (state) => (state.phase.kind === "applying" ? [] : [planAsk(state.request)]),
    answers: {
      planChange: (state, planned) => asking(state, planned, false),
      applyChange: (state, told) =>
        told.kind === "planned again"
          ? asking(state, told.planned, true)
          : { state, go: { kind: "back" }, notice: { tone: "good", text: told.words } },
    },
    on: {
      ...scroll.on,
      failed: (state, { failure }) => ({
        state: { ...state, phase: { kind: "refused", refusal: failure }, top: 0 },
        notice: {
          tone: "bad",
          text: isTooLate(state.phase)
            ? "it failed while it was written; u shows whether it was done"
            : "it cannot be done as things are; nothing was changed",
        },
      }),
      progress: ({ phase, ...state }, { progress }) => ({
        state: { ...state, phase: phase.kind === "applying" ? { ...phase, progress } : phase },
      }),
    },
    draw,
  };
}

const whyNotYet: Readonly<Record<Phase["kind"], string | null>> = {
  planning: "it is still being planned",
  asking: null,
  refused: null,
  applying: "it is being done already",
};

const isRefused = (phase: Phase): boolean =>
  phase.kind === "refused" || (phase.kind === "asking" && refusalIn(phase.planned) !== null);

/** Why what is planned cannot be done; null where it can. */
function refusalIn(planned: PlannedChange): Trouble | null {
  if (planned.kind === "undo" && planned.plan.obstacles.length > 0) return undoRefusal(planned.plan);
  if (planned.kind === "transplant" && planned.plan.summaries.length === 0)
    return { message: "there is nothing to transplant", hint: null };
  if (planned.kind === "fix" && planned.plan === null)
    return { message: "there is nothing to set right without a decision", hint: null };
  return null;
}

// ── Update ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Whoever was shown something else before is told that it is another plan now. */
function asking<K extends Kind>(state: Planning<K>, planned: PlannedChange, isStale: boolean): Step<Planning<K>> {
  const { phase } = state;
  const before = phase.kind === "asking" || phase.kind === "applying" ? phase.planned : null;
  const isOther = isStale || (before !== null && !isSameChange(before, planned));
  const isAgain = isOther || (phase.kind === "asking" && phase.isAgain);
  return { state: { ...state, phase: { kind: "asking", planned, isAgain }, top: isOther ? 0 : state.top } };
}

function apply<K extends Kind>(state: Planning<K>): Step<Planning<K>> {
  const { phase, request } = state;
  if (phase.kind !== "asking" || isRefused(phase)) return { state };
  const { planned } = phase;
  const progress = { done: 0, of: null, words: "looking whether it still holds; esc cancels" };
  return {
    state: { ...state, phase: { kind: "applying", planned, progress } },
    asks: [{ kind: "applyChange", slot: "change", request, planned }],
  };
}

function cancel<K extends Kind>(state: Planning<K>): Step<Planning<K>> {
  const { phase } = state;
  if (isTooLate(phase))
    return { state, notice: { tone: "said", text: "too late to cancel: it is written whole, in one step" } };
  if (isRefused(phase)) return { state, go: { kind: "back" } };
  return { state, go: { kind: "back" }, notice: { tone: "said", text: "cancelled: nothing was changed" } };
}

/** The first step is the backup; what comes after it cannot be stopped. */
const isTooLate = (phase: Phase): boolean => phase.kind === "applying" && phase.progress.done > 0;

// ── Draw ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

const columnsMax = 100;

function draw(state: Planning, frame: Frame): readonly string[] {
  const { columns, paint } = frame;
  const rows = bodyRows(state, frame);
  const body = bodyLines(state, frame);
  const [gap = "", ...foot] = footLines(state, frame);
  const end = state.top + rows;
  const place = `${Math.min(100, Math.round((100 * end) / body.length))}%${end < body.length ? " ↓" : ""}`;
  const below = body.length > rows ? ends(gap, paint.soft(place), columns) : gap;
  return [...fitAll(body.slice(state.top, end), columns, Math.min(rows, body.length)), below, ...foot];
}

const bodyRows = (state: Planning, frame: Frame): number => Math.max(1, frame.rows - footLines(state, frame).length);

function bodyLines(state: Planning, page: Page): readonly string[] {
  if (state.phase.kind === "refused") return refusalLines(state.phase.refusal, page);
  const planned = shownIn(state);
  const lines = planned === null ? [] : linesOf(planned, page);
  return lines.slice(0, 1 + lines.findLastIndex((line) => line !== "")).flatMap((line) => broken(line, page));
}

function linesOf(planned: PlannedChange, page: Page): readonly string[] {
  switch (planned.kind) {
    case "dissolve":
      return dissolutionLines(page, planned.plan);
    case "transplant":
      return transplantationLines(page, planned.plan, planned.source, planned.target);
    case "undo":
      return [
        ...undoLines(page, planned.plan),
        ...(planned.plan.obstacles.length === 0 ? [] : ["", ...obstacleLines(page, planned.plan)]),
      ];
    case "fix":
      return planned.plan === null ? [] : fixLines(page, planned.plan);
  }
}

/** Every piece as far in as the line is. */
function broken(line: string, { columns }: Page): readonly string[] {
  const indent = /^ */.exec(line)?.[0] ?? "";
  const pieces = wrapTextWithAnsi(line.slice(indent.length), Math.max(1, columns - indent.length));
  return pieces.map((piece) => indent + piece);
}

/** Commands are kept whole, where they fit in a line. */
const refusalLines = ({ message, hint }: Trouble, { paint, typed, columns }: Page): readonly string[] => [
  ...breakLines(harmless(message), columns).map(paint.caution),
  ...(hint === null ? [] : breakLines(harmless(typed(hint)), columns).map(paint.soft)),
];

/** What is to be said or asked below the plan; it is always seen. */
function footLines({ phase, request }: Planning, page: Page & Partial<Frame>): readonly string[] {
  const { paint, beat = 0, readOnly = null } = page;
  const said = (line: string): readonly string[] => ["", ...broken(line, page)];
  switch (phase.kind) {
    case "planning":
      return [...(phase.shown === null ? [] : [""]), `${spinner(beat)} planning …`];
    case "refused":
      return said(paint.soft(`esc goes back${otherwise(request, page)}`));
    case "applying":
      return said(`${spinner(beat)} ${progressWords(phase.progress)} …`);
    case "asking": {
      const refusal = refusalIn(phase.planned);
      if (refusal !== null) return ["", ...refusalLines(refusal, page)];
      if (readOnly !== null) return said(paint.caution(`nothing can be changed: ${readOnly}`));
      return [
        ...(phase.isAgain ? said(paint.caution("it changed meanwhile, and was planned again: look once more")) : []),
        ...said(`${paint.strong(questionOf(request))}  ${paint.soft(`y yes · n no${otherwise(request, page)}`)}`),
      ];
    }
  }
}

const progressWords = ({ done, of, words }: Progress): string =>
  of === null ? words : `${words} ${Math.floor((100 * done) / of)}%`;

/** What else could be asked for, where there is room for it. */
const otherwise = (request: ChangeRequest, { columns }: Page): string =>
  request.kind !== "dissolve" || columns < 66 ? "" : ` · x ${request.purge ? "keeps" : "removes"} the summary itself`;

function questionOf(request: ChangeRequest): string {
  switch (request.kind) {
    case "dissolve":
      return request.purge ? "Dissolve and purge it?" : "Dissolve it?";
    case "transplant":
      return "Copy them?";
    case "undo":
      return "Take it back?";
    case "fix":
      return "Set it right?";
  }
}
