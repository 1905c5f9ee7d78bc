/**
 * The messages of a conversation as a transcript. However long it is, only a stretch around what is seen is held; what lies
 * beside it is asked for before one gets there.
 */

import { messageName } from "../../core/model.ts";
import type { ConversationId, MessageId } from "../../core/model.ts";
import { formatCount } from "../../core/text.ts";
import { clockTime, plural } from "../../show/render.ts";
import type { Asking, Frame, LayerEvent, Module, Place, Step } from "../contract.ts";
import { ends, rule } from "../draw.ts";
import { drawField, field, pasted, textOf, typed } from "../field.ts";
import type { Field } from "../field.ts";
import { says } from "../keys.ts";
import { isListAction, listKeys, scrollKeys } from "../list.ts";
import type { ListAction, ScrollAction } from "../list.ts";
import { percent, rowsFrom, scrolledBy, scrolledFor, startOfText } from "../pane.ts";
import type { Spot } from "../pane.ts";
import type { MessagePlace, MessagesPage, ShownMessage } from "./messages-asks.ts";
import { indexOf, markedRow, revealing, scrolledTop, seenMessages, seenRows } from "./messages-view.ts";
import type { Top, View } from "./messages-view.ts";

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
  /** The sides on which more is being read. */
  readonly awaited: readonly ("older" | "newer")[];
  /** The one that is shown whole, and its lines once they have been read. */
  readonly whole: {
    readonly message: ShownMessage;
    readonly lines: readonly string[] | null;
    readonly top: Spot;
  } | null;
  /** Where to go, while that is typed. */
  readonly goingTo: Field | null;
}

export const openMessages = (
  { conversation, at }: Extract<Place, { readonly kind: "messages" }>,
  _frame: Frame,
): Step<MessagesScreen> =>
  seek(
    {
      kind: "messages",
      conversation,
      page: null,
      cursor: 0,
      top: { seq: 0, row: 0 },
      unfolded: new Set(),
      sought: null,
      awaited: [],
      whole: null,
      goingTo: null,
    },
    at === undefined ? newest : { kind: "message", id: at },
  );

const newest: MessagePlace = { kind: "newest" };

const seek = (state: MessagesScreen, place: MessagePlace): Step<MessagesScreen> => ({
  state: { ...state, sought: place },
  asks: [{ kind: "messagesAt", conversation: state.conversation, place }],
});

type Action =
  | ListAction
  | ScrollAction
  | "whole"
  | "unfold"
  | "goTo"
  | "search"
  | "summary"
  | "summaries"
  | "context"
  | "files"
  | "leave";

const selected = ({ page, cursor }: MessagesScreen): ShownMessage | null =>
  page?.messages.find(({ seq }) => seq === cursor) ?? null;

const none = (state: MessagesScreen): string | null => (selected(state) === null ? "there is no message" : null);
const isReader = ({ whole }: MessagesScreen): string | null =>
  whole === null ? null : "one message is shown; esc goes back to all";

/** The line on where one is, and one below it. */
const headRows = 2;

const roomOf = ({ rows, columns }: Frame): { readonly rows: number; readonly columns: number } => ({
  rows: Math.max(1, rows - headRows),
  columns,
});

export const messagesModule: Module<MessagesScreen, Action> = {
  name: "Messages",
  keys: [
    { keys: ["enter"], action: "whole", short: "whole", says: "show all of the message, and go back", disabled: none },
    { keys: ["space"], action: "unfold", short: "unfold", says: "unfold the message, or fold it", disabled: isReader },
    { keys: [":"], action: "goTo", short: "go to", says: "go to a time, #number or msg_id", disabled: isReader },
    { keys: ["/"], action: "search", short: "search", says: says.search },
    { keys: ["s"], action: "summaries", short: "summaries", says: says.summaries },
    { keys: ["c"], action: "context", short: "context", says: says.context },
    { keys: ["f"], action: "files", short: "files", says: "show the file of the message, or all of the conversation" },
    { keys: ["S"], action: "summary", says: "show the summary that stands for the message", disabled: none },
    { keys: ["escape", "q"], action: "leave", says: "go back" },
    ...listKeys,
    ...scrollKeys,
  ],
  title: () => "messages",
  isTyping: ({ goingTo }) => goingTo !== null,
  isBusy: ({ page, whole }) => page === null || (whole !== null && whole.lines === null),
  update(state, event, frame) {
    switch (event.kind) {
      case "answer":
        return answered(state, event.answer, frame);
      case "failed":
        return failed(state, event.ask);
      case "changed":
      case "returned":
        return { state, asks: again(state) };
      case "resized":
        return { state: revealed(state, frame) };
      case "wheel":
        return scrolled(state, event.lines, frame);
      case "click":
        return clicked(state, event, frame);
      case "key":
      case "pasted":
        return state.goingTo === null ? { state } : typing(state, state.goingTo, event, frame);
      case "action":
        return state.whole === null ? act(state, event.action, frame) : actInWhole(state, event.action, frame);
      default:
        return { state };
    }
  },
  draw: (state, frame) => (state.whole === null ? drawTranscript(state, frame) : drawWhole(state.whole, frame)),
};

