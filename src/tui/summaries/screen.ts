/** The summaries screen: the context as a tree down to its messages, with details and a strip over time. */

import { messageName, type MessageId, type SummaryId } from "../../core/model/types.ts";
import type { Ask } from "../asks.ts";
import { goTo, opens } from "../contract.ts";
import type { Binding, Frame, Module, Destination, Step } from "../contract.ts";
import { commandKey, commands } from "../commands.ts";
import { createRows, scrolled, seen, startOfList, stayed, textKeys } from "../widgets/list.ts";
import type { ItemDetail, SummaryPath } from "./asks.ts";
import { keyOf, outsideKey, parentOf, placeOf, rowsOf } from "./tree.ts";
import { draw, layoutOf, linesOf, rowAt, type SummariesScreen } from "./view.ts";
import { summaryKeys } from "./summary-keys.ts";

function noSummary(state: SummariesScreen): string | null {
  const row = rowAt(state);
  if (row?.kind === "summary") return null;
  if (row?.kind === "message") return "this is a message, not a summary";
  return row?.kind === "run" ? "these are messages, not a summary" : "this is not a summary";
}

const detailOf = (state: SummariesScreen): Extract<ItemDetail, { readonly kind: "summary" }> | null => {
  const { detail } = state;
  const row = rowAt(state);
  return detail?.result?.kind === "summary" && row !== undefined && keyOf(row) === detail.key ? detail.result : null;
};

const ofSummary = summaryKeys<SummariesScreen>((state) => {
  const row = rowAt(state);
  return row?.kind === "summary" ? row.id : null;
}, noSummary);

const itself = ({ conversation }: SummariesScreen) => ({ conversation });

/** Transplanting copies the summaries of the whole conversation, whichever is selected. */
function whyNoCopy({ about, others }: SummariesScreen): string | null {
  if (about === null) return "still reading";
  if (about.totals.summaries === 0) return "it has no summaries to copy";
  return others ? null : "there is no other conversation to copy into";
}

const list = createRows<SummariesScreen>({
  count: ({ rows }) => rows.length,
  place: layoutOf,
  open: toggle,
  scroll,
});

const keys: readonly Binding<SummariesScreen>[] = [
  {
    keys: ["enter", "l", "right"],
    short: "open",
    help: "open the summary's sources, or the message",
    does: (state, frame) => (isOpen(state) ? list.move(state, "down", frame) : opened(state, frame)),
  },
  {
    keys: ["h", "left"],
    short: "close",
    help: "close the row, or go to its parent",
    does: (state, frame) => (isOpen(state) ? closed(state, frame) : toParent(state, frame)),
  },
  { keys: ["space"], help: "open or close the row", does: toggle },
  {
    keys: ["P", "["],
    help: "go to the parent row",
    disabled: (state) => (parentOf(state.rows, state.list.cursor) === null ? "this row is at the top level" : null),
    does: toParent,
  },
  {
    keys: ["tab", "v"],
    short: "details",
    help: "show or hide the details",
    does: (state, frame) => scroll({ ...state, isTurned: !state.isTurned }, 0, frame),
  },
  ofSummary.rewrite,
  ofSummary.dissolve,
  { ...ofSummary.previous, short: "previous" },
  commandKey(commands.context, ["c"], itself, "context"),
  commandKey(commands.compact, ["C"], itself, "compact"),
  { ...commandKey(commands.messages, ["m"], itself, "messages"), does: opens(messagesOf) },
  commandKey(commands.search, ["/"], itself, "search"),
  ofSummary.rewrites,
  commandKey(commands.repair, ["R"], itself),
  { ...commandKey(commands.transplant, ["t"], itself), disabled: whyNoCopy },
  commandKey(commands.history, ["u"], itself),
  {
    keys: ["o"],
    help: "go to the summary whose text it carries",
    disabled: (state) => (originOf(state) === null ? "it is not a carried summary" : null),
    does: opens(originOf),
  },
  {
    keys: ["f"],
    help: "show the files the summary mentions",
    disabled: (state) => (filesOf(state) === null ? "it mentions no files" : null),
    does: opens(filesOf),
  },
  ...list.keys,
  ...textKeys(scroll),
];

function messagesOf(state: SummariesScreen): Destination {
  const row = rowAt(state);
  const [first] = detailOf(state)?.sources.messages ?? [];
  const at = row?.kind === "message" ? row.id : row?.kind === "run" ? row.first : first;
  return { kind: "messages", conversation: state.conversation, ...(at !== undefined && { at }) };
}

function originOf(state: SummariesScreen): Destination | null {
  const { origin, summary } = detailOf(state) ?? { origin: null };
  const at = summary?.carriedFrom ?? null;
  return origin === null || at === null ? null : { kind: "summaries", conversation: origin, at };
}

function filesOf(state: SummariesScreen): Destination | null {
  const at = detailOf(state)?.summary.fileIds[0];
  return at === undefined ? null : { kind: "files", conversation: state.conversation, at };
}

