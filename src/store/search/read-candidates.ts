/**
 * Reads the rows that a lookup picked, most promising first, until there are enough, and rows that are not indexed yet.
 * Reports what it did not read. Each statement is short, and the deadline is checked in between.
 */

import type { SearchCaveat, SearchRequest } from "../../core/model/store.ts";
import type { SearchIndex } from "./indexing.ts";
import { byRecency, namedMax, toSearchedRow } from "./sources.ts";
import type { Corpus, Scope, SearchedRow } from "./sources.ts";
import { rowsIn, takeSpans } from "./spans.ts";
import type { Picked } from "./candidates.ts";
import type { Reading } from "./rank.ts";
import { all, atOnce, type Script } from "../script.ts";
import { isLate, type Deadline } from "./limits.ts";
import type { Query, Term } from "./query.ts";

export interface WordSearch {
  readonly index: SearchIndex;
  /** An index of another version has other terms: all rows are read instead. */
  readonly isUsable: boolean;
  readonly request: SearchRequest;
  /** All wordings as one query, and each by itself, the pattern first. */
  readonly query: Query;
  readonly wordings: readonly Query[];
  readonly scope: Scope;
  readonly deadline: Deadline;
  /** How many ids are fetched to be ranked. */
  readonly postings: number;
  /** All terms of all wordings; readings count them by position. */
  readonly terms: readonly Term[];
  readonly read: (text: string) => Reading;
}

export const holds = ({ terms }: WordSearch, reading: Reading, term: Term): boolean =>
  (reading.counts[terms.indexOf(term)] ?? 0) > 0;

/** How much a word counts that a model wrote for a message, relative to the message's own. */
const searchWordShare = 0.5;

/** What a row contains. Words for search count in part; what is shown, and where, is the row's own text. */
export function readRow({ read }: Pick<WordSearch, "read">, { text, words }: SearchedRow): Reading {
  const reading = read(text);
  if (words === null) return reading;
  const more = read(words).counts;
  return { ...reading, counts: reading.counts.map((count, term) => count + searchWordShare * (more[term] ?? 0)) };
}

/** A row, and what it contains of the query. */
export interface Candidate {
  readonly row: SearchedRow;
  readonly reading: Reading;
}

export type Scored = Candidate & { readonly score: number };

export interface WordHits {
  /** In order. */
  readonly found: readonly Scored[];
  readonly collected: Collected;
  /** Words that were not found; empty if each was found but not all together; null if none is worth reporting. */
  readonly missing: readonly Term[] | null;
  /** What each term is worth. */
  readonly weights: readonly number[];
  /** What else was left out. */
  readonly caveats?: readonly SearchCaveat[];
}

export interface Collected {
  readonly candidates: readonly Candidate[];
  /** How many rows contain each term. */
  readonly holding: ReadonlyMap<Term, number>;
  /** How many ids were looked at, how many there were, and whether time ran out before the others. */
  readonly looked: number;
  readonly total: number;
  readonly endedLate: boolean;
  /** How many were ranked, and whether others were not. */
  readonly ranked: number;
  readonly isCut: boolean;
  /** Rows outside the index that were not read either. */
  readonly unindexed: number;
}

/** Which rows to collect: how to pick them, which readings count, and how many are enough. */
export interface Collecting {
  readonly pick: (corpus: Corpus) => Script<Picked>;
  readonly isMatch: (reading: Reading) => boolean;
  readonly enough: number;
}

/** One corpus of a search. */
interface CorpusSearch extends WordSearch {
  readonly corpus: Corpus;
  readonly enough: number;
  readonly keep: (rows: readonly SearchedRow[]) => readonly Candidate[];
}

