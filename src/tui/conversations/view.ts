/** How the conversations screen looks: the table, and the facts of the selected conversation. */

import type { ConversationId, Totals } from "../../core/model/types.ts";
import { ago, bareName, nameOf, useBar, useShare } from "../../format/conversations.ts";
import { createPaint, type Paint } from "../../format/paint.ts";
import type { Frame } from "../contract.ts";
import { beside, ends, row, rule } from "../widgets/draw.ts";
import { drawField, type Field } from "../widgets/field.ts";
import type { List } from "../widgets/list.ts";
import type { Failure } from "../../operator/port.ts";
import type { Checkup, ConversationRow } from "../../operator/conversations.ts";
import { activityOf, type Choice, type Listing, type Placed, type Sort } from "./order.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { breakLines, cut, padEnd, padStart, widthOf } from "../../format/width.ts";
import { facts } from "../../format/table.ts";
import { clockTime } from "../../format/times.ts";
import { oneLine } from "../../format/safe-text.ts";

export interface ConversationsScreen {
  readonly kind: "conversations";
  /** Null until they are read. */
  readonly rows: readonly ConversationRow[] | null;
  /** Why nothing can be shown. */
  readonly trouble: Failure | null;
  readonly choice: Choice;
  /** While a filter is typed. */
  readonly typing: Field | null;
  readonly listing: Listing;
  readonly list: List;
  readonly checkups: ReadonlyMap<ConversationId, Checkup>;
  readonly checking: ConversationId | null;
}

export const selected = ({ listing, list }: ConversationsScreen): Placed | null => listing.placed[list.cursor] ?? null;

/** The last check, unless the conversation was written to since. */
export function checkupOf(
  { checkups }: ConversationsScreen,
  { conversation: { id, revision } }: ConversationRow,
): Checkup | null {
  const found = checkups.get(id);
  return found?.revision === revision ? found : null;
}

// ── The room ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The summary line and the table's heading. */
export const headRows = 2;
const footRows = 4;
const paneColumns = 40;

const hasPane = ({ columns }: Frame): boolean => columns >= 120;
const hasFoot = (frame: Frame): boolean => !hasPane(frame) && frame.rows >= 14;

export const listRows = (frame: Frame): number => Math.max(1, frame.rows - headRows - (hasFoot(frame) ? footRows : 0));

export function drawConversations(state: ConversationsScreen, frame: Frame): readonly string[] {
  const { rows, trouble } = state;
  if (rows === null) return trouble === null ? ["", "  reading …"] : troublePage(trouble, frame);
  if (rows.length === 0) return emptyPage(frame);
  const { columns, paint } = frame;
  const at = selected(state);
  if (hasPane(frame)) {
    const listColumns = columns - paneColumns - 1;
    const [head = "", ...lines] = listLines(state, { ...frame, columns: listColumns - 1 });
    const pane = at === null ? [] : paneLines(state, at, { ...frame, columns: paneColumns - 2 });
    const right = { lines: pane.map((line) => ` ${line}`), columns: paneColumns };
    return [head, ...beside({ lines, columns: listColumns }, right, frame.rows - 1, paint)];
  }
  const lines = listLines(state, frame);
  if (!hasFoot(frame)) return lines;
  const filled = Array.from({ length: headRows + listRows(frame) }, (_, line) => lines[line] ?? "");
  return at === null ? filled : [...filled, ...footLines(state, at, frame)];
}

// ── Empty and error pages ────────────────────────────────────────────────────────────────────────────────────────────

const page = (frame: Frame, heading: string, paragraphs: readonly string[]): readonly string[] => [
  "",
  `  ${frame.paint.strong(heading)}`,
  ...paragraphs.flatMap((each) => [
    "",
    ...breakLines(each, Math.min(76, frame.columns - 4)).map((line) => `  ${line}`),
  ]),
];

const importWords = "Press i to import the host's transcripts, or q to quit.";

