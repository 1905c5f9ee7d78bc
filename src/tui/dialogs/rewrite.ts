/**
 * A new text for one summary: what that would take, the model at work, old and new beside each other, yes or no. Until the
 * yes nothing is changed; a draft that is not wanted is kept by the store, as it is on the command line.
 */

import type { SummaryId } from "../../core/model/types.ts";
import { missingModel } from "../../core/maintenance/rewrite.ts";
import type { PlannedRewrite } from "../../core/maintenance/rewrite.ts";
import { textLines } from "../../format/passages.ts";
import { callLines, modelLines } from "../../format/model.ts";
import type { Asking, Frame, Module, Step } from "../contract.ts";
import { fit, fitAll, laidOutOnce, place, rule, spinner } from "../widgets/draw.ts";
import { createScroll } from "../widgets/list.ts";
import {
  aboveForms,
  applying,
  currentTrouble,
  drawReview,
  during,
  failed,
  headLines,
  hindranceLines,
  noticeOf,
  ofReview,
  progressed,
  promptWords,
  question,
  reviewKeys,
  rewroteWords,
  scrolledIn,
  slot,
  staleTrouble,
  startReview,
  troubled,
  troubleLines,
  uselessTrouble,
  waitingWords,
  wayBack,
  wholeBox,
} from "./review.ts";
import type { Phase } from "./review.ts";
import type { RewritePreview } from "./rewrite-asks.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { facts } from "../../format/table.ts";
import type { Page } from "../../format/page.ts";

export interface RewriteDialog {
  readonly kind: "rewrite";
  readonly summary: SummaryId;
  /** Null until it has been read. */
  readonly preview: RewritePreview | null;
  readonly top: number;
  readonly phase: Phase;
}

/** Why the model cannot be asked for it; null if it can. */
function whyNot({ preview }: RewriteDialog): string | null {
  if (preview === null) return "it is still being read";
  const { targets, skipped, model } = preview.plan;
  if (targets.length === 0) return skipped[0]?.reason ?? "there is nothing to write it from";
  return model === null ? missingModel().message : null;
}

const isKept = ({ preview }: RewriteDialog): boolean => (preview?.plan.kept.length ?? 0) > 0;
const isCurrent = ({ preview }: RewriteDialog): boolean => (preview?.plan.current.length ?? 0) > 0;

const scroll = createScroll(
  scrolledIn<RewriteDialog>((state, frame) => {
    const { source, rows } = previewOn(state, frame);
    return { count: source.length, rows };
  }),
);

const own = reviewKeys<RewriteDialog>(
  (state, review) => applying(state, review, { operation: "rewrite" }),
  (state, again, frame) => send(state, again, frame),
);

