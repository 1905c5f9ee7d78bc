/**
 * Text for a terminal: colours that say something, columns that line up whatever script the text is in, and text of
 * strangers that cannot move the cursor.
 */

import { stripVTControlCharacters } from "node:util";
import picocolors from "picocolors";
import type { Role } from "../core/model/types.ts";
import { formatTimestamp, timestampToMs } from "../core/base/time.ts";
import type { Timestamp } from "../core/base/time.ts";

/** Colours by what they mean. */
export interface Paint {
  readonly bad: (text: string) => string;
  readonly caution: (text: string) => string;
  readonly good: (text: string) => string;
  /** What is there for whoever looks for it. */
  readonly soft: (text: string) => string;
  readonly strong: (text: string) => string;
  readonly match: (text: string) => string;
  /** What keys act on. Without colours it must be told by something else too. */
  readonly selected: (text: string) => string;
  readonly role: (role: Role, text: string) => string;
  /** A summary of this depth. */
  readonly depth: (depth: number, text: string) => string;
}

/** Where text goes: a terminal, a file or another program. */
export interface Output {
  readonly stream: NodeJS.WritableStream;
  readonly isTerminal: boolean;
  /** Width of the terminal; null where there is none and no width was asked for. */
  readonly columns: number | null;
  readonly colour: boolean;
}

export interface Page {
  readonly paint: Paint;
  /** How wide a line may be. Where there is no terminal, so wide that whoever reads it is not flooded. */
  readonly columns: number;
  /** The same where there is a terminal; null where nothing needs to be broken or cut. */
  readonly bounds: number | null;
  /** The zone in which times are shown. */
  readonly zone: string;
  /** `lcm …` commands in these words as they would have to be typed here. */
  readonly typed: (words: string) => string;
}

export function createPaint(colour: boolean): Paint {
  const colours = picocolors.createColors(colour);
  const byRole = {
    system: colours.magenta,
    user: colours.cyan,
    assistant: colours.green,
    tool: colours.yellow,
  } as const;
  const byDepth = [colours.blue, colours.magenta];
  return {
    bad: colours.red,
    caution: colours.yellow,
    good: colours.green,
    soft: colours.dim,
    strong: colours.bold,
    match: (text) => colours.bold(colours.red(text)),
    selected: colours.inverse,
    role: (role, text) => byRole[role](text),
    depth: (depth, text) => (byDepth[depth] ?? colours.cyan)(text),
  };
}

/** A time beside many others: to the minute, and without the zone, which is said once. */
export const clockTime = (at: Timestamp, zone: string): string =>
  formatTimestamp(at, zone).slice(0, "2026-02-17 15:37".length);

export interface Spans {
  of(earliest: Timestamp, latest: Timestamp): string;
  /** What must be said once about all of them. */
  readonly words: string;
}

/** Times and ranges beside each other, as short as they can be: the year is said once if they all have the same. */
export function createSpans(times: readonly Timestamp[], zone: string): Spans {
  const years = new Set(times.map((at) => clockTime(at, zone).slice(0, 4)));
  const yearLength = years.size > 1 ? 0 : "2026-".length;
  return {
    of: (earliest, latest) => spanOf(earliest, latest, zone, yearLength),
    words: `times in ${[...(years.size === 1 ? years : []), zone].join(", ")}`,
  };
}

const halfDayMs = 43_200_000;

/** To the minute within a day or a night, `2026-02-17 15:37…16:02`, and to the day beyond: `2026-02-17…2026-03-01`. */
export function spanOf(earliest: Timestamp, latest: Timestamp, zone: string, leftOut = 0): string {
  const [from, to] = [clockTime(earliest, zone), clockTime(latest, zone)];
  if (from === to) return from.slice(leftOut);
  const isNight = timestampToMs(latest) - timestampToMs(earliest) < halfDayMs;
  const isShort = isNight || from.slice(0, 10) === to.slice(0, 10);
  return isShort ? `${from.slice(leftOut)}…${to.slice(11)}` : `${from.slice(leftOut, 10)}…${to.slice(leftOut, 10)}`;
}

export { plural } from "../core/base/format.ts";

