/**
 * The dialog that rewrites one summary, a subtree, or whatever needs repair: plan, draft, review, apply. Sources come
 * before the summaries made from them. Everything applied is one change; running it again continues where it stopped.
 */

import type { Ask } from "../../asks.ts";
import type { Frame, LayerEvent, Module, Step } from "../../contract.ts";
import type { Trouble } from "../../../operator/port.ts";
import { createScroll } from "../../widgets/list.ts";
import { formatCount } from "../../../core/base/format.ts";
import type { AppliedDraft, Drafting } from "../../../operator/rewrite.ts";
import type { Review } from "./review.ts";
import {
  boxOf,
  currentTrouble,
  didWord,
  drawRewrite,
  isCurrent,
  isKept,
  isRepair,
  isSingle,
  scrolledDialog,
  targetsOf,
  whyNot,
} from "./view.ts";
import type { RewriteDialog } from "./view.ts";
import { noticeOf, noWork, type Outcome } from "./work.ts";

type Phase = RewriteDialog["phase"];
type Stepped = Step<RewriteDialog>;

/** One slot for all asks: a new one ends the one before. */
const slot = "rewrite";

const during =
  (...kinds: readonly Phase["kind"][]) =>
  ({ phase }: Pick<RewriteDialog, "phase">): boolean =>
    kinds.includes(phase.kind);
const isWorking = during("in flight", "applying", "trouble");

const ofReview = (act: (state: RewriteDialog, review: Review, frame: Frame) => Stepped) => ({
  when: during("review"),
  does: (state: RewriteDialog, frame: Frame): Stepped =>
    state.phase.kind === "review" ? act(state, state.phase.review, frame) : { state },
});

const scroll = createScroll(scrolledDialog);

export const rewriteModule: Module<RewriteDialog> = {
  name: "Rewrite or repair",
  open: (place) => ({ ...place, planned: null, isPlanning: true, work: noWork, phase: planPhase(place), top: 0 }),
  box: boxOf,
  keys: [
    {
      keys: ["y", "enter"],
      short: "start",
      help: "ask the model for a draft, or show the stored one",
      changes: true,
      when: during("plan"),
      disabled: (state) => whyNot(state) ?? (isSingle(state) && isCurrent(state) ? currentTrouble.message : null),
      does: (state, frame) => proceed(state, frame),
    },
    { keys: ["y", "enter"], short: "apply", help: "replace the old text", changes: true, ...ofReview(apply) },
    { keys: ["enter"], short: "retry", help: "try again", changes: true, when: during("trouble"), does: retry },
    { keys: ["enter", "escape", "q"], short: "close", help: "close the report", when: during("ended"), does: leave },
    { keys: ["n"], short: "skip", help: "keep the old text, and go on to the next summary", ...ofReview(skip) },
    {
      keys: ["A"],
      short: "apply all",
      help: "apply this draft and all that follow without asking",
      changes: true,
      when: (state) => !isSingle(state) && during("plan", "in flight", "review")(state),
      disabled: (state) => whyNot(state) ?? (state.work.isAuto ? "already applying all" : null),
      does(state, frame) {
        const { phase, work } = state;
        const auto = { ...state, work: { ...work, isAuto: true } };
        if (phase.kind === "review") return apply(auto, phase.review);
        return phase.kind === "plan" ? proceed(auto, frame) : { state: auto };
      },
    },
    {
      keys: ["d"],
      short: "diff",
      help: "switch between a diff and both texts",
      ...ofReview((state, review) => reviewing(state, { ...review, isDiff: !review.isDiff, top: 0 })),
    },
    {
      keys: ["f"],
      short: "ask again",
      help: "ask the model for another text",
      changes: true,
      when: (state) =>
        during("review")(state) ||
        (isSingle(state) &&
          (during("trouble")(state) || (during("plan")(state) && (isKept(state) || isCurrent(state))))),
      disabled: whyNot,
      does: (state, frame) => proceed(state, frame, true),
    },
    {
      keys: ["escape", "q", "n"],
      short: "cancel",
      help: "go back without changing anything",
      when: (state) => during("plan")(state) || (isSingle(state) && isWorking(state)),
      does: stop,
    },
    {
      keys: ["escape", "q"],
      short: "stop",
      help: "stop here; what was applied is kept",
      when: (state) => during("review")(state) || (!isSingle(state) && isWorking(state)),
      does: stop,
    },
    ...scroll.keys.map((each) => ({ ...each, when: during("plan", "in flight", "review", "applying", "ended") })),
  ],
  title: ({ select, conversation }) =>
    "summary" in select
      ? "rewrite"
      : "subtree" in select
        ? `rewrite ${select.subtree} and everything below it`
        : `repair conversation ${conversation}`,
  isBusy: (state) => state.isPlanning || during("in flight", "applying")(state),
  reads: ({ conversation, select }) => [{ kind: "rewritePlan", slot, conversation, select }],
  answers: {
    rewritePlan: (state, planned, frame) => ({ state: scroll.by({ ...state, planned, isPlanning: false }, 0, frame) }),
    rewriteDraft: drafted,
    rewriteApply: applied,
  },
  on: { ...scroll.on, changed: planAgain, returned: planAgain, failed, progress },
  draw: drawRewrite,
};

