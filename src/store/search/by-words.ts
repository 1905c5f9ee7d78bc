/** Searches messages and summaries by words: picks rows through the index, reads them and scores their text. */

import type { SearchCaveat, SearchHit, SearchResult } from "../../core/model/store.ts";
import { lookUp, requiredBy, withTerms } from "./candidates.ts";
import type { Match } from "./indexing.ts";
import { snippetWidth, timeoutMsOf } from "./limits.ts";
import { parseQuery, type Term } from "./query.ts";
import {
  bestRange,
  createReader,
  neighboursEachSide,
  ownScore,
  placeOf,
  recencyBoosts,
  scoreTurns,
  weightOf,
} from "./rank.ts";
import type { Reading } from "./rank.ts";
import { collect, holds, type Candidate, type Collected, type WordSearch } from "./read-candidates.ts";
import {
  byRecency,
  isWithin,
  messages,
  openScope,
  recalledLast,
  toSearchHit,
  toSearchedRow,
  turnsAt,
} from "./sources.ts";
import { compareMeaning, fuse, lacksVectors, type Meaning } from "./semantic.ts";
import { all, type Script } from "../script.ts";
import { asMessage } from "../rows.ts";
import { conversationIn } from "../../core/model/types.ts";

interface WordHits {
  /** In order, and one more than the limit if there are more. */
  readonly hits: readonly SearchHit[];
  readonly collected: Collected;
  /** Words that were not found; empty if each was found but not all together; null if none is worth reporting. */
  readonly missing: readonly Term[] | null;
  readonly meaning: Meaning | null;
}

export function* searchByWords(
  given: Pick<WordSearch, "index" | "request" | "deadline" | "postings">,
): Script<SearchResult> {
  const { request, deadline } = given;
  const query = parseQuery(request.pattern);
  if (request.conversations?.length === 0) return { hits: [], caveats: [] };
  const timeoutMs = timeoutMsOf(deadline);
  const scope = yield* openScope(request);
  const terms = [...query.phrases, ...query.words, ...query.pieces];
  const wanted: WordSearch = { ...given, query, scope, terms, read: createReader(terms) };
  const { hits, collected, missing, meaning } =
    request.sort === "recency" || request.sort === "oldest" ? yield* findByTime(wanted) : yield* findBest(wanted);

  const caveats: SearchCaveat[] = [];
  if (hits.length > request.limit) caveats.push({ kind: "limit", limit: request.limit });
  if (collected.endedLate) caveats.push({ kind: "time", timeoutMs, scanned: collected.looked, of: collected.total });
  if (collected.isCut) caveats.push({ kind: "newest_ranked", ranked: collected.ranked });
  if (missing !== null && hits.length > 0)
    caveats.push({ kind: "partial_match", missing: missing.map((word) => word.text) });
  if (meaning !== null && lacksVectors(meaning))
    caveats.push({ kind: "unembedded", messages: meaning.missing, of: meaning.rows });
  if (collected.unindexed > 0) caveats.push({ kind: "unindexed", rows: collected.unindexed });
  return { hits: hits.slice(0, request.limit), caveats };
}

/** Newest or oldest first: rows that contain every word; if there are none, rows that contain some. */
function* findByTime(wanted: WordSearch): Script<WordHits> {
  const { phrases, words } = wanted.query;
  const full = yield* findHolding(wanted, "all");
  const isAnswer = full.hits.length > 0 || phrases.length + words.length === 1 || full.collected.endedLate;
  return isAnswer ? full : yield* findHolding(wanted, "some");
}

const newestMax = 2_000;
/** A few of the rows that the index finds contain the words only in calls of our own tools. */
const sparePerPick = 10;

/** Ids rise with time only within a conversation, so the lowest of each are read. */
function oldestOfEach(ids: readonly number[], most: number): readonly number[] {
  const counts = new Map<number, number>();
  return ids
    .toSorted((one, other) => one - other)
    .filter((id) => {
      const conversation = conversationIn(asMessage(id));
      const count = (counts.get(conversation) ?? 0) + 1;
      counts.set(conversation, count);
      return count <= most;
    });
}

function* findHolding(wanted: WordSearch, which: "all" | "some"): Script<WordHits> {
  const { query, scope, request, terms } = wanted;
  const required = requiredBy(query, scope);
  // Phrases are required in any case, and are enough where not every word is.
  const match: Match =
    which === "all"
      ? withTerms(required, ...query.words)
      : { ...required, any: query.phrases.length > 0 ? [] : query.words };
  const isMatch = (reading: Reading): boolean =>
    which === "all"
      ? query.words.every((word) => holds(wanted, reading, word))
      : query.phrases.length > 0 || query.words.some((word) => holds(wanted, reading, word));
  const isOldest = request.sort === "oldest";
  const collected = yield* collect(wanted, {
    isMatch,
    enough: isOldest ? newestMax : request.limit + 1,
    *pick(corpus) {
      const most = isOldest ? wanted.postings : newestMax;
      const ids = yield* wanted.index.newest(corpus.name, match, most);
      const cutBelow = ids.length < most ? 0 : (ids.at(-1) ?? 0);
      const picked = isOldest ? oldestOfEach(yield* corpus.sift(ids, scope.filter), request.limit + sparePerPick) : ids;
      return { ranked: picked.length, ids: (from, to) => picked.slice(from, to), holding: new Map(), match, cutBelow };
    },
  });
  const direction = isOldest ? -1 : 1;
  const candidates = collected.candidates.toSorted((one, other) => direction * byRecency(one.row, other.row));
  const weights = terms.map(() => 1);
  return {
    hits: candidates
      .slice(0, request.limit + 1)
      .map(({ row, reading }) => toSearchHit(row, bestRange(reading, weights, snippetWidth), 0)),
    collected,
    missing:
      which === "all"
        ? null
        : query.words.filter((word) => !candidates.some(({ reading }) => holds(wanted, reading, word))),
    meaning: null,
  };
}