export const rewriteModule: Module<RewriteDialog> = {
  name: "Rewrite",
  open: (place) => ({ ...place, preview: null, top: 0, phase: plan }),
  box: (_, frame) => wholeBox(frame),
  keys: [
    {
      keys: ["enter"],
      short: "send",
      says: "have the model write it anew, or show the draft that is kept",
      changes: true,
      when: during("plan"),
      disabled: (state) => whyNot(state) ?? (isCurrent(state) ? currentTrouble.message : null),
      does: (state, frame) => draft(state, false, frame),
    },
    own.retry,
    own.apply,
    own.diff,
    {
      keys: ["f"],
      short: "ask anew",
      says: "ask for another text, although there is one",
      changes: true,
      when: (state) =>
        during("review", "trouble")(state) || (during("plan")(state) && (isKept(state) || isCurrent(state))),
      disabled: whyNot,
      does: (state, frame) => draft(state, true, frame),
    },
    {
      keys: ["n", "escape", "q"],
      short: "discard",
      says: "leave the old text in place",
      ...ofReview((state) =>
        leave(state, "discarded: the old text stays, and the draft is kept until you come back to it"),
      ),
    },
    {
      keys: ["escape", "q", "n"],
      short: "cancel",
      says: "stop, and change nothing",
      when: during("plan", "in flight", "applying", "trouble"),
      does(state) {
        const { phase } = state;
        if (phase.kind === "applying" && phase.isTooLate)
          return { state, notice: { tone: "said", text: "too late to cancel: it is written whole, in one step" } };
        return leave(state, phase.kind === "trouble" ? null : "cancelled: nothing was changed");
      },
    },
    ...scroll.keys.map((each) => ({ ...each, when: during("plan", "in flight", "review", "applying") })),
  ],
  title: () => "rewrite",
  isBusy: (state) => during("in flight", "applying")(state) || (during("plan")(state) && state.preview === null),
  reads: ({ phase, summary }) => (phase.kind === "plan" ? [{ kind: "rewritePreview", slot, summary }] : []),
  answers: {
    rewritePreview: (state, preview, frame) => ({
      state: scroll.by({ ...state, preview, phase: plan }, 0, frame),
    }),
    rewriteDraft(state, told, _, ask) {
      if (told.kind === "drafted")
        return { state: { ...state, phase: { kind: "review", review: startReview(ask.target, told) } } };
      const trouble =
        told.kind === "unusable" ? uselessTrouble(told.reason) : told.kind === "current" ? currentTrouble : told;
      return troubled(state, trouble, ask);
    },
    rewriteApply(state, told, frame) {
      const { phase } = state;
      if (phase.kind !== "applying") return { state };
      const { target, draft: applied } = phase.review;
      if (told.kind === "stale")
        return troubled(state, staleTrouble(told.reason), { kind: "rewriteDraft", target, isFresh: false });
      const words = rewroteWords(applied.old.id, applied.old.tokens, applied.summary.tokens);
      const text = noticeOf(words, [wayBack(told.change), ...aboveForms(told.above.length)], frame);
      return { state, go: { kind: "back" }, notice: { tone: "good", text } };
    },
  },
  on: {
    ...scroll.on,
    failed,
    progress: progressed,
  },
  draw,
};

// ── Update ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const plan: Phase = { kind: "plan", words: "" };

const leave = (state: RewriteDialog, text: string | null): Step<RewriteDialog> => ({
  state,
  go: { kind: "back" },
  ...(text !== null && { notice: { tone: "said", text } }),
});

function draft(state: RewriteDialog, isFresh: boolean, frame: Frame): Step<RewriteDialog> {
  const { phase, preview } = state;
  const target = phase.kind === "review" ? phase.review.target : preview?.plan.targets[0];
  return target === undefined ? { state } : send(state, { kind: "rewriteDraft", slot, target, isFresh }, frame);
}

function send(state: RewriteDialog, ask: Asking, { now }: Frame): Step<RewriteDialog> {
  const phase: Phase = ask.kind === "rewriteDraft" ? { kind: "in flight", target: ask.target, since: now } : plan;
  return { state: { ...state, phase }, asks: [ask] };
}

// ── Draw ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

function draw(state: RewriteDialog, frame: Frame): readonly string[] {
  const { phase } = state;
  const { beat } = frame;
  switch (phase.kind) {
    case "plan":
    case "in flight":
    case "ended":
      return drawPreview(state, frame);
    case "review":
      return drawReview(phase.review, frame, question("Put the new text in its place?", answers, frame));
    case "applying":
      return drawReview(phase.review, frame, `${spinner(beat)} ${phase.words} …`);
    case "trouble":
      return [
        ...(state.preview?.plan.targets.slice(0, 1).flatMap((target) => headLines(target, frame)) ?? []),
        ...troubleLines(phase.trouble, frame),
        "",
        question("Try again?", ["↵ yes", "f ask anew", "esc no"], frame),
      ];
  }
}

const answers = ["y yes", "n no", "d diff", "f ask anew"];

