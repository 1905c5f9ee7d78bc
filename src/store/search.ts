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
import {
  bestStretch,
  createReader,
  neighboursEachSide,
  ownScore,
  recencyBoosts,
  scoreTurns,
  weightOf,
} from "./ranking.ts";
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
  if (request.conversations?.length === 0) return { hits: [], caveats: [] };
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
  let isLate = false;
  for (const source of scope.sources) {
    const scan = yield* scanRows(source, scope, regex, like, request.limit + 1, deadline);
    hits.push(...scan.hits);
    scanned += scan.scanned;
    rows += scan.rows;
    isLate ||= scan.isLate;
  }
  hits.sort((one, other) => byRecency(one.found, other.found));
  const caveats: SearchCaveat[] = [];
  if (hits.length > request.limit) caveats.push({ kind: "limit", limit: request.limit });
  if (isLate) caveats.push({ kind: "time", timeoutMs, scanned, of: rows });
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
): Script<{
  readonly hits: readonly PatternHit[];
  readonly scanned: number;
  readonly rows: number;
  readonly isLate: boolean;
}> {
  const ids =
    scope.filter.only === null
      ? null
      : (yield* idsOf(source.idsIn(scope.filter.only))).toSorted((one, other) => one - other);
  const rows = ids?.length ?? (yield* extentOf(source)).newest;
  const hits: PatternHit[] = [];
  let left = rows;
  let chunkRows = 500;
  while (left > 0 && hits.length < enough && deadline.nowMs() < deadline.deadlineMs) {
    const from = Math.max(0, left - chunkRows);
    const startedMs = deadline.nowMs();
    const chunk = yield ids === null
      ? source.between(from + 1, left, like, scope.filter)
      : source.rows(JSON.stringify(ids.slice(from, left)), like, scope.filter);
    chunkRows =
      deadline.nowMs() - startedMs > chunkMs
        ? Math.max(chunkRowsMin, chunkRows >> 1)
        : Math.min(chunkRowsMax, chunkRows << 1);
    left = from;
    for (const row of chunk) {
      const match = regex.exec(text(row, "content"));
      if (match !== null)
        hits.push({ found: toFound(row), stretch: { from: match.index, to: match.index + match[0].length } });
      if (hits.length === enough) break;
      if (deadline.nowMs() < deadline.deadlineMs) continue;
      left = ids === null ? int(row, "id") - 1 : ids.indexOf(int(row, "id"));
      break;
    }
  }
  return { hits, scanned: rows - left, rows, isLate: left > 0 && hits.length < enough };
}

// ── By words ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface WordSearch {
  readonly request: SearchRequest;
  readonly query: Query;
  readonly scope: Scope;
  readonly deadline: Deadline;
  /** Phrases, words and pieces, in this order; readings count them by position. */
  readonly terms: readonly Term[];
  readonly read: (text: string) => Reading;
}

interface Answer {
  /** In order, and one more than the limit if there are more. */
  readonly hits: readonly SearchHit[];
  readonly collected: Collected;
  /** Null when every word was found; empty when each was, but not together. */
  readonly missing: readonly string[] | null;
}

function* searchByWords(request: SearchRequest, deadline: Deadline, timeoutMs: number): Script<SearchResult> {
  const query = parseQuery(request.pattern);
  const scope = yield* openScope(request);
  const terms = [...query.phrases, ...query.words, ...query.pieces];
  const search: WordSearch = { request, query, scope, deadline, terms, read: createReader(terms) };
  const { hits, collected, missing } = request.sort === "recency" ? yield* findNewest(search) : yield* findBest(search);

  const caveats: SearchCaveat[] = [];
  if (hits.length > request.limit) caveats.push({ kind: "limit", limit: request.limit });
  if (collected.isLate) caveats.push({ kind: "time", timeoutMs, scanned: collected.read, of: collected.ranked });
  if (collected.isCut) caveats.push({ kind: "newest_ranked", ranked: collected.ranked });
  if (missing !== null && hits.length > 0) caveats.push({ kind: "partial_match", missing });
  if (collected.unindexed > 0) caveats.push({ kind: "unindexed", rows: collected.unindexed });
  return { hits: hits.slice(0, request.limit), caveats };
}

