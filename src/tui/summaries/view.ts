/** How the summaries screen looks: the strip, the tree as a table, and the details of the selected row. */

import type { Conversation, ConversationId, MessageId, SummaryId } from "../../core/model/types.ts";
import { messageName } from "../../core/model/types.ts";
import { nameOf } from "../../format/conversations.ts";
import { textLines } from "../../format/passages.ts";
import type { Paint } from "../../format/paint.ts";
import type { Fact } from "../../format/status.ts";
import { messageRuns } from "../../core/recall/describe.ts";
import { levelWords } from "../../format/summaries.ts";
import type { Frame } from "../contract.ts";
import { beside, ends, row as drawRow, rule, windowed } from "../widgets/draw.ts";
import type { List } from "../widgets/list.ts";
import type { ItemDetail, MessageFacts, SummaryFacts } from "./asks.ts";
import { drawAxis, drawStrip, stripHeight, type StripCursor, type Strip } from "./strip.ts";
import type { Row, Tree } from "./tree.ts";
import { formatRange, formatTimestamp, type Timestamp } from "../../core/base/time.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { cut, padEnd, padStart, widthOf, wrap } from "../../format/width.ts";
import { facts } from "../../format/table.ts";
import { createSpans } from "../../format/times.ts";
import { oneLine } from "../../format/safe-text.ts";
import type { Page } from "../../format/page.ts";

export interface SummariesScreen extends Tree, Known {
  readonly kind: "summaries";
  readonly conversation: ConversationId;
  /** Null until it is read. */
  readonly about: Conversation | null;
  /** Whether there are other conversations. */
  readonly others: boolean;
  readonly strip: Strip | null;
  /** The open rows of the tree. */
  readonly rows: readonly Row[];
  readonly list: List;
  /** Whether facts of rows are being read. */
  readonly isReading: boolean;
  /** Selected as soon as its row exists. */
  readonly sought: SummaryId | null;
  /** Of the selected row. */
  readonly detail: { readonly key: string; readonly result: ItemDetail | null } | null;
  readonly detailTop: number;
  /** Toggles the details: hides them in a wide terminal, replaces the list with them in a narrow one. */
  readonly isTurned: boolean;
  /** Why nothing can be shown. */
  readonly problem: string | null;
}

export const rowAt = ({ rows, list }: SummariesScreen): Row | undefined => rows[list.cursor];

// ── The room ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Layout {
  /** Lines above the rows, including the table's heading. */
  readonly above: number;
  /** Visible rows of the list. */
  readonly rows: number;
  /** Zero if only the details are shown. */
  readonly columns: number;
  readonly detail: { readonly columns: number; readonly rows: number } | null;
}

const headRows = 1;
/** Minimum columns for two panes, and rows for the strip. */
const wideColumns = 100;
const tallRows = 16;

export function layoutOf({ strip, isTurned }: SummariesScreen, { columns, rows }: Frame): Layout {
  // The headline, the strip, and its axis.
  const above = rows < tallRows || strip === null ? 0 : stripHeight(strip) + 2;
  const below = Math.max(1, rows - above);
  const list = { above: above + headRows, rows: Math.max(1, below - headRows) };
  if (columns < wideColumns && isTurned) return { ...list, columns: 0, detail: { columns, rows: below } };
  if (columns < wideColumns || isTurned) return { ...list, columns, detail: null };
  const left = Math.floor(columns * 0.56);
  return { ...list, columns: left, detail: { columns: columns - left - 1, rows: below } };
}

const margin = 1;

export function linesOf(state: SummariesScreen, frame: Frame, columns: number): readonly string[] {
  const row = rowAt(state);
  if (row === undefined) return [];
  const result = state.detail?.result ?? null;
  const width = Math.max(10, columns - margin - 1);
  const lines = result === null ? rowWords(row, width) : detailLines(result, frame, width);
  return lines.map((line) => " ".repeat(margin) + line);
}