// ── Moving ───────────────────────────────────────────────────────────────────────────────────────────────────────────

const viewOf = ({ page, unfolded }: MessagesScreen, frame: Frame): View | null =>
  page === null || page.messages.length === 0
    ? null
    : { messages: page.messages, unfolded, frame, rows: roomOf(frame).rows };

function revealed(state: MessagesScreen, frame: Frame): MessagesScreen {
  const view = viewOf(state, frame);
  return view === null ? state : { ...state, top: revealing(view, state.top, state.cursor) };
}

function act(state: MessagesScreen, action: Action, frame: Frame): Step<MessagesScreen> {
  const { conversation } = state;
  const message = selected(state);
  switch (action) {
    case "whole":
      if (message === null) return { state };
      return {
        state: { ...state, whole: { message, lines: null, top: startOfText } },
        asks: [{ kind: "messageWhole", message: message.id }],
      };
    case "unfold": {
      if (message === null) return { state };
      const unfolded = new Set(state.unfolded);
      if (!unfolded.delete(message.id)) unfolded.add(message.id);
      return { state: revealed({ ...state, unfolded }, frame) };
    }
    case "goTo":
      return { state: { ...state, goingTo: field() } };
    case "first":
    case "last":
      return jump(state, action, frame);
    case "textUp":
    case "textDown":
      return scrolled(state, action === "textUp" ? -1 : 1, frame);
    case "up":
    case "down":
    case "pageUp":
    case "pageDown":
      return moved(state, action, frame);
    default:
      return goFrom(state, action, conversation);
  }
}

function goFrom(
  state: MessagesScreen,
  action: "search" | "summaries" | "context" | "files" | "summary" | "leave",
  conversation: ConversationId,
): Step<MessagesScreen> {
  const message = selected(state);
  const file = message?.files[0];
  const open = (place: Place): Step<MessagesScreen> => ({ state, go: { kind: "open", place } });
  switch (action) {
    case "search":
      return open({ kind: "grep", conversation });
    case "summaries":
      return open({ kind: "dag", conversation });
    case "context":
      return open({ kind: "context", conversation });
    case "files":
      return open({ kind: "files", conversation, ...(file === undefined ? {} : { at: file }) });
    case "summary":
      return message === null ? { state } : { state, asks: [{ kind: "messageSummary", message: message.id }] };
    case "leave":
      return { state, go: { kind: "back" } };
  }
}

/** To an end: at once if it is held, else as soon as it has been read. */
function jump(state: MessagesScreen, to: "first" | "last", frame: Frame): Step<MessagesScreen> {
  const { page } = state;
  const isHeld = to === "first" ? page?.isFirst === true : page?.isLast === true;
  const target = to === "first" ? page?.messages[0] : page?.messages.at(-1);
  if (isHeld && target !== undefined) return { state: revealed({ ...state, cursor: target.seq }, frame) };
  return seek(state, to === "first" ? { kind: "oldest" } : newest);
}

function moved(
  state: MessagesScreen,
  action: "up" | "down" | "pageUp" | "pageDown",
  frame: Frame,
): Step<MessagesScreen> {
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
  if (state.whole !== null) return inWhole(state, (all, top) => scrolledBy(all, top, lines, roomOf(frame)));
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
  const { page, conversation, cursor, awaited } = state;
  const [first, last] = [page?.messages[0], page?.messages.at(-1)];
  if (page === null || first === undefined || last === undefined) return { state };
  const at = indexOf(page, cursor);
  const wanted = [
    ...(!page.isFirst && at < aheadMessages ? [{ side: "older", seq: first.seq } as const] : []),
    ...(!page.isLast && at >= page.messages.length - aheadMessages ? [{ side: "newer", seq: last.seq } as const] : []),
  ].filter(({ side }) => !awaited.includes(side));
  if (wanted.length === 0) return { state };
  return {
    state: { ...state, awaited: [...awaited, ...wanted.map(({ side }) => side)] },
    asks: wanted.map((each) => ({ kind: "messagesBeside", conversation, ...each, slot: each.side })),
  };
}

// ── Answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

type Told = Extract<LayerEvent<never>, { readonly kind: "answer" }>["answer"];

function answered(state: MessagesScreen, answer: Told, frame: Frame): Step<MessagesScreen> {
  switch (answer.kind) {
    case "messagesAt": {
      const { ask, told } = answer;
      const found = { ...state, sought: null };
      if (told.kind === "nowhere") {
        const step = state.page === null ? seek(found, newest) : { state: found };
        return { ...step, notice: { tone: "bad", text: told.why } };
      }
      // Who was to follow the end has left it meanwhile.
      if (state.sought === null && !isAtEnd(state)) return { state, asks: again(state) };
      const { page, cursor } = told;
      const next = { ...found, page, cursor, awaited: [] };
      return { state: ask.place.kind === "newest" ? revealed(next, frame) : centred(next, frame) };
    }
    case "messagesBeside":
      return beside(state, answer.ask, answer.told, frame);
    case "messagesAgain":
      return reread(state, answer.told, frame);
    case "messageWhole": {
      if (state.whole === null || state.whole.message.id !== answer.ask.message) return { state };
      if (answer.told !== null) return { state: { ...state, whole: { ...state.whole, lines: answer.told } } };
      const text = `${messageName(answer.ask.message)} is not there any more`;
      return { state: { ...state, whole: null }, notice: { tone: "bad", text } };
    }
    case "messageSummary": {
      if (answer.told === null) return { state, notice: { tone: "said", text: "no summary stands for this message" } };
      const { conversation, summary } = answer.told;
      return { state, go: { kind: "open", place: { kind: "dag", conversation, at: summary } } };
    }
    default:
      return { state };
  }
}

/** With something above it, where there is anything. */
function centred(state: MessagesScreen, frame: Frame): MessagesScreen {
  const view = viewOf(state, frame);
  if (view === null) return state;
  const top = scrolledTop(view, { seq: state.cursor, row: 0 }, -Math.floor(view.rows / 3));
  return revealed({ ...state, top }, frame);
}

function failed(
  state: MessagesScreen,
  ask: Extract<LayerEvent<never>, { readonly kind: "failed" }>["ask"],
): Step<MessagesScreen> {
  if (ask.kind === "messagesBeside")
    return { state: { ...state, awaited: state.awaited.filter((side) => side !== ask.side) } };
  // Who has nothing to look at yet still wants to get there.
  if (ask.kind === "messagesAt" && state.page !== null) return { state: { ...state, sought: null } };
  return { state: ask.kind === "messageWhole" ? { ...state, whole: null } : state };
}

/** What is held at most. What lies beyond, on the other side, is read again when it is needed. */
const heldMax = 240;

function beside(
  state: MessagesScreen,
  { side, seq }: { readonly side: "older" | "newer"; readonly seq: number },
  told: MessagesPage,
  frame: Frame,
): Step<MessagesScreen> {
  const awaited = state.awaited.filter((each) => each !== side);
  const { page } = state;
  const isOlder = side === "older";
  const edge = isOlder ? page?.messages[0] : page?.messages.at(-1);
  // Somewhere else by now.
  if (page === null || edge?.seq !== seq) return { state: { ...state, awaited } };
  const all = isOlder ? [...told.messages, ...page.messages] : [...page.messages, ...told.messages];
  const messages = isOlder ? all.slice(0, heldMax) : all.slice(-heldMax);
  const isCut = messages.length < all.length;
  const held: MessagesPage = {
    conversation: told.conversation,
    messages,
    isFirst: isOlder ? told.isFirst : page.isFirst && !isCut,
    isLast: isOlder ? page.isLast && !isCut : told.isLast,
  };
  return ahead(revealed({ ...state, page: held, awaited }, frame));
}

