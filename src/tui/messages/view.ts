/** How the transcript looks: collapsed and expanded messages, and which of their rows are visible. */

import { messageName, type MessageId } from "../../core/model/types.ts";
import type { Frame } from "../contract.ts";
import { ends, laidOutOnce } from "../widgets/draw.ts";
import { isBelow, lastSpot, rowsFrom, spotAfter, startOfText, type Blocks, type Spot } from "../widgets/pane.ts";
import type { ShownMessage } from "./asks.ts";
import { plural } from "../../core/base/format.ts";
import { cut, widthOf } from "../../format/width.ts";
import { markWords } from "../../format/marks.ts";
import { isSoft } from "../../format/messages.ts";
import { clockTime } from "../../format/times.ts";
import type { Page } from "../../format/page.ts";

export interface View {
  /** The loaded messages; never empty. */
  readonly messages: readonly ShownMessage[];
  readonly expanded: ReadonlySet<MessageId>;
  readonly frame: Frame;
  /** How many rows are visible. */
  readonly rows: number;
}

/** The first visible row: its message, and the row within it. */
export interface Top {
  readonly seq: number;
  readonly row: number;
}

/** Room for the mark of the selected message. */
const markColumns = 2;

const collapsedRows = 12;
const expandedRows = 300;

/** A heading, the text, and an empty line; below it what happened then. Cached, since every key needs the same rows. */
const rowsOnce = (bodyOf: (message: ShownMessage, columns: number, page: Page) => readonly string[]) =>
  laidOutOnce((message: ShownMessage, page): readonly string[] => {
    const columns = Math.max(10, page.columns - markColumns);
    const soft = message.aside === null ? (text: string): string => text : page.paint.soft;
    const body = bodyOf(message, columns, page);
    const marks = message.marks.flatMap((mark) => [page.paint.soft(cut(markWords(mark, page.zone), columns)), ""]);
    return [headRow(message, columns, page), ...body.map((text) => soft(`  ${text}`)), "", ...marks];
  });
const collapsedRowsOf = rowsOnce(collapsedBody);
const expandedRowsOf = rowsOnce(expandedBody);

const rowsOf = ({ frame, expanded }: View, message: ShownMessage): readonly string[] =>
  (expanded.has(message.id) ? expandedRowsOf : collapsedRowsOf)(message, frame);

const asideWords = { branch: "on an abandoned branch", note: "a note" } as const;

function headRow({ id, role, at, tokens, aside }: ShownMessage, columns: number, { paint, zone }: Page): string {
  const why = aside === null ? "" : paint.caution(` (${asideWords[aside]})`);
  const left = `${paint.role(role, paint.strong(role))}${why}  ${paint.soft(clockTime(at, zone))}`;
  const right = paint.soft(`${plural(tokens, "token")}  ${messageName(id)}`);
  return ends(left, columns < 50 ? "" : right, columns);
}

const indent = 2;

/** A few rows of text; one row for anything else. */
function collapsedBody({ pieces }: ShownMessage, columns: number, { paint }: Page): readonly string[] {
  const room = columns - indent;
  let source = "←";
  return pieces.flatMap(({ kind, lines, count }, at): readonly string[] => {
    const opening =
      lines
        .find((line) => line.trim() !== "")
        ?.replace(/\s+/g, " ")
        .trim() ?? "";
    const size = count > 1 ? paint.soft(plural(count, "line")) : "";
    switch (kind) {
      case "source":
        source = opening;
        return pieces[at + 1]?.kind === "returned" ? [] : [paint.soft(cut(source, room))];
      case "returned":
        return [ends(`${paint.soft(source)}  ${opening}`, size, room)];
      case "call":
        return [cut(opening, room)];
      case "reminder":
        return [];
      case "thinking":
        return [ends(paint.soft(`thinking  ${opening}`), size, room)];
      case "said":
        return saidRows(lines, count, room, paint);
    }
  });
}

function saidRows(lines: readonly string[], count: number, columns: number, paint: Frame["paint"]): readonly string[] {
  const rows = rowsFrom(lines, startOfText, { columns, rows: collapsedRows + 1 });
  if (rows.length <= collapsedRows && lines.length >= count) return rows;
  return [...rows.slice(0, collapsedRows - 1), paint.soft(`… ${plural(count, "line")} in all; press space to expand`)];
}

