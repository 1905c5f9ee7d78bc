/**
 * Finding text in messages and summaries: by words through the index, by regular expression through every row. Both
 * say what they left out; a result without a caveat is complete.
 *
 * The index answers "which rows hold this word" in microseconds, and ranks slowly. So words are looked up one by one,
 * rarest first; rows are ranked roughly by which words they hold, and the best few hundred exactly, from their text.
 * Rows that are not indexed yet are read instead. No statement runs long, because a statement cannot be interrupted.
 */

import { LcmError } from "../core/errors.ts";
import { roles } from "../core/model.ts";
import type { ConversationId, Timestamp } from "../core/model.ts";
import type { SearchCaveat, SearchHit, SearchRequest, SearchResult } from "../core/ports.ts";
import { excerpt } from "../core/text.ts";
import { compilePattern } from "./pattern.ts";
import { bestStretch, createReader, neighboursEachSide, ownScore, scoreTurns, weightOf } from "./ranking.ts";
import type { Reading, Stretch } from "./ranking.ts";
import { asConversation, asMessage, asSummary } from "./rows.ts";
import { all, count, first, int, sql, text, textOrNull } from "./script.ts";
import type { Row, Script, Statement, Value } from "./script.ts";
import { conversationWord, parseQuery, prepareForIndex } from "./words.ts";
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
  const timeoutMs = deadline.deadlineMs - deadline.nowMs();
  switch (request.mode) {
    case "regex":
      return yield* searchByPattern(request, deadline, timeoutMs);
    case "full_text":
      return yield* searchByWords(request, deadline, timeoutMs);
  }
}

const snippetWidth = 240;

// ── By regular expression ────────────────────────────────────────────────────────────────────────────────────────────

function* searchByPattern(request: SearchRequest, deadline: Deadline, timeoutMs: number): Script<SearchResult> {
  const { regex, like } = compilePattern(request.pattern);
  const scope = yield* openScope(request);
  const hits: PatternHit[] = [];
  let scanned = 0;
  let rows = 0;
  for (const source of scope.sources) {
    const scan = yield* scanRows(source, scope, regex, like, request.limit + 1, deadline);
    hits.push(...scan.hits);
    scanned += scan.scanned;
    rows += scan.rows;
  }
  hits.sort((one, other) => byRecency(one.found, other.found));
  const caveats: SearchCaveat[] = [];
  if (hits.length > request.limit) caveats.push({ kind: "limit", limit: request.limit });
  else if (scanned < rows) caveats.push({ kind: "time", timeoutMs, scanned, of: rows });
  return { hits: hits.slice(0, request.limit).map((hit) => hitOf(hit.found, hit.stretch, 0)), caveats };
}

interface PatternHit {
  readonly found: Found;
  readonly stretch: Stretch;
}

/** What one statement should take: a worker can only be ended between two. */
const chunkMs = 6;
const chunkRowsMin = 16;
const chunkRowsMax = 5_000;

/** Tests rows from the newest on, until enough are found, all are tested, or it is too late. */
function* scanRows(
  source: Source,
  scope: Scope,
  regex: RegExp,
  like: string,
  enough: number,
  deadline: Deadline,
): Script<{ readonly hits: readonly PatternHit[]; readonly scanned: number; readonly rows: number }> {
  const ids = scope.filter.only === null ? null : (yield* idsOf(source.idsIn(scope.filter.only))).toSorted((one, other) => one - other);
  const rows = ids?.length ?? (yield* extentOf(source)).newest;
  const hits: PatternHit[] = [];
  let left = rows;
  let chunkRows = 500;
  while (left > 0 && hits.length < enough && deadline.nowMs() < deadline.deadlineMs) {
    const from = Math.max(0, left - chunkRows);
    const startedMs = deadline.nowMs();
    const chunk = yield* all(
      ids === null ? source.between(from + 1, left, like, scope.filter) : source.rows(JSON.stringify(ids.slice(from, left)), like, scope.filter),
      toFound,
    );
    chunkRows = deadline.nowMs() - startedMs > chunkMs ? Math.max(chunkRowsMin, chunkRows >> 1) : Math.min(chunkRowsMax, chunkRows << 1);
    left = from;
    for (const found of chunk.toSorted((one, other) => other.id - one.id)) {
      const match = regex.exec(found.text);
      if (match !== null) hits.push({ found, stretch: { from: match.index, to: match.index + match[0].length } });
      if (hits.length === enough) break;
      if (deadline.nowMs() < deadline.deadlineMs) continue;
      left = ids === null ? found.id - 1 : ids.indexOf(found.id);
      break;
    }
  }
  return { hits, scanned: rows - left, rows };
}