/** Newest first: rows that hold every word; if there are none, rows that hold some. */
function* findNewest(search: WordSearch): Script<Answer> {
  const all = yield* findHolding(search, "all");
  return all.hits.length > 0 || search.query.phrases.length + search.query.words.length < 2
    ? all
    : yield* findHolding(search, "some");
}

const newestMax = 2_000;

function* findHolding(search: WordSearch, which: "all" | "some"): Script<Answer> {
  const { query, scope, request } = search;
  const isEnough = (reading: Reading): boolean => {
    const held = query.words.filter((word) => countOf(search, reading, word) > 0).length;
    return which === "all" ? held === query.words.length : held > 0 || query.phrases.length > 0;
  };
  const words = query.words.map((word) => word.match);
  const match = allOf([
    ...matchesOf(search),
    ...(which === "all" ? words : query.phrases.length > 0 ? [] : [anyOf(words)]),
  ]);
  const most = isNarrowed(scope) ? postingsMax : newestMax;
  const collected = yield* collect(search, isEnough, request.limit + 1, function* (source) {
    const ids = yield* idsOf(source.newest(match, most));
    return { ids: Float64Array.from(ids), ranked: ids.length, holding: [], isCut: ids.length === most };
  });
  const candidates = collected.candidates.toSorted((one, other) => byRecency(one.found, other.found));
  const weights = search.terms.map(() => 1);
  const lacking = query.words.filter((word) => !candidates.some(({ reading }) => countOf(search, reading, word) > 0));
  return {
    hits: candidates
      .slice(0, request.limit + 1)
      .map(({ found, reading }) => hitOf(found, bestStretch(reading, weights, snippetWidth), 0)),
    // What is older than enough newer ones is not missed.
    collected: { ...collected, isCut: collected.isCut && candidates.length <= request.limit },
    missing: which === "all" ? null : lacking.map((word) => word.text),
  };
}

/** How many rows are scored from their text. */
const candidatesMax = 400;

/** Best first: rows that hold any of the words. */
function* findBest(search: WordSearch): Script<Answer> {
  const { query, scope, request, terms } = search;
  const collected = yield* collect(
    search,
    (reading) => reading.matches.length > 0,
    candidatesMax,
    (source, extent) => gather(source, extent, search),
  );
  const weights = collected.holding.map((rows) => weightOf(rows, scope.rows));
  const ranked: Scored[] = [];
  for (const source of scope.sources) {
    const candidates = collected.candidates.filter(({ found }) => found.source === source.name);
    const meanLength = candidates.reduce((sum, { reading }) => sum + reading.length, 0) / candidates.length;
    const score = (candidate: Candidate): Scored => ({
      ...candidate,
      score: ownScore(candidate.reading, weights, meanLength),
    });
    const scored = candidates.map(score);
    ranked.push(...(source === messages ? yield* scoreAmongTurns(scored, score, search) : scored));
  }
  const boosts = request.sort === "hybrid" ? recencyBoosts(ranked.map(({ found }) => found.at)) : [];
  const unknown = query.words.filter((word) => collected.holding[terms.indexOf(word)] === 0);
  return {
    hits: ranked
      .map((row, at) => ({ ...row, score: row.score * (boosts[at] ?? 1) }))
      .sort((one, other) => other.score - one.score || byRecency(one.found, other.found))
      .slice(0, request.limit + 1)
      .map(({ found, reading, score }) => hitOf(found, bestStretch(reading, weights, snippetWidth), score)),
    collected,
    missing: unknown.length > 0 ? unknown.map((word) => word.text) : null,
  };
}

type Scored = Candidate & { readonly score: number };

/** How many of the best rows lend a part of their score to the turns around them. */
const lendersMax = 80;

/**
 * Scores messages among the turns around them. A turn without any of the words can answer a question; to someone who
 * looks for a word or two it would be a stray, so then no others are read.
 */
