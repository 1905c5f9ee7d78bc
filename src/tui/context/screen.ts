/** The context screen: the prompt the model gets, item by item, at this or another budget. */

import { goTo, opens, type Frame, type Module, type Step } from "../contract.ts";
import { field, lineOf } from "../widgets/field.ts";
import { commandKey, commands } from "../commands.ts";
import { createRows, scrolled, seen, startOfList, textKeys, type List } from "../widgets/list.ts";
import type { Anchor, Prompt } from "./asks.ts";
import {
  countOf,
  drawContext,
  placeOf,
  previewLines,
  previewRoom,
  rowAtLine,
  selectedRef,
  wholePrompt,
} from "./view.ts";
import type { ContextScreen } from "./view.ts";
import { summaryKeys } from "../summaries/summary-keys.ts";
import { formatCount } from "../../core/base/format.ts";

const noSummary = (state: ContextScreen): string | null =>
  selectedRef(state)?.kind === "summary" ? null : "the selected item is not a summary";
const noItem = (state: ContextScreen): string | null =>
  selectedRef(state) === null ? "this row is not a summary or message" : null;
const noPrompt = ({ prompt }: ContextScreen): string | null => (prompt === null ? "still reading" : null);

const open = opens<ContextScreen>((state) => {
  const { conversation } = state;
  const ref = selectedRef(state);
  if (ref === null) return null;
  return ref.kind === "summary"
    ? { kind: "summaries", conversation, at: ref.id }
    : { kind: "messages", conversation, at: ref.id };
});

const ofSummary = summaryKeys<ContextScreen>((state) => {
  const ref = selectedRef(state);
  return ref?.kind === "summary" ? ref.id : null;
}, noSummary);

const items = createRows<ContextScreen>({
  count: countOf,
  place: placeOf,
  at: rowAtLine,
  open,
  scroll,
});

const withBudget = (budgetFor: (now: number) => number | null | undefined) => ({
  disabled: noPrompt,
  does: (state: ContextScreen): Step<ContextScreen> => {
    const now = state.budget ?? state.prompt?.report.budget ?? 0;
    const budget = budgetFor(now);
    return reread({ ...state, budget: budget === undefined ? now : budget });
  },
});

const itself = ({ conversation }: ContextScreen) => ({ conversation });

export const contextModule: Module<ContextScreen> = {
  name: "Context",
  open: (place) => ({
    ...place,
    budget: null,
    prompt: null,
    trouble: null,
    isReading: false,
    list: startOfList,
    typing: null,
    isPreviewed: null,
    top: 0,
  }),
  keys: [
    { keys: ["enter"], short: "open", help: "go to the summary or message", disabled: noItem, does: open },
    {
      keys: ["v", "tab"],
      short: "preview",
      help: "show or hide the text of the selected item",
      does: (state, frame) => ({ state: { ...state, isPreviewed: previewRoom(state, frame) === null } }),
    },
    {
      keys: ["b"],
      short: "budget",
      help: "try another budget, such as 32000 or 32k",
      disabled: noPrompt,
      does: (state) => ({ state: { ...state, typing: field() } }),
    },
    {
      keys: ["+", "="],
      short: "more",
      help: "try a larger budget",
      ...withBudget((now) => steps.find((step) => step > now)),
    },
    {
      keys: ["-"],
      short: "less",
      help: "try a smaller budget",
      ...withBudget((now) => steps.findLast((step) => step < now)),
    },
    commandKey(commands.prompts, ["P"], ({ conversation }) => ({ conversation })),
    { keys: ["B"], help: "go back to the host's budget", does: (state) => reread({ ...state, budget: null }) },
    {
      keys: ["V"],
      short: "whole prompt",
      help: "show the whole prompt",
      disabled: noPrompt,
      does: (state, frame) => ({
        state,
        ...(state.prompt && goTo(wholePrompt(state.prompt, frame))),
      }),
    },
    ofSummary.dissolve,
    ofSummary.rewrite,
    ofSummary.previous,
    commandKey(commands.compact, ["C"], itself, "compact"),
    commandKey(commands.summaries, ["s"], itself),
    commandKey(commands.history, ["u"], itself),
    commandKey(commands.standing, ["!"], itself),
    ...textKeys(scroll),
    ...items.keys,
  ],
  title: ({ conversation }) => `context of ${conversation}`,
  isTyping: ({ typing }) => typing !== null,
  isUnread: ({ prompt, trouble }) => prompt === null && trouble === null,
  reads: ({ conversation, budget }) => [{ kind: "prompt", conversation, budget }],
  answers: {
    ...ofSummary.answers,
    prompt: (state, prompt, frame) => ({ state: withPrompt(state, prompt, frame) }),
    leftOut(state, window) {
      const { prompt } = state;
      const left = prompt && { ...prompt, left: { ...prompt.left, ...window } };
      return { state: { ...state, isReading: false, prompt: left } };
    },
  },
  on: {
    ...items.on,
    failed: (state, { ask, failure }) => ({
      state: ask.kind === "prompt" ? { ...state, trouble: failure.message } : { ...state, isReading: false },
    }),
    changed: reread,
    returned: reread,
    ...lineOf(typedBudget),
  },
  follow(given, frame, before) {
    const top = given.list.cursor === before.list.cursor ? given.top : 0;
    const { state } = scroll({ ...given, top }, 0, frame);
    const anchor = wantedAnchor(state, frame);
    if (anchor === null) return { state };
    const boundary = state.prompt?.left.boundary ?? 0;
    return {
      state: { ...state, isReading: true },
      asks: [{ kind: "leftOut", conversation: state.conversation, boundary, anchor }],
    };
  },
  draw: drawContext,
};

