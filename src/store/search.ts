/**
 * Finding text in messages and summaries: by words through the index, by regular expression through every row. Both
 * say what they left out; a result without a caveat is complete. Rows that are not indexed yet are read instead.
 *
 * A statement cannot be interrupted, so none runs long: rows are read in chunks, and the deadline is looked at between.
 */

import { LcmError } from "../core/errors.ts";
import type { SearchCaveat, SearchHit, SearchRequest, SearchResult } from "../core/ports.ts";
import { excerpt } from "../core/text.ts";
import { allOf, anyOf, byRecency, isWithin, messages, openScope, toFound, turnsAt } from "./corpus.ts";
import type { Corpus, Extent, Found, Scope } from "./corpus.ts";
import { lookUp, postingsMax, requiredBy } from "./lookup.ts";
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
import { all, int, text } from "./script.ts";
import type { Script } from "./script.ts";
import { parseQuery } from "./words.ts";
import type { Query, Term } from "./words.ts";

/** When to stop, by the clock that tells the time. */
export interface Deadline {
  readonly deadlineMs: number;
  readonly nowMs: () => number;
}

export function* search(request: SearchRequest, deadline: Deadline): Script<SearchResult> {
  if (!Number.isInteger(request.limit) || request.limit < 1 || request.limit > 200) {
    throw new LcmError("invalid", `limit ${request.limit} is not a whole number from 1 to 200`);
  }
  switch (request.mode) {
    case "regex":
      return yield* searchByPattern(request, deadline);
    case "full_text":
      return yield* searchByWords(request, deadline);
  }
}

const isLate = ({ deadlineMs, nowMs }: Deadline): boolean => nowMs() >= deadlineMs;

const snippetWidth = 240;

const hitOf = ({ toHit, conversation, text: from, at }: Found, stretch: Stretch, score: number): SearchHit =>
  toHit({ conversation, snippet: excerpt(from, stretch, snippetWidth), at, score });

// ── By regular expression ────────────────────────────────────────────────────────────────────────────────────────────

function* searchByPattern(request: SearchRequest, deadline: Deadline): Script<SearchResult> {
  const pattern = compilePattern(request.pattern);
  const timeoutMs = Math.round(deadline.deadlineMs - deadline.nowMs());
  const scope = yield* openScope(request);
  const scans: Scan[] = [];
  for (const corpus of scope.corpora) scans.push(yield* scanRows(corpus, scope, pattern, request.limit + 1, deadline));
  const hits = scans.flatMap((scan) => scan.hits).sort((one, other) => byRecency(one.found, other.found));
  const total = (of: "scanned" | "rows"): number => scans.reduce((sum, scan) => sum + scan[of], 0);

  const caveats: SearchCaveat[] = [];
  if (hits.length > request.limit) caveats.push({ kind: "limit", limit: request.limit });
  if (scans.some((scan) => scan.endedLate))
    caveats.push({ kind: "time", timeoutMs, scanned: total("scanned"), of: total("rows") });
  return { hits: hits.slice(0, request.limit).map(({ found, stretch }) => hitOf(found, stretch, 0)), caveats };
}

interface Scan {
  readonly hits: readonly { readonly found: Found; readonly stretch: Stretch }[];
  readonly scanned: number;
  readonly rows: number;
  readonly endedLate: boolean;
}

/** What one statement should take, and how many rows that may be. */
const chunkMs = 6;
const chunkRowsMin = 16;
const chunkRowsMax = 5_000;

