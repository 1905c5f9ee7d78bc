/**
 * What stands for what in a conversation: the items of its context, opened down to the messages; all of the selected one
 * beside them; and above them the shape of it all over time.
 */

import type { MessageId, SummaryId } from "../../core/model/types.ts";
import { messageName } from "../../core/model/types.ts";
import type { Ask } from "../asks.ts";
import { goTo, opens, opensIts } from "../contract.ts";
import type { Binding, Frame, Module, Place, Step } from "../contract.ts";
import { says } from "../keys.ts";
import { createRows, scrolled, seen, startOfList, stayed, textKeys } from "../widgets/list.ts";
import type { DagDetail, DagPath } from "./asks.ts";
import { keyOf, outsideKey, parentOf, placeOf, rowsOf } from "./tree.ts";
import { draw, layoutOf, linesOf, rowAt } from "./view.ts";
import type { DagScreen } from "./view.ts";
import { summaryKeys } from "./summary-keys.ts";

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

const ofSummary = summaryKeys<DagScreen>((state) => {
  const row = rowAt(state);
  return row?.kind === "summary" ? row.id : null;
}, noSummary);

const list = createRows<DagScreen>({
  count: ({ rows }) => rows.length,
  place: layoutOf,
  open: toggle,
  scroll,
});

const keys: readonly Binding<DagScreen>[] = [
  {
    keys: ["enter", "l", "right"],
    short: "open",
    says: "show what it was made from, or the message",
    does: (state, frame) => (isOpen(state) ? list.move(state, "down", frame) : opened(state, frame)),
  },
  {
    keys: ["h", "left"],
    short: "close",
    says: "close it, or go to what was made from it",
    does: (state, frame) => (isOpen(state) ? closed(state, frame) : toParent(state, frame)),
  },
  { keys: ["space"], says: "open it, or close it", does: toggle },
  {
    keys: ["P", "["],
    says: "go to what was made from it",
    disabled: (state) => (parentOf(state.rows, state.list.cursor) === null ? "this is the top" : null),
    does: toParent,
  },
  {
    keys: ["tab", "v"],
    short: "detail",
    says: "show or hide all that is known of it",
    does: (state, frame) => scroll({ ...state, isTurned: !state.isTurned }, 0, frame),
  },
  ofSummary.rewrite,
  ofSummary.dissolve,
  { ...ofSummary.previous, short: "previous" },
  { keys: ["c"], short: "context", says: says.context, does: opensIts("context") },
  { keys: ["m"], short: "messages", says: says.messages, does: opens(messagesOf) },
  { keys: ["/"], short: "search", says: says.search, does: opensIts("grep") },
  ofSummary.rewrites,
  {
    keys: ["R"],
    says: says.repair,
    changes: true,
    does: opens(({ conversation }) => ({ kind: "rewrite", conversation, select: { repair: true } })),
  },
  { keys: ["u"], says: says.history, does: opensIts("history") },
  {
    keys: ["o"],
    says: "go to the summary whose text it carries",
    disabled: (state) => (originOf(state) === null ? "it carries no other summary's text" : null),
    does: opens(originOf),
  },
  {
    keys: ["f"],
    says: "show the files it names",
    disabled: (state) => (filesOf(state) === null ? "it names no files" : null),
    does: opens(filesOf),
  },
  ...list.keys,
  ...textKeys(scroll),
];

function messagesOf(state: DagScreen): Place {
  const row = rowAt(state);
  const [first] = detailOf(state)?.sources.messages ?? [];
  const at = row?.kind === "message" ? row.id : row?.kind === "run" ? row.first : first;
  return { kind: "messages", conversation: state.conversation, ...(at !== undefined && { at }) };
}

function originOf(state: DagScreen): Place | null {
  const { origin, summary } = detailOf(state) ?? { origin: null };
  const at = summary?.carriedFrom ?? null;
  return origin === null || at === null ? null : { kind: "dag", conversation: origin, at };
}

function filesOf(state: DagScreen): Place | null {
  const at = detailOf(state)?.summary.fileIds[0];
  return at === undefined ? null : { kind: "files", conversation: state.conversation, at };
}

