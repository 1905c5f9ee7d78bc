/**
 * Picks the rows worth reading for a query, from the index alone. Looks up the rarest words first and ranks rows by the
 * weights of the words they contain. Rough, but many times faster than FTS5's ranking; the best rows are then scored
 * from their text.
 */

import type { Match, Probed, SearchIndex } from "./indexing.ts";
import type { Corpus, Scope } from "./sources.ts";
import { weightOf } from "./rank.ts";
import type { Script } from "../script.ts";
import type { Query, Term } from "./query.ts";

/** Rows worth reading, most promising first: how many, and the ids of a part of the list. */
export interface Picked {
  readonly ranked: number;
  readonly ids: (from: number, to: number) => readonly number[];
  /** How many rows contain each term. */
  readonly holding: ReadonlyMap<Term, number>;
  /** What all of them match. Rows below this id match it too but were left out; 0 if none were. */
  readonly match: Match;
  readonly cutBelow: number;
}

/** How many ids one search fetches: about 20 ms of them. */
export const postingsMax = 200_000;
/** How many of the best are sorted at first. The others are needed only if a filter excludes these. */
const promisingMax = 4_000;
/** While fewer rows than these were found, even a word that is everywhere is looked up. */
const fewRows = 400;
const probeRows = 128;

/** What every hit of a query matches: its conversation, and the phrases. */
export const requiredBy = ({ phrases }: Query, { named }: Scope): Match => ({
  conversations: named,
  all: phrases,
  any: [],
});

export const withTerms = (match: Match, ...terms: readonly Term[]): Match => ({
  ...match,
  all: [...match.all, ...terms],
});

/** Rows that contain all phrases and any of the words. Of frequent words only the highest ids, `most` in all. */
export function* lookUp(
  { index, query, scope, postings: most }: LookUp,
  { name, rowsFrom }: Pick<Corpus, "name" | "rowsFrom">,
): Script<Picked> {
  const required = requiredBy(query, scope);
  const stored = scope.stored[name];
  const holding = new Map<Term, number>();
  const postings: Posting[] = [];
  let [found, left, cutBelow] = [0, most, 0];
  const add = (ids: readonly number[], rows: number, terms: readonly Term[]): void => {
    found += ids.length;
    postings.push({ ids, weight: weightOf(rows, scope.rows) });
    for (const term of terms) holding.set(term, rows);
  };

  if (query.phrases.length > 0) {
    const ids = yield* index.newest(name, required, left);
    if (ids.length === left) cutBelow = ids.at(-1) ?? 0;
    left -= ids.length;
    add(ids, ids.length, query.phrases);
  }
  const words = [...query.words, ...query.pieces];
  const isRestricted = scope.named.length + query.phrases.length > 0;
  const probed = yield* index.probe(name, words, probeRows, isRestricted);
  if (isRestricted) yield* index.expect([name], words, scope.named);
  const from = yield* rowsFrom(probed.flatMap(({ ids, isCut }) => (isCut ? ids.slice(-1) : [])));
  const probes = words.map((term, at): Probe => {
    const { ids, isCut } = probed[at] ?? nothingProbed;
    // A word of which there are more is taken to be as frequent in the other rows.
    const rows = isCut && ids.length > 0 ? (ids.length * stored) / (from.shift() || stored) : ids.length;
    return { term, newest: ids, isCut, rows: Math.round(rows) };
  });
  for (const { term, newest, isCut, rows } of probes.sort((one, other) => one.rows - other.rows)) {
    const match = withTerms(required, term);
    // In one conversation, a word costs no more than the conversation has rows.
    const cost = Math.min(rows, scope.rows);
    if (!isCut && (newest.length === 0 || !isRestricted)) add(newest, rows, [term]);
    else if (cost <= left) {
      const ids = yield* index.holding(name, match);
      left -= Math.max(cost, ids.length);
      add(ids, ids.length, [term]);
    } else {
      const share = found < fewRows ? left : 0;
      const ids = share > 0 ? yield* index.newest(name, match, share) : [];
      if (ids.length === share) cutBelow = Math.max(cutBelow, ids.at(-1) ?? Number.MAX_SAFE_INTEGER);
      left -= ids.length;
      add(ids, ids.length < share ? ids.length : Math.round((rows * scope.rows) / stored), [term]);
    }
  }
  const any = query.phrases.length > 0 ? [] : words;
  return { ...rankRoughly(postings), holding, match: { ...required, any }, cutBelow };
}

