/** Lays out tables and `name  value` lists within the width of a terminal. */

import type { Paint } from "./paint.ts";
import { breakLines, cut, padEnd, widthOf } from "./width.ts";

export interface Column {
  readonly title: string;
  readonly align?: "right";
  /** Gets the width that the other columns leave, and is cut to it. */
  readonly flexible?: true;
  /** Left out if not all columns fit; the last one first. */
  readonly spare?: true;
  readonly paint?: (cell: string, row: number) => string;
}

const gap = "  ";
const flexibleMin = 12;

/** The lines of a table, within `width` where possible; null means that nothing is cut. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number | null,
  paint: Paint,
): readonly string[] {
  // Not Math.max(...rows): a call takes fewer arguments than a table may have rows.
  const widths = columns.map(({ title }, at) =>
    rows.reduce((widest, row) => Math.max(widest, widthOf(row[at] ?? "")), widthOf(title)),
  );
  const least = widths.reduce((sum, each, at) => sum + (columns[at]?.flexible ? flexibleMin : each) + gap.length, 0);
  const last = columns.findLastIndex(({ spare }) => spare === true);
  if (width !== null && least - gap.length > width && last !== -1) {
    const of = <T>(cells: readonly T[]): readonly T[] => cells.filter((_, at) => at !== last);
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

/** Lines of `name  value` with the values aligned, and wrapped if `columns` is not null. A name may have several values. */
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
