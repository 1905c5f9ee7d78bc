/** The plan dialog that changes without a model share: show the plan, ask, apply exactly what was shown. */

import { wrapTextWithAnsi } from "@earendil-works/pi-tui";
import type { Asking, Binding, Frame, Module, Destination, Step } from "../contract.ts";
import { ends, fitAll, spinner } from "../widgets/draw.ts";
import { createScroll, scrolled } from "../widgets/list.ts";
import type { Progress, Trouble } from "../../operator/port.ts";
import { isSameChange, type Applied, type ChangeRequest, type PlannedChange } from "../../operator/changes.ts";
import { breakLines } from "../../format/width.ts";
import { plural } from "../../core/base/format.ts";
import { planLines, planRefusal } from "../../operator/plan-lines.ts";
import { harmless } from "../../format/safe-text.ts";
import type { Page } from "../../format/page.ts";

type Kind = ChangeRequest["kind"];

export interface Planning<K extends Kind = Kind> {
  readonly kind: K;
  readonly request: ChangeRequest & { readonly kind: K };
  readonly phase: Phase;
  /** The first visible line. */
  readonly top: number;
}

type Phase =
  /** `shown`: the plan before the request changed. */
  | { readonly kind: "planning"; readonly shown: PlannedChange | null }
  /** `isAgain`: it differs from the plan shown first. */
  | { readonly kind: "asking"; readonly planned: PlannedChange; readonly isAgain: boolean }
  | { readonly kind: "refused"; readonly refusal: Trouble }
  | { readonly kind: "applying"; readonly planned: PlannedChange; readonly progress: Progress };

/** One slot for planning and applying: a plan is no longer needed once it is applied. */
const planAsk = (request: ChangeRequest): Asking => ({ kind: "planChange", slot: "change", request });

/** Plans a changed request. The old plan stays visible meanwhile, and cannot be applied. */
export const planAgain = <K extends Kind>(state: Planning<K>, request: Planning<K>["request"]): Step<Planning<K>> => ({
  state: { ...state, request, phase: { kind: "planning", shown: shownIn(state) } },
  asks: [planAsk(request)],
});

const shownIn = ({ phase }: Planning): PlannedChange | null =>
  phase.kind === "planning" ? phase.shown : phase.kind === "refused" ? null : phase.planned;

// ── The dialog ───────────────────────────────────────────────────────────────────────────────────────────────────────

interface Given<K extends Kind> extends Pick<Module<Planning<K>>, "name" | "title"> {
  /** Help for the key that applies the plan. */
  readonly help?: string;
  /** Whether it changes nothing in the database. */
  readonly isReading?: true;
  /** Whether `lcm undo` cannot revert it: a stray ↵ must not apply it. */
  readonly isFinal?: true;
  readonly request: (place: Destination<K>) => Planning<K>["request"];
  /** In addition to the shared ones. */
  readonly keys?: readonly Binding<Planning<K>>[];
}

export function createPlan<K extends Kind>(given: Given<K>): Module<Planning<K>> {
  const { name, title, request, keys = [], help = "apply the plan, after a backup", isReading, isFinal } = given;
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
        keys: isFinal === true ? ["y"] : ["y", "enter"],
        short: "apply",
        help,
        ...(isReading === undefined && { changes: true }),
        when: ({ phase }) => !isRefused(phase),
        disabled: ({ phase }) => whyNotYet[phase.kind],
        does: apply,
      },
      {
        keys: ["n", "escape", "q"],
        help: "go back without changing anything; stop what can be stopped",
        does: cancel,
      },
      ...scroll.keys,
      ...keys,
    ],
    isBusy: ({ phase }) => phase.kind === "planning" || phase.kind === "applying",
    reads: (state) => (state.phase.kind === "applying" ? [] : [planAsk(state.request)]),
    answers: {
      planChange: (state, planned) => asking(state, planned, false),
      applyChange: (state, result) =>
        result.kind === "planned again"
          ? asking(state, result.planned, true)
          : { state, go: { kind: "back" }, notice: { tone: "good", text: appliedWords(state, result) } },
    },
    on: {
      ...scroll.on,
      failed: (state, { failure }) => ({
        state: { ...state, phase: { kind: "refused", refusal: withKey(failure) }, top: 0 },
        notice: {
          tone: "bad",
          text: failedWords(state.phase),
        },
      }),
      progress: ({ phase, ...state }, { progress }) => ({
        state: { ...state, phase: phase.kind === "applying" ? { ...phase, progress } : phase },
      }),
    },
    draw,
  };
}

