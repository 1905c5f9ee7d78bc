/**
 * Finding text in messages and summaries: by words through the index, by regular expression through every row. Both
 * say what they left out; a result without a caveat is complete. Rows that are not indexed yet are read instead.
 *
 * A statement cannot be interrupted, so none runs long: rows are read in chunks, and the deadline is looked at between.
 */

import type { SearchCaveat, SearchHit, SearchRequest, SearchResult } from "../core/ports.ts";
import { excerpt } from "../core/text.ts";
import { allOf, anyOf, byRecency, isWithin, messages, openScope, toFound, turnsAt } from "./corpus.ts";
import type { Corpus, Extent, Found, Scope } from "./corpus.ts";
import { filesBeside, lookUp, postingsMax, requiredBy } from "./lookup.ts";
import type { Picked } from "./lookup.ts";
import { compilePattern } from "./pattern.ts";
import type { Pattern } from "./pattern.ts";
import {
  bestStretch,
  createReader,
  neighboursEachSide,
  ownScore,
  placeOf,
  recencyBoosts,
  scoreTurns,
  weightOf,
} from "./ranking.ts";
import type { Reading, Stretch } from "./ranking.ts";
import { all, text } from "./script.ts";
import type { Row, Script, Statement } from "./script.ts";
import { checkLimit, isLate, snippetWidth, timeoutMsOf } from "./search-limits.ts";
import type { Deadline } from "./search-limits.ts";
import { parseQuery } from "./words.ts";
import type { Query, Term } from "./words.ts";

export function* search(request: SearchRequest, deadline: Deadline): Script<SearchResult> {
  checkLimit(request);
  const byPattern = request.mode === "regex";
  const found = yield* byPattern ? searchByPattern(request, deadline) : searchByWords(request, deadline);
  const files = yield* filesBeside(request);
  return files === 0 ? found : { ...found, caveats: [...found.caveats, { kind: "files", files }] };
}

const hitOf = ({ toHit, conversation, text: from, at }: Found, stretch: Stretch, score: number): SearchHit =>
  toHit({ conversation, snippet: excerpt(from, stretch, snippetWidth), at, score });

// ── By regular expression ────────────────────────────────────────────────────────────────────────────────────────────

function* searchByPattern(request: SearchRequest, deadline: Deadline): Script<SearchResult> {
  const pattern = compilePattern(request.pattern);
  const timeoutMs = timeoutMsOf(deadline);
  const scope = yield* openScope(request);
  const scans: Scan[] = [];
  for (const corpus of scope.corpora) scans.push(yield* scanRows(corpus, scope, pattern, request.limit, deadline));
  const hits = scans.flatMap((scan) => scan.hits).sort((one, other) => byRecency(one.found, other.found));
  const total = (of: "scanned" | "rows"): number => scans.reduce((sum, scan) => sum + scan[of], 0);

  const caveats: SearchCaveat[] = [];
  if (hits.length > request.limit) caveats.push({ kind: "limit", limit: request.limit });
  if (scans.some((scan) => scan.endedLate))
    caveats.push({ kind: "time", timeoutMs, scanned: total("scanned"), of: total("rows") });
  return { hits: hits.slice(0, request.limit).map(({ found, stretch }) => hitOf(found, stretch, 0)), caveats };
}

interface PatternHit {
  readonly found: Found;
  readonly stretch: Stretch;
}

interface Scan {
  readonly hits: readonly PatternHit[];
  readonly scanned: number;
  readonly rows: number;
  readonly endedLate: boolean;
}

