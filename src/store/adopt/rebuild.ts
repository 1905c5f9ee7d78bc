/**
 * Rebuilds the older program's tables in our schema: renames them, fills ours from them, and drops them.
 * Every row is kept. Columns we have no place for are kept beside ours (`older_messages` beside `messages`), and unknown
 * tables stay. Derived values (tokens, depths, ranges, counts, totals) are computed again.
 *
 * These files have no version number, any subset of the later columns in any order, two time formats, references to
 * missing rows, and markers in texts where we store a level.
 */

import type { DatabaseSync } from "node:sqlite";
import { assert } from "../../core/base/errors.ts";
import { deriveRows } from "../../core/maintenance/plan-fix.ts";
import { stampVersion } from "../sqlite/migrate.ts";
import { asText, defineFunctions, epoch, insertFrom, int, adopted, adoptedTables } from "./older-rows.ts";
import type { AdoptedTable } from "./older-rows.ts";
import { copyMessages } from "./rebuild-messages.ts";
import { asConversation } from "../rows.ts";
import { indexes, tables, views } from "../sqlite/schema.ts";
import { searchTables } from "../sqlite/search-index.ts";
import { dropNewIds, mapMessageIds, newId, renumberOlderValues } from "../sqlite/versions/renumber.ts";
import { summaryGraph } from "../maintenance/inspect-facts.ts";
import { columnsOf, tableNames, quoted } from "../sqlite/pragma.ts";
import { createRunner } from "../sqlite/runner.ts";

export interface Rebuilt {
  readonly messages: number;
  readonly parts: number;
  readonly summaries: number;
}

/** Call inside a transaction, with foreign keys off. */
export function rebuildTables(db: DatabaseSync): Rebuilt {
  db.exec("PRAGMA legacy_alter_table = ON"); // Renaming a table must not make others refer to its new name.
  defineFunctions(db);
  dropDerived(db);
  const aside = setAside(db);
  for (const statement of Object.values(tables)) db.exec(statement);
  const kept = Object.fromEntries(adoptedTables.map((name) => [name, keepValues(db, name, aside[name])]));

  copyConversations(db, aside.conversations);
  mapMessageIds(db);
  const copied = copyMessages(db, aside.messages, aside.message_parts, kept["message_parts"] ?? []);
  for (const name of ["summary_messages", "summary_parents", "large_files", "context_items"] as const) {
    copyTable(db, name, aside[name]);
  }
  copySummaries(db, aside.summaries);
  renumberOlderValues(db);

  for (const older of Object.values(aside)) if (older !== null) db.exec(`DROP TABLE ${older}`);
  for (const statement of indexes) replaceIndex(db, statement);
  const summaries = deriveFacts(db);
  totalConversations(db);
  dropNewIds(db);
  for (const statement of [...searchTables, ...Object.values(views)]) db.exec(statement);
  stampVersion(db);
  return { ...copied, summaries };
}

/** Search indexes are rebuilt later; statistics of the older tables would mislead the query planner. */
function dropDerived(db: DatabaseSync): void {
  const found = db.prepare("SELECT name, sql FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL TABLE%'").all();
  const names = found.map((row) => asText(row["name"])).filter((name) => /^(messages|summaries)_fts/.test(name));
  for (const name of names) db.exec(`DROP TABLE ${quoted(name)}`);
  for (const name of ["sqlite_stat1", "sqlite_stat4"]) db.exec(`DROP TABLE IF EXISTS ${name}`);
}

/** The older program may have an index of the same name on a table that we leave alone. */
function replaceIndex(db: DatabaseSync, statement: string): void {
  const [, name = ""] = /INDEX (\w+)/.exec(statement) ?? [];
  db.exec(`DROP INDEX IF EXISTS ${quoted(name)}`);
  db.exec(statement);
}

/** Columns that identify a row: one, or two in tables of links and context items. */
const keyOf = (name: AdoptedTable): readonly string[] =>
  adopted[name].slice(0, ["conversations", "messages", "summaries", "large_files"].includes(name) ? 1 : 2);

