/**
 * Moving in: a database of the older program becomes ours, in place. A backup is made beside it first; then every table
 * is rebuilt to our schema in one transaction, with every row, and every column we do not know, kept. Search is built
 * afterwards in the background. Adopting twice does nothing.
 *
 * Such files hold any subset of later columns, in any order, and no version number; two formats of time; messages
 * without parts; tool ids only inside metadata; markers in the text where we have a level.
 */

import { statfs } from "node:fs/promises";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { estimateMessageTokens, isObject } from "../core/content.ts";
import { LcmError } from "../core/errors.ts";
import type { Json, JsonObject, Part } from "../core/model.ts";
import { estimateTokens, formatBytes, parseTimestamp } from "../core/text.ts";
import { copyDatabase } from "./backup.ts";
import { identify, inTransaction, kindOf, messageOf, stampVersion, tableNames } from "./migrate.ts";
import { indexes, searchTables, tables } from "./schema.ts";

export type Adopted =
  | { readonly kind: "adopted"; readonly backup: string; readonly messages: number; readonly parts: number; readonly summaries: number }
  /** It is ours already. */
  | { readonly kind: "unchanged" };

export async function adopt(path: string, stamp: string): Promise<Adopted> {
  if (identify(path) !== "older_program") return { kind: "unchanged" };
  await checkBefore(path);
  const backup = `${path}.backup-${stamp}`;
  await copyDatabase(path, backup);
  const db = new DatabaseSync(path, { timeout: 30_000 });
  try {
    db.exec("PRAGMA foreign_keys = OFF; PRAGMA legacy_alter_table = ON");
    inTransaction(db, () => {
      if (kindOf(db, path) === "older_program") rebuild(db);
    });
    db.exec("PRAGMA journal_mode = WAL");
    const count = (table: string): number => Number(db.prepare(`SELECT count(*) AS n FROM ${table}`).get()?.["n"]);
    return { kind: "adopted", backup, messages: count("messages"), parts: count("message_parts"), summaries: count("summaries") };
  } finally {
    db.close();
  }
}

/** Nothing is begun that could fail half-way: a damaged file, or a disk that cannot take the backup and the new tables. */
async function checkBefore(path: string): Promise<void> {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const verdict = Object.values(db.prepare("PRAGMA quick_check(1)").get() ?? {})[0];
    if (verdict !== "ok") throw new Error(String(verdict));
  } catch (cause) {
    throw new LcmError("corrupt", `${path} is damaged, and was not touched: ${messageOf(cause)}`, {
      cause,
      hint: "recover it with the sqlite3 shell's .recover, then adopt the recovered file",
    });
  } finally {
    db.close();
  }
  const { bavail, bsize } = await statfs(dirname(path));
  const needed = statSync(path).size * 3;
  if (bavail * bsize < needed) {
    throw new LcmError("unavailable", `adopting ${path} needs ${formatBytes(needed)} of free disk, and there is ${formatBytes(bavail * bsize)}`);
  }
}

function rebuild(db: DatabaseSync): void {
  defineFunctions(db);
  for (const name of ["messages_fts", "summaries_fts", "summaries_fts_cjk"]) db.exec(`DROP TABLE IF EXISTS ${name}`);
  const present = tableNames(db);
  for (const name of tableOrder) {
    if (!present.has(name)) {
      db.exec(tables[name]);
    } else if (name in expressions) {
      rebuildTable(db, name);
    } else {
      db.exec(`ALTER TABLE ${name} RENAME TO older_${name}`);
      db.exec(tables[name]);
    }
  }
  db.exec("DELETE FROM context_items WHERE message_id IN (SELECT message_id FROM messages WHERE aside = 'note')");
  describeMessages(db);
  describeSummaries(db);
  describeConversations(db);
  for (const statement of [...indexes, ...searchTables]) db.exec(statement);
  stampVersion(db);
}

type TableName = keyof typeof tables;
const tableOrder = Object.keys(tables) as readonly TableName[];

