/** The messages screen: a conversation as a transcript. Only a page around the visible messages is loaded. */

import { messageName, type ConversationId, type MessageId } from "../../core/model/types.ts";
import type { Ask } from "../asks.ts";
import { goTo, opens } from "../contract.ts";
import type { Asking, Frame, LayerEvent, Module, Step, Subject } from "../contract.ts";
import { ends, rule } from "../widgets/draw.ts";
import { drawField, field, lineOf, type Field } from "../widgets/field.ts";
import { commandKey, commands } from "../commands.ts";
import type { ListAction } from "../keys.ts";
import { bound, listKeys, textKeys } from "../widgets/list.ts";
import { percent, rowsFrom, scrolledBy, startOfText, type Room, type Spot } from "../widgets/pane.ts";
import type { Arrival, MessagePlace, MessagesPage, ShownMessage } from "./asks.ts";
import { indexOf, markedRow, revealing, scrolledTop, seenMessages, seenRows, type Top, type View } from "./view.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { clockTime } from "../../format/times.ts";

export interface MessagesScreen {
  readonly kind: "messages";
  readonly conversation: ConversationId;
  /** The loaded messages; null until they are read. */
  readonly page: MessagesPage | null;
  /** `seq` of the selected message. */
  readonly cursor: number;
  readonly top: Top;
  readonly expanded: ReadonlySet<MessageId>;
  /** The place to go to, until it is read. */
  readonly sought: MessagePlace | null;
  /** Whether the page around the cursor is being read. */
  readonly isReading: boolean;
  /** The message shown full screen. */
  readonly whole: {
    readonly message: ShownMessage;
    readonly lines: readonly string[] | null;
    readonly top: Spot;
  } | null;
  /** While a place to go to is typed. */
  readonly typing: Field | null;
}

const newest: MessagePlace = { kind: "newest" };

const seek = (state: MessagesScreen, place: MessagePlace): Step<MessagesScreen> => ({
  state: { ...state, sought: place },
  asks: [{ kind: "messagesAt", conversation: state.conversation, place }],
});

const selected = ({ page, cursor }: MessagesScreen): ShownMessage | null =>
  page?.messages.find(({ seq }) => seq === cursor) ?? null;

const none = (state: MessagesScreen): string | null => (selected(state) === null ? "no message is selected" : null);
const isReader = ({ whole }: MessagesScreen): string | null =>
  whole === null ? null : "press esc first to go back to all messages";

const ofSelected =
  (act: (state: MessagesScreen, message: ShownMessage, frame: Frame) => Step<MessagesScreen>) =>
  (state: MessagesScreen, frame: Frame): Step<MessagesScreen> => {
    const message = selected(state);
    return message === null ? { state } : act(state, message, frame);
  };

const subject = (state: MessagesScreen): Partial<Subject> => ({
  conversation: state.conversation,
  message: selected(state)?.id ?? null,
});

const headRows = 2;

export const messagesModule: Module<MessagesScreen> = {
  name: "Messages",
  open: ({ kind, conversation, at }) => ({
    kind,
    conversation,
    page: null,
    cursor: 0,
    top: { seq: 0, row: 0 },
    expanded: new Set(),
    sought: at === undefined ? newest : { kind: "message", id: at },
    isReading: false,
    whole: null,
    typing: null,
  }),
  keys: [
    {
      keys: ["enter"],
      short: "full screen",
      help: "show the message full screen, or go back",
      disabled: none,
      does: turnWhole,
    },
    {
      keys: ["space"],
      short: "expand",
      help: "expand or collapse the message",
      disabled: isReader,
      does: ofSelected((state, { id }, frame) => {
        const expanded = new Set(state.expanded);
        if (!expanded.delete(id)) expanded.add(id);
        return { state: revealed({ ...state, expanded }, frame) };
      }),
    },
    {
      keys: ["#"],
      short: "go to",
      help: "go to a time, a #number or a msg_id",
      disabled: isReader,
      does: (state) => ({ state: { ...state, typing: field() } }),
    },
    commandKey(commands.search, ["/"], subject, "search"),
    commandKey(commands.summaries, ["s"], subject, "summaries"),
    commandKey(commands.context, ["c"], subject, "context"),
    commandKey(commands.seen, ["w"], subject, "seen"),
    {
      keys: ["f"],
      short: "files",
      help: "show the files of the message, or of the conversation",
      does: opens((state) => {
        const at = selected(state)?.files[0];
        return { kind: "files", conversation: state.conversation, ...(at !== undefined && { at }) };
      }),
    },
    {
      keys: ["S"],
      help: "show the summary that covers the message",
      disabled: none,
      does: ofSelected((state, { id }) => ({ state, asks: [{ kind: "messageSummary", message: id }] })),
    },
    commandKey(commands.ask, ["A"], subject),
    commandKey(commands.export, ["e"], subject),
    commandKey(commands.pin, ["p"], subject),
    commandKey(commands.history, ["u"], subject),
    commandKey(commands.forget, ["x"], subject),
    {
      keys: ["escape", "q"],
      help: "go back",
      does: (state) => (state.whole === null ? { state, go: { kind: "back" } } : { state: { ...state, whole: null } }),
    },
    ...bound(listKeys, moved),
    ...textKeys(scrolled),
  ],
  title: () => "messages",
  subject,
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
      const text = `${messageName(message)} no longer exists`;
      return { state: { ...state, whole: null }, notice: { tone: "bad", text } };
    },
    messageSummary(state, result) {
      if (result === null) return { state, notice: { tone: "info", text: "no summary covers this message yet" } };
      const { conversation, summary } = result;
      return { state, ...goTo({ kind: "summaries", conversation, at: summary }) };
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

const viewOf = ({ page, expanded }: MessagesScreen, frame: Frame): View | null =>
  page === null || page.messages.length === 0
    ? null
    : { messages: page.messages, expanded, frame, rows: Math.max(1, frame.rows - headRows) };

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

/** Scrolls, and moves the cursor only to keep it visible. */
function scrolled(state: MessagesScreen, lines: number, frame: Frame): Step<MessagesScreen> {
  if (state.whole !== null) return inWhole(state, lines, frame);
  const view = viewOf(state, frame);
  if (view === null) return { state };
  const top = scrolledTop(view, state.top, lines);
  // A message whose empty last line alone is visible does not count.
  const seen = seenRows(view, top).flatMap(({ message, text }) => (text === "" ? [] : [message.seq]));
  const begun = seenMessages(view, top).map(({ seq }) => seq);
  const nearest = lines > 0 ? begun[0] : begun.at(-1);
  return ahead({ ...state, top, cursor: seen.includes(state.cursor) ? state.cursor : (nearest ?? state.cursor) });
}

/** More is read when this close to the end of the loaded messages. */
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
  result: Arrival,
  frame: Frame,
  { place }: Ask<"messagesAt">,
): Step<MessagesScreen> {
  const found = { ...state, sought: null };
  if (result.kind === "nowhere") {
    const step = state.page === null ? seek(found, newest) : { state: found };
    return { ...step, notice: { tone: "bad", text: result.why } };
  }
  // It was read to follow the end, which the cursor has left meanwhile.
  if (state.sought === null && !isAtEnd(state)) return { state, asks: again(state) };
  const { page, cursor } = result;
  const next = { ...found, page, cursor, isReading: false };
  return { state: place.kind === "newest" ? revealed(next, frame) : centred(next, frame) };
}

