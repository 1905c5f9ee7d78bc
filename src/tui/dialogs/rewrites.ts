/**
 * New texts for many summaries: one and all below it, or those in need of repair. Sources come first, so that each is
 * written from fresh text; each draft is looked at, or all that follow are taken as they come. All that is applied is one
 * change, and stays whatever ends the work: doing it again goes on where it ended.
 */

import type { Timestamp } from "../../core/model.ts";
import { missingModel } from "../../core/rewrite.ts";
import type { PlannedRewrite } from "../../core/rewrite.ts";
import { formatCount } from "../../core/text.ts";
import type { Page } from "../../show/page.ts";
import { findingLines, planLines, skippedLines } from "../../show/rewriting.ts";
import type { Answer, Ask } from "../asks.ts";
import type { Asking, Frame, Module, Place, Step } from "../contract.ts";
import { ends, fitAll, place, spinner } from "../draw.ts";
import { listKeys, scrolled, scrollKeys, textMoved } from "../list.ts";
import type { ListAction, ScrollAction } from "../list.ts";
import {
  drawReview,
  laidOutOnce,
  promptWords,
  question,
  scrollReview,
  startReview,
  troubleLines,
  waitingWords,
  wholeBox,
} from "./review.ts";
import type { Review, Trouble } from "./review.ts";
import type { Drafting, ManyPlanned } from "./rewrite-asks.ts";
import { drawWork, endLines, noticeOfWork, noWork, placeOf, questionOf } from "./work.ts";
import type { Outcome, Work } from "./work.ts";

export interface RewritesDialog {
  readonly kind: "rewrites";
  readonly request: Omit<Ask<"rewritesPlan">, "kind">;
  /** Null until there is a plan; whoever looks at one sees it until there is a newer. */
  readonly planned: ManyPlanned | null;
  readonly isPlanning: boolean;
  readonly work: Work;
  readonly phase: Phase;
  /** The first line of the plan, or of how it ended, that is seen. */
  readonly top: number;
}

type Phase =
  | { readonly kind: "plan"; readonly words: string }
  | { readonly kind: "in flight"; readonly since: Timestamp }
  | { readonly kind: "review"; readonly review: Review }
  | { readonly kind: "applying"; readonly review: Review; readonly words: string; readonly isTooLate: boolean }
  /** `again`: what was asked in vain. */
  | { readonly kind: "trouble"; readonly trouble: Trouble; readonly again: Asking }
  | { readonly kind: "ended" };

/** One slot for all that is asked: the next ends what was before. */
const slot = "rewrites";

export const openRewrites = ({
  conversation,
  summary,
}: Extract<Place, { readonly kind: "rewrites" }>): Step<RewritesDialog> => ({
  state: {
    kind: "rewrites",
    request: { conversation, summary },
    planned: null,
    isPlanning: true,
    work: noWork,
    phase: { kind: "plan", words: summary === null ? "looking for faults" : "planning" },
    top: 0,
  },
  asks: [{ kind: "rewritesPlan", slot, conversation, summary }],
});

const isRepair = ({ request }: RewritesDialog): boolean => request.summary === null;
const targetsOf = ({ planned }: RewritesDialog): readonly PlannedRewrite[] => planned?.plan.targets ?? [];

// ── Keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

type Action =
  | ListAction
  | ScrollAction
  | "start"
  | "all"
  | "apply"
  | "skip"
  | "diff"
  | "fresh"
  | "retry"
  | "close"
  | "stop"
  | "cancel";

const scrolling: readonly Action[] = [...listKeys, ...scrollKeys].map(({ action }) => action);

const offered: Readonly<Record<Phase["kind"], readonly Action[]>> = {
  plan: ["start", "all", "cancel", ...scrolling],
  "in flight": ["all", "stop"],
  review: ["apply", "all", "skip", "diff", "fresh", "stop", ...scrolling],
  applying: ["stop", ...scrolling],
  trouble: ["retry", "stop"],
  ended: ["close", ...scrolling],
};

function whyNot({ planned, phase, ...state }: RewritesDialog): string | null {
  if (phase.kind !== "plan") return null;
  if (planned === null) return "it is still being planned";
  const { targets, model } = planned.plan;
  if (targets.length === 0) return nothingWords(state.request.summary === null);
  return model === null ? missingModel().message : null;
}

const nothingWords = (isOfRepair: boolean): string => (isOfRepair ? "nothing to repair" : "nothing to rewrite");