export const summariesModule: Module<SummariesScreen> = {
  name: "Summaries",
  open: ({ kind, conversation, at }) => ({
    kind,
    conversation,
    about: null,
    others: false,
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
    { kind: "summaryTree", conversation },
    ...(sought === null ? [] : [{ kind: "summaryPath", conversation, summary: sought } as const]),
  ],
  answers: {
    ...ofSummary.answers,
    summaryTree(state, { conversation: about, entries, outside, strip, others }, frame) {
      const next = { ...state, about, entries, strip, others, outside: outside ?? state.outside, problem: null };
      return { state: rebuilt(next, frame) };
    },
    summariesOutside: (state, outside, frame) => ({ state: rebuilt({ ...state, outside }, frame) }),
    summarySources: (state, result, frame) => ({
      state: rebuilt({ ...state, sources: new Map([...state.sources, ...result]) }, frame),
    }),
    rowFacts: (state, result, _, asked) => ({
      state: {
        ...state,
        summaries: withFacts(state.summaries, asked.summaries, result.summaries),
        messages: withFacts(state.messages, asked.messages, result.messages),
        isReading: false,
      },
    }),
    summaryPath,
    itemDetail(state, result, _, { of }) {
      const key = typeof of === "number" ? messageName(of) : of;
      return { state: state.detail?.key === key ? { ...state, detail: { key, result } } : state };
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

/** Ids that were asked for and not found become null. */
const withFacts = <K, V extends { readonly id: K }>(
  known: ReadonlyMap<K, V | null>,
  asked: readonly K[],
  result: readonly V[],
): ReadonlyMap<K, V | null> =>
  new Map([...known, ...asked.map((id) => [id, null] as const), ...result.map((each) => [each.id, each] as const)]);

function summaryPath(
  state: SummariesScreen,
  result: SummaryPath | null,
  frame: Frame,
  ask: Ask<"summaryPath">,
): Step<SummariesScreen> {
  if (result === null) {
    const text = `${ask.summary} is no longer in conversation ${ask.conversation}`;
    return { state: { ...state, sought: null }, notice: { tone: "bad", text } };
  }
  const [head] = result.path;
  const open = new Set([...state.open, ...result.path.slice(0, -1), ...(result.isOutside ? [outsideKey] : [])]);
  const known = state.outside ?? [];
  const outside = result.isOutside && head !== undefined && !known.includes(head) ? [head, ...known] : state.outside;
  const sources = new Map([...state.sources, ...result.sources]);
  return { state: rebuilt({ ...state, open, sources, outside, sought: ask.summary }, frame) };
}

/** Rebuilds the rows, with the cursor on the sought summary or on its old row. */
function rebuilt(state: SummariesScreen, frame: Frame): SummariesScreen {
  if (state.about === null) return state;
  const before = rowAt(state);
  const rows = rowsOf(state);
  const near = state.list.cursor;
  const sought = state.sought === null ? null : placeOf(rows, state.sought, near);
  const cursor = sought ?? (before === undefined ? near : (placeOf(rows, keyOf(before), near) ?? near));
  const next = { ...state, rows, sought: sought === null ? state.sought : null };
  return { ...next, list: seen({ ...state.list, cursor }, rows.length, layoutOf(next, frame).rows) };
}

/** Reads everything visible again; the rest is forgotten, and read when it becomes visible. */
function again(state: SummariesScreen, frame: Frame, isOurs: boolean): Step<SummariesScreen> {
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
      { kind: "summaryTree", conversation },
      { kind: "summarySources", ids, slot: "open" },
      { kind: "rowFacts", ...wanted },
      ...(row?.kind === "summary" || row?.kind === "message" ? [{ kind: "itemDetail", of: row.id } as const] : []),
      // May be slow, so not after every turn of the host.
      ...(looksOutside ? [{ kind: "summariesOutside", conversation } as const] : []),
    ],
  };
}

/** Asks for missing facts of rows that are visible or about to be, and for the selected row's details. */
function follow(state: SummariesScreen, frame: Frame): Step<SummariesScreen> {
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
      ...(isOther && { detail: { key, result: null }, detailTop: 0 }),
    },
    asks: [
      ...(isMissing ? [{ kind: "rowFacts", summaries, messages } as const] : []),
      ...(isOther && isRead ? [{ kind: "itemDetail", of: row.id } as const] : []),
    ],
  };
}

/** Ids of the visible rows, and of a page before and after them. */
function idsNear(
  state: SummariesScreen,
  frame: Frame,
): { summaries: readonly SummaryId[]; messages: readonly MessageId[] } {
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

function isOpen(state: SummariesScreen): boolean {
  const row = rowAt(state);
  return row !== undefined && "isOpen" in row && row.isOpen;
}

function toggle(state: SummariesScreen, frame: Frame): Step<SummariesScreen> {
  return isOpen(state) ? closed(state, frame) : opened(state, frame);
}

function toParent(state: SummariesScreen, frame: Frame): Step<SummariesScreen> {
  const at = parentOf(state.rows, state.list.cursor) ?? -1;
  return { state: { ...state, list: stayed(state.list, at, state.rows.length, layoutOf(state, frame).rows) } };
}

function opened(state: SummariesScreen, frame: Frame): Step<SummariesScreen> {
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
        return { state: next, asks: [{ kind: "summarySources", ids: [row.id], slot: `sources ${row.id}` }] };
      return { state: next, asks: row.count === null ? [{ kind: "summariesOutside", conversation }] : [] };
    }
    default:
      return { state };
  }
}

function closed(state: SummariesScreen, frame: Frame): Step<SummariesScreen> {
  const row = rowAt(state);
  const open = new Set([...state.open].filter((key) => row === undefined || key !== keyOf(row)));
  return { state: rebuilt({ ...state, open }, frame) };
}

function scroll(state: SummariesScreen, lines: number, frame: Frame): Step<SummariesScreen> {
  const { detail } = layoutOf(state, frame);
  if (detail === null) return { state };
  const count = linesOf(state, frame, detail.columns).length;
  return { state: { ...state, detailTop: scrolled(state.detailTop, lines, count, detail.rows) } };
}