function expandedBody({ pieces, isWhole }: ShownMessage, columns: number, { paint }: Page): readonly string[] {
  const room = { columns: columns - indent, rows: expandedRows + 1 };
  const rows: string[] = [];
  for (const piece of pieces) {
    if (rows.length > expandedRows) break;
    if (piece.kind === "thinking") rows.push(paint.soft("thinking"));
    const own = rowsFrom(piece.lines, startOfText, room);
    rows.push(...(isSoft(piece) ? own.map((each) => paint.soft(each)) : own));
  }
  if (isWhole && rows.length <= expandedRows) return rows;
  return [...rows.slice(0, expandedRows), paint.soft("… press ↵ to see all of it")];
}

const blocksOf = (view: View): Blocks => ({
  count: view.messages.length,
  heightOf(at) {
    const message = view.messages[at];
    return message === undefined ? 0 : rowsOf(view, message).length;
  },
});

/** The index of a message, or of the one after it if it is gone. */
export function indexOf({ messages }: Pick<View, "messages">, seq: number): number {
  const at = messages.findIndex((message) => message.seq >= seq);
  return at === -1 ? messages.length - 1 : at;
}

const topOf = ({ messages }: View, { line, row }: Spot): Top => ({ seq: messages[line]?.seq ?? 0, row });

const spotOf = (view: View, { seq, row }: Top): Spot => {
  const line = indexOf(view, seq);
  return { line, row: view.messages[line]?.seq === seq ? Math.min(row, blocksOf(view).heightOf(line) - 1) : 0 };
};

/** The top spot when the end is at the bottom. The last empty row need not be visible. */
const bottom = (view: View): Spot => lastSpot(blocksOf(view), view.rows + 1);

export const scrolledTop = (view: View, top: Top, by: number): Top =>
  topOf(view, spotAfter(blocksOf(view), spotOf(view, top), by, by < 0 ? undefined : bottom(view)));

/** Scrolls just far enough to show a message, or the beginning of one that is too long. */
export function revealing(view: View, top: Top, seq: number): Top {
  const head: Spot = { line: indexOf(view, seq), row: 0 };
  const blocks = blocksOf(view);
  const least = spotAfter(blocks, head, blocks.heightOf(head.line) - 1 - view.rows, head);
  const spot = spotOf(view, top);
  const seen = isBelow(spot, head) ? head : isBelow(least, spot) ? least : spot;
  const last = bottom(view);
  return topOf(view, isBelow(seen, last) ? last : seen);
}

export interface SeenRow {
  readonly message: ShownMessage;
  /** The row within the message; 0 is the heading. */
  readonly row: number;
  readonly text: string;
}

export function seenRows(view: View, top: Top): readonly SeenRow[] {
  const found: SeenRow[] = [];
  const from = spotOf(view, top);
  for (let { line: at, row } = from; at < view.messages.length && found.length < view.rows; at++, row = 0) {
    const message = view.messages[at];
    if (message === undefined) break;
    for (const [index, text] of rowsOf(view, message).entries())
      if (index >= row && found.length < view.rows) found.push({ message, row: index, text });
  }
  return found;
}

/** The visible messages: those whose heading is visible, if any. */
export function seenMessages(view: View, top: Top): readonly ShownMessage[] {
  const rows = seenRows(view, top).filter(({ text }) => text !== "");
  const begun = rows.filter(({ row }) => row === 0);
  return [...new Set((begun.length > 0 ? begun : rows).map(({ message }) => message))];
}

/** A row on the screen, with the mark if its message is selected. */
export function markedRow({ message, row, text }: SeenRow, cursor: number, { columns, paint }: Frame): string {
  if (message.seq !== cursor) return `${" ".repeat(markColumns)}${text}`;
  if (row > 0) return text === "" ? "" : `${paint.strong("┃")} ${text}`;
  const line = `▸ ${text}`;
  return paint.selected(line + " ".repeat(Math.max(0, columns - widthOf(line))));
}
