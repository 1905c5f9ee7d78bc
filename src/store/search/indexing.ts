/**
 * Feeds the search index. Appends leave it alone; rows are indexed later, in batches. Each conversation has a watermark
 * that moves in the transaction of the batch, so a crash neither skips a row nor indexes one twice. Search reads the
 * rows past the watermark directly.
 */

import { isPending, messages, summaries } from "./sources.ts";
import type { Corpus } from "./sources.ts";
import { count, first, int, statement, text } from "../script.ts";
import type { Row, Script } from "../script.ts";
import { prepareForIndex } from "./tokenize.ts";

/** Indexes up to this many rows, one conversation after another; returns how many remain. */
export function* indexBatch(rowsMax: number): Script<number> {
  for (let left = rowsMax; left > 0;) {
    const pending = yield* first(pendingConversation, (row) => row);
    if (pending === null) break;
    for (const corpus of [messages, summaries]) left -= yield* indexConversation(corpus, pending, left);
  }
  return yield* unindexedRows();
}

const pendingConversation = statement(
  `SELECT conversation_id, indexed_seq, next_seq - 1 AS messages, indexed_summary, last_summary AS summaries
   FROM conversations WHERE ${isPending} LIMIT 1`,
);

/** Rows are read a page at a time, so that a large batch needs no more memory than a small one. */
const rowsPerPage = 256;

function* indexConversation(corpus: Corpus, pending: Row, rowsMax: number): Script<number> {
  const conversation = int(pending, "conversation_id");
  const newest = int(pending, corpus.name);
  let indexed = int(pending, corpus.indexed);
  let done = 0;
  while (indexed < newest && done < rowsMax) {
    const asked = Math.min(rowsPerPage, rowsMax - done);
    const rows = yield corpus.toIndex({ conversation, indexed, newest }, asked);
    for (const row of rows) yield corpus.index(int(row, "id"), prepareForIndex(text(row, "content"), conversation));
    // Numbers of rows that were deleted are passed over.
    const last = rows.length < asked ? undefined : rows.at(-1);
    indexed = last === undefined ? newest : int(last, "number");
    yield corpus.setIndexed(conversation, indexed);
    done += rows.length;
  }
  return done;
}

/** Updates the entry of a row whose text has changed, or that is gone (null). A row past the watermark is indexed later. */
export function* reindexRow(name: Corpus["name"], id: number, content: string | null): Script<void> {
  const corpus = name === "messages" ? messages : summaries;
  yield corpus.unindex(id);
  if (content === null) return;
  const conversation = yield* corpus.indexedIn(id);
  if (conversation > 0) yield corpus.index(id, prepareForIndex(content, conversation));
}

/** Counted from the numbers of rows, which is nearly free; numbers of deleted rows count too until the next batch. */
export const unindexedRows = (): Script<number> =>
  count(
    statement(
      `SELECT sum(max(0, next_seq - 1 - indexed_seq) + max(0, last_summary - indexed_summary))
       FROM conversations WHERE ${isPending}`,
    ),
  );
