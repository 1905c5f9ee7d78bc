/**
 * Looks words up in the search index (index-rows.ts). It has no positions, so words in a row are found as words together;
 * the text decides.
 */

import { int, statement, text, type Row, type Script, type Statement } from "../script.ts";
import { pendingConversations, type Match, type SearchIndex } from "../search/indexing.ts";
import type { Term } from "../search/query.ts";
import type { CorpusName } from "../search/sources.ts";
import { termsVersion } from "../search/tokenize.ts";
import { numbersPerConversation } from "../../core/model/types.ts";
import { blockOf, idsIn, ownKey, rowsPerBlock, sharedKey } from "./index-rows.ts";
import { tryLock } from "./locks.ts";

const highest = Number.MAX_SAFE_INTEGER;

/** Ids in descending order. */
type Ids = readonly number[];

export const createSearchIndex = (schema: string): SearchIndex => ({
  holding: (corpus, match) => idsOf(corpus, match),
  *newest(corpus, match, most, below = highest) {
    const [term, ...others] = match.all;
    const word = term === undefined ? null : onlyWord(term);
    if (word !== null && others.length + match.any.length + match.conversations.length === 0)
      return yield* newestOf({ corpus, word }, most, below);
    return (yield* idsOf(corpus, match)).filter((id) => id < below).slice(0, most);
  },
  *probe(corpus, terms, most) {
    const words = terms.map(onlyWord);
    const first = yield lookUpAll(
      corpus,
      words.flatMap((word) => word ?? []),
      firstPage,
    );
    const others = yield* idsOfTerms(
      corpus,
      terms.filter((_, at) => words[at] === null),
    );
    const known = Map.groupBy(first, (row) => int(row, "at"));
    const found: Ids[] = [];
    let [single, several] = [0, 0];
    for (const word of words)
      found.push(
        word === null
          ? (others[several++] ?? []).slice(0, most)
          : yield* newestOf({ corpus, word }, most, highest, known.get(single++) ?? []),
      );
    return found;
  },
  *vocabulary(prefix, most) {
    const rows = yield lookUpBeginning("messages", prefix, { ...firstPage, limit: blocksOfVocabulary });
    const words = new Set(rows.flatMap((row) => wordsIn(row, prefix).map(({ word }) => word)));
    return [...words].sort().slice(0, most);
  },
  pending: statement(`${pendingConversations} AND ${tryLock(schema)} LIMIT 1`),
  rowsPerPage: rowsPerBlock,
  reset: [
    "DELETE FROM search_blocks",
    "DELETE FROM search_progress",
    "UPDATE conversations SET indexed_seq = 0, indexed_summary = 0, unindexed = 1",
    `INSERT INTO search_progress (version) VALUES (${termsVersion})`,
  ].map((words) => statement(words)),
});

/** The one word of a term without alternatives; null for any other. */
function onlyWord({ alternatives, prefix }: Term): string | null {
  const [row, ...rows] = alternatives;
  return row?.length === 1 && rows.length === 0 && !prefix ? (row[0] ?? null) : null;
}

/** A part of the table rows that have a word, newest block first. */
interface Page {
  /** Conversation and block. */
  readonly before: readonly [number, number];
  readonly limit: number;
  /** All conversations, if none is named. */
  readonly among?: readonly number[];
}

/** How many blocks are read at a time. A word that is everywhere needs one, a rare word needs all. */
const blocksPerRead = 64;
const blocksOfVocabulary = 512;
const end = [2 ** 28, 0] as const;
const firstPage: Page = { before: end, limit: blocksPerRead };
const everything: Page = { before: end, limit: highest };

/** The condition and the end of a statement that reads a page. */
function pageOf(corpus: CorpusName, { before, limit, among = [] }: Page) {
  const inScope = among.length === 0 ? "" : "AND conversation_id IN (SELECT value FROM numbers_in(?))";
  return {
    words: `AND corpus = '${corpus.charAt(0)}' ${inScope} AND (conversation_id, block) < (?, ?)
      ORDER BY conversation_id DESC, block DESC LIMIT ?`,
    values: [...(among.length === 0 ? [] : [JSON.stringify(among)]), ...before, limit],
  };
}

/**
 * Two statements, however many words: for the table rows that words have for themselves, and for those that they share.
 * `at` of a row says which word it is of.
 */
function lookUpAll(corpus: CorpusName, words: readonly string[], page: Page): readonly Statement[] {
  if (words.length === 0) return [];
  const { words: isInPage, values } = pageOf(corpus, page);
  const select = (part: number, given: string, codes: string, isWord: string, lists: readonly string[]): Statement =>
    statement(
      `SELECT ${part} AS part, word.n - 1 AS at, found.* FROM ${given} CROSS JOIN LATERAL (
        SELECT conversation_id, block, key, ${codes} AS codes FROM search_blocks
        WHERE key = word.key ${isWord} ${isInPage}) AS found`,
      [...lists, ...values],
    );
  const listed = "string_to_table(?, chr(9))";
  const cut = `(SELECT string_agg(split_part(piece, chr(10), 1), '')
    FROM string_to_table(entries, word.line) WITH ORDINALITY AS cut (piece, n) WHERE n > 1)`;
  const shared = `ROWS FROM (${listed}, ${listed}) WITH ORDINALITY AS word (key, line, n)`;
  const [keys, lines] = [words.map(sharedKey), words.map((word) => `\n${word} `)];
  return [
    select(0, `${listed} WITH ORDINALITY AS word (key, n)`, "entries", "", [words.map(ownKey).join("\t")]),
    select(1, shared, cut, "AND strpos(entries, word.line) > 0", [keys.join("\t"), lines.join("\t")]),
  ];
}

