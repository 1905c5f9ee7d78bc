/**
 * The messages of a conversation as a transcript. However long it is, only a stretch around what is seen is held; what lies
 * beside it is asked for before one gets there.
 */

import { messageName } from "../../core/model/types.ts";
import type { ConversationId, MessageId } from "../../core/model/types.ts";
import type { Ask } from "../asks.ts";
import { goTo, opens, opensIts } from "../contract.ts";
import type { Asking, Frame, LayerEvent, Module, Step } from "../contract.ts";
import { ends, rule } from "../widgets/draw.ts";
import { drawField, field, lineOf } from "../widgets/field.ts";
import type { Field } from "../widgets/field.ts";
import { says } from "../keys.ts";
import { bound, listKeys, textKeys } from "../widgets/list.ts";
import type { ListAction } from "../keys.ts";
import { percent, rowsFrom, scrolledBy, startOfText } from "../widgets/pane.ts";
import type { Room, Spot } from "../widgets/pane.ts";
import type { Arrival, MessagePlace, MessagesPage, ShownMessage } from "./asks.ts";
import { indexOf, markedRow, revealing, scrolledTop, seenMessages, seenRows } from "./view.ts";
import type { Top, View } from "./view.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { clockTime } from "../../format/times.ts";

export interface MessagesScreen {
  readonly kind: "messages";
  readonly conversation: ConversationId;
  /** What is held of it; null until something has been read. */
  readonly page: MessagesPage | null;
  /** The message that keys act on, by its `seq`. */
  readonly cursor: number;
  readonly top: Top;
  readonly unfolded: ReadonlySet<MessageId>;
  /** Where to go, until it has been read. */
  readonly sought: MessagePlace | null;
  /** Whether what lies around the cursor is being read, because one comes near to the end of what is held. */
  readonly isReading: boolean;
  /** The one that is shown whole, and its lines once they have been read. */
  readonly whole: {
    readonly message: ShownMessage;
    readonly lines: readonly string[] | null;
    readonly top: Spot;
  } | null;
  /** Where to go, while that is typed. */
  readonly typing: Field | null;
}

const newest: MessagePlace = { kind: "newest" };

const seek = (state: MessagesScreen, place: MessagePlace): Step<MessagesScreen> => ({
  state: { ...state, sought: place },
  asks: [{ kind: "messagesAt", conversation: state.conversation, place }],
});

const selected = ({ page, cursor }: MessagesScreen): ShownMessage | null =>
  page?.messages.find(({ seq }) => seq === cursor) ?? null;

const none = (state: MessagesScreen): string | null => (selected(state) === null ? "there is no message" : null);
const isReader = ({ whole }: MessagesScreen): string | null =>
  whole === null ? null : "one message is shown; esc goes back to all";

/** Where a key has to do with the message that it is on. */
const ofSelected =
  (act: (state: MessagesScreen, message: ShownMessage, frame: Frame) => Step<MessagesScreen>) =>
  (state: MessagesScreen, frame: Frame): Step<MessagesScreen> => {
    const message = selected(state);
    return message === null ? { state } : act(state, message, frame);
  };

/** The line on where one is, and one below it. */
const headRows = 2;