/** The newest rows that match, and one more than the limit if there are more. */
function* scanRows(
  corpus: Corpus,
  scope: Scope,
  { regex, like }: Pattern,
  limit: number,
  deadline: Deadline,
): Script<Scan> {
  const { filter } = scope;
  const test = (row: Row): PatternHit | null => {
    const match = regex.exec(text(row, "content"));
    return match && { found: toFound(row), stretch: { from: match.index, to: match.index + match[0].length } };
  };
  const ids = filter.only === null ? null : (yield* corpus.idsIn(filter.only)).toSorted((one, other) => one - other);
  const rows = ids?.length ?? (yield* corpus.extent()).newest;
  const read = (from: number, to: number): Statement =>
    ids === null ? corpus.between(from + 1, to, filter, like) : corpus.rows(ids.slice(from, to), filter, like);
  let hits: readonly PatternHit[] = [];
  const isEnough = (): boolean => hits.length > limit;
  const add = (hit: PatternHit): void => {
    const oldest = isEnough() ? hits.at(-1) : undefined;
    if (oldest === undefined || byRecency(hit.found, oldest.found) < 0) hits = newestOf([...hits, hit], limit + 1);
  };
  const left = yield* readDown(rows, read, test, add, isEnough, deadline);
  const scanned = rows - left;
  if (left === 0 || !isEnough()) return { hits, scanned, rows, endedLate: left > 0 };

  // Enough of those that were stored last. Others can be later all the same, such as in a conversation imported before.
  const below = hits.reduce((lowest, { found }) => Math.min(lowest, found.id), Infinity);
  const time = hits[limit - 1]?.found.at ?? filter.since;
  const behind = JSON.stringify(yield* corpus.behind(below, time, filter));
  const others = (yield* corpus.idsIn(behind)).filter((id) => id < below).toSorted((one, other) => one - other);
  const otherLeft = yield* readDown(
    others.length,
    (from, to) => corpus.rows(others.slice(from, to), { ...filter, since: later(filter.since, time) }, like),
    test,
    add,
    () => false,
    deadline,
  );
  return { hits, scanned: scanned + others.length - otherLeft, rows, endedLate: otherLeft > 0 };
}

const newestOf = <T extends { readonly found: Found }>(rows: readonly T[], most: number): readonly T[] =>
  rows.toSorted((one, other) => byRecency(one.found, other.found)).slice(0, most);
const later = (one: string, other: string): string => (one > other ? one : other);

/** What one statement should take, and how many rows that may be: few at first, as nobody knows how long they are. */
const chunkMs = 6;
const chunkRowsMin = 16;
const chunkRowsMax = 1_000;

/** Tests rows from the last on, until there are enough, all are tested, or it is too late; tells how many are left. */
function* readDown<T>(
  rows: number,
  read: (from: number, to: number) => Statement,
  test: (row: Row) => T | null,
  add: (hit: T) => void,
  isEnough: () => boolean,
  deadline: Deadline,
): Script<number> {
  let left = rows;
  let chunkRows = chunkRowsMin;
  while (left > 0 && !isEnough() && !isLate(deadline)) {
    const from = Math.max(0, left - chunkRows);
    const startedMs = deadline.nowMs();
    const chunk = yield read(from, left);
    const isSlow = deadline.nowMs() - startedMs > chunkMs;
    chunkRows = isSlow ? Math.max(chunkRowsMin, chunkRows >> 1) : Math.min(chunkRowsMax, chunkRows << 1);
    for (const [at, row] of chunk.entries()) {
      const hit = test(row);
      if (hit !== null) add(hit);
      // Rows that the filter left out are not in the chunk; of the others, so many are untested.
      if (at < chunk.length - 1 && (isEnough() || isLate(deadline))) return from + chunk.length - 1 - at;
    }
    left = from;
  }
  return left;
}

// ── By words ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface WordSearch {
  readonly request: SearchRequest;
  readonly query: Query;
  readonly scope: Scope;
  readonly deadline: Deadline;
  /** All terms of the query; readings count them by position. */
  readonly terms: readonly Term[];
  readonly read: (text: string) => Reading;
}

interface Answer {
  /** In order, and one more than the limit if there are more. */
  readonly hits: readonly SearchHit[];
  readonly collected: Collected;
  /** Words that were not found; empty when each was, but not together; null when there is nothing to say. */
  readonly missing: readonly Term[] | null;
}

function* searchByWords(request: SearchRequest, deadline: Deadline): Script<SearchResult> {
  const query = parseQuery(request.pattern);
  if (request.conversations?.length === 0) return { hits: [], caveats: [] };
  const timeoutMs = timeoutMsOf(deadline);
  const scope = yield* openScope(request);
  const terms = [...query.phrases, ...query.words, ...query.pieces];
  const wanted: WordSearch = { request, query, scope, deadline, terms, read: createReader(terms) };
  const { hits, collected, missing } = request.sort === "recency" ? yield* findNewest(wanted) : yield* findBest(wanted);

  const caveats: SearchCaveat[] = [];
  if (hits.length > request.limit) caveats.push({ kind: "limit", limit: request.limit });
  if (collected.endedLate) caveats.push({ kind: "time", timeoutMs, scanned: collected.read, of: collected.ranked });
  if (collected.isCut) caveats.push({ kind: "newest_ranked", ranked: collected.ranked });
  if (missing !== null && hits.length > 0)
    caveats.push({ kind: "partial_match", missing: missing.map((word) => word.text) });
  if (collected.unindexed > 0) caveats.push({ kind: "unindexed", rows: collected.unindexed });
  return { hits: hits.slice(0, request.limit), caveats };
}

