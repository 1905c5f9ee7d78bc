/**
 * From ids to readings: reads the rows that a lookup picked, most promising first, until there are enough of them, and
 * rows that are not indexed yet. Tells what it did not look at. Each statement is short, and the deadline is looked at
 * between.
 */

import type { SearchRequest } from "../../core/model/store.ts";
import { byRecency, toFound } from "./sources.ts";
import type { Corpus, Found, Scope } from "./sources.ts";
import type { Picked } from "./candidates.ts";
import type { Reading } from "./rank.ts";
import { all } from "../script.ts";
import type { Script } from "../script.ts";
import { isLate } from "./limits.ts";
import type { Deadline } from "./limits.ts";
import type { Query, Term } from "./tokenize.ts";

export interface WordSearch {
  readonly request: SearchRequest;
  readonly query: Query;
  readonly scope: Scope;
  readonly deadline: Deadline;
  /** How many ids are looked up in order to rank them. */
  readonly postings: number;
  /** All terms of the query; readings count them by position. */
  readonly terms: readonly Term[];
  readonly read: (text: string) => Reading;
}

export const holds = ({ terms }: WordSearch, reading: Reading, term: Term): boolean =>
  (reading.counts[terms.indexOf(term)] ?? 0) > 0;

/** A row and what it holds of the query. */
export interface Candidate {
  readonly found: Found;
  readonly reading: Reading;
}

export interface Collected {
  readonly candidates: readonly Candidate[];
  /** How many rows hold each term. */
  readonly holding: ReadonlyMap<Term, number>;
  /** How many ids were looked at, how many there were, and whether the others were not for want of time. */
  readonly looked: number;
  readonly total: number;
  readonly endedLate: boolean;
  /** How many were ranked, and whether older ones were not. */
  readonly ranked: number;
  readonly isCut: boolean;
  /** Rows outside the index that were not read either. */
  readonly unindexed: number;
}

/** Reads rows that were picked through the index, until there are enough, and rows that are not in it. */
export function* collect(
  wanted: WordSearch,
  isEnough: (reading: Reading) => boolean,
  enough: number,
  pick: (corpus: Corpus) => Script<Picked>,
): Script<Collected> {
  const { query, scope, terms } = wanted;
  const keep = (rows: readonly Found[]): readonly Candidate[] =>
    rows
      .filter(({ corpus, id }) => scope.isNear[corpus](id))
      .map((found) => ({ found, reading: wanted.read(found.text) }))
      .filter(({ reading }) => isEnough(reading) && query.phrases.every((phrase) => holds(wanted, reading, phrase)));
  const holding = new Map<Term, number>();
  const candidates: Candidate[] = [];
  let [ranked, looked, total, unindexed, isCut, endedLate] = [0, 0, 0, 0, false, false];
  for (const corpus of scope.corpora) {
    const picked = yield* pick(corpus);
    const indexed = yield* readPicked(corpus, picked, enough, keep, wanted);
    const isByTime = wanted.request.sort === "recency";
    const others = isByTime ? yield* readElsewhere(corpus, picked.match, indexed, keep, wanted) : none;
    const tail = yield* readTail(corpus, keep, wanted);
    for (const term of terms) {
      const inTail = tail.candidates.filter(({ reading }) => holds(wanted, reading, term)).length;
      holding.set(term, (holding.get(term) ?? 0) + (picked.holding.get(term) ?? 0) + inTail);
    }
    candidates.push(...indexed.candidates, ...others.candidates, ...tail.candidates);
    ranked += indexed.ranked + others.ranked;
    looked += indexed.looked + others.looked;
    total += indexed.total + others.total;
    unindexed += tail.unread;
    isCut ||= isByTime ? others.cutBelow > 0 : yield* isUnranked(corpus, indexed, scope);
    endedLate ||= indexed.endedLate || others.endedLate;
  }
  return { candidates, holding, looked, total, endedLate, ranked, isCut, unindexed };
}

/** Whether there may be hits below what was ranked: of those, the filter may leave out all. */
function* isUnranked(
  corpus: Corpus,
  { cutBelow, endedLate }: ReadRows,
  { filter, isNarrowed }: Scope,
): Script<boolean> {
  if (cutBelow === 0 || endedLate) return false;
  return !isNarrowed || (yield* corpus.behind(cutBelow, filter.since, filter)).length > 0;
}

/** Rows of one statement: few at first, and never many that are long. */
const rowsPerRead = 50;
const rowsPerReadMax = 200;
const charactersPerRead = 2 ** 20;

/** Ids whose rows are only checked, in one statement. */
const idsPerSift = 5_000;

interface ReadRows extends Pick<Collected, "candidates" | "looked" | "total" | "endedLate" | "ranked"> {
  /** Below this id there are others that were not looked at, or not ranked; 0 if there are none. */
  readonly cutBelow: number;
}

const none: ReadRows = { candidates: [], looked: 0, total: 0, endedLate: false, ranked: 0, cutBelow: 0 };

/**
 * Reads the most promising rows, until there are enough. Where these are hidden, or of another time, those that are not
 * can be far down the list, or older than all of it. Then ids are sifted before any text is read, all there are if need
 * be: to find nothing among the newest is no answer.
 */