/** Shows some messages above the cursor. */
function centred(state: MessagesScreen, frame: Frame): MessagesScreen {
  const view = viewOf(state, frame);
  if (view === null) return state;
  const top = scrolledTop(view, { seq: state.cursor, row: 0 }, -Math.floor(view.rows / 3));
  return revealed({ ...state, top }, frame);
}

function failed(state: MessagesScreen, { ask }: LayerEvent<"failed">): Step<MessagesScreen> {
  if (ask.kind === "messagesAround") return { state: { ...state, isReading: false } };
  // With nothing loaded yet, the place is still wanted.
  if (ask.kind === "messagesAt" && state.page !== null) return { state: { ...state, sought: null } };
  return { state: ask.kind === "messageWhole" ? { ...state, whole: null } : state };
}

/** Replaces the loaded page. */
function around(
  state: MessagesScreen,
  page: MessagesPage,
  frame: Frame,
  { seq }: Ask<"messagesAround">,
): Step<MessagesScreen> {
  const { messages = [] } = state.page ?? {};
  // The user has moved elsewhere.
  if (seq < (messages[0]?.seq ?? Infinity) || seq > (messages.at(-1)?.seq ?? 0)) return { state };
  const cursor = page.messages[indexOf(page, state.cursor)]?.seq ?? state.cursor;
  return ahead(revealed({ ...state, page, cursor, isReading: false }, frame));
}

/** Goes on to the sought place, follows the end if the cursor is there, and otherwise stays. */
function again(state: MessagesScreen): readonly Asking[] {
  const { page, conversation, sought, cursor } = state;
  if (sought !== null || page === null || page.messages.length === 0 || isAtEnd(state))
    return [{ kind: "messagesAt", conversation, place: sought ?? newest }];
  return [{ kind: "messagesAround", conversation, seq: cursor }];
}

const isAtEnd = ({ page, cursor }: MessagesScreen): boolean =>
  page === null || (page.isLast && cursor === (page.messages.at(-1)?.seq ?? cursor));

// ── One message, full screen ─────────────────────────────────────────────────────────────────────────────────────────

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
  if (page.conversation === null) return ["", `  conversation ${conversation} no longer exists`];
  const view = viewOf(state, frame);
  const head = typing === null ? whereLine(state, frame) : goingLine(typing, frame);
  if (view === null) return [head, rule("", columns, paint), "", "  no messages yet"];
  const rows = seenRows(view, top).map((each) => markedRow(each, cursor, frame));
  const isMore = rows.length < view.rows && !page.isLast;
  return [head, rule("", columns, paint), ...rows, ...(isMore ? [paint.soft("  …")] : [])];
}

const placesWords = "2026-02-17 15:37 · yesterday · 2h · #51204 · msg_1-7 ";

function goingLine(line: Field, { columns, paint }: Frame): string {
  const words = columns < 78 ? "" : paint.soft(placesWords);
  return ends(drawField(" go to", line, columns - placesWords.length - 1, paint), words, columns);
}

function whereLine({ page, cursor }: MessagesScreen, { columns, paint, zone }: Frame): string {
  if (page === null || page.conversation === null) return "";
  const { name, messages } = page.conversation;
  const zoneWords = columns < 90 ? "" : ` · times in ${zone}`;
  // After a transplant was undone, numbers are missing, and the percentage would be wrong.
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
