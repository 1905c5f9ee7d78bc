/** How the context screen looks: the budget and its use, items left out, then the prompt, one line per item. */

import { messageName, type ConversationId, type Ref, type Role } from "../../core/model/types.ts";
import { costOf } from "../../core/assembly/prompt-items.ts";
import {
  budgetLine,
  budgetSource,
  finerMark,
  finerWords,
  reservations,
  starvedWords,
  wholeItem,
} from "../../format/context.ts";
import { bar, legend, promptBar } from "../../format/bars.ts";
import { textLines } from "../../format/passages.ts";
import { createPaint, type Paint } from "../../format/paint.ts";
import type { Frame, Destination } from "../contract.ts";
import { beside, fitAll, laidOutOnce, row, rule, textPage, windowed } from "../widgets/draw.ts";
import { drawField, type Field } from "../widgets/field.ts";
import type { List } from "../widgets/list.ts";
import type { PromptEntry, LeftRow, Prompt, Range } from "./asks.ts";
import { formatCount, plural } from "../../core/base/format.ts";
import { cut, padEnd, padStart, widthOf, wrap } from "../../format/width.ts";
import { spanOf } from "../../format/times.ts";
import { oneLine } from "../../format/safe-text.ts";
import type { Page } from "../../format/page.ts";

export interface ContextScreen {
  readonly kind: "context";
  readonly conversation: ConversationId;
  /** The one being tried; null: the conversation's own. */
  readonly budget: number | null;
  /** Null until it is read. */
  readonly prompt: Prompt | null;
  readonly trouble: string | null;
  /** Whether items left out are being read. */
  readonly isReading: boolean;
  /** Items left out, then the prompt. */
  readonly list: List;
  /** While a budget is typed. */
  readonly typing: Field | null;
  /** Null: if there is room. */
  readonly isPreviewed: boolean | null;
  /** The first visible line of the preview. */
  readonly top: number;
}

export const countOf = ({ prompt }: ContextScreen): number =>
  prompt === null ? 0 : prompt.left.count + prompt.entries.length;

type At =
  | { readonly kind: "entry"; readonly entry: PromptEntry }
  | { readonly kind: "left"; readonly left: LeftRow }
  | { readonly kind: "unread" };

function rowAt({ left, entries }: Prompt, position: number): At {
  const entry = entries[position - left.count];
  if (entry !== undefined) return { kind: "entry", entry };
  const found = left.rows[position - left.from];
  return found === undefined ? { kind: "unread" } : { kind: "left", left: found };
}

/** The summary or message of the selected row; null for a note, and for a row that is not loaded. */
export function selectedRef({ prompt, list }: ContextScreen): Ref | null {
  if (prompt === null) return null;
  const at = rowAt(prompt, list.cursor);
  if (at.kind === "left") return at.left.item;
  return at.kind === "entry" && at.entry.origin.kind !== "note" ? at.entry.origin : null;
}

// ── The room ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Room {
  readonly columns: number;
  readonly rows: number;
  readonly isBeside: boolean;
}

/** The room of the preview; null if it is not shown. */
export function previewRoom({ isPreviewed }: ContextScreen, { columns, rows }: Frame): Room | null {
  if (!(isPreviewed ?? columns >= 140)) return null;
  if (columns >= 110) return { columns: Math.floor(columns * 0.45) - 2, rows, isBeside: true };
  return { columns: columns - 4, rows: Math.max(1, Math.floor(rows * 0.45) - 1), isBeside: false };
}

function listFrame(state: ContextScreen, frame: Frame): Frame {
  const room = previewRoom(state, frame);
  if (room === null) return frame;
  return room.isBeside
    ? { ...frame, columns: frame.columns - room.columns - 3 }
    : { ...frame, rows: Math.max(2, frame.rows - room.rows - 1) };
}

export function placeOf(state: ContextScreen, frame: Frame) {
  const { columns, rows } = listFrame(state, frame);
  const above = headLines(state, { ...frame, columns, rows }).length;
  const between = state.prompt === null ? 0 : dividers(state.prompt).size;
  return { above, rows: Math.max(1, rows - above - between), drawn: rows - above, columns };
}

/** Lines drawn before an item, by its position. */
function dividers({ left, entries, report, thresholdTokens }: Prompt): ReadonlyMap<number, readonly string[]> {
  const words = new Map<number, readonly string[]>();
  const add = (at: number, line: string): unknown => words.set(at, [...(words.get(at) ?? []), line]);
  if (left.count > 0) {
    const { items, tokens } = report.evicted;
    add(
      left.count,
      `↑ left out at ${formatCount(report.budget)} tokens: ${plural(items, "item")}, ${formatCount(tokens)} tokens`,
    );
  }
  const over = entries.findIndex(({ sum }) => sum > thresholdTokens);
  if (over !== -1) add(left.count + over, `compaction threshold, ${formatCount(thresholdTokens)} tokens`);
  const tail = entries.findIndex(({ origin }) => origin.kind === "message" && origin.part === "tail");
  if (tail !== -1) add(left.count + tail, "fresh tail");
  return words;
}

