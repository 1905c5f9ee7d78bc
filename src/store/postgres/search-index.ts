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
    const rows = yield words.flatMap((word, at) =>
      word === null ? [] : lookUp({ corpus, word }, { ...firstPage, at }),
    );
    const byTerm = Map.groupBy(rows, (row) => int(row, "at"));
    const found: Ids[] = [];
    for (const [at, term] of terms.entries()) {
      const word = words[at] ?? null;
      const known = byTerm.get(at) ?? [];
      if (word !== null) found.push(yield* newestOf({ corpus, word }, most, highest, known));
      else found.push((yield* idsOf(corpus, { conversations: [], all: [term], any: [] })).slice(0, most));
    }
    return found;
  },
  *vocabulary(prefix, most) {
    const rows = yield lookUp(
      { corpus: "messages", word: prefix, isPrefix: true },
      { ...firstPage, limit: blocksOfVocabulary },
    );
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

interface Wanted {
  readonly corpus: CorpusName;
  readonly word: string;
  readonly isPrefix?: boolean;
  /** All, if none is named. */
  readonly among?: readonly number[];
}

/** A part of the table rows that have a word, newest block first. `at` comes back with each. */
interface Page {
  readonly at: number;
  /** Conversation and block. */
  readonly before: readonly [number, number];
  readonly limit: number;
}

/** How many blocks are read at a time. A word that is everywhere needs one, a rare word needs all. */
const blocksPerRead = 64;
const blocksOfVocabulary = 512;
const end = [2 ** 28, 0] as const;
const firstPage: Page = { at: 0, before: end, limit: blocksPerRead };
const everything: Page = { at: 0, before: end, limit: highest };

/** Two statements: for the table rows that words have for themselves, and for those that they share. */
function lookUp(
  { corpus, word, isPrefix = false, among = [] }: Wanted,
  { at, before, limit }: Page,
): readonly Statement[] {
  const line = `\n${word}${isPrefix ? "" : " "}`;
  const isShort = isPrefix && word.length === 1 && word < "\u{80}";
  const inScope = among.length === 0 ? "" : "AND conversation_id IN (SELECT value FROM numbers_in(?))";
  const select = (codes: string, isKey: string, given: readonly string[], part: number): Statement =>
    statement(
      `SELECT ${part} AS part, ? AS at, conversation_id, block, key, ${codes} AS codes FROM search_blocks
       WHERE ${isKey} AND corpus = '${corpus.charAt(0)}' ${inScope} AND (conversation_id, block) < (?, ?)
       ORDER BY conversation_id DESC, block DESC LIMIT ?`,
      [at, ...given, ...(among.length === 0 ? [] : [among]), ...before, limit],
    );
  const cut = `(SELECT string_agg(split_part(piece, chr(10), 1), '') FROM string_to_table(entries, ?) WITH ORDINALITY AS p (piece, n)
    WHERE n > 1)`;
  const range = "key >= ? AND key < ?";
  const own = isPrefix
    ? select("entries", range, [ownKey(word), ownKey(`${word}\u{10ffff}`)], 0)
    : select("entries", "key = ?", [ownKey(word)], 0);
  if (!isPrefix) return [own, select(cut, "key = ? AND strpos(entries, ?) > 0", [line, sharedKey(word), line], 1)];
  const keys = isShort ? [word, `${word}\u{10ffff}`] : [sharedKey(word)];
  return [own, select("entries", `${isShort ? range : "key = ?"} AND strpos(entries, ?) > 0`, [...keys, line], 1)];
}

/** The highest ids of one word; `known` are the rows of its first page. */
function* newestOf(wanted: Wanted, most: number, below: number, known?: readonly Row[]): Script<Ids> {
  const found: number[] = [];
  let rows = known;
  for (let before: Page["before"] = placeAfter(below); ;) {
    rows ??= yield lookUp(wanted, { ...firstPage, before });
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
  let found: Ids | null = null;
  for (const term of required) found = both(found, yield* idsOfTerm(corpus, term, conversations));
  if (any.length === 0) return found ?? [];
  let others: Ids = [];
  for (const term of any) others = sorted([...others, ...(yield* idsOfTerm(corpus, term, conversations))]);
  return both(found, others);
}

/** Rows with all words of any of the alternatives. */
function* idsOfTerm(corpus: CorpusName, term: Term, among: readonly number[]): Script<Ids> {
  let found: Ids = [];
  for (const words of term.alternatives) {
    let together: Ids | null = null;
    for (const [at, word] of words.entries()) {
      const isPrefix = term.prefix && at === words.length - 1;
      const rows = yield lookUp({ corpus, word, isPrefix, among }, everything);
      const ids = isPrefix
        ? rows.flatMap((row) => wordsIn(row, word).flatMap(({ codes }) => idsIn(row, codes)))
        : rows.flatMap((row) => idsIn(row));
      together = both(together, sorted(ids));
    }
    found = found.length === 0 ? (together ?? []) : sorted([...found, ...(together ?? [])]);
  }
  return found;
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

function both(one: Ids | null, other: Ids): Ids {
  if (one === null) return other;
  const held = new Set(other);
  return one.filter((id) => held.has(id));
}