const planPhase = ({ select }: Pick<RewriteDialog, "select">): Phase => ({
  kind: "plan",
  words:
    "summary" in select
      ? `reading the sources of ${select.summary}`
      : "repair" in select
        ? "looking for damaged summaries"
        : "planning",
});

/** One plan at a time: in a long conversation it takes a while. */
function planAgain(state: RewriteDialog): Stepped {
  const { conversation, select } = state;
  if (state.phase.kind !== "plan" || state.isPlanning) return { state };
  return { state: { ...state, isPlanning: true }, asks: [{ kind: "rewritePlan", slot, conversation, select }] };
}

/** Asks for the next draft, or ends after the last. */
function proceed(state: RewriteDialog, frame: Frame, isFresh = false): Stepped {
  const target = targetsOf(state)[state.work.outcomes.length];
  if (target === undefined) return end(state, frame);
  return {
    state: { ...state, isPlanning: false, phase: { kind: "in flight", target, since: frame.now } },
    asks: [{ kind: "rewriteDraft", slot, target, isFresh }],
  };
}

function drafted(state: RewriteDialog, result: Drafting, frame: Frame, ask: Ask<"rewriteDraft">): Stepped {
  const { target } = ask;
  switch (result.kind) {
    case "drafted": {
      const review = { target, draft: result, isDiff: false, top: 0 };
      return state.work.isAuto ? apply(state, review) : reviewing(state, review);
    }
    case "unusable": {
      const { reason } = result;
      if (!isSingle(state)) return settle(state, { target, status: "unusable", reason }, frame);
      const hint = "nothing was changed; the old text stays";
      return troubled(state, { message: `unusable answer: ${reason}`, hint }, ask);
    }
    case "current":
      return isSingle(state)
        ? troubled(state, currentTrouble, ask)
        : settle(state, { target, status: "current" }, frame);
    case "refused":
      return troubled(state, result, ask);
  }
}

const reviewing = (state: RewriteDialog, review: Review): Stepped => ({
  state: { ...state, phase: { kind: "review", review } },
});

const troubled = (state: RewriteDialog, trouble: Trouble, ask: Ask): Stepped => ({
  state: { ...state, phase: { kind: "trouble", trouble, again: { ...ask, slot } } },
});

function retry(state: RewriteDialog, frame: Frame): Stepped {
  const { phase } = state;
  if (phase.kind !== "trouble") return { state };
  const { again } = phase;
  if (again.kind === "rewriteDraft") return proceed(state, frame, again.isFresh);
  return { state: { ...state, isPlanning: true, phase: planPhase(state) }, asks: [again] };
}