export const messagesModule: Module<MessagesScreen> = {
  name: "Messages",
  open: ({ kind, conversation, at }) => ({
    kind,
    conversation,
    page: null,
    cursor: 0,
    top: { seq: 0, row: 0 },
    unfolded: new Set(),
    sought: at === undefined ? newest : { kind: "message", id: at },
    isReading: false,
    whole: null,
    typing: null,
  }),
  keys: [
    { keys: ["enter"], short: "whole", says: "show all of the message, and go back", disabled: none, does: turnWhole },
    {
      keys: ["space"],
      short: "unfold",
      says: "unfold the message, or fold it",
      disabled: isReader,
      does: ofSelected((state, { id }, frame) => {
        const unfolded = new Set(state.unfolded);
        if (!unfolded.delete(id)) unfolded.add(id);
        return { state: revealed({ ...state, unfolded }, frame) };
      }),
    },
    {
      keys: [":"],
      short: "go to",
      says: "go to a time, #number or msg_id",
      disabled: isReader,
      does: (state) => ({ state: { ...state, typing: field() } }),
    },
    { keys: ["/"], short: "search", says: says.search, does: opensIts("grep") },
    { keys: ["s"], short: "summaries", says: says.summaries, does: opensIts("dag") },
    { keys: ["c"], short: "context", says: says.context, does: opensIts("context") },
    {
      keys: ["f"],
      short: "files",
      says: "show the file of the message, or all of the conversation",
      does: opens((state) => {
        const at = selected(state)?.files[0];
        return { kind: "files", conversation: state.conversation, ...(at !== undefined && { at }) };
      }),
    },
    {
      keys: ["S"],
      says: "show the summary that stands for the message",
      disabled: none,
      does: ofSelected((state, { id }) => ({ state, asks: [{ kind: "messageSummary", message: id }] })),
    },
    {
      keys: ["escape", "q"],
      says: "go back",
      does: (state) => (state.whole === null ? { state, go: { kind: "back" } } : { state: { ...state, whole: null } }),
    },
    ...bound(listKeys, moved),
    ...textKeys(scrolled),
  ],
  title: () => "messages",
  isTyping: ({ typing }) => typing !== null,
  isUnread: ({ page }) => page === null,
  isBusy: ({ whole }) => whole !== null && whole.lines === null,
  reads: again,
  answers: {
    messagesAt: arrived,
    messagesAround: around,
    messageWhole(state, lines, _, { message }) {
      if (state.whole === null || state.whole.message.id !== message) return { state };
      if (lines !== null) return { state: { ...state, whole: { ...state.whole, lines } } };
      const text = `${messageName(message)} is not there any more`;
      return { state: { ...state, whole: null }, notice: { tone: "bad", text } };
    },
    messageSummary(state, told) {
      if (told === null) return { state, notice: { tone: "said", text: "no summary stands for this message" } };
      const { conversation, summary } = told;
      return { state, ...goTo({ kind: "dag", conversation, at: summary }) };
    },
  },
  on: {
    failed,
    resized: (state, _, frame) => ({ state: revealed(state, frame) }),
    wheel: (state, { lines }, frame) => scrolled(state, lines, frame),
    click(state, { row, count }, frame) {
      const view = state.whole === null ? viewOf(state, frame) : null;
      const found = view === null ? undefined : seenRows(view, state.top)[row - headRows];
      if (found === undefined) return { state };
      const next = { ...state, cursor: found.message.seq };
      return count > 1 ? turnWhole(next) : ahead(next);
    },
    ...lineOf((state, words, { zone, now }) => seek(state, { kind: "typed", words, zone, now })),
  },
  draw: (state, frame) => (state.whole === null ? drawTranscript(state, frame) : drawWhole(state.whole, frame)),
};

// ── Moving ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const viewOf = ({ page, unfolded }: MessagesScreen, frame: Frame): View | null =>
  page === null || page.messages.length === 0
    ? null
    : { messages: page.messages, unfolded, frame, rows: Math.max(1, frame.rows - headRows) };

function revealed(state: MessagesScreen, frame: Frame): MessagesScreen {
  const view = viewOf(state, frame);
  return view === null ? state : { ...state, top: revealing(view, state.top, state.cursor) };
}

function turnWhole(state: MessagesScreen): Step<MessagesScreen> {
  const message = selected(state);
  if (state.whole !== null || message === null) return { state: { ...state, whole: null } };
  return {
    state: { ...state, whole: { message, lines: null, top: startOfText } },
    asks: [{ kind: "messageWhole", message: message.id }],
  };
}

/** To an end: at once if it is held, else as soon as it has been read. */
function jump(state: MessagesScreen, to: "first" | "last", frame: Frame): Step<MessagesScreen> {
  const { page } = state;
  const isHeld = to === "first" ? page?.isFirst === true : page?.isLast === true;
  const target = to === "first" ? page?.messages[0] : page?.messages.at(-1);
  if (isHeld && target !== undefined) return { state: revealed({ ...state, cursor: target.seq }, frame) };
  return seek(state, to === "first" ? { kind: "oldest" } : newest);
}

