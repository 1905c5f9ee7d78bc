/**
 * Moving in: a database of the older program becomes ours, in place. A backup is made beside it first; then its tables
 * are set aside and ours are filled from them, in one transaction, with every row, and every column we do not know, kept.
 * Search is built afterwards in the background. Adopting twice does nothing.
 *
 * Such files hold any subset of later columns, in any order, and no version number; two formats of time; references to
 * rows that are gone; markers in the text where we have a level. What a message was, older-message.ts finds out.
 */

import { rmSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { SQLOutputValue } from "node:sqlite";
import { assert, LcmError } from "../core/errors.ts";
import { partTypes, roles } from "../core/model.ts";
import type { Part, Timestamp } from "../core/model.ts";
import { estimateTokens, formatBytes, parseTimestamp } from "../core/text.ts";
import { backUpDatabase, backupPath, unusedPath } from "./backup.ts";
import { checkWhole, columnsOf, identify, kindOf, messageOf, stampVersion, tableNames } from "./migrate.ts";
import { understandMessage } from "./older-message.ts";
import type { OlderPart } from "./older-message.ts";
import { indexes, searchTables, tables } from "./schema.ts";
import { retryWhileBusy } from "./sqlite.ts";

export type Adopted =
  | { readonly kind: "adopted"; readonly backup: string; readonly messages: number; readonly parts: number; readonly summaries: number }
  /** It is ours already. */
  | { readonly kind: "unchanged" };

export interface AdoptOptions {
  /** How long to wait for another process that holds the file. */
  readonly busyTimeoutMs?: number;
  /** How many bytes a folder's disk has left. */
  readonly freeBytes?: (folder: string) => Promise<number>;
}

const busyTimeoutMsDefault = 30_000;

/** `now` names the backup. Throws, and leaves the file as it is, for one that is damaged, locked or not ours to adopt. */
export async function adopt(path: string, now: string, options: AdoptOptions = {}): Promise<Adopted> {
  const { busyTimeoutMs = busyTimeoutMsDefault, freeBytes = freeBytesOfDisk } = options;
  const kind = await retryWhileBusy(busyTimeoutMs, () => identify(path));
  if (kind === "empty") throw new LcmError("not_found", `there is no database at ${path}`, { hint: "name an lcm.db file with --db" });
  if (kind !== "older_program") return { kind: "unchanged" };
  await retryWhileBusy(busyTimeoutMs, () => checkWhole(path));
  await checkSpace(path, freeBytes);
  const db = await retryWhileBusy(busyTimeoutMs, () => lock(path));
  try {
    // Another process may have been here while this one waited.
    if (kindOf(db, path) !== "older_program") return { kind: "unchanged" };
    const backup = unusedPath(`${backupPath(path, now)}-older`);
    await backUpDatabase(path, backup);
    try {
      const counts = rebuild(db);
      db.exec("COMMIT");
      return { kind: "adopted", backup, ...counts };
    } catch (cause) {
      if (db.isTransaction) db.exec("ROLLBACK");
      rmSync(backup, { force: true });
      throw new LcmError("unavailable", `${path} could not be adopted, and is as it was: ${messageOf(cause)}`, { cause });
    }
  } finally {
    db.close();
  }
}

const freeBytesOfDisk = async (folder: string): Promise<number> => {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

/** The backup, the new tables beside the old, and the log that holds them until they are in the file. */
async function checkSpace(path: string, freeBytes: (folder: string) => Promise<number>): Promise<void> {
  const needed = statSync(path).size * 3;
  const free = await freeBytes(dirname(path));
  if (free >= needed) return;
  throw new LcmError("unavailable", `adopting ${path} needs ${formatBytes(needed)} of free disk, and there is ${formatBytes(free)}`, {
    hint: "make room, or move the file to a larger disk first",
  });
}

/**
 * From here on nobody else writes: the backup is exactly what is rebuilt. In WAL mode others can still read, and a crash
 * leaves the file itself untouched.
 */
function lock(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 10, enableForeignKeyConstraints: false });
  try {
    db.exec("PRAGMA journal_mode = WAL; PRAGMA legacy_alter_table = ON; BEGIN IMMEDIATE");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

// ── Rebuilding ───────────────────────────────────────────────────────────────────────────────────────────────────────

type TableName = keyof typeof tables;
interface Counts {
  readonly messages: number;
  readonly parts: number;
  readonly summaries: number;
}

function rebuild(db: DatabaseSync): Counts {
  defineFunctions(db);
  for (const name of tableNames(db)) if (isSearchTable(db, name)) db.exec(`DROP TABLE ${quoted(name)}`);
  const aside = setAside(db);
  for (const statement of Object.values(tables)) db.exec(statement);

  copyConversations(db, aside);
  const { messages, parts, totals } = copyMessages(db, aside);
  for (const name of ["summary_messages", "summary_parents", "large_files"] as const) copyTable(db, aside, name);
  const summaries = copySummaries(db, aside);
  copyTable(db, aside, "context_items");
  for (const older of aside.values()) db.exec(`DROP TABLE ${quoted(older)}`);
  for (const statement of indexes) replaceIndex(db, statement);
  totalConversations(db, totals);
  for (const statement of searchTables) db.exec(statement);
  stampVersion(db);
  return { messages, parts, summaries };
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** What can be built again from the rows. Its own tables go with it. */
const isSearchTable = (db: DatabaseSync, name: string): boolean =>
  /^(messages|summaries)_fts/.test(name) &&
  /^CREATE VIRTUAL TABLE/i.test(String(db.prepare("SELECT sql FROM sqlite_schema WHERE name = ?").get(name)?.["sql"]));

/** An index of the older program may bear the name of one of ours, on a table that we leave alone. */
function replaceIndex(db: DatabaseSync, statement: string): void {
  const [, name = ""] = /INDEX (\w+)/.exec(statement) ?? [];
  db.exec(`DROP INDEX IF EXISTS ${quoted(name)}`);
  db.exec(statement);
}

/** Where the older program's tables are while ours are filled. */
type Aside = ReadonlyMap<TableName, string>;

/** Which columns of the older program ours take over; all its other columns are kept beside them. */
const taken = {
  conversations: ["conversation_id", "session_id", "session_key", "active", "title", "created_at", "updated_at"],
  messages: ["message_id", "conversation_id", "seq", "role", "content", "token_count", "created_at"],
  message_parts: ["message_id", "ordinal", "part_type", "text_content", "tool_call_id", "tool_name", "metadata"],
  summaries: [
    "summary_id", "conversation_id", "kind", "depth", "content", "token_count", "earliest_at", "latest_at",
    "descendant_count", "created_at", "file_ids", "model",
  ],
  summary_messages: ["summary_id", "message_id", "ordinal"],
  summary_parents: ["summary_id", "parent_summary_id", "ordinal"],
  context_items: ["conversation_id", "ordinal", "item_type", "message_id", "summary_id"],
  large_files: [
    "file_id", "conversation_id", "file_name", "mime_type", "byte_size", "line_count", "storage_uri", "exploration_summary",
    "created_at",
  ],
} as const satisfies Partial<Record<TableName, readonly string[]>>;

type TakenTable = keyof typeof taken;

const isTaken = (name: TableName): name is TakenTable => name in taken;

/** Makes room for our tables. One that only shares a name with ours stays under another; the rest are still to be read. */
function setAside(db: DatabaseSync): Aside {
  const present = tableNames(db);
  const aside = new Map<TableName, string>();
  for (const name of Object.keys(tables) as readonly TableName[]) {
    if (!present.has(name)) continue;
    let older = `older_${name}`;
    while (present.has(older)) older = `older_${older}`;
    db.exec(`ALTER TABLE ${name} RENAME TO ${quoted(older)}`);
    if (isTaken(name)) aside.set(name, older);
  }
  return aside;
}

// ── Columns ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Values that our column cannot hold as they are; they are replaced, and kept. */
const oddValues: Readonly<Record<string, (column: string) => string>> = {
  created_at: (column) => `lcm_time(${column}) IS NULL`,
  updated_at: (column) => `lcm_time(${column}) IS NULL`,
  file_ids: (column) => `NOT json_valid(${column})`,
};

interface KeptColumn {
  readonly name: string;
  /** SQL over a row of the older table. */
  readonly value: string;
}

/** Adds to our table what the older one holds beyond it: under its own name, or with `older_` before a name of ours. */
function keepColumns(db: DatabaseSync, name: TakenTable, older: string): readonly KeptColumn[] {
  const ours = new Set(db.prepare("SELECT name FROM pragma_table_xinfo(?)").all(name).map((row) => String(row["name"])));
  const takenOver: ReadonlySet<string> = new Set(taken[name]);
  const candidates = [...columnsOf(db, older)].flatMap(([column, type]) => {
    const sql = quoted(column);
    const odd = oddValues[column]?.(sql);
    if (!takenOver.has(column)) return [{ name: ours.has(column) ? `older_${column}` : column, type, value: sql }];
    return odd === undefined ? [] : [{ name: `older_${column}`, type, value: `CASE WHEN ${odd} THEN ${sql} END` }];
  });
  if (candidates.length === 0) return [];
  const used = db.prepare(`SELECT ${candidates.map(({ value }) => `max(${value} IS NOT NULL)`).join(", ")} FROM ${quoted(older)}`).get();
  const isUsed = Object.values(used ?? {});
  const kept = candidates.filter((_, index) => isUsed[index] === 1);
  for (const column of kept) db.exec(`ALTER TABLE ${name} ADD COLUMN ${quoted(column.name)} ${column.type}`);
  return kept;
}

/** `INSERT INTO ours (…) SELECT … FROM older AS o`: our columns by the SQL that makes them, then what is kept. */
function insertFrom(name: TakenTable, older: string, ours: Readonly<Record<string, string>>, kept: readonly KeptColumn[]): string {
  const columns = [...Object.keys(ours), ...kept.map((column) => quoted(column.name))];
  const values = [...Object.values(ours), ...kept.map((column) => column.value)];
  return `INSERT INTO ${name} (${columns.join(", ")}) SELECT ${values.join(", ")} FROM ${quoted(older)} AS o`;
}

const epoch = "'1970-01-01T00:00:00.000Z'";

function defineFunctions(db: DatabaseSync): void {
  const pure = { deterministic: true } as const;
  db.function("lcm_time", pure, (value) => (typeof value === "string" ? parseTimestamp(value) : null));
  db.function("lcm_tokens", pure, (value) => estimateTokens(asText(value)));
  db.function("lcm_agent", pure, (key) => /^agent:([^:]+)/.exec(asText(key))?.[1] ?? null);
  db.function("lcm_level", pure, (value) => (isTruncated(asText(value)) ? "truncated" : "normal"));
}

const asText = (value: SQLOutputValue | undefined): string =>
  typeof value === "string" ? value : value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value ?? "");
const asTextOrNull = (value: SQLOutputValue | undefined): string | null => (value === null || value === undefined ? null : asText(value));

/** What the older program wrote at an end of the text where its model had failed it. */
const isTruncated = (text: string): boolean => {
  const marker = String.raw`\[(LCM fallback summary[^\]]*|Truncated from \d+ tokens|Truncated for context management)\]`;
  return new RegExp(`^\\s*${marker}|${marker}\\s*$`).test(text);
};

// ── Tables that are copied by SQL alone ──────────────────────────────────────────────────────────────────────────────

function copyConversations(db: DatabaseSync, aside: Aside): void {
  const older = aside.get("conversations");
  assert(older !== undefined, "every file of the older program has conversations");
  const has = columnsOf(db, older);
  const time = (column: string): string => (has.has(column) ? `lcm_time(o.${column})` : "NULL");
  const active = has.has("active") ? "o.active <> 0" : "TRUE";
  // Of several active segments of one session, the newest is the one that the host writes to.
  const isNewest = `row_number() OVER (PARTITION BY o.session_key ORDER BY ${active} DESC, o.conversation_id DESC) = 1`;
  const createdAt = `coalesce(${time("created_at")}, ${time("updated_at")}, ${epoch})`;
  const statement = insertFrom("conversations", older, {
    conversation_id: "o.conversation_id",
    session_id: "o.session_id",
    session_key: has.has("session_key") ? "o.session_key" : "NULL",
    agent_id: has.has("session_key") ? "lcm_agent(o.session_key)" : "NULL",
    active: has.has("session_key") ? `${active} AND (o.session_key IS NULL OR ${isNewest})` : active,
    title: has.has("title") ? "o.title" : "NULL",
    created_at: createdAt,
    updated_at: `coalesce(${time("updated_at")}, ${createdAt})`,
  }, keepColumns(db, "conversations", older));
  db.exec(statement);
  keepSequence(db, "conversations", older);
}

function copyTable(db: DatabaseSync, aside: Aside, name: "summary_messages" | "summary_parents" | "large_files" | "context_items"): void {
  const older = aside.get(name);
  if (older === undefined) return;
  const has = columnsOf(db, older);
  const ours: Record<string, string> = {};
  for (const column of taken[name]) if (has.has(column)) ours[column] = `o.${column}`;
  if (name === "large_files") ours["created_at"] = `coalesce(lcm_time(o.created_at), ${epoch})`;
  // Notes are no content: they are kept, and not shown.
  const isShown = `NOT EXISTS (SELECT 1 FROM messages m WHERE m.message_id = o.message_id AND m.aside = 'note')`;
  const where = name === "context_items" ? `WHERE ${isShown}` : "";
  db.exec(`${insertFrom(name, older, ours, keepColumns(db, name, older))} ${where} ORDER BY 1, 2`);
}

/** An id that was once given to a row stays taken although the row is gone. */
function keepSequence(db: DatabaseSync, name: TableName, older: string): void {
  const given = db.prepare("SELECT seq FROM sqlite_sequence WHERE name = ?").get(older)?.["seq"] ?? 0;
  const used = db.prepare("SELECT seq FROM sqlite_sequence WHERE name = ?").get(name)?.["seq"] ?? 0;
  db.prepare("DELETE FROM sqlite_sequence WHERE name = ?").run(name);
  db.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)").run(name, Math.max(Number(given), Number(used)));
}

// ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a conversation's messages add up to. */
interface MessageTotals {
  messages: number;
  tokens: number;
  nextSeq: number;
  lastAt: Timestamp | null;
  /** The time that a message without a readable one gets: that of the one before it. */
  previousAt: Timestamp;
}

/** One pass over messages and parts side by side, both by message id. */
function copyMessages(
  db: DatabaseSync,
  aside: Aside,
): { readonly messages: number; readonly parts: number; readonly totals: ReadonlyMap<number, MessageTotals> } {
  const older = aside.get("messages");
  assert(older !== undefined, "every file of the older program has messages");
  const has = columnsOf(db, older);
  const entryId = has.has("transcript_entry_id") ? "transcript_entry_id" : "NULL";
  const eventKey = has.has("stable_event_key") ? "stable_event_key" : "NULL";
  const rows = db.prepare(`SELECT message_id, conversation_id, seq, role, content, created_at,
      coalesce(nullif(${entryId}, ''), nullif(${eventKey}, '')) AS key FROM ${quoted(older)} ORDER BY message_id`);
  const insert = db.prepare(
    `${insertFrom(
      "messages",
      older,
      {
        message_id: "o.message_id",
        conversation_id: "o.conversation_id",
        seq: "o.seq",
        role: "o.role",
        content: "?",
        token_count: "?",
        created_at: "?",
        stored_at: "?",
        message_key: "?",
        envelope: "?",
        aside: "?",
      },
      keepColumns(db, "messages", older),
    )} WHERE o.message_id = ? ON CONFLICT (conversation_id, message_key) DO NOTHING`,
  );
  const writePart = createPartWriter(db, aside);
  const totals = startTotals(db);
  const groups = partsByMessage(db, aside);
  let group = groups.next();
  let messages = 0;
  let parts = 0;
  const nextPartsUpTo = (id: number): readonly FiledRow[] => {
    for (; group.done !== true && group.value.message < id; group = groups.next()) {
      // Parts of a message that is gone stay as they are.
      for (const { rowid, part } of group.value.rows) {
        writePart(rowid, { ...part, text: null, kept: part.text });
        parts += 1;
      }
    }
    if (group.done === true || group.value.message !== id) return [];
    const { rows: found } = group.value;
    group = groups.next();
    return found;
  };

  for (const row of rows.iterate()) {
    const id = Number(row["message_id"]);
    const conversation = Number(row["conversation_id"]);
    const total = totals.get(conversation) ?? createTotals("1970-01-01T00:00:00.000Z" as Timestamp);
    totals.set(conversation, total);
    const at = parseTimestamp(asText(row["created_at"])) ?? total.previousAt;
    const role = roles.find((word) => word === row["role"]) ?? "system";
    const filed = nextPartsUpTo(id);
    const key = asTextOrNull(row["key"]) ?? `older:${id}`;
    const understood = understandMessage({ role, content: asText(row["content"]), key, at, parts: filed.map(({ part }) => part) });
    const isNote = role === "system" && filed.some(({ part }) => part.type === "compaction");
    const write = (as: string): boolean =>
      insert.run(understood.content, understood.tokens, at, Date.parse(at), as, understood.envelope, isNote ? "note" : null, id)
        .changes === 1;
    // Two columns can name a message, and one message's entry may be another's event.
    if (!write(key)) write(`${key}#${id}`);
    for (const [index, part] of understood.parts.entries()) writePart(filed[index]?.rowid ?? 0, part);
    messages += 1;
    parts += understood.parts.length;
    total.messages += 1;
    total.tokens += understood.tokens;
    total.nextSeq = Math.max(total.nextSeq, Number(row["seq"]) + 1);
    total.lastAt = total.lastAt === null || at > total.lastAt ? at : total.lastAt;
    total.previousAt = at;
  }
  nextPartsUpTo(Infinity);
  keepSequence(db, "messages", older);
  return { messages, parts, totals };
}

const createTotals = (previousAt: Timestamp): MessageTotals => ({ messages: 0, tokens: 0, nextSeq: 1, lastAt: null, previousAt });

const startTotals = (db: DatabaseSync): Map<number, MessageTotals> =>
  new Map(
    db
      .prepare("SELECT conversation_id, created_at FROM conversations")
      .all()
      .map((row) => [Number(row["conversation_id"]), createTotals(asText(row["created_at"]) as Timestamp)]),
  );

interface FiledRow {
  readonly rowid: number;
  readonly part: OlderPart;
}

/** Columns that can tell what a block was where the block itself was not kept. */
const isTelling = (column: string): boolean => /^(tool|patch|file|subtask|step|snapshot|compaction)_/.test(column);

function* partsByMessage(db: DatabaseSync, aside: Aside): Generator<{ readonly message: number; readonly rows: readonly FiledRow[] }> {
  const older = aside.get("message_parts");
  if (older === undefined) return;
  const has = columnsOf(db, older);
  const known: readonly string[] = taken.message_parts;
  const telling = [...has.keys()].filter((column) => isTelling(column) && !known.includes(column) && isFilled(db, "message_parts", column));
  const columns = [...known.filter((column) => has.has(column)), ...telling].map(quoted);
  const rows = db.prepare(`SELECT rowid AS part_rowid, ${columns.join(", ")} FROM ${quoted(older)} ORDER BY message_id, ordinal`);
  let message = 0;
  let group: FiledRow[] = [];
  for (const row of rows.iterate()) {
    const id = Number(row["message_id"]);
    if (id !== message && group.length > 0) {
      yield { message, rows: group };
      group = [];
    }
    message = id;
    group.push({ rowid: Number(row["part_rowid"]), part: toOlderPart(row, telling) });
  }
  if (group.length > 0) yield { message, rows: group };
}

/** Our table has a column of the older program only if there is something in it. */
const isFilled = (db: DatabaseSync, name: TakenTable, column: string): boolean => columnsOf(db, name).has(column);

function toOlderPart(row: Record<string, SQLOutputValue>, telling: readonly string[]): OlderPart {
  const filled = telling.flatMap((column): readonly (readonly [string, string | number])[] => {
    const value = row[column];
    return value === null || value === undefined ? [] : [[column, typeof value === "number" ? value : asText(value)]];
  });
  return {
    type: partTypes.find((type) => type === row["part_type"]) ?? "agent",
    text: asTextOrNull(row["text_content"]),
    toolCallId: asTextOrNull(row["tool_call_id"]),
    toolName: asTextOrNull(row["tool_name"]),
    metadata: asTextOrNull(row["metadata"]),
    columns: Object.fromEntries(filled),
  };
}

function createPartWriter(db: DatabaseSync, aside: Aside): (rowid: number, part: Part) => void {
  const older = aside.get("message_parts");
  if (older === undefined) return () => undefined;
  const insert = db.prepare(
    `${insertFrom(
      "message_parts",
      older,
      {
        message_id: "o.message_id",
        ordinal: "o.ordinal",
        part_type: "?",
        text_length: "?",
        text_content: "?",
        tool_call_id: "?",
        tool_name: "?",
        metadata: "?",
      },
      keepColumns(db, "message_parts", older),
    )} WHERE o.rowid = ?`,
  );
  return (rowid, { type, text, kept, toolCallId, toolName, metadata }) => {
    insert.run(type, text === null ? null : text.length, kept, toolCallId, toolName, metadata, rowid);
  };
}

// ── Summaries ────────────────────────────────────────────────────────────────────────────────────────────────────────

function copySummaries(db: DatabaseSync, aside: Aside): number {
  const older = aside.get("summaries");
  assert(older !== undefined, "every file of the older program has summaries");
  const has = columnsOf(db, older);
  const insert = db.prepare(
    `${insertFrom(
      "summaries",
      older,
      {
        summary_id: "o.summary_id",
        conversation_id: "o.conversation_id",
        kind: "o.kind",
        depth: "?",
        content: "CAST(o.content AS TEXT)",
        token_count: "lcm_tokens(o.content)",
        earliest_at: "?",
        latest_at: "?",
        descendant_count: "?",
        created_at: `coalesce(lcm_time(o.created_at), ?, ${epoch})`,
        updated_at: `coalesce(lcm_time(o.created_at), ?, ${epoch})`,
        file_ids: has.has("file_ids") ? "CASE WHEN json_valid(o.file_ids) THEN o.file_ids ELSE '[]' END" : "'[]'",
        model: has.has("model") ? "nullif(o.model, 'unknown')" : "NULL",
        level: "lcm_level(o.content)",
        search_id: "?",
      },
      keepColumns(db, "summaries", older),
    )} WHERE o.summary_id = ?`,
  );
  const facts = describeSummaries(db, older);
  let searchId = 0;
  for (const [id, { depth, earliestAt, latestAt, descendants }] of facts) {
    insert.run(depth, earliestAt, latestAt, descendants, latestAt, latestAt, ++searchId, id);
  }
  return facts.size;
}

interface SummaryFacts {
  readonly depth: number;
  readonly earliestAt: string | null;
  readonly latestAt: string | null;
  readonly descendants: number;
}

/** Depths, ranges and counts from the links, whatever the columns said; in the order in which the summaries were made. */
function describeSummaries(db: DatabaseSync, older: string): ReadonlyMap<string, SummaryFacts> {
  const has = columnsOf(db, older);
  const column = (name: string, sql: string): string => `${has.has(name) ? sql : "NULL"} AS ${name}`;
  const rows = db
    .prepare(`SELECT summary_id, kind, ${column("depth", "depth")}, ${column("earliest_at", "lcm_time(earliest_at)")},
        ${column("latest_at", "lcm_time(latest_at)")} FROM ${quoted(older)} ORDER BY coalesce(lcm_time(created_at), ''), rowid`)
    .all();
  const ranges = new Map(
    db
      .prepare(`SELECT l.summary_id, min(m.created_at) AS earliest, max(m.created_at) AS latest
        FROM summary_messages l JOIN messages m USING (message_id) GROUP BY l.summary_id`)
      .all()
      .map((row) => [asText(row["summary_id"]), { earliestAt: asText(row["earliest"]), latestAt: asText(row["latest"]) }]),
  );
  const links = db.prepare("SELECT summary_id, parent_summary_id FROM summary_parents").all();
  const linksOf = Map.groupBy(links, (row) => asText(row["summary_id"]));
  const stated = new Map(rows.map((row) => [asText(row["summary_id"]), row]));
  const described = new Map<string, SummaryFacts>();

  const describe = (id: string): SummaryFacts | null => {
    const known = described.get(id);
    if (known !== undefined) return known;
    const row = stated.get(id);
    if (row === undefined) return null;
    const isLeaf = row["kind"] === "leaf";
    const said: SummaryFacts = {
      depth: isLeaf ? 0 : Math.max(1, Number(row["depth"] ?? 1)),
      earliestAt: asTextOrNull(row["earliest_at"]),
      latestAt: asTextOrNull(row["latest_at"]),
      descendants: 0,
    };
    // One that is among its own sources meets this there, and goes no further.
    described.set(id, said);
    const below = (linksOf.get(id) ?? []).map((link) => describe(asText(link["parent_summary_id"]))).filter((source) => source !== null);
    const own = ranges.get(id);
    const spans = own === undefined ? below : [...below, own];
    const facts: SummaryFacts = {
      depth: isLeaf || below.length === 0 ? said.depth : 1 + Math.max(...below.map((source) => source.depth)),
      earliestAt: spans.length === 0 ? said.earliestAt : lowest(spans.map((span) => span.earliestAt)),
      latestAt: spans.length === 0 ? said.latestAt : highest(spans.map((span) => span.latestAt)),
      descendants: below.reduce((sum, source) => sum + source.descendants + 1, 0),
    };
    described.set(id, facts);
    return facts;
  };
  const facts = new Map<string, SummaryFacts>();
  for (const id of stated.keys()) {
    const found = describe(id);
    if (found !== null) facts.set(id, found);
  }
  return facts;
}

const lowest = (times: readonly (string | null)[]): string | null => times.filter((time) => time !== null).sort()[0] ?? null;
const highest = (times: readonly (string | null)[]): string | null => times.filter((time) => time !== null).sort().at(-1) ?? null;

// ── Conversations ────────────────────────────────────────────────────────────────────────────────────────────────────

function totalConversations(db: DatabaseSync, totals: ReadonlyMap<number, MessageTotals>): void {
  const update = db.prepare(`UPDATE conversations SET message_count = ?, message_tokens = ?, last_message_at = ?, next_seq = ?
    WHERE conversation_id = ?`);
  for (const [id, { messages, tokens, lastAt, nextSeq }] of totals) update.run(messages, tokens, lastAt, nextSeq, id);
  db.exec(`UPDATE conversations SET
    summary_count = (SELECT count(*) FROM summaries s WHERE s.conversation_id = conversations.conversation_id)`);
  db.exec(`UPDATE conversations SET
    (context_items, context_tokens, context_messages, context_message_tokens) = (
      SELECT count(*), coalesce(sum(coalesce(m.token_count, s.token_count)), 0), count(c.message_id), coalesce(sum(m.token_count), 0)
      FROM context_items c LEFT JOIN messages m ON m.message_id = c.message_id LEFT JOIN summaries s ON s.summary_id = c.summary_id
      WHERE c.conversation_id = conversations.conversation_id)`);
}
