/** All conversations: the first screen, and the way to all others. What is drawn of them is in conversations-view.ts. */

import type { ConversationId } from "../../core/model/types.ts";
import { findingsLines } from "../../format/findings.ts";
import type { Ask } from "../asks.ts";
import { goTo, opens } from "../contract.ts";
import type { Frame, Its, LayerEvent, Module, Place, Step } from "../contract.ts";
import { textPage } from "../widgets/draw.ts";
import { field, pasted, textOf, typed } from "../widgets/field.ts";
import type { Field } from "../widgets/field.ts";
import { says } from "../keys.ts";
import { createRows, startOfList, stayed } from "../widgets/list.ts";
import type { Checkup } from "./asks.ts";
import { list as listed, sorts } from "./order.ts";
import type { Choice, Listing } from "./order.ts";
import { checkupOf, drawConversations, headRows, listRows, selected } from "./view.ts";
import type { ConversationsScreen } from "./view.ts";
import { plural } from "../../core/base/format.ts";

export type { ConversationsScreen } from "./view.ts";

const usual: Choice = { filter: "", sort: "activity", isGrouped: false, agent: null, withHidden: false };

function none(state: ConversationsScreen): string | null {
  if (selected(state) !== null) return null;
  if (state.rows !== null || state.trouble?.code === "not_found") return "there is no conversation";
  return state.trouble === null ? "they are still being read" : "they cannot be read";
}

/** Opens something of the selected one. */
const ofIt = (placeOf: (conversation: ConversationId) => Place) => ({
  disabled: none,
  does: opens<ConversationsScreen>((state) => {
    const row = selected(state);
    return row && placeOf(row.conversation.id);
  }),
});
const its = (kind: Its) => ofIt((conversation) => ({ kind, conversation }));
const all = (kind: "grep" | "status" | "history") => ({
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
    { keys: ["enter"], short: "messages", says: says.messages, ...its("messages") },
    { keys: ["s"], short: "summaries", says: says.summaries, ...its("dag") },
    { keys: ["c"], short: "context", says: says.context, ...its("context") },
    { keys: ["/"], short: "filter", says: "list only those that have these words", does: filter },
    { keys: ["S", "ctrl+g"], short: "search", says: "search what was said in all conversations", ...all("grep") },
    { keys: ["!"], short: "status", says: "show how the whole database is", ...all("status") },
    {
      keys: ["o"],
      short: "order",
      says: "order by activity, messages, tokens, context use, name",
      does: chooses(({ sort }) => ({ sort: sorts[(sorts.indexOf(sort) + 1) % sorts.length] ?? "activity" })),
    },
    {
      keys: ["f"],
      short: "families",
      says: "put the segments of a session below each other",
      does: chooses(({ isGrouped }) => ({ isGrouped: !isGrouped })),
    },
    { keys: ["h"], short: "check", says: "check it as a doctor; again shows findings", disabled: none, does: check },
    {
      keys: ["H"],
      says: "set right what a check finds and follows from other rows",
      changes: true,
      ...ofIt((conversation) => ({ kind: "fix", conversation })),
    },
    { keys: ["a"], says: "list only those of one agent, then of the next", does: nextAgent },
    {
      keys: ["."],
      says: "list those too that are hidden from recall",
      does: chooses(({ withHidden }) => ({ withHidden: !withHidden })),
    },
    { keys: ["F"], says: "show its files", ...its("files") },
    { keys: ["u"], says: says.history, ...its("history") },
    { keys: ["U"], says: "show what was changed in all conversations", ...all("history") },
    {
      keys: ["i"],
      short: "import",
      says: "import the host's transcripts that are not stored",
      does: opens(() => ({ kind: "transcripts" })),
    },
    {
      keys: ["t"],
      says: "copy its summaries into another conversation",
      changes: true,
      ...ofIt((source) => ({ kind: "targets", source })),
    },
    {
      keys: ["R"],
      says: says.repair,
      changes: true,
      ...ofIt((conversation) => ({ kind: "rewrite", conversation, select: { repair: true } })),
    },
    {
      keys: ["escape"],
      says: "list all of them again, if less is listed",
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
    conversations: (state, told, frame) => ({ state: arranged({ ...state, rows: told, trouble: null }, frame) }),
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

// ── What is listed ───────────────────────────────────────────────────────────────────────────────────────────────────

/** Listed anew; the cursor stays on its conversation, wherever that is now. */
function arranged(state: ConversationsScreen, frame: Frame): ConversationsScreen {
  const id = selected(state)?.conversation.id;
  const listing = listed(state.rows ?? [], state.choice);
  const at = listing.placed.findIndex(({ conversation }) => conversation.id === id);
  return { ...state, listing, list: stayed(state.list, at, listing.placed.length, listRows(frame)) };
}

/** Every letter narrows the list; the arrows still move in it. */
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

// ── Health ───────────────────────────────────────────────────────────────────────────────────────────────────────────

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
    ...(isFixed ? ["", page.paint.soft("H sets right what needs no decision, once this is closed")] : []),
  ];
  return { state, ...goTo({ kind: "text", title: `conversation ${id}, checked`, lines }) };
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
      ? ({ tone: "good", text: `conversation ${id} is sound: ${extent}` } as const)
      : ({
          tone: "bad",
          text: `conversation ${id}: ${plural(count, "finding")} to look at; h shows ${count === 1 ? "it" : "them"}`,
        } as const);
  return { state: next, notice };
}
