/** Maps message ids of earlier formats, numbered per file, to ids that contain their conversation. */

import type { DatabaseSync } from "node:sqlite";
import { messageIdOf, type ConversationId, type MessageId } from "../../../core/model/types.ts";
import { columnsOf, tableNames } from "../pragma.ts";

/** A message that other rows refer to, but that has no row. */
export interface LostMessage {
  readonly conversation: number;
  readonly message: number;
}

/** SQL for the new id of the old one in a column; null if it has none. */
export const newId = (column: string): string => `(SELECT id FROM temp.new_ids WHERE old = ${column})`;

/**
 * Fills `temp.new_ids` (old, id) from the old tables, which were renamed to `leaving_…`. A message keeps its seq, shifted
 * to begin at 1; a lost one gets the first free number after the message before it. Call `dropNewIds` afterwards.
 */
export function mapMessageIds(db: DatabaseSync, journalled: readonly LostMessage[] = []): void {
  db.exec(`CREATE TEMP TABLE new_ids (old INTEGER PRIMARY KEY, id INTEGER NOT NULL UNIQUE);
    INSERT INTO temp.new_ids SELECT message_id, (conversation_id << 24) + seq + ${shiftOf("conversation_id")}
      FROM leaving_messages`);
  const lost = [...lostMessages(db), ...journalled];
  const isKnown = db.prepare("SELECT 1 FROM temp.new_ids WHERE old = ?");
  const isTaken = db.prepare("SELECT 1 FROM temp.new_ids WHERE id = ?");
  const before = db.prepare(`SELECT max(n.id) AS id FROM temp.new_ids n WHERE n.old < ? AND n.id > ? AND n.id < ?`);
  const insert = db.prepare("INSERT INTO temp.new_ids (old, id) VALUES (?, ?)");
  for (const { conversation, message } of lost.toSorted((a, b) => a.message - b.message)) {
    if (isKnown.get(message) !== undefined) continue;
    const [from, to] = [conversation, conversation + 1].map((each) => messageIdOf(each as ConversationId, 0));
    let id = Number(before.get(message, from ?? 0, to ?? 0)?.["id"] ?? from) + 1;
    while (isTaken.get(id) !== undefined) id += 1;
    insert.run(message, id);
  }
}

/** SQL for how far the seqs of a conversation are shifted to begin at 1. */
export const shiftOf = (conversation: string): string =>
  `max(0, 1 - coalesce((SELECT min(m.seq) FROM leaving_messages m WHERE m.conversation_id = ${conversation}), 1))`;

/** Lost messages that summaries or context items refer to. */
function lostMessages(db: DatabaseSync): readonly LostMessage[] {
  const isLost = "message_id NOT IN (SELECT message_id FROM leaving_messages)";
  const links = tableNames(db).has("leaving_summary_messages")
    ? `SELECT s.conversation_id, l.message_id FROM leaving_summary_messages l
         JOIN leaving_summaries s USING (summary_id) WHERE l.${isLost} UNION`
    : "";
  const rows = db
    .prepare(`${links} SELECT conversation_id, message_id FROM leaving_context_items WHERE ${isLost}`)
    .all();
  return rows.map((row) => ({ conversation: Number(row["conversation_id"]), message: Number(row["message_id"]) }));
}

export const dropNewIds = (db: DatabaseSync): void => db.exec("DROP TABLE temp.new_ids");

export function newIdOf(db: DatabaseSync): (old: number) => MessageId | null {
  const find = db.prepare("SELECT id FROM temp.new_ids WHERE old = ?");
  return (old) => (find.get(old)?.["id"] ?? null) as MessageId | null;
}

/** Values of the older program that were kept beside our tables refer to messages by id, too. */
export function renumberOlderValues(db: DatabaseSync): void {
  for (const table of tableNames(db)) {
    if (!table.startsWith("older_") || !columnsOf(db, table).has("message_id")) continue;
    db.exec(`UPDATE "${table}" SET message_id = coalesce(${newId("message_id")}, message_id)`);
  }
}
