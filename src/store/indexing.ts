/**
 * Feeding the search index. Appends leave it alone; rows are indexed later, in batches, by a watermark that moves in the
 * transaction of its batch, so a crash neither skips a row nor takes one twice. What lies past the watermark is the
 * unindexed tail, which search reads row by row.
 */

import { count, int, sql, text } from "./script.ts";
import type { Script, Statement } from "./script.ts";
import { prepareForIndex } from "./words.ts";

export type Source = "messages" | "summaries";

/** Indexes up to this many rows, oldest first; tells how many remain. */
export function* indexBatch(rowsMax: number): Script<number> {
  const done = yield* indexSource("messages", rowsMax);
  yield* indexSource("summaries", rowsMax - done);
  return yield* unindexedRows();
}

/** Rows are read a page at a time, so that a large batch needs no more memory than a small one. */
const rowsPerPage = 256;

function* indexSource(source: Source, rowsMax: number): Script<number> {
  let upto = yield* watermark(source);
  let done = 0;
  while (done < rowsMax) {
    const rows = yield nextRows(source, upto, Math.min(rowsPerPage, rowsMax - done));
    for (const row of rows) {
      upto = int(row, "id");
      yield* insertEntry(source, upto, text(row, "content"), int(row, "conversation_id"));
    }
    done += rows.length;
    if (rows.length < rowsPerPage) break;
  }
  if (done > 0) yield sql`UPDATE search_progress SET indexed_upto = ${upto} WHERE source = ${source}`;
  return done;
}

const nextRows = (source: Source, after: number, limit: number): Statement =>
  source === "messages"
    ? sql`SELECT message_id AS id, conversation_id, content FROM messages
          WHERE message_id > ${after} ORDER BY message_id LIMIT ${limit}`
    : sql`SELECT search_id AS id, conversation_id, content FROM summaries
          WHERE search_id > ${after} ORDER BY search_id LIMIT ${limit}`;

function* watermark(source: Source): Script<number> {
  return yield* count(sql`SELECT indexed_upto FROM search_progress WHERE source = ${source}`);
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
