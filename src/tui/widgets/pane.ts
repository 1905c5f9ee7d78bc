/** A text that may be very long, in a pane: only what is seen of it is wrapped, so a megabyte scrolls like a page. */

import type { Scroll } from "../keys.ts";
import { wrap } from "../../format/width.ts";
import { harmless } from "../../format/safe-text.ts";

/** A row of a wrapped text: of which line, and the how many-th of that. */
export interface Spot {
  readonly line: number;
  readonly row: number;
}

export interface Room {
  readonly columns: number;
  readonly rows: number;
}

export const startOfText: Spot = { line: 0, row: 0 };

/** A line beyond this is taken in pieces, between words where there are any. */
const lineMax = 1_000;

/** Somebody's text, harmless, line by line. */
export const linesOf = (text: string): readonly string[] =>
  harmless(text)
    .replaceAll("\t", "    ")
    .split("\n")
    .flatMap((line) => (line.length <= lineMax ? [line] : pieces(line)));

function pieces(line: string): readonly string[] {
  const found: string[] = [];
  for (let from = 0; from < line.length;) {
    const space = from + line.slice(from, from + lineMax + 1).lastIndexOf(" ");
    const isFar = space < from + lineMax / 2 && from + lineMax < line.length;
    // Half a character is none.
    const isTorn = (line.charCodeAt(from + lineMax - 1) & 0xfc00) === 0xd800;
    const to = from + lineMax >= line.length ? line.length : isFar ? from + lineMax - (isTorn ? 1 : 0) : space + 1;
    found.push(line.slice(from, to));
    from = to;
  }
  return found;
}

const wrapped = (line: string, columns: number): readonly string[] => (line.trim() === "" ? [""] : wrap(line, columns));

/** At most so many rows, from a spot on. */
export function rowsFrom(lines: readonly string[], from: Spot, { columns, rows }: Room): readonly string[] {
  const found: string[] = [];
  for (let line = from.line; line < lines.length && found.length < rows; line++)
    found.push(...wrapped(lines[line] ?? "", columns).slice(line === from.line ? from.row : 0));
  return found.slice(0, rows);
}

/** What has rows of its own each, and is scrolled by rows: lines that are wrapped, or messages. */
export interface Blocks {
  readonly count: number;
  readonly heightOf: (at: number) => number;
}

/** So many rows further up (where negative) or down, as far as there are, but not below `last`. */
export function spotAfter({ count, heightOf }: Blocks, { line, row }: Spot, by: number, last?: Spot): Spot {
  let [at, left] = [line, row + by];
  while (left < 0 && at > 0) left += heightOf(--at);
  while (at < count && left >= heightOf(at)) left -= heightOf(at++);
  const to = { line: at, row: Math.max(0, at < count ? left : 0) };
  return last !== undefined && isBelow(to, last) ? last : to;
}

/** The first spot from which on the rest is seen. */
export const lastSpot = (blocks: Blocks, rows: number): Spot =>
  spotAfter(blocks, { line: blocks.count, row: 0 }, -rows);

export const isBelow = (one: Spot, other: Spot): boolean =>
  one.line > other.line || (one.line === other.line && one.row > other.row);

/** After scrolling by so many rows, or by a key; never beyond what fills the room. */
export function scrolledBy(lines: readonly string[], top: Spot, by: Scroll, room: Room): Spot {
  const blocks = { count: lines.length, heightOf: (at: number) => wrapped(lines[at] ?? "", room.columns).length };
  const last = lastSpot(blocks, room.rows);
  if (by === "first" || by === "last") return by === "first" ? startOfText : last;
  const page = Math.max(1, room.rows - 1);
  const keys = { up: -1, textUp: -1, down: 1, textDown: 1, pageUp: -page, pageDown: page };
  return spotAfter(blocks, top, typeof by === "number" ? by : keys[by], last);
}

/** How far one has come; nothing where all of it is seen. */
export function percent(lines: number, top: Spot, room: Room): string {
  if (lines <= room.rows && top.line === 0 && top.row === 0) return "";
  return `${Math.min(100, Math.round(((top.line + room.rows) / Math.max(1, lines)) * 100))}%`;
}

// ── Stretches ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The ends of what is held of something long. */
type Side = "older" | "newer";

/** What is held, with what was read beside it. Of more than so many, those at the other end go, and are read again. */
export function joined<T>(held: readonly T[], told: readonly T[], side: Side, max: number): readonly T[] {
  return side === "older" ? [...told, ...held].slice(0, max) : [...held, ...told].slice(-max);
}