/** Tests rows from the newest on, until enough are found, all are tested, or it is too late. */
function* scanRows(
  corpus: Corpus,
  scope: Scope,
  { regex, like }: Pattern,
  enough: number,
  deadline: Deadline,
): Script<Scan> {
  const { filter } = scope;
  const ids = filter.only === null ? null : (yield* corpus.idsIn(filter.only)).toSorted((one, other) => one - other);
  const rows = ids?.length ?? (yield* corpus.extent()).newest;
  const hits: { readonly found: Found; readonly stretch: Stretch }[] = [];
  let left = rows;
  let chunkRows = 500;
  while (left > 0 && hits.length < enough && !isLate(deadline)) {
    const from = Math.max(0, left - chunkRows);
    const startedMs = deadline.nowMs();
    const chunk = yield ids === null
      ? corpus.between(from + 1, left, filter, like)
      : corpus.rows(ids.slice(from, left), filter, like);
    const isSlow = deadline.nowMs() - startedMs > chunkMs;
    chunkRows = isSlow ? Math.max(chunkRowsMin, chunkRows >> 1) : Math.min(chunkRowsMax, chunkRows << 1);
    left = from;
    for (const row of chunk) {
      const match = regex.exec(text(row, "content"));
      if (match !== null)
        hits.push({ found: toFound(row), stretch: { from: match.index, to: match.index + match[0].length } });
      if (hits.length === enough) break;
      if (!isLate(deadline)) continue;
      left = ids === null ? int(row, "id") - 1 : ids.indexOf(int(row, "id"));
      break;
    }
  }
  return { hits, scanned: rows - left, rows, endedLate: left > 0 && hits.length < enough };
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
  const timeoutMs = Math.round(deadline.deadlineMs - deadline.nowMs());
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
    const { length } = ids;
    return {
      count: length,
      ids: (from, to) => ids.slice(from, to),
      ranked: length,
      holding: new Map(),
      isCut: length === most,
    };
  });
  const candidates = collected.candidates.toSorted((one, other) => byRecency(one.found, other.found));
  const weights = terms.map(() => 1);
  return {
    hits: candidates
      .slice(0, request.limit + 1)
      .map(({ found, reading }) => hitOf(found, bestStretch(reading, weights, snippetWidth), 0)),
    // What is older than enough newer ones is not missed.
    collected: { ...collected, isCut: collected.isCut && candidates.length <= request.limit },
    missing:
      which === "all"
        ? null
        : query.words.filter((word) => !candidates.some(({ reading }) => holds(wanted, reading, word))),
  };
}

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
    const score = (candidate: Candidate): Scored => ({
      ...candidate,
      score: ownScore(candidate.reading, weights, meanLength),
    });
    const scored = candidates.map(score);
    ranked.push(...(corpus === messages ? yield* scoreAmongTurns(scored, score, wanted) : scored));
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
  score: (candidate: Candidate) => Scored,
  { query, scope, read }: WordSearch,
): Script<readonly Scored[]> {
  const neighbours = query.isQuestion ? yield* all(turnsAt(placesAround(candidates)), toFound) : [];
  const turns = [...candidates, ...neighbours.map((found) => score({ found, reading: read(found.text) }))];
  const scores = scoreTurns(
    turns.map(({ found, score: own }) => ({ ...found, own })),
    query,
  );
  return turns
    .map((turn, at) => ({ ...turn, score: scores[at] ?? 0 }))
    .filter(({ found, score: sum }) => sum > 0 && isWithin(found.at, scope.filter));
}

/** How many of the best rows lend a part of their score to the turns around them. */
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
    const tail = yield* readTail(corpus, yield* corpus.extent(), keep, wanted);
    for (const term of terms) {
      const inTail = tail.candidates.filter(({ reading }) => holds(wanted, reading, term)).length;
      holding.set(term, (holding.get(term) ?? 0) + (picked.holding.get(term) ?? 0) + inTail);
    }
    candidates.push(...indexed.candidates, ...tail.candidates);
    ranked += picked.ranked;
    read += indexed.read;
    unindexed += tail.unread;
    isCut ||= picked.isCut;
    endedLate ||= indexed.endedLate;
  }
  return { candidates, holding, ranked, read, endedLate, isCut, unindexed };
}

const rowsPerRead = 200;

function* readPicked(
  corpus: Corpus,
  picked: Picked,
  enough: number,
  keep: (rows: readonly Found[]) => readonly Candidate[],
  { scope, request, deadline }: WordSearch,
): Script<{ readonly candidates: readonly Candidate[]; readonly read: number; readonly endedLate: boolean }> {
  const candidates: Candidate[] = [];
  let read = 0;
  // Rows can be hidden, or of another time. Far down the list, what was asked for is enough.
  while (read < picked.count && candidates.length < (read < 10 * enough ? enough : request.limit + 1)) {
    if (read > 0 && isLate(deadline)) return { candidates, read, endedLate: true };
    const next = picked.ids(read, Math.min(read + rowsPerRead, picked.count));
    candidates.push(...keep(yield* all(corpus.rows(next, scope.filter), toFound)));
    read += next.length;
  }
  return { candidates, read, endedLate: false };
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
  while (to > oldest && !isLate(deadline)) {
    const from = Math.max(oldest, to - rowsPerRead);
    candidates.push(...keep(yield* all(corpus.between(from + 1, to, scope.filter), toFound)));
    to = from;
  }
  return { candidates, unread: Math.max(0, to - indexedUpto) };
}