/** The same for all words with this beginning; the rows have them with others. */
function lookUpBeginning(corpus: CorpusName, beginning: string, page: Page): readonly Statement[] {
  const { words: isInPage, values } = pageOf(corpus, page);
  const select = (part: number, isKey: string, given: readonly string[]): Statement =>
    statement(
      `SELECT ${part} AS part, conversation_id, block, key, entries AS codes FROM search_blocks
       WHERE ${isKey} ${isInPage}`,
      [...given, ...values],
    );
  const range = "key >= ? AND key < ?";
  const after = `${beginning}\u{10ffff}`;
  const isShort = beginning.length === 1 && beginning < "\u{80}";
  const keys = isShort ? [beginning, after] : [sharedKey(beginning)];
  return [
    select(0, range, [ownKey(beginning), ownKey(after)]),
    select(1, `${isShort ? range : "key = ?"} AND strpos(entries, ?) > 0`, [...keys, `\n${beginning}`]),
  ];
}

interface Wanted {
  readonly corpus: CorpusName;
  readonly word: string;
}

/** The highest ids of one word; `known` are the rows of its first page. */
function* newestOf({ corpus, word }: Wanted, most: number, below: number, known?: readonly Row[]): Script<Ids> {
  const found: number[] = [];
  let rows = known;
  for (let before: Page["before"] = placeAfter(below); ;) {
    rows ??= yield lookUpAll(corpus, [word], { ...firstPage, before });
    const upTo = endOf(rows);
    const whole = rows.filter((row) => upTo === null || !isBefore(placeOf(row), upTo));
    for (const id of sorted(whole.flatMap((row) => idsIn(row)))) if (id < below) found.push(id);
    if (upTo === null || found.length >= most) return found.slice(0, most);
    before = upTo;
    rows = undefined;
  }
}

const placeOf = (row: Row): Page["before"] => [int(row, "conversation_id"), int(row, "block")];
const isBefore = (one: Page["before"], other: Page["before"]): boolean =>
  one[0] < other[0] || (one[0] === other[0] && one[1] < other[1]);

/** The block down to which both statements of a page have returned all they have; null if there is no more. */
function endOf(rows: readonly Row[]): Page["before"] | null {
  const cuts = [0, 1].flatMap((part) => {
    const page = rows.filter((row) => row["part"] === part);
    const last = page.at(-1);
    return last === undefined || page.length < blocksPerRead ? [] : [placeOf(last)];
  });
  return cuts.reduce<Page["before"] | null>((upTo, cut) => (upTo === null || isBefore(upTo, cut) ? cut : upTo), null);
}

/** The first block whose rows all have this id or a higher one. */
const placeAfter = (id: number): Page["before"] => {
  const conversation = Math.floor(id / numbersPerConversation);
  return conversation >= end[0] ? end : [conversation, blockOf(id + rowsPerBlock - 1)];
};

const sorted = (ids: readonly number[]): Ids => [...new Set(ids)].sort((one, other) => other - one);

/** Rows that match, highest id first. */
function* idsOf(corpus: CorpusName, { conversations, all: required, any }: Match): Script<Ids> {
  const ids = yield* idsOfTerms(corpus, [...required, ...any], conversations);
  const needed = ids.slice(0, required.length);
  const others = ids.slice(required.length);
  if (any.length > 0) needed.push(sorted(others.flat()));
  return together(needed);
}

/** For each term, the rows with all words of any of its alternatives. */
function* idsOfTerms(corpus: CorpusName, terms: readonly Term[], among: readonly number[] = []): Script<Ids[]> {
  const page = { ...everything, among };
  const isBeginning = (term: Term, words: readonly string[], at: number): boolean =>
    term.prefix && at === words.length - 1;
  const whole = terms.flatMap((term) =>
    term.alternatives.flatMap((words) => words.filter((_, at) => !isBeginning(term, words, at))),
  );
  const looked = [...new Set(whole)];
  const rows = Map.groupBy(yield lookUpAll(corpus, looked, page), (row) => looked[int(row, "at")] ?? "");
  const found: Ids[] = [];
  for (const term of terms) {
    const alternatives: Ids[] = [];
    for (const words of term.alternatives) {
      const each: Ids[] = [];
      for (const [at, word] of words.entries())
        each.push(
          isBeginning(term, words, at)
            ? yield* idsOfBeginning(corpus, word, page)
            : sorted((rows.get(word) ?? []).flatMap((row) => idsIn(row))),
        );
      alternatives.push(together(each));
    }
    found.push(alternatives.length === 1 ? (alternatives[0] ?? []) : sorted(alternatives.flat()));
  }
  return found;
}

function* idsOfBeginning(corpus: CorpusName, beginning: string, page: Page): Script<Ids> {
  const rows = yield lookUpBeginning(corpus, beginning, page);
  return sorted(rows.flatMap((row) => wordsIn(row, beginning).flatMap(({ codes }) => idsIn(row, codes))));
}

/** The words of a table row that begin with this, each with the places of its rows; some are there several times. */
function wordsIn(row: Row, prefix: string): readonly { readonly word: string; readonly codes: string }[] {
  const codes = text(row, "codes");
  if (row["part"] === 0) return [{ word: text(row, "key").slice(1), codes }];
  return codes.split("\n").flatMap((line) => {
    const [word = "", found = ""] = line.split(" ");
    return word.startsWith(prefix) ? [{ word, codes: found }] : [];
  });
}

/** What all of these have; nothing, if there are none. */
function together(lists: readonly Ids[]): Ids {
  const [first = [], ...others] = lists;
  return others.reduce((found, other) => {
    const held = new Set(other);
    return found.filter((id) => held.has(id));
  }, first);
}
