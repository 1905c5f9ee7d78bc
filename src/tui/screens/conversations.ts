/** All conversations: the first screen, and the way to all others. What is drawn of them is in conversations-view.ts. */

import type { ConversationId } from "../../core/model.ts";
import { findingsLines } from "../../show/findings.ts";
import { plural } from "../../show/render.ts";
import type { Frame, Module, Place, Step } from "../contract.ts";
import { field, pasted, textOf, typed } from "../field.ts";
import type { Field } from "../field.ts";
import { says } from "../keys.ts";
import type { Key } from "../keys.ts";
import { isListAction, listKeys, moved, seen, startOfList, wheeled } from "../list.ts";
import type { ListAction } from "../list.ts";
import type { Checkup } from "./conversations-asks.ts";
import { list as listed, sorts } from "./conversations-order.ts";
import type { Choice } from "./conversations-order.ts";
import { checkupOf, drawConversations, headRows, listRows, selected } from "./conversations-view.ts";
import type { ConversationsScreen } from "./conversations-view.ts";

export type { ConversationsScreen } from "./conversations-view.ts";

const usual: Choice = { filter: "", sort: "activity", isGrouped: false, agent: null, withHidden: false };

export const openConversations = (): Step<ConversationsScreen> => ({
  state: {
    kind: "conversations",
    rows: null,
    trouble: null,
    choice: usual,
    typing: null,
    listing: listed([], usual),
    list: startOfList,
    checkups: new Map(),
    checking: null,
  },
  asks: [{ kind: "conversations" }],
});

const none = (state: ConversationsScreen): string | null =>
  selected(state) !== null ? null : state.rows === null ? "they are still being read" : "there is no conversation";

type Way = "messages" | "summaries" | "context" | "files" | "repair" | "transplant" | "history";
type Action =
  | ListAction
  | Way
  | "filter"
  | "clear"
  | "sort"
  | "families"
  | "agent"
  | "hidden"
  | "check"
  | "grep"
  | "status"
  | "changes"
  | "transcripts";

export const conversationsModule: Module<ConversationsScreen, Action> = {
  name: "Conversations",
  keys: [
    { keys: ["enter"], action: "messages", short: "messages", says: says.messages, disabled: none },
    { keys: ["s"], action: "summaries", short: "summaries", says: says.summaries, disabled: none },
    { keys: ["c"], action: "context", short: "context", says: says.context, disabled: none },
    { keys: ["/"], action: "filter", short: "filter", says: "list only those that have these words" },
    { keys: ["S", "ctrl+g"], action: "grep", short: "search", says: "search what was said in all conversations" },
    { keys: ["!"], action: "status", short: "status", says: "show how the whole database is" },
    { keys: ["o"], action: "sort", short: "order", says: "order by activity, messages, tokens, context use, name" },
    { keys: ["f"], action: "families", short: "families", says: "put the segments of a session below each other" },
    {
      keys: ["h"],
      action: "check",
      short: "check",
      says: "check it as a doctor; again shows findings",
      disabled: none,
    },
    { keys: ["a"], action: "agent", says: "list only those of one agent, then of the next" },
    { keys: ["."], action: "hidden", says: "list those too that are hidden from recall" },
    { keys: ["F"], action: "files", says: "show its files", disabled: none },
    { keys: ["u"], action: "history", says: says.history, disabled: none },
    { keys: ["U"], action: "changes", says: "show what was changed in all conversations" },
    { keys: ["i"], action: "transcripts", short: "import", says: "import the host's transcripts that are not stored" },
    {
      keys: ["t"],
      action: "transplant",
      says: "copy its summaries into another conversation",
      changes: true,
      disabled: none,
    },
    { keys: ["R"], action: "repair", says: says.repair, changes: true, disabled: none },
    { keys: ["escape"], action: "clear", says: "list all of them again, if less is listed" },
    ...listKeys,
  ],
  isOffered: ({ choice }, action) => action !== "clear" || choice.filter !== "",
  title: () => "conversations",
  isTyping: ({ typing }) => typing !== null,
  isBusy: ({ rows, trouble, checking }) => (rows === null && trouble === null) || checking !== null,
  update(state, event, frame) {
    const rows = listRows(frame);
    const count = state.listing.placed.length;
    switch (event.kind) {
      case "answer":
        if (event.answer.kind === "conversations")
          return { state: arranged({ ...state, rows: event.answer.told, trouble: null }, frame) };
        if (event.answer.kind !== "checkup") return { state };
        return checkedUp(state, event.answer.ask.conversation, event.answer.told);
      case "failed":
        if (event.ask.kind === "checkup") return { state: { ...state, checking: null } };
        return { state: { ...state, trouble: event.failure } };
      case "changed":
      case "returned":
        return { state, asks: [{ kind: "conversations" }] };
      case "resized":
        return { state: { ...state, list: seen(state.list, count, rows) } };
      case "wheel":
        return { state: { ...state, list: wheeled(state.list, event.lines, count, rows) } };
      case "click": {
        const cursor = state.list.top + event.row - headRows;
        if (event.row < headRows || event.row >= headRows + rows || cursor >= count) return { state };
        const clicked = { ...state, list: { ...state.list, cursor } };
        return event.count > 1 ? goTo(clicked, "messages") : { state: clicked };
      }
      case "key":
        return { state: typedFilter(state, event.key, frame) };
      case "pasted":
        return { state: filteredBy(state, pasted(state.typing ?? field(), event.text), frame) };
      case "action":
        if (isListAction(event.action))
          return { state: { ...state, list: moved(state.list, event.action, count, rows) } };
        return act(state, event.action, frame);
      default:
        return { state };
    }
  },
  draw: drawConversations,
};