/** How many rows are scored from their text. */
const candidatesMax = 400;

/** Best first: rows that contain any of the words. */
function* findBest(wanted: WordSearch): Script<WordHits> {
  const { query, scope, request, terms } = wanted;
  const collected = yield* collect(wanted, {
    isMatch: (reading) => reading.matches.length > 0,
    enough: candidatesMax,
    pick: (corpus) => lookUp(wanted, corpus),
  });
  const weights = terms.map((term) => weightOf(collected.holding.get(term) ?? 0, scope.rows));
  const ranked: Scored[] = [];
  for (const corpus of scope.corpora) {
    const candidates = collected.candidates.filter(({ row }) => row.corpus === corpus.name);
    const meanLength = candidates.reduce((sum, { reading }) => sum + reading.length, 0) / candidates.length;
    const scored = candidates.map((candidate): Scored => {
      return { ...candidate, score: ownScore(candidate.reading, weights, meanLength) };
    });
    ranked.push(...(corpus === messages ? yield* scoreAmongTurns(scored, { weights, meanLength }, wanted) : scored));
  }
  const meaning = yield* findMeaning(wanted);
  if (meaning !== null) ranked.splice(0, ranked.length, ...(yield* fuseMeaning(wanted, ranked, meaning)));
  const boosts = request.sort === "hybrid" ? recencyBoosts(ranked.map(({ row }) => row.at)) : [];
  // The index also has words that occur only in calls of our own tools, which are not searched.
  const isAllRead = collected.candidates.length < candidatesMax && !collected.isCut && !collected.endedLate;
  const isUnknown = (word: Term): boolean =>
    collected.holding.get(word) === 0 ||
    (isAllRead && !collected.candidates.some(({ reading }) => holds(wanted, reading, word)));
  const unknown = query.words.filter(isUnknown);
  return {
    hits: ranked
      .map((scored, at) => ({ ...scored, score: scored.score * (boosts[at] ?? 1) }))
      .sort((one, other) => recalledLast(one.row, other.row, other.score - one.score))
      .slice(0, request.limit + 1)
      .map(({ row, reading, score }) => toSearchHit(row, bestRange(reading, weights, snippetWidth), score)),
    collected,
    missing: unknown.length > 0 ? unknown : null,
    meaning,
  };
}

/** Compares meanings, if the request asks for it. */
function* findMeaning({ request, scope, deadline }: WordSearch): Script<Meaning | null> {
  if (request.meaning === undefined || !scope.corpora.includes(messages)) return null;
  return yield* compareMeaning(request.meaning, scope.filter, deadline);
}

/** Adds the messages that are closest in meaning, and scores all rows by words and meaning. */
function* fuseMeaning(wanted: WordSearch, ranked: readonly Scored[], meaning: Meaning): Script<readonly Scored[]> {
  const { query, scope, read } = wanted;
  const known = new Set(ranked.flatMap(({ row }) => (row.corpus === "messages" ? [row.id] : [])));
  // A message without a phrase is no match, however close it is.
  const added = query.phrases.length > 0 ? [] : meaning.closest(closestMax).filter((id) => !known.has(id));
  const rows = yield* messages.rows(added.filter(scope.isNear.messages), scope.filter);
  const close = rows
    .filter(({ text }) => text !== "")
    .map((row): Scored => ({ row, reading: read(row.text), score: 0 }));
  return fuse([...ranked, ...close], meaning);
}

/** How many messages are added because they are close. */
const closestMax = 200;

type Scored = Candidate & { readonly score: number };

/**
 * Scores messages together with the turns around them. A turn without any of the words can answer a question, so for a
 * question these turns are read too; for a word or two they would be noise.
 */
function* scoreAmongTurns(
  candidates: readonly Scored[],
  scale: { readonly weights: readonly number[]; readonly meanLength: number },
  { query, scope, read }: WordSearch,
): Script<readonly Scored[]> {
  const neighbours = query.isQuestion ? yield* all(turnsAt(placesAround(candidates)), toSearchedRow) : [];
  const turns: readonly Candidate[] = [...candidates, ...neighbours.map((row) => ({ row, reading: read(row.text) }))];
  const scores = scoreTurns(
    turns.map(({ row, reading }) => ({ ...row, reading })),
    query,
    scale,
  );
  return turns
    .map((turn, at) => ({ ...turn, score: scores[at] ?? 0 }))
    .filter(({ row, score }) => score > 0 && row.text.trim() !== "" && isWithin(row, scope.filter));
}

/** The turns around this many of the best rows are read. */
const lendersMax = 80;

/** Conversation and seq of the turns around the best candidates that are not candidates themselves. */
function placesAround(candidates: readonly Scored[]): readonly (readonly [number, number])[] {
  const places: (readonly [number, number])[] = [];
  const known = new Set(candidates.map(({ row }) => placeOf(row.conversation, row.seq)));
  for (const { row } of candidates.toSorted((one, other) => other.score - one.score).slice(0, lendersMax)) {
    for (let seq = row.seq - neighboursEachSide; seq <= row.seq + neighboursEachSide; seq++) {
      const place = placeOf(row.conversation, seq);
      if (!known.has(place)) places.push([row.conversation, seq]);
      known.add(place);
    }
  }
  return places;
}
