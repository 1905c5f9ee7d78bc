/**
 * New texts for many summaries: one and all below it, or those in need of repair. Sources come first, so that each is
 * written from fresh text; each draft is looked at, or all that follow are taken as they come. All that is applied is one
 * change, and stays whatever ends the work: doing it again goes on where it ended.
 */

import { missingModel } from "../../core/maintenance/rewrite.ts";
import type { PlannedRewrite } from "../../core/maintenance/rewrite.ts";
import { findingLines, planLines, skippedLines } from "../../format/rewrite.ts";
import type { Ask } from "../asks.ts";
import type { Frame, Module, Step } from "../contract.ts";
import { ends, fitAll, laidOutOnce, place, spinner } from "../widgets/draw.ts";
import { createScroll } from "../widgets/list.ts";
import {
  applying,
  drawReview,
  during,
  failed,
  hindranceLines,
  ofReview,
  progressed,
  promptWords,
  question,
  reviewKeys,
  scrolledIn,
  slot,
  startReview,
  troubled,
  troubleLines,
  waitingWords,
  wholeBox,
} from "./review.ts";
import type { Phase, Review } from "./review.ts";
import type { AppliedDraft, Drafting, ManyPlanned } from "./rewrite-asks.ts";
import { drawWork, endLines, noticeOfWork, noWork, placeOf, questionOf } from "./work.ts";
import type { Outcome, Work } from "./work.ts";
import type { Page } from "../../format/page.ts";

export interface RewritesDialog {
  readonly kind: "rewrites";
  readonly request: Omit<Ask<"rewritesPlan">, "kind">;
  /** Null until there is a plan; whoever looks at one sees it until there is a newer. */
  readonly planned: ManyPlanned | null;
  readonly isPlanning: boolean;
  readonly work: Work;
  readonly phase: Phase;
  readonly top: number;
}

const isRepair = ({ request }: RewritesDialog): boolean => request.summary === null;
const targetsOf = ({ planned }: RewritesDialog): readonly PlannedRewrite[] => planned?.plan.targets ?? [];

function whyNot({ planned, phase, ...state }: RewritesDialog): string | null {
  if (phase.kind !== "plan") return null;
  if (planned === null) return "it is still being planned";
  const { targets, model } = planned.plan;
  if (targets.length === 0) return nothingWords(state.request.summary === null);
  return model === null ? missingModel().message : null;
}

const nothingWords = (isOfRepair: boolean): string => (isOfRepair ? "nothing to repair" : "nothing to rewrite");

const scroll = createScroll(
  scrolledIn<RewritesDialog>((state, frame) => {
    const { lines, rows } = textOn(state, frame);
    return { count: lines.length, rows };
  }),
);

const own = reviewKeys<RewritesDialog>(apply, (state, again, frame) => {
  if (again.kind === "rewriteDraft") return proceed(state, frame, again.isFresh);
  return { state: { ...state, isPlanning: true, phase: { kind: "plan", words: "planning" } }, asks: [again] };
});

export const rewritesModule: Module<RewritesDialog> = {
  name: "Rewrite many, or repair",
  open: ({ kind, conversation, summary }) => ({
    kind,
    request: { conversation, summary },
    planned: null,
    isPlanning: true,
    work: noWork,
    phase: { kind: "plan", words: summary === null ? "looking for faults" : "planning" },
    top: 0,
  }),
  box(state, frame) {
    const whole = wholeBox(frame);
    if (!during("plan", "ended")(state)) return whole;
    const columns = Math.min(planColumnsMax, whole.columns);
    const page = { ...frame, columns, bounds: columns };
    return { columns, rows: bodyOf(state, page).length + footOf(state, page).length };
  },
  keys: [
    {
      keys: ["y", "enter"],
      short: "start",
      says: "begin",
      changes: true,
      when: during("plan"),
      disabled: whyNot,
      does: (state, frame) => proceed(state, frame),
    },
    own.apply,
    own.retry,
    { keys: ["enter", "escape", "q"], short: "close", says: "close it", when: during("ended"), does: leave },
    {
      keys: ["n"],
      short: "skip",
      says: "leave the old text of this one, and go on",
      ...ofReview((state, { target }, frame) => settle(state, { target, status: "skipped" }, frame)),
    },
    {
      keys: ["A"],
      short: "apply all",
      says: "apply this and all that follow without asking",
      changes: true,
      when: during("plan", "in flight", "review"),
      disabled: (state) => whyNot(state) ?? (state.work.isAuto ? "that is what is being done" : null),
      does(state, frame) {
        const { phase, work } = state;
        const auto = { ...state, work: { ...work, isAuto: true } };
        if (phase.kind === "review") return apply(auto, phase.review);
        return phase.kind === "plan" ? proceed(auto, frame) : { state: auto };
      },
    },
    own.diff,
    {
      keys: ["f"],
      short: "ask anew",
      says: "ask for another text of this one",
      changes: true,
      ...ofReview((state, _, frame) => proceed(state, frame, true)),
    },
    {
      keys: ["escape", "q"],
      short: "stop",
      says: "stop here; what is applied stays",
      when: during("in flight", "review", "applying", "trouble"),
      does: (state, frame) =>
        state.phase.kind === "applying" && state.phase.isTooLate
          ? { state, notice: { tone: "said", text: "this one is being written; esc after it stops" } }
          : end(state, frame),
    },
    {
      keys: ["escape", "q", "n"],
      short: "cancel",
      says: "go back without changing anything",
      when: during("plan"),
      does: leave,
    },
    ...scroll.keys.map((each) => ({ ...each, when: during("plan", "review", "applying", "ended") })),
  ],
  title: (state) =>
    isRepair(state)
      ? `repair conversation ${state.request.conversation}`
      : `rewrite ${state.request.summary} and all below it`,
  isBusy: (state) => state.isPlanning || during("in flight", "applying")(state),
  reads: ({ request }) => [{ kind: "rewritesPlan", slot, ...request }],
  answers: {
    rewritesPlan: (state, planned, frame) => ({ state: scroll.by({ ...state, planned, isPlanning: false }, 0, frame) }),
    rewriteDraft: drafted,
    rewriteApply: applied,
  },
  on: {
    ...scroll.on,
    changed: again,
    returned: again,
    failed(state, event) {
      // No longer by itself.
      const work = state.phase.kind === "applying" ? { ...state.work, isAuto: false } : state.work;
      return failed({ ...state, isPlanning: false, work }, event);
    },
    progress: progressed,
  },
  draw,
};

