/** What the model sees of a conversation, in order, and what it would not see at another budget. */

import { formatCount } from "../../core/text.ts";
import type { Asking, Frame, LayerEvent, Module, Place, Step } from "../contract.ts";
import { field, pasted, textOf, typed } from "../field.ts";
import { says } from "../keys.ts";
import type { Key } from "../keys.ts";
import { isListAction, listKeys, moved, scrolled, scrollKeys, seen, startOfList, wheeled } from "../list.ts";
import type { List, ListAction, ScrollAction } from "../list.ts";
import type { Anchor, Prompt } from "./context-asks.ts";
import {
  countOf,
  drawContext,
  listRows,
  previewLines,
  previewRoom,
  rowAtLine,
  selectedRef,
  wholePrompt,
} from "./context-view.ts";
import type { ContextScreen } from "./context-view.ts";
import { previousText } from "./dag-detail.ts";

export type { ContextScreen } from "./context-view.ts";

export const openContext = ({ conversation }: Extract<Place, { readonly kind: "context" }>): Step<ContextScreen> => ({
  state: {
    kind: "context",
    conversation,
    budget: null,
    prompt: null,
    trouble: null,
    isReading: false,
    list: startOfList,
    typing: null,
    isPreviewed: null,
    preview: null,
  },
  asks: [{ kind: "prompt", conversation, budget: null }],
});

type Action =
  | ListAction
  | ScrollAction
  | "go"
  | "preview"
  | "whole"
  | "budget"
  | "more"
  | "less"
  | "own"
  | "dissolve"
  | "rewrite"
  | "previous"
  | "history"
  | "summaries"
  | "status";

const noSummary = (state: ContextScreen): string | null =>
  selectedRef(state)?.kind === "summary" ? null : "the selected item is not a summary";
const noItem = (state: ContextScreen): string | null =>
  selectedRef(state) === null ? "nothing stands behind it" : null;
const noPrompt = ({ prompt }: ContextScreen): string | null => (prompt === null ? "it is not read yet" : null);

export const contextModule: Module<ContextScreen, Action> = {
  name: "Context",
  keys: [
    { keys: ["enter"], action: "go", short: "open", says: "go to the summary or the message", disabled: noItem },
    { keys: ["v", "tab"], action: "preview", short: "preview", says: "show the text that the model gets" },
    { keys: ["b"], action: "budget", short: "budget", says: "type a budget, such as 32000 or 32k", disabled: noPrompt },
    { keys: ["+", "="], action: "more", short: "more", says: "try a larger budget", disabled: noPrompt },
    { keys: ["-"], action: "less", short: "less", says: "try a smaller budget", disabled: noPrompt },
    { keys: ["B"], action: "own", says: "take the host's budget again" },
    { keys: ["V"], action: "whole", short: "all text", says: "show every word of the prompt", disabled: noPrompt },
    { keys: ["d"], action: "dissolve", short: "dissolve", says: says.dissolve, changes: true, disabled: noSummary },
    {
      keys: ["w", "r"],
      action: "rewrite",
      short: "rewrite",
      says: says.rewrite,
      changes: true,
      disabled: noSummary,
    },
    { keys: ["p"], action: "previous", says: says.previous, disabled: noSummary },
    { keys: ["s"], action: "summaries", says: says.summaries },
    { keys: ["u"], action: "history", says: says.history },
    { keys: ["!"], action: "status", says: "show how the conversation is" },
    ...scrollKeys,
    ...listKeys,
  ],
  title: ({ conversation }) => `context of ${conversation}`,
  isTyping: ({ typing }) => typing !== null,
  isBusy: ({ prompt, trouble }) => prompt === null && trouble === null,
  update(state, event, frame) {
    const step = change(state, event, frame);
    const next = withPreview(step.state, frame);
    const anchor = wantedAnchor(next, frame);
    if (anchor === null) return { ...step, state: next };
    const { conversation, prompt } = next;
    const ask: Asking = { kind: "leftOut", conversation, boundary: prompt?.left.boundary ?? 0, anchor };
    return { ...step, state: { ...next, isReading: true }, asks: [...(step.asks ?? []), ask] };
  },
  draw: drawContext,
};