function troublePage({ code, message, hint }: Failure, frame: Frame): readonly string[] {
  const said = [`${oneLine(message)}.`, ...(hint === null ? [] : [frame.typed(oneLine(hint))])];
  if (code !== "not_found") return page(frame, "The database cannot be read", said);
  return page(frame, "There is no database yet", [
    ...said,
    "It is created when the host stores its first message, or by an import.",
    importWords,
  ]);
}

const emptyPage = (frame: Frame): readonly string[] =>
  page(frame, "There are no conversations yet", [
    "The database is empty. Conversations appear here as soon as the host stores them.",
    importWords,
  ]);

// ── The list ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function listLines(state: ConversationsScreen, frame: Frame): readonly string[] {
  const { columns, paint } = frame;
  const { listing, list, choice } = state;
  const shown = listing.placed.slice(list.top, list.top + listRows(frame));
  const cells = columnsFor(columns - 2, String(listing.idMax).length);
  const line = (of: (column: Column) => string): string =>
    cells
      .map((column) => (column.align === "right" ? padStart : padEnd)(of(column), column.width))
      .join(gap)
      .trimEnd();
  const others = choice.filter === "" ? "press a or . to list others" : "press esc to clear the filter";
  return [
    headingLine(state, frame),
    `  ${paint.soft(line(({ title, width }) => cut(title, width)))}`,
    ...shown.map((each, at) => {
      const isSelected = list.top + at === list.cursor;
      const colours = isSelected ? bare : paint;
      return row(
        line(({ cell, width }) => cell(each, { state, frame, paint: colours, width })),
        isSelected,
        columns,
        paint,
      );
    }),
    ...(shown.length > 0 ? [] : ["", `  no matching conversations; ${others}`]),
  ];
}

/** An inverted line is easier to read in one colour. */
const bare = createPaint(false);
const gap = "  ";

interface Column {
  readonly title: string;
  readonly width: number;
  readonly align?: "right";
  readonly cell: (row: Placed, drawing: Drawing) => string;
}

interface Drawing {
  readonly state: ConversationsScreen;
  readonly frame: Frame;
  readonly paint: Paint;
  readonly width: number;
}

/** As many columns as fit; the name takes the rest. */
function columnsFor(room: number, idWidth: number): readonly Column[] {
  const count = (title: string, width: number, of: (totals: Totals) => number): Column => ({
    title,
    width,
    align: "right",
    cell: ({ conversation }) => formatCount(of(conversation.totals)),
  });
  const id: Column = {
    title: "id",
    width: Math.max(2, idWidth),
    align: "right",
    cell: ({ conversation }) => String(conversation.id),
  };
  /** Each with the width it needs to be shown. */
  const spare: readonly (readonly [least: number, Column])[] = [
    [60, count("messages", 9, ({ messages }) => messages)],
    [92, count("summaries", 9, ({ summaries }) => summaries)],
    [108, count("tokens", 11, ({ messageTokens }) => messageTokens)],
    [46, contextColumn(room)],
    [38, { title: "active", width: 10, cell: activeCell }],
    [72, { title: "health", width: 10, cell: healthCell }],
  ];
  const others = spare.flatMap(([least, column]) => (room >= least ? [column] : []));
  const rest = room - [id, ...others].reduce((sum, { width }) => sum + width + gap.length, 0);
  const keyWidth = rest >= 64 ? Math.floor(rest * 0.45) : 0;
  const key: Column = {
    title: "session key",
    width: keyWidth - gap.length,
    cell: ({ conversation }, { paint, width }) =>
      conversation.title === null ? "" : paint.soft(cut(oneLine(conversation.sessionKey ?? ""), width)),
  };
  const name: Column = { title: "conversation", width: Math.max(6, rest - keyWidth), cell: nameCell };
  return [id, name, ...(keyWidth === 0 ? [] : [key]), ...others];
}

const activeCell: Column["cell"] = ({ conversation }, { frame: { now, zone }, paint }) =>
  paint.soft(ago(activityOf(conversation), now, zone));