function drawPreview(state: RewriteDialog, frame: Frame): readonly string[] {
  const { columns, paint } = frame;
  const { above, source, rows, below } = previewOn(state, frame);
  if (state.preview === null) return [`${spinner(frame.beat)} reading what ${state.summary} stands for …`];
  const top = Math.max(0, Math.min(state.top, source.length - rows));
  const mark = place(top, rows, source.length);
  return [
    ...above,
    ...(source.length === 0
      ? []
      : [rule(`what it is written from${mark === "" ? "" : ` ── ${mark}`}`, columns, paint)]),
    ...fitAll(source.slice(top), columns, rows),
    ...below.map((line) => fit(line, columns)),
  ];
}

/** The facts above, as much of the source as there is room for, and what is going on below. */
function previewOn(state: RewriteDialog, frame: Frame) {
  const { preview } = state;
  if (preview === null) return { above: [], source: [], rows: 0, below: [] };
  const [target] = preview.plan.targets;
  const above = target === undefined ? [] : aboutLines(target, preview, frame);
  const below = footOf(state, frame);
  // Where there is no room for all of it, the question is seen.
  const room = frame.rows - below.length;
  const rows = Math.max(0, room - above.length - 1);
  const lines = target === undefined || rows < 1 ? [] : sourceLines(preview, frame);
  return { above: above.slice(0, room), source: lines, rows: lines.length === 0 ? 0 : rows, below };
}

const sourceLines = laidOutOnce(({ source, isWhole }: RewritePreview, page) =>
  textLines(page, isWhole ? source : `${source}\n… and so on`),
);

function aboutLines(target: PlannedRewrite, preview: RewritePreview, page: Page): readonly string[] {
  const { plan, spend, above } = preview;
  const { depth, sources, sourceTokens, targetTokens, tokens, template } = target;
  const [head = "", range = ""] = headLines(target, page);
  const from = depth === 0 ? plural(sources, "message") : `${plural(sources, "summary", "summaries")} of d${depth - 1}`;
  const draft =
    plan.kept.length > 0
      ? "one is kept from before: ↵ shows it without asking, f asks anew"
      : plan.current.length > 0
        ? `${currentTrouble.message}; ${currentTrouble.hint}`
        : null;
  return [
    head,
    ...(range === "" ? [] : [range]),
    ...facts(
      [
        ["source", `${from}, ${plural(sourceTokens, "token")}`],
        ["prompt", `${template}; ${formatCount(tokens)} tokens now, about ${formatCount(targetTokens)} wanted`],
        [
          "model",
          ...(plan.model === null ? ["none"] : modelLines(page, plan.model)),
          ...callLines(page, plan.cost, spend),
        ],
        ...(draft === null ? [] : [["draft", draft] as const]),
        ...(above === 0
          ? []
          : [["above", `${plural(above, "summary was", "summaries were")} written from this text`] as const]),
      ],
      page.paint,
      page.bounds,
    ),
  ];
}

function footOf(state: RewriteDialog, frame: Frame): readonly string[] {
  const { preview, phase } = state;
  if (preview === null) return [];
  if (phase.kind === "in flight")
    return [
      "",
      question(
        waitingWords(`for ${phase.target.summary} ${promptWords(phase.target)}`, preview, phase.since, frame),
        ["esc cancels"],
        frame,
      ),
    ];
  const { targets, skipped } = preview.plan;
  if (targets.length === 0)
    return troubleLines(
      { message: `${state.summary} cannot be rewritten: ${skipped[0]?.reason ?? ""}`, hint: null },
      frame,
    );
  const hindrance = hindranceLines(preview.plan, frame);
  if (hindrance !== null) return hindrance;
  if (isCurrent(state)) return ["", question("Ask for another text?", ["f yes", "esc no"], frame)];
  return isKept(state)
    ? ["", question("Show the draft?", ["↵ yes", "f ask anew", "esc no"], frame)]
    : ["", question("Send it to the model?", ["↵ yes", "esc no"], frame)];
}
