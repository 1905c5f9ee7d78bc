/**
 * A new text for one summary: what that would take, the model at work, old and new beside each other, yes or no. Until the
 * yes nothing is changed; a draft that is not wanted is kept by the store, as it is on the command line.
 */

import type { SummaryId, Timestamp } from "../../core/model.ts";
import { missingModel } from "../../core/rewrite.ts";
import type { PlannedRewrite } from "../../core/rewrite.ts";
import { formatCount } from "../../core/text.ts";
import type { Page } from "../../show/page.ts";
import { textLines } from "../../show/passages.ts";
import { facts, plural } from "../../show/render.ts";
import { callLines, modelLines } from "../../show/summariser.ts";
import type { Answer } from "../asks.ts";
import type { Asking, Frame, Module, Place, Step } from "../contract.ts";
import { fit, fitAll, place, rule, spinner } from "../draw.ts";
import { listKeys, scrolled, scrollKeys, textMoved } from "../list.ts";
import type { ListAction, ScrollAction } from "../list.ts";
import {
  aboveForms,
  currentTrouble,
  drawReview,
  headLines,
  laidOutOnce,
  noticeOf,
  promptWords,
  question,
  rewroteWords,
  scrollReview,
  staleTrouble,
  startReview,
  troubleLines,
  uselessTrouble,
  waitingWords,
  wayBack,
  wholeBox,
} from "./review.ts";
import type { Review, Trouble } from "./review.ts";
import type { RewritePreview } from "./rewrite-asks.ts";

export interface RewriteDialog {
  readonly kind: "rewrite";
  readonly summary: SummaryId;
  /** Null until it has been read. */
  readonly preview: RewritePreview | null;
  /** The first line of the source that is seen. */
  readonly top: number;
  readonly phase: Phase;
}

type Phase =
  | { readonly kind: "preview" }
  | { readonly kind: "in flight"; readonly target: PlannedRewrite; readonly since: Timestamp }
  | { readonly kind: "review"; readonly review: Review }
  | { readonly kind: "applying"; readonly review: Review; readonly words: string; readonly isTooLate: boolean }
  /** `again`: what was asked in vain. */
  | { readonly kind: "trouble"; readonly trouble: Trouble; readonly again: Asking };

/** One slot for all that is asked: the next ends what was before. */
const slot = "rewrite";
const previewOf = (summary: SummaryId): Asking => ({ kind: "rewritePreview", slot, summary });

export const openRewrite = ({ summary }: Extract<Place, { readonly kind: "rewrite" }>): Step<RewriteDialog> => ({
  state: { kind: "rewrite", summary, preview: null, top: 0, phase: { kind: "preview" } },
  asks: [previewOf(summary)],
});

// ── Keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

type Action = ListAction | ScrollAction | "send" | "fresh" | "apply" | "diff" | "retry" | "discard" | "cancel";

const scrolling: readonly Action[] = [...listKeys, ...scrollKeys].map(({ action }) => action);

const offered: Readonly<Record<Phase["kind"], readonly Action[]>> = {
  preview: ["send", "fresh", "cancel", ...scrolling],
  "in flight": ["cancel", ...scrolling],
  review: ["apply", "fresh", "diff", "discard", ...scrolling],
  applying: ["cancel", ...scrolling],
  trouble: ["retry", "fresh", "cancel"],
};

/** Why the model cannot be asked for it; null if it can. */
function whyNot({ preview }: RewriteDialog): string | null {
  if (preview === null) return "it is still being read";
  const { targets, skipped, model } = preview.plan;
  if (targets.length === 0) return skipped[0]?.reason ?? "there is nothing to write it from";
  return model === null ? missingModel().message : null;
}

const isKept = ({ preview }: RewriteDialog): boolean => (preview?.plan.kept.length ?? 0) > 0;
const isCurrent = ({ preview }: RewriteDialog): boolean => (preview?.plan.current.length ?? 0) > 0;