function reread(state: ContextScreen): Step<ContextScreen> {
  const { conversation, budget } = state;
  return { state: { ...state, isReading: false }, asks: [{ kind: "prompt", conversation, budget }] };
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Keeps the cursor on its item; at first, or if a new budget drops the item, it moves to where the prompt begins. */
function withPrompt(state: ContextScreen, prompt: Prompt, frame: Frame): ContextScreen {
  const ref = selectedRef(state);
  const { left, entries } = prompt;
  const next: ContextScreen = { ...state, prompt, trouble: null, isReading: false };
  const place = entries.findIndex(({ origin }) => origin.kind !== "note" && origin.id === ref?.id);
  const before = left.rows.findIndex(({ item }) => item.id === ref?.id);
  const isOther = state.prompt?.report.budget !== prompt.report.budget;
  const at = (list: List): ContextScreen => ({ ...next, list: seen(list, countOf(next), placeOf(next, frame).rows) });
  if (place !== -1) return at({ ...state.list, cursor: left.count + place });
  // Show some of the items left out above, to make them known.
  if (isOther) return at({ cursor: left.count, top: Math.max(0, left.count - leftSeen) });
  return at({ ...state.list, cursor: before === -1 ? state.list.cursor : left.from + before });
}

const leftSeen = 3;

/** More is read when this close to the edge of the window. */
const ahead = 20;
/** How far a new window reaches to the other side of the visible rows. */
const behind = 150;

/** Where to read next, if items that are visible or about to be are not loaded. */
function wantedAnchor(state: ContextScreen, frame: Frame): Anchor | null {
  const { prompt, list, isReading } = state;
  if (prompt === null || isReading || list.top >= prompt.left.count) return null;
  const { count, from, rows, boundary } = prompt.left;
  const bottom = Math.min(count, list.top + placeOf(state, frame).rows);
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
/** More than any model takes; the prompt is held in memory. */
const budgetMax = 2_000_000;

function typedBudget(state: ContextScreen, text: string): Step<ContextScreen> {
  const budget = readBudget(text);
  if (budget !== null) return reread({ ...state, budget });
  const most = formatCount(budgetMax);
  return {
    state,
    notice: { tone: "bad", text: `enter a number of tokens up to ${most}, such as 32000 or 32k` },
  };
}

function readBudget(text: string): number | null {
  const [, digits = "", unit = ""] = /^(\d[\d,_.]*)\s*([km]?)$/i.exec(text) ?? [];
  const factor = { "": 1, k: 1_000, m: 1_000_000 }[unit.toLowerCase()] ?? 1;
  const amount = Math.floor(Number(digits.replace(/[,_]/g, "")) * factor);
  return digits !== "" && amount >= 1 && amount <= budgetMax ? amount : null;
}

// ── The preview ──────────────────────────────────────────────────────────────────────────────────────────────────────

function scroll(state: ContextScreen, lines: number, frame: Frame): Step<ContextScreen> {
  const room = previewRoom(state, frame);
  if (room === null) return { state };
  const count = previewLines(state, { ...frame, ...room }).length;
  return { state: { ...state, top: scrolled(state.top, lines, count, room.rows) } };
}