function apply(state: RewriteDialog, review: Review): Stepped {
  const { change } = state.work;
  const partOf = { operation: isRepair(state) ? "repair" : "rewrite", ...(change !== null && { change }) } as const;
  return {
    state: { ...state, phase: { kind: "applying", review, words: "opening the database", isTooLate: false } },
    asks: [{ kind: "rewriteApply", slot, draft: review.draft, partOf }],
  };
}

/** How often a summary is drafted if other processes keep changing it; as on the command line. */
const stalesMax = 5;

function applied(state: RewriteDialog, result: AppliedDraft, frame: Frame): Stepped {
  const { phase, work } = state;
  if (phase.kind !== "applying") return { state };
  const { target, draft } = phase.review;
  if (result.kind === "written") {
    const { change, above } = result;
    const written = { ...state, work: { ...work, change, above: [...work.above, ...above] } };
    const [before, after] = [draft.old.tokens, draft.summary.tokens];
    return settle(written, { target, status: "applied", before, after }, frame);
  }
  if (isSingle(state)) {
    const trouble = { message: `${result.reason}: nothing was applied`, hint: "press ↵ to draft it again" };
    return troubled(state, trouble, { kind: "rewriteDraft", target, isFresh: false });
  }
  if (work.stales + 1 >= stalesMax)
    return settle(state, { target, status: "unusable", reason: "it kept changing" }, frame);
  const step = proceed({ ...state, work: { ...work, stales: work.stales + 1 } }, frame);
  return { ...step, notice: { tone: "info", text: `${result.reason}: drafting it again` } };
}

/** Records the outcome of one summary, and goes on to the next. */
function settle(state: RewriteDialog, outcome: Outcome, frame: Frame): Stepped {
  const { work } = state;
  return proceed({ ...state, work: { ...work, stales: 0, outcomes: [...work.outcomes, outcome] } }, frame);
}

function skip(state: RewriteDialog, { target }: Review, frame: Frame): Stepped {
  return settle(state, { target, status: "skipped" }, frame);
}

function stop(state: RewriteDialog, frame: Frame): Stepped {
  const { phase } = state;
  if (phase.kind === "applying" && phase.isTooLate)
    return { state, notice: { tone: "info", text: "too late to cancel: this summary is being written" } };
  return phase.kind === "review" && isSingle(state) ? skip(state, phase.review, frame) : end(state, frame);
}

/** Shows a report, unless there is nothing to report but success. */
function end(state: RewriteDialog, frame: Frame): Stepped {
  const { outcomes } = state.work;
  const isWhole = outcomes.length === 0 || outcomes.length === targetsOf(state).length;
  const isClean = isWhole && outcomes.every(({ status }) => status === "applied" || status === "current");
  if (isSingle(state) || isClean) return leave(state, frame);
  const { notice } = leave(state, frame);
  const ended = { ...state, phase: { kind: "ended" }, top: 0 } as const;
  return { state: ended, go: { kind: "stop", slot }, ...(notice && { notice }) };
}

function leave(state: RewriteDialog, frame: Frame): Stepped {
  return { state, go: { kind: "back" }, notice: noticeOf(state.work, didWord(state), isSingle(state), frame) };
}

/** A draft that could not be applied is shown again; the status line has the reason. */
function failed(state: RewriteDialog, { ask, failure }: LayerEvent<"failed">): Stepped {
  const { phase, work } = state;
  const idle = { ...state, isPlanning: false };
  if (phase.kind !== "applying") return troubled(idle, failure, ask);
  return reviewing({ ...idle, work: { ...work, isAuto: false } }, phase.review);
}

function progress(state: RewriteDialog, { progress: { done, of, words } }: LayerEvent<"progress">): Stepped {
  const { phase } = state;
  const said = of === null ? words : `${words}, ${formatCount(done)} of ${formatCount(of)}`;
  if (phase.kind === "plan") return { state: { ...state, phase: { ...phase, words: said } } };
  if (phase.kind !== "applying") return { state };
  return { state: { ...state, phase: { ...phase, words: said, isTooLate: done > 0 } } };
}