function moved(state: MessagesScreen, action: ListAction, frame: Frame): Step<MessagesScreen> {
  if (state.whole !== null) return inWhole(state, action, frame);
  if (action === "first" || action === "last") return jump(state, action, frame);
  const view = viewOf(state, frame);
  if (view === null) return { state };
  const at = indexOf(view, state.cursor);
  const to = (index: number): MessagesScreen =>
    revealed({ ...state, cursor: view.messages[index]?.seq ?? state.cursor }, frame);
  if (action === "up") return ahead(to(Math.max(0, at - 1)));
  if (action === "down") return ahead(to(Math.min(view.messages.length - 1, at + 1)));
  const isDown = action === "pageDown";
  const page = Math.max(1, view.rows - 2);
  const top = scrolledTop(view, state.top, isDown ? page : -page);
  const isStuck = top.seq === state.top.seq && top.row === state.top.row;
  if (isStuck) return ahead(to(isDown ? view.messages.length - 1 : 0));
  const cursor = seenMessages(view, top)[0]?.seq ?? state.cursor;
  return ahead({ ...state, top, cursor });
}

/** What is seen moves; the cursor is taken along where it would be out of sight. */
function scrolled(state: MessagesScreen, lines: number, frame: Frame): Step<MessagesScreen> {
  if (state.whole !== null) return inWhole(state, lines, frame);
  const view = viewOf(state, frame);
  if (view === null) return { state };
  const top = scrolledTop(view, state.top, lines);
  // Of one of which but the empty line at its end is seen, nothing is.
  const seen = seenRows(view, top).flatMap(({ message, text }) => (text === "" ? [] : [message.seq]));
  const begun = seenMessages(view, top).map(({ seq }) => seq);
  const nearest = lines > 0 ? begun[0] : begun.at(-1);
  return ahead({ ...state, top, cursor: seen.includes(state.cursor) ? state.cursor : (nearest ?? state.cursor) });
}

/** So many messages before the end of what is held, what follows is asked for. */
const aheadMessages = 25;

function ahead(state: MessagesScreen): Step<MessagesScreen> {
  const { page, conversation, cursor, isReading } = state;
  if (page === null || isReading) return { state };
  const at = indexOf(page, cursor);
  const isNear = (!page.isFirst && at < aheadMessages) || (!page.isLast && at >= page.messages.length - aheadMessages);
  if (!isNear) return { state };
  return {
    state: { ...state, isReading: true },
    asks: [{ kind: "messagesAround", conversation, seq: cursor }],
  };
}

// ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function arrived(
  state: MessagesScreen,
  told: Arrival,
  frame: Frame,
  { place }: Ask<"messagesAt">,
): Step<MessagesScreen> {
  const found = { ...state, sought: null };
  if (told.kind === "nowhere") {
    const step = state.page === null ? seek(found, newest) : { state: found };
    return { ...step, notice: { tone: "bad", text: told.why } };
  }
  // Who was to follow the end has left it meanwhile.
  if (state.sought === null && !isAtEnd(state)) return { state, asks: again(state) };
  const { page, cursor } = told;
  const next = { ...found, page, cursor, isReading: false };
  return { state: place.kind === "newest" ? revealed(next, frame) : centred(next, frame) };
}

/** With something above it, where there is anything. */
function centred(state: MessagesScreen, frame: Frame): MessagesScreen {
  const view = viewOf(state, frame);
  if (view === null) return state;
  const top = scrolledTop(view, { seq: state.cursor, row: 0 }, -Math.floor(view.rows / 3));
  return revealed({ ...state, top }, frame);
}

function failed(state: MessagesScreen, { ask }: LayerEvent<"failed">): Step<MessagesScreen> {
  if (ask.kind === "messagesAround") return { state: { ...state, isReading: false } };
  // Who has nothing to look at yet still wants to get there.
  if (ask.kind === "messagesAt" && state.page !== null) return { state: { ...state, sought: null } };
  return { state: ask.kind === "messageWhole" ? { ...state, whole: null } : state };
}

/** In place of what was held: what lies beyond is read again when it is needed. */
function around(
  state: MessagesScreen,
  page: MessagesPage,
  frame: Frame,
  { seq }: Ask<"messagesAround">,
): Step<MessagesScreen> {
  const { messages = [] } = state.page ?? {};
  // Somewhere else by now.
  if (seq < (messages[0]?.seq ?? Infinity) || seq > (messages.at(-1)?.seq ?? 0)) return { state };
  const cursor = page.messages[indexOf(page, state.cursor)]?.seq ?? state.cursor;
  return ahead(revealed({ ...state, page, cursor, isReading: false }, frame));
}