/** How our columns come out of theirs. A column not named here is copied if it is there, else left to its default. */
const expressions: Partial<Record<TableName, Readonly<Record<string, (columns: ReadonlySet<string>) => string>>>> = {
  conversations: {
    created_at: () => "lcm_time(created_at)",
    updated_at: () => "lcm_time(updated_at)",
    agent_id: (columns) => (columns.has("session_key") ? "lcm_agent(session_key)" : "NULL"),
    active: (columns) =>
      columns.has("session_key") && columns.has("active")
        ? `active = 1 AND (session_key IS NULL OR conversation_id = (SELECT max(o.conversation_id) FROM conversations o
             WHERE o.session_key = conversations.session_key AND o.active = 1))`
        : columns.has("active") ? "active" : "1",
  },
  messages: {
    created_at: () => "lcm_time(created_at)",
    stored_at: () => "lcm_ms(created_at)",
    message_key: (columns) => {
      const given = ["transcript_entry_id", "stable_event_key"].filter((column) => columns.has(column));
      const key = given.length === 0 ? "NULL" : given.length === 1 ? given[0] : `coalesce(${given.join(", ")})`;
      return `CASE WHEN ${key} IS NULL THEN 'older:' || message_id
                   WHEN row_number() OVER (PARTITION BY conversation_id, ${key} ORDER BY seq) > 1
                   THEN ${key} || '#' || message_id ELSE ${key} END`;
    },
    aside: () => `CASE WHEN role = 'system' AND EXISTS (SELECT 1 FROM message_parts p
      WHERE p.message_id = messages.message_id AND p.part_type = 'compaction') THEN 'note' END`,
    token_count: () => "lcm_message_tokens(content)",
  },
  message_parts: {},
  summaries: {
    created_at: () => "lcm_time(created_at)",
    updated_at: () => "lcm_time(created_at)",
    token_count: () => "lcm_tokens(content)",
    level: () => "lcm_level(content)",
    search_id: () => "row_number() OVER (ORDER BY created_at, rowid)",
    model: (columns) => (columns.has("model") ? "nullif(model, 'unknown')" : "NULL"),
    depth: (columns) => (columns.has("depth") ? "depth" : "CASE kind WHEN 'leaf' THEN 0 ELSE 1 END"),
  },
  summary_messages: {},
  summary_parents: {},
  context_items: {},
  large_files: { created_at: () => "lcm_time(created_at)" },
};

function defineFunctions(db: DatabaseSync): void {
  const pure = { deterministic: true } as const;
  db.function("lcm_time", pure, (value) => parseTimestamp(String(value)) ?? "1970-01-01T00:00:00.000Z");
  db.function("lcm_ms", pure, (value) => Date.parse(parseTimestamp(String(value)) ?? "1970-01-01T00:00:00.000Z"));
  db.function("lcm_tokens", pure, (value) => estimateTokens(String(value)));
  db.function("lcm_message_tokens", pure, (value) => estimateMessageTokens([textPart(String(value))]));
  db.function("lcm_agent", pure, (key) => /^agent:([^:]+)/.exec(String(key ?? ""))?.[1] ?? null);
  db.function("lcm_level", pure, (value) => (isTruncated(String(value)) ? "truncated" : "normal"));
}

const textPart = (text: string): Part => ({ type: "text", text, kept: null, toolCallId: null, toolName: null, metadata: null });