// ── By words ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function* searchByWords(request: SearchRequest, deadline: Deadline, timeoutMs: number): Script<SearchResult> {
  const query = parseQuery(request.pattern);
  const scope = yield* openScope(request);
  const search: WordSearch = { request, query, scope, deadline, terms: [...query.phrases, ...query.words, ...query.pieces] };
  const answer = request.sort === "recency" ? yield* findNewest(search) : yield* findBest(search);

  const { limit } = request;
  const caveats: SearchCaveat[] = [];
  const shown = answer.hits.slice(0, limit);
  if (answer.hits.length > limit) caveats.push({ kind: "limit", limit });
  if (answer.read < answer.toRead) caveats.push({ kind: "time", timeoutMs, scanned: answer.read, of: answer.toRead });
  if (answer.newestOf !== null) caveats.push({ kind: "newest_ranked", ranked: answer.newestOf });
  if (answer.missing !== null && shown.length > 0) caveats.push({ kind: "partial_match", missing: answer.missing });
  if (answer.unindexed > 0) caveats.push({ kind: "unindexed", rows: answer.unindexed });
  return { hits: shown, caveats };
}

interface WordSearch {
  readonly request: SearchRequest;
  readonly query: Query;
  readonly scope: Scope;
  readonly deadline: Deadline;
  /** Phrases, words and pieces, in this order; readings count them by position. */
  readonly terms: readonly Term[];
}

interface Answer {
  /** Best first, more than the limit if there are more. */
  readonly hits: readonly SearchHit[];
  /** Of the rows that were worth reading, how many the time was enough for. */
  readonly read: number;
  readonly toRead: number;
  /** How many rows were ranked, if only the newest were. */
  readonly newestOf: number | null;
  /** Words that no row holds, or an empty list if no row holds them all; null if a row does. */
  readonly missing: readonly string[] | null;
  readonly unindexed: number;
}

/** A row and what it holds of the query. */
interface Candidate {
  readonly found: Found;
  readonly reading: Reading;
}

// Newest first: rows that hold every word; if there are none, rows that hold some.

function* findNewest(search: WordSearch): Script<Answer> {
  const full = yield* findHolding(search, "all");
  const { phrases, words } = search.query;
  return full.hits.length > 0 || phrases.length + words.length === 1 ? full : yield* findHolding(search, "some");
}

const newestMax = 2_000;

function* findHolding(search: WordSearch, which: "all" | "some"): Script<Answer> {
  const { query, scope, request, terms } = search;
  const read = createReader(terms);
  const holds = ({ reading }: Candidate): boolean => {
    const has = (_: Term, at: number): boolean => (reading.counts[at] ?? 0) > 0;
    const hasWord = (word: Term, at: number): boolean => has(word, query.phrases.length + at);
    return query.phrases.every(has) && (which === "all" ? query.words.every(hasWord) : query.phrases.length > 0 || query.words.some(hasWord));
  };
  const words = which === "all" ? query.words.map((word) => word.match) : query.phrases.length > 0 ? [] : [anyOf(query.words)];
  const match = allOf([...scope.words, ...query.phrases.map((phrase) => phrase.match), ...words]);
  const isNarrowed = scope.filter.since !== earliest || scope.filter.before !== latest || scope.words.length === 0;

  const candidates: Candidate[] = [];
  const tally = { read: 0, toRead: 0, unindexed: 0, newestOf: 0, isCut: false };
  for (const source of scope.sources) {
    const extent = yield* extentOf(source);
    const tail = yield* readTail(source, extent, search, read);
    const most = isNarrowed ? postingsMax : newestMax;
    const ids = yield* idsOf(source.newest(match, most));
    const loaded = yield* readRows(source, ids, request.limit + 1, search, read);
    candidates.push(...tail.candidates.filter(holds), ...loaded.candidates);
    tally.read += loaded.read;
    tally.toRead += loaded.toRead;
    tally.unindexed += tail.unread;
    tally.newestOf += ids.length;
    tally.isCut ||= ids.length === most && loaded.candidates.length <= request.limit;
  }
  candidates.sort((one, other) => byRecency(one.found, other.found));
  const weights = terms.map(() => 1);
  const shown = candidates.slice(0, request.limit);
  const isHeld = (word: Term): boolean => shown.some(({ reading }) => (reading.counts[terms.indexOf(word)] ?? 0) > 0);
  return {
    ...tally,
    hits: candidates.slice(0, request.limit + 1).map(({ found, reading }) => hitOf(found, bestStretch(reading, weights, snippetWidth), 0)),
    newestOf: tally.isCut ? tally.newestOf : null,
    missing: which === "all" ? null : query.words.filter((word) => !isHeld(word)).map((word) => word.text),
  };
}