interface LookUp {
  readonly index: SearchIndex;
  readonly query: Query;
  readonly scope: Scope;
  /** How many ids are fetched to be ranked. */
  readonly postings: number;
}

const nothingProbed: Probed = { ids: [], isCut: false };

interface Probe {
  readonly term: Term;
  readonly newest: readonly number[];
  readonly isCut: boolean;
  /** About how many rows contain it, in all conversations. */
  readonly rows: number;
}

/** The rows that contain a word, in order of their ids, and what containing it is worth. */
interface Posting {
  readonly ids: readonly number[];
  readonly weight: number;
}

/** Ids in ascending order, and the sum of the weights of each. Ids are too far apart to be places of an array. */
interface Sums {
  readonly ids: Float64Array;
  readonly sums: Float32Array;
}

const placesMax = 2 ** 32;
const sumSteps = 2 ** 20;

/** Ids by the sum of the weights of the words their rows contain, highest id first among equals. */
function rankRoughly(postings: readonly Posting[]): Pick<Picked, "ids" | "ranked"> {
  const total = postings.reduce((sum, { weight }) => sum + weight, 0);
  let lists = postings.map(({ ids, weight }): Sums => {
    const ascending = Float64Array.from(ids);
    if ((ascending[0] ?? 0) > (ascending.at(-1) ?? 0)) ascending.reverse();
    return { ids: ascending, sums: new Float32Array(ids.length).fill(weight / total) };
  });
  while (lists.length > 1)
    lists = lists.flatMap((list, at) => (at % 2 === 1 ? [] : [addSums(list, lists[at + 1] ?? noSums)]));
  const { ids, sums } = lists[0] ?? noSums;
  // The sum, coarsely, in front of the place of the id, so that sorting compares numbers.
  const keys = Float64Array.from(sums, (sum, place) => Math.round(sum * sumSteps) * placesMax + place);
  let sorted = largest(keys, promisingMax).slice().sort().reverse();
  return {
    ranked: ids.length,
    ids(from, to) {
      if (to > sorted.length && sorted.length < ids.length) sorted = keys.sort().reverse();
      return Array.from(sorted.subarray(from, to), (key) => ids[key % placesMax] ?? 0);
    },
  };
}

const noSums: Sums = { ids: new Float64Array(), sums: new Float32Array() };

function addSums(one: Sums, other: Sums): Sums {
  if (other.ids.length === 0) return one;
  const ids = new Float64Array(one.ids.length + other.ids.length);
  const sums = new Float32Array(ids.length);
  let [length, left, right] = [0, 0, 0];
  while (left < one.ids.length || right < other.ids.length) {
    const first = one.ids[left] ?? Infinity;
    const second = other.ids[right] ?? Infinity;
    ids[length] = first < second ? first : second;
    sums[length++] =
      (first <= second ? (one.sums[left++] ?? 0) : 0) + (second <= first ? (other.sums[right++] ?? 0) : 0);
  }
  return { ids: ids.subarray(0, length), sums: sums.subarray(0, length) };
}

/** So many of the largest of distinct numbers, in no order. Quickselect, because sorting them all takes too long. */
function largest(numbers: Float64Array<ArrayBuffer>, most: number): Float64Array<ArrayBuffer> {
  const smaller = numbers.length - most;
  if (smaller <= 0) return numbers;
  let low = 0;
  let high = numbers.length - 1;
  while (low < high) {
    const pivot = numbers[(low + high) >> 1] ?? 0;
    let left = low;
    let right = high;
    while (left <= right) {
      while ((numbers[left] ?? 0) < pivot) left += 1;
      while ((numbers[right] ?? 0) > pivot) right -= 1;
      if (left > right) break;
      const swapped = numbers[left] ?? 0;
      numbers[left++] = numbers[right] ?? 0;
      numbers[right--] = swapped;
    }
    if (smaller <= right) high = right;
    else if (smaller >= left) low = left;
    else break;
  }
  return numbers.subarray(smaller);
}
