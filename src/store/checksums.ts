/**
 * Checksums of stored texts, written with each row, so that reading the row notices damage on the disk. They cover what a
 * row says, not its ids and places: a copy keeps the checksum of its original, and with it the evidence of damage.
 */

import { crc32 } from "node:zlib";
import { messageName, type MessageId, type Part } from "../core/model/types.ts";
import { count, int, sql, statement, text, type Row, type Script, type Value } from "./script.ts";

/** What the checksum of a message covers besides its parts, as stored. */
export interface MessageTexts {
  readonly role: string;
  readonly content: string;
  readonly envelope: string | null;
  readonly entry: string | null;
  readonly moved: string | null;
}

export function messageChecksum(message: MessageTexts, parts: readonly Part[]): number {
  const values: Value[] = [message.role, message.content, message.envelope, message.entry, message.moved];
  for (const { type, text: own, kept, toolCallId, toolName, metadata } of parts)
    values.push(type, own === null ? null : own.length, kept, toolCallId, toolName, metadata);
  return checksumOf(values);
}

export const summaryChecksum = (content: string, previousContext: string | null, fileIds: string): number =>
  checksumOf([content, previousContext, fileIds]);

export const entryChecksum = (raw: string): number => checksumOf([raw]);

const checksumOf = (values: readonly Value[]): number => crc32(values.join("\0"));

// ── Checking rows ────────────────────────────────────────────────────────────────────────────────────────────────────

const columns = {
  messages: ["role", "content", "envelope", "entry", "moved"],
  parts: ["part_type", "text_length", "text_content", "tool_call_id", "tool_name", "metadata"],
  summaries: ["content", "previous_context", "file_ids"],
  transcript_entries: ["raw"],
} as const;

const valuesIn = (row: Row, of: keyof typeof columns): readonly Value[] => columns[of].map((name) => row[name] ?? null);

type Checked = "messages" | "summaries" | "transcript_entries";

const checksumOfRow = (table: Checked, row: Row, parts: readonly Row[]): number =>
  checksumOf([...valuesIn(row, table), ...parts.flatMap((part) => valuesIn(part, "parts"))]);

/** Whether a row no longer says what was stored. A row that has no checksum yet counts as intact. */
export const isDamaged = (table: Checked, row: Row, parts: readonly Row[] = []): boolean =>
  typeof row["checksum"] === "number" && row["checksum"] !== checksumOfRow(table, row, parts);

/** The column that the rows of a table are read by, page by page, and the one that identifies them. */
const numbers = { messages: "message_id", summaries: "search_id", transcript_entries: "entry_id" } as const;
const keys = { ...numbers, summaries: "summary_id" } as const;
const checkedTables = Object.keys(numbers) as readonly Checked[];

interface Page {
  readonly rows: readonly Row[];
  readonly partsOf: (row: Row) => readonly Row[];
}

function* pageAfter(table: Checked, id: number, rowsMax: number): Script<Page> {
  const number = numbers[table];
  return yield* withParts(
    table,
    yield statement(`SELECT * FROM ${table} WHERE ${number} > ? ORDER BY ${number} LIMIT ?`, [id, rowsMax]),
  );
}

function* withParts(table: Checked, rows: readonly Row[]): Script<Page> {
  if (table !== "messages") return { rows, partsOf: () => [] };
  const messages = rows.map((row) => int(row, "message_id"));
  const parts = yield sql`SELECT * FROM message_parts WHERE message_id IN (SELECT value FROM numbers_in(${messages}))
                          ORDER BY message_id, ordinal`;
  const byMessage = Map.groupBy(parts, (part) => int(part, "message_id"));
  return { rows, partsOf: (row) => byMessage.get(int(row, "message_id")) ?? [] };
}

const rowsPerPage = 256;

/** Reads every text of the database, and returns the names of up to this many rows that are damaged. */
export function* damagedTexts(most: number): Script<readonly string[]> {
  const names: string[] = [];
  for (const table of checkedTables)
    for (let after: number | null = 0; after !== null && names.length < most;) {
      const { rows, partsOf }: Page = yield* pageAfter(table, after, rowsPerPage);
      const damaged = rows.filter((row) => isDamaged(table, row, partsOf(row)));
      names.push(...damaged.map((row) => nameOf(table, row)));
      const last = rows.at(-1);
      after = last === undefined ? null : int(last, numbers[table]);
    }
  return names.slice(0, most);
}

const nameOf = (table: Checked, row: Row): string =>
  table === "messages"
    ? messageName(int(row, "message_id") as MessageId)
    : table === "summaries"
      ? text(row, "summary_id")
      : `entry ${text(row, "entry_key")}`;

// ── Writing missing checksums ────────────────────────────────────────────────────────────────────────────────────────

/**
 * Writes the checksums of up to this many rows that an earlier version stored. Returns whether rows may remain: the
 * backlog has a row for each table that is not finished.
 */
export function* checksumBatch(rowsMax: number): Script<boolean> {
  const [next] = yield sql`SELECT table_name, after_id FROM checksum_backlog ORDER BY table_name LIMIT 1`;
  if (next === undefined) return false;
  const table = asChecked(text(next, "table_name"));
  const page = yield* pageAfter(table, int(next, "after_id"), rowsMax);
  yield* writeChecksums(table, { ...page, rows: page.rows.filter((row) => row["checksum"] === null) });
  const last = page.rows.at(-1);
  if (last === undefined) yield sql`DELETE FROM checksum_backlog WHERE table_name = ${table}`;
  else yield sql`UPDATE checksum_backlog SET after_id = ${int(last, numbers[table])} WHERE table_name = ${table}`;
  return true;
}

export function* hasBacklog(): Script<boolean> {
  return (yield* count(sql`SELECT count(*) FROM checksum_backlog`)) > 0;
}

/** Rows that may have no checksum yet. */
export function* backlogRows(): Script<number> {
  let rows = 0;
  for (const next of yield sql`SELECT table_name, after_id FROM checksum_backlog`) {
    const table = asChecked(text(next, "table_name"));
    rows += yield* count(
      statement(`SELECT count(*) FROM ${table} WHERE ${numbers[table]} > ?`, [int(next, "after_id")]),
    );
  }
  return rows;
}

/** For a row whose text was changed. */
export function* renewChecksum(table: Checked, id: number | string): Script<void> {
  const rows = yield statement(`SELECT * FROM ${table} WHERE ${keys[table]} = ?`, [id]);
  yield* writeChecksums(table, yield* withParts(table, rows));
}

function* writeChecksums(table: Checked, { rows, partsOf }: Page): Script<void> {
  const update = `UPDATE ${table} SET checksum = ? WHERE ${numbers[table]} = ?`;
  yield rows.map((row) => statement(update, [checksumOfRow(table, row, partsOf(row)), int(row, numbers[table])]));
}

function asChecked(name: string): Checked {
  if (name in numbers) return name as Checked;
  throw new TypeError(`${name} is not a table with checksums`);
}
