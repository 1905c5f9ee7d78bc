/**
 * Draws bars: what a prompt is made of, and amounts before and after. Kinds differ by shape as well as by colour, and
 * deeper summaries have denser cells.
 */

import type { AssemblyReport } from "../core/assembly/assemble.ts";
import type { Paint } from "./paint.ts";
import { formatCount } from "../core/base/format.ts";
import { widthOf } from "./width.ts";

export interface BarSegment {
  readonly cell: string;
  readonly name: string;
  /** How many items; null where they are not counted. */
  readonly items: number | null;
  readonly tokens: number;
  readonly paint: (text: string) => string;
}

const cellsByDepth = ["░", "▒", "▓", "█"] as const;

export function promptBar(report: AssemblyReport, paint: Paint): readonly BarSegment[] {
  const { depths, older, tail, notes, standing, budget, tokens } = report;
  const raw = (text: string): string => paint.role("user", text);
  const fresh = (text: string): string => paint.role("assistant", text);
  const segments: readonly BarSegment[] = [
    { cell: "▚", name: "standing", items: standing.items, tokens: standing.tokens, paint: raw },
    ...depths.toSorted((a, b) => b.depth - a.depth).map((share) => summarySegment(share, paint)),
    { cell: "─", name: "older messages", ...older, paint: raw },
    { cell: "━", name: "fresh tail", ...tail, paint: fresh },
    { cell: "╌", name: "notes", ...notes, paint: paint.caution },
    { cell: "·", name: "free", items: null, tokens: budget - tokens, paint: paint.soft },
  ];
  return segments.filter((segment) => segment.tokens > 0);
}

const summarySegment = ({ depth, items, tokens }: AssemblyReport["depths"][number], paint: Paint): BarSegment => ({
  cell: cellsByDepth[depth] ?? cellsByDepth[3],
  name: depth === 0 ? "leaves" : `d${depth}`,
  items,
  tokens,
  paint: (text) => paint.depth(depth, text),
});

export function bar(segments: readonly BarSegment[], columns: number): string {
  const cells = cellsOf(
    segments.map(({ tokens }) => tokens),
    columns,
  );
  return segments.map(({ cell, paint }, at) => paint(cell.repeat(cells[at] ?? 0))).join("");
}

/** `▒ d1 4,012 (2)`, as many to a line as fit. */
export function legend(segments: readonly BarSegment[], columns: number): readonly string[] {
  const lines: string[] = [];
  for (const { cell, name, items, tokens, paint } of segments) {
    const entry = `${paint(cell)} ${name} ${formatCount(tokens)}${items === null ? "" : ` (${formatCount(items)})`}`;
    const line = lines.at(-1);
    if (line === undefined || widthOf(line) + 3 + widthOf(entry) > columns) lines.push(entry);
    else lines[lines.length - 1] = `${line}   ${entry}`;
  }
  return lines;
}

/** Whole cells that add up to the columns, with at least one for each amount above zero. */
export function cellsOf(amounts: readonly number[], columns: number): readonly number[] {
  const total = amounts.reduce((sum, amount) => sum + amount, 0);
  if (total === 0) return amounts.map(() => 0);
  const exact = amounts.map((amount) => (amount * columns) / total);
  const cells = exact.map((share) => (share === 0 ? 0 : Math.max(1, Math.floor(share))));
  const used = (): number => cells.reduce((sum, count) => sum + count, 0);
  const most = (of: (at: number) => number): number =>
    cells.reduce((best, _, at) => (of(at) > of(best) ? at : best), 0);
  while (used() < columns) {
    const at = most((index) => (exact[index] ?? 0) - (cells[index] ?? 0));
    cells[at] = (cells[at] ?? 0) + 1;
  }
  while (used() > columns && cells.some((count) => count > 1)) {
    const at = most((index) => cells[index] ?? 0);
    cells[at] = (cells[at] ?? 0) - 1;
  }
  return cells;
}

/** Bars for two amounts, on one scale: the longer one takes the whole width. */
export function comparison(before: number, after: number, columns: number, paint: Paint): readonly string[] {
  const words = [before, after].map(formatCount);
  const width = Math.max(...words.map((each) => each.length));
  const percent = Math.abs(1 - after / before) * 100;
  const sign = after < before ? "−" : "+";
  const change =
    after === before || before === 0 ? "" : `  ${sign}${percent.toFixed(after < before && percent > 99 ? 1 : 0)}%`;
  const room = Math.max(8, columns - width - change.length - 2);
  const [beforeLine = "", afterLine = ""] = [before, after].map((amount, at) => {
    const cells = amount === 0 ? 0 : Math.max(1, Math.round((room * amount) / Math.max(before, after)));
    return `${"█".repeat(cells).padEnd(room)}  ${words[at]?.padStart(width)}`;
  });
  const painted = after > before ? paint.caution(afterLine) : paint.good(afterLine);
  return [paint.soft(beforeLine), `${painted}${change}`];
}