const holds = ({ terms }: WordSearch, reading: Reading, term: Term): boolean =>
  (reading.counts[terms.indexOf(term)] ?? 0) > 0;

/** Newest first: rows that hold every word; if there are none, rows that hold some. */
function* findNewest(wanted: WordSearch): Script<Answer> {
  const { phrases, words } = wanted.query;
  const full = yield* findHolding(wanted, "all");
  return full.hits.length > 0 || phrases.length + words.length === 1 ? full : yield* findHolding(wanted, "some");
}

const newestMax = 2_000;
/** How many more are looked at where rows were not stored in the order of their time. */
const newestElsewhereMax = 20_000;

function* findHolding(wanted: WordSearch, which: "all" | "some"): Script<Answer> {
  const { query, scope, request, terms } = wanted;
  const matches = query.words.map((word) => word.match);
  // Phrases are required in any case; beside them, some words are none.
  const some = query.phrases.length > 0 ? [] : [anyOf(matches)];
  const match = allOf([...requiredBy(query, scope), ...(which === "all" ? matches : some)]);
  const most = scope.isNarrowed ? postingsMax : newestMax;
  const isEnough = (reading: Reading): boolean =>
    which === "all"
      ? query.words.every((word) => holds(wanted, reading, word))
      : query.phrases.length > 0 || query.words.some((word) => holds(wanted, reading, word));
  const collected = yield* collect(wanted, isEnough, request.limit + 1, function* (corpus) {
    const ids = yield* corpus.newest(match, most);
    const read = ids.length + newestElsewhereMax;
    return {
      ...pickedAll(ids),
      isCut: ids.length === most,
      *elsewhere(below) {
        const others = (yield* corpus.newest(match, read + 1)).filter((id) => id < below);
        return { ...pickedAll(others.slice(0, newestElsewhereMax)), isCut: others.length > newestElsewhereMax };
      },
    };
  });
  const candidates = collected.candidates.toSorted((one, other) => byRecency(one.found, other.found));
  const weights = terms.map(() => 1);
  return {
    hits: candidates
      .slice(0, request.limit + 1)
      .map(({ found, reading }) => hitOf(found, bestStretch(reading, weights, snippetWidth), 0)),
    collected,
    missing:
      which === "all"
        ? null
        : query.words.filter((word) => !candidates.some(({ reading }) => holds(wanted, reading, word))),
  };
}

const pickedAll = (ids: readonly number[]): Omit<Picked, "isCut"> => ({
  count: ids.length,
  ids: (from, to) => ids.slice(from, to),
  ranked: ids.length,
  holding: new Map(),
});

/** How many rows are scored from their text. */
const candidatesMax = 400;

/** Best first: rows that hold any of the words. */
function* findBest(wanted: WordSearch): Script<Answer> {
  const { query, scope, request, terms } = wanted;
  const isEnough = (reading: Reading): boolean => reading.matches.length > 0;
  const collected = yield* collect(wanted, isEnough, candidatesMax, (corpus) => lookUp(corpus, query, scope));
  const weights = terms.map((term) => weightOf(collected.holding.get(term) ?? 0, scope.rows));
  const ranked: Scored[] = [];
  for (const corpus of scope.corpora) {
    const candidates = collected.candidates.filter(({ found }) => found.corpus === corpus.name);
    const meanLength = candidates.reduce((sum, { reading }) => sum + reading.length, 0) / candidates.length;
    const scored = candidates.map((candidate): Scored => {
      return { ...candidate, score: ownScore(candidate.reading, weights, meanLength) };
    });
    ranked.push(...(corpus === messages ? yield* scoreAmongTurns(scored, weights, meanLength, wanted) : scored));
  }
  const boosts = request.sort === "hybrid" ? recencyBoosts(ranked.map(({ found }) => found.at)) : [];
  const unknown = query.words.filter((word) => collected.holding.get(word) === 0);
  return {
    hits: ranked
      .map((row, at) => ({ ...row, score: row.score * (boosts[at] ?? 1) }))
      .sort((one, other) => other.score - one.score || byRecency(one.found, other.found))
      .slice(0, request.limit + 1)
      .map(({ found, reading, score }) => hitOf(found, bestStretch(reading, weights, snippetWidth), score)),
    collected,
    missing: unknown.length > 0 ? unknown : null,
  };
}

