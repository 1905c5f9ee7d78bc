/** How the database stands, or one conversation of it, as `lcm status` tells it, and what compaction did of late. */

import type { CompactionRecord, ConversationId } from "../../core/model/types.ts";
import { ago, nameOf, useBar, useShare } from "../../format/conversations.ts";
import { dueWords, statusFacts } from "../../format/status.ts";
import type { Fact } from "../../format/status.ts";
import { opens } from "../contract.ts";
import type { Frame, Module } from "../contract.ts";
import { rule, windowed } from "../widgets/draw.ts";
import { says } from "../keys.ts";
import { createScroll, scrolled } from "../widgets/list.ts";
import type { One, Told } from "./asks.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { cut, padEnd, padStart, widthOf } from "../../format/width.ts";
import { facts } from "../../format/table.ts";
import { oneLine } from "../../format/safe-text.ts";

export interface StatusScreen {
  readonly kind: "status";
  readonly conversation: ConversationId | null;
  /** Null until it has been read. */
  readonly told: Told | null;
  readonly trouble: string | null;
  readonly isBackingUp: boolean;
  readonly top: number;
}

const scroll = createScroll<StatusScreen>((state, by, frame) => ({
  ...state,
  top: scrolled(state.top, by, linesOf(state, frame).length, frame.rows),
}));

const history = opens<StatusScreen>(({ conversation }) => ({ kind: "history", conversation }));
const search = opens<StatusScreen>(({ conversation }) => ({ kind: "grep", conversation }));

export const statusModule: Module<StatusScreen> = {
  name: "Status",
  open: (place) => ({ ...place, told: null, trouble: null, isBackingUp: false, top: 0 }),
  keys: [
    { keys: ["u"], short: "history", says: says.history, does: history },
    { keys: ["/", "S"], short: "search", says: "search what was said", does: search },
    {
      keys: ["b"],
      short: "backup",
      says: "copy the database and its files, beside the others",
      changes: true,
      disabled: ({ isBackingUp }) => (isBackingUp ? "a copy is being made" : null),
      does: (state) => ({ state: { ...state, isBackingUp: true }, asks: [{ kind: "backUp" }] }),
    },
    ...scroll.keys,
  ],
  title: ({ conversation }) => (conversation === null ? "status" : `status of ${conversation}`),
  isUnread: ({ told, trouble }) => told === null && trouble === null,
  reads: ({ conversation }) => [{ kind: "status", conversation }],
  isBusy: ({ isBackingUp }) => isBackingUp,
  answers: {
    status: (state, told) => ({ state: { ...state, told, trouble: null } }),
    backUp: (state, text) => ({
      state: { ...state, isBackingUp: false },
      asks: [{ kind: "status", conversation: state.conversation }],
      notice: { tone: "good", text },
    }),
  },
  on: {
    ...scroll.on,
    failed: (state, { failure }) => ({ state: { ...state, trouble: failure.message, isBackingUp: false } }),
  },
  draw: (state, frame) => windowed(linesOf(state, frame), state.top, frame),
};

// ── Sections ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const sections: readonly (readonly [title: string, facts: readonly string[]])[] = [
  ["stored", ["database", "conversations", "messages", "summaries", "files", "tokens", "newest", "search"]],
  ["who writes summaries", ["model", "model calls", "prompts"]],
  ["kept and set", ["backups", "settings"]],
];

function linesOf({ told, trouble }: StatusScreen, frame: Frame): readonly string[] {
  if (told === null) return ["", `  ${trouble === null ? "reading …" : oneLine(trouble)}`];
  const { status, one } = told;
  const known = statusFacts({ ...frame, columns: frame.columns - 4, bounds: frame.columns - 4 }, status);
  const [stored = [], ...others] = sections.map(([title, names]) =>
    section(
      title,
      factLines(
        known.filter(([name]) => names.includes(name)),
        frame,
      ),
      frame,
    ),
  );
  return [
    ...(one === null ? [] : section(nameOf(one.conversation), oneLines(one, frame), frame)),
    ...stored,
    ...section("pending work", pendingLines(told, frame), frame),
    ...section("last compactions", compactionLines(one?.compactions ?? status.compactions, one === null, frame), frame),
    ...others.flat(),
  ];
}

