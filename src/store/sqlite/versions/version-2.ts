/**
 * Upgrades a database to schema 2: every key and message id contains its conversation, and `registry` is new.
 * Ids of summaries and files stay, because texts and names on disk contain them.
 */

import type { DatabaseSync } from "node:sqlite";
import { isObject, parseObject, type Json, type JsonObject } from "../../../core/base/json.ts";
import { messageName, type MessageId } from "../../../core/model/types.ts";
import { columnsOf, tableNames } from "../pragma.ts";
import { dropNewIds, mapMessageIds, newId, newIdOf, renumberOlderValues, shiftOf } from "./renumber.ts";
import type { LostMessage } from "./renumber.ts";
import { indexes, tables } from "../schema.ts";
import { searchTables } from "../search-index.ts";

/** Call inside a transaction, with foreign keys off. */
export function upgradeToVersion2(db: DatabaseSync): void {
  db.exec("PRAGMA legacy_alter_table = ON"); // Renaming a table must not make others refer to its new name.
  for (const name of ["messages_fts", "summaries_fts"]) db.exec(`DROP TABLE ${name}`);
  const present = tableNames(db);
  const old = Object.keys(tables).filter((name) => present.has(name));
  for (const name of old) db.exec(`ALTER TABLE ${name} RENAME TO leaving_${name}`);
  for (const statement of Object.values(tables)) db.exec(statement);
  mapMessageIds(db, lostInJournal(db));
  for (const name of old) if (name !== "journal" && name !== "search_progress") copyTable(db, name);
  copyJournal(db);
  renumberOlderValues(db);
  fillRegistry(db);
  for (const name of old) db.exec(`DROP TABLE leaving_${name}`);
  for (const statement of [...indexes, ...searchTables]) db.exec(statement);
  dropNewIds(db);
}

const ofSummary = "coalesce((SELECT s.conversation_id FROM leaving_summaries s WHERE s.summary_id = o.summary_id), 0)";
const lastSeq = `(SELECT max(id & 0xffffff) FROM temp.new_ids WHERE id >> 24 = o.conversation_id)`;

/** The columns that change, by table, as SQL over the old row `o`. */
const changed: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  conversations: {
    next_seq: `max(o.next_seq + ${shiftOf("o.conversation_id")}, coalesce(${lastSeq}, 0) + 1)`,
    unindexed: "1",
    last_summary: "(SELECT count(*) FROM leaving_summaries s WHERE s.conversation_id = o.conversation_id)",
  },
  messages: {
    message_id: newId("o.message_id"),
    // Copies of a deleted original keep a common origin: the id of the first copy, negated.
    copied_from: `CASE WHEN o.copied_from IS NULL THEN NULL ELSE coalesce(${newId("o.copied_from")},
      -(SELECT min(n.id) FROM leaving_messages c JOIN temp.new_ids n ON n.old = c.message_id
        WHERE c.copied_from = o.copied_from)) END`,
  },
  message_parts: {
    message_id: `coalesce(${newId("o.message_id")}, o.message_id)`,
    conversation_id: `coalesce(${newId("o.message_id")} >> 24, 0)`,
  },
  summaries: {
    search_id: "(o.conversation_id << 24) + row_number() OVER (PARTITION BY o.conversation_id ORDER BY o.search_id)",
  },
  summary_messages: { message_id: `coalesce(${newId("o.message_id")}, o.message_id)`, conversation_id: ofSummary },
  summary_parents: { conversation_id: ofSummary },
  context_items: { message_id: newId("o.message_id") },
  drafts: { conversation_id: ofSummary },
  transcript_entries: { after_seq: `o.after_seq + ${shiftOf("o.conversation_id")}` },
};

function copyTable(db: DatabaseSync, name: string): void {
  const older = columnsOf(db, `leaving_${name}`);
  const values = changed[name] ?? {};
  const columns = [...columnsOf(db, name).keys()].filter((column) => older.has(column) || column in values);
  const selected = columns.map((column) => values[column] ?? `o.${column}`);
  db.exec(`INSERT INTO ${name} (${columns.join(", ")}) SELECT ${selected.join(", ")} FROM leaving_${name} AS o`);
}

function fillRegistry(db: DatabaseSync): void {
  db.exec(`INSERT INTO registry (kind, number)
    SELECT 'conversations', max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'leaving_conversations'), 0),
      coalesce((SELECT max(conversation_id) FROM conversations), 0))
    UNION ALL SELECT 'changes', coalesce((SELECT max(change_id) FROM journal), 0);
    INSERT INTO registry (kind, session_key, agent_id, number)
    SELECT 'session', session_key, coalesce(agent_id, ''), conversation_id FROM conversations
    WHERE session_key IS NOT NULL AND active = 1`);
}

