/**
 * Feeding the search index. Appends leave it alone; rows are indexed later, in batches, by a watermark that moves in the
 * transaction of its batch, so a crash neither skips a row nor takes one twice. What lies past the watermark is the
 * unindexed tail, which search reads row by row.
 */

import { count, int, sql, text } from "./script.ts";
import type { Row, Script } from "./script.ts";
import { prepareForIndex } from "./words.ts";

export type Source = "messages" | "summaries";

/** Indexes up to this many rows, oldest first; tells how many remain. */
export function* indexBatch(rowsMax: number): Script<number> {
  const messages = yield* watermark("messages");
  const rows = yield sql`SELECT message_id AS id, conversation_id, content FROM messages
    WHERE message_id > ${messages} ORDER BY message_id LIMIT ${rowsMax}`;
  yield* indexRows("messages", rows);
  const summaries = yield* watermark("summaries");
  const more = yield sql`SELECT search_id AS id, conversation_id, content FROM summaries
    WHERE search_id > ${summaries} ORDER BY search_id LIMIT ${rowsMax - rows.length}`;
  yield* indexRows("summaries", more);
  return yield* unindexedRows();
}

function* watermark(source: Source): Script<number> {
  return yield* count(sql`SELECT indexed_upto FROM search_progress WHERE source = ${source}`);
}

function* indexRows(source: Source, rows: readonly Row[]): Script<void> {
  const last = rows.at(-1);
  if (last === undefined) return;
  for (const row of rows) yield* insertEntry(source, int(row, "id"), text(row, "content"), int(row, "conversation_id"));
  yield sql`UPDATE search_progress SET indexed_upto = ${int(last, "id")} WHERE source = ${source}`;
}

function* insertEntry(source: Source, id: number, content: string, conversation: number): Script<void> {
  const words = prepareForIndex(content, conversation);
  if (source === "messages") yield sql`INSERT INTO messages_fts (rowid, text) VALUES (${id}, ${words})`;
  else yield sql`INSERT INTO summaries_fts (rowid, text) VALUES (${id}, ${words})`;
}

/** Brings the entry of a row whose text has changed up to date. A row past the watermark is taken up later anyway. */
export function* reindexRow(source: Source, id: number, content: string, conversation: number): Script<void> {
  if (id > (yield* watermark(source))) return;
  if (source === "messages") yield sql`DELETE FROM messages_fts WHERE rowid = ${id}`;
  else yield sql`DELETE FROM summaries_fts WHERE rowid = ${id}`;
  yield* insertEntry(source, id, content, conversation);
}

/** Counted from ids, so that asking is free; ids skipped by a crashed write count too, and vanish with the next batch. */
export function* unindexedRows(): Script<number> {
  return yield* count(
    sql`SELECT max(0, coalesce((SELECT max(message_id) FROM messages), 0)
                 - (SELECT indexed_upto FROM search_progress WHERE source = 'messages'))
             + max(0, coalesce((SELECT max(search_id) FROM summaries), 0)
                 - (SELECT indexed_upto FROM search_progress WHERE source = 'summaries'))`,
  );
}
