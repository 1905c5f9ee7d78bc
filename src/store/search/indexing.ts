/**
 * Feeding the search index. Appends leave it alone; rows are indexed later, in batches, by a watermark that moves in the
 * transaction of its batch, so a crash neither skips a row nor takes one twice. What lies past the watermark is the
 * unindexed tail, which search reads row by row.
 */

import { messages, summaries } from "./sources.ts";
import type { Corpus } from "./sources.ts";
import { int, text } from "../script.ts";
import type { Script } from "../script.ts";
import { prepareForIndex } from "./tokenize.ts";

/** Indexes up to this many rows, oldest first; tells how many remain. */
export function* indexBatch(rowsMax: number): Script<number> {
  let left = rowsMax;
  for (const corpus of [messages, summaries]) left -= yield* indexCorpus(corpus, left);
  return yield* unindexedRows();
}

/** Rows are read a page at a time, so that a large batch needs no more memory than a small one. */
const rowsPerPage = 256;

function* indexCorpus(corpus: Corpus, rowsMax: number): Script<number> {
  let done = 0;
  while (done < rowsMax) {
    const rows = yield corpus.unindexed(Math.min(rowsPerPage, rowsMax - done));
    const last = rows.at(-1);
    if (last === undefined) break;
    for (const row of rows) {
      yield corpus.index(int(row, "id"), prepareForIndex(text(row, "content"), int(row, "conversation_id")));
    }
    yield corpus.setIndexedUpto(int(last, "id"));
    done += rows.length;
  }
  return done;
}

/** Brings the entry of a row whose text has changed, or that is gone (null), up to date. A row past the watermark is taken up later anyway. */
export function* reindexRow(
  name: Corpus["name"],
  id: number,
  content: string | null,
  conversation: number,
): Script<void> {
  const corpus = name === "messages" ? messages : summaries;
  if (id > (yield* corpus.extent()).indexedUpto) return;
  yield corpus.unindex(id);
  if (content !== null) yield corpus.index(id, prepareForIndex(content, conversation));
}

/** What gets the number of a row that is gone must still be seen as new. */
export function* takeUpFreed(corpus: Corpus): Script<void> {
  const { indexedUpto, newest } = yield* corpus.extent();
  if (newest < indexedUpto) yield corpus.setIndexedUpto(newest);
}

/** Counted from ids, so that asking is free; ids skipped by a failed write count too, and vanish with the next batch. */
export function* unindexedRows(): Script<number> {
  let rows = 0;
  for (const corpus of [messages, summaries]) {
    const { indexedUpto, newest } = yield* corpus.extent();
    rows += Math.max(0, newest - indexedUpto);
  }
  return rows;
}