export function* collect(wanted: WordSearch, { pick, isMatch, enough }: Collecting): Script<Collected> {
  const { query, scope, terms } = wanted;
  const keep = (rows: readonly SearchedRow[]): readonly Candidate[] =>
    rows
      .filter(({ corpus, id }) => scope.isNear[corpus](id))
      .map((row) => ({ row, reading: readRow(wanted, row) }))
      .filter(({ reading }) => isMatch(reading) && query.phrases.every((phrase) => holds(wanted, reading, phrase)));
  const holding = new Map<Term, number>();
  const candidates: Candidate[] = [];
  let [ranked, looked, total, unindexed, isCut, endedLate] = [0, 0, 0, 0, false, false];
  const searches = scope.corpora.map((corpus): CorpusSearch => ({ ...wanted, corpus, enough, keep }));
  for (const found of yield* atOnce(searches.map((search) => collectFrom(search, pick)))) {
    const { picked, indexed, others, tail } = found;
    for (const term of terms) {
      const inTail = tail.candidates.filter(({ reading }) => holds(wanted, reading, term)).length;
      holding.set(term, (holding.get(term) ?? 0) + (picked.holding.get(term) ?? 0) + inTail);
    }
    candidates.push(...indexed.candidates, ...others.candidates, ...tail.candidates);
    ranked += indexed.ranked + others.ranked;
    looked += indexed.looked + others.looked;
    total += indexed.total + others.total;
    unindexed += tail.unread;
    isCut ||= found.isCut;
    endedLate ||= indexed.endedLate || others.endedLate;
  }
  return { candidates, holding, looked, total, endedLate, ranked, isCut, unindexed };
}

function* collectFrom(search: CorpusSearch, pick: Collecting["pick"]) {
  const tail = readTail(search, search.isUsable ? "unindexed" : "all");
  const [found, unindexed] = yield* atOnce([collectIndexed(search, pick), tail]);
  return { ...found, tail: unindexed };
}

function* collectIndexed(search: CorpusSearch, pick: Collecting["pick"]) {
  const { corpus, isUsable, request, scope } = search;
  const picked = isUsable ? yield* pick(corpus) : nothingPicked;
  const indexed = yield* readPicked(search, picked);
  const isByTime = request.sort === "recency";
  const others = isByTime ? yield* readLater(search, picked, indexed) : none;
  const isCut = isByTime ? others.cutBelow > 0 : yield* isUnranked(corpus, indexed, scope);
  return { picked, indexed, others, isCut };
}

const nothingPicked: Picked = {
  ranked: 0,
  ids: () => [],
  holding: new Map(),
  match: { conversations: [], all: [], any: [] },
  cutBelow: 0,
};

/** Whether there may be hits that were not ranked; the filter may exclude them all. */
function* isUnranked(
  corpus: Corpus,
  { cutBelow, endedLate }: ReadRows,
  { filter, isNarrowed }: Scope,
): Script<boolean> {
  if (cutBelow === 0 || endedLate) return false;
  return !isNarrowed || (yield* corpus.behind(cutBelow, filter.since, filter)).length > 0;
}

/** Rows of one statement: few at first, and fewer if they are long. */
const rowsPerRead = 50;
const rowsPerReadMax = 200;
const charactersPerRead = 2 ** 20;

/** How many ids one statement filters without reading text. */
const idsPerSift = 5_000;

interface ReadRows extends Pick<Collected, "candidates" | "looked" | "total" | "endedLate" | "ranked"> {
  /** Below this id there are others that were not looked at, or not ranked; 0 if there are none. */
  readonly cutBelow: number;
}

const none: ReadRows = { candidates: [], looked: 0, total: 0, endedLate: false, ranked: 0, cutBelow: 0 };

/**
 * Reads the most promising rows until there are enough. Where the filter excludes many, those that pass may be far down
 * the list, or below all of it. Then ids are filtered before any text is read, all of them if need be: finding nothing
 * among the best does not mean that there is nothing.
 */