/** Who is on the way somewhere still gets there, who looks at the end goes on doing so, everybody else stays. */
function again(state: MessagesScreen): readonly Asking[] {
  const { page, conversation, sought, cursor } = state;
  if (sought !== null || page === null || page.messages.length === 0 || isAtEnd(state))
    return [{ kind: "messagesAt", conversation, place: sought ?? newest }];
  return [{ kind: "messagesAround", conversation, seq: cursor }];
}

/** Where there is nothing, too: that is its end. */
const isAtEnd = ({ page, cursor }: MessagesScreen): boolean =>
  page === null || (page.isLast && cursor === (page.messages.at(-1)?.seq ?? cursor));

// ── One message, whole ───────────────────────────────────────────────────────────────────────────────────────────────

/** With a margin at both sides. */
const wholeRoom = ({ rows, columns }: Frame): Room => ({ rows: Math.max(1, rows - headRows), columns: columns - 2 });

function inWhole(state: MessagesScreen, by: ListAction | number, frame: Frame): Step<MessagesScreen> {
  const { whole } = state;
  if (whole === null || whole.lines === null) return { state };
  return { state: { ...state, whole: { ...whole, top: scrolledBy(whole.lines, whole.top, by, wholeRoom(frame)) } } };
}

// ── Drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function drawTranscript(state: MessagesScreen, frame: Frame): readonly string[] {
  const { page, typing, conversation, cursor, top } = state;
  const { columns, paint } = frame;
  if (page === null) return ["", "  reading …"];
  if (page.conversation === null) return ["", `  conversation ${conversation} is not there any more`];
  const view = viewOf(state, frame);
  const head = typing === null ? whereLine(state, frame) : goingLine(typing, frame);
  if (view === null) return [head, rule("", columns, paint), "", "  there are no messages yet"];
  const rows = seenRows(view, top).map((each) => markedRow(each, cursor, frame));
  const isMore = rows.length < view.rows && !page.isLast;
  return [head, rule("", columns, paint), ...rows, ...(isMore ? [paint.soft("  …")] : [])];
}

const placesWords = "2026-02-17 15:37 · yesterday · 2h · #51204 · msg_7 ";

function goingLine(line: Field, { columns, paint }: Frame): string {
  const words = columns < 78 ? "" : paint.soft(placesWords);
  return ends(drawField(" go to", line, columns - placesWords.length - 1, paint), words, columns);
}

function whereLine({ page, cursor }: MessagesScreen, { columns, paint, zone }: Frame): string {
  if (page === null || page.conversation === null) return "";
  const { name, messages } = page.conversation;
  const zoneWords = columns < 90 ? "" : ` · times in ${zone}`;
  // Where messages were copied in and taken out again, numbers are missing, and do not tell how far one is.
  const isGapless = (page.messages.at(-1)?.seq ?? 0) <= messages;
  const place = isGapless
    ? `message ${formatCount(cursor)} of ${formatCount(messages)} · ${Math.floor((cursor / messages) * 100)}%`
    : `#${cursor} · ${plural(messages, "message")}`;
  const where = messages === 0 ? "" : `${place}${zoneWords} `;
  return ends(` ${paint.strong(name)}`, paint.soft(where), columns);
}

function drawWhole({ message, lines, top }: NonNullable<MessagesScreen["whole"]>, frame: Frame): readonly string[] {
  const { columns, paint, zone } = frame;
  const { role, at, id, tokens } = message;
  const facts = paint.soft(`${clockTime(at, zone)}  ${plural(tokens, "token")}  ${messageName(id)}`);
  const room = wholeRoom(frame);
  const share = lines === null ? "" : percent(lines.length, top, room);
  const head = ends(
    ` ${paint.role(role, paint.strong(role))}  ${facts}`,
    paint.soft(share === "" ? "" : `${share} `),
    columns,
  );
  const rows = lines === null ? ["reading …"] : rowsFrom(lines, top, room);
  return [head, rule("", columns, paint), ...rows.map((line) => ` ${line}`)];
}