export const rewritesModule: Module<RewritesDialog, Action> = {
  name: "Rewrite many, or repair",
  box(state, frame) {
    const whole = wholeBox(frame);
    const isText = state.phase.kind === "plan" || state.phase.kind === "ended";
    if (!isText) return whole;
    const columns = Math.min(planColumnsMax, whole.columns);
    const page = { ...frame, columns, bounds: columns };
    return { columns, rows: bodyOf(state, page).length + footOf(state, page).length };
  },
  keys: [
    { keys: ["y", "enter"], action: "start", short: "start", says: "begin", changes: true, disabled: whyNot },
    { keys: ["y", "enter"], action: "apply", short: "apply", says: "put the new text in place", changes: true },
    { keys: ["enter"], action: "retry", short: "again", says: "try again what did not work", changes: true },
    { keys: ["enter", "escape", "q"], action: "close", short: "close", says: "close it" },
    { keys: ["n"], action: "skip", short: "skip", says: "leave the old text of this one, and go on" },
    {
      keys: ["A"],
      action: "all",
      short: "apply all",
      says: "apply this and all that follow without asking",
      changes: true,
      disabled: (state) => whyNot(state) ?? (state.work.isAuto ? "that is what is being done" : null),
    },
    { keys: ["d"], action: "diff", short: "diff", says: "show what changes as a diff, or both texts again" },
    { keys: ["f"], action: "fresh", short: "ask anew", says: "ask for another text of this one", changes: true },
    { keys: ["escape", "q"], action: "stop", short: "stop", says: "stop here; what is applied stays" },
    { keys: ["escape", "q", "n"], action: "cancel", short: "cancel", says: "go back without changing anything" },
    ...listKeys,
    ...scrollKeys,
  ],
  isOffered: ({ phase }, action) => offered[phase.kind].includes(action),
  title: (state) =>
    isRepair(state)
      ? `repair conversation ${state.request.conversation}`
      : `rewrite ${state.request.summary} and all below it`,
  isBusy: ({ phase, isPlanning }) => isPlanning || phase.kind === "in flight" || phase.kind === "applying",
  update(state, event, frame) {
    const { phase } = state;
    switch (event.kind) {
      case "answer":
        return answered(state, event.answer, frame);
      case "failed": {
        // What was to be applied can still be; why it was not is on the status line.
        if (phase.kind === "applying") return { state: review({ ...state, work: handed(state.work) }, phase.review) };
        const again: Asking = { ...event.ask, slot };
        return { state: { ...state, isPlanning: false, phase: { kind: "trouble", trouble: event.failure, again } } };
      }
      case "progress": {
        const { words, done, of } = event.progress;
        const told = of === null ? words : `${words}, ${formatCount(done)} of ${formatCount(of)}`;
        if (phase.kind === "plan") return { state: { ...state, phase: { ...phase, words: told } } };
        if (phase.kind !== "applying") return { state };
        return { state: { ...state, phase: { ...phase, words: told, isTooLate: done > 0 } } };
      }
      case "changed":
        // One plan at a time: in a long conversation it takes a while.
        if (phase.kind !== "plan" || state.isPlanning) return { state };
        return { state: { ...state, isPlanning: true }, asks: [{ kind: "rewritesPlan", slot, ...state.request }] };
      case "wheel":
        return { state: scroll(state, event.lines, frame) };
      case "resized":
        return { state: scroll(state, 0, frame) };
      case "action":
        return acted(state, event.action, frame);
      default:
        return { state };
    }
  },
  draw,
};

// ── Update ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const review = (state: RewritesDialog, reviewed: Review): RewritesDialog => ({
  ...state,
  phase: { kind: "review", review: reviewed },
});

/** No longer by itself. */
const handed = (work: Work): Work => ({ ...work, isAuto: false });

function acted(state: RewritesDialog, action: Action, frame: Frame): Step<RewritesDialog> {
  const { phase, work } = state;
  switch (action) {
    case "start":
      return proceed(state, frame);
    case "all": {
      const auto = { ...state, work: { ...work, isAuto: true } };
      if (phase.kind === "review") return apply(auto, phase.review);
      return phase.kind === "plan" ? proceed(auto, frame) : { state: auto };
    }
    case "apply":
      return phase.kind === "review" ? apply(state, phase.review) : { state };
    case "skip":
      return phase.kind === "review"
        ? settle(state, { target: phase.review.target, status: "skipped" }, frame)
        : { state };
    case "diff":
      if (phase.kind !== "review") return { state };
      return { state: review(state, { ...phase.review, isDiff: !phase.review.isDiff, top: 0 }) };
    case "fresh":
      return proceed(state, frame, true);
    case "retry":
      if (phase.kind !== "trouble") return { state };
      if (phase.again.kind === "rewriteDraft") return proceed(state, frame, phase.again.isFresh);
      return {
        state: { ...state, isPlanning: true, phase: { kind: "plan", words: "planning" } },
        asks: [phase.again],
      };
    case "stop":
      if (phase.kind === "applying" && phase.isTooLate)
        return { state, notice: { tone: "said", text: "this one is being written; esc after it stops" } };
      return end(state, frame);
    case "close":
    case "cancel":
      return { state, go: { kind: "back" }, notice: noticeOfWork(state.work, isRepair(state), frame) };
    default:
      return { state: scroll(state, action, frame) };
  }
}