export const rowAtLine = (state: ContextScreen, line: number, frame: Frame): number | null =>
  state.prompt && (itemLines(state, state.prompt, listFrame(state, frame))[line]?.position ?? null);

// ── Drawing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export function drawContext(state: ContextScreen, frame: Frame): readonly string[] {
  const { prompt } = state;
  const { columns, paint } = frame;
  if (prompt === null) return ["", `  ${state.trouble === null ? "reading …" : oneLine(state.trouble)}`];
  const room = listFrame(state, frame);
  const lines = [...headLines(state, room), ...itemLines(state, prompt, room).map(({ line }) => line)];
  const pane = previewRoom(state, frame);
  if (pane === null) return lines;
  const text = windowed(previewLines(state, { ...frame, ...pane }), state.top, { ...frame, ...pane });
  const shown = text.map((line) => ` ${line}`);
  if (pane.isBeside)
    return beside({ lines, columns: room.columns }, { lines: shown, columns: pane.columns + 2 }, frame.rows, paint);
  return [...fitAll(lines, columns, room.rows), rule("text in the prompt", columns, paint), ...shown];
}

function headLines(state: ContextScreen, frame: Frame): readonly string[] {
  const { prompt, typing, budget } = state;
  const { columns, rows, paint } = frame;
  if (prompt === null) return [];
  const { report, conversation } = prompt;
  const source = budget === null ? budgetSource(conversation) : "trial; B: host's budget";
  const first =
    typing === null
      ? `  ${budgetLine(frame, report, source)}`
      : drawField("  budget in tokens, such as 32k:", typing, columns, paint);
  const said = [
    ...(conversation.totals.contextItems === 0 ? ["the context is empty"] : []),
    ...(report.outcome === "starved" ? [starvedWords(report, prompt.smallest)] : []),
    ...reservations({ ...report, evicted: { items: 0, tokens: 0 } }),
  ];
  const notes = said.map((words) => paint.caution(`  ${cut(words, columns - 3)}`));
  const heading = `  ${paint.soft(headingOf(columns - 2))}`;
  if (rows < 14) return [first, ...notes, heading];
  const segments = promptBar(report, paint);
  return [
    first,
    `  ${bar(segments, columns - 4)}`,
    thresholdMark(prompt, columns - 4, paint),
    ...legend(segments, columns - 4).map((line) => `  ${line}`),
    ...finerWords(report).map((words) => paint.soft(`  ${cut(words, columns - 3)}`)),
    ...notes,
    "",
    heading,
  ];
}

function thresholdMark({ report, thresholdTokens }: Prompt, columns: number, paint: Paint): string {
  const words = `a sweep is due above ${formatCount(thresholdTokens)}`;
  const at = Math.min(columns - 1, Math.floor((thresholdTokens / Math.max(1, report.budget)) * columns));
  const isRight = at + 2 + words.length > columns;
  return paint.soft(isRight ? `  ${padStart(`${words} ↑`, at + 1)}` : `  ${" ".repeat(at)}↑ ${words}`);
}

interface Cells {
  readonly kind: string;
  readonly id: string;
  readonly tokens: string;
  readonly bar: string;
  readonly sum: string;
  readonly time: string;
  readonly text: string;
}

const barCells = 6;

function lineOf(cells: Cells, columns: number): string {
  const isWide = columns >= 112;
  const left = [
    padEnd(cells.kind, 10),
    ...(isWide ? [padEnd(cells.id, 20)] : []),
    padStart(cells.tokens, 7),
    ...(columns >= 60 ? [padEnd(cells.bar, barCells)] : []),
    ...(columns >= 70 ? [padStart(cells.sum, 8)] : []),
    ...(columns >= 76 ? [padEnd(cells.time, isWide ? 17 : 11)] : []),
  ].join("  ");
  return `${left}  ${cut(cells.text, Math.max(4, columns - widthOf(left) - 2))}`;
}

const headingOf = (columns: number): string =>
  lineOf({ kind: "item", id: "", tokens: "tokens", bar: "", sum: "total", time: "time", text: "text" }, columns);

interface ItemLine {
  readonly line: string;
  /** Null for a line between items. */
  readonly position: number | null;
}

