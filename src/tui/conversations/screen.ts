/** The conversations screen: the list of all conversations, from which every other screen is opened. */

import { findingsLines } from "../../format/findings.ts";
import type { Ask } from "../asks.ts";
import { goTo } from "../contract.ts";
import type { Binding, Frame, LayerEvent, Module, Step, Subject } from "../contract.ts";
import { textPage } from "../widgets/draw.ts";
import { field, pasted, textOf, typed, type Field } from "../widgets/field.ts";
import { commandKey, commands, type Command } from "../commands.ts";
import { createRows, startOfList, stayed } from "../widgets/list.ts";
import type { Checkup } from "../../operator/conversations.ts";
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

const it = (state: ConversationsScreen): Partial<Subject> => ({
  conversation: selected(state)?.conversation.id ?? null,
});

/** A key for a command, with the reason why nothing is selected. */
function does(command: Command, keys: readonly string[], short?: string): Binding<ConversationsScreen> {
  const binding = commandKey(command, keys, it, short);
  return {
    ...binding,
    disabled: (state, frame) => {
      const why = binding.disabled?.(state, frame) ?? null;
      return why === null ? null : (none(state) ?? why);
    },
  };
}

const messages = does(commands.messages, ["enter"], "messages");
const transplant = does(commands.transplant, ["t"]);

/** What the list of targets, or their plan, would say at its end. */
function whyNoCopy(state: ConversationsScreen): string | null {
  if (selected(state)?.conversation.totals.summaries === 0) return "it has no summaries to copy";
  return state.rows?.length === 1 ? "there is no other conversation to copy into" : null;
}

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
  open: messages.does,
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
    messages,
    does(commands.summaries, ["s"], "summaries"),
    does(commands.context, ["c"], "context"),
    { keys: ["/"], short: "filter", help: "filter the list by words", does: filter },
    does(commands.searchAll, ["S", "ctrl+g"], "search"),
    does(commands.status, ["!"], "status"),
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
    does(commands.fix, ["H"]),
    does(commands.compact, ["C"], "compact"),
    does(commands.ask, ["A"], "ask"),
    { keys: ["a"], help: "list one agent only; press again for the next", does: nextAgent },
    {
      keys: ["."],
      help: "show or hide conversations that are hidden from recall",
      does: chooses(({ withHidden }) => ({ withHidden: !withHidden })),
    },
    does(commands.files, ["F"]),
    does(commands.history, ["u"]),
    does(commands.historyAll, ["U"]),
    does(commands.import, ["i"], "import"),
    does(commands.export, ["e"], "export"),
    { ...transplant, disabled: (state, frame) => transplant.disabled?.(state, frame) ?? whyNoCopy(state) },
    does(commands.repair, ["R"]),
    does(commands.prune, ["D"]),
    {
      keys: ["escape"],
      help: "clear the filter",
      when: ({ choice }) => choice.filter !== "",
      does: chooses(() => ({ filter: "" })),
    },
    ...rows.keys,
  ],
  title: () => "conversations",
  subject: it,
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