export const rewriteModule: Module<RewriteDialog, Action> = {
  name: "Rewrite",
  box: (_, frame) => wholeBox(frame),
  keys: [
    {
      keys: ["enter"],
      action: "send",
      short: "send",
      says: "have the model write it anew, or show the draft that is kept",
      changes: true,
      disabled: (state) => whyNot(state) ?? (isCurrent(state) ? currentTrouble.message : null),
    },
    { keys: ["enter"], action: "retry", short: "again", says: "try again what did not work", changes: true },
    { keys: ["y", "enter"], action: "apply", short: "apply", says: "put the new text in place", changes: true },
    { keys: ["d"], action: "diff", short: "diff", says: "show what changes as a diff, or both texts again" },
    {
      keys: ["f"],
      action: "fresh",
      short: "ask anew",
      says: "ask for another text, although there is one",
      changes: true,
      disabled: whyNot,
    },
    { keys: ["n", "escape", "q"], action: "discard", short: "discard", says: "leave the old text in place" },
    { keys: ["escape", "q", "n"], action: "cancel", short: "cancel", says: "stop, and change nothing" },
    ...listKeys,
    ...scrollKeys,
  ],
  isOffered: (state, action) =>
    offered[state.phase.kind].includes(action) &&
    (action !== "fresh" || state.phase.kind !== "preview" || isKept(state) || isCurrent(state)),
  title: () => "rewrite",
  isBusy: ({ preview, phase }) =>
    phase.kind === "in flight" || phase.kind === "applying" || (phase.kind === "preview" && preview === null),
  update(state, event, frame) {
    const { phase } = state;
    switch (event.kind) {
      case "answer":
        return answered(state, event.answer, frame);
      case "failed": {
        // What was to be applied can still be; why it was not is on the status line.
        if (phase.kind === "applying") return { state: { ...state, phase: { kind: "review", review: phase.review } } };
        const again: Asking = { ...event.ask, slot };
        return { state: { ...state, phase: { kind: "trouble", trouble: event.failure, again } } };
      }
      case "progress":
        if (phase.kind !== "applying") return { state };
        const { words, done } = event.progress;
        return { state: { ...state, phase: { ...phase, words, isTooLate: done > 0 } } };
      case "changed":
        return phase.kind === "preview" ? { state, asks: [previewOf(state.summary)] } : { state };
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

function answered(state: RewriteDialog, answer: Answer, frame: Frame): Step<RewriteDialog> {
  const { phase } = state;
  const troubled = (trouble: Trouble, again: Asking): Step<RewriteDialog> => ({
    state: { ...state, phase: { kind: "trouble", trouble, again } },
  });
  switch (answer.kind) {
    case "rewritePreview":
      return { state: scroll({ ...state, preview: answer.told, phase: { kind: "preview" } }, 0, frame) };
    case "rewriteDraft": {
      const { told, ask } = answer;
      const again: Asking = { ...ask, slot };
      if (told.kind === "drafted")
        return { state: { ...state, phase: { kind: "review", review: startReview(ask.target, told) } } };
      if (told.kind === "unusable") return troubled(uselessTrouble(told.reason), again);
      return troubled(told.kind === "current" ? currentTrouble : told, again);
    }
    case "rewriteApply": {
      const { told } = answer;
      if (phase.kind !== "applying") return { state };
      const { target, draft } = phase.review;
      if (told.kind === "stale")
        return troubled(staleTrouble(told.reason), { kind: "rewriteDraft", slot, target, isFresh: false });
      const words = rewroteWords(draft.old.id, draft.old.tokens, draft.summary.tokens);
      const text = noticeOf(words, [wayBack(told.change), ...aboveForms(told.above.length)], frame);
      return { state, go: { kind: "back" }, notice: { tone: "good", text } };
    }
    default:
      return { state };
  }
}

function acted(state: RewriteDialog, action: Action, frame: Frame): Step<RewriteDialog> {
  const { phase, preview } = state;
  const target = phase.kind === "review" ? phase.review.target : preview?.plan.targets[0];
  switch (action) {
    case "send":
    case "fresh":
      if (target === undefined) return { state };
      return send(state, { kind: "rewriteDraft", slot, target, isFresh: action === "fresh" }, frame);
    case "retry":
      return phase.kind === "trouble" ? send(state, phase.again, frame) : { state };
    case "apply": {
      if (phase.kind !== "review") return { state };
      const { review } = phase;
      return {
        state: { ...state, phase: { kind: "applying", review, words: "opening the database", isTooLate: false } },
        asks: [{ kind: "rewriteApply", slot, draft: review.draft, partOf: { operation: "rewrite" } }],
      };
    }
    case "diff":
      if (phase.kind !== "review") return { state };
      return {
        state: { ...state, phase: { ...phase, review: { ...phase.review, isDiff: !phase.review.isDiff, top: 0 } } },
      };
    case "discard":
      return leave(state, "discarded: the old text stays, and the draft is kept until you come back to it");
    case "cancel":
      if (phase.kind === "applying" && phase.isTooLate)
        return { state, notice: { tone: "said", text: "too late to cancel: it is written whole, in one step" } };
      return leave(state, phase.kind === "trouble" ? null : "cancelled: nothing was changed");
    default:
      return { state: scroll(state, action, frame) };
  }
}

const leave = (state: RewriteDialog, text: string | null): Step<RewriteDialog> => ({
  state,
  go: { kind: "back" },
  ...(text !== null && { notice: { tone: "said", text } }),
});

function send(state: RewriteDialog, ask: Asking, { now }: Frame): Step<RewriteDialog> {
  const phase: Phase =
    ask.kind === "rewriteDraft" ? { kind: "in flight", target: ask.target, since: now } : { kind: "preview" };
  return { state: { ...state, phase }, asks: [ask] };
}

function scroll(state: RewriteDialog, by: ListAction | ScrollAction | number, frame: Frame): RewriteDialog {
  const { phase, top } = state;
  if (phase.kind === "review" || phase.kind === "applying")
    return { ...state, phase: { ...phase, review: scrollReview(phase.review, by, frame) } };
  const { source, rows } = previewOn(state, frame);
  const count = source.length;
  return {
    ...state,
    top: typeof by === "number" ? scrolled(top, by, count, rows) : textMoved(top, by, count, rows),
  };
}

// ── Draw ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

function draw(state: RewriteDialog, frame: Frame): readonly string[] {
  const { phase } = state;
  const { beat } = frame;
  switch (phase.kind) {
    case "preview":
    case "in flight":
      return drawPreview(state, frame);
    case "review":
      return drawReview(phase.review, frame, question("Put the new text in its place?", reviewKeys, frame));
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

const reviewKeys = ["y yes", "n no", "d diff", "f ask anew"];

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
  const { preview, phase } = state;
  if (preview === null) return { above: [], source: [], rows: 0, below: [] };
  const { plan } = preview;
  const [target] = plan.targets;
  const above = target === undefined ? [] : aboutLines(target, preview, frame);
  const below = footOf(state, frame);
  // Where there is no room for all of it, the question is seen.
  const room = frame.rows - below.length;
  const rows = Math.max(0, room - above.length - 1);
  const lines = target === undefined || rows < 1 ? [] : sourceLines(preview, frame);
  return { above: above.slice(0, room), source: lines, rows: lines.length === 0 ? 0 : rows, below, phase };
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
  const { targets, skipped, model } = preview.plan;
  if (targets.length === 0)
    return troubleLines(
      { message: `${state.summary} cannot be rewritten: ${skipped[0]?.reason ?? ""}`, hint: null },
      frame,
    );
  if (model === null) {
    const { message, hint = null } = missingModel();
    return ["", ...troubleLines({ message, hint }, frame)];
  }
  if (frame.readOnly !== null) return ["", frame.paint.caution(`nothing can be changed: ${frame.readOnly}`)];
  if (isCurrent(state)) return ["", question("Ask for another text?", ["f yes", "esc no"], frame)];
  return isKept(state)
    ? ["", question("Show the draft?", ["↵ yes", "f ask anew", "esc no"], frame)]
    : ["", question("Send it to the model?", ["↵ yes", "esc no"], frame)];
}