function itemLines(state: ContextScreen, prompt: Prompt, frame: Frame): readonly ItemLine[] {
  const { list } = state;
  const { columns, paint } = frame;
  const room = frame.rows - headLines(state, frame).length;
  const between = dividers(prompt);
  const most = prompt.entries.reduce((largest, { origin }) => Math.max(largest, origin.tokens), 1);
  const lines: ItemLine[] = [];
  for (let position = list.top; position < countOf(state) && lines.length < room; position++) {
    for (const words of between.get(position) ?? []) lines.push({ line: rule(words, columns, paint), position: null });
    const isSelected = position === list.cursor;
    const drawing = { ...frame, paint: isSelected ? bare : paint, columns: columns - 2, most };
    const text = rowText(rowAt(prompt, position), prompt, drawing);
    lines.push({ line: row(text, isSelected, columns, paint), position });
  }
  return lines.slice(0, Math.max(1, room));
}

/** An inverted line is easier to read in one colour. */
const bare = createPaint(false);

function rowText(at: At, { report }: Prompt, frame: Frame & { readonly most: number }): string {
  const { columns, paint, most, zone } = frame;
  const time = (range: Range | null): string => (range === null ? "" : timeOf(range, columns, zone));
  const cells = { id: "", sum: "", bar: "" };
  switch (at.kind) {
    case "unread":
      return paint.soft("…");
    case "left": {
      const { item, role, range, words } = at.left;
      const isShown = report.origins.some((origin) => origin.kind !== "note" && origin.id === item.id);
      const name = item.kind === "summary" ? item.id : messageName(item.id);
      const kind = item.kind === "summary" ? `d${item.depth}` : (role ?? "message");
      const text = isShown ? `(moved to the start of the prompt) ${words}` : words;
      return paint.soft(
        lineOf({ ...cells, kind, id: name, tokens: formatCount(costOf(item)), time: time(range), text }, columns),
      );
    }
    case "entry": {
      const { origin, range, words, sum } = at.entry;
      const painted = kindOf(at.entry, paint) + paint.soft(finerMark(origin));
      return lineOf(
        {
          kind: painted,
          id: origin.kind === "note" ? "" : paint.soft(origin.kind === "summary" ? origin.id : messageName(origin.id)),
          tokens: formatCount(origin.tokens),
          bar: barOf(origin.tokens, most),
          sum: paint.soft(formatCount(sum)),
          time: paint.soft(time(range)),
          text: words,
        },
        columns,
      );
    }
  }
}

function kindOf({ origin }: PromptEntry, paint: Paint): string {
  if (origin.kind === "note") return paint.caution(origin.standing === undefined ? "note" : "standing");
  if (origin.kind === "summary") return paint.depth(origin.depth, `d${origin.depth}`);
  const role: Role = origin.role;
  return paint.role(role, role);
}

/** The year is left out: it is the same for almost all items. */
const yearLength = "2026-".length;

function timeOf([earliest, latest]: Range, columns: number, zone: string): string {
  const span = spanOf(earliest, latest, zone, yearLength);
  return columns >= 112 ? span : cut(span.replace(/…\d\d:\d\d$/, ""), 11);
}

const eighths = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"] as const;

/** In eighths of a cell; more than zero tokens always show. */
function barOf(tokens: number, most: number): string {
  const parts = Math.max(tokens > 0 ? 1 : 0, Math.round((tokens / most) * barCells * 8));
  return "█".repeat(Math.floor(parts / 8)) + (eighths[parts % 8] ?? "");
}

// ── The text ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const previewCharacters = 60_000;

/** The selected item's text exactly as the model gets it. */
export function previewLines({ prompt, list }: ContextScreen, page: Frame): readonly string[] {
  if (prompt === null) return [];
  const at = rowAt(prompt, list.cursor);
  const { columns, paint } = page;
  if (at.kind === "unread") return [paint.soft("…")];
  if (at.kind === "left")
    return [
      paint.soft(`not in the prompt at ${formatCount(prompt.report.budget)} tokens`),
      "",
      ...wrap(at.left.words, columns),
      "",
      paint.soft("press ↵ to see all of it"),
    ];
  return linesOnce(at.entry, page);
}

const linesOnce = laidOutOnce((entry: PromptEntry, page) => entryLines(entry, page, previewCharacters));

function entryLines(entry: PromptEntry, page: Page, charactersMax: number): readonly string[] {
  const { head, text } = wholeItem(page, entry);
  const more = text.length - charactersMax;
  return [
    head,
    ...textLines({ bounds: page.columns }, text.slice(0, charactersMax), ""),
    ...(entry.why.length === 0 ? [] : ["", page.paint.soft("pinned because of"), ...entry.why]),
    ...(more > 0 ? ["", page.paint.soft(`… ${formatCount(more)} more characters; press V for the whole prompt`)] : []),
  ];
}

export function wholePrompt({ conversation, entries, report }: Prompt, frame: Frame): Destination {
  const page = textPage(frame);
  return {
    kind: "text",
    title: `prompt of conversation ${conversation.id} at ${formatCount(report.budget)} tokens`,
    lines: entries.flatMap((entry) => [...entryLines(entry, page, Infinity), ""]),
  };
}
