/**
 * What stands for what in a conversation: the items of its context, opened down to the messages; all of the selected one
 * beside them; and above them the shape of it all over time.
 */

import type { MessageId, SummaryId } from "../../core/model.ts";
import { messageName } from "../../core/model.ts";
import type { Answer } from "../asks.ts";
import type { Asking, Binding, Frame, Module, Notice, Place, Step } from "../contract.ts";
import { says } from "../keys.ts";
import { isListAction, listKeys, moved, scrolled, scrollKeys, seen, startOfList, wheeled } from "../list.ts";
import type { ListAction, ScrollAction } from "../list.ts";
import type { DagDetail } from "./dag-asks.ts";
import { previousText } from "./dag-detail.ts";
import { keyOf, outsideKey, parentOf, placeOf, rowsOf } from "./dag-tree.ts";
import { draw, headRows, layoutOf, linesOf, rowAt } from "./dag-view.ts";
import type { DagScreen } from "./dag-view.ts";

export type { DagScreen } from "./dag-view.ts";

export function openDag({ conversation, at }: Extract<Place, { readonly kind: "dag" }>): Step<DagScreen> {
  return {
    state: {
      kind: "dag",
      conversation,
      about: null,
      strip: null,
      entries: [],
      outside: null,
      sources: new Map(),
      open: new Set(),
      summaries: new Map(),
      messages: new Map(),
      rows: [],
      list: startOfList,
      isReading: false,
      sought: at ?? null,
      detail: null,
      detailTop: 0,
      isTurned: false,
      problem: null,
    },
    asks: [
      { kind: "dagTop", conversation },
      ...(at === undefined ? [] : [{ kind: "dagPath", conversation, summary: at } as const]),
    ],
  };
}

function selectedSummary(state: DagScreen): SummaryId | null {
  const row = rowAt(state);
  return row?.kind === "summary" ? row.id : null;
}

function noSummary(state: DagScreen): string | null {
  const row = rowAt(state);
  if (row?.kind === "summary") return null;
  if (row?.kind === "message") return "this is a message, not a summary";
  return row?.kind === "run" ? "these are messages, not a summary" : "this is not a summary";
}

const detailOf = (state: DagScreen): Extract<DagDetail, { readonly kind: "summary" }> | null => {
  const { detail } = state;
  const row = rowAt(state);
  return detail?.told?.kind === "summary" && row !== undefined && keyOf(row) === detail.key ? detail.told : null;
};

type Going = "dissolve" | "rewrite" | "rewrites" | "repair" | "history" | "context" | "messages" | "grep";
type Link = "origin" | "files";
type Action = ListAction | ScrollAction | "open" | "close" | "toggle" | "parent" | "turn" | "previous" | Going | Link;

const change = { changes: true } as const;

const keys: readonly Binding<DagScreen, Action>[] = [
  { keys: ["enter", "l", "right"], action: "open", short: "open", says: "show what it was made from, or the message" },
  { keys: ["h", "left"], action: "close", short: "close", says: "close it, or go to what was made from it" },
  { keys: ["space"], action: "toggle", says: "open it, or close it" },
  {
    keys: ["P", "["],
    action: "parent",
    says: "go to what was made from it",
    disabled: ({ rows, list }) => (parentOf(rows, list.cursor) === null ? "this is the top" : null),
  },
  { keys: ["tab", "v"], action: "turn", short: "detail", says: "show or hide all that is known of it" },
  {
    keys: ["w", "r"],
    action: "rewrite",
    short: "rewrite",
    says: says.rewrite,
    ...change,
    disabled: noSummary,
  },
  {
    keys: ["d"],
    action: "dissolve",
    short: "dissolve",
    says: says.dissolve,
    ...change,
    disabled: noSummary,
  },
  {
    keys: ["p"],
    action: "previous",
    short: "previous",
    says: says.previous,
    disabled: noSummary,
  },
  { keys: ["c"], action: "context", short: "context", says: says.context },
  { keys: ["m"], action: "messages", short: "messages", says: says.messages },
  { keys: ["/"], action: "grep", short: "search", says: says.search },
  { keys: ["W"], action: "rewrites", says: "have it and all below it written anew", ...change, disabled: noSummary },
  { keys: ["R"], action: "repair", says: says.repair, ...change },
  { keys: ["u"], action: "history", says: says.history },
  {
    keys: ["o"],
    action: "origin",
    says: "go to the summary whose text it carries",
    disabled: (state) => ((detailOf(state)?.origin ?? null) === null ? "it carries no other summary's text" : null),
  },
  {
    keys: ["f"],
    action: "files",
    says: "show the files it names",
    disabled: (state) => (detailOf(state)?.summary.fileIds[0] === undefined ? "it names no files" : null),
  },
  ...listKeys,
  ...scrollKeys,
];

