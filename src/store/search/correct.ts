/**
 * Finds other words for those of a query that nothing in reach contains: the nearest word of the index's vocabulary (a
 * typo), words that it begins, or its parts (a compound). A word that anything in reach contains is left as it is.
 */

import { folded, type Term } from "./query.ts";
import type { WordSearch } from "./read-candidates.ts";
import { createReader } from "./rank.ts";
import type { Corpus } from "./sources.ts";
import { stem } from "./stem.ts";
import type { Script } from "../script.ts";

/** How many words are tried, and how many of the vocabulary are compared with one. */
const wordsMax = 4;
const vocabularyMax = 20_000;
const nearestMax = 6;

/** The terms to search for instead, by the term that was asked for. */
export function* correctTerms(wanted: WordSearch, unknown: readonly Term[]): Script<ReadonlyMap<Term, Term>> {
  const corrected = new Map<Term, Term>();
  const words = unknown.filter(isWord).slice(0, wordsMax);
  yield* expect(wanted, words);
  for (const term of words) {
    if (yield* isThere(wanted, term)) continue;
    const other = yield* otherTerm(wanted, term);
    if (other !== null) corrected.set(term, other);
  }
  return corrected;
}

/** No word is longer, and each place where a compound could be split is looked up. */
const lettersMax = 64;
const lettersMin = 5;
/** One word of letters. A number or an identifier that differs in one character is another one. */
const isWord = ({ text, alternatives, prefix }: Term): boolean =>
  text.length >= lettersMin &&
  text.length <= lettersMax &&
  !prefix &&
  alternatives.every((row) => row.length === 1) &&
  /^\p{L}+$/u.test(text);

function* otherTerm(wanted: WordSearch, term: Term): Script<Term | null> {
  const asked = folded(term.text);
  const stemmed = stem(asked);
  const known = yield* wanted.index.vocabulary(asked.slice(0, asked.length < longWord ? 2 : 3), vocabularyMax);
  const as = (alternatives: Term["alternatives"], prefix = false): Term => ({ ...term, alternatives, prefix });
  const most = asked.length < longWord ? 1 : 2;
  const near = known
    .map((word) => ({ word, steps: Math.min(distance(asked, word, most), distance(stemmed, word, most)) }))
    .filter(({ steps }) => steps <= most)
    .sort((one, other) => one.steps - other.steps || other.word.length - one.word.length)
    .slice(0, nearestMax);
  yield* expect(
    wanted,
    near.map(({ word }) => as([[word]])),
  );
  for (const { word } of near) {
    const other = as([[word]]);
    // Stems of different words are often alike, so the words themselves are compared.
    const written = yield* wordFor(wanted, other);
    if (written !== null && distance(asked, folded(written), most) <= most) return other;
  }
  const begun = as([[asked]], true);
  if (known.some((word) => word.startsWith(asked)) && (yield* wordFor(wanted, begun)) !== null) return begun;
  return yield* compound(wanted, term, as);
}

/** From this many letters on, a word may have two mistakes, or a wrong letter. */
const longWord = 8;
const partMin = 4;

/** Both parts of a compound, which may be joined by an s: `Zahlungseingang`, `filewatcher`. */
function* compound(
  wanted: WordSearch,
  { text }: Term,
  as: (alternatives: Term["alternatives"]) => Term,
): Script<Term | null> {
  const word = folded(text);
  const places = Array.from(
    { length: Math.max(0, word.length - 2 * partMin + 1) },
    (_, at) => word.length - partMin - at,
  );
  const splits = places.flatMap((at) => {
    const firsts = [word.slice(0, at), ...(word.charAt(at - 1) === "s" ? [word.slice(0, at - 1)] : [])];
    return firsts.map((first) => [stem(first), stem(word.slice(at))] as const);
  });
  yield* expect(wanted, [as(splits.flat().map((part) => [part]))]);
  for (const [first, second] of splits) {
    if (!(yield* isThere(wanted, as([[first]]))) || !(yield* isThere(wanted, as([[second]])))) continue;
    return as([[first, second], [first], [second]]);
  }
  return null;
}

const expect = ({ index, scope }: WordSearch, terms: readonly Term[]): Script<void> =>
  index.expect(
    scope.corpora.map(({ name }) => name),
    terms,
    scope.named,
  );

/** The newest row in reach that contains a term, as far as rows are indexed. */
function* newestWith(
  { index, scope }: WordSearch,
  term: Term,
): Script<{ readonly corpus: Corpus; readonly id: number } | null> {
  const match = { conversations: scope.named, all: [term], any: [] };
  for (const corpus of scope.corpora) {
    // The index knows neither roles nor times, so more rows are looked at than one.
    const ids = yield* index.newest(corpus.name, match, scope.isNarrowed ? siftedMax : 1);
    const [id] = scope.isNarrowed ? yield* corpus.sift(ids, scope.filter) : ids;
    if (id !== undefined) return { corpus, id };
  }
  return null;
}

/** A word with this many newer uses outside of what is searched counts as not there. */
const siftedMax = 500;

function* isThere(wanted: WordSearch, term: Term): Script<boolean> {
  return (yield* newestWith(wanted, term)) !== null;
}

/** A term as it is written in reach; null if it is not there. */
function* wordFor(wanted: WordSearch, term: Term): Script<string | null> {
  const newest = yield* newestWith(wanted, term);
  if (newest === null) return null;
  const [row] = yield* newest.corpus.rows([newest.id], wanted.scope.filter);
  const [match] = row === undefined ? [] : createReader([term])(row.text).matches;
  return row === undefined || match === undefined ? null : row.text.slice(match.from, match.to);
}

/**
 * How many letters to add, to drop or to swap with the next one, up to `most`; more than that is `most + 1`. A wrong
 * letter counts twice: most words that differ in one letter are different words.
 */
export function distance(one: string, other: string, most: number): number {
  if (Math.abs(one.length - other.length) > most) return most + 1;
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (let at = 1; at <= one.length; at++) {
    const next = [at];
    for (let to = 1; to <= other.length; to++) {
      const isSame = one[at - 1] === other[to - 1];
      const isSwapped = at > 1 && to > 1 && one[at - 1] === other[to - 2] && one[at - 2] === other[to - 1];
      const kept = isSame ? (row[to - 1] ?? 0) : Infinity;
      const swapped = isSwapped ? (before[to - 2] ?? 0) + 1 : Infinity;
      next.push(Math.min(kept, swapped, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1));
    }
    if (Math.min(...next) > most) return most + 1;
    [before, row] = [row, next];
  }
  return row[other.length] ?? 0;
}