function* scoreAmongTurns(
  candidates: readonly Scored[],
  score: (candidate: Candidate) => Scored,
  search: WordSearch,
): Script<readonly Scored[]> {
  const { query, scope } = search;
  const neighbours = query.isQuestion ? yield* all(turnsAt(JSON.stringify(placesAround(candidates))), toFound) : [];
  const turns = [...candidates, ...neighbours.map((found) => score({ found, reading: search.read(found.text) }))];
  const scores = scoreTurns(
    turns.map(({ found, score: own }) => ({ ...found, own })),
    query,
  );
  return turns
    .map((turn, at) => ({ ...turn, score: scores[at] ?? 0 }))
    .filter(({ found, score: sum }) => sum > 0 && isWithin(found.at, scope.filter));
}

/** Conversation and seq of the turns around the best candidates, without those that are candidates. */
function placesAround(candidates: readonly Scored[]): readonly (readonly [number, number])[] {
  const known = new Set(candidates.map(({ found }) => `${found.conversation} ${found.seq}`));
  const places: (readonly [number, number])[] = [];
  for (const { found } of candidates.toSorted((one, other) => other.score - one.score).slice(0, lendersMax)) {
    for (let seq = found.seq - neighboursEachSide; seq <= found.seq + neighboursEachSide; seq++) {
      const place = `${found.conversation} ${seq}`;
      if (!known.has(place)) places.push([found.conversation, seq]);
      known.add(place);
    }
  }
  return places;
}

/** A row and what it holds of the query. */
interface Candidate {
  readonly found: Found;
  readonly reading: Reading;
}

/** Rows worth reading, most promising first. */
interface Picked {
  readonly ids: Float64Array;
  /** How many there were to choose them from. */
  readonly ranked: number;
  /** How many rows hold each term. */
  readonly holding: readonly number[];
  /** Whether older rows were left out. */
  readonly isCut: boolean;
}

interface Collected {
  readonly candidates: readonly Candidate[];
  readonly holding: readonly number[];
  /** Rows that the index found, and how many of them were read. */
  readonly ranked: number;
  readonly read: number;
  readonly isLate: boolean;
  readonly isCut: boolean;
  /** Rows outside the index that were not read either. */
  readonly unindexed: number;
}

/** Reads, of every source, rows that were picked through the index until there are enough, and rows that are not in it. */
function* collect(
  search: WordSearch,
  isEnough: (reading: Reading) => boolean,
  enough: number,
  pick: (source: Source, extent: Extent) => Script<Picked>,
): Script<Collected> {
  const { query, scope, deadline } = search;
  const candidates: Candidate[] = [];
  const holding = search.terms.map(() => 0);
  let ranked = 0;
  let read = 0;
  let unindexed = 0;
  let isCut = false;
  let isLate = false;
  const consider = (rows: readonly Found[]): readonly Candidate[] => {
    const considered = rows.map((found) => ({ found, reading: search.read(found.text) }));
    const kept = considered.filter(
      ({ reading }) => isEnough(reading) && query.phrases.every((phrase) => countOf(search, reading, phrase) > 0),
    );
    candidates.push(...kept);
    return kept;
  };

  for (const source of scope.sources) {
    const extent = yield* extentOf(source);
    const chosen = yield* pick(source, extent);
    for (const [at, rows] of chosen.holding.entries()) holding[at] = (holding[at] ?? 0) + rows;
    ranked += chosen.ranked;
    isCut ||= chosen.isCut;

    let at = 0;
    // Rows can be hidden, or of another time. Far down the list, what was asked for is enough.
    for (
      let kept = 0;
      at < chosen.ids.length && kept < (at < 10 * enough ? enough : search.request.limit + 1);
      at += rowsPerRead
    ) {
      if (at > 0 && deadline.nowMs() >= deadline.deadlineMs) {
        isLate = true;
        break;
      }
      const ids = JSON.stringify(Array.from(chosen.ids.slice(at, at + rowsPerRead)));
      kept += consider(yield* all(source.rows(ids, anyText, scope.filter), toFound)).length;
    }
    read += Math.min(at, chosen.ids.length);

    const tailFrom = Math.max(extent.indexedUpto, extent.newest - tailMax);
    let to = extent.newest;
    while (to > tailFrom && deadline.nowMs() < deadline.deadlineMs) {
      const from = Math.max(tailFrom, to - rowsPerRead);
      const kept = consider(yield* all(source.between(from + 1, to, anyText, scope.filter), toFound));
      for (const term of search.terms.keys())
        holding[term] = (holding[term] ?? 0) + kept.filter(({ reading }) => (reading.counts[term] ?? 0) > 0).length;
      to = from;
    }
    unindexed += Math.max(0, to - extent.indexedUpto);
  }
  return { candidates, holding, ranked, read, isLate, isCut, unindexed };
}