/** Has the next one drafted, or ends if there is none. */
function proceed(state: RewritesDialog, frame: Frame, isFresh = false): Step<RewritesDialog> {
  const target = targetsOf(state)[state.work.outcomes.length];
  if (target === undefined) return end(state, frame);
  return {
    state: { ...state, isPlanning: false, phase: { kind: "in flight", since: frame.now } },
    asks: [{ kind: "rewriteDraft", slot, target, isFresh }],
  };
}

function apply(state: RewritesDialog, reviewed: Review): Step<RewritesDialog> {
  const { change } = state.work;
  const operation = isRepair(state) ? "repair" : "rewrite";
  const words = "opening the database";
  return {
    state: { ...state, phase: { kind: "applying", review: reviewed, words, isTooLate: false } },
    asks: [
      { kind: "rewriteApply", slot, draft: reviewed.draft, partOf: { operation, ...(change !== null && { change }) } },
    ],
  };
}

/** What became of one, and on to the next. */
function settle(state: RewritesDialog, outcome: Outcome, frame: Frame): Step<RewritesDialog> {
  const { work } = state;
  const next = { ...work, stales: 0, outcomes: [...work.outcomes, outcome] };
  return proceed({ ...state, work: next }, frame);
}

function answered(state: RewritesDialog, answer: Answer, frame: Frame): Step<RewritesDialog> {
  switch (answer.kind) {
    case "rewritesPlan":
      return { state: scroll({ ...state, planned: answer.told, isPlanning: false }, 0, frame) };
    case "rewriteDraft":
      return drafted(state, answer.ask, answer.told, frame);
    case "rewriteApply": {
      const { phase, work } = state;
      if (phase.kind !== "applying") return { state };
      const { target, draft } = phase.review;
      if (answer.told.kind === "written") {
        const { change, above } = answer.told;
        const written = { ...state, work: { ...work, change, above: [...work.above, ...above] } };
        const [before, after] = [draft.old.tokens, draft.summary.tokens];
        return settle(written, { target, status: "applied", before, after }, frame);
      }
      if (work.stales + 1 >= stalesMax)
        return settle(state, { target, status: "unusable", reason: "it was changed by others again and again" }, frame);
      const again = proceed({ ...state, work: { ...work, stales: work.stales + 1 } }, frame);
      return { ...again, notice: { tone: "said", text: `${answer.told.reason}: it is drafted again` } };
    }
    default:
      return { state };
  }
}

/** So often one is drafted at most, if it is changed by others meanwhile; as on the command line. */
const stalesMax = 5;

function drafted(state: RewritesDialog, ask: Ask<"rewriteDraft">, told: Drafting, frame: Frame): Step<RewritesDialog> {
  const { target } = ask;
  switch (told.kind) {
    case "drafted": {
      const reviewed = startReview(target, told);
      return state.work.isAuto ? apply(state, reviewed) : { state: review(state, reviewed) };
    }
    case "unusable":
      return settle(state, { target, status: "unusable", reason: told.reason }, frame);
    case "current":
      return settle(state, { target, status: "current" }, frame);
    case "refused":
      return { state: { ...state, phase: { kind: "trouble", trouble: told, again: { ...ask, slot } } } };
  }
}

/** Closes by itself where there is nothing to be told but that all is done. */
function end(state: RewritesDialog, frame: Frame): Step<RewritesDialog> {
  const { outcomes } = state.work;
  if (outcomes.length === 0) return acted(state, "cancel", frame);
  const isWhole = outcomes.length === targetsOf(state).length;
  if (isWhole && outcomes.every(({ status }) => status === "applied" || status === "current"))
    return { state, go: { kind: "back" }, notice: noticeOfWork(state.work, isRepair(state), frame) };
  const ended: RewritesDialog = { ...state, phase: { kind: "ended" }, top: 0 };
  return { state: ended, go: { kind: "stop", slot }, notice: noticeOfWork(state.work, isRepair(state), frame) };
}