export const dagModule: Module<DagScreen, Action> = {
  name: "Summaries",
  keys,
  title: ({ conversation }) => `summaries of ${conversation}`,
  isBusy: ({ about, problem }) => about === null && problem === null,
  update(state, event, frame) {
    const { rows: room, above, detail } = layoutOf(state, frame);
    const { list, rows } = state;
    switch (event.kind) {
      case "answer":
        return took(state, event.answer, frame);
      case "failed":
        return { state: { ...state, isReading: false, problem: state.about === null ? event.failure.message : null } };
      case "changed":
      case "returned":
        return again(state, frame, event.kind === "returned");
      case "resized":
        return follow(scroll({ ...state, list: seen(list, rows.length, room) }, 0, frame), frame);
      case "wheel":
        if (detail !== null && event.column >= detail.from) return { state: scroll(state, event.lines, frame) };
        return follow({ ...state, list: wheeled(list, event.lines, rows.length, room) }, frame);
      case "click": {
        const cursor = list.top + event.row - above - headRows;
        const isRow = event.row >= above + headRows && cursor < rows.length;
        if (!isRow || (detail !== null && event.column >= detail.from)) return { state };
        const clicked = { ...state, list: { ...list, cursor } };
        return event.count > 1 ? acted(clicked, "toggle", frame) : follow(clicked, frame);
      }
      case "action":
        return acted(state, event.action, frame);
      default:
        return { state };
    }
  },
  draw,
};

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function took(state: DagScreen, answer: Answer, frame: Frame): Step<DagScreen> {
  switch (answer.kind) {
    case "dagTop": {
      const { conversation: about, entries, outside, strip } = answer.told;
      const next = { ...state, about, entries, strip, outside: outside ?? state.outside, problem: null };
      return follow(rebuilt(next, frame), frame);
    }
    case "dagOutside":
      return follow(rebuilt({ ...state, outside: answer.told }, frame), frame);
    case "dagSources":
      return follow(rebuilt({ ...state, sources: new Map([...state.sources, ...answer.told]) }, frame), frame);
    case "dagFacts": {
      const { ask, told } = answer;
      const summaries = new Map(state.summaries);
      for (const id of ask.summaries) summaries.set(id, null);
      for (const facts of told.summaries) summaries.set(facts.id, facts);
      const messages = new Map(state.messages);
      for (const id of ask.messages) messages.set(id, null);
      for (const facts of told.messages) messages.set(facts.id, facts);
      return follow({ ...state, summaries, messages, isReading: false }, frame);
    }
    case "dagPath": {
      const { ask, told } = answer;
      if (told === null) {
        const text = `${ask.summary} is not in conversation ${ask.conversation} any more`;
        return follow({ ...state, sought: null }, frame, [], { tone: "bad", text });
      }
      const [head] = told.path;
      const open = new Set([...state.open, ...told.path.slice(0, -1), ...(told.isOutside ? [outsideKey] : [])]);
      const known = state.outside ?? [];
      const outside = told.isOutside && head !== undefined && !known.includes(head) ? [head, ...known] : state.outside;
      const sources = new Map([...state.sources, ...told.sources]);
      return follow(rebuilt({ ...state, open, sources, outside, sought: ask.summary }, frame), frame);
    }
    case "dagDetail": {
      const key = typeof answer.ask.of === "number" ? messageName(answer.ask.of) : answer.ask.of;
      return { state: state.detail?.key === key ? { ...state, detail: { key, told: answer.told } } : state };
    }
    case "dagPrevious":
      return { state, go: { kind: "open", place: previousText(answer.told, frame) } };
    default:
      return { state };
  }
}