/** Messages that the journal names; those with a row are skipped later. */
function lostInJournal(db: DatabaseSync): readonly LostMessage[] {
  const rows = db.prepare("SELECT conversation_id, before_json, after_json FROM leaving_journal").all();
  return rows.flatMap((row) =>
    [row["before_json"], row["after_json"]]
      .flatMap((json) => rowsIn(parseObject(String(json))))
      .flatMap(({ message_id: message, conversation_id: conversation = Number(row["conversation_id"]) }) =>
        typeof message === "number" ? [{ conversation: Number(conversation), message }] : [],
      ),
  );
}

/** The rows in one side of a journal step, each with its key and its columns. */
function rowsIn({ rows, gone }: JsonObject): readonly JsonObject[] {
  return [
    ...objectsIn(rows).map(({ key, columns }) => ({ ...fieldsOf(columns), ...fieldsOf(key) })),
    ...Object.values(fieldsOf(gone)).flatMap(objectsIn),
  ];
}

const objectsIn = (list: Json | undefined): readonly JsonObject[] => (Array.isArray(list) ? list.filter(isObject) : []);
const fieldsOf = (value: Json | undefined): JsonObject => (isObject(value) ? value : {});

function copyJournal(db: DatabaseSync): void {
  copyTable(db, "journal");
  const idOf = newIdOf(db);
  const ofSummaries = db.prepare("SELECT conversation_id FROM summaries WHERE summary_id = ?");
  const update = db.prepare("UPDATE journal SET subject = ?, before_json = ?, after_json = ? WHERE journal_id = ?");
  const renumbered = ({ seq: _, search_id: __, ...fields }: JsonObject): JsonObject =>
    Object.fromEntries(
      Object.entries(fields).map(([name, value]) => {
        if (typeof value !== "number" || (name !== "message_id" && name !== "copied_from")) return [name, value];
        return [name, idOf(value) ?? (name === "copied_from" ? -value : value)];
      }),
    );
  for (const row of db.prepare("SELECT * FROM leaving_journal").all()) {
    /** A link gets the conversation of its summary; if that was purged, the conversation of the step. */
    const moved = (table: Json | undefined, fields: JsonObject, { summary_id: summary }: JsonObject): JsonObject => {
      const isLink = (table === "summary_messages" || table === "summary_parents") && typeof summary === "string";
      if (!isLink) return renumbered(fields);
      const conversation = ofSummaries.get(summary)?.["conversation_id"] ?? row["conversation_id"];
      return { ...renumbered(fields), conversation_id: Number(conversation) };
    };
    const rewritten = (json: string): string => {
      const { rows, gone, messages, ...others } = parseObject(json);
      const images = objectsIn(rows).map(({ table, key, columns, ...image }) => ({
        table,
        ...image,
        key: renumbered(fieldsOf(key)),
        columns: isObject(columns) ? moved(table, columns, fieldsOf(key)) : null,
      }));
      const goneRows = Object.entries(fieldsOf(gone)).map(([table, list]) => [
        table,
        objectsIn(list).map((fields) => moved(table, fields, fields)),
      ]);
      return JSON.stringify({
        rows: rows === undefined ? undefined : images,
        ...others,
        gone: gone === undefined ? undefined : Object.fromEntries(goneRows),
        messages: Array.isArray(messages) ? messages.map((id) => idOf(Number(id)) ?? Number(id)) : undefined,
      });
    };
    update.run(
      renamedMessages(String(row["subject"]), idOf),
      rewritten(String(row["before_json"])),
      rewritten(String(row["after_json"])),
      row["journal_id"] ?? null,
    );
  }
  const setReason = db.prepare("UPDATE summaries SET rewrite_reason = ? WHERE search_id = ?");
  const marked = db.prepare("SELECT search_id, rewrite_reason FROM summaries WHERE rewrite_reason IS NOT NULL").all();
  for (const row of marked)
    setReason.run(renamedMessages(String(row["rewrite_reason"]), idOf), row["search_id"] ?? null);
}

/** `message 42` → `msg_1-42`, at the start of a subject or reason. */
const renamedMessages = (words: string, idOf: (old: number) => MessageId | null): string =>
  words.replace(/^message (\d+)/, (all, number: string) => {
    const id = idOf(Number(number));
    return id === null ? all : messageName(id);
  });