/** `one`, `one and two`, `one, two and three`. */
export const listed = (items: readonly string[]): string =>
  items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;

// ── Width ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Scripts whose characters are two columns wide. Emoji are told by their own property. */
const wide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1aff0}-\u{1b2ff}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}]/u;
const emoji = /^\p{Emoji_Presentation}|^\p{Emoji}\ufe0f/u;
const unseen = /^[\p{Cc}\p{Cf}\p{Mn}\p{Me}]+$/u;
const isPlain = (text: string): boolean => /^[ -~]*$/.test(text);

/** How many columns a text takes. */
export function widthOf(text: string): number {
  const bare = stripVTControlCharacters(text);
  if (isPlain(bare)) return bare.length;
  let width = 0;
  for (const { segment } of segmenter.segment(bare)) width += graphemeWidth(segment);
  return width;
}

const graphemeWidth = (grapheme: string): number =>
  unseen.test(grapheme) ? 0 : wide.test(grapheme) || emoji.test(grapheme) ? 2 : 1;

/** The text in at most this many columns; `…` stands for what is missing. */
export function cut(text: string, columns: number): string {
  if (text.length <= columns && isPlain(text)) return text;
  let width = 0;
  let kept = "";
  for (const { segment } of segmenter.segment(text)) {
    const next = width + graphemeWidth(segment);
    if (next > columns) return dropLast(kept, width, columns);
    kept += segment;
    width = next;
  }
  return kept;
}

/** Makes room for the ellipsis; the dropped character may have been two columns wide. */
function dropLast(kept: string, width: number, columns: number): string {
  if (columns < 1) return "";
  const graphemes = Array.from(segmenter.segment(kept), ({ segment }) => segment);
  let left = width;
  while (left > columns - 1) left -= graphemeWidth(graphemes.pop() ?? " ");
  return `${graphemes.join("").trimEnd()}…`;
}

export const padEnd = (text: string, columns: number): string =>
  text + " ".repeat(Math.max(0, columns - widthOf(text)));
export const padStart = (text: string, columns: number): string =>
  " ".repeat(Math.max(0, columns - widthOf(text))) + text;

/** Lines of at most this many columns, broken between words where there are any. A column there always is. */
export function wrap(text: string, room: number): readonly string[] {
  const columns = Math.max(1, room);
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/(?<=\s)/)) {
    let rest = word;
    if (line !== "" && isWider(line + word.trimEnd(), columns)) {
      lines.push(line.trimEnd());
      line = "";
    }
    while (isWider(rest.trimEnd(), columns)) {
      const head = headOf(rest, columns);
      lines.push(head);
      rest = rest.slice(head.length);
    }
    line += rest;
  }
  return line.trim() === "" ? lines : [...lines, line.trimEnd()];
}

/** Looks no further than it must: some scripts have no blanks, and a paragraph is one word. */
function isWider(text: string, columns: number): boolean {
  if (text.length <= 4 * columns) return widthOf(text) > columns;
  let width = 0;
  for (const { segment } of segmenter.segment(text)) {
    width += graphemeWidth(segment);
    if (width > columns) return true;
  }
  return false;
}