// ── Update ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One plan at a time: in a long conversation it takes a while. */
function again(state: RewritesDialog): Step<RewritesDialog> {
  if (state.phase.kind !== "plan" || state.isPlanning) return { state };
  return { state: { ...state, isPlanning: true }, asks: [{ kind: "rewritesPlan", slot, ...state.request }] };
}

function leave(state: RewritesDialog, frame: Frame): Step<RewritesDialog> {
  return { state, go: { kind: "back" }, notice: noticeOfWork(state.work, isRepair(state), frame) };
}

/** Has the next one drafted, or ends if there is none. */
function proceed(state: RewritesDialog, frame: Frame, isFresh = false): Step<RewritesDialog> {
  const target = targetsOf(state)[state.work.outcomes.length];
  if (target === undefined) return end(state, frame);
  return {
    state: { ...state, isPlanning: false, phase: { kind: "in flight", target, since: frame.now } },
    asks: [{ kind: "rewriteDraft", slot, target, isFresh }],
  };
}

function apply(state: RewritesDialog, review: Review): Step<RewritesDialog> {
  const { change } = state.work;
  return applying(state, review, {
    operation: isRepair(state) ? "repair" : "rewrite",
    ...(change !== null && { change }),
  });
}

/** What became of one, and on to the next. */
function settle(state: RewritesDialog, outcome: Outcome, frame: Frame): Step<RewritesDialog> {
  const { work } = state;
  const next = { ...work, stales: 0, outcomes: [...work.outcomes, outcome] };
  return proceed({ ...state, work: next }, frame);
}

/** So often one is drafted at most, if it is changed by others meanwhile; as on the command line. */
const stalesMax = 5;

function applied(state: RewritesDialog, told: AppliedDraft, frame: Frame): Step<RewritesDialog> {
  const { phase, work } = state;
  if (phase.kind !== "applying") return { state };
  const { target, draft } = phase.review;
  if (told.kind === "written") {
    const { change, above } = told;
    const written = { ...state, work: { ...work, change, above: [...work.above, ...above] } };
    const [before, after] = [draft.old.tokens, draft.summary.tokens];
    return settle(written, { target, status: "applied", before, after }, frame);
  }
  if (work.stales + 1 >= stalesMax)
    return settle(state, { target, status: "unusable", reason: "it was changed by others again and again" }, frame);
  const step = proceed({ ...state, work: { ...work, stales: work.stales + 1 } }, frame);
  return { ...step, notice: { tone: "said", text: `${told.reason}: it is drafted again` } };
}

function drafted(state: RewritesDialog, told: Drafting, frame: Frame, ask: Ask<"rewriteDraft">): Step<RewritesDialog> {
  const { target } = ask;
  switch (told.kind) {
    case "drafted": {
      const review = startReview(target, told);
      return state.work.isAuto ? apply(state, review) : { state: { ...state, phase: { kind: "review", review } } };
    }
    case "unusable":
      return settle(state, { target, status: "unusable", reason: told.reason }, frame);
    case "current":
      return settle(state, { target, status: "current" }, frame);
    case "refused":
      return troubled(state, told, ask);
  }
}

/** Closes by itself where there is nothing to be told but that all is done. */
function end(state: RewritesDialog, frame: Frame): Step<RewritesDialog> {
  const { outcomes } = state.work;
  const isWhole = outcomes.length === 0 || outcomes.length === targetsOf(state).length;
  if (isWhole && outcomes.every(({ status }) => status === "applied" || status === "current"))
    return leave(state, frame);
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
        question(`${placeOf(state.work, targetsOf(state))}  Apply it?`, answers, frame),
      );
    case "applying":
      if (!state.work.isAuto) return drawReview(phase.review, frame, `${spinner(frame.beat)} ${phase.words} …`);
      return drawWork(state.work, targetsOf(state), frame, `${spinner(frame.beat)} ${phase.words} …`);
    case "in flight": {
      if (planned === null) return [];
      const words = waitingWords(promptWords(phase.target), planned, phase.since, frame);
      return drawWork(state.work, targetsOf(state), frame, words);
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

const answers = ["y yes", "n skip", "A yes to all", "d diff", "esc stop"];

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
  const { paint, beat = 0 } = page;
  if (phase.kind === "ended") return ["", paint.soft("↵ closes")];
  if (planned === null) return [`${spinner(beat)} ${phase.kind === "plan" ? phase.words : ""} …`];
  const { targets } = planned.plan;
  if (targets.length === 0) return ["", paint.soft("esc goes back")];
  const hindrance = hindranceLines(planned.plan, page);
  if (hindrance !== null) return hindrance;
  const keys = ["y yes", "n no", "A yes to all"];
  return ["", question(questionOf(targets, isRepair(state)), keys, page)];
}