// Best first: rows that hold any of the words.

/** How many rows are scored from their text, and how many of those lend a part of their score to the turns around. */
const candidatesMax = 400;
const lendersMax = 80;
/** What the newest row gains over the oldest in the order "hybrid". */
const recencyShare = 0.15;

function* findBest(search: WordSearch): Script<Answer> {
  const { query, scope, request, terms } = search;
  const read = createReader(terms);
  const holding = terms.map(() => 0);
  const scored: Scored[] = [];
  const tally = { read: 0, toRead: 0, unindexed: 0, newestOf: 0, isCut: false };
  const isWanted = ({ reading }: Candidate): boolean =>
    reading.matches.length > 0 && query.phrases.every((_, at) => (reading.counts[at] ?? 0) > 0);

  const perSource: (readonly Candidate[])[] = [];
  for (const source of scope.sources) {
    const extent = yield* extentOf(source);
    const gathered = yield* gather(source, extent, search);
    const loaded = yield* readRows(source, gathered.ids, candidatesMax, search, read);
    const tail = yield* readTail(source, extent, search, read);
    const held = tail.candidates.filter(isWanted);
    for (const at of terms.keys()) {
      holding[at] = (holding[at] ?? 0) + (gathered.holding[at] ?? 0) + held.filter(({ reading }) => (reading.counts[at] ?? 0) > 0).length;
    }
    perSource.push([...loaded.candidates.filter(isWanted), ...held]);
    tally.read += loaded.read;
    tally.toRead += loaded.toRead;
    tally.unindexed += tail.unread;
    tally.newestOf += gathered.ids.length;
    tally.isCut ||= gathered.isCut;
  }
  const weights = holding.map((rows) => weightOf(rows, scope.rows));
  for (const candidates of perSource) {
    const meanLength = candidates.reduce((sum, { reading }) => sum + reading.length, 0) / candidates.length;
    const own = candidates.map((candidate) => ({ ...candidate, own: ownScore(candidate.reading, weights, meanLength) }));
    if (own[0]?.found.source === "summaries") scored.push(...own.map((candidate) => ({ ...candidate, score: candidate.own })));
    else scored.push(...(yield* scoreAmongTurns(own, (reading) => ownScore(reading, weights, meanLength), search, read)));
  }

  const times = scored.map(({ found }) => Date.parse(found.at));
  const oldest = times.reduce((one, other) => Math.min(one, other), Infinity);
  const span = times.reduce((one, other) => Math.max(one, other), -Infinity) - oldest;
  const ranked = scored
    .map((row, at) => ({ ...row, score: request.sort === "hybrid" && span > 0 ? row.score * (1 + (recencyShare * ((times[at] ?? 0) - oldest)) / span) : row.score }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score || byRecency(one.found, other.found));
  const unknown = query.words.filter((word) => holding[terms.indexOf(word)] === 0);
  return {
    ...tally,
    hits: ranked.slice(0, request.limit + 1).map(({ found, reading, score }) => hitOf(found, bestStretch(reading, weights, snippetWidth), score)),
    newestOf: tally.isCut ? tally.newestOf : null,
    missing: unknown.length > 0 ? unknown.map((word) => word.text) : null,
  };
}
