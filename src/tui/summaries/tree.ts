/** The open rows of the summary tree: the context's items, their sources, and summaries outside it, as ids only. */

import { messageName, type MessageId, type Sources, type SummaryId } from "../../core/model/types.ts";

/** A top-level row: a summary of the context, or a run of raw messages. */
export type TreeEntry = { readonly kind: "summary"; readonly id: SummaryId } | Run;

export interface Run {
  readonly kind: "run";
  readonly first: MessageId;
  readonly last: MessageId;
  readonly count: number;
  readonly tokens: number;
  /** The fresh tail, messages to be folded, or messages whose place among the oldest items is unknown. */
  readonly place: "tail" | "older" | "anywhere";
}

export interface Tree {
  readonly entries: readonly TreeEntry[];
  /** Summaries outside the context; null until they are read. */
  readonly outside: readonly SummaryId[] | null;
  readonly sources: ReadonlyMap<SummaryId, Sources>;
  /** Keys of the rows that are open. */
  readonly open: ReadonlySet<string>;
}

interface Indented {
  readonly indent: number;
}

export type SummaryRow = Indented & { readonly kind: "summary"; readonly id: SummaryId; readonly isOpen: boolean };
export type Row =
  | SummaryRow
  | (Indented & { readonly kind: "message"; readonly id: MessageId })
  | (Indented & Run)
  | (Indented & { readonly kind: "outside"; readonly count: number | null; readonly isOpen: boolean })
  | (Indented & { readonly kind: "note"; readonly words: string });

export const outsideKey = "outside";

/** Identifies a row across rebuilds. */
export function keyOf(row: Row): string {
  switch (row.kind) {
    case "summary":
      return row.id;
    case "message":
      return messageName(row.id);
    case "run":
      return row.place === "tail" ? "tail" : `run ${row.first}`;
    case "outside":
      return outsideKey;
    case "note":
      return "note";
  }
}

const childrenMax = 2_000;

export function rowsOf({ entries, outside, sources, open }: Tree): readonly Row[] {
  const rows: Row[] = [];
  const add = (id: SummaryId, indent: number, above: readonly SummaryId[]): void => {
    // A damaged graph may contain a cycle.
    const isOpen = open.has(id) && !above.includes(id);
    rows.push({ kind: "summary", id, indent, isOpen });
    if (!isOpen) return;
    const found = sources.get(id);
    const { messages = [], summaries = [] } = found ?? {};
    const note = (words: string): unknown => rows.push({ kind: "note", words, indent: indent + 1 });
    for (const each of summaries.slice(0, childrenMax)) add(each, indent + 1, [...above, id]);
    for (const each of messages.slice(0, childrenMax)) rows.push({ kind: "message", id: each, indent: indent + 1 });
    const more = Math.max(summaries.length, messages.length) - childrenMax;
    if (found === undefined) note("reading …");
    else if (more > 0) note(`… ${more} more`);
    else if (summaries.length + messages.length === 0) note("no sources: only its text exists");
  };
  for (const entry of entries) {
    if (entry.kind === "summary") add(entry.id, 0, []);
    else rows.push({ ...entry, indent: 0 });
  }
  if (outside?.length === 0) return rows;
  const isOpen = open.has(outsideKey);
  rows.push({ kind: "outside", count: outside?.length ?? null, isOpen, indent: 0 });
  if (!isOpen) return rows;
  for (const id of outside ?? []) add(id, 1, []);
  if (outside === null) rows.push({ kind: "note", words: "looking for them …", indent: 1 });
  return rows;
}

/** The row above that it belongs to; null for a top-level row. */
export function parentOf(rows: readonly Row[], at: number): number | null {
  const indent = rows[at]?.indent ?? 0;
  if (indent === 0) return null;
  const found = rows.slice(0, at).findLastIndex((row) => row.indent < indent);
  return found === -1 ? null : found;
}

/** The row with this key; of several, the one nearest to `near`. */
export function placeOf(rows: readonly Row[], key: string, near: number): number | null {
  let best: number | null = null;
  for (const [at, row] of rows.entries())
    if (keyOf(row) === key && (best === null || Math.abs(at - near) < Math.abs(best - near))) best = at;
  return best;
}