type Scored = Candidate & { readonly score: number };

/**
 * Scores messages among the turns around them. A turn without any of the words can answer a question; to someone who
 * looks for a word or two it would be a stray, so then no others are read.
 */
function* scoreAmongTurns(
  candidates: readonly Scored[],
  weights: readonly number[],
  meanLength: number,
  { query, scope, read }: WordSearch,
): Script<readonly Scored[]> {
  const neighbours = query.isQuestion ? yield* all(turnsAt(placesAround(candidates)), toFound) : [];
  const turns: readonly Candidate[] = [
    ...candidates,
    ...neighbours.map((found) => ({ found, reading: read(found.text) })),
  ];
  const scores = scoreTurns(
    turns.map(({ found, reading }) => ({ ...found, reading })),
    query,
    weights,
    meanLength,
  );
  return turns
    .map((turn, at) => ({ ...turn, score: scores[at] ?? 0 }))
    .filter(({ found, score: sum }) => sum > 0 && isWithin(found.at, scope.filter));
}

/** Around how many of the best rows the turns are read. */
const lendersMax = 80;

/** Conversation and seq of the turns around the best candidates, without those that are candidates. */
function placesAround(candidates: readonly Scored[]): readonly (readonly [number, number])[] {
  const known = new Set(candidates.map(({ found }) => placeOf(found.conversation, found.seq)));
  const places: (readonly [number, number])[] = [];
  for (const { found } of candidates.toSorted((one, other) => other.score - one.score).slice(0, lendersMax)) {
    for (let seq = found.seq - neighboursEachSide; seq <= found.seq + neighboursEachSide; seq++) {
      const place = placeOf(found.conversation, seq);
      if (!known.has(place)) places.push([found.conversation, seq]);
      known.add(place);
    }
  }
  return places;
}

// ── Reading rows ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** A row and what it holds of the query. */
interface Candidate {
  readonly found: Found;
  readonly reading: Reading;
}

interface Collected {
  readonly candidates: readonly Candidate[];
  /** How many rows hold each term. */
  readonly holding: ReadonlyMap<Term, number>;
  /** Rows that the index found, how many of them were read, and whether that was for want of time. */
  readonly ranked: number;
  readonly read: number;
  readonly endedLate: boolean;
  /** Whether the index left older rows out. */
  readonly isCut: boolean;
  /** Rows outside the index that were not read either. */
  readonly unindexed: number;
}

/** Reads rows that were picked through the index, until there are enough, and rows that are not in it. */
function* collect(
  wanted: WordSearch,
  isEnough: (reading: Reading) => boolean,
  enough: number,
  pick: (corpus: Corpus) => Script<Picked>,
): Script<Collected> {
  const { query, scope, terms } = wanted;
  const keep = (rows: readonly Found[]): readonly Candidate[] =>
    rows
      .map((found) => ({ found, reading: wanted.read(found.text) }))
      .filter(({ reading }) => isEnough(reading) && query.phrases.every((phrase) => holds(wanted, reading, phrase)));
  const holding = new Map<Term, number>();
  const candidates: Candidate[] = [];
  let [ranked, read, unindexed, isCut, endedLate] = [0, 0, 0, false, false];
  for (const corpus of scope.corpora) {
    const picked = yield* pick(corpus);
    const indexed = yield* readPicked(corpus, picked, enough, keep, wanted);
    const others = yield* readElsewhere(corpus, picked, indexed, keep, wanted);
    const tail = yield* readTail(corpus, yield* corpus.extent(), keep, wanted);
    for (const term of terms) {
      const inTail = tail.candidates.filter(({ reading }) => holds(wanted, reading, term)).length;
      holding.set(term, (holding.get(term) ?? 0) + (picked.holding.get(term) ?? 0) + inTail);
    }
    candidates.push(...indexed.candidates, ...others.candidates, ...tail.candidates);
    ranked += picked.ranked + others.ranked;
    read += indexed.read + others.read;
    unindexed += tail.unread;
    isCut ||= others.isCut;
    endedLate ||= indexed.endedLate || others.endedLate;
  }
  return { candidates, holding, ranked, read, endedLate, isCut, unindexed };
}

