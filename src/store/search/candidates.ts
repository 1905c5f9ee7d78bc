/**
 * Which rows are worth reading for a query, by the index alone: words are looked up rarest first, and rows are ranked
 * by the weights of the words they hold. Rough, and many times faster than ranking by FTS5 itself; the best are then
 * scored from their text.
 */

import { allOf, anyOf } from "./sources.ts";
import type { Corpus, Scope } from "./sources.ts";
import { weightOf } from "./rank.ts";
import type { Script } from "../script.ts";
import type { Query, Term } from "./tokenize.ts";

/** Rows worth reading, most promising first: how many, and the ids from one place of the list to another. */
export interface Picked {
  readonly ranked: number;
  readonly ids: (from: number, to: number) => readonly number[];
  /** How many rows hold each term. */
  readonly holding: ReadonlyMap<Term, number>;
  /** What all of them match, and others below this id do too, that were left out; 0 if none were. */
  readonly match: string;
  readonly cutBelow: number;
}

/** How many ids of rows are fetched for one search: about 20 ms of them. */
export const postingsMax = 200_000;
/** Of so many of the best, some are read. The others can be needed when a filter leaves rows out. */
const promisingMax = 4_000;
/** With fewer rows than these, even a word that is everywhere is worth a look. */
const fewRows = 400;
const probeRows = 128;

/** What every hit of a query matches: its conversation, and the phrases. */
export const requiredBy = (query: Query, scope: Scope): readonly string[] => [
  ...scope.matches,
  ...query.phrases.map((phrase) => phrase.match),
];

/** Rows that hold all the phrases and any of the words; of frequent words the newest, so many in all. */
export function* lookUp(corpus: Corpus, query: Query, scope: Scope, most: number): Script<Picked> {
  const required = requiredBy(query, scope);
  const newestId = yield* corpus.newestId();
  const holding = new Map<Term, number>();
  const postings: Posting[] = [];
  let found = 0;
  let left = most;
  let cutBelow = 0;
  const add = (ids: readonly number[], rows: number, terms: readonly Term[]): void => {
    found += ids.length;
    postings.push({ ids, weight: weightOf(rows, scope.rows) });
    for (const term of terms) holding.set(term, rows);
  };

  if (query.phrases.length > 0) {
    const ids = yield* corpus.newest(allOf(required), left);
    if (ids.length === left) cutBelow = ids.at(-1) ?? 0;
    left -= ids.length;
    add(ids, ids.length, query.phrases);
  }
  const words = [...query.words, ...query.pieces];
  for (const { term, newest, rows } of yield* probe(corpus, words, newestId)) {
    const match = allOf([...required, term.match]);
    // In one conversation, a word costs no more than the conversation has rows.
    const cost = Math.min(rows, scope.rows);
    if (newest.length === 0 || (newest.length < probeRows && required.length === 0)) add(newest, rows, [term]);
    else if (cost <= left) {
      const ids = yield* corpus.holding(match);
      left -= Math.max(cost, ids.length);
      add(ids, ids.length, [term]);
    } else {
      const share = found < fewRows ? left : 0;
      const ids = share > 0 ? yield* corpus.newest(match, share) : [];
      if (ids.length === share) cutBelow = Math.max(cutBelow, ids.at(-1) ?? newestId + 1);
      left -= ids.length;
      add(ids, ids.length < share ? ids.length : Math.round((rows * scope.rows) / newestId), [term]);
    }
  }
  const some = query.phrases.length > 0 ? [] : [anyOf(words.map((word) => word.match))];
  return { ...rankRoughly(postings), holding, match: allOf([...required, ...some]), cutBelow };
}

interface Probe {
  readonly term: Term;
  readonly newest: readonly number[];
  /** About how many rows hold it, in all conversations. */
  readonly rows: number;
}

/** How frequent words are, rarest first. A frequent one is taken to be as frequent in older rows as in the newest. */
function* probe(corpus: Corpus, terms: readonly Term[], newestId: number): Script<readonly Probe[]> {
  const probes: Probe[] = [];
  for (const term of terms) {
    const newest = yield* corpus.newest(term.match, probeRows);
    const oldest = newest.length < probeRows ? undefined : newest.at(-1);
    const rows = oldest === undefined ? newest.length : Math.round((probeRows * newestId) / (newestId - oldest + 1));
    probes.push({ term, newest, rows });
  }
  return probes.sort((one, other) => one.rows - other.rows);
}

// ── Ranking by id ────────────────────────────────────────────────────────────────────────────────────────────────────

/** The rows that hold a word, and what holding it is worth. */
interface Posting {
  readonly ids: readonly number[];
  readonly weight: number;
}

const idRange = 2 ** 32;
const sumSteps = 2 ** 20;

/** Ids by the sum of the weights of the words they hold, newest first among equals; and how many there are in all. */
function rankRoughly(postings: readonly Posting[]): Pick<Picked, "ids" | "ranked"> {
  const ends = postings.flatMap(({ ids }) => [ids[0] ?? 0, ids.at(-1) ?? 0]).filter((id) => id > 0);
  const oldest = Math.min(...ends, idRange);
  const sums = new Float32Array(Math.max(...ends, oldest) - oldest + 1);
  const total = postings.reduce((sum, { weight }) => sum + weight, 0);
  const distinct = new Float64Array(postings.reduce((sum, { ids }) => sum + ids.length, 0));
  let ranked = 0;
  for (const { ids, weight } of postings) {
    for (const id of ids) {
      const sum = sums[id - oldest] ?? 0;
      if (sum === 0) distinct[ranked++] = id;
      sums[id - oldest] = sum + weight / total;
    }
  }
  // The sum, coarsely, in front of the id, so that sorting compares numbers.
  const keys = distinct.subarray(0, ranked).map((id) => Math.round((sums[id - oldest] ?? 0) * sumSteps) * idRange + id);
  const best = largest(keys, promisingMax).slice().sort().reverse();
  let sorted = best;
  return {
    ranked,
    ids(from, to) {
      if (to > sorted.length && sorted.length < ranked) sorted = keys.sort().reverse();
      return Array.from(sorted.subarray(from, to), (key) => key % idRange);
    },
  };
}

/** So many of the largest of distinct numbers, in no order. Quickselect: to sort them all would take too long. */
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