const healthCell: Column["cell"] = (each, { state, paint, width }) => {
  const { word, tone } = healthOf(state, each);
  return paint[tone](cut(word, width));
};

/** A name is cut to leave room for its state. */
function nameCell({ conversation, isEarlier }: Placed, { paint, width }: Drawing): string {
  const { active, hidden } = conversation;
  const state = hidden ? " (hidden)" : active || isEarlier || width < 32 ? "" : " (earlier)";
  const name = `${isEarlier ? "└ " : ""}${bareName(conversation)}`;
  const words = cut(name, Math.max(6, width - widthOf(state))) + state;
  return hidden || !active ? paint.soft(words) : words;
}

const shareWidth = 5;

function contextColumn(room: number): Column {
  const cells = room >= 108 ? 12 : room >= 72 ? 7 : 0;
  return {
    title: cells === 0 ? "context" : "context use",
    width: cells === 0 ? 7 : cells + shareWidth,
    ...(cells === 0 ? { align: "right" } : {}),
    cell: (each, { paint }) =>
      cells === 0 ? useShare(each) : `${useBar(each, cells, paint)}${padStart(useShare(each), shareWidth)}`,
  };
}

const orderWords: Readonly<Record<Sort, string>> = {
  activity: "latest activity first",
  messages: "most messages first",
  tokens: "most tokens first",
  context: "fullest context first",
  name: "by name",
};

function headingLine({ rows, listing, choice, typing }: ConversationsScreen, { columns, paint }: Frame): string {
  const all = rows?.length ?? 0;
  const count =
    listing.placed.length === all
      ? plural(all, "conversation")
      : `${formatCount(listing.placed.length)} of ${plural(all, "conversation")}`;
  if (typing !== null) {
    const field = drawField("  filter:", typing, columns - widthOf(count) - 2, paint);
    return ends(field, paint.soft(count), columns - 1);
  }
  const words = [
    ...(choice.filter === "" ? [] : [`matching "${oneLine(choice.filter)}"`]),
    orderWords[choice.sort],
    ...(choice.isGrouped ? ["grouped by session"] : []),
    ...(choice.agent === null ? [] : [choice.agent === "" ? "without an agent" : `agent ${oneLine(choice.agent)}`]),
    ...(listing.hidden === 0 ? [] : [`${formatCount(listing.hidden)} hidden`]),
  ];
  return `  ${paint.strong(count)}${paint.soft(cut(` · ${words.join(" · ")}`, columns - widthOf(count) - 3))}`;
}

// ── Health ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Health {
  readonly word: string;
  readonly tone: "good" | "caution" | "bad" | "soft";
  readonly sentence: string;
}

/** From its last check if that is current, otherwise from its own row. */
function healthOf(state: ConversationsScreen, each: ConversationRow): Health {
  const checkup = checkupOf(state, each);
  if (state.checking === each.conversation.id) return { word: "checking …", tone: "soft", sentence: "being checked" };
  if (checkup !== null && checkup.count > 0) {
    const word = checkup.count > 99 ? "findings" : plural(checkup.count, "finding");
    return { word, tone: "bad", sentence: `${plural(checkup.count, "finding")}; press h to see them` };
  }
  const { conversation, promptTokens, budget, thresholdTokens, stalled } = each;
  if (stalled !== null)
    return { word: "stalled", tone: "bad", sentence: `the last compaction failed: ${oneLine(stalled)}` };
  // An earlier segment no longer gets prompts.
  if (conversation.active && promptTokens > budget)
    return {
      word: "too full",
      tone: "bad",
      sentence: "the prompt exceeds the budget: its oldest items are left out; press C to compact",
    };
  if (conversation.active && promptTokens > thresholdTokens)
    return {
      word: "sweep due",
      tone: "caution",
      sentence: "the prompt is over the threshold: a sweep is due; press C to compact",
    };
  if (checkup !== null)
    return { word: "healthy", tone: "good", sentence: "healthy: nothing lost, duplicated or broken" };
  return { word: "unchecked", tone: "soft", sentence: "not checked yet; press h to check it" };
}

