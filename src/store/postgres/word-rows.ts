/**
 * Reads table rows of the search index (index-rows.ts): those of many words at once, each word once in a search. Ids are
 * in descending order.
 */

import { int, statement, text, type Row, type Script, type Statement } from "../script.ts";
import type { CorpusName } from "../search/sources.ts";
import { numbersPerConversation } from "../../core/model/types.ts";
import { blockOf, hasManyKeys, idsIn, ownKey, rowsPerBlock, sharedKey } from "./index-rows.ts";

export type Ids = readonly number[];

/** What is known of a word so far. */
interface Known {
  readonly ids: Ids;
  /** The block with whose lowest id it ends; null if that is all. */
  readonly upTo: Place | null;
}

export interface WordRows {
  /** Reads these words now, so that nobody waits for each of them. */
  expect(corpus: CorpusName, words: readonly string[], among: readonly number[]): Script<void>;
  /** The ids of each word in the newest blocks. */
  sample(corpus: CorpusName, words: readonly string[]): Script<ReadonlyMap<string, Ids>>;
  /** The highest ids of a word below a given one. */
  newest(wanted: Wanted, most: number, below: number): Script<Ids>;
  /** All ids of each word. */
  all(corpus: CorpusName, words: readonly string[], among: readonly number[]): Script<ReadonlyMap<string, Ids>>;
}

export interface Wanted {
  readonly corpus: CorpusName;
  readonly word: string;
  /** Only in these conversations; in all, if none is named. */
  readonly among: readonly number[];
}

/** For one search: the rows must not change meanwhile. */
export function createWordRows(): WordRows {
  const memory = new Map<string, Known>();
  const keyOf = ({ corpus, word, among }: Wanted): string => `${corpus} ${word} ${among.join()}`;
  function* read(corpus: CorpusName, words: readonly string[], page: Page): Script<void> {
    if (words.length === 0) return;
    const rows = Map.groupBy(yield lookUp(corpus, words, page), (row) => int(row, "at"));
    for (const [at, word] of words.entries())
      memory.set(keyOf({ corpus, word, among: page.among }), knownOf(rows.get(at) ?? [], page));
  }
  const unknown = (corpus: CorpusName, words: readonly string[], among: readonly number[]): readonly string[] =>
    [...new Set(words)].filter((word) => !memory.has(keyOf({ corpus, word, among })));
  const rows: WordRows = {
    expect: (corpus, words, among) => read(corpus, unknown(corpus, words, among), { ...firstPage, among }),
    *sample(corpus, words) {
      const wanted = [...new Set(words)];
      const found = Map.groupBy(yield lookUp(corpus, wanted, samplePage), (row) => int(row, "at"));
      return new Map(wanted.map((word, at) => [word, inOrder(found.get(at) ?? [])]));
    },
    *newest(wanted, most, below) {
      yield* rows.expect(wanted.corpus, [wanted.word], wanted.among);
      let found: number[] = [];
      let known = memory.get(keyOf(wanted));
      while (known !== undefined) {
        found = [...found, ...known.ids.filter((id) => id < below)];
        if (known.upTo === null || found.length >= most) break;
        const page = { ...firstPage, before: nearest(known.upTo, placeAfter(below)), among: wanted.among };
        known = knownOf(yield lookUp(wanted.corpus, [wanted.word], page), page);
      }
      return found.slice(0, most);
    },
    *all(corpus, words, among) {
      const isWhole = (word: string): boolean => memory.get(keyOf({ corpus, word, among }))?.upTo === null;
      const partly = [...new Set(words)].filter((word) => !isWhole(word));
      yield* read(corpus, partly, { ...everything, among });
      return new Map(words.map((word) => [word, memory.get(keyOf({ corpus, word, among }))?.ids ?? []]));
    },
  };
  return rows;
}

/** Conversation and block. */
type Place = readonly [number, number];

/** A part of the table rows that have a word, newest block first. */
interface Page {
  readonly before: Place;
  readonly limit: number;
  readonly among: readonly number[];
  /** How many rows that words share are looked through for each word; all that are needed, if not given. */
  readonly looked?: number;
}

/** How many blocks are read at a time. A word that is everywhere needs one, a rare word needs all. */
const blocksPerRead = 64;
const end = [2 ** 28, 0] as const;
const firstPage: Page = { before: end, limit: blocksPerRead, among: [] };
export const everything: Page = { before: end, limit: Number.MAX_SAFE_INTEGER, among: [] };

/** In a database of many conversations, a rare word is in few of the blocks, and most of them would be looked through. */
export const sampleBlocks = 128;
const samplePage: Page = { ...firstPage, looked: sampleBlocks };

