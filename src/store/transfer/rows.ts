/**
 * Reads and writes all rows of a conversation, for copies in another database. The same scripts run on both sides: one is
 * a database file, which answers at once, so that its rows can be passed on while the other side runs its own script.
 */

import { createHash } from "node:crypto";
import type { ConversationId } from "../../core/model/types.ts";
import type { TableName } from "../ownership.ts";
import { idsOf } from "../rows.ts";
import { sql, statement, type Asked, type Row, type Script, type Statement, type Value } from "../script.ts";

/** A database file that is open for a transfer. */
export interface RowFile {
  /** The columns of a table that are stored. */
  readonly columnsOf: (table: TableName) => readonly string[];
  /** Runs a script to its end. */
  readonly run: <T>(script: Script<T>) => T;
  /** Begins a transaction, giving up an open one. One that only reads sees a snapshot, and keeps no writer waiting. */
  readonly begin: (mode: "read" | "write") => void;
  readonly commit: () => void;
  /** Gives up an open transaction. */
  readonly rollback: () => void;
}

/** By which the rows of a conversation are read, page by page: unique in it, and in the order of their creation. */
export const orders = {
  conversations: ["conversation_id"],
  registry: ["session_key", "agent_id"],
  messages: ["message_id"],
  message_parts: ["message_id", "ordinal"],
  summaries: ["search_id"],
  summary_messages: ["summary_id", "message_id"],
  summary_parents: ["summary_id", "parent_summary_id"],
  context_items: ["ordinal"],
  large_files: ["file_number"],
  transcript_entries: ["entry_id"],
  turns: ["turn_key"],
  missing_parents: ["parent_key"],
  compactions: ["compaction_id"],
  journal: ["journal_id"],
  drafts: ["summary_id", "basis"],
  map_answers: ["message_id", "basis"],
  message_vectors: ["model", "block"],
  pins: ["message_id"],
  search_words: ["message_id"],
  prompts: ["prompt_number"],
  prompt_heads: ["since"],
} as const satisfies Partial<Record<TableName, readonly string[]>>;

export type OwnedTable = keyof typeof orders;

/** Referenced tables first. */
export const ownedNames = Object.keys(orders) as readonly OwnedTable[];

/** The order in which files were stored, which each database numbers by itself. */
const given: ReadonlySet<string> = new Set(["file_number"]);
/** How far a database has indexed a conversation is its own matter. */
const aboutIndex: Readonly<Record<string, Value>> = { unindexed: 1, indexed_seq: 0, indexed_summary: 0 };

const rowsPerPage = 200;

/** The rows of a conversation in one table, a page at a time. `use` gets each page; what it yields is run as well. */
export function* eachPage(
  table: OwnedTable,
  columns: readonly string[],
  id: ConversationId,
  use: (rows: readonly Row[]) => Script<void>,
): Script<void> {
  const keys = orders[table];
  const { own, values } = belonging(table, id);
  const read = [...new Set([...columns, ...keys])].join(", ");
  const order = `ORDER BY ${keys.join(", ")} LIMIT ${rowsPerPage}`;
  const further = `AND (${keys.join(", ")}) > (${keys.map(() => "?").join(", ")})`;
  for (let last: Row | undefined; ;) {
    const after: readonly Value[] = last === undefined ? [] : keys.map((key) => last?.[key] ?? null);
    const rows: readonly Row[] = yield statement(
      `SELECT ${read} FROM ${table} WHERE ${own} ${last === undefined ? "" : further} ${order}`,
      [...values, ...after],
    );
    if (rows.length > 0) yield* use(rows);
    last = rows.at(-1);
    if (rows.length < rowsPerPage) return;
  }
}

/** The condition for the rows of a conversation: by what their table is indexed by. */
function belonging(table: OwnedTable, id: ConversationId): { readonly own: string; readonly values: readonly Value[] } {
  const { after, before } = idsOf(id);
  switch (table) {
    case "registry":
      return { own: "kind = 'session' AND number = ?", values: [id] };
    case "messages":
    case "message_parts":
      return { own: "message_id > ? AND message_id < ?", values: [after, before] };
    case "summaries":
      return { own: "search_id > ? AND search_id < ?", values: [after, before] };
    case "summary_messages":
    case "summary_parents":
      return {
        own: "conversation_id = ? AND summary_id IN (SELECT summary_id FROM summaries WHERE conversation_id = ?)",
        values: [id, id],
      };
    default:
      return { own: "conversation_id = ?", values: [id] };
  }
}