/** What the older program wrote where its model had failed it. */
const isTruncated = (text: string): boolean =>
  /^\[LCM fallback summary|\[Truncated from \d+ tokens\]|\[Truncated for context management\]/.test(text);

function rebuildTable(db: DatabaseSync, name: TableName): void {
  const old = columnsOf(db, name);
  db.exec(tables[name].replace(`CREATE TABLE ${name} `, `CREATE TABLE new_${name} `));
  const ours = columnsOf(db, `new_${name}`);
  const kept = [...old.keys()].filter((column) => !ours.has(column) && hasValues(db, name, column));
  for (const column of kept) db.exec(`ALTER TABLE new_${name} ADD COLUMN "${column}" ${old.get(column)}`);
  const given = new Set(old.keys());
  const target: string[] = [];
  const source: string[] = [];
  for (const column of [...ours.keys(), ...kept]) {
    const expression = expressions[name]?.[column]?.(given) ?? (given.has(column) ? `"${column}"` : null);
    if (expression === null) continue;
    target.push(`"${column}"`);
    source.push(expression);
  }
  db.exec(`INSERT INTO new_${name} (${target.join(", ")}) SELECT ${source.join(", ")} FROM ${name}`);
  db.exec(`DROP TABLE ${name}`);
  db.exec(`ALTER TABLE new_${name} RENAME TO ${name}`);
}

/** Columns that can be written, with their declared types. */
const columnsOf = (db: DatabaseSync, table: string): ReadonlyMap<string, string> =>
  new Map(
    db
      .prepare("SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden = 0")
      .all(table)
      .map((row) => [String(row["name"]), String(row["type"])]),
  );

const hasValues = (db: DatabaseSync, table: string, column: string): boolean =>
  db.prepare(`SELECT 1 FROM ${table} WHERE "${column}" IS NOT NULL LIMIT 1`).get() !== undefined;

/** A message with parts gets the envelope that its parts' metadata speak of, so that it reads back as it came. */
function describeMessages(db: DatabaseSync): void {
  const pageSize = 500;
  const has = columnsOf(db, "message_parts");
  const page = db.prepare(`SELECT m.message_id, m.role, m.content FROM messages m WHERE m.message_id > ? AND EXISTS (
    SELECT 1 FROM message_parts p WHERE p.message_id = m.message_id) ORDER BY m.message_id LIMIT ${pageSize}`);
  const partsOf = db.prepare("SELECT * FROM message_parts WHERE message_id = ? ORDER BY ordinal");
  const describe = db.prepare("UPDATE messages SET envelope = ?, token_count = max(token_count, ?) WHERE message_id = ?");
  const complete = db.prepare("UPDATE message_parts SET metadata = ?, tool_call_id = ?, tool_name = ? WHERE message_id = ? AND ordinal = ?");
  for (let last = 0; ; ) {
    const rows = page.all(last);
    for (const row of rows) {
      const id = Number(row["message_id"]);
      const parts = partsOf.all(id).map((part) => describePart(part, has.has("tool_input")));
      const said: Part[] = parts.map((part) => ({ ...textPart(part.text), type: part.isFile ? "file" : "text" }));
      describe.run(envelopeOf(String(row["role"]), parts), estimateMessageTokens(said), id);
      for (const part of parts) complete.run(JSON.stringify(part.metadata), part.toolCallId, part.toolName, id, part.ordinal);
      last = id;
    }
    if (rows.length < pageSize) return;
  }
}

interface OlderPart {
  readonly ordinal: number;
  readonly metadata: JsonObject;
  readonly text: string;
  readonly isFile: boolean;
  readonly toolCallId: string | null;
  readonly toolName: string | null;
}

function describePart(row: Record<string, unknown>, hasTools: boolean): OlderPart {
  const column = (name: string): string | null => (typeof row[name] === "string" ? row[name] : null);
  const stated = parseOr(column("metadata"), {});
  const metadata = isObject(stated) ? stated : {};
  const field = (name: string): string | null => (typeof metadata[name] === "string" ? metadata[name] : null);
  const raw = metadata["raw"] ?? blockFromColumns(column, hasTools);
  const rawId = isObject(raw) && typeof raw["id"] === "string" ? raw["id"] : null;
  return {
    ordinal: Number(row["ordinal"]),
    metadata: { ...metadata, raw },
    text: column("text_content") ?? JSON.stringify(raw),
    isFile: column("part_type") === "file",
    toolCallId: column("tool_call_id") ?? field("toolCallId") ?? rawId,
    toolName: column("tool_name") ?? field("toolName"),
  };
}

/** A part stored without its raw block: the block that its columns speak of. */
function blockFromColumns(column: (name: string) => string | null, hasTools: boolean): Json {
  const text = column("text_content");
  switch (column("part_type")) {
    case "reasoning":
      return { type: "thinking", thinking: text ?? "" };
    case "tool":
      if (text !== null) return { type: "text", text };
      return {
        type: "toolCall",
        id: column("tool_call_id"),
        name: column("tool_name"),
        arguments: hasTools ? parseOr(column("tool_input"), {}) : {},
      };
    default:
      return text === null ? { type: column("part_type") } : { type: "text", text };
  }
}

function envelopeOf(role: string, parts: readonly OlderPart[]): string {
  const stated = parts.map((part) => part.metadata);
  const find = (name: string): Json | undefined => stated.map((metadata) => metadata[name]).find((value) => value !== undefined);
  const originalRole = find("originalRole") ?? role;
  const isResult = originalRole === "toolResult";
  const toolCallId = isResult ? (find("toolCallId") ?? parts.find((part) => part.toolCallId !== null)?.toolCallId) : undefined;
  const toolName = isResult ? (find("toolName") ?? parts.find((part) => part.toolName !== null)?.toolName) : undefined;
  const single = parts.length === 1 && typeof stated[0]?.["raw"] === "string";
  return JSON.stringify({ role: originalRole, toolCallId, toolName, content: single ? "text" : "blocks", isError: find("isError") });
}

function parseOr(json: string | null, otherwise: Json): Json {
  if (json === null) return otherwise;
  try {
    return JSON.parse(json) as Json;
  } catch {
    return json; // Not JSON after all: kept as the text it is.
  }
}

/** Depths, ranges and counts from the links, level by level, whatever the columns said. */
function describeSummaries(db: DatabaseSync): void {
  const depthsMax = 64;
  db.exec(`UPDATE summaries SET descendant_count = 0,
    earliest_at = (SELECT min(m.created_at) FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = summaries.summary_id),
    latest_at = (SELECT max(m.created_at) FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = summaries.summary_id)
    WHERE kind = 'leaf'`);
  const deepen = db.prepare(`UPDATE summaries SET depth = 1 + (SELECT max(s.depth) FROM summary_parents p
      JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = summaries.summary_id)
    WHERE kind = 'condensed' AND depth <= (SELECT max(s.depth) FROM summary_parents p
      JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = summaries.summary_id)`);
  for (let round = 0; round < depthsMax && Number(deepen.run().changes) > 0; round++);
  const describe = db.prepare(`UPDATE summaries SET
      earliest_at = (SELECT min(s.earliest_at) FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = summaries.summary_id),
      latest_at = (SELECT max(s.latest_at) FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = summaries.summary_id),
      descendant_count = coalesce((SELECT sum(s.descendant_count + 1) FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = summaries.summary_id), 0)
    WHERE kind = 'condensed' AND depth = ?`);
  for (let depth = 1; depth <= depthsMax; depth++) describe.run(depth);
}

function describeConversations(db: DatabaseSync): void {
  db.exec(`UPDATE conversations SET
    message_count = (SELECT count(*) FROM messages m WHERE m.conversation_id = conversations.conversation_id),
    message_tokens = (SELECT coalesce(sum(token_count), 0) FROM messages m WHERE m.conversation_id = conversations.conversation_id),
    summary_count = (SELECT count(*) FROM summaries s WHERE s.conversation_id = conversations.conversation_id),
    last_message_at = (SELECT max(m.created_at) FROM messages m WHERE m.conversation_id = conversations.conversation_id),
    next_seq = (SELECT coalesce(max(m.seq), 0) + 1 FROM messages m WHERE m.conversation_id = conversations.conversation_id)`);
  db.exec(`UPDATE conversations SET
    (context_items, context_tokens, context_messages, context_message_tokens) = (
      SELECT count(*), coalesce(sum(coalesce(m.token_count, s.token_count)), 0), count(m.message_id), coalesce(sum(m.token_count), 0)
      FROM context_items c LEFT JOIN messages m ON m.message_id = c.message_id LEFT JOIN summaries s ON s.summary_id = c.summary_id
      WHERE c.conversation_id = conversations.conversation_id)`);
}