/** The rows anew, with the cursor on what it was on, or on what is sought. Before the top is known there are none. */
function rebuilt(state: DagScreen, frame: Frame): DagScreen {
  if (state.about === null) return state;
  const before = rowAt(state);
  const rows = rowsOf(state);
  const near = state.list.cursor;
  const sought = state.sought === null ? null : placeOf(rows, state.sought, near);
  const cursor = sought ?? (before === undefined ? near : (placeOf(rows, keyOf(before), near) ?? near));
  const next = { ...state, rows, sought: sought === null ? state.sought : null };
  return { ...next, list: seen({ ...state.list, cursor }, rows.length, layoutOf(next, frame).rows) };
}

/** Everything that is shown, once more; what is not seen is read again when it is. */
function again(state: DagScreen, frame: Frame, isOurs: boolean): Step<DagScreen> {
  const { conversation, rows, outside } = state;
  const ids = rows.flatMap((row) => (row.kind === "summary" && row.isOpen ? [row.id] : []));
  const looksOutside = isOurs && outside !== null && state.open.has(outsideKey);
  const wanted = idsNear(state, frame);
  const only = <K, V>(known: ReadonlyMap<K, V>, kept: readonly K[]): ReadonlyMap<K, V> => {
    const near = new Set(kept);
    return new Map([...known].filter(([id]) => near.has(id)));
  };
  const row = rowAt(state);
  return {
    state: {
      ...state,
      summaries: only(state.summaries, wanted.summaries),
      messages: only(state.messages, wanted.messages),
      isReading: true,
    },
    asks: [
      { kind: "dagTop", conversation },
      { kind: "dagSources", ids, slot: "open" },
      { kind: "dagFacts", ...wanted },
      ...(row?.kind === "summary" || row?.kind === "message" ? [{ kind: "dagDetail", of: row.id } as const] : []),
      // Looking for them may take a while: not after every turn of the host.
      ...(looksOutside ? [{ kind: "dagOutside", conversation } as const] : []),
    ],
  };
}

/** With what is missing of the rows that are seen, or are about to be, and of the one that is selected. */
function follow(state: DagScreen, frame: Frame, asks: readonly Asking[] = [], notice?: Notice): Step<DagScreen> {
  const near = idsNear(state, frame);
  const summaries = near.summaries.filter((id) => !state.summaries.has(id));
  const messages = near.messages.filter((id) => !state.messages.has(id));
  const isMissing = !state.isReading && summaries.length + messages.length > 0;
  const row = rowAt(state);
  const key = row === undefined ? null : keyOf(row);
  const isOther = key !== null && key !== state.detail?.key;
  const isRead = row?.kind === "summary" || row?.kind === "message";
  return {
    state: {
      ...state,
      isReading: state.isReading || isMissing,
      ...(isOther ? { detail: { key, told: null }, detailTop: 0 } : {}),
    },
    asks: [
      ...asks,
      ...(isMissing ? [{ kind: "dagFacts", summaries, messages } as const] : []),
      ...(isOther && isRead ? [{ kind: "dagDetail", of: row.id } as const] : []),
    ],
    ...(notice === undefined ? {} : { notice }),
  };
}

/** Of the rows that are seen, and a page before and after them. */
function idsNear(state: DagScreen, frame: Frame): { summaries: readonly SummaryId[]; messages: readonly MessageId[] } {
  const page = Math.max(1, layoutOf(state, frame).rows);
  const { top } = state.list;
  const rows = state.rows.slice(Math.max(0, top - page), top + 2 * page);
  return {
    summaries: rows.flatMap((row) => (row.kind === "summary" ? [row.id] : [])),
    messages: rows.flatMap((row) =>
      row.kind === "message" ? [row.id] : row.kind === "run" ? [row.first, row.last] : [],
    ),
  };
}

// ── Keys ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