/** Names the key for what a refusal offers. */
const withKey = ({ message, hint }: Trouble): Trouble => ({
  message,
  hint: hint?.replace("or fold without a model", `or ${ways.foldLocally}`) ?? null,
});

function failedWords(phase: Phase): string {
  if (isStoppable(phase)) return "it stopped; what was done before is kept";
  return isTooLate(phase)
    ? "writing failed; press u to see whether the change was made"
    : "this cannot be done; nothing was changed";
}

/** What was done, and the key that takes it back. */
function appliedWords({ request, phase }: Planning, { words, change }: Extract<Applied, { kind: "applied" }>): string {
  // The change is in the target's history, and u shows the source's.
  if (change !== null) return `${words} · ${request.kind === "transplant" ? "U" : "u"} undoes change ${change}`;
  const isCopy = phase.kind === "applying" && phase.planned.kind === "undo" && phase.planned.plan.again !== null;
  return isCopy ? `${words} · t copies them again` : words;
}

const whyNotYet: Readonly<Record<Phase["kind"], string | null>> = {
  planning: "still planning",
  asking: null,
  refused: null,
  applying: "already being applied",
};

const isRefused = (phase: Phase): boolean =>
  phase.kind === "refused" || (phase.kind === "asking" && refusalIn(phase.planned) !== null);

/** Keys that change the plan. */
const ways = {
  foldShortRuns: "press f to fold short runs too",
  foldLocally: "press m to fold without a model",
} as const;

const refusalIn = (planned: PlannedChange): Trouble | null => planRefusal(planned, ways);

// ── Update ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Marks a plan that differs from the one shown before. */
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
  const progress = { done: 0, of: null, words: "checking the plan again" };
  return {
    state: { ...state, phase: { kind: "applying", planned, progress } },
    asks: [{ kind: "applyChange", slot: "change", request, planned }],
  };
}

function cancel<K extends Kind>(state: Planning<K>): Step<Planning<K>> {
  const { phase } = state;
  if (isTooLate(phase)) return { state, notice: { tone: "info", text: "too late to cancel: it is being written" } };
  if (isRefused(phase)) return { state, go: { kind: "back" } };
  if (isStoppable(phase)) return { state, go: { kind: "back" }, notice: { tone: "info", text: stoppedWords(state) } };
  return { state, go: { kind: "back" }, notice: { tone: "info", text: "cancelled: nothing was changed" } };
}

/** The first step is the backup; after it, nothing can be stopped. */
const isTooLate = (phase: Phase): boolean =>
  phase.kind === "applying" && phase.progress.done > 0 && phase.progress.stops !== true;

const isStoppable = (phase: Phase): boolean => phase.kind === "applying" && phase.progress.stops === true;

function stoppedWords({ phase, request }: Planning): string {
  if (request.kind === "export") return "stopped: no file was written";
  const done = phase.kind === "applying" ? phase.progress.done : 0;
  return `stopped after ${plural(done, "summary", "summaries")}, which ${done === 1 ? "is" : "are"} kept; run it again to continue`;
}

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
  const lines = planned === null ? [] : planLines(planned, page, ways);
  return lines.slice(0, 1 + lines.findLastIndex((line) => line !== "")).flatMap((line) => broken(line, page));
}