export const dagModule: Module<DagScreen> = {
  name: "Summaries",
  open: ({ kind, conversation, at }) => ({
    kind,
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
  }),
  keys,
  title: ({ conversation }) => `summaries of ${conversation}`,
  isUnread: ({ about, problem }) => about === null && problem === null,
  reads: ({ conversation, sought }) => [
    { kind: "dagTop", conversation },
    ...(sought === null ? [] : [{ kind: "dagPath", conversation, summary: sought } as const]),
  ],
  answers: {
    ...ofSummary.answers,
    dagTop(state, { conversation: about, entries, outside, strip }, frame) {
      const next = { ...state, about, entries, strip, outside: outside ?? state.outside, problem: null };
      return { state: rebuilt(next, frame) };
    },
    dagOutside: (state, outside, frame) => ({ state: rebuilt({ ...state, outside }, frame) }),
    dagSources: (state, told, frame) => ({
      state: rebuilt({ ...state, sources: new Map([...state.sources, ...told]) }, frame),
    }),
    dagFacts: (state, told, _, asked) => ({
      state: {
        ...state,
        summaries: withFacts(state.summaries, asked.summaries, told.summaries),
        messages: withFacts(state.messages, asked.messages, told.messages),
        isReading: false,
      },
    }),
    dagPath,
    dagDetail(state, told, _, { of }) {
      const key = typeof of === "number" ? messageName(of) : of;
      return { state: state.detail?.key === key ? { ...state, detail: { key, told } } : state };
    },
  },
  on: {
    ...list.on,
    failed: (state, { failure }) => ({
      state: { ...state, isReading: false, problem: state.about === null ? failure.message : null },
    }),
    changed: (state, _, frame) => again(state, frame, false),
    returned: (state, _, frame) => again(state, frame, true),
  },
  follow,
  draw,
};

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What was asked for and is not told is gone. */
const withFacts = <K, V extends { readonly id: K }>(
  known: ReadonlyMap<K, V | null>,
  asked: readonly K[],
  told: readonly V[],
): ReadonlyMap<K, V | null> =>
  new Map([...known, ...asked.map((id) => [id, null] as const), ...told.map((each) => [each.id, each] as const)]);

function dagPath(state: DagScreen, told: DagPath | null, frame: Frame, ask: Ask<"dagPath">): Step<DagScreen> {
  if (told === null) {
    const text = `${ask.summary} is not in conversation ${ask.conversation} any more`;
    return { state: { ...state, sought: null }, notice: { tone: "bad", text } };
  }
  const [head] = told.path;
  const open = new Set([...state.open, ...told.path.slice(0, -1), ...(told.isOutside ? [outsideKey] : [])]);
  const known = state.outside ?? [];
  const outside = told.isOutside && head !== undefined && !known.includes(head) ? [head, ...known] : state.outside;
  const sources = new Map([...state.sources, ...told.sources]);
  return { state: rebuilt({ ...state, open, sources, outside, sought: ask.summary }, frame) };
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

/** Asks for what is missing of the rows that are seen, or are about to be, and of the one that is selected. */
function follow(state: DagScreen, frame: Frame): Step<DagScreen> {
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
      ...(isOther && { detail: { key, told: null }, detailTop: 0 }),
    },
    asks: [
      ...(isMissing ? [{ kind: "dagFacts", summaries, messages } as const] : []),
      ...(isOther && isRead ? [{ kind: "dagDetail", of: row.id } as const] : []),
    ],
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

// ── Opening and closing ──────────────────────────────────────────────────────────────────────────────────────────────

function isOpen(state: DagScreen): boolean {
  const row = rowAt(state);
  return row !== undefined && "isOpen" in row && row.isOpen;
}

function toggle(state: DagScreen, frame: Frame): Step<DagScreen> {
  return isOpen(state) ? closed(state, frame) : opened(state, frame);
}

function toParent(state: DagScreen, frame: Frame): Step<DagScreen> {
  const at = parentOf(state.rows, state.list.cursor) ?? -1;
  return { state: { ...state, list: stayed(state.list, at, state.rows.length, layoutOf(state, frame).rows) } };
}

function opened(state: DagScreen, frame: Frame): Step<DagScreen> {
  const { conversation } = state;
  const row = rowAt(state);
  switch (row?.kind) {
    case "message":
    case "run":
      return { state, ...goTo(messagesOf(state)) };
    case "summary":
    case "outside": {
      const next = rebuilt({ ...state, open: new Set([...state.open, keyOf(row)]) }, frame);
      if (row.kind === "summary")
        return { state: next, asks: [{ kind: "dagSources", ids: [row.id], slot: `sources ${row.id}` }] };
      return { state: next, asks: row.count === null ? [{ kind: "dagOutside", conversation }] : [] };
    }
    default:
      return { state };
  }
}

function closed(state: DagScreen, frame: Frame): Step<DagScreen> {
  const row = rowAt(state);
  const open = new Set([...state.open].filter((key) => row === undefined || key !== keyOf(row)));
  return { state: rebuilt({ ...state, open }, frame) };
}

function scroll(state: DagScreen, lines: number, frame: Frame): Step<DagScreen> {
  const { detail } = layoutOf(state, frame);
  if (detail === null) return { state };
  const count = linesOf(state, frame, detail.columns).length;
  return { state: { ...state, detailTop: scrolled(state.detailTop, lines, count, detail.rows) } };
}