function acted(state: DagScreen, action: Action, frame: Frame): Step<DagScreen> {
  const { rows, list } = state;
  const room = layoutOf(state, frame).rows;
  const goTo = (cursor: number): Step<DagScreen> =>
    follow({ ...state, list: seen({ ...list, cursor }, rows.length, room) }, frame);
  if (isListAction(action)) return follow({ ...state, list: moved(list, action, rows.length, room) }, frame);
  const row = rowAt(state);
  const isOpen = row !== undefined && "isOpen" in row && row.isOpen;
  switch (action) {
    case "textDown":
    case "textUp":
      return { state: scroll(state, action === "textDown" ? 1 : -1, frame) };
    case "turn":
      return follow(scroll({ ...state, isTurned: !state.isTurned }, 0, frame), frame);
    case "open":
      return isOpen ? goTo(list.cursor + 1) : opened(state, frame);
    case "toggle":
      return isOpen ? closed(state, frame) : opened(state, frame);
    case "close":
      return isOpen ? closed(state, frame) : goTo(parentOf(rows, list.cursor) ?? list.cursor);
    case "parent":
      return goTo(parentOf(rows, list.cursor) ?? list.cursor);
    case "previous": {
      const summary = selectedSummary(state);
      return summary === null ? { state } : { state, asks: [{ kind: "dagPrevious", summary }] };
    }
    default: {
      const place = placeFor(state, action);
      return place === null ? { state } : { state, go: { kind: "open", place } };
    }
  }
}

function opened(state: DagScreen, frame: Frame): Step<DagScreen> {
  const { conversation } = state;
  const row = rowAt(state);
  switch (row?.kind) {
    case "message":
      return { state, go: { kind: "open", place: { kind: "messages", conversation, at: row.id } } };
    case "run":
      return { state, go: { kind: "open", place: { kind: "messages", conversation, at: row.first } } };
    case "summary":
    case "outside": {
      const next = rebuilt({ ...state, open: new Set([...state.open, keyOf(row)]) }, frame);
      if (row.kind === "summary")
        return follow(next, frame, [{ kind: "dagSources", ids: [row.id], slot: `sources ${row.id}` }]);
      return follow(next, frame, row.count === null ? [{ kind: "dagOutside", conversation }] : []);
    }
    default:
      return { state };
  }
}

function closed(state: DagScreen, frame: Frame): Step<DagScreen> {
  const row = rowAt(state);
  if (row === undefined) return { state };
  const open = new Set([...state.open].filter((key) => key !== keyOf(row)));
  return follow(rebuilt({ ...state, open }, frame), frame);
}

function placeFor(state: DagScreen, action: Going | Link): Place | null {
  const { conversation } = state;
  const row = rowAt(state);
  const summary = selectedSummary(state);
  const detail = detailOf(state);
  switch (action) {
    case "dissolve":
      return summary === null ? null : { kind: "dissolve", conversation, summary };
    case "rewrite":
      return summary === null ? null : { kind: "rewrite", summary };
    case "rewrites":
      return summary === null ? null : { kind: "rewrites", conversation, summary };
    case "repair":
      return { kind: "rewrites", conversation, summary: null };
    case "history":
    case "context":
    case "grep":
      return { kind: action, conversation };
    case "messages": {
      const at = row?.kind === "message" ? row.id : row?.kind === "run" ? row.first : detail?.sources.messages[0];
      return { kind: "messages", conversation, ...(at === undefined ? {} : { at }) };
    }
    case "origin": {
      const from = detail?.summary.carriedFrom ?? null;
      const origin = detail?.origin ?? null;
      return from === null || origin === null ? null : { kind: "dag", conversation: origin, at: from };
    }
    case "files": {
      const at = detail?.summary.fileIds[0];
      return at === undefined ? null : { kind: "files", conversation, at };
    }
  }
}

function scroll(state: DagScreen, lines: number, frame: Frame): DagScreen {
  const { detail } = layoutOf(state, frame);
  if (detail === null) return state;
  const count = linesOf(state, frame, detail.columns).length;
  return { ...state, detailTop: scrolled(state.detailTop, lines, count, detail.rows) };
}