function change(state: ContextScreen, event: LayerEvent<Action>, frame: Frame): Step<ContextScreen> {
  const rows = listRows(state, frame);
  const count = countOf(state);
  switch (event.kind) {
    case "answer":
      if (event.answer.kind === "prompt") return { state: told(state, event.answer.told, frame) };
      if (event.answer.kind === "leftOut" && state.prompt !== null) {
        const left = { ...state.prompt.left, ...event.answer.told };
        return { state: { ...state, isReading: false, prompt: { ...state.prompt, left } } };
      }
      if (event.answer.kind === "dagPrevious")
        return { state, go: { kind: "open", place: previousText(event.answer.told, frame) } };
      return { state };
    case "failed":
      return event.ask.kind === "prompt"
        ? { state: { ...state, trouble: event.failure.message } }
        : { state: { ...state, isReading: false } };
    case "changed":
    case "returned":
      return reread(state);
    case "resized":
      return { state: { ...state, list: seen(state.list, count, rows) } };
    case "wheel":
      if (isOverPreview(state, event, frame)) return { state: scrolledBy(state, event.lines, frame) };
      return { state: { ...state, list: wheeled(state.list, event.lines, count, rows) } };
    case "click": {
      const cursor = rowAtLine(state, frame, event);
      if (cursor === null) return { state };
      const clicked = { ...state, list: { ...state.list, cursor } };
      return event.count > 1 ? go(clicked) : { state: clicked };
    }
    case "key":
      return typedBudget(state, event.key);
    case "pasted":
      return { state: { ...state, typing: pasted(state.typing ?? field(), event.text) } };
    case "action":
      if (isListAction(event.action))
        return { state: { ...state, list: moved(state.list, event.action, count, rows) } };
      return act(state, event.action, frame);
    default:
      return { state };
  }
}

const reread = (state: ContextScreen): Step<ContextScreen> => ({
  state: { ...state, isReading: false },
  asks: [{ kind: "prompt", conversation: state.conversation, budget: state.budget }],
});

function act(state: ContextScreen, action: Exclude<Action, ListAction>, frame: Frame): Step<ContextScreen> {
  const { conversation, prompt } = state;
  const open = (place: Place): Step<ContextScreen> => ({ state, go: { kind: "open", place } });
  const ref = selectedRef(state);
  const summary = ref?.kind === "summary" ? ref.id : null;
  switch (action) {
    case "go":
      return go(state);
    case "preview":
      return { state: { ...state, isPreviewed: previewRoom(state, frame) === null } };
    case "textUp":
      return { state: scrolledBy(state, -1, frame) };
    case "textDown":
      return { state: scrolledBy(state, 1, frame) };
    case "whole":
      return prompt === null ? { state } : open(wholePrompt(prompt, frame));
    case "budget":
      return { state: { ...state, typing: field() } };
    case "more":
      return withBudget(state, steps.find((step) => step > budgetNow(state)) ?? budgetNow(state));
    case "less":
      return withBudget(state, steps.findLast((step) => step < budgetNow(state)) ?? budgetNow(state));
    case "own":
      return withBudget(state, null);
    case "dissolve":
      return summary === null ? { state } : open({ kind: "dissolve", conversation, summary });
    case "rewrite":
      return summary === null ? { state } : open({ kind: "rewrite", summary });
    case "previous":
      return summary === null ? { state } : { state, asks: [{ kind: "dagPrevious", summary }] };
    case "summaries":
      return open({ kind: "dag", conversation });
    case "history":
      return open({ kind: "history", conversation });
    case "status":
      return open({ kind: "status", conversation });
  }
}