/** The temporary names of the older tables; null for a table that the file does not have. */
type Aside = Readonly<Record<AdoptedTable, string | null>>;

/** Renames the older tables. One that only shares a name with ours is kept under another name. */
function setAside(db: DatabaseSync): Aside {
  const present = tableNames(db);
  const found = adoptedTables.map((name) => [name, present.has(name) ? `leaving_${name}` : null] as const);
  for (const [name, aside] of found) if (aside !== null) db.exec(`ALTER TABLE ${name} RENAME TO ${aside}`);
  const others = Object.keys(tables).filter((name) => present.has(name) && !(name in adopted));
  for (const name of others) db.exec(`ALTER TABLE ${name} RENAME TO ${quoted(unusedName(db, `older_${name}`))}`);
  return Object.fromEntries(found) as Aside;
}

function unusedName(db: DatabaseSync, wanted: string): string {
  return tableNames(db).has(wanted) ? unusedName(db, `older_${wanted}`) : wanted;
}

/** Conditions for values that our column of the same name replaces because they are not valid there. */
const oddValues: Readonly<Record<string, (column: string) => string>> = {
  created_at: (column) => `lcm_time(${column}) IS NULL`,
  updated_at: (column) => `lcm_time(${column}) IS NULL`,
  file_ids: (column) => `NOT json_valid(${column})`,
};