export function draw(state: SummariesScreen, frame: Frame): readonly string[] {
  const { about, strip, rows, list } = state;
  const { columns, paint, zone } = frame;
  if (about === null) return ["", `  ${state.problem ?? "reading …"}`];
  if (rows.length === 0) return ["", "  no messages yet"];
  const layout = layoutOf(state, frame);
  const between = strip === null ? [] : [strip.from, strip.to];
  const above =
    layout.above === headRows || strip === null
      ? []
      : [
          headline(about, between, frame),
          ...drawStrip(strip, spotOf(state), columns, paint),
          drawAxis(strip, columns, zone, paint),
        ];
  const { detail } = layout;
  const shown = rows.slice(list.top, list.top + layout.rows);
  const listing = { rows: shown, known: state, selected: list.cursor - list.top, between, zone };
  const left = layout.columns === 0 ? [] : drawRows(listing, layout.columns, paint);
  if (detail === null) return [...above, ...left];
  const room = { ...frame, columns: detail.columns, rows: detail.rows };
  const right = windowed(linesOf(state, frame, detail.columns), state.detailTop, room);
  if (layout.columns === 0) return [...above, ...right];
  return [
    ...above,
    ...beside({ lines: left, columns: layout.columns }, { lines: right, columns: detail.columns }, detail.rows, paint),
  ];
}

/** The conversation, its counts and, if there is room, the time zone. */
function headline(about: Conversation, between: readonly Timestamp[], { columns, zone }: Frame): string {
  const { totals } = about;
  const inContext = `${plural(totals.contextItems, "item")}, ${formatCount(totals.contextTokens)} tokens in context`;
  const all = `${plural(totals.messages, "message")}, ${plural(totals.summaries, "summary", "summaries")}; ${inContext}`;
  const counts = widthOf(all) < columns ? all : inContext;
  const times = `${createSpans(between, zone).words} `;
  const fits = (left: string): boolean => widthOf(left) + widthOf(times) + 2 < columns;
  const named = ` ${nameOf(about)} · ${counts}`;
  return fits(named) ? ends(named, times, columns) : ends(` ${counts}`, fits(counts) ? times : "", columns);
}

/** As in the strip, an item lasts until the next one begins. */
function spotOf(state: SummariesScreen): StripCursor | null {
  const { rows, list, summaries, messages } = state;
  const row = rows[list.cursor];
  const from = row === undefined ? null : beginOf(state, row);
  if (row === undefined || from === null) return null;
  const after = rows.slice(list.cursor + 1, list.cursor + nextMax).find(({ indent }) => indent <= row.indent);
  const next = after === undefined ? null : beginOf(state, after);
  const summary = row.kind === "summary" ? summaries.get(row.id) : null;
  const last = row.kind === "run" ? row.last : row.kind === "message" ? row.id : null;
  const end = summary?.latestAt ?? (last === null ? null : messages.get(last)?.at) ?? from;
  return { depth: summary?.depth ?? -1, from, to: next !== null && next > end ? next : end };
}

/** How many rows after an open one are searched for the next one at its level. */
const nextMax = 1_000;

function beginOf({ summaries, messages }: Known, row: Row): Timestamp | null {
  if (row.kind === "summary") return summaries.get(row.id)?.earliestAt ?? null;
  if (row.kind !== "message" && row.kind !== "run") return null;
  return messages.get(row.kind === "run" ? row.first : row.id)?.at ?? null;
}

// ── The rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Facts of rows; null for what no longer exists. */
export interface Known {
  readonly summaries: ReadonlyMap<SummaryId, SummaryFacts | null>;
  readonly messages: ReadonlyMap<MessageId, MessageFacts | null>;
}

interface Line {
  readonly what: string;
  readonly from: string;
  readonly tokens: string;
  readonly span: readonly [Timestamp, Timestamp] | null;
  readonly warning: string;
  readonly text: string;
  readonly paint: (paint: Paint, what: string) => string;
}

const plainly = (_: Paint, what: string): string => what;
const softly = (paint: Paint, what: string): string => paint.soft(what);
const bare = { from: "", tokens: "", span: null, warning: "", text: "", paint: plainly };

