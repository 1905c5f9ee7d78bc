/** The conversations screen: the list of all conversations, from which every other screen is opened. */

import type { ConversationId } from "../../core/model/types.ts";
import { findingsLines } from "../../format/findings.ts";
import type { Ask } from "../asks.ts";
import { goTo, opens } from "../contract.ts";
import type { Frame, Its, LayerEvent, Module, Destination, Step } from "../contract.ts";
import { textPage } from "../widgets/draw.ts";
import { field, pasted, textOf, typed, type Field } from "../widgets/field.ts";
import { sharedHelp } from "../keys.ts";
import { createRows, startOfList, stayed } from "../widgets/list.ts";
import type { Checkup } from "./asks.ts";
import { list as listed, sorts, type Choice, type Listing } from "./order.ts";
import { checkupOf, drawConversations, headRows, listRows, selected, type ConversationsScreen } from "./view.ts";
import { plural } from "../../core/base/format.ts";

export type { ConversationsScreen } from "./view.ts";

const usual: Choice = { filter: "", sort: "activity", isGrouped: false, agent: null, withHidden: false };

function none(state: ConversationsScreen): string | null {
  if (selected(state) !== null) return null;
  if (state.rows !== null || state.trouble?.code === "not_found") return "no conversation is selected";
  return state.trouble === null ? "still reading" : "the database cannot be read";
}

const ofIt = (placeOf: (conversation: ConversationId) => Destination) => ({
  disabled: none,
  does: opens<ConversationsScreen>((state) => {
    const row = selected(state);
    return row && placeOf(row.conversation.id);
  }),
});
const its = (kind: Its) => ofIt((conversation) => ({ kind, conversation }));
const all = (kind: "search" | "status" | "history") => ({
  does: opens<ConversationsScreen>(() => ({ kind, conversation: null })),
});

const filter = (state: ConversationsScreen): Step<ConversationsScreen> => ({
  state: { ...state, typing: field(state.choice.filter) },
});

const chooses =
  (change: (choice: Choice, listing: Listing) => Partial<Choice>) =>
  (state: ConversationsScreen, frame: Frame): Step<ConversationsScreen> => ({
    state: arranged({ ...state, choice: { ...state.choice, ...change(state.choice, state.listing) } }, frame),
  });

const nextAgent = chooses(({ agent }, { agents }) => ({
  agent: agents[agent === null ? 0 : agents.indexOf(agent) + 1] ?? null,
}));

const rows = createRows<ConversationsScreen>({
  count: ({ listing }) => listing.placed.length,
  place: (_, frame) => ({ above: headRows, rows: listRows(frame) }),
  open: its("messages").does,
});

export const conversationsModule: Module<ConversationsScreen> = {
  name: "Conversations",
  open: (place) => ({
    ...place,
    rows: null,
    trouble: null,
    choice: usual,
    typing: null,
    listing: listed([], usual),
    list: startOfList,
    checkups: new Map(),
    checking: null,
  }),
  keys: [
    { keys: ["enter"], short: "messages", help: sharedHelp.messages, ...its("messages") },
    { keys: ["s"], short: "summaries", help: sharedHelp.summaries, ...its("summaries") },
    { keys: ["c"], short: "context", help: sharedHelp.context, ...its("context") },
    { keys: ["/"], short: "filter", help: "filter the list by words", does: filter },
    { keys: ["S", "ctrl+g"], short: "search", help: "search all conversations", ...all("search") },
    { keys: ["!"], short: "status", help: "show the status of the database", ...all("status") },
    {
      keys: ["o"],
      short: "sort",
      help: "sort by activity, messages, tokens, context use or name",
      does: chooses(({ sort }) => ({ sort: sorts[(sorts.indexOf(sort) + 1) % sorts.length] ?? "activity" })),
    },
    {
      keys: ["f"],
      short: "group",
      help: "group the segments of each session",
      does: chooses(({ isGrouped }) => ({ isGrouped: !isGrouped })),
    },
    {
      keys: ["h"],
      short: "check",
      help: "check the conversation like `lcm doctor`; press again for the findings",
      disabled: none,
      does: check,
    },
    {
      keys: ["H"],
      help: "fix findings whose correct value can be derived",
      changes: true,
      ...ofIt((conversation) => ({ kind: "fix", conversation })),
    },
    { keys: ["a"], help: "list one agent only; press again for the next", does: nextAgent },
    {
      keys: ["."],
      help: "show or hide conversations that are hidden from recall",
      does: chooses(({ withHidden }) => ({ withHidden: !withHidden })),
    },
    { keys: ["F"], help: "show the conversation's files", ...its("files") },
    { keys: ["u"], help: sharedHelp.history, ...its("history") },
    { keys: ["U"], help: "show the history of all conversations", ...all("history") },
    {
      keys: ["i"],
      short: "import",
      help: "import the host's transcripts",
      does: opens(() => ({ kind: "transcripts" })),
    },
    {
      keys: ["t"],
      help: "copy its summaries into another conversation",
      changes: true,
      ...ofIt((source) => ({ kind: "targets", source })),
    },
    {
      keys: ["R"],
      help: sharedHelp.repair,
      changes: true,
      ...ofIt((conversation) => ({ kind: "rewrite", conversation, select: { repair: true } })),
    },
    {
      keys: ["escape"],
      help: "clear the filter",
      when: ({ choice }) => choice.filter !== "",
      does: chooses(() => ({ filter: "" })),
    },
    ...rows.keys,
  ],
  title: () => "conversations",
  isTyping: ({ typing }) => typing !== null,
  isUnread: ({ rows: read, trouble }) => read === null && trouble === null,
  isBusy: ({ checking }) => checking !== null,
  reads: () => [{ kind: "conversations" }],
  answers: {
    conversations: (state, result, frame) => ({ state: arranged({ ...state, rows: result, trouble: null }, frame) }),
    checkup: checkedUp,
  },
  on: {
    ...rows.on,
    failed: (state, { ask, failure }) => ({
      state: ask.kind === "checkup" ? { ...state, checking: null } : { ...state, trouble: failure },
    }),
    key: typedFilter,
    pasted: (state, { text }, frame) => ({
      state: filteredBy(state, pasted(state.typing ?? field(), text), frame),
    }),
  },
  draw: drawConversations,
};