/** Keeps values we have no place for in `older_…`, under their own column names, and returns these names. */
function keepValues(db: DatabaseSync, name: AdoptedTable, older: string | null): readonly string[] {
  if (older === null) return [];
  const types = columnsOf(db, older);
  const candidates = [...types.keys()].flatMap((column) => {
    const value = quoted(column);
    const odd = oddValues[column]?.(value);
    if (!adopted[name].includes(column)) return [{ column, value }];
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

function copyConversations(db: DatabaseSync, older: string | null): void {
  assert(older !== null, "every file of the older program has conversations");
  const has = columnsOf(db, older);
  const column = (name: string): string => (has.has(name) ? `o.${name}` : "NULL");
  const createdAt = `coalesce(lcm_time(${column("created_at")}), lcm_time(${column("updated_at")}), '${epoch}')`;
  const active = `coalesce(${column("active")}, 1) <> 0`;
  // If a session has several active segments, the host writes to the newest.
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
  db.exec(`INSERT INTO registry (kind, number) SELECT 'conversations', max(seq) FROM (
      SELECT seq FROM sqlite_sequence WHERE name = '${older}' UNION ALL SELECT max(conversation_id) FROM conversations);
    INSERT INTO registry (kind, session_key, agent_id, number)
    SELECT 'session', session_key, coalesce(agent_id, ''), conversation_id FROM conversations
    WHERE session_key IS NOT NULL AND active = 1`);
}

type PlainTable = "summary_messages" | "summary_parents" | "large_files" | "context_items";

function copyTable(db: DatabaseSync, name: PlainTable, older: string | null): void {
  if (older === null) return;
  const has = columnsOf(db, older);
  const ours = Object.fromEntries(
    adopted[name].filter((column) => has.has(column)).map((column) => [column, `o.${column}`]),
  );
  if ("message_id" in ours) ours["message_id"] = `coalesce(${newId("o.message_id")}, o.message_id)`;
  if (name === "summary_messages" || name === "summary_parents") {
    ours["conversation_id"] = `coalesce((SELECT s.conversation_id FROM leaving_summaries s
      WHERE s.summary_id = o.summary_id), 0)`;
  }
  if (name === "large_files") ours["created_at"] = `coalesce(lcm_time(${ours["created_at"] ?? "NULL"}), '${epoch}')`;
  // Notes are not content: they are kept, but not in the context.
  const note = `SELECT 1 FROM messages m WHERE m.message_id = ${newId("o.message_id")} AND m.aside = 'note'`;
  const shown = name === "context_items" ? `WHERE NOT EXISTS (${note})` : "";
  db.exec(`${insertFrom(name, older, ours)} ${shown} ORDER BY 1, 2`);
}

/** In order of creation; `deriveFacts` fills in missing times. */
function copySummaries(db: DatabaseSync, older: string | null): void {
  assert(older !== null, "every file of the older program has summaries");
  const has = columnsOf(db, older);
  const column = (name: string): string => (has.has(name) ? `o.${name}` : "NULL");
  const createdAt = "coalesce(lcm_time(o.created_at), '')";
  const fileIds = has.has("file_ids") ? "CASE WHEN json_valid(o.file_ids) THEN o.file_ids ELSE '[]' END" : "'[]'";
  db.exec(
    insertFrom("summaries", older, {
      summary_id: "o.summary_id",
      conversation_id: "o.conversation_id",
      kind: "o.kind",
      depth: `iif(o.kind = 'leaf', 0, max(1, CAST(coalesce(${column("depth")}, 1) AS INTEGER)))`,
      content: "CAST(o.content AS TEXT)",
      token_count: "lcm_tokens(o.content)",
      earliest_at: `lcm_time(${column("earliest_at")})`,
      latest_at: `lcm_time(${column("latest_at")})`,
      created_at: createdAt,
      updated_at: createdAt,
      file_ids: fileIds,
      model: `nullif(${column("model")}, 'unknown')`,
      level: "lcm_level(o.content)",
      checksum: `lcm_checksum(o.content, ${fileIds})`,
      search_id: `(o.conversation_id << 24)
        + row_number() OVER (PARTITION BY o.conversation_id ORDER BY ${createdAt}, o.rowid)`,
    }),
  );
}

/** Computes depths, ranges and counts from the links, and returns the number of summaries. */
function deriveFacts(db: DatabaseSync): number {
  const runner = createRunner(db);
  const update = db.prepare(
    "UPDATE summaries SET kind = ?, depth = ?, earliest_at = ?, latest_at = ?, descendant_count = ? WHERE summary_id = ?",
  );
  let summaries = 0;
  for (const row of db.prepare("SELECT DISTINCT conversation_id FROM summaries").all()) {
    const derived = deriveRows(runner.run(summaryGraph(asConversation(int(row, "conversation_id")))));
    for (const [id, { facts }] of derived.summaries) {
      if (facts !== null) update.run(facts.kind, facts.depth, facts.earliestAt, facts.latestAt, facts.descendants, id);
      summaries += 1;
    }
  }
  runner.forgetStatements();
  db.exec(`UPDATE summaries SET created_at = coalesce(latest_at, '${epoch}'), updated_at = coalesce(latest_at, '${epoch}')
           WHERE created_at = ''`);
  return summaries;
}

function totalConversations(db: DatabaseSync): void {
  db.exec(`UPDATE conversations SET
    (message_count, message_tokens, last_message_at) = (
      SELECT count(*), coalesce(sum(token_count), 0), max(created_at)
      FROM messages m WHERE m.conversation_id = conversations.conversation_id),
    next_seq = 1 + coalesce((SELECT max(id & 0xffffff) FROM temp.new_ids WHERE id >> 24 = conversation_id), 0),
    unindexed = 1,
    (summary_count, last_summary) = (
      SELECT count(*), count(*) FROM summaries s WHERE s.conversation_id = conversations.conversation_id),
    (context_items, context_tokens, context_messages, context_message_tokens) = (
      SELECT count(*), coalesce(sum(coalesce(m.token_count, s.token_count)), 0), count(c.message_id),
             coalesce(sum(m.token_count), 0)
      FROM context_items c
      LEFT JOIN messages m ON m.message_id = c.message_id
      LEFT JOIN summaries s ON s.summary_id = c.summary_id
      WHERE c.conversation_id = conversations.conversation_id)`);
}
