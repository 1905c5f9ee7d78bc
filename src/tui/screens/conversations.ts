/** All conversations, newest first: the first screen, and the way to all others. */

import type { Conversation } from "../../core/model.ts";
import { formatCount } from "../../core/text.ts";
import { clockTime, oneLine, table } from "../../show/render.ts";
import type { Module, Place, Step } from "../contract.ts";
import { row } from "../draw.ts";
import { isListAction, listKeys, moved, seen, startOfList, wheeled } from "../list.ts";
import type { List, ListAction } from "../list.ts";
import type { ConversationRow } from "./conversations-asks.ts";

export interface ConversationsScreen {
  readonly kind: "conversations";
  /** Null until they have been read. */
  readonly rows: readonly ConversationRow[] | null;
  readonly list: List;
}

export const openConversations = (): Step<ConversationsScreen> => ({
  state: { kind: "conversations", rows: null, list: startOfList },
  asks: [{ kind: "conversations" }],
});

const selected = ({ rows, list }: ConversationsScreen): Conversation | null =>
  rows?.[list.cursor]?.conversation ?? null;

const none = (state: ConversationsScreen): string | null =>
  selected(state) === null ? "there is no conversation" : null;

type Action = ListAction | "messages" | "summaries" | "context";

/** The table's heading. */
const headRows = 1;

export const conversationsModule: Module<ConversationsScreen, Action> = {
  name: "Conversations",
  keys: [
    { keys: ["enter"], action: "messages", short: "open", says: "show its messages", disabled: none },
    { keys: ["s"], action: "summaries", short: "summaries", says: "show its summaries", disabled: none },
    { keys: ["c"], action: "context", short: "context", says: "show what the model sees of it", disabled: none },
    ...listKeys,
  ],
  title: () => "conversations",
  isBusy: ({ rows }) => rows === null,
  update(state, event, frame) {
    const rows = frame.rows - headRows;
    const count = state.rows?.length ?? 0;
    switch (event.kind) {
      case "answer":
        if (event.answer.kind !== "conversations") return { state };
        return { state: kept(state, event.answer.told, rows) };
      case "changed":
      case "returned":
        return { state, asks: [{ kind: "conversations" }] };
      case "resized":
        return { state: { ...state, list: seen(state.list, count, rows) } };
      case "wheel":
        return { state: { ...state, list: wheeled(state.list, event.lines, count, rows) } };
      case "click": {
        const cursor = state.list.top + event.row - headRows;
        if (event.row < headRows || cursor >= count) return { state };
        const clicked = { ...state, list: { ...state.list, cursor } };
        return event.count > 1 ? goTo(clicked, "messages") : { state: clicked };
      }
      case "action":
        if (isListAction(event.action))
          return { state: { ...state, list: moved(state.list, event.action, count, rows) } };
        return goTo(state, event.action);
      default:
        return { state };
    }
  },
  draw(state, frame) {
    const { columns, paint, zone } = frame;
    if (state.rows === null) return ["", "  reading …"];
    if (state.rows.length === 0) return ["", "  there are no conversations yet"];
    const { list } = state;
    const shown = state.rows.slice(list.top, list.top + frame.rows - headRows);
    const [head = "", ...lines] = table(
      [
        { title: "id", align: "right" },
        { title: "conversation", flexible: true },
        { title: "messages", align: "right" },
        { title: "summaries", align: "right" },
        { title: "last message" },
      ],
      shown.map(({ conversation: { id, title, sessionKey, sessionId, totals, lastMessageAt } }) => [
        String(id),
        oneLine(title ?? sessionKey ?? sessionId),
        formatCount(totals.messages),
        formatCount(totals.summaries),
        lastMessageAt === null ? "–" : clockTime(lastMessageAt, zone),
      ]),
      columns - 2,
      paint,
    );
    return [`  ${head}`, ...lines.map((line, at) => row(line, list.top + at === list.cursor, columns, paint))];
  },
};

function goTo(state: ConversationsScreen, action: "messages" | "summaries" | "context"): Step<ConversationsScreen> {
  const conversation = selected(state)?.id;
  if (conversation === undefined) return { state };
  const places: Readonly<Record<typeof action, Place>> = {
    messages: { kind: "messages", conversation },
    summaries: { kind: "dag", conversation },
    context: { kind: "context", conversation },
  };
  return { state, go: { kind: "open", place: places[action] } };
}

/** The cursor stays on its conversation, wherever that is now. */
function kept(state: ConversationsScreen, rows: readonly ConversationRow[], room: number): ConversationsScreen {
  const id = selected(state)?.id;
  const at = rows.findIndex(({ conversation }) => conversation.id === id);
  const cursor = at === -1 ? state.list.cursor : at;
  return { ...state, rows, list: seen({ ...state.list, cursor }, rows.length, room) };
}
