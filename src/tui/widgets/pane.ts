/** A pane for very long texts: only visible lines are wrapped, so a megabyte scrolls like a page. */

import type { Scroll } from "../keys.ts";
import { wrap } from "../../format/width.ts";
import { harmless } from "../../format/safe-text.ts";

/** A row of a wrapped text: the line, and the row within it. */
export interface Spot {
  readonly line: number;
  readonly row: number;
}

export interface Room {
  readonly columns: number;
  readonly rows: number;
}

export const startOfText: Spot = { line: 0, row: 0 };

/** Longer lines are split, between words if possible. */
const lineMax = 1_000;

/** The lines of a text, without control characters. */
export const linesOf = (text: string): readonly string[] =>
  harmless(text)
    .replaceAll("\t", "    ")
    .split("\n")
    .flatMap((line) => (line.length <= lineMax ? [line] : pieces(line)));

function pieces(line: string): readonly string[] {
  const parts: string[] = [];
  for (let from = 0; from < line.length;) {
    const space = from + line.slice(from, from + lineMax + 1).lastIndexOf(" ");
    const isFar = space < from + lineMax / 2 && from + lineMax < line.length;
    // Do not split a surrogate pair.
    const isTorn = (line.charCodeAt(from + lineMax - 1) & 0xfc00) === 0xd800;
    const to = from + lineMax >= line.length ? line.length : isFar ? from + lineMax - (isTorn ? 1 : 0) : space + 1;
    parts.push(line.slice(from, to));
    from = to;
  }
  return parts;
}

const wrapped = (line: string, columns: number): readonly string[] => (line.trim() === "" ? [""] : wrap(line, columns));

/** The rows from a spot on, as many as fit. */
export function rowsFrom(lines: readonly string[], from: Spot, { columns, rows }: Room): readonly string[] {
  const shown: string[] = [];
  for (let line = from.line; line < lines.length && shown.length < rows; line++)
    shown.push(...wrapped(lines[line] ?? "", columns).slice(line === from.line ? from.row : 0));
  return shown.slice(0, rows);
}

/** Blocks of rows, scrolled by rows: wrapped lines, or messages. */
export interface Blocks {
  readonly count: number;
  readonly heightOf: (at: number) => number;
}

/** The spot `by` rows further down, or up if negative; never below `last`. */
export function spotAfter({ count, heightOf }: Blocks, { line, row }: Spot, by: number, last?: Spot): Spot {
  let [at, left] = [line, row + by];
  while (left < 0 && at > 0) left += heightOf(--at);
  while (at < count && left >= heightOf(at)) left -= heightOf(at++);
  const to = { line: at, row: Math.max(0, at < count ? left : 0) };
  return last !== undefined && isBelow(to, last) ? last : to;
}

/** The top spot when the end is at the bottom. */
export const lastSpot = (blocks: Blocks, rows: number): Spot =>
  spotAfter(blocks, { line: blocks.count, row: 0 }, -rows);

export const isBelow = (one: Spot, other: Spot): boolean =>
  one.line > other.line || (one.line === other.line && one.row > other.row);

export function scrolledBy(lines: readonly string[], top: Spot, by: Scroll, room: Room): Spot {
  const blocks = { count: lines.length, heightOf: (at: number) => wrapped(lines[at] ?? "", room.columns).length };
  const last = lastSpot(blocks, room.rows);
  if (by === "first" || by === "last") return by === "first" ? startOfText : last;
  const page = Math.max(1, room.rows - 1);
  const keys = { up: -1, textUp: -1, down: 1, textDown: 1, pageUp: -page, pageDown: page };
  return spotAfter(blocks, top, typeof by === "number" ? by : keys[by], last);
}

/** Scroll position in percent; empty if everything is visible. */
export function percent(lines: number, top: Spot, room: Room): string {
  if (lines <= room.rows && top.line === 0 && top.row === 0) return "";
  return `${Math.min(100, Math.round(((top.line + room.rows) / Math.max(1, lines)) * 100))}%`;
}

/** Adds what was read next to the loaded parts; beyond `max`, parts at the other end are dropped. */
export function joined<T>(
  loaded: readonly T[],
  added: readonly T[],
  side: "older" | "newer",
  max: number,
): readonly T[] {
  return side === "older" ? [...added, ...loaded].slice(0, max) : [...loaded, ...added].slice(-max);
}