/** Lists the conversations again, and keeps the cursor on its conversation. */
function arranged(state: ConversationsScreen, frame: Frame): ConversationsScreen {
  const id = selected(state)?.conversation.id;
  const listing = listed(state.rows ?? [], state.choice);
  const at = listing.placed.findIndex(({ conversation }) => conversation.id === id);
  return { ...state, listing, list: stayed(state.list, at, listing.placed.length, listRows(frame)) };
}

/** Every letter narrows the list; the arrow keys still move the cursor. */
function typedFilter(state: ConversationsScreen, { key }: LayerEvent<"key">, frame: Frame): Step<ConversationsScreen> {
  const done = { ...state, typing: null };
  if (key.name === "enter") return { state: done };
  if (key.name === "escape") return { state: filteredBy(done, null, frame) };
  const moved = rows.arrow(state, key, frame);
  return moved ?? { state: filteredBy(state, typed(state.typing ?? field(), key), frame) };
}

const filteredBy = (state: ConversationsScreen, typing: Field | null, frame: Frame): ConversationsScreen =>
  arranged(
    { ...state, typing, choice: { ...state.choice, filter: typing === null ? "" : textOf(typing).trim() } },
    frame,
  );

function check(state: ConversationsScreen, frame: Frame): Step<ConversationsScreen> {
  const row = selected(state);
  if (row === null) return { state };
  const { id } = row.conversation;
  const known = checkupOf(state, row);
  if (known === null) return { state: { ...state, checking: id }, asks: [{ kind: "checkup", conversation: id }] };
  const page = textPage(frame);
  const isFixed = known.groups.some(({ findings }) => findings.some(({ remedy }) => remedy?.includes(" --fix")));
  const lines = [
    ...findingsLines(page, known.groups, known.checked, false),
    ...(isFixed ? ["", page.paint.soft("close this and press H to fix what can be fixed automatically")] : []),
  ];
  return { state, ...goTo({ kind: "text", title: `findings in conversation ${id}`, lines }) };
}

function checkedUp(
  state: ConversationsScreen,
  checkup: Checkup,
  _: Frame,
  { conversation: id }: Ask<"checkup">,
): Step<ConversationsScreen> {
  const next = { ...state, checking: null, checkups: new Map([...state.checkups, [id, checkup]]) };
  const { count, checked } = checkup;
  const extent = `${plural(checked.messages, "message")} and ${plural(checked.summaries, "summary", "summaries")} checked`;
  const notice =
    count === 0
      ? ({ tone: "good", text: `conversation ${id} is healthy: ${extent}` } as const)
      : ({
          tone: "bad",
          text: `conversation ${id}: ${plural(count, "finding")}; press h to see ${count === 1 ? "it" : "them"}`,
        } as const);
  return { state: next, notice };
}
