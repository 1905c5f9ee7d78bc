/**
 * Finding text in messages and summaries: by words through the index, by regular expression through every row. Both
 * say what they left out; a result without a caveat is complete. Rows that are not indexed yet are read instead.
 *
 * A statement cannot be interrupted, so none runs long: rows are read in chunks, and the deadline is looked at between.
 */

import type { SearchCaveat, SearchHit, SearchRequest, SearchResult } from "../../core/model/store.ts";
import { excerpt } from "../../core/base/excerpt.ts";
import { collect, holds, later } from "./read-candidates.ts";
import type { Candidate, Collected, WordSearch } from "./read-candidates.ts";
import { allOf, anyOf, byRecency, isWithin, messages, openScope, recalledLast, toFound, turnsAt } from "./sources.ts";
import type { Corpus, Found, Scope } from "./sources.ts";
import { lookUp, postingsMax, requiredBy } from "./candidates.ts";
import { compilePattern } from "./regex.ts";
import type { Pattern } from "./regex.ts";
import {
  bestStretch,
  createReader,
  neighboursEachSide,
  ownScore,
  placeOf,
  recencyBoosts,
  scoreTurns,
  weightOf,
} from "./rank.ts";
import type { Reading, Stretch } from "./rank.ts";
import { all, text } from "../script.ts";
import type { Row, Script, Statement } from "../script.ts";
import { filesUnsearched } from "./search-files.ts";
import { checkLimit, isLate, snippetWidth, timeoutMsOf } from "./limits.ts";
import type { Deadline } from "./limits.ts";
import { parseQuery } from "./tokenize.ts";
import type { Term } from "./tokenize.ts";

export function* search(request: SearchRequest, deadline: Deadline, postings = postingsMax): Script<SearchResult> {
  checkLimit(request);
  const byPattern = request.mode === "regex";
  const found = yield* byPattern ? searchByPattern(request, deadline) : searchByWords(request, deadline, postings);
  const files = yield* filesUnsearched(request);
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
  const hits = inOrder(scans.flatMap((scan) => scan.hits));
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

const inOrder = (hits: readonly PatternHit[]): readonly PatternHit[] =>
  hits.toSorted((one, other) => recalledLast(one.found, other.found));

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
  const rows = ids?.length ?? (yield* corpus.newestId());
  const read = (from: number, to: number): Statement =>
    ids === null ? corpus.between(from + 1, to, filter, like) : corpus.rows(ids.slice(from, to), filter, like);
  let hits: readonly PatternHit[] = [];
  const isEnough = (): boolean => hits[limit]?.found.isRecalled === false;
  const add = (hit: PatternHit): void => {
    const last = hits[limit];
    if (last === undefined || recalledLast(hit.found, last.found) < 0)
      hits = inOrder([...hits, hit]).slice(0, limit + 1);
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

interface Answer {
  /** In order, and one more than the limit if there are more. */
  readonly hits: readonly SearchHit[];
  readonly collected: Collected;
  /** Words that were not found; empty when each was, but not together; null when there is nothing to say. */
  readonly missing: readonly Term[] | null;
}

function* searchByWords(request: SearchRequest, deadline: Deadline, postings: number): Script<SearchResult> {
  const query = parseQuery(request.pattern);
  if (request.conversations?.length === 0) return { hits: [], caveats: [] };
  const timeoutMs = timeoutMsOf(deadline);
  const scope = yield* openScope(request);
  const terms = [...query.phrases, ...query.words, ...query.pieces];
  const wanted: WordSearch = { request, query, scope, deadline, postings, terms, read: createReader(terms) };
  const { hits, collected, missing } = request.sort === "recency" ? yield* findNewest(wanted) : yield* findBest(wanted);

  const caveats: SearchCaveat[] = [];
  if (hits.length > request.limit) caveats.push({ kind: "limit", limit: request.limit });
  if (collected.endedLate) caveats.push({ kind: "time", timeoutMs, scanned: collected.looked, of: collected.total });
  if (collected.isCut) caveats.push({ kind: "newest_ranked", ranked: collected.ranked });
  if (missing !== null && hits.length > 0)
    caveats.push({ kind: "partial_match", missing: missing.map((word) => word.text) });
  if (collected.unindexed > 0) caveats.push({ kind: "unindexed", rows: collected.unindexed });
  return { hits: hits.slice(0, request.limit), caveats };
}

/** Newest first: rows that hold every word; if there are none, rows that hold some. */
function* findNewest(wanted: WordSearch): Script<Answer> {
  const { phrases, words } = wanted.query;
  const full = yield* findHolding(wanted, "all");
  const isAnswer = full.hits.length > 0 || phrases.length + words.length === 1 || full.collected.endedLate;
  return isAnswer ? full : yield* findHolding(wanted, "some");
}

const newestMax = 2_000;
function* findHolding(wanted: WordSearch, which: "all" | "some"): Script<Answer> {
  const { query, scope, request, terms } = wanted;
  const matches = query.words.map((word) => word.match);
  // Phrases are required in any case; beside them, some words are none.
  const some = query.phrases.length > 0 ? [] : [anyOf(matches)];
  const match = allOf([...requiredBy(query, scope), ...(which === "all" ? matches : some)]);
  const isEnough = (reading: Reading): boolean =>
    which === "all"
      ? query.words.every((word) => holds(wanted, reading, word))
      : query.phrases.length > 0 || query.words.some((word) => holds(wanted, reading, word));
  const collected = yield* collect(wanted, isEnough, request.limit + 1, function* (corpus) {
    const ids = yield* corpus.newest(match, newestMax);
    const cutBelow = ids.length < newestMax ? 0 : (ids.at(-1) ?? 0);
    return { ranked: ids.length, ids: (from, to) => ids.slice(from, to), holding: new Map(), match, cutBelow };
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

/** How many rows are scored from their text. */
const candidatesMax = 400;

/** Best first: rows that hold any of the words. */
function* findBest(wanted: WordSearch): Script<Answer> {
  const { query, scope, request, postings, terms } = wanted;
  const isEnough = (reading: Reading): boolean => reading.matches.length > 0;
  const collected = yield* collect(wanted, isEnough, candidatesMax, (corpus) => lookUp(corpus, query, scope, postings));
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
      .sort((one, other) => recalledLast(one.found, other.found, other.score - one.score))
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