/** Rows of one statement: few at first, and never many that are long. */
const rowsPerRead = 50;
const rowsPerReadMax = 200;
const charactersPerRead = 2 ** 20;

interface ReadRows {
  readonly candidates: readonly Candidate[];
  readonly read: number;
  readonly endedLate: boolean;
}

function* readPicked(
  corpus: Corpus,
  picked: Picked,
  enough: number,
  keep: (rows: readonly Found[]) => readonly Candidate[],
  { scope, request, deadline }: WordSearch,
): Script<ReadRows> {
  const candidates: Candidate[] = [];
  let read = 0;
  let page = rowsPerRead;
  // Rows can be hidden, or of another time. Far down the list, what was asked for is enough.
  while (read < picked.count && candidates.length < (read < 10 * enough ? enough : request.limit + 1)) {
    if (read > 0 && isLate(deadline)) return { candidates, read, endedLate: true };
    const next = picked.ids(read, Math.min(read + page, picked.count));
    const rows = yield* all(corpus.rows(next, scope.filter), toFound);
    candidates.push(...keep(rows));
    read += next.length;
    page = nextPage(page, rows);
  }
  return { candidates, read, endedLate: false };
}

const nextPage = (page: number, rows: readonly Found[]): number =>
  rows.reduce((sum, found) => sum + found.text.length, 0) > charactersPerRead
    ? Math.max(1, page >> 1)
    : Math.min(rowsPerReadMax, page << 1);

/**
 * Where the newest are asked for, those that were stored last may not be: a conversation imported before another can
 * be the later one. Reads the rows of such conversations that are later than what was found.
 */
function* readElsewhere(
  corpus: Corpus,
  picked: Picked,
  indexed: ReadRows,
  keep: (rows: readonly Found[]) => readonly Candidate[],
  { scope, request, deadline }: WordSearch,
): Script<ReadRows & { readonly ranked: number; readonly isCut: boolean }> {
  const none = { candidates: [], read: 0, endedLate: false, ranked: 0 };
  const newest = newestOf(indexed.candidates, request.limit + 1);
  const isAllRead = indexed.read === picked.count && !picked.isCut;
  // What is older than enough newer ones is not missed; with too few of them, whatever was left out is.
  if (picked.elsewhere === undefined || newest.length <= request.limit) return { ...none, isCut: picked.isCut };
  if (isAllRead || indexed.endedLate) return { ...none, isCut: false };
  const [below = 0] = picked.ids(indexed.read - 1, indexed.read);
  const behind = yield* corpus.behind(below, newest[request.limit - 1]?.found.at ?? "", scope.filter);
  if (behind.length === 0) return { ...none, isCut: false };

  const only = JSON.stringify(behind);
  const others = yield* picked.elsewhere(below);
  let candidates: readonly Candidate[] = newest;
  let read = 0;
  let page = rowsPerRead;
  while (read < others.count && !isLate(deadline)) {
    const since = later(scope.filter.since, candidates[request.limit - 1]?.found.at ?? "");
    const next = others.ids(read, Math.min(read + page, others.count));
    const rows = yield* all(corpus.rows(next, { ...scope.filter, only, since }), toFound);
    candidates = newestOf([...candidates, ...keep(rows)], request.limit + 1);
    read += next.length;
    page = nextPage(page, rows);
  }
  const known = new Set(newest);
  return {
    candidates: candidates.filter((candidate) => !known.has(candidate)),
    read,
    ranked: others.ranked,
    endedLate: read < others.count,
    isCut: others.isCut,
  };
}

const tailMax = 2_000;

/** Reads the newest rows that are not indexed yet; usually there are few. */
function* readTail(
  corpus: Corpus,
  { indexedUpto, newest }: Extent,
  keep: (rows: readonly Found[]) => readonly Candidate[],
  { scope, deadline }: WordSearch,
): Script<{ readonly candidates: readonly Candidate[]; readonly unread: number }> {
  const candidates: Candidate[] = [];
  const oldest = Math.max(indexedUpto, newest - tailMax);
  let to = newest;
  let page = rowsPerRead;
  while (to > oldest && !isLate(deadline)) {
    const from = Math.max(oldest, to - page);
    const rows = yield* all(corpus.between(from + 1, to, scope.filter), toFound);
    candidates.push(...keep(rows));
    to = from;
    page = nextPage(page, rows);
  }
  return { candidates, unread: Math.max(0, to - indexedUpto) };
}