/** Continuation lines keep the indentation. */
function broken(line: string, { columns }: Page): readonly string[] {
  const indent = /^ */.exec(line)?.[0] ?? "";
  const pieces = wrapTextWithAnsi(line.slice(indent.length), Math.max(1, columns - indent.length));
  return pieces.map((piece) => indent + piece);
}

const refusalLines = ({ message, hint }: Trouble, { paint, typed, columns }: Page): readonly string[] => [
  ...breakLines(harmless(message), columns).map(paint.caution),
  ...(hint === null ? [] : breakLines(harmless(typed(hint)), columns).map(paint.soft)),
];

/** The question or the progress below the plan, always visible. */
function footLines({ phase, request }: Planning, page: Page & Partial<Frame>): readonly string[] {
  const { paint, beat = 0, readOnly = null } = page;
  const said = (line: string): readonly string[] => ["", ...broken(line, page)];
  switch (phase.kind) {
    case "planning":
      return [...(phase.shown === null ? [] : [""]), `${spinner(beat)} planning …`];
    case "refused":
      return said(paint.soft(`press esc to go back${otherwise(request, page)}`));
    case "applying":
      return progressLines(phase.progress, page);
    case "asking": {
      const refusal = refusalIn(phase.planned);
      if (refusal !== null) return ["", ...refusalLines(refusal, page)];
      if (readOnly !== null) return said(paint.caution(`nothing can be changed: ${readOnly}`));
      return [
        ...(phase.isAgain ? said(paint.caution("the plan has changed since you last saw it: check it again")) : []),
        ...said(`${paint.strong(questionOf(request))}  ${paint.soft(`y yes · n no${otherwise(request, page)}`)}`),
      ];
    }
  }
}

/** A bar where the amount is known, the words, and how to stop. */
function progressLines({ done, of, words, stops }: Progress, page: Page & Partial<Frame>): readonly string[] {
  const { paint, columns, beat = 0 } = page;
  const share = of === null ? null : Math.min(1, done / Math.max(1, of));
  const percent = share === null ? "" : ` ${Math.floor(100 * share)}%`;
  const cancelling = done === 0 && stops !== true ? "; esc cancels" : "";
  const line = `${spinner(beat)} ${words}${cancelling}${percent} …${stops === true ? paint.soft("  esc stops it") : ""}`;
  const cells = Math.floor((share ?? 0) * columns);
  const bar =
    share === null || stops !== true ? [] : [`${"█".repeat(cells)}${paint.soft("░".repeat(columns - cells))}`];
  return ["", ...bar, ...broken(line, page)];
}

/** Keys that change the plan, where there is room. */
const otherwise = (request: ChangeRequest, { columns }: Page): string =>
  columns < 66
    ? ""
    : variants(request)
        .map((words) => ` · ${words}`)
        .join("");

function variants(request: ChangeRequest): readonly string[] {
  switch (request.kind) {
    case "dissolve":
      return [`x ${request.purge ? "keep" : "also delete"} the summary`];
    case "compact":
      return [
        `f ${request.isForced ? "leave" : "also"} short runs`,
        `m ${request.isLocal ? "with the" : "without a"} model`,
      ];
    case "prune":
      return [request.isArchived ? "x delete instead" : "x archive instead"];
    default:
      return [];
  }
}

function questionOf(request: ChangeRequest): string {
  switch (request.kind) {
    case "dissolve":
      return request.purge ? "Dissolve and delete it?" : "Dissolve it?";
    case "transplant":
      return "Copy them?";
    case "undo":
      return "Undo it?";
    case "fix":
      return "Fix it?";
    case "pin":
      return "Pin it, or unpin what is pinned?";
    case "compact":
      return "Fold them?";
    case "prune":
      return request.isArchived ? "Archive and delete?" : "Delete permanently?";
    case "forget":
      return "Forget it permanently?";
    case "restore":
      return "Replace the database?";
    case "export":
      return "Write the file?";
    case "backup":
      return "Back up?";
  }
}