const rowsPerRead = 200;
const tailMax = 2_000;

const countOf = (search: WordSearch, reading: Reading, term: Term): number =>
  reading.counts[search.terms.indexOf(term)] ?? 0;

// ── Looking words up ─────────────────────────────────────────────────────────────────────────────────────────────────

/** How many ids of rows are fetched for one search: about 20 ms of them. */
const postingsMax = 200_000;
const probeRows = 128;

/** Rows that hold all the phrases and any of the words, ranked roughly by the weights of the words they hold. */
function* gather(source: Source, extent: Extent, search: WordSearch): Script<Picked> {
  const { query, scope, terms } = search;
  const required = matchesOf(search);
  const holding = terms.map(() => 0);
  const lists: Posting[] = [];
  let left = postingsMax;
  let isCut = false;
  const add = (ids: readonly number[], rows: number, of: readonly Term[]): void => {
    left -= ids.length;
    lists.push({ ids, weight: weightOf(rows, scope.rows) });
    for (const term of of) holding[terms.indexOf(term)] = rows;
  };

  if (query.phrases.length > 0) {
    const ids = yield* idsOf(source.newest(allOf(required), left));
    isCut = ids.length === left;
    add(ids, ids.length, query.phrases);
  }
  const probed: { readonly term: Term; readonly newest: readonly number[]; readonly rows: number }[] = [];
  for (const term of [...query.words, ...query.pieces]) {
    const newest = yield* idsOf(source.newest(term.match, probeRows));
    const oldest = newest.length < probeRows ? undefined : newest.at(-1);
    // A frequent word is taken to be as frequent among the older rows as among the newest.
    const rows =
      oldest === undefined
        ? newest.length
        : Math.round((probeRows * extent.indexedUpto) / (extent.indexedUpto - oldest + 1));
    probed.push({ term, newest, rows });
  }
  for (const { term, newest, rows } of probed.toSorted((one, other) => one.rows - other.rows)) {
    const isAll = newest.length < probeRows;
    if (newest.length === 0 || (isAll && required.length === 0)) add(newest, rows, [term]);
    else if (rows <= left) {
      const ids = yield* idsOf(source.holding(allOf([...required, term.match])));
      add(ids, ids.length, [term]);
    } else {
      // Too common to rank by, unless there is little else.
      isCut = true;
      const most = postingsMax - left < candidatesMax ? left : 0;
      const ids = most > 0 ? yield* idsOf(source.newest(allOf([...required, term.match]), most)) : [];
      add(ids, ids.length < most ? ids.length : Math.round((rows * scope.rows) / extent.indexedUpto), [term]);
    }
  }
  const ranked = rankRoughly(lists, isNarrowed(scope) ? postingsMax : promisingMax);
  return { ...ranked, holding, isCut };
}

/** The rows that hold a word, and what holding it is worth. */
interface Posting {
  readonly ids: readonly number[];
  readonly weight: number;
}

/** Of these the best are read until there are enough candidates. */
const promisingMax = 4_000;

/** Ids by the sum of the weights of the words they hold, newest first among equals; and how many there are in all. */
function rankRoughly(
  postings: readonly Posting[],
  most: number,
): { readonly ids: Float64Array; readonly ranked: number } {
  const ends = postings.flatMap(({ ids }) => [ids[0] ?? 0, ids.at(-1) ?? 0]).filter((id) => id > 0);
  const oldest = Math.min(...ends, Infinity);
  const sums = new Float32Array(ends.length === 0 ? 0 : Math.max(...ends) - oldest + 1);
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
  // The sum, coarsely, in front of the id, so that numbers are compared.
  const keys = distinct.subarray(0, ranked);
  for (let at = 0; at < ranked; at++) {
    const id = keys[at] ?? 0;
    keys[at] = Math.round((sums[id - oldest] ?? 0) * 2 ** 20) * 2 ** 32 + id;
  }
  const ids = largest(keys, most).sort().reverse();
  for (let at = 0; at < ids.length; at++) ids[at] = (ids[at] ?? 0) % 2 ** 32;
  return { ids, ranked };
}