// ── Draw ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

const planColumnsMax = 100;

function draw(state: RewritesDialog, frame: Frame): readonly string[] {
  const { phase, planned } = state;
  switch (phase.kind) {
    case "plan":
    case "ended": {
      const { lines, rows, foot } = textOn(state, frame);
      const top = Math.max(0, Math.min(state.top, lines.length - rows));
      const [gap = "", ...asked] = foot;
      const below = ends(gap, frame.paint.soft(place(top, rows, lines.length)), frame.columns);
      return [...fitAll(lines.slice(top), frame.columns, Math.min(rows, lines.length)), below, ...asked];
    }
    case "review":
      return drawReview(
        phase.review,
        frame,
        question(`${placeOf(state.work, targetsOf(state))}  Apply it?`, reviewKeys, frame),
      );
    case "applying":
      if (!state.work.isAuto) return drawReview(phase.review, frame, `${spinner(frame.beat)} ${phase.words} …`);
      return drawWork(state.work, targetsOf(state), frame, `${spinner(frame.beat)} ${phase.words} …`);
    case "in flight": {
      const target = targetsOf(state)[state.work.outcomes.length];
      if (target === undefined || planned === null) return [];
      return drawWork(
        state.work,
        targetsOf(state),
        frame,
        waitingWords(promptWords(target), planned, phase.since, frame),
      );
    }
    case "trouble": {
      const lines = troubleLines(phase.trouble, frame);
      if (planned === null) return [...lines, "", question("Try again?", ["↵ yes", "esc no"], frame)];
      const asked = question("Try again?", ["↵ yes", "esc stops, what is applied stays"], frame);
      return [
        ...drawWork(state.work, targetsOf(state), { ...frame, rows: frame.rows - lines.length - 2 }, ""),
        ...lines,
        "",
        asked,
      ];
    }
  }
}

const reviewKeys = ["y yes", "n skip", "A yes to all", "d diff", "esc stop"];

function scroll(state: RewritesDialog, by: ListAction | ScrollAction | number, frame: Frame): RewritesDialog {
  const { phase, top } = state;
  if (phase.kind === "review" || phase.kind === "applying")
    return { ...state, phase: { ...phase, review: scrollReview(phase.review, by, frame) } };
  const { lines, rows } = textOn(state, frame);
  const count = lines.length;
  return {
    ...state,
    top: typeof by === "number" ? scrolled(top, by, count, rows) : textMoved(top, by, count, rows),
  };
}

function textOn(state: RewritesDialog, frame: Frame) {
  const foot = footOf(state, frame);
  return { lines: bodyOf(state, frame), rows: Math.max(1, frame.rows - foot.length), foot };
}

/** The plan in the words of the command line; or how it ended. */
function bodyOf(state: RewritesDialog, page: Page): readonly string[] {
  const { planned, phase } = state;
  if (phase.kind === "ended") return endLines(state.work, targetsOf(state), isRepair(state), page);
  if (planned === null) return [];
  const { targets, skipped } = planned.plan;
  return targets.length + skipped.length === 0 ? [nothingWords(isRepair(state))] : linesOfPlan(planned, page);
}

const linesOfPlan = laidOutOnce(({ plan, spend, findings }: ManyPlanned, page) => [
  ...findingLines(page, findings),
  ...planLines(page, plan, spend, "w on one and f there ask again"),
  ...skippedLines(page, plan),
]);

/** What is to be said or asked below; it is always seen. */
function footOf(state: RewritesDialog, page: Page & Partial<Frame>): readonly string[] {
  const { planned, phase } = state;
  const { paint, beat = 0, readOnly = null } = page;
  if (phase.kind === "ended") return ["", paint.soft("↵ closes")];
  if (planned === null) return [`${spinner(beat)} ${phase.kind === "plan" ? phase.words : ""} …`];
  const { targets, model } = planned.plan;
  if (targets.length === 0) return ["", paint.soft("esc goes back")];
  if (model === null) {
    const { message, hint = null } = missingModel();
    return ["", ...troubleLines({ message, hint }, page)];
  }
  if (readOnly !== null) return ["", paint.caution(`nothing can be changed: ${readOnly}`)];
  const keys = ["y yes", "n no", "A yes to all"];
  return ["", question(questionOf(targets, isRepair(state)), keys, page)];
}