/** The same with every word whole, whatever its length: paths and commands are there to be copied. */
export function breakLines(text: string, columns: number): readonly string[] {
  if (widthOf(text) <= columns) return [text];
  const lines: string[] = [];
  for (const word of wordsOf(text, columns)) {
    const line = lines.at(-1);
    if (line === undefined || widthOf(line) + 1 + widthOf(word) > columns) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}

/** A quoted command is one word, if it fits in a line at all. */
function wordsOf(text: string, columns: number): readonly string[] {
  const isPaired = text.split("`").length % 2 === 1;
  if (!isPaired) return text.split(" ");
  return text
    .split(/ (?=(?:[^`]*`[^`]*`)*[^`]*$)/)
    .flatMap((word) => (widthOf(word) > columns ? word.split(" ") : [word]));
}

/** A sentence beside the answer, as it goes out: in lines no wider than the terminal, if there is one. */
export const breakText = (text: string, columns: number | null): string =>
  `${text
    .split("\n")
    .flatMap((line) => breakLines(line, columns ?? Infinity))
    .join("\n")}\n`;

/** At least one character, or wrapping would never end. */
function headOf(text: string, columns: number): string {
  let head = "";
  let width = 0;
  for (const { segment } of segmenter.segment(text)) {
    width += graphemeWidth(segment);
    if (head !== "" && width > columns) break;
    head += segment;
  }
  return head;
}

// ── Text of strangers ────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * A stored text must not move the cursor, change a colour or turn the direction of what stands around it: control
 * characters are shown, not sent.
 */
export const harmless = (text: string): string =>
  text
    .replace(/\r\n/g, "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, showControl);

const showControl = (character: string): string => {
  const code = character.charCodeAt(0);
  return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "␡" : "�";
};

/** The same in one line. */
export const oneLine = (text: string): string => harmless(text).replace(/\s+/g, " ").trim();

/** For programs, and as harmless: JSON escapes only half of what a terminal obeys. */
export const jsonText = (value: unknown): string =>
  `${JSON.stringify(value, null, 2).replace(
    /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )}\n`;

// ── Tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Column {
  readonly title: string;
  readonly align?: "right";
  /** Takes what the others leave, and is cut where that is not enough. */
  readonly flexible?: true;
  /** Left out where there is no room for all. */
  readonly spare?: true;
  readonly paint?: (cell: string, row: number) => string;
}

const gap = "  ";
const flexibleMin = 12;

/** Lines of a table no wider than asked, if it can be; null means that nothing is cut. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number | null,
  paint: Paint,
): readonly string[] {
  // Not Math.max of them all: a call takes only so many arguments, and a table may have more rows.
  const widths = columns.map(({ title }, at) =>
    rows.reduce((widest, row) => Math.max(widest, widthOf(row[at] ?? "")), widthOf(title)),
  );
  const least = widths.reduce((sum, each, at) => sum + (columns[at]?.flexible ? flexibleMin : each) + gap.length, 0);
  const kept = columns.flatMap(({ spare }, at) => (spare === true ? [] : [at]));
  if (width !== null && least - gap.length > width && kept.length < columns.length) {
    const of = <T>(cells: readonly T[]): readonly T[] => cells.filter((_, at) => kept.includes(at));
    return table(of(columns), rows.map(of), width, paint);
  }
  const flexible = columns.findIndex((column) => column.flexible === true);
  const own = widths[flexible];
  if (width !== null && own !== undefined) {
    const others = widths.reduce((sum, each) => sum + each, 0) - own + gap.length * (columns.length - 1);
    widths[flexible] = Math.min(own, Math.max(flexibleMin, width - others));
  }
  const line = (cells: readonly string[], painted: (cell: string, at: number) => string): string =>
    columns
      .map(({ align }, at) => {
        const columnWidth = widths[at] ?? 0;
        const cell = cut(cells[at] ?? "", columnWidth);
        const fill = " ".repeat(Math.max(0, columnWidth - widthOf(cell)));
        return align === "right" ? fill + painted(cell, at) : painted(cell, at) + fill;
      })
      .join(gap)
      .trimEnd();
  const header = line(
    columns.map(({ title }) => title),
    (cell) => paint.soft(cell),
  );
  const body = rows.map((row, index) => line(row, (cell, at) => columns[at]?.paint?.(cell, index) ?? cell));
  return [header, ...body];
}

/**
 * Lines of `name  value`, the values below each other and broken where they are wider than asked; null means that they
 * are not. A value may have several lines.
 */
export function facts(
  pairs: readonly (readonly [name: string, ...values: readonly string[]])[],
  paint: Paint,
  columns: number | null,
): readonly string[] {
  const width = pairs.reduce((widest, [name]) => Math.max(widest, widthOf(name)), 0);
  const room = columns === null ? Infinity : columns - width - gap.length;
  const below = " ".repeat(width);
  return pairs.flatMap(([name, ...values]) =>
    values
      .flatMap((value) => breakLines(value, room))
      .map((line, at) => `${at === 0 ? paint.soft(padEnd(name, width)) : below}${gap}${line}`.trimEnd()),
  );
}
