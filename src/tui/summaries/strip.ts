/**
 * The shape of a conversation's summaries at a glance: time from left to right, depth from the bottom up. The context
 * alone tells all of it: what stands below a summary of depth n are summaries of every lesser depth, over the same time.
 */

import type { Paint } from "../../format/paint.ts";
import { timestampToMs } from "../../core/base/time.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { cut, padEnd, widthOf } from "../../format/width.ts";
import { clockTime } from "../../format/times.ts";

/** An item of the context, or a run of raw messages (depth -1), by when it begins. */
export interface Stretch {
  readonly depth: number;
  readonly from: Timestamp;
  /** Whether there is nothing below it, because its text was carried over. */
  readonly isHollow?: true;
  /** Whether these are messages of the fresh tail. */
  readonly isTail?: true;
}

const cells = ["none", "below", "shown", "begin", "raw", "tail"] as const;
/**
 * What stands for a piece of time at one depth; `begin` is where a summary of the context does. The later in the list,
 * the rather it is told.
 */
type Cell = (typeof cells)[number];

export interface Strip {
  readonly from: Timestamp;
  readonly to: Timestamp;
  /** By depth, and in equal pieces of time; raw messages stand in the row of the leaves. */
  readonly rows: readonly (readonly Cell[])[];
}

/** Finer than most terminals are wide. */
const pieces = 200;

/** Null where nothing was said yet. Silence belongs to what was said before it. */
export function stripOf(stretches: readonly Stretch[], lastAt: Timestamp | null): Strip | null {
  const [first, ...others] = stretches.map((each) => each.from);
  if (first === undefined) return null;
  // A copy that was put in front may be of later times.
  const from = others.reduce((least, each) => (each < least ? each : least), first);
  const to = lastAt === null || lastAt < from ? from : lastAt;
  const deepest = stretches.reduce((most, { depth }) => Math.max(most, depth), 0);
  const rows = Array.from({ length: deepest + 1 }, () => Array.from({ length: pieces }, (): Cell => "none"));
  for (const [at, stretch] of stretches.entries()) {
    const [begin, end] = piecesOf({ from, to }, stretch.from, stretches[at + 1]?.from ?? to, pieces);
    for (let piece = begin; piece <= end; piece++) {
      const mark = (depth: number, cell: Cell): void => {
        const row = rows[depth];
        if (row !== undefined && cells.indexOf(cell) > cells.indexOf(row[piece] ?? "none")) row[piece] = cell;
      };
      if (stretch.depth < 0) mark(0, stretch.isTail === true ? "tail" : "raw");
      else mark(stretch.depth, piece === begin ? "begin" : "shown");
      for (let depth = 0; depth < stretch.depth && stretch.isHollow !== true; depth++) mark(depth, "below");
    }
  }
  return { from, to, rows };
}

/** The first and the last of so many equal pieces of time that a stretch of it touches. */
function piecesOf(
  { from, to }: Pick<Strip, "from" | "to">,
  begin: Timestamp,
  end: Timestamp,
  count: number,
): readonly [number, number] {
  const start = timestampToMs(from);
  const length = timestampToMs(to) - start;
  if (length <= 0) return [0, count - 1];
  const place = (at: Timestamp): number => ((timestampToMs(at) - start) / length) * count;
  const within = (piece: number): number => Math.max(0, Math.min(piece, count - 1));
  const first = within(Math.floor(place(begin)));
  return [first, Math.max(first, within(Math.ceil(place(end)) - 1))];
}

// ── Drawing it ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** What keys act on: where in time, and at which depth. */
export interface Spot {
  readonly depth: number;
  readonly from: Timestamp;
  readonly to: Timestamp;
}

const shapes: Readonly<Record<Cell, string>> = { none: " ", below: "░", shown: "█", begin: "▐", raw: "─", tail: "━" };
const chosen = "▓";
/** Where all summaries of a row are this wide, it is told where each begins; else some edges would pass for all. */
const edgeColumns = 3;