function lineOf(row: Row, { summaries, messages }: Known): Line {
  const lead = "  ".repeat(row.indent);
  switch (row.kind) {
    case "summary": {
      const sign = row.isOpen ? "-" : "+";
      const facts = summaries.get(row.id);
      if (facts === undefined) return { ...bare, what: `${lead}${sign} …` };
      if (facts === null) return { ...bare, what: `${lead}  ${row.id}`, text: "no longer exists", paint: softly };
      const { depth, from, level, tokens, earliestAt, latestAt, isCarried, isStale, opening } = facts;
      return {
        what: `${lead}${sign} d${depth} ${kindOf(depth)}`,
        from: isCarried ? "–" : formatCount(from),
        tokens: formatCount(tokens),
        span: [earliestAt, latestAt],
        warning: [...(level === "normal" ? [] : [level]), ...(isStale ? ["stale"] : [])].join(", "),
        text: isCarried ? `(carried) ${opening}` : opening,
        paint: (paint, what) => paint.depth(depth, what),
      };
    }
    case "message": {
      const facts = messages.get(row.id);
      if (facts === undefined) return { ...bare, what: `${lead}  …` };
      if (facts === null) return { ...bare, what: `${lead}  a message`, text: "no longer exists", paint: softly };
      const { role, tokens, at, opening } = facts;
      const paint = (by: Paint, what: string): string => by.role(role, what);
      return { ...bare, what: `${lead}  ${role}`, tokens: formatCount(tokens), span: [at, at], text: opening, paint };
    }
    case "run": {
      const [first, last] = [messages.get(row.first), messages.get(row.last)];
      const words = {
        tail: "the fresh tail",
        older: "not summarised yet",
        anywhere: "somewhere among the oldest items",
      };
      return {
        ...bare,
        what: `  ${plural(row.count, "message")}`,
        tokens: formatCount(row.tokens),
        span: first && last ? [first.at, last.at] : null,
        text: words[row.place],
      };
    }
    case "outside": {
      const text = row.count === null ? "open to look for them" : plural(row.count, "summary", "summaries");
      return { ...bare, what: `${row.isOpen ? "-" : "+"} not in the context`, text, paint: softly };
    }
    case "note":
      return { ...bare, what: `${lead}  ${row.words}`, paint: softly };
  }
}

interface Listing {
  readonly rows: readonly Row[];
  readonly known: Known;
  readonly selected: number;
  /** The first and last time of the conversation. */
  readonly between: readonly Timestamp[];
  readonly zone: string;
}

interface Column {
  readonly title: "from" | "tokens" | "time";
  readonly pad: typeof padEnd;
  readonly cell: (line: Line) => string;
}

function drawRows(listing: Listing, columns: number, paint: Paint): readonly string[] {
  const { rows, known, selected, between, zone } = listing;
  const spans = createSpans(between, zone);
  const lines = rows.map((each) => lineOf(each, known));
  const widest = (of: (line: Line) => string, least: number): number =>
    lines.reduce((most, line) => Math.max(most, widthOf(of(line))), least);
  const room = columns - 2;
  const longest = widest((line) => (line.tokens === "" ? "" : line.what), 12);
  const what = Math.min(longest, Math.max(12, Math.floor(room * 0.6)));
  const columnsWith = (time: (span: readonly [Timestamp, Timestamp]) => string) => {
    const all: readonly Column[] = [
      { title: "from", pad: padStart, cell: ({ from }) => from },
      { title: "tokens", pad: padStart, cell: ({ tokens }) => tokens },
      { title: "time", pad: padEnd, cell: ({ span }) => (span === null ? "" : time(span)) },
    ];
    const sized = all.map((each) => ({ ...each, width: widest(each.cell, each.title.length) }));
    return fitting(sized, room - what - gap.length);
  };
  // If the whole span does not fit, its start may.
  const whole = columnsWith((span) => spans.of(...span));
  const kept = whole.some(({ title }) => title === "time") ? whole : columnsWith(([from]) => spans.of(from, from));
  const head = [padEnd("what", what), ...kept.map(({ title, pad, width }) => pad(title, width)), "text"];
  return [
    paint.soft(cut(`  ${head.join(gap)}`, columns)),
    ...lines.map((line, at) => {
      const cells = line.tokens === "" ? [] : [kept.map(({ cell, pad, width }) => pad(cell(line), width)).join(gap)];
      const first = padEnd(cut(line.what, cells.length === 0 ? room : what), what);
      const before = [first, ...cells].join(gap);
      const rest = room - widthOf(before) - gap.length;
      const warning = line.warning === "" ? [] : [cut(line.warning, Math.max(0, rest))];
      const text = cut(
        line.text,
        Math.max(0, rest - warning.reduce((sum, each) => sum + widthOf(each) + gap.length, 0)),
      );
      if (at === selected) return drawRow([before, ...warning, text].join(gap), true, columns, paint);
      const painted = [line.paint(paint, first), ...cells.map(paint.soft), ...warning.map(paint.caution), text];
      return drawRow(painted.join(gap), false, columns, paint);
    }),
  ];
}

const gap = "  ";
const textMin = 14;

/** Drops columns until the text has room. */
function fitting<C extends Column & { readonly width: number }>(columns: readonly C[], room: number): readonly C[] {
  const left = (kept: readonly C[]): number => kept.reduce((sum, { width }) => sum - width - gap.length, room);
  return (["from", "time", "tokens"] as const).reduce(
    (kept, title) => (left(kept) < textMin ? kept.filter((each) => each.title !== title) : kept),
    columns,
  );
}

