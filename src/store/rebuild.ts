/**
 * The older program's tables as ours: they are set aside, ours are filled from them, and they are dropped. Every row is
 * kept. What its columns say beyond ours stays, row by row, in a table beside ours (`older_messages` beside `messages`),
 * so that ours are exactly the schema; tables that we do not know are left alone. What follows from other rows (tokens,
 * depths, ranges, counts, totals) is worked out again, whatever the columns said.
 *
 * Such files hold any subset of later columns, in any order, and no version number; two formats of time; references to
 * rows that are gone; markers in the text where we have a level. What a message was, older-message.ts finds out.
 */

import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite";
import { assert } from "../core/errors.ts";
import { partTypes, roles } from "../core/model.ts";
import type { Part, Timestamp } from "../core/model.ts";
import { estimateTokens, parseTimestamp } from "../core/text.ts";
import { columnsOf, stampVersion, tableNames } from "./migrate.ts";
import { understandMessage } from "./older-message.ts";
import type { OlderMessage, OlderPart, Understood } from "./older-message.ts";
import { indexes, searchTables, tables } from "./schema.ts";

export interface Rebuilt {
  readonly messages: number;
  readonly parts: number;
  readonly summaries: number;
}

/** To be called inside a transaction, with foreign keys off. */
export function rebuildTables(db: DatabaseSync): Rebuilt {
  db.exec("PRAGMA legacy_alter_table = ON"); // Renaming a table must not make others refer to its new name.
  defineFunctions(db);
  dropDerived(db);
  const aside = setAside(db);
  for (const statement of Object.values(tables)) db.exec(statement);
  const kept = Object.fromEntries(takenTables.map((name) => [name, keepValues(db, name, aside[name])]));

  copyConversations(db, aside.conversations);
  const { messages, parts, totals } = copyMessages(
    db,
    aside.messages,
    aside.message_parts,
    kept["message_parts"] ?? [],
  );
  for (const name of ["summary_messages", "summary_parents", "large_files", "context_items"] as const) {
    copyTable(db, name, aside[name]);
  }
  const summaries = copySummaries(db, aside.summaries);

  for (const older of Object.values(aside)) if (older !== null) db.exec(`DROP TABLE ${older}`);
  for (const statement of indexes) replaceIndex(db, statement);
  totalConversations(db, totals);
  for (const statement of searchTables) db.exec(statement);
  stampVersion(db);
  return { messages, parts, summaries };
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Search can be built again from the rows. Statistics of tables that are no more would mislead the planner about ours. */
function dropDerived(db: DatabaseSync): void {
  const found = db.prepare("SELECT name, sql FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%'").all();
  const names = found.map((row) => asText(row["name"])).filter((name) => /^(messages|summaries)_fts/.test(name));
  for (const name of names) db.exec(`DROP TABLE ${quoted(name)}`);
  for (const name of ["sqlite_stat1", "sqlite_stat4"]) db.exec(`DROP TABLE IF EXISTS ${name}`);
}

/** An index of the older program may bear the name of one of ours, on a table that we leave alone. */
function replaceIndex(db: DatabaseSync, statement: string): void {
  const [, name = ""] = /INDEX (\w+)/.exec(statement) ?? [];
  db.exec(`DROP INDEX IF EXISTS ${quoted(name)}`);
  db.exec(statement);
}

// ── Setting aside ────────────────────────────────────────────────────────────────────────────────────────────────────

const columns = (names: string): readonly string[] => names.split(" ");

/** Which columns of the older program ours take over, those that name a row first. */
const taken = {
  conversations: columns("conversation_id session_id session_key active title created_at updated_at"),
  messages: columns("message_id conversation_id seq role content token_count created_at"),
  message_parts: columns("message_id ordinal part_type text_content tool_call_id tool_name metadata"),
  summaries: columns(
    "summary_id conversation_id kind depth content token_count earliest_at latest_at descendant_count created_at file_ids model",
  ),
  summary_messages: columns("summary_id message_id ordinal"),
  summary_parents: columns("summary_id parent_summary_id ordinal"),
  context_items: columns("conversation_id ordinal item_type message_id summary_id"),
  large_files: columns(
    "file_id conversation_id file_name mime_type byte_size line_count storage_uri exploration_summary created_at",
  ),
} as const satisfies Partial<Record<keyof typeof tables, readonly string[]>>;

type TakenTable = keyof typeof taken;
const takenTables = Object.keys(taken) as readonly TakenTable[];

/** Columns that name a row: one, or two in tables of links and places. */
const keyOf = (name: TakenTable): readonly string[] =>
  taken[name].slice(0, ["conversations", "messages", "summaries", "large_files"].includes(name) ? 1 : 2);

/** Where the older program's tables are while ours are filled; null for one that it did not have yet. */
type Aside = Readonly<Record<TakenTable, string | null>>;

/** Makes room for our tables. One that only shares a name with ours stays, under another. */
function setAside(db: DatabaseSync): Aside {
  const present = tableNames(db);
  const found = takenTables.map((name) => [name, present.has(name) ? `leaving_${name}` : null] as const);
  for (const [name, aside] of found) if (aside !== null) db.exec(`ALTER TABLE ${name} RENAME TO ${aside}`);
  const others = Object.keys(tables).filter((name) => present.has(name) && !(name in taken));
  for (const name of others) db.exec(`ALTER TABLE ${name} RENAME TO ${quoted(unusedName(db, `older_${name}`))}`);
  return Object.fromEntries(found) as Aside;
}

function unusedName(db: DatabaseSync, wanted: string): string {
  return tableNames(db).has(wanted) ? unusedName(db, `older_${wanted}`) : wanted;
}

// ── What ours do not hold ────────────────────────────────────────────────────────────────────────────────────────────

/** Values that our column cannot hold as they are: they are replaced there. */
const oddValues: Readonly<Record<string, (column: string) => string>> = {
  created_at: (column) => `lcm_time(${column}) IS NULL`,
  updated_at: (column) => `lcm_time(${column}) IS NULL`,
  file_ids: (column) => `NOT json_valid(${column})`,
};

/** Keeps what the older columns say beyond ours, in `older_…` under their own names; tells which columns these are. */
function keepValues(db: DatabaseSync, name: TakenTable, older: string | null): readonly string[] {
  if (older === null) return [];
  const types = columnsOf(db, older);
  const candidates = [...types.keys()].flatMap((column) => {
    const value = quoted(column);
    const odd = oddValues[column]?.(value);
    if (!taken[name].includes(column)) return [{ column, value }];
    return odd === undefined ? [] : [{ column, value: `CASE WHEN ${odd} THEN ${value} END` }];
  });
  if (candidates.length === 0) return [];
  const areUsed = candidates.map(({ value }) => `max(${value} IS NOT NULL)`).join(", ");
  const isUsed = Object.values(db.prepare(`SELECT ${areUsed} FROM ${older}`).get() ?? {});
  const kept = candidates.filter((_, index) => isUsed[index] === 1);
  if (kept.length === 0) return [];
  const key = keyOf(name);
  const definitions = [...key, ...kept.map(({ column }) => column)]
    .map((column) => `${quoted(column)} ${types.get(column)}`)
    .join(", ");
  const values = [...key, ...kept.map(({ value }) => value)].join(", ");
  const isKept = kept.map(({ value }) => `${value} IS NOT NULL`).join(" OR ");
  const beside = quoted(unusedName(db, `older_${name}`));
  db.exec(`CREATE TABLE ${beside} (${definitions}, PRIMARY KEY (${key.join(", ")}))`);
  db.exec(`INSERT INTO ${beside} SELECT ${values} FROM ${older} WHERE ${isKept} ORDER BY ${key.join(", ")}`);
  return kept.map(({ column }) => column);
}

function defineFunctions(db: DatabaseSync): void {
  const pure = { deterministic: true } as const;
  db.function("lcm_time", pure, (value) => (value === null ? null : parseTimestamp(asText(value))));
  db.function("lcm_tokens", pure, (value) => estimateTokens(asText(value)));
  db.function("lcm_agent", pure, (key) => /^agent:([^:]+)/.exec(asText(key))?.[1] ?? null);
  db.function("lcm_level", pure, (value) => (isTruncated(asText(value)) ? "truncated" : "normal"));
}

const asText = (value: SQLOutputValue | undefined): string =>
  typeof value === "string"
    ? value
    : value instanceof Uint8Array
      ? new TextDecoder().decode(value)
      : String(value ?? "");
const asTextOrNull = (value: SQLOutputValue | undefined): string | null =>
  value === null || value === undefined ? null : asText(value);

/** What the older program wrote at an end of the text where its model had failed it. */
const isTruncated = (text: string): boolean => truncatedAtAnEnd.test(text);
const marker = String.raw`\[(?:LCM fallback summary[^\]]*|Truncated from \d+ tokens|Truncated for context management)\]`;
const truncatedAtAnEnd = new RegExp(`^\\s*${marker}|${marker}\\s*$`);

const epoch = "1970-01-01T00:00:00.000Z" as Timestamp;

/** `INSERT INTO ours (…) SELECT … FROM older AS o`: our columns by the SQL that makes them. */
const insertFrom = (name: TakenTable, older: string, ours: Readonly<Record<string, string>>): string =>
  `INSERT INTO ${name} (${Object.keys(ours).join(", ")}) SELECT ${Object.values(ours).join(", ")} FROM ${older} AS o`;

// ── Tables that need no more than SQL ────────────────────────────────────────────────────────────────────────────────

function copyConversations(db: DatabaseSync, older: string | null): void {
  assert(older !== null, "every file of the older program has conversations");
  const has = columnsOf(db, older);
  const column = (name: string): string => (has.has(name) ? `o.${name}` : "NULL");
  const createdAt = `coalesce(lcm_time(${column("created_at")}), lcm_time(${column("updated_at")}), '${epoch}')`;
  const active = `coalesce(${column("active")}, 1) <> 0`;
  // Of several active segments of one session, the newest is the one that the host writes to.
  const isNewest = `row_number() OVER (PARTITION BY ${column("session_key")} ORDER BY ${active} DESC, o.conversation_id DESC) = 1`;
  db.exec(
    insertFrom("conversations", older, {
      conversation_id: "o.conversation_id",
      session_id: "o.session_id",
      session_key: column("session_key"),
      agent_id: `lcm_agent(${column("session_key")})`,
      active: `${active} AND (${column("session_key")} IS NULL OR ${isNewest})`,
      title: column("title"),
      created_at: createdAt,
      updated_at: `coalesce(lcm_time(${column("updated_at")}), ${createdAt})`,
    }),
  );
  keepSequence(db, "conversations", older);
}

type PlainTable = "summary_messages" | "summary_parents" | "large_files" | "context_items";

function copyTable(db: DatabaseSync, name: PlainTable, older: string | null): void {
  if (older === null) return;
  const has = columnsOf(db, older);
  const ours = Object.fromEntries(
    taken[name].filter((column) => has.has(column)).map((column) => [column, `o.${column}`]),
  );
  if (name === "large_files") ours["created_at"] = `coalesce(lcm_time(${ours["created_at"] ?? "NULL"}), '${epoch}')`;
  // Notes are no content: they are kept, and not shown.
  const note = "SELECT 1 FROM messages m WHERE m.message_id = o.message_id AND m.aside = 'note'";
  const shown = name === "context_items" ? `WHERE NOT EXISTS (${note})` : "";
  db.exec(`${insertFrom(name, older, ours)} ${shown} ORDER BY 1, 2`);
}

/** An id that was once given to a row stays taken although the row is gone. */
function keepSequence(db: DatabaseSync, name: "conversations" | "messages", older: string): void {
  const highest =
    db.prepare("SELECT max(seq) AS seq FROM sqlite_sequence WHERE name IN (?, ?)").get(name, older)?.["seq"] ?? 0;
  db.prepare("DELETE FROM sqlite_sequence WHERE name = ?").run(name);
  db.prepare("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)").run(name, highest);
}

// ── Messages and their parts ─────────────────────────────────────────────────────────────────────────────────────────

type Row = Readonly<Record<string, SQLOutputValue>>;

/** What a conversation's messages add up to. */
interface MessageTotals {
  readonly messages: number;
  readonly tokens: number;
  readonly nextSeq: number;
  readonly lastAt: Timestamp | null;
  /** The time that a message without a readable one gets: that of the one before it. */
  readonly previousAt: Timestamp;
}

interface CopiedMessages {
  readonly messages: number;
  readonly parts: number;
  readonly totals: ReadonlyMap<number, MessageTotals>;
}

function copyMessages(
  db: DatabaseSync,
  older: string | null,
  olderParts: string | null,
  otherColumns: readonly string[],
): CopiedMessages {
  assert(older !== null, "every file of the older program has messages");
  const writeMessage = createWriter(db, "messages", "ON CONFLICT (conversation_id, message_key) DO NOTHING");
  const writePart = createWriter(db, "message_parts");
  const totals = startTotals(db);
  let messages = 0;
  let parts = 0;
  const filedParts = olderParts === null ? [] : readParts(db, olderParts, otherColumns.filter(isTelling));
  for (const { row, filed } of sideBySide(readMessages(db, older), filedParts)) {
    parts += filed.length;
    if (row === null) {
      // Parts of a message that is gone stay as they are.
      for (const place of filed) writePart(rowOfPart(place, { ...place.part, text: null, kept: place.part.text }));
      continue;
    }
    const conversation = int(row, "conversation_id");
    const total = totals.get(conversation) ?? createTotals(epoch);
    const message = toOlderMessage(row, filed, total.previousAt);
    const understood = understandMessage(message);
    const write = (key: string): number => writeMessage(rowOfMessage(row, { ...message, key }, understood));
    // Two columns can name a message, and one message's entry may be another's event.
    if (write(message.key) === 0) write(`${message.key}#${int(row, "message_id")}`);
    for (const [index, place] of filed.entries()) {
      const part = understood.parts[index];
      assert(part !== undefined, "a message keeps as many parts as it had");
      writePart(rowOfPart(place, part));
    }
    messages += 1;
    totals.set(conversation, addToTotals(total, int(row, "seq"), understood.tokens, message.at));
  }
  keepSequence(db, "messages", older);
  return { messages, parts, totals };
}

const createTotals = (previousAt: Timestamp): MessageTotals => ({
  messages: 0,
  tokens: 0,
  nextSeq: 1,
  lastAt: null,
  previousAt,
});

const addToTotals = (total: MessageTotals, seq: number, tokens: number, at: Timestamp): MessageTotals => ({
  messages: total.messages + 1,
  tokens: total.tokens + tokens,
  nextSeq: Math.max(total.nextSeq, seq + 1),
  lastAt: total.lastAt === null || at > total.lastAt ? at : total.lastAt,
  previousAt: at,
});

const startTotals = (db: DatabaseSync): Map<number, MessageTotals> =>
  new Map(
    db
      .prepare("SELECT conversation_id, created_at FROM conversations")
      .all()
      .map((row) => [int(row, "conversation_id"), createTotals(asText(row["created_at"]) as Timestamp)]),
  );

function readMessages(db: DatabaseSync, older: string): Iterable<Row> {
  const has = columnsOf(db, older);
  const name = (column: string): string => (has.has(column) ? `nullif(${column}, '')` : "NULL");
  return db
    .prepare(
      `SELECT message_id, conversation_id, seq, role, content, created_at,
         coalesce(${name("transcript_entry_id")}, ${name("stable_event_key")}) AS key FROM ${older} ORDER BY message_id`,
    )
    .iterate();
}

const toOlderMessage = (row: Row, filed: readonly FiledPart[], previousAt: Timestamp): OlderMessage => ({
  role: roles.find((word) => word === row["role"]) ?? "system",
  content: asText(row["content"]),
  key: asTextOrNull(row["key"]) ?? `older:${int(row, "message_id")}`,
  at: parseTimestamp(asText(row["created_at"])) ?? previousAt,
  parts: filed.map(({ part }) => part),
});

/** The older program's own word on what it had done, not something that was said. */
const isNote = ({ role, parts }: OlderMessage): boolean =>
  role === "system" && parts.some((part) => part.type === "compaction");

interface FiledPart {
  readonly message: number;
  readonly ordinal: number;
  readonly part: OlderPart;
}

/** Columns that can tell what a block was where the block itself was not kept. */
const isTelling = (column: string): boolean => /^(tool|patch|file|subtask|step|snapshot|compaction)_/.test(column);

function* readParts(db: DatabaseSync, older: string, telling: readonly string[]): Generator<FiledPart> {
  const has = columnsOf(db, older);
  const known = taken.message_parts.filter((column) => has.has(column));
  // As text: no number is too long for it.
  const listed = [...known, ...telling.map((column) => `CAST(${quoted(column)} AS TEXT) AS ${quoted(column)}`)];
  for (const row of db.prepare(`SELECT ${listed.join(", ")} FROM ${older} ORDER BY message_id, ordinal`).iterate()) {
    yield { message: int(row, "message_id"), ordinal: int(row, "ordinal"), part: toOlderPart(row, telling) };
  }
}

function toOlderPart(row: Row, telling: readonly string[]): OlderPart {
  const filled = telling.filter((column) => (row[column] ?? null) !== null);
  return {
    type: partTypes.find((type) => type === row["part_type"]) ?? "agent",
    text: asTextOrNull(row["text_content"]),
    toolCallId: asTextOrNull(row["tool_call_id"]),
    toolName: asTextOrNull(row["tool_name"]),
    metadata: asTextOrNull(row["metadata"]),
    columns: Object.fromEntries(filled.map((column) => [column, asText(row[column])])),
  };
}

/** Each message with its parts, both coming by message id. Parts of a message that is gone come alone. */
function* sideBySide(
  messages: Iterable<Row>,
  parts: Iterable<FiledPart>,
): Generator<{ readonly row: Row | null; readonly filed: readonly FiledPart[] }> {
  const later = parts[Symbol.iterator]();
  let next = later.next();
  const takeWhile = (isWanted: (part: FiledPart) => boolean): readonly FiledPart[] => {
    const found: FiledPart[] = [];
    for (; next.done !== true && isWanted(next.value); next = later.next()) found.push(next.value);
    return found;
  };
  for (const row of messages) {
    const id = int(row, "message_id");
    yield { row: null, filed: takeWhile((part) => part.message < id) };
    yield { row, filed: takeWhile((part) => part.message === id) };
  }
  yield { row: null, filed: takeWhile(() => true) };
}

const rowOfMessage = (row: Row, message: OlderMessage, { content, tokens, envelope }: Understood): Row => ({
  message_id: int(row, "message_id"),
  conversation_id: int(row, "conversation_id"),
  seq: int(row, "seq"),
  role: message.role,
  content,
  token_count: tokens,
  created_at: message.at,
  stored_at: Date.parse(message.at),
  message_key: message.key,
  envelope,
  aside: isNote(message) ? "note" : null,
});

const rowOfPart = ({ message, ordinal }: FiledPart, part: Part): Row => ({
  message_id: message,
  ordinal,
  part_type: part.type,
  text_length: part.text === null ? null : part.text.length,
  text_content: part.kept,
  tool_call_id: part.toolCallId,
  tool_name: part.toolName,
  metadata: part.metadata,
});

const int = (row: Row, column: string): number => Number(row[column]);

/** Inserts rows that all have the same columns; tells how many were inserted: one, or none. */
function createWriter(db: DatabaseSync, name: TakenTable, otherwise = ""): (row: Row) => number {
  let insert: StatementSync | null = null;
  return (row) => {
    const ours = Object.keys(row);
    insert ??= db.prepare(
      `INSERT INTO ${name} (${ours.join(", ")}) VALUES (${ours.map((column) => `:${column}`).join(", ")}) ${otherwise}`,
    );
    return Number(insert.run(row).changes);
  };
}

// ── Summaries ────────────────────────────────────────────────────────────────────────────────────────────────────────

function copySummaries(db: DatabaseSync, older: string | null): number {
  assert(older !== null, "every file of the older program has summaries");
  const has = columnsOf(db, older);
  const createdAt = `coalesce(lcm_time(o.created_at), ?, '${epoch}')`;
  const values = {
    summary_id: "o.summary_id",
    conversation_id: "o.conversation_id",
    kind: "o.kind",
    depth: "?",
    content: "CAST(o.content AS TEXT)",
    token_count: "lcm_tokens(o.content)",
    earliest_at: "?",
    latest_at: "?",
    descendant_count: "?",
    created_at: createdAt,
    updated_at: createdAt,
    file_ids: has.has("file_ids") ? "CASE WHEN json_valid(o.file_ids) THEN o.file_ids ELSE '[]' END" : "'[]'",
    model: has.has("model") ? "nullif(o.model, 'unknown')" : "NULL",
    level: "lcm_level(o.content)",
    search_id: "?",
  };
  const insert = db.prepare(`${insertFrom("summaries", older, values)} WHERE o.summary_id = ?`);
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

/** Depths, ranges and counts from the links, in the order in which the summaries were made. */
function describeSummaries(db: DatabaseSync, older: string): ReadonlyMap<string, SummaryFacts> {
  const has = columnsOf(db, older);
  const column = (name: string): string => (has.has(name) ? name : "NULL");
  const rows = db
    .prepare(
      `SELECT summary_id, kind, ${column("depth")} AS depth, lcm_time(${column("earliest_at")}) AS earliest,
         lcm_time(${column("latest_at")}) AS latest
       FROM ${quoted(older)} ORDER BY coalesce(lcm_time(created_at), ''), rowid`,
    )
    .all();
  const spans = db
    .prepare(
      `SELECT l.summary_id, min(m.created_at) AS earliest, max(m.created_at) AS latest
       FROM summary_messages l JOIN messages m USING (message_id) GROUP BY l.summary_id`,
    )
    .all();
  const links = db.prepare("SELECT summary_id, parent_summary_id FROM summary_parents").all();
  const statedOf = new Map(rows.map((row) => [asText(row["summary_id"]), row]));
  const spanOf = new Map(spans.map((row) => [asText(row["summary_id"]), toSpan(row)]));
  const linksOf = Map.groupBy(links, (row) => asText(row["summary_id"]));
  const described = new Map<string, SummaryFacts>();

  const describe = (id: string): SummaryFacts | null => {
    const known = described.get(id);
    const row = statedOf.get(id);
    if (known !== undefined || row === undefined) return known ?? null;
    const isLeaf = row["kind"] === "leaf";
    const stated = { depth: isLeaf ? 0 : Math.max(1, Number(row["depth"] ?? 1)), ...toSpan(row), descendants: 0 };
    // One that is among its own sources meets this there, and goes no further.
    described.set(id, stated);
    const sources = (linksOf.get(id) ?? []).map((link) => describe(asText(link["parent_summary_id"])));
    const below = sources.filter((source) => source !== null);
    const own = spanOf.get(id);
    const covered = own === undefined ? below : [...below, own];
    const facts: SummaryFacts = {
      depth: isLeaf || below.length === 0 ? stated.depth : 1 + Math.max(...below.map((source) => source.depth)),
      // Where nothing is left of its sources, what it said of itself is all there is.
      ...(covered.length === 0 ? toSpan(row) : joinSpans(covered)),
      descendants: below.reduce((sum, source) => sum + source.descendants + 1, 0),
    };
    described.set(id, facts);
    return facts;
  };
  const inOrder = [...statedOf.keys()].map((id) => [id, describe(id)] as const);
  return new Map(inOrder.flatMap(([id, facts]) => (facts === null ? [] : [[id, facts]])));
}

type Span = Pick<SummaryFacts, "earliestAt" | "latestAt">;

const toSpan = (row: Row): Span => ({
  earliestAt: asTextOrNull(row["earliest"]),
  latestAt: asTextOrNull(row["latest"]),
});

const joinSpans = (spans: readonly Span[]): Span => ({
  earliestAt:
    spans
      .map((span) => span.earliestAt)
      .filter((time) => time !== null)
      .sort()[0] ?? null,
  latestAt:
    spans
      .map((span) => span.latestAt)
      .filter((time) => time !== null)
      .sort()
      .at(-1) ?? null,
});

// ── Totals ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function totalConversations(db: DatabaseSync, totals: ReadonlyMap<number, MessageTotals>): void {
  const update = db.prepare(
    "UPDATE conversations SET message_count = ?, message_tokens = ?, last_message_at = ?, next_seq = ? WHERE conversation_id = ?",
  );
  for (const [id, { messages, tokens, lastAt, nextSeq }] of totals) update.run(messages, tokens, lastAt, nextSeq, id);
  db.exec(`UPDATE conversations SET
    summary_count = (SELECT count(*) FROM summaries s WHERE s.conversation_id = conversations.conversation_id),
    (context_items, context_tokens, context_messages, context_message_tokens) = (
      SELECT count(*), coalesce(sum(coalesce(m.token_count, s.token_count)), 0), count(c.message_id),
             coalesce(sum(m.token_count), 0)
      FROM context_items c
      LEFT JOIN messages m ON m.message_id = c.message_id
      LEFT JOIN summaries s ON s.summary_id = c.summary_id
      WHERE c.conversation_id = conversations.conversation_id)`);
}
