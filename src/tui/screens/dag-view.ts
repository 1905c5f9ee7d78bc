/** What is shown of the tree of summaries, and where: the strip above, the list, and the detail beside it or in its place. */

import type { Conversation, ConversationId, SummaryId, Timestamp } from "../../core/model.ts";
import { promptTokens } from "../../core/render-summary.ts";
import { formatCount } from "../../core/text.ts";
import { nameOf } from "../../show/conversations.ts";
import { createSpans, plural, widthOf } from "../../show/render.ts";
import type { Frame } from "../contract.ts";
import { beside, ends, windowed } from "../draw.ts";
import type { List } from "../list.ts";
import type { DagDetail } from "./dag-asks.ts";
import { detailLines, rowWords } from "./dag-detail.ts";
import { drawRows } from "./dag-rows.ts";
import type { Known } from "./dag-rows.ts";
import { drawAxis, drawStrip, stripHeight } from "./dag-strip.ts";
import type { Spot, Strip } from "./dag-strip.ts";
import type { Row, Tree } from "./dag-tree.ts";

export interface DagScreen extends Tree, Known {
  readonly kind: "dag";
  readonly conversation: ConversationId;
  /** Null until it has been read. */
  readonly about: Conversation | null;
  readonly strip: Strip | null;
  /** What of the tree is open, in order. */
  readonly rows: readonly Row[];
  readonly list: List;
  /** Whether what rows say is being read. */
  readonly isReading: boolean;
  /** What is to be selected as soon as it is there. */
  readonly sought: SummaryId | null;
  /** Of the row that was last asked for; null until it has been read. */
  readonly detail: { readonly key: string; readonly told: DagDetail | null } | null;
  readonly detailTop: number;
  /** Whether the other one of two views is shown: without the detail where there is room for both, else only the detail. */
  readonly isTurned: boolean;
  /** Why nothing is shown. */
  readonly problem: string | null;
}

export const rowAt = ({ rows, list }: DagScreen): Row | undefined => rows[list.cursor];

// ── The room ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Layout {
  /** Lines above the panes. */
  readonly above: number;
  /** Rows of the list that are seen. */
  readonly rows: number;
  /** Zero where only the detail is shown. */
  readonly columns: number;
  readonly detail: { readonly from: number; readonly columns: number; readonly rows: number } | null;
}

/** The table's heading. */
export const headRows = 1;
/** From so many columns on there is room for two panes, and from so many rows for the strip. */
const wideColumns = 100;
const tallRows = 16;

export function layoutOf({ strip, isTurned }: DagScreen, { columns, rows }: Frame): Layout {
  // What it is about, the strip, and the line below that.
  const above = rows < tallRows || strip === null ? 0 : stripHeight(strip) + 2;
  const below = Math.max(1, rows - above);
  const list = { above, rows: Math.max(1, below - headRows) };
  if (columns < wideColumns && isTurned) return { ...list, columns: 0, detail: { from: 0, columns, rows: below } };
  if (columns < wideColumns || isTurned) return { ...list, columns, detail: null };
  const left = Math.floor(columns * 0.56);
  return { ...list, columns: left, detail: { from: left + 1, columns: columns - left - 1, rows: below } };
}

/** A margin at the left of the detail. */
const margin = 1;

export function linesOf(state: DagScreen, frame: Frame, columns: number): readonly string[] {
  const row = rowAt(state);
  if (row === undefined) return [];
  const told = state.detail?.told ?? null;
  const width = Math.max(10, columns - margin - 1);
  const lines = told === null ? rowWords(row, width) : detailLines(told, frame, width);
  return lines.map((line) => " ".repeat(margin) + line);
}

export function draw(state: DagScreen, frame: Frame): readonly string[] {
  const { about, strip, rows, list } = state;
  const { columns, paint, zone } = frame;
  if (about === null) return ["", `  ${state.problem ?? "reading …"}`];
  if (rows.length === 0) return ["", "  nothing was said yet"];
  const layout = layoutOf(state, frame);
  const between = strip === null ? [] : [strip.from, strip.to];
  const above =
    layout.above === 0 || strip === null
      ? []
      : [
          headline(about, between, frame),
          ...drawStrip(strip, spotOf(state), columns, paint),
          drawAxis(strip, columns, zone, paint),
        ];
  const { detail } = layout;
  const shown = rows.slice(list.top, list.top + layout.rows);
  const listing = { rows: shown, known: state, selected: list.cursor - list.top, between, zone };
  const left = layout.columns === 0 ? [] : drawRows(listing, layout.columns, paint);
  if (detail === null) return [...above, ...left];
  const room = { ...frame, columns: detail.columns, rows: detail.rows };
  const right = windowed(linesOf(state, frame, detail.columns), state.detailTop, room);
  if (layout.columns === 0) return [...above, ...right];
  return [...above, ...beside(left, right, [layout.columns, detail.columns], detail.rows, paint)];
}

/** What it is about, and what must be said once of all times, as far as there is room. */
function headline(about: Conversation, between: readonly Timestamp[], { columns, zone }: Frame): string {
  const { totals } = about;
  const counts =
    `${plural(totals.messages, "message")}, ${plural(totals.summaries, "summary", "summaries")}; ` +
    `${plural(totals.contextItems, "item")}, ${formatCount(promptTokens(totals))} tokens in context`;
  const times = `${createSpans(between, zone).words} `;
  const fits = (left: string): boolean => widthOf(left) + widthOf(times) + 2 < columns;
  const named = ` ${nameOf(about)} · ${counts}`;
  return fits(named) ? ends(named, times, columns) : ends(` ${counts}`, fits(counts) ? times : "", columns);
}

/** As in the strip, silence belongs to what was said before it. */
function spotOf(state: DagScreen): Spot | null {
  const { rows, list, summaries, messages } = state;
  const row = rows[list.cursor];
  const from = row === undefined ? null : beginOf(state, row);
  if (row === undefined || from === null) return null;
  const after = rows.slice(list.cursor + 1, list.cursor + nextMax).find(({ indent }) => indent <= row.indent);
  const next = after === undefined ? null : beginOf(state, after);
  const summary = row.kind === "summary" ? summaries.get(row.id) : null;
  const last = row.kind === "run" ? row.last : row.kind === "message" ? row.id : null;
  const end = summary?.latestAt ?? (last === null ? null : messages.get(last)?.at) ?? from;
  return { depth: summary?.depth ?? -1, from, to: next !== null && next > end ? next : end };
}

/** Rows that are looked at for what comes after an open one. */
const nextMax = 1_000;

function beginOf({ summaries, messages }: Known, row: Row): Timestamp | null {
  if (row.kind === "summary") return summaries.get(row.id)?.earliestAt ?? null;
  if (row.kind !== "message" && row.kind !== "run") return null;
  return messages.get(row.kind === "run" ? row.first : row.id)?.at ?? null;
}