// ── The selected one ─────────────────────────────────────────────────────────────────────────────────────────────────

const kindOf = (depth: number): "leaf" | "condensed" => (depth === 0 ? "leaf" : "condensed");

function detailLines(detail: ItemDetail, page: Page, columns: number): readonly string[] {
  const { paint } = page;
  const [name, what, pairs, text] = detail.kind === "summary" ? ofSummary(detail, page) : ofMessage(detail, page);
  return [
    `${paint.strong(name)}  ${what}`,
    ...facts(pairs, paint, columns),
    rule("", columns, paint),
    ...textLines({ bounds: columns }, text, ""),
  ];
}

type DetailParts = readonly [name: string, what: string, pairs: readonly Fact[], text: string];

function ofSummary(detail: Extract<ItemDetail, { readonly kind: "summary" }>, { paint, zone }: Page): DetailParts {
  const { summary, sources, derived, carriedBy, origin } = detail;
  const { id, depth, level, model, tokens, earliestAt, latestAt, createdAt, revision, descendants } = summary;
  const { rewriteReason, carriedFrom, fileIds } = summary;
  const madeFrom =
    sources.messages.length > 0
      ? `${plural(sources.messages.length, "message")}: ${messageRuns(sources.messages).join(", ")}`
      : sources.summaries.length > 0
        ? `${plural(sources.summaries.length, "summary", "summaries")}: ${someOf(sources.summaries)}`
        : "nothing stored";
  const carried = `from ${carriedFrom}${origin === null ? ", which no longer exists" : ` of conversation ${origin}`}`;
  const rewritten = revision === 0 ? "" : `, rewritten ${revision === 1 ? "once" : `${revision} times`}`;
  return [
    id,
    paint.depth(depth, `d${depth} ${kindOf(depth)}`),
    [
      ...(earliestAt && latestAt ? [["when", formatRange(earliestAt, latestAt, zone)] as const] : []),
      ["tokens", formatCount(tokens)],
      ["level", level === "normal" ? level : paint.caution(`${level}: ${levelWords[level]}`)],
      ["model", model === null ? (level === "normal" ? "not recorded" : "none") : oneLine(model)],
      ["created", `${formatTimestamp(createdAt, zone)}${rewritten}`],
      ...(rewriteReason === null ? [] : [["stale", paint.caution(oneLine(rewriteReason))] as const]),
      ...(carriedFrom === null ? [] : [["carried", carried] as const]),
      ["made from", madeFrom],
      ...(descendants > sources.summaries.length
        ? [["below it", `${plural(descendants, "summary", "summaries")} in all`] as const]
        : []),
      ...(derived.length === 0 ? [] : [["used in", someOf(derived)] as const]),
      ...(carriedBy.length === 0 ? [] : [["carried by", someOf(carriedBy)] as const]),
      ...(fileIds.length === 0 ? [] : [["files", someOf(fileIds)] as const]),
    ],
    summary.text,
  ];
}

function ofMessage(
  { message, text }: Extract<ItemDetail, { readonly kind: "message" }>,
  { paint, zone }: Page,
): DetailParts {
  const { id, role, at, tokens, seq } = message;
  return [
    messageName(id),
    paint.role(role, role),
    [
      ["when", formatTimestamp(at, zone)],
      ["number", formatCount(seq)],
      ["tokens", formatCount(tokens)],
    ],
    text,
  ];
}

const namedMax = 3;

const someOf = (ids: readonly string[]): string =>
  ids.slice(0, namedMax).join(", ") + (ids.length > namedMax ? ` and ${formatCount(ids.length - namedMax)} more` : "");

/** Explains a row that is neither a summary nor a message. */
function rowWords(row: Row, columns: number): readonly string[] {
  if (row.kind === "run") return [plural(row.count, "message"), "", ...wrap(runWords[row.place], columns)];
  if (row.kind === "outside") return ["not in the context", "", ...wrap(outsideWords, columns)];
  return [];
}

const runWords = {
  tail: "The fresh tail: the newest messages, which are folded only if a prompt would not fit. Press ↵ to see them.",
  older: "Messages that no summary covers yet. Press ↵ to see them.",
  anywhere: "Messages that no summary covers, somewhere among the oldest items. Press ↵ to see the first.",
} as const;

const outsideWords =
  "Summaries outside the context: they were dissolved, belong to an abandoned branch, or their text is carried by " +
  "another conversation. Nothing is lost: what they covered is in the context or in other summaries.";