function go(state: ContextScreen): Step<ContextScreen> {
  const ref = selectedRef(state);
  if (ref === null) return { state };
  const { conversation } = state;
  const place: Place =
    ref.kind === "summary" ? { kind: "dag", conversation, at: ref.id } : { kind: "messages", conversation, at: ref.id };
  return { state, go: { kind: "open", place } };
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The cursor stays on its item. At first, and where another budget leaves that out, it is where the prompt begins. */
function told(state: ContextScreen, prompt: Prompt, frame: Frame): ContextScreen {
  const ref = selectedRef(state);
  const { left, entries } = prompt;
  const next: ContextScreen = { ...state, prompt, trouble: null, isReading: false };
  const place = entries.findIndex(({ origin }) => origin.kind !== "note" && origin.id === ref?.id);
  const before = left.rows.findIndex(({ item }) => item.id === ref?.id);
  const isOther = state.prompt?.report.budget !== prompt.report.budget;
  const at = (list: List): ContextScreen => ({ ...next, list: seen(list, countOf(next), listRows(next, frame)) });
  if (place !== -1) return at({ ...state.list, cursor: left.count + place });
  // Something of what is left out is seen above, so that it is known to be there.
  if (isOther) return at({ cursor: left.count, top: Math.max(0, left.count - leftSeen) });
  return at({ ...state.list, cursor: before === -1 ? state.list.cursor : left.from + before });
}

const leftSeen = 3;

/** How near to the edge of what was read one may come before more is. */
const ahead = 20;
/** How much of what is seen a new window holds on its other side. */
const behind = 150;

/** What of the left out is seen, or soon will be, and has not been read; null if nothing is. */
function wantedAnchor(state: ContextScreen, frame: Frame): Anchor | null {
  const { prompt, list, isReading } = state;
  if (prompt === null || isReading || list.top >= prompt.left.count) return null;
  const { count, from, rows, boundary } = prompt.left;
  const bottom = Math.min(count, list.top + listRows(state, frame));
  const end = from + rows.length;
  const at = (position: number, side: Anchor["side"]): Anchor | null => {
    const item = rows[position - from]?.item;
    return item === undefined ? null : { side, ordinal: item.ordinal, position };
  };
  if (bottom <= from || list.top >= end)
    return list.top < count / 2
      ? { side: "after", ordinal: Number.MIN_SAFE_INTEGER, position: -1 }
      : { side: "before", ordinal: boundary, position: count };
  if (from > 0 && list.top < from + ahead) return at(Math.min(end - 1, bottom + behind), "before");
  if (end < count && bottom > end - ahead) return at(Math.max(from, list.top - behind), "after");
  return null;
}

// ── The budget ───────────────────────────────────────────────────────────────────────────────────────────────────────

const steps = [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 200, 256, 400, 512, 1_000, 2_000].map((k) => k * 1_000);
/** More than any model takes; what is shown is held in memory. */
const budgetMax = 2_000_000;

const budgetNow = ({ budget, prompt }: ContextScreen): number => budget ?? prompt?.report.budget ?? 0;

const withBudget = (state: ContextScreen, budget: number | null): Step<ContextScreen> => reread({ ...state, budget });

function typedBudget(state: ContextScreen, key: Key): Step<ContextScreen> {
  const { typing } = state;
  if (typing === null) return { state };
  const done = { ...state, typing: null };
  if (key.name === "escape") return { state: done };
  if (key.name !== "enter") return { state: { ...state, typing: typed(typing, key) } };
  const text = textOf(typing).trim();
  if (text === "") return { state: done };
  const budget = readBudget(text);
  if (budget !== null) return withBudget(done, budget);
  const most = formatCount(budgetMax);
  return {
    state: done,
    notice: { tone: "bad", text: `a budget is a number of tokens up to ${most}, such as 32000 or 32k` },
  };
}

function readBudget(text: string): number | null {
  const [, digits = "", unit = ""] = /^(\d[\d,_.]*)\s*([km]?)$/i.exec(text) ?? [];
  const factor = { "": 1, k: 1_000, m: 1_000_000 }[unit.toLowerCase()] ?? 1;
  const amount = Math.floor(Number(digits.replace(/[,_]/g, "")) * factor);
  return digits !== "" && amount >= 1 && amount <= budgetMax ? amount : null;
}

// ── The preview ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** The text of the selected item, broken into lines once and not at every look. */
function withPreview(state: ContextScreen, frame: Frame): ContextScreen {
  const room = previewRoom(state, frame);
  if (room === null || state.prompt === null) return state.preview === null ? state : { ...state, preview: null };
  const { preview, prompt, list } = state;
  if (preview?.of === prompt && preview.cursor === list.cursor && preview.columns === room.columns) return state;
  const isSame = preview !== null && preview.cursor === list.cursor && preview.columns === room.columns;
  const lines = previewLines(state, { ...frame, ...room });
  const top = isSame ? scrolled(preview.top, 0, lines.length, room.rows) : 0;
  return { ...state, preview: { of: prompt, cursor: list.cursor, columns: room.columns, lines, top } };
}

function scrolledBy(state: ContextScreen, lines: number, frame: Frame): ContextScreen {
  const room = previewRoom(state, frame);
  const { preview } = state;
  if (preview === null || room === null) return state;
  return { ...state, preview: { ...preview, top: scrolled(preview.top, lines, preview.lines.length, room.rows) } };
}

const isOverPreview = (
  state: ContextScreen,
  { column, row }: { readonly column: number; readonly row: number },
  frame: Frame,
): boolean => {
  const room = previewRoom(state, frame);
  return (
    room !== null && (room.isBeside ? column > frame.columns - room.columns - 2 : row >= frame.rows - room.rows - 1)
  );
};