/** The so many largest of distinct numbers, in no order: quickselect. Sorting them all would take most of a search. */
function largest(numbers: Float64Array, most: number): Float64Array {
  let low = 0;
  let high = numbers.length - 1;
  const wanted = numbers.length - most;
  if (wanted <= 0) return numbers;
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
    if (wanted <= right) high = right;
    else if (wanted >= left) low = left;
    else break;
  }
  return numbers.subarray(wanted);
}

/** What every hit matches: its conversation, and the phrases. */
const matchesOf = ({ scope, query }: WordSearch): readonly string[] => [
  ...scope.words,
  ...query.phrases.map((phrase) => phrase.match),
];

const allOf = (matches: readonly string[]): string => matches.join(" AND ");
const anyOf = (matches: readonly string[]): string => `(${matches.join(" OR ")})`;

// ── Where to look ────────────────────────────────────────────────────────────────────────────────────────────────────

interface Scope {
  readonly sources: readonly Source[];
  readonly filter: Filter;
  /** FTS5 expressions that hold in these conversations only; none if there are too many to name. */
  readonly words: readonly string[];
  /** How many rows there are to look at, roughly. */
  readonly rows: number;
}

/** As values of statements; lists are JSON text. */
interface Filter {
  readonly only: string | null;
  readonly hidden: string;
  readonly since: string;
  readonly before: string;
}

const earliest = "";
const latest = "~";
const namedConversationsMax = 500;

function* openScope({ scope, conversations, since, before }: SearchRequest): Script<Scope> {
  const sources = scope === "both" ? [messages, summaries] : [scope === "messages" ? messages : summaries];
  const only = conversations === undefined ? null : JSON.stringify(conversations);
  // Conversations that are asked for by name are searched even if hidden.
  const hidden =
    only === null
      ? yield* idsOf(sql`SELECT json_group_array(conversation_id) AS ids FROM conversations WHERE hidden = 1`)
      : [];
  let rows = 0;
  for (const source of sources)
    rows += only === null ? (yield* extentOf(source)).newest : yield* count(source.countIn(only));
  const isNamed = conversations !== undefined && conversations.length <= namedConversationsMax;
  return {
    sources,
    filter: { only, hidden: JSON.stringify(hidden), since: since ?? earliest, before: before ?? latest },
    words: isNamed ? [anyOf(conversations.map((id) => `"${conversationWord(id)}"`))] : [],
    rows,
  };
}

const isWithin = (at: string, { since, before }: Filter): boolean => at >= since && at < before;

/** Whether rows that the index finds may be left out by the filter. */
const isNarrowed = ({ filter, words }: Scope): boolean =>
  filter.since !== earliest ||
  filter.before !== latest ||
  filter.hidden !== "[]" ||
  (filter.only !== null && words.length === 0);

/** Messages and summaries are asked the same questions. Ids are those of the index. */
interface Source {
  readonly name: "messages" | "summaries";
  readonly extent: () => Statement;
  /** How many rows these conversations hold; their ids, as JSON. */
  readonly countIn: (conversations: string) => Statement;
  readonly idsIn: (conversations: string) => Statement;
  /** Ids of rows that match an FTS5 expression, as JSON: all of them, or the newest, newest first. */
  readonly holding: (match: string) => Statement;
  readonly newest: (match: string, most: number) => Statement;
  /** Rows of these ids, or from one id to another, both included; newest first. */
  readonly rows: (ids: string, like: string, filter: Filter) => Statement;
  readonly between: (from: number, to: number, like: string, filter: Filter) => Statement;
}

/** The LIKE pattern of any text. */
const anyText = "%";

const messageColumns = `message_id AS id, conversation_id, seq, role, content, created_at AS at,
  CASE WHEN json_valid(envelope) THEN envelope ->> '$.name' END AS name`;

const messages = createSource({
  name: "messages",
  id: "message_id",
  total: "message_count",
  columns: messageColumns,
  from: "created_at",
  to: "created_at",
  only: "aside IS NOT 'note'",
});