function* readPicked(
  corpus: Corpus,
  picked: Picked,
  enough: number,
  keep: (rows: readonly Found[]) => readonly Candidate[],
  { scope, request, deadline }: WordSearch,
): Script<ReadRows> {
  const candidates: Candidate[] = [];
  let queue = picked.ids(0, 10 * enough);
  let [taken, page, endedLate] = [queue.length, rowsPerRead, false];
  let { cutBelow } = picked;
  let isById = request.sort === "recency";
  for (;;) {
    while (queue.length > 0 && candidates.length < enough && !endedLate) {
      const near = queue.slice(0, page).filter(scope.isNear[corpus.name]);
      const rows = near.length === 0 ? [] : yield* all(corpus.rows(near, scope.filter), toFound);
      candidates.push(...keep(rows));
      queue = queue.slice(page);
      page = nextPage(page, rows);
      endedLate = queue.length > 0 && candidates.length < enough && isLate(deadline);
    }
    const isListed = taken < picked.ranked;
    // Of a ranked list, what was asked for is the best.
    const isEnough = candidates.length >= (isById ? enough : request.limit + 1);
    if (endedLate || isEnough || (!isListed && cutBelow === 0)) break;
    endedLate = isLate(deadline);
    if (endedLate) break;
    let next = picked.ids(taken, taken + idsPerSift);
    if (!isListed) {
      next = yield* corpus.newest(picked.match, idsPerSift, cutBelow);
      cutBelow = next.length < idsPerSift ? 0 : (next.at(-1) ?? 0);
      isById = true;
    }
    taken += next.length;
    const known = new Set(candidates.map(({ found }) => found.id));
    const near = next.filter(scope.isNear[corpus.name]);
    queue = (yield* corpus.sift(near, scope.filter)).filter((id) => !known.has(id));
  }
  const [following] = isById ? [...queue, ...picked.ids(taken, taken + 1)] : [];
  return {
    candidates,
    looked: taken - queue.length,
    total: Math.max(taken, picked.ranked) + cutBelow,
    endedLate,
    ranked: isById ? candidates.length : picked.ranked,
    cutBelow: following === undefined ? cutBelow : following + 1,
  };
}

const nextPage = (page: number, rows: readonly Found[]): number =>
  rows.reduce((sum, found) => sum + found.text.length, 0) > charactersPerRead
    ? Math.max(1, page >> 1)
    : Math.min(rowsPerReadMax, page << 1);

/** How many more are looked at where rows were not stored in the order of their time. */
const newestElsewhereMax = 20_000;

/**
 * Where the newest are asked for, those that were stored last may not be: a conversation imported before another can
 * be the later one. Reads the rows of such conversations that are later than what was found.
 */
function* readElsewhere(
  corpus: Corpus,
  match: string,
  indexed: ReadRows,
  keep: (rows: readonly Found[]) => readonly Candidate[],
  { scope, request, deadline }: WordSearch,
): Script<ReadRows> {
  const newest = newestOf(indexed.candidates, request.limit + 1);
  // With too few of them, all were looked at, or there was no time.
  if (newest.length <= request.limit || indexed.cutBelow === 0 || indexed.endedLate) return none;
  const behind = yield* corpus.behind(indexed.cutBelow, newest[request.limit - 1]?.found.at ?? "", scope.filter);
  if (behind.length === 0) return none;

  const only = JSON.stringify(behind);
  const others = yield* corpus.newest(match, newestElsewhereMax + 1, indexed.cutBelow);
  const total = Math.min(others.length, newestElsewhereMax);
  let candidates: readonly Candidate[] = newest;
  let looked = 0;
  let page = rowsPerRead;
  while (looked < total && !isLate(deadline)) {
    const since = later(scope.filter.since, candidates[request.limit - 1]?.found.at ?? "");
    const next = others.slice(looked, Math.min(looked + page, total));
    const rows = yield* all(corpus.rows(next, { ...scope.filter, only, since }), toFound);
    candidates = newestOf([...candidates, ...keep(rows)], request.limit + 1);
    looked += next.length;
    page = nextPage(page, rows);
  }
  const known = new Set(newest);
  return {
    ...none,
    candidates: candidates.filter((candidate) => !known.has(candidate)),
    looked,
    total,
    ranked: total,
    endedLate: looked < total,
    cutBelow: others[total] ?? 0,
  };
}

const tailMax = 2_000;

/** Reads rows that are not indexed yet, usually few: the newest of each conversation, the latest conversation first. */
function* readTail(
  corpus: Corpus,
  keep: (rows: readonly Found[]) => readonly Candidate[],
  { scope, deadline }: WordSearch,
): Script<{ readonly candidates: readonly Candidate[]; readonly unread: number }> {
  const candidates: Candidate[] = [];
  let [left, unread, page] = [tailMax, 0, rowsPerRead];
  for (const { conversation, indexed, newest } of yield* corpus.unindexed(scope.filter)) {
    const oldest = Math.max(indexed, newest - left);
    let to = newest;
    while (to > oldest && !isLate(deadline)) {
      const from = Math.max(oldest, to - page);
      const rows = yield* all(corpus.numbered(conversation, from + 1, to, scope.filter), toFound);
      candidates.push(...keep(rows));
      left -= to - from;
      to = from;
      page = nextPage(page, rows);
    }
    unread += to - indexed;
  }
  return { candidates, unread };
}

const newestOf = <T extends { readonly found: Found }>(rows: readonly T[], most: number): readonly T[] =>
  rows.toSorted((one, other) => byRecency(one.found, other.found)).slice(0, most);
export const later = (one: string, other: string): string => (one > other ? one : other);