function* readPicked(search: CorpusSearch, picked: Picked): Script<ReadRows> {
  const { index, corpus, scope, request, deadline, enough, keep } = search;
  const isNear = scope.isNear[corpus.name];
  const candidates: Candidate[] = [];
  let queue = picked.ids(0, 10 * enough);
  let [taken, page, endedLate] = [queue.length, rowsPerRead, false];
  let { cutBelow } = picked;
  let isById = request.sort === "recency";
  for (;;) {
    while (queue.length > 0 && candidates.length < enough && !endedLate) {
      const near = queue.slice(0, page).filter(isNear);
      const rows = near.length === 0 ? [] : yield* corpus.rows(near, scope.filter);
      candidates.push(...keep(rows));
      queue = queue.slice(page);
      page = nextPage(page, rows);
      endedLate = queue.length > 0 && candidates.length < enough && isLate(deadline);
    }
    const isListed = taken < picked.ranked;
    // A ranked list yields the best first, so the limit is enough.
    const isEnough = candidates.length >= (isById ? enough : request.limit + 1);
    if (endedLate || isEnough || (!isListed && cutBelow === 0)) break;
    endedLate = isLate(deadline);
    if (endedLate) break;
    let next = picked.ids(taken, taken + idsPerSift);
    if (!isListed) {
      next = yield* index.newest(corpus.name, picked.match, idsPerSift, cutBelow);
      cutBelow = next.length < idsPerSift ? 0 : (next.at(-1) ?? 0);
      isById = true;
    }
    taken += next.length;
    const known = new Set(candidates.map(({ row }) => row.id));
    queue = (yield* corpus.sift(next.filter(isNear), scope.filter)).filter((id) => !known.has(id));
  }
  const [following] = isById ? [...queue, ...picked.ids(taken, taken + 1)] : [];
  return {
    candidates,
    looked: taken - queue.length,
    total: Math.max(taken, picked.ranked, cutBelow === 0 ? 0 : scope.stored[corpus.name]),
    endedLate,
    ranked: isById ? candidates.length : picked.ranked,
    cutBelow: following === undefined ? cutBelow : following + 1,
  };
}

const nextPage = (page: number, rows: readonly SearchedRow[]): number =>
  rows.reduce((sum, row) => sum + row.text.length, 0) > charactersPerRead
    ? Math.max(1, page >> 1)
    : Math.min(rowsPerReadMax, page << 1);

/** How many more ids are looked at where ids are not in the order of time. */
const laterMax = 20_000;

/**
 * Ids rise with time only within a conversation, so an older conversation may have later rows than those with the
 * highest ids. Reads the rows of such conversations that are later than what was found.
 */
function* readLater(search: CorpusSearch, { match }: Picked, indexed: ReadRows): Script<ReadRows> {
  const { index, corpus, scope, request, deadline, keep } = search;
  const newest = newestOf(indexed.candidates, request.limit + 1);
  // With too few candidates, all rows were looked at, or time ran out.
  if (newest.length <= request.limit || indexed.cutBelow === 0 || indexed.endedLate) return none;
  const behind = yield* corpus.behind(indexed.cutBelow, newest[request.limit - 1]?.row.at ?? "", scope.filter);
  if (behind.length === 0) return none;

  const only = JSON.stringify(behind);
  const there = behind.length > namedMax ? match : { ...match, conversations: behind };
  const others = yield* index.newest(corpus.name, there, laterMax + 1, indexed.cutBelow);
  const total = Math.min(others.length, laterMax);
  let candidates: readonly Candidate[] = newest;
  let looked = 0;
  let page = rowsPerRead;
  while (looked < total && !isLate(deadline)) {
    const since = later(scope.filter.since, candidates[request.limit - 1]?.row.at ?? "");
    const next = others.slice(looked, Math.min(looked + page, total));
    const rows = yield* corpus.rows(next, { ...scope.filter, only, since });
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

/** Reads rows that the index does not have, usually few: the latest conversation first, and its newest rows first. */
function* readTail(
  { corpus, scope, deadline, keep }: CorpusSearch,
  which: "all" | "unindexed",
): Script<{ readonly candidates: readonly Candidate[]; readonly unread: number }> {
  const candidates: Candidate[] = [];
  const spans = [...(yield* corpus.spans(which, scope.filter))].reverse();
  let [left, page] = [tailMax, rowsPerRead];
  while (left > 0 && spans.length > 0 && !isLate(deadline)) {
    const next = takeSpans(spans, Math.min(page, left));
    const rows = yield* all(corpus.spanned(next, scope.filter), toSearchedRow);
    candidates.push(...keep(rows));
    left -= rowsIn(next);
    page = nextPage(page, rows);
  }
  return { candidates, unread: rowsIn(spans) };
}

const newestOf = <T extends { readonly row: SearchedRow }>(rows: readonly T[], most: number): readonly T[] =>
  rows.toSorted((one, other) => byRecency(one.row, other.row)).slice(0, most);
export const later = (one: string, other: string): string => (one > other ? one : other);
