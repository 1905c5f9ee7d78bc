/**
 * Feeds the search index. Appends leave it alone; rows are indexed later, in batches. Each conversation has a watermark
 * that moves in the transaction of the batch, so a crash neither skips a row nor indexes one twice. Search reads the
 * rows past the watermark directly.
 */

import { isPending, messages, summaries, type Corpus, type CorpusName, type Everything } from "./sources.ts";
import { count, first, int, sql, statement, text, type Row, type Script, type Statement } from "../script.ts";
import type { Term } from "./query.ts";
import { indexText, termsVersion } from "./tokenize.ts";
import { asConversation } from "../rows.ts";
import { forgetVector } from "./meaning/vectors.ts";
import { numbersPerConversation, type ConversationId, type MessageId } from "../../core/model/types.ts";

/** Finds rows by their terms. Each database brings its own. */
export interface SearchIndex {
  /** Says which terms will be looked up next, so that a database behind a network is asked once. */
  readonly expect: (
    corpora: readonly CorpusName[],
    terms: readonly Term[],
    conversations: readonly number[],
  ) => Script<void>;
  /** Ids of the rows that match. */
  readonly holding: (corpus: CorpusName, match: Match) => Script<readonly number[]>;
  /** The highest ids of rows that match, below a given one, highest first. */
  readonly newest: (corpus: CorpusName, match: Match, most: number, below?: number) => Script<readonly number[]>;
  /**
   * The newest rows of each of these terms, in all conversations. For a sample it is enough to look at the newest part of
   * the index: it says how rare a word is, but not that it is nowhere.
   */
  readonly probe: (
    corpus: CorpusName,
    terms: readonly Term[],
    most: number,
    isSample: boolean,
  ) => Script<readonly Probed[]>;
  /** Terms of messages that begin with this, in order, at most so many. */
  readonly vocabulary: (prefix: string, most: number) => Script<readonly string[]>;
  /** Counts what there is, if not as `countEverything` does: figures may be old, but not which conversations are hidden. */
  readonly everything?: () => Script<Everything>;
  /** Replaces the index by an empty one of the current version. */
  readonly reset: readonly Statement[];
  /** Returns the next conversation with rows to index, as `pendingConversations` does. */
  readonly pending: Statement;
  /** Rows are read and written a page at a time, so that a large batch needs no more memory than a small one. */
  readonly rowsPerPage: number;
}

export interface Probed {
  /** Highest first. */
  readonly ids: readonly number[];
  /** Whether there may be others. */
  readonly isCut: boolean;
}

/** Rows of any of these conversations (of all, if none is named) that contain all of some terms and any of others. */
export interface Match {
  readonly conversations: readonly number[];
  readonly all: readonly Term[];
  readonly any: readonly Term[];
}

/** The term that every entry has for its conversation; it makes searching one conversation cheap. */
export const conversationTerm = (conversation: number): string => `xconv${conversation}`;

/** What else is done with messages, by their numbers, in the transaction that indexes them. */
type WithMessages = (conversation: ConversationId, after: number, newest: number) => Script<void>;

function* nothing(): Script<void> {}

/**
 * Indexes up to this many rows, one conversation after another; returns how many remain. An index made by an earlier
 * version is replaced first; one made by a later version is left alone.
 */
export function* indexBatch(
  { reset, pending: next, rowsPerPage }: Pick<SearchIndex, "reset" | "pending" | "rowsPerPage">,
  rowsMax: number,
  withMessages: WithMessages = nothing,
): Script<number> {
  const version = yield* indexVersion();
  if (version > termsVersion) return 0;
  if (version < termsVersion) for (const each of reset) yield each;
  for (let left = rowsMax; left > 0;) {
    const pending = yield* first(next, (row) => row);
    if (pending === null) break;
    left -= yield* indexConversation(messages, pending, { left, rowsPerPage }, withMessages);
    left -= yield* indexConversation(summaries, pending, { left, rowsPerPage }, nothing);
    yield sql`UPDATE conversations SET unindexed = 0 WHERE conversation_id = ${int(pending, "conversation_id")}
                AND indexed_seq >= next_seq - 1 AND indexed_summary >= last_summary`;
  }
  return yield* unindexedRows();
}

