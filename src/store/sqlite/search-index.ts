/** The search index as FTS5 tables. FTS5 stores our own terms: it neither stems nor ranks, and keeps no text. */

import { conversationTerm, pendingConversations, type Match, type SearchIndex } from "../search/indexing.ts";
import type { Term } from "../search/query.ts";
import { ids, type CorpusName } from "../search/sources.ts";
import { termsVersion } from "../search/tokenize.ts";
import { one, statement, text, type Script } from "../script.ts";

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

interface Known {
  /** Words that were looked for, and those of them that are nowhere. */
  readonly looked: Set<string>;
  readonly absent: Set<string>;
}

const nothingKnown = (): Known => ({ looked: new Set(), absent: new Set() });

/**
 * For one search, of which it remembers which words are nowhere; or for indexing. Generators are functions of this file:
 * one that is made for each search costs more than what it does.
 */
export function createSearchIndex(): SearchIndex {
  const known = { messages: nothingKnown(), summaries: nothingKnown() };
  return {
    expect: nothingToFetch,
    holding: (corpus, match) =>
      ids(
        statement(`SELECT json_group_array(rowid) AS ids FROM ${corpus}_fts WHERE ${corpus}_fts MATCH ?`, [
          expressionOf(match, known[corpus].absent),
        ]),
      ),
    newest: (corpus, match, most, below) => newestOf(corpus, expressionOf(match, known[corpus].absent), most, below),
    probe: (corpus, terms, most) => probe(known[corpus], corpus, terms, most),
    vocabulary: (prefix, most) =>
      one(
        statement(
          `SELECT json_group_array(term) AS terms FROM (SELECT term FROM messages_fts_vocab WHERE term >= ? AND term < ? LIMIT ?)`,
          [prefix, `${prefix}\u{10ffff}`, most],
        ),
        (row) => JSON.parse(text(row, "terms")) as string[],
      ),
    pending,
    rowsPerPage: 256,
    reset,
  };
}

function* nothingToFetch(): Script<void> {}

function* probe({ looked, absent }: Known, corpus: CorpusName, terms: readonly Term[], most: number) {
  for (const word of sharedWords(terms).difference(looked)) {
    looked.add(word);
    if ((yield* newestOf(corpus, quoted(word), 1)).length === 0) absent.add(word);
  }
  const found = [];
  for (const term of terms) {
    const ids = yield* newestOf(corpus, expressionOf({ conversations: [], all: [term], any: [] }, absent), most);
    found.push({ ids, isCut: ids.length === most });
  }
  return found;
}

const pending = statement(`${pendingConversations} LIMIT 1`);
const reset = [
  "DROP TABLE messages_fts",
  "DROP TABLE summaries_fts",
  "DELETE FROM search_progress",
  "UPDATE conversations SET indexed_seq = 0, indexed_summary = 0, unindexed = 1",
  ...searchTables,
].map((words) => statement(words));

// FTS5 seeks to a rowid only if the bound value is an integer. Runners bind floating-point numbers.
const newestOf = (corpus: CorpusName, expression: string, most: number, below = highest): Script<readonly number[]> =>
  ids(
    statement(
      `SELECT json_group_array(rowid) AS ids FROM (SELECT rowid FROM ${corpus}_fts
       WHERE ${corpus}_fts MATCH ? AND rowid < CAST(? AS INTEGER) ORDER BY rowid DESC LIMIT ?)`,
      [expression, below, most],
    ),
  );

/**
 * Further words that several terms are found by: two words of a question written as one, which hardly any text has. FTS5
 * looks for an absent word in every segment of the index, so it is looked up once and not with each of its terms.
 */
function sharedWords(terms: readonly Term[]): ReadonlySet<string> {
  const words = terms.flatMap(({ alternatives, prefix }) =>
    prefix ? [] : alternatives.slice(1).flatMap((row) => (row.length === 1 ? row : [])),
  );
  return new Set(words.filter((word, at) => words.indexOf(word) < at));
}

/** Terms are letters and digits, and each row of them is quoted, so nothing in a query is FTS5 syntax. */
export function expressionOf({ conversations, all, any }: Match, absent: ReadonlySet<string> = new Set()): string {
  const where = conversations.map((id) => quoted(conversationTerm(id)));
  const rowsIn = (term: Term): readonly string[] => rowsOf(term, absent);
  return [where, ...all.map(rowsIn), any.flatMap(rowsIn)]
    .filter((alternatives) => alternatives.length > 0)
    .map((alternatives) => `(${alternatives.join(" OR ")})`)
    .join(" AND ");
}

/** Without further words that are nowhere. The first row stays, so that no term is dropped. */
const rowsOf = ({ alternatives, prefix }: Term, absent: ReadonlySet<string>): readonly string[] =>
  alternatives
    .filter(([word = "", ...more], at) => at === 0 || prefix || more.length > 0 || !absent.has(word))
    .map((row) => `${quoted(row.join(" "))}${prefix ? " *" : ""}`);

const quoted = (words: string): string => `"${words}"`;
