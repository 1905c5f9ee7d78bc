/** Drawing primitives: lines of a fixed width, lists, panes, rules and boxes. */

import { compositeTuiLine, truncateToWidth, visibleWidth } from "@earendil-works/pi-tui";
import type { Paint } from "../../format/paint.ts";
import type { Frame } from "../contract.ts";
import type { List } from "./list.ts";
import { widthOf } from "../../format/width.ts";
import { table, type Column } from "../../format/table.ts";
import { oneLine } from "../../format/safe-text.ts";
import type { Page } from "../../format/page.ts";

/** Cuts with an ellipsis or pads to exactly this width, as the renderer measures it. Keeps colours. */
export const fit = (line: string, columns: number): string =>
  columns <= 0 ? "" : visibleWidth(line) > columns ? truncateToWidth(line, columns, "…", true) : filled(line, columns);

const filled = (line: string, columns: number): string => line + " ".repeat(Math.max(0, columns - visibleWidth(line)));

/** Exactly this many rows, each exactly this wide. */
export const fitAll = (lines: readonly string[], columns: number, rows: number): readonly string[] =>
  Array.from({ length: Math.max(0, rows) }, (_, at) => fit(lines[at] ?? "", columns));

/** One text on the left and one on the right; the left one is cut. */
export function ends(left: string, right: string, columns: number): string {
  const room = columns - visibleWidth(right) - (right === "" ? 0 : 1);
  return room < 8 ? fit(left, columns) : `${fit(left, room)}${right === "" ? "" : ` ${right}`}`;
}

/** A row of a list. The selected one has a mark, so colour is not needed. */
export function row(text: string, isSelected: boolean, columns: number, paint: Paint): string {
  const line = fit(`${isSelected ? "▸" : " "} ${text}`, columns);
  return isSelected ? paint.selected(line) : line;
}

export const listRows = (lines: readonly string[], { top, cursor }: List, columns: number, paint: Paint) =>
  lines.map((line, at) => row(line, top + at === cursor, columns, paint));

/** A table of the visible items of a list. */
export function listTable<T>(
  { top, cursor, items }: List & { readonly items: readonly T[] },
  cells: readonly Column[],
  cellsOf: (item: T) => readonly string[],
  { columns, rows, paint }: Pick<Frame, "columns" | "rows" | "paint">,
): readonly string[] {
  const seen = items.slice(top, top + rows).map(cellsOf);
  const [head = "", ...lines] = table(cells, seen, columns - 2, paint);
  return [`  ${head}`, ...listRows(lines, { top, cursor }, columns, paint)];
}

interface Pane {
  readonly lines: readonly string[];
  readonly columns: number;
}

/** Two panes with a line between them. */
export const beside = (left: Pane, right: Pane, rows: number, paint: Paint): readonly string[] =>
  Array.from({ length: rows }, (_, at) =>
    [fit(left.lines[at] ?? "", left.columns), paint.soft("│"), fit(right.lines[at] ?? "", right.columns)].join(""),
  );

export function rule(words: string, columns: number, paint: Paint): string {
  const line = words === "" ? "" : `── ${words} `;
  return paint.soft(fit(line + "─".repeat(Math.max(0, columns - widthOf(line))), columns));
}

/** Scroll position in percent; empty if everything is visible. */
export const place = (top: number, rows: number, count: number): string =>
  count <= rows ? "" : `${Math.min(100, Math.round(((top + rows) / count) * 100))}%`;

/** Lines from `top` on, with the scroll position in the last line's corner unless it would hide the end of the text. */
export function windowed(lines: readonly string[], top: number, { columns, rows, paint }: Frame): readonly string[] {
  const shown = [...fitAll(lines.slice(top, top + rows), columns, rows)];
  const mark = place(top, rows, lines.length);
  const last = shown.length - 1;
  const line = lines[top + last] ?? "";
  const hides = visibleWidth(line) + mark.length >= columns;
  const isEnd = top + rows >= lines.length;
  if (mark !== "" && last >= 0 && !(isEnd && hides)) shown[last] = ends(line, paint.soft(mark), columns);
  return shown;
}

/** Caches a layout per width: wrapping a long text takes longer than a key press may. */
export function laidOutOnce<K extends object, T>(layOut: (of: K, page: Page) => T): (of: K, page: Page) => T {
  const known = new WeakMap<K, Pick<Page, "columns" | "paint"> & { readonly laid: T }>();
  return (of, page) => {
    const { columns, paint } = page;
    const cached = known.get(of);
    if (cached?.columns === columns && cached.paint === paint) return cached.laid;
    const laid = layOut(of, page);
    known.set(of, { columns, paint, laid });
    return laid;
  };
}

/** The page of a text dialog. */
export function textPage<P extends Pick<Page, "columns">>(page: P): P & Pick<Page, "columns" | "bounds"> {
  const columns = Math.max(20, Math.min(100, page.columns - 8));
  return { ...page, columns, bounds: columns };
}

export interface Box {
  readonly title: string;
  readonly lines: readonly string[];
  /** Of the whole box, including its frame. */
  readonly column: number;
  readonly row: number;
  readonly columns: number;
  readonly rows: number;
}

/** Centred; as large as wanted, but no larger than the room. */
export function boxPlace(
  wanted: { readonly columns: number; readonly rows: number },
  room: { readonly columns: number; readonly rows: number },
): Pick<Box, "column" | "row" | "columns" | "rows"> {
  // Beside an almost full-width box only scraps of the layer below would show.
  const isWide = room.columns < 100 && wanted.columns + 4 > room.columns - 10;
  const columns = Math.max(4, isWide ? room.columns : Math.min(wanted.columns + 4, room.columns));
  const rows = Math.max(3, Math.min(wanted.rows + 2, room.rows));
  return {
    columns,
    rows,
    column: Math.floor((room.columns - columns) / 2),
    row: Math.floor((room.rows - rows) / 2),
  };
}

export function over(base: readonly string[], box: Box, columns: number, paint: Paint): readonly string[] {
  const inner = box.columns - 4;
  const title = box.title === "" ? "" : ` ${truncateToWidth(oneLine(box.title), inner - 1, "…")} `;
  const drawn = [
    `╭─${paint.strong(title)}${"─".repeat(Math.max(0, box.columns - 3 - visibleWidth(title)))}╮`,
    ...fitAll(box.lines, inner, box.rows - 2).map((line) => `│ ${line} │`),
    `╰${"─".repeat(box.columns - 2)}╯`,
  ];
  return base.map((line, at) => {
    const top = drawn[at - box.row];
    return top === undefined ? line : compositeTuiLine(line, top, box.column, box.columns, columns);
  });
}

const spins = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"] as const;
export const spinner = (beat: number): string => spins[beat % spins.length] ?? spins[0];