/** A summary is of the time of the messages below it. */
const summaries = createSource({
  name: "summaries",
  id: "search_id",
  total: "summary_count",
  columns: "search_id AS id, summary_id, conversation_id, depth, content, coalesce(latest_at, created_at) AS at",
  from: "coalesce(earliest_at, created_at)",
  to: "coalesce(latest_at, created_at)",
  only: "1",
});

function createSource(of: {
  readonly name: Source["name"];
  readonly id: string;
  readonly total: string;
  readonly columns: string;
  readonly from: string;
  readonly to: string;
  readonly only: string;
}): Source {
  const inList = "IN (SELECT value FROM json_each(?))";
  // What is cheap to check, and leaves out most, comes first.
  const kept = `${of.only} AND ${of.to} >= ? AND ${of.from} < ? AND content LIKE ? ESCAPE '\\'
    AND (? = '[]' OR conversation_id NOT ${inList}) AND (? IS NULL OR conversation_id ${inList}) ORDER BY ${of.id} DESC`;
  const values = (like: string, { since, before, hidden, only }: Filter): readonly Value[] => [
    since,
    before,
    like,
    hidden,
    hidden,
    only,
    only,
  ];
  const extent = statement(`SELECT indexed_upto, coalesce((SELECT max(${of.id}) FROM ${of.name}), 0) AS newest
    FROM search_progress WHERE source = '${of.name}'`);
  const countIn = statement(`SELECT sum(${of.total}) FROM conversations WHERE conversation_id ${inList}`);
  const idsIn = statement(`SELECT json_group_array(${of.id}) AS ids FROM ${of.name} WHERE conversation_id ${inList}`);
  const holding = statement(`SELECT json_group_array(rowid) AS ids FROM ${of.name}_fts WHERE ${of.name}_fts MATCH ?`);
  const newest = statement(`SELECT json_group_array(rowid) AS ids
    FROM (SELECT rowid FROM ${of.name}_fts WHERE ${of.name}_fts MATCH ? ORDER BY rowid DESC LIMIT ?)`);
  const rows = statement(`SELECT ${of.columns} FROM ${of.name} WHERE ${of.id} ${inList} AND ${kept}`);
  const between = statement(`SELECT ${of.columns} FROM ${of.name} WHERE ${of.id} BETWEEN ? AND ? AND ${kept}`);
  return {
    name: of.name,
    extent: () => extent(),
    countIn: (conversations) => countIn(conversations),
    idsIn: (conversations) => idsIn(conversations),
    holding: (match) => holding(match),
    newest: (match, most) => newest(match, most),
    rows: (ids, like, filter) => rows(ids, ...values(like, filter)),
    between: (from, to, like, filter) => between(from, to, ...values(like, filter)),
  };
}

/** Turns by conversation and seq, whenever they were: `[[1, 7], …]`. */
const turnsAt = (places: string): Statement => turnsAtPlaces(places);
const turnsAtPlaces = statement(`SELECT ${messageColumns} FROM json_each(?) AS place
  JOIN messages ON conversation_id = place.value ->> 0 AND seq = place.value ->> 1 WHERE aside IS NOT 'note'`);

/** A statement written once and used with other values: its parts stay the same object, as runners expect. */
function statement(words: string): (...values: readonly Value[]) => Statement {
  const parts = words.split("?");
  return (...values) => ({ parts, values });
}

interface Extent {
  /** Rows up to this id are in the index. */
  readonly indexedUpto: number;
  readonly newest: number;
}

function* extentOf(source: Source): Script<Extent> {
  const found = yield* first(source.extent(), (row) => ({
    indexedUpto: int(row, "indexed_upto"),
    newest: int(row, "newest"),
  }));
  return found ?? { indexedUpto: 0, newest: 0 };
}

function* idsOf(query: Statement): Script<readonly number[]> {
  const ids: unknown = JSON.parse((yield* first(query, (row) => text(row, "ids"))) ?? "[]");
  return Array.isArray(ids) ? ids : [];
}