// ── The selected one ─────────────────────────────────────────────────────────────────────────────────────────────────

const promptWords = ({ promptTokens, budget }: ConversationRow): string =>
  `about ${formatCount(promptTokens)} of ${formatCount(budget)} tokens`;

const familyWords = ({ conversation, segment, segments }: Placed): string => {
  const state = conversation.hidden ? "hidden from recall" : conversation.active ? "active" : "earlier";
  return segments === 1 ? state : `segment ${segment} of ${segments}, ${state}`;
};

function footLines(state: ConversationsScreen, each: Placed, frame: Frame): readonly string[] {
  const { columns, paint } = frame;
  const { conversation } = each;
  const { totals, agentId, sessionKey, sessionId } = conversation;
  const { sentence, tone } = healthOf(state, each);
  // Whole facts, as many as fit.
  const line = (words: readonly string[]): string => {
    const count = words.findLastIndex((_, at) => widthOf(words.slice(0, at + 1).join(" · ")) <= columns - 3);
    return `  ${cut(words.slice(0, Math.max(1, count + 1)).join(" · "), columns - 3)}`;
  };
  return [
    rule(cut(nameOf(conversation), columns - 8), columns, paint),
    paint.soft(
      line([
        oneLine(sessionKey ?? sessionId),
        ...(agentId === null ? [] : [`agent ${oneLine(agentId)}`]),
        familyWords(each),
      ]),
    ),
    line([
      `${formatCount(totals.messageTokens)} tokens in ${plural(totals.messages, "message")}`,
      plural(totals.summaries, "summary", "summaries"),
      `prompt ${promptWords(each)}`,
    ]),
    paint[tone](line([sentence])),
  ];
}

function paneLines(state: ConversationsScreen, each: Placed, frame: Frame): readonly string[] {
  const { columns, paint, zone, now } = frame;
  const { conversation, thresholdTokens } = each;
  const { totals, agentId, sessionKey, sessionId, createdAt, caughtUp, lastMessageAt } = conversation;
  const { folder, parentSessionId } = conversation;
  const { sentence, tone } = healthOf(state, each);
  const budgetless = conversation.promptBudget === null ? [paint.soft("default budget: the host reported none")] : [];
  const time = (at: Timestamp): string => `${clockTime(at, zone)} ${paint.soft(`(${ago(at, now, zone)})`)}`;
  return [
    ...breakLines(nameOf(conversation), columns).map((line) => paint.strong(cut(line, columns))),
    "",
    useBar(each, columns - shareWidth, paint) + padStart(useShare(each), shareWidth),
    "",
    ...facts(
      [
        [
          "prompt",
          promptWords(each),
          ...budgetless,
          paint.soft(`a sweep is due above ${formatCount(thresholdTokens)}`),
        ],
        [
          "in context",
          `${formatCount(totals.contextTokens)} tokens`,
          `${plural(totals.contextItems, "item")}, ${formatCount(totals.contextMessages)} of them messages`,
        ],
        ["messages", `${formatCount(totals.messages)}, ${formatCount(totals.messageTokens)} tokens`],
        ["summaries", formatCount(totals.summaries)],
        ["last", lastMessageAt === null ? "no message yet" : time(lastMessageAt)],
        ["created", clockTime(createdAt, zone)],
        ["session", oneLine(sessionKey ?? "no key"), paint.soft(oneLine(sessionId))],
        ["agent", oneLine(agentId ?? "none")],
        ...(folder === null ? [] : [["folder", oneLine(folder)] as const]),
        ...(parentSessionId === null ? [] : [["started by", oneLine(parentSessionId)] as const]),
        ["family", familyWords(each)],
        ...(caughtUp === 0 ? [] : [["caught up", plural(caughtUp, "message")] as const]),
        ["health", paint[tone](sentence)],
      ],
      paint,
      columns,
    ),
    "",
    paint.soft(`times in ${zone}`),
  ];
}
