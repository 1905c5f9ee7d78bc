/** The search index as FTS5 tables. FTS5 stores our own terms: it neither stems nor ranks, and keeps no text. */

import { conversationTerm, pendingConversations, type Match, type SearchIndex } from "../search/indexing.ts";
import type { Term } from "../search/query.ts";
import { ids } from "../search/sources.ts";
import { termsVersion } from "../search/tokenize.ts";
import { one, statement, text } from "../script.ts";

/** A view of the index, without rows of its own; it stays when the index is replaced. */
export const vocabularyTable = `CREATE VIRTUAL TABLE IF NOT EXISTS messages_fts_vocab USING fts5vocab('messages_fts', 'row')`;

/**
 * Contentless, since snippets are cut from the rows. The figures are measured: `hashsize` (what a batch gathers before it
 * writes) halves the cost of bulk indexing, `automerge` 16 instead of 8 saves an eighth of it, and `crisismerge` keeps clear
 * of FTS5's limit of 2,000 segments.
 */
export const searchTables = [
  `CREATE VIRTUAL TABLE messages_fts USING fts5(text, content='', contentless_delete=1, tokenize='unicode61')`,
  `CREATE VIRTUAL TABLE summaries_fts USING fts5(text, content='', contentless_delete=1, tokenize='unicode61')`,
  vocabularyTable,
  `INSERT INTO messages_fts (messages_fts, rank) VALUES ('automerge', 16)`,
  `INSERT INTO messages_fts (messages_fts, rank) VALUES ('crisismerge', 1000)`,
  `INSERT INTO messages_fts (messages_fts, rank) VALUES ('hashsize', 16777216)`,
  `INSERT INTO search_progress (version) VALUES (${termsVersion})`,
] as const;

const highest = Number.MAX_SAFE_INTEGER;

export const searchIndex: SearchIndex = {
  *expect() {},
  holding: (corpus, match) =>
    ids(
      statement(`SELECT json_group_array(rowid) AS ids FROM ${corpus}_fts WHERE ${corpus}_fts MATCH ?`, [
        expressionOf(match),
      ]),
    ),
  // FTS5 seeks to a rowid only if the bound value is an integer. Runners bind floating-point numbers.
  newest: (corpus, match, most, below = highest) =>
    ids(
      statement(
        `SELECT json_group_array(rowid) AS ids FROM (SELECT rowid FROM ${corpus}_fts
         WHERE ${corpus}_fts MATCH ? AND rowid < CAST(? AS INTEGER) ORDER BY rowid DESC LIMIT ?)`,
        [expressionOf(match), below, most],
      ),
    ),
  *probe(corpus, terms, most) {
    const found = [];
    for (const term of terms)
      found.push(yield* searchIndex.newest(corpus, { conversations: [], all: [term], any: [] }, most));
    return found;
  },
  vocabulary: (prefix, most) =>
    one(
      statement(
        `SELECT json_group_array(term) AS terms FROM (SELECT term FROM messages_fts_vocab WHERE term >= ? AND term < ? LIMIT ?)`,
        [prefix, `${prefix}\u{10ffff}`, most],
      ),
      (row) => JSON.parse(text(row, "terms")) as string[],
    ),
  pending: statement(`${pendingConversations} LIMIT 1`),
  rowsPerPage: 256,
  reset: [
    "DROP TABLE messages_fts",
    "DROP TABLE summaries_fts",
    "DELETE FROM search_progress",
    "UPDATE conversations SET indexed_seq = 0, indexed_summary = 0, unindexed = 1",
    ...searchTables,
  ].map((words) => statement(words)),
};

/** Terms are letters and digits, and each row of them is quoted, so nothing in a query is FTS5 syntax. */
export function expressionOf({ conversations, all, any }: Match): string {
  const where = conversations.map((id) => `"${conversationTerm(id)}"`);
  return [where, ...all.map((term) => rowsOf(term)), any.flatMap(rowsOf)]
    .filter((alternatives) => alternatives.length > 0)
    .map((alternatives) => `(${alternatives.join(" OR ")})`)
    .join(" AND ");
}

const rowsOf = ({ alternatives, prefix }: Term): readonly string[] =>
  alternatives.map((row) => `"${row.join(" ")}"${prefix ? " *" : ""}`);
