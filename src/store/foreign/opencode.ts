/**
 * Reads the database of OpenCode, in which it keeps its sessions. It is opened only for reading, and nothing is written
 * beside it that SQLite does not need itself. Rows have the form in which `opencode export` writes them.
 */

import type { DatabaseSync } from "node:sqlite";
import { isObject, parseObject, type Json, type JsonObject } from "../../core/base/json.ts";
import type { ForeignDatabase } from "../../core/model/foreign-database.ts";
import { tableNames } from "../sqlite/pragma.ts";
import { openReadOnly } from "../sqlite/read-only.ts";

/** Null for any other file. */
export function openOpenCode(path: string): ForeignDatabase | null {
  const db = openReadOnly(path);
  if (!hasSessions(db)) {
    db.close();
    return null;
  }
  return {
    close: () => db.close(),
    sessions: () =>
      db
        .prepare(
          `SELECT s.id, s.time_updated AS updated, count(m.id) AS messages, max(m.time_updated) AS changed
             FROM session s LEFT JOIN message m ON m.session_id = s.id GROUP BY s.id ORDER BY s.time_created, s.id`,
        )
        .all()
        .map(({ id, updated, messages, changed }) => ({
          id: String(id),
          updatedMs: Number(updated),
          messages: Number(messages),
          stamp: `opencode:${Number(updated)}:${Number(messages)}:${Number(changed ?? 0)}`,
        })),
    rows: (session) => rowsOf(db, session),
  };
}

function hasSessions(db: DatabaseSync): boolean {
  try {
    const tables = tableNames(db);
    return ["session", "message", "part", "project"].every((name) => tables.has(name));
  } catch {
    return false; // A damaged file. Whoever takes it for a database of ours says why it cannot be read.
  }
}

function* rowsOf(db: DatabaseSync, session: string): Generator<JsonObject> {
  const row = db.prepare(`SELECT * FROM session WHERE id = ?`).get(session);
  if (row === undefined) return;
  yield { info: sessionInfo(row as JsonObject) };
  const parts = db.prepare(`SELECT id, data FROM part WHERE message_id = ? ORDER BY id`);
  const messages = db.prepare(`SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id`);
  for (const { id, data } of messages.iterate(session)) {
    const own = parts.all(id ?? "").map((part) => ({
      ...parseObject(String(part["data"])),
      id: part["id"] as string,
      sessionID: session,
      messageID: id as string,
    }));
    yield { info: { ...parseObject(String(data)), id: id as string, sessionID: session }, parts: own };
  }
}

/** The columns of a session as OpenCode writes them; columns without a value are left out. */
function sessionInfo(row: JsonObject): JsonObject {
  const given = (column: string): Json | undefined => row[column] ?? undefined;
  const parsed = (column: string): Json | undefined => {
    const text = row[column];
    return typeof text === "string" ? (JSON.parse(text) as Json) : undefined;
  };
  const share = given("share_url");
  return withoutGaps({
    id: given("id"),
    slug: given("slug"),
    projectID: given("project_id"),
    workspaceID: given("workspace_id"),
    directory: given("directory"),
    path: given("path"),
    parentID: given("parent_id"),
    title: given("title"),
    agent: given("agent"),
    model: parsed("model"),
    version: given("version"),
    summary: withoutGaps({
      additions: given("summary_additions"),
      deletions: given("summary_deletions"),
      files: given("summary_files"),
      diffs: parsed("summary_diffs"),
    }),
    cost: given("cost"),
    tokens: {
      input: given("tokens_input"),
      output: given("tokens_output"),
      reasoning: given("tokens_reasoning"),
      cache: { read: given("tokens_cache_read"), write: given("tokens_cache_write") },
    },
    share: share === undefined ? undefined : { url: share },
    metadata: parsed("metadata"),
    revert: parsed("revert"),
    permission: parsed("permission"),
    time: withoutGaps({
      created: given("time_created"),
      updated: given("time_updated"),
      compacting: given("time_compacting"),
      archived: given("time_archived"),
    }),
  });
}

const withoutGaps = (fields: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(fields).filter(
      ([, value]) => value !== undefined && !(isObject(value) && Object.keys(value).length === 0),
    ),
  );