/** Who is on the way somewhere still gets there, who looks at the end goes on doing so, everybody else stays. */
function again(state: MessagesScreen): readonly Asking[] {
  const { page, conversation, sought } = state;
  const first = page?.messages[0];
  if (sought !== null || page === null || first === undefined || isAtEnd(state))
    return [{ kind: "messagesAt", conversation, place: sought ?? newest }];
  return [{ kind: "messagesAgain", conversation, from: first.seq, count: page.messages.length }];
}

/** Where there is nothing, too: that is its end. */
const isAtEnd = ({ page, cursor }: MessagesScreen): boolean =>
  page === null || (page.isLast && cursor === (page.messages.at(-1)?.seq ?? cursor));

function reread(state: MessagesScreen, told: MessagesPage, frame: Frame): Step<MessagesScreen> {
  const { page } = state;
  if (page === null) return { state };
  const [first, last] = [page.messages[0]?.seq ?? 0, page.messages.at(-1)?.seq ?? 0];
  // What lies beyond what is held is for whoever goes there.
  const messages = told.messages
    .filter(({ seq }) => seq >= first && (page.isLast || seq <= last))
    .slice(0, Math.max(heldMax, page.messages.length));
  const isLast = told.isLast && messages.at(-1)?.seq === told.messages.at(-1)?.seq;
  const held = { ...told, messages, isLast };
  const cursor = messages[indexOf(held, state.cursor)]?.seq ?? state.cursor;
  return ahead(revealed({ ...state, page: held, cursor }, frame));
}

// ── Going to a place ─────────────────────────────────────────────────────────────────────────────────────────────────

function typing(
  state: MessagesScreen,
  line: Field,
  event: Extract<LayerEvent<never>, { readonly kind: "key" | "pasted" }>,
  { zone, now }: Frame,
): Step<MessagesScreen> {
  if (event.kind === "pasted") return { state: { ...state, goingTo: pasted(line, event.text) } };
  const { key } = event;
  if (key.name !== "enter" && key.name !== "escape") return { state: { ...state, goingTo: typed(line, key) } };
  const words = textOf(line).trim();
  const done: MessagesScreen = { ...state, goingTo: null };
  if (key.name === "escape" || words === "") return { state: done };
  return seek(done, { kind: "typed", words, zone, now });
}

// ── One message, whole ───────────────────────────────────────────────────────────────────────────────────────────────

function actInWhole(state: MessagesScreen, action: Action, frame: Frame): Step<MessagesScreen> {
  if (action === "leave" || action === "whole") return { state: { ...state, whole: null } };
  if (isListAction(action) || action === "textUp" || action === "textDown")
    return inWhole(state, (lines, top) => scrolledFor(lines, top, action, roomOf(frame)));
  return act(state, action, frame);
}

function inWhole(state: MessagesScreen, move: (lines: readonly string[], top: Spot) => Spot): Step<MessagesScreen> {
  const { whole } = state;
  if (whole === null || whole.lines === null) return { state };
  return { state: { ...state, whole: { ...whole, top: move(whole.lines, whole.top) } } };
}

function clicked(
  state: MessagesScreen,
  { row, count }: Extract<LayerEvent<never>, { readonly kind: "click" }>,
  frame: Frame,
): Step<MessagesScreen> {
  const view = state.whole === null ? viewOf(state, frame) : null;
  const found = view === null ? undefined : seenRows(view, state.top)[row - headRows];
  if (found === undefined) return { state };
  const next = { ...state, cursor: found.message.seq };
  return count > 1 ? act(next, "whole", frame) : ahead(next);
}

// ── Drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function drawTranscript(state: MessagesScreen, frame: Frame): readonly string[] {
  const { page, goingTo, conversation, cursor, top } = state;
  const { columns, paint } = frame;
  if (page === null) return ["", "  reading …"];
  if (page.conversation === null) return ["", `  conversation ${conversation} is not there any more`];
  const view = viewOf(state, frame);
  const head = goingTo === null ? whereLine(state, frame) : goingLine(goingTo, frame);
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
  const room = roomOf(frame);
  const share = lines === null ? "" : percent(lines.length, top, room);
  const head = ends(
    ` ${paint.role(role, paint.strong(role))}  ${facts}`,
    paint.soft(share === "" ? "" : `${share} `),
    columns,
  );
  const rows = lines === null ? ["reading …"] : rowsFrom(lines, top, { ...room, columns: columns - 2 });
  return [head, rule("", columns, paint), ...rows.map((line) => ` ${line}`)];
}
