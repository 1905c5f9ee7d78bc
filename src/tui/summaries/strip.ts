/**
 * The strip above the tree: summaries over time (left to right) and depth (bottom up). The context suffices to draw it,
 * since below a summary of depth n there are summaries of every lesser depth over the same time.
 */

import type { Paint } from "../../format/paint.ts";
import { timestampToMs, type Timestamp } from "../../core/base/time.ts";
import { cut, padEnd, widthOf } from "../../format/width.ts";
import { clockTime } from "../../format/times.ts";

/** An item of the context, or a run of raw messages (depth -1), with its start. */
export interface StripItem {
  readonly depth: number;
  readonly from: Timestamp;
  /** A carried summary, which has nothing below it. */
  readonly isHollow?: true;
  /** The fresh tail. */
  readonly isTail?: true;
}

const cells = ["none", "below", "shown", "begin", "raw", "tail"] as const;
/** What is drawn for a slice of time at one depth. Later entries take precedence. */
type Cell = (typeof cells)[number];

export interface Strip {
  readonly from: Timestamp;
  readonly to: Timestamp;
  /** By depth, then by equal slices of time; raw messages are in the row of the leaves. */
  readonly rows: readonly (readonly Cell[])[];
}

/** More than most terminals have columns. */
const slices = 200;

/** Null without messages. An item lasts until the next one begins. */
export function stripOf(items: readonly StripItem[], lastAt: Timestamp | null): Strip | null {
  const [first, ...others] = items.map((each) => each.from);
  if (first === undefined) return null;
  // A transplanted item at the front may be newer than those after it.
  const from = others.reduce((least, each) => (each < least ? each : least), first);
  const to = lastAt === null || lastAt < from ? from : lastAt;
  const deepest = items.reduce((most, { depth }) => Math.max(most, depth), 0);
  const rows = Array.from({ length: deepest + 1 }, () => Array.from({ length: slices }, (): Cell => "none"));
  for (const [at, item] of items.entries()) {
    const [begin, end] = slicesOf({ from, to }, item.from, items[at + 1]?.from ?? to, slices);
    for (let slice = begin; slice <= end; slice++) {
      const mark = (depth: number, cell: Cell): void => {
        const row = rows[depth];
        if (row !== undefined && cells.indexOf(cell) > cells.indexOf(row[slice] ?? "none")) row[slice] = cell;
      };
      if (item.depth < 0) mark(0, item.isTail === true ? "tail" : "raw");
      else mark(item.depth, slice === begin ? "begin" : "shown");
      for (let depth = 0; depth < item.depth && item.isHollow !== true; depth++) mark(depth, "below");
    }
  }
  return { from, to, rows };
}

/** The first and last of `count` equal slices of time that an interval touches. */
function slicesOf(
  { from, to }: Pick<Strip, "from" | "to">,
  begin: Timestamp,
  end: Timestamp,
  count: number,
): readonly [number, number] {
  const start = timestampToMs(from);
  const length = timestampToMs(to) - start;
  if (length <= 0) return [0, count - 1];
  const place = (at: Timestamp): number => ((timestampToMs(at) - start) / length) * count;
  const within = (slice: number): number => Math.max(0, Math.min(slice, count - 1));
  const first = within(Math.floor(place(begin)));
  return [first, Math.max(first, within(Math.ceil(place(end)) - 1))];
}

/** The selected row in the strip. */
export interface StripCursor {
  readonly depth: number;
  readonly from: Timestamp;
  readonly to: Timestamp;
}

const shapes: Readonly<Record<Cell, string>> = { none: " ", below: "░", shown: "█", begin: "▐", raw: "─", tail: "━" };
const chosen = "▓";
/** Edges between summaries are drawn only if all summaries of a row are at least this wide. */
const edgeColumns = 3;

/** Deeper levels share the top row. */
const rowsMax = 5;
const labelColumns = 4;

export const stripHeight = ({ rows }: Strip): number => Math.min(rowsMax, rows.length);

export function drawStrip(strip: Strip, spot: StripCursor | null, columns: number, paint: Paint): readonly string[] {
  const width = columns - labelColumns - 1;
  if (width < 1) return [];
  const height = stripHeight(strip);
  const [first, last] = spot === null ? [0, -1] : slicesOf(strip, spot.from, spot.to, width);
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

/** The cell with the highest precedence among the slices of a column. */
function mostIn(rows: readonly (readonly Cell[])[], column: number, width: number): Cell {
  const from = Math.floor((column * slices) / width);
  const to = Math.max(from + 1, Math.floor(((column + 1) * slices) / width));
  const most = rows.flatMap((row) => row.slice(from, to)).map((cell) => cells.indexOf(cell));
  return cells[Math.max(...most)] ?? "none";
}

const dayLength = "2026-02-17".length;

/** The line below the strip: start, end and, if there is room, a legend. */
export function drawAxis({ from, to }: Strip, columns: number, zone: string, paint: Paint): string {
  const [begin, end] = [clockTime(from, zone), clockTime(to, zone)];
  const isDay = begin.slice(0, dayLength) === end.slice(0, dayLength);
  const label = (time: string): string => ` ${isDay ? time : time.slice(0, dayLength)} `;
  const [left, right] = [label(begin), label(end)];
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