const section = (title: string, lines: readonly string[], { columns, paint }: Frame): readonly string[] => [
  rule(cut(title, columns - 8), columns, paint),
  ...lines.map((line) => `  ${line}`),
  "",
];

/** All sections have their values below each other. */
const nameWidth = "conversations".length;

const factLines = (pairs: readonly Fact[], { columns, paint }: Frame): readonly string[] =>
  facts(
    pairs.map(([name, ...values]) => [padEnd(name, nameWidth), ...values]),
    paint,
    columns - 4,
  );

function oneLines({ conversation, due }: One, frame: Frame): readonly string[] {
  const { paint, now, zone } = frame;
  const { totals, lastMessageAt, sessionKey, sessionId, agentId, caughtUp } = conversation;
  const use = { promptTokens: due.contextTokens, ...due };
  const pairs: readonly Fact[] = [
    [
      "session",
      [oneLine(sessionKey ?? sessionId), ...(agentId === null ? [] : [`agent ${oneLine(agentId)}`])].join(", "),
    ],
    ["messages", `${formatCount(totals.messages)}, ${formatCount(totals.messageTokens)} tokens`],
    ["summaries", formatCount(totals.summaries)],
    ["context", `${useBar(use, 24, paint)} ${useShare(use)} of ${formatCount(due.budget)} tokens`],
    ["due", due.kind === "sweep" ? paint.caution(dueWords(due)) : dueWords(due)],
    ["newest", lastMessageAt === null ? "no message yet" : ago(lastMessageAt, now, zone)],
    ...(caughtUp === 0 ? [] : [["caught up", `${plural(caughtUp, "message")} that came outside a turn`] as const]),
  ];
  return factLines(pairs, frame);
}

/** What is due, of the fullest contexts. */
function pendingLines({ status, fullest }: Told, { columns, paint }: Frame): readonly string[] {
  const due = status.pressures.filter(({ kind }) => kind !== "nothing").length;
  const heading =
    due === 0 ? paint.good("nothing is due") : paint.caution(`compaction is due in ${plural(due, "conversation")}`);
  const cells = columns >= 100 ? 24 : 12;
  const lines = fullest.map((each) => {
    const use = { promptTokens: each.contextTokens, ...each };
    const kind = each.kind === "nothing" ? "" : each.kind === "sweep" ? "sweep due" : "one pass due";
    const left = `${padStart(String(each.conversation), 4)}  ${useBar(use, cells, paint)}${padStart(useShare(use), 5)}  `;
    const room = columns - 4 - widthOf(left) - 14;
    return `${left}${padEnd(cut(each.name, room), room)}  ${paint.caution(kind)}`;
  });
  return [heading, ...lines];
}

function compactionLines(
  records: readonly CompactionRecord[],
  isNamed: boolean,
  { columns, paint, now, zone }: Frame,
): readonly string[] {
  if (records.length === 0) return ["none so far"];
  return records.map(({ at, conversation, outcome, message, tokensBefore, tokensAfter, passes }) => {
    const change = `${formatCount(tokensBefore)} → ${formatCount(tokensAfter)}`;
    const left = [
      padEnd(ago(at, now, zone), 10),
      ...(isNamed ? [padStart(String(conversation), 4)] : []),
      padEnd(change, 20),
      ...(columns >= 100 ? [padEnd(plural(passes, "pass", "passes"), 10)] : []),
    ].join("  ");
    const words = cut(oneLine(message), Math.max(8, columns - 6 - widthOf(left)));
    return `${left}  ${outcome === "failed" || outcome === "waiting" ? paint.bad(words) : words}`;
  });
}