/** More depths share the uppermost row. */
const rowsMax = 5;
const labelColumns = 4;

export const stripHeight = ({ rows }: Strip): number => Math.min(rowsMax, rows.length);

export function drawStrip(strip: Strip, spot: Spot | null, columns: number, paint: Paint): readonly string[] {
  const width = columns - labelColumns - 1;
  if (width < 1) return [];
  const height = stripHeight(strip);
  const [first, last] = spot === null ? [0, -1] : piecesOf(strip, spot.from, spot.to, width);
  return Array.from({ length: height }, (_, place) => {
    const depth = height - 1 - place;
    const isTop = place === 0 && strip.rows.length > height;
    const rows = isTop ? strip.rows.slice(depth) : strip.rows.slice(depth, depth + 1);
    const isSpots = spot !== null && (isTop ? spot.depth >= depth : Math.max(0, spot.depth) === depth);
    const label = paint.soft(padEnd(` d${depth}${isTop ? "+" : ""}`, labelColumns));
    const line = Array.from({ length: width }, (_cell, column) => mostIn(rows, column, width));
    const begins = line.flatMap((cell, column) => (cell === "begin" ? [column] : []));
    const areWide = begins.every((column, at) => at === 0 || column - (begins[at - 1] ?? 0) >= edgeColumns);
    const drawn = line.map((cell, column) => {
      const isOver = cell === "tail" && spot !== null && spot.depth >= 0;
      if (isSpots && column >= first && column <= last && !isOver) return paint.strong(chosen);
      const isEdge = cell === "begin" && areWide && line[column - 1] === "shown";
      return painted(cell === "begin" && !isEdge ? "shown" : cell, depth, paint);
    });
    return label + drawn.join("");
  });
}

function painted(cell: Cell, depth: number, paint: Paint): string {
  const shape = shapes[cell];
  if (cell === "none") return shape;
  if (cell === "tail") return paint.role("assistant", shape);
  return cell === "raw" ? paint.role("user", shape) : paint.depth(depth, shape);
}

/** Of the pieces that fall into one of so many columns, what is rather told. */
function mostIn(rows: readonly (readonly Cell[])[], column: number, width: number): Cell {
  const from = Math.floor((column * pieces) / width);
  const to = Math.max(from + 1, Math.floor(((column + 1) * pieces) / width));
  const most = rows.flatMap((row) => row.slice(from, to)).map((cell) => cells.indexOf(cell));
  return cells[Math.max(...most)] ?? "none";
}

const dayLength = "2026-02-17".length;

/** The line below the strip: when it begins and ends, and what the shapes mean, as far as there is room. */
export function drawAxis({ from, to }: Strip, columns: number, zone: string, paint: Paint): string {
  const [begin, end] = [clockTime(from, zone), clockTime(to, zone)];
  const isDay = begin.slice(0, dayLength) === end.slice(0, dayLength);
  const told = (time: string): string => ` ${isDay ? time : time.slice(0, dayLength)} `;
  const [left, right] = [told(begin), told(end)];
  const legend = [
    `${shapes.shown} in context`,
    `${shapes.below} below`,
    `${shapes.tail} fresh tail`,
    `${chosen} selected`,
  ];
  const room = columns - labelColumns - 1 - left.length - right.length - 2;
  while (legend.length > 0 && widthOf(legend.join("  ")) > room) legend.pop();
  const words = legend.length === 0 ? "" : ` ${legend.join("  ")} `;
  const spare = Math.max(0, columns - labelColumns - 1 - left.length - right.length - widthOf(words));
  const before = Math.floor(spare / 2);
  const line = `${"─".repeat(labelColumns - 1)}${left}${"─".repeat(before)}${words}${"─".repeat(spare - before)}${right}──`;
  return paint.soft(cut(line, columns));
}