function act(state: ConversationsScreen, action: Exclude<Action, ListAction>, frame: Frame): Step<ConversationsScreen> {
  const chosen = (choice: Partial<Choice>): Step<ConversationsScreen> => ({
    state: arranged({ ...state, choice: { ...state.choice, ...choice } }, frame),
  });
  const open = (place: Place): Step<ConversationsScreen> => ({ state, go: { kind: "open", place } });
  const { filter, sort, isGrouped, agent, withHidden } = state.choice;
  switch (action) {
    case "filter":
      return { state: { ...state, typing: field(filter) } };
    case "clear":
      return chosen({ filter: "" });
    case "sort":
      return chosen({ sort: sorts[(sorts.indexOf(sort) + 1) % sorts.length] ?? "activity" });
    case "families":
      return chosen({ isGrouped: !isGrouped });
    case "agent": {
      const { agents } = state.listing;
      return chosen({ agent: agents[agent === null ? 0 : agents.indexOf(agent) + 1] ?? null });
    }
    case "hidden":
      return chosen({ withHidden: !withHidden });
    case "check":
      return check(state, frame);
    case "grep":
      return open({ kind: "grep", conversation: null });
    case "status":
      return open({ kind: "status", conversation: null });
    case "changes":
      return open({ kind: "history", conversation: null });
    case "transcripts":
      return open({ kind: "transcripts" });
    default:
      return goTo(state, action);
  }
}

function goTo(state: ConversationsScreen, way: Way): Step<ConversationsScreen> {
  const conversation = selected(state)?.conversation.id;
  if (conversation === undefined) return { state };
  const places: Readonly<Record<Way, Place>> = {
    messages: { kind: "messages", conversation },
    summaries: { kind: "dag", conversation },
    context: { kind: "context", conversation },
    files: { kind: "files", conversation },
    history: { kind: "history", conversation },
    repair: { kind: "rewrites", conversation, summary: null },
    transplant: { kind: "transplant", source: conversation },
  };
  return { state, go: { kind: "open", place: places[way] } };
}

// ── What is listed ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Listed anew; the cursor stays on its conversation, wherever that is now. */
function arranged(state: ConversationsScreen, frame: Frame): ConversationsScreen {
  const id = selected(state)?.conversation.id;
  const listing = listed(state.rows ?? [], state.choice);
  const at = listing.placed.findIndex(({ conversation }) => conversation.id === id);
  const cursor = at === -1 ? state.list.cursor : at;
  return { ...state, listing, list: seen({ ...state.list, cursor }, listing.placed.length, listRows(frame)) };
}

/** Every letter narrows the list; the arrows still move in it. */
function typedFilter(state: ConversationsScreen, key: Key, frame: Frame): ConversationsScreen {
  const { typing } = state;
  if (typing === null) return state;
  if (key.name === "enter") return { ...state, typing: null };
  if (key.name === "escape") return filteredBy({ ...state, typing: null }, null, frame);
  if (key.name === "up" || key.name === "down")
    return { ...state, list: moved(state.list, key.name, state.listing.placed.length, listRows(frame)) };
  return filteredBy(state, typed(typing, key), frame);
}

const filteredBy = (state: ConversationsScreen, typing: Field | null, frame: Frame): ConversationsScreen =>
  arranged(
    { ...state, typing, choice: { ...state.choice, filter: typing === null ? "" : textOf(typing).trim() } },
    frame,
  );

// ── Health ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function check(state: ConversationsScreen, frame: Frame): Step<ConversationsScreen> {
  const row = selected(state);
  if (row === null) return { state };
  const { id } = row.conversation;
  const known = checkupOf(state, row);
  if (known === null) return { state: { ...state, checking: id }, asks: [{ kind: "checkup", conversation: id }] };
  const bounds = Math.min(100, frame.columns - 8);
  const lines = findingsLines({ ...frame, columns: bounds, bounds }, known.groups, known.checked, false);
  return { state, go: { kind: "open", place: { kind: "text", title: `conversation ${id}, checked`, lines } } };
}

function checkedUp(state: ConversationsScreen, id: ConversationId, checkup: Checkup): Step<ConversationsScreen> {
  const next = { ...state, checking: null, checkups: new Map([...state.checkups, [id, checkup]]) };
  const { count, checked } = checkup;
  const extent = `${plural(checked.messages, "message")} and ${plural(checked.summaries, "summary", "summaries")} checked`;
  const notice =
    count === 0
      ? ({ tone: "good", text: `conversation ${id} is sound: ${extent}` } as const)
      : ({
          tone: "bad",
          text: `conversation ${id}: ${plural(count, "finding")} to look at; h shows ${count === 1 ? "it" : "them"}`,
        } as const);
  return { state: next, notice };
}