/** Statements that insert rows of another database. */
export function insertions(table: string, columns: readonly string[], rows: readonly Row[]): readonly Statement[] {
  const written = columns.filter((name) => !given.has(name));
  const text = `INSERT INTO ${table} (${written.join(", ")}) VALUES (${written.map(() => "?").join(", ")})`;
  return rows.map((row) =>
    statement(
      text,
      written.map((name) => aboutIndex[name] ?? row[name] ?? null),
    ),
  );
}

/** A checksum for each row of a conversation, by table. */
export type Checksums = ReadonlyMap<OwnedTable, readonly string[]>;

export function checksumOf(columns: readonly string[], row: Row): string {
  const told = columns.filter((name) => !given.has(name) && !Object.hasOwn(aboutIndex, name)).map((name) => row[name]);
  const digest = createHash("sha256");
  for (const value of told)
    if (value instanceof Uint8Array) digest.update(`${value.length}:`).update(value);
    else digest.update(`${JSON.stringify(value ?? null)}\n`);
  return digest.digest("base64");
}

export function* checksums(id: ConversationId, columnsOf: RowFile["columnsOf"]): Script<Checksums> {
  const found = new Map<OwnedTable, string[]>();
  for (const table of ownedNames) {
    const columns = columnsOf(table);
    const own: string[] = [];
    found.set(table, own);
    yield* eachPage(table, columns, id, function* (rows) {
      yield* [];
      for (const row of rows) own.push(checksumOf(columns, row));
    });
  }
  return found;
}

type OnRows = (table: OwnedTable, rows: number) => void;

/** Copies a conversation out of the database of this script into a file, in an open transaction of the file. */
export function* copyOut(id: ConversationId, file: RowFile, onRows: OnRows = () => undefined): Script<Checksums> {
  const found = new Map<OwnedTable, string[]>();
  for (const table of ownedNames) {
    const columns = file.columnsOf(table);
    const own: string[] = [];
    found.set(table, own);
    yield* eachPage(table, columns, id, function* (rows) {
      yield* [];
      file.run(yieldAll(insertions(table, columns, rows)));
      onRows(table, rows.length);
      for (const row of rows) own.push(checksumOf(columns, row));
    });
  }
  return found;
}

/** Copies a conversation from a file into the database of this script. */
export function* copyIn(id: ConversationId, file: RowFile, onRows: OnRows): Script<Checksums> {
  const found = new Map<OwnedTable, string[]>();
  for (const table of ownedNames) {
    const columns = file.columnsOf(table);
    const own: string[] = [];
    found.set(table, own);
    for (const rows of pagesIn(file, table, id)) {
      yield insertions(table, columns, rows);
      // A server hears of inserts without being waited for: this waits, so that pages do not pile up and a signal is heard.
      yield sql`SELECT 1 AS waited`;
      onRows(table, rows.length);
      for (const row of rows) own.push(checksumOf(columns, row));
    }
  }
  return found;
}

/** Pages of a file, read as they are needed. */
export function* pagesIn(file: RowFile, table: OwnedTable, id: ConversationId): Generator<readonly Row[], void, void> {
  const pages: (readonly Row[])[] = [];
  const reading = eachPage(table, file.columnsOf(table), id, function* (rows) {
    yield* [];
    pages.push(rows);
  });
  for (let step = reading.next(); step.done !== true;) {
    const asked = step.value;
    const rows = file.run(answer(asked));
    step = reading.next(rows);
    while (pages.length > 0) yield pages.shift() ?? [];
  }
}

function* answer(asked: Asked): Script<readonly Row[]> {
  return yield asked;
}

export function* yieldAll(statements: readonly Statement[]): Script<void> {
  yield statements;
}

/** How many rows of a table are not in both. */
export function differences(one: Checksums, other: Checksums): ReadonlyMap<OwnedTable, number> {
  const differing = new Map<OwnedTable, number>();
  for (const table of ownedNames) {
    const left = new Map<string, number>();
    for (const sum of one.get(table) ?? []) left.set(sum, (left.get(sum) ?? 0) + 1);
    for (const sum of other.get(table) ?? []) left.set(sum, (left.get(sum) ?? 0) - 1);
    const rows = [...left.values()].reduce((total, each) => total + Math.abs(each), 0);
    if (rows > 0) differing.set(table, rows);
  }
  return differing;
}