/** One row that may become a hit. */
interface Found {
  readonly source: Source["name"];
  readonly id: number;
  readonly conversation: ConversationId;
  /** 0 for a summary, which has no place among the turns. */
  readonly seq: number;
  readonly text: string;
  readonly at: Timestamp;
  readonly name: string | null;
  readonly toHit: (shared: Pick<SearchHit, "conversation" | "snippet" | "at" | "score">) => SearchHit;
}

function toFound(row: Row): Found {
  const summary = textOrNull(row, "summary_id");
  const shared = {
    id: int(row, "id"),
    conversation: asConversation(int(row, "conversation_id")),
    text: text(row, "content"),
    at: text(row, "at") as Timestamp,
  };
  if (summary !== null) {
    const depth = int(row, "depth");
    return {
      ...shared,
      source: "summaries",
      seq: 0,
      name: null,
      toHit: (hit) => ({ ...hit, kind: "summary", id: asSummary(summary), depth }),
    };
  }
  const role = roles.find((known) => known === row["role"]) ?? "user";
  const seq = int(row, "seq");
  const name = textOrNull(row, "name");
  return {
    ...shared,
    source: "messages",
    seq,
    name,
    toHit: (hit) => ({ ...hit, kind: "message", id: asMessage(shared.id), role, seq }),
  };
}

const hitOf = (found: Found, stretch: Stretch, score: number): SearchHit =>
  found.toHit({
    conversation: found.conversation,
    snippet: excerpt(found.text, stretch, snippetWidth),
    at: found.at,
    score,
  });

const byRecency = (one: Found, other: Found): number =>
  one.at === other.at ? other.id - one.id : one.at < other.at ? 1 : -1;

// ── The index ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Indexes rows past the watermark, at most so many, and moves it. Tells how many remain. */
export function* indexBatch(rowsMax: number): Script<number> {
  const messageRows = yield sql`
    SELECT message_id AS id, conversation_id, content FROM messages
    WHERE message_id > (SELECT indexed_upto FROM search_progress WHERE source = 'messages') ORDER BY message_id LIMIT ${rowsMax}`;
  for (const row of messageRows) yield indexMessage(int(row, "id"), text(row, "content"), int(row, "conversation_id"));
  const lastMessage = messageRows.at(-1);
  if (lastMessage !== undefined)
    yield sql`UPDATE search_progress SET indexed_upto = ${int(lastMessage, "id")} WHERE source = 'messages'`;

  const summaryRows = yield sql`
    SELECT search_id AS id, conversation_id, content FROM summaries
    WHERE search_id > (SELECT indexed_upto FROM search_progress WHERE source = 'summaries')
    ORDER BY search_id LIMIT ${rowsMax - messageRows.length}`;
  for (const row of summaryRows) yield indexSummary(int(row, "id"), text(row, "content"), int(row, "conversation_id"));
  const lastSummary = summaryRows.at(-1);
  if (lastSummary !== undefined)
    yield sql`UPDATE search_progress SET indexed_upto = ${int(lastSummary, "id")} WHERE source = 'summaries'`;

  let remaining = 0;
  for (const source of [messages, summaries]) {
    const { indexedUpto, newest } = yield* extentOf(source);
    remaining += Math.max(0, newest - indexedUpto);
  }
  return remaining;
}

/** Brings the index up to a row whose text has changed, or that is gone. A row past the watermark is not in it yet. */
export function* reindexRow(
  source: Source["name"],
  id: number,
  content: string | null,
  conversation: number,
): Script<void> {
  const { indexedUpto } = yield* extentOf(source === "messages" ? messages : summaries);
  if (id > indexedUpto) return;
  if (source === "messages") {
    yield sql`DELETE FROM messages_fts WHERE rowid = ${id}`;
    if (content !== null) yield indexMessage(id, content, conversation);
  } else {
    yield sql`DELETE FROM summaries_fts WHERE rowid = ${id}`;
    if (content !== null) yield indexSummary(id, content, conversation);
  }
}

const indexMessage = (id: number, content: string, conversation: number): Statement =>
  sql`INSERT INTO messages_fts (rowid, text) VALUES (${id}, ${prepareForIndex(content, conversation)})`;
const indexSummary = (id: number, content: string, conversation: number): Statement =>
  sql`INSERT INTO summaries_fts (rowid, text) VALUES (${id}, ${prepareForIndex(content, conversation)})`;