/** The condition and the end of a statement that reads a page. */
function pageOf(corpus: CorpusName, { before, limit, among }: Page) {
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
function lookUp(corpus: CorpusName, words: readonly string[], page: Page): readonly Statement[] {
  const { words: isInPage, values } = pageOf(corpus, page);
  const select = (lists: readonly string[], given: string, found: string, more: readonly number[] = []): Statement =>
    statement(
      `SELECT ${lists.length - 1} AS part, word.n - 1 AS at, found.* FROM ${given} CROSS JOIN LATERAL (${found}) AS found`,
      [...lists, ...more, ...values],
    );
  const listed = "string_to_table(?, chr(9))";
  const cut = `(SELECT string_agg(split_part(piece, chr(10), 1), '')
    FROM string_to_table(entries, word.line) WITH ORDINALITY AS cut (piece, n) WHERE n > 1)`;
  const shared = `ROWS FROM (${listed}, ${listed}) WITH ORDINALITY AS word (key, line, n)`;
  const [keys, lines] = [words.map(sharedKey), words.map((word) => `\n${word} `)];
  const shown = "SELECT conversation_id, block,";
  const isOf = `key = word.key AND corpus = '${corpus.charAt(0)}'`;
  const newest = `(SELECT * FROM search_blocks WHERE ${isOf} ORDER BY conversation_id DESC, block DESC LIMIT ?) AS search_blocks`;
  const from = page.looked === undefined ? "search_blocks" : newest;
  return [
    select(
      [words.map(ownKey).join("\t")],
      `${listed} WITH ORDINALITY AS word (key, n)`,
      `${shown} entries AS codes FROM search_blocks WHERE key = word.key ${isInPage}`,
    ),
    select(
      [keys.join("\t"), lines.join("\t")],
      shared,
      `${shown} ${cut} AS codes FROM ${from} WHERE key = word.key AND strpos(entries, word.line) > 0 ${isInPage}`,
      page.looked === undefined ? [] : [page.looked],
    ),
  ];
}

/** Table rows with words that have this beginning; they may have others, too. */
export function lookUpBeginning(corpus: CorpusName, beginning: string, page: Page): readonly Statement[] {
  const { words: isInPage, values } = pageOf(corpus, page);
  const select = (part: number, isKey: string, given: readonly string[]): Statement =>
    statement(
      `SELECT ${part} AS part, conversation_id, block, key, entries AS codes FROM search_blocks
       WHERE ${isKey} ${isInPage}`,
      [...given, ...values],
    );
  const range = "key >= ? AND key < ?";
  const after = `${beginning}\u{10ffff}`;
  const isShort = hasManyKeys(beginning);
  const keys = isShort ? [beginning, after] : [sharedKey(beginning)];
  return [
    select(0, range, [ownKey(beginning), ownKey(after)]),
    select(1, `${isShort ? range : "key = ?"} AND strpos(entries, ?) > 0`, [...keys, `\n${beginning}`]),
  ];
}

/** What the rows of a page say of one word: down to the block up to which both statements have returned all they have. */
function knownOf(rows: readonly Row[], { limit }: Page): Known {
  const cuts = [0, 1].flatMap((part) => {
    const page = rows.filter((row) => row["part"] === part);
    const last = page.at(-1);
    return last === undefined || page.length < limit ? [] : [placeOf(last)];
  });
  const upTo = cuts.reduce<Place | null>((until, cut) => (until === null || isBefore(until, cut) ? cut : until), null);
  const whole = upTo === null ? rows : rows.filter((row) => !isBefore(placeOf(row), upTo));
  return { ids: inOrder(whole), upTo };
}

const placeOf = (row: Row): Place => [int(row, "conversation_id"), int(row, "block")];
const isBefore = (one: Place, other: Place): boolean => one[0] < other[0] || (one[0] === other[0] && one[1] < other[1]);
const nearest = (one: Place, other: Place): Place => (isBefore(one, other) ? one : other);

/** The first block whose rows all have this id or a higher one. */
const placeAfter = (id: number): Place => {
  const conversation = Math.floor(id / numbersPerConversation);
  return conversation >= end[0] ? end : [conversation, blockOf(id + rowsPerBlock - 1)];
};

/** The ids in the codes of table rows. A row has each of its ids once, mostly in ascending order. */
export function inOrder(rows: readonly Row[], codesOf = (row: Row): string => text(row, "codes")): Ids {
  const ids = rows.flatMap((row) => idsIn(row, codesOf(row)));
  return sorted(ids);
}

export function sorted(ids: readonly number[]): Ids {
  const ordered = Float64Array.from(ids).sort();
  const found: number[] = [];
  for (let at = ordered.length - 1; at >= 0; at--) if (ordered[at] !== found.at(-1)) found.push(ordered[at] as number);
  return found;
}