const indexVersion = (): Script<number> => count(statement("SELECT max(version) FROM search_progress"));

/** Entries made by another version have other terms, so the index cannot be searched. */
export function* isIndexUsable(): Script<boolean> {
  return (yield* indexVersion()) === termsVersion;
}

export const pendingConversations = `SELECT conversation_id, indexed_seq, next_seq - 1 AS messages, indexed_summary,
  last_summary AS summaries FROM conversations WHERE ${isPending}`;

interface BatchSize {
  readonly left: number;
  readonly rowsPerPage: number;
}

function* indexConversation(
  corpus: Corpus,
  pending: Row,
  { left, rowsPerPage }: BatchSize,
  also: WithMessages,
): Script<number> {
  const conversation = asConversation(int(pending, "conversation_id"));
  const last = int(pending, corpus.name);
  let after = int(pending, corpus.indexed);
  let done = 0;
  while (after < last && done < left) {
    const newest = Math.min(last, after + Math.min(rowsPerPage, left - done));
    const rows = yield corpus.toIndex({ conversation, after, newest, latest: "" });
    // All at once: tokenizing between two writes takes twice as long, because each evicts the other from the cache.
    yield rows.map((row) => entry(corpus.name, int(row, "id"), text(row, "content"), conversation));
    yield* also(conversation, after, newest);
    yield corpus.setIndexed(conversation, newest);
    done += newest - after;
    after = newest;
  }
  return done;
}

const entry = (name: CorpusName, id: number, content: string, conversation: number): Statement =>
  statement(`INSERT INTO ${name}_fts (rowid, text) VALUES (?, ?)`, [
    id,
    `${conversationTerm(conversation)} ${indexText(content)}`,
  ]);

/**
 * Updates the entry of a row whose text has changed, or that is gone (null), and forgets its vector. A row past the
 * watermark is indexed later.
 */
export function* reindexRow(name: CorpusName, id: number, content: string | null): Script<void> {
  if (name === "messages") yield* forgetVector(Math.floor(id / numbersPerConversation), id % numbersPerConversation);
  yield* replaceEntry(name, id, content);
}

/** Updates the entry of a message whose words for search have changed. Its vector is that of its text, so it stays. */
export function* reindexWords(id: MessageId): Script<void> {
  const [row] = yield sql`SELECT content FROM messages WHERE message_id = ${id}`;
  if (row !== undefined) yield* replaceEntry("messages", id, text(row, "content"));
}

function* replaceEntry(name: CorpusName, id: number, content: string | null): Script<void> {
  yield statement(`DELETE FROM ${name}_fts WHERE rowid = ?`, [id]);
  if (content === null) return;
  const words = name === "messages" ? yield* wordsOf(id) : "";
  const conversation = yield* (name === "messages" ? messages : summaries).indexedIn(id);
  if (conversation > 0) yield entry(name, id, content + words, conversation);
}

function* wordsOf(id: number): Script<string> {
  const [row] = yield sql`SELECT words FROM search_words WHERE message_id = ${id}`;
  return row === undefined ? "" : `\n${text(row, "words")}`;
}

/** Counted from the numbers of rows, which is nearly free; numbers of deleted rows count too until the next batch. */
export const unindexedRows = (): Script<number> =>
  count(
    statement(
      `SELECT CASE WHEN (SELECT max(version) FROM search_progress) = ${termsVersion}
         THEN (SELECT sum(greatest(0, next_seq - 1 - indexed_seq) + greatest(0, last_summary - indexed_summary))
               FROM conversations WHERE ${isPending})
         ELSE (SELECT sum(next_seq - 1 + last_summary) FROM conversations) END`,
    ),
  );

/** Brings the search entry of a stored row up to its present text. */
export function* reindex(name: CorpusName, id: number | string): Script<void> {
  const [row] =
    name === "messages"
      ? yield sql`SELECT message_id AS number, content FROM messages WHERE message_id = ${id}`
      : yield sql`SELECT search_id AS number, content FROM summaries WHERE summary_id = ${id}`;
  if (row !== undefined) yield* reindexRow(name, int(row, "number"), text(row, "content"));
}
