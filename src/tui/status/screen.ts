/** The status screen: what `lcm status` reports, pending work and the latest compactions. */

import type { ProxyReport } from "../../core/model/proxy-report.ts";
import type { CompactionRecord, ConversationId } from "../../core/model/types.ts";
import { ago, nameOf, useBar, useShare } from "../../format/conversations.ts";
import { proxyLines } from "../../format/proxy.ts";
import { dueWords, statusFacts, type Fact } from "../../format/status.ts";
import { opens, type Frame, type Module } from "../contract.ts";
import { rule, windowed } from "../widgets/draw.ts";
import { commandKey, commands } from "../commands.ts";
import { createScroll, scrolled } from "../widgets/list.ts";
import type { One, StatusReport } from "./asks.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { cut, padEnd, padStart, widthOf } from "../../format/width.ts";
import { facts } from "../../format/table.ts";
import { oneLine } from "../../format/safe-text.ts";

export interface StatusScreen {
  readonly kind: "status";
  readonly conversation: ConversationId | null;
  /** Null until it is read. */
  readonly report: StatusReport | null;
  readonly trouble: string | null;
  readonly isBackingUp: boolean;
  readonly top: number;
}

const scroll = createScroll<StatusScreen>((state, by, frame) => ({
  ...state,
  top: scrolled(state.top, by, linesOf(state, frame).length, frame.rows),
}));

const of = ({ conversation }: StatusScreen) => ({ conversation });
const history = opens<StatusScreen>(({ conversation }) => ({ kind: "history", conversation }));
const search = opens<StatusScreen>(({ conversation }) => ({ kind: "search", conversation }));

export const statusModule: Module<StatusScreen> = {
  name: "Status",
  open: (place) => ({ ...place, report: null, trouble: null, isBackingUp: false, top: 0 }),
  keys: [
    { keys: ["u"], short: "history", help: commands.history.help, does: history },
    { keys: ["/", "S"], short: "search", help: "search", does: search },
    { ...commandKey(commands.compact, ["C"], of, "compact"), when: ({ conversation }) => conversation !== null },
    {
      keys: ["b"],
      short: "backup",
      help: commands.backup.help,
      changes: true,
      disabled: ({ isBackingUp }) => (isBackingUp ? "a backup is being made" : null),
      does: (state) => ({ state: { ...state, isBackingUp: true }, asks: [{ kind: "backUp" }] }),
    },
    commandKey(commands.restore, ["r"], of, "restore"),
    commandKey(commands.pruneOld, ["p"], of, "prune"),
    commandKey(commands.forgetSecret, ["x"], of),
    ...scroll.keys,
  ],
  title: ({ conversation }) => (conversation === null ? "status" : `status of ${conversation}`),
  isUnread: ({ report, trouble }) => report === null && trouble === null,
  reads: ({ conversation }) => [{ kind: "status", conversation }],
  isBusy: ({ isBackingUp }) => isBackingUp,
  answers: {
    status: (state, report) => ({ state: { ...state, report, trouble: null } }),
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

const sections: readonly (readonly [title: string, facts: readonly string[]])[] = [
  ["stored", ["database", "conversations", "messages", "summaries", "files", "tokens", "newest", "search"]],
  ["model", ["model", "model calls", "prompts"]],
  ["backups and settings", ["backups", "settings"]],
];

function linesOf({ report, trouble }: StatusScreen, frame: Frame): readonly string[] {
  if (report === null) return ["", `  ${trouble === null ? "reading …" : oneLine(trouble)}`];
  const { status, one, proxies } = report;
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
    ...section("pending work", pendingLines(report, frame), frame),
    ...section("last compactions", compactionLines(one?.compactions ?? status.compactions, one === null, frame), frame),
    ...others.flat(),
    ...(proxies.length === 0 ? [] : section("proxies", proxiesLines(proxies, frame), frame)),
  ];
}

/** The newest first, which is of interest. */
const proxiesLines = (proxies: readonly ProxyReport[], frame: Frame): readonly string[] =>
  proxies.toReversed().flatMap((report) => proxyLines(frame, report).map((line) => cut(line, frame.columns - 4)));

const section = (title: string, lines: readonly string[], { columns, paint }: Frame): readonly string[] => [
  rule(cut(title, columns - 8), columns, paint),
  ...lines.map((line) => `  ${line}`),
  "",
];

/** Aligns the values of all sections. */
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
  const pairs: readonly Fact[] = [
    [
      "session",
      [oneLine(sessionKey ?? sessionId), ...(agentId === null ? [] : [`agent ${oneLine(agentId)}`])].join(", "),
    ],
    ["messages", `${formatCount(totals.messages)}, ${formatCount(totals.messageTokens)} tokens`],
    ["summaries", formatCount(totals.summaries)],
    ["in context", `${plural(totals.contextItems, "item")}, ${formatCount(totals.contextTokens)} tokens`],
    ["prompt", `${useBar(due, 24, paint)} ${useShare(due)} of ${formatCount(due.budget)} tokens`],
    ["due", due.kind === "sweep" ? paint.caution(dueWords(due)) : dueWords(due)],
    ["newest", lastMessageAt === null ? "no message yet" : ago(lastMessageAt, now, zone)],
    ...(caughtUp === 0 ? [] : [["caught up", `${plural(caughtUp, "message")} stored outside a turn`] as const]),
  ];
  return factLines(pairs, frame);
}

function pendingLines({ status, fullest }: StatusReport, { columns, paint }: Frame): readonly string[] {
  const due = status.pressures.filter(({ kind }) => kind !== "nothing").length;
  const heading =
    due === 0 ? paint.good("nothing is due") : paint.caution(`compaction is due in ${plural(due, "conversation")}`);
  const cells = columns >= 100 ? 24 : 12;
  const lines = fullest.map((each) => {
    const kind = each.kind === "nothing" ? "" : each.kind === "sweep" ? "sweep due" : "one pass due";
    const left = `${padStart(String(each.conversation), 4)}  ${useBar(each, cells, paint)}${padStart(useShare(each), 5)}  `;
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
    // The message repeats what the columns show.
    const said = `${change} tokens in ${columns >= 100 ? `${plural(passes, "pass", "passes")}; ` : ""}`;
    const words = cut(
      oneLine(message.startsWith(said) ? message.slice(said.length) : message),
      Math.max(8, columns - 6 - widthOf(left)),
    );
    return `${left}  ${outcome === "failed" || outcome === "waiting" ? paint.bad(words) : words}`;
  });
}
