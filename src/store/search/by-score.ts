/** Finds the rows that answer best: those that contain any of the words, scored from their text by each wording. */

import { fuseMeaning } from "./meaning/fuse.ts";
import { lookUp } from "./candidates.ts";
import type { Query, Term } from "./query.ts";
import { termsOf } from "./query.ts";
import {
  fuseWordings,
  neighboursEachSide,
  ownScore,
  placeOf,
  recencyBoosts,
  scoreTurns,
  weightOf,
  type Reading,
  type Scale,
} from "./rank.ts";
import {
  collect,
  holds,
  readRow,
  type Candidate,
  type Scored,
  type WordHits,
  type WordSearch,
} from "./read-candidates.ts";
import { isWithin, messages, recalledLast, toSearchedRow, turnsAt, type Corpus } from "./sources.ts";
import { all, type Script } from "../script.ts";

/** How many rows are scored from their text. */
const candidatesMax = 400;

/** Best first: rows that contain any of the words. */
export function* findBest(wanted: WordSearch): Script<WordHits> {
  const { wordings, scope, request, terms } = wanted;
  // A row that one wording finds has all of its phrases.
  const isFoundBy = (reading: Reading, query: Query): boolean =>
    query.phrases.every((phrase) => holds(wanted, reading, phrase)) &&
    termsOf(query).some((term) => holds(wanted, reading, term));
  const collected = yield* collect(wanted, {
    isMatch: (reading) =>
      reading.counts.some((count) => count > 0) && wordings.some((query) => isFoundBy(reading, query)),
    enough: candidatesMax,
    pick: (corpus) => lookUp(wanted, corpus),
  });
  const weights = terms.map((term) => weightOf(collected.holding.get(term) ?? 0, scope.rows));
  const scored: Scored[] = [];
  for (const corpus of scope.corpora) {
    const candidates = collected.candidates.filter(({ row }) => row.corpus === corpus.name);
    scored.push(...(yield* scoreRows(corpus, candidates, weights, wanted)));
  }
  const { scored: fused, caveats } = yield* fuseMeaning(wanted, scored);
  const boosts = request.sort === "hybrid" ? recencyBoosts(fused.map(({ row }) => row.at)) : [];
  // The index also has words that occur only in calls of our own tools, which are not searched.
  const isAllRead = collected.candidates.length < candidatesMax && !collected.isCut && !collected.endedLate;
  const isUnknown = (word: Term): boolean =>
    collected.holding.get(word) === 0 ||
    (isAllRead && !collected.candidates.some(({ reading }) => holds(wanted, reading, word)));
  const unknown = wordings[0]?.words.filter(isUnknown) ?? [];
  return {
    found: fused
      .map((row, at) => ({ ...row, score: row.score * (boosts[at] ?? 1) }))
      .sort((one, other) => recalledLast(one.row, other.row, other.score - one.score)),
    collected,
    missing: unknown.length > 0 ? unknown : null,
    weights,
    caveats,
  };
}

/** Scores the rows of a corpus by each wording, and makes one score of these. */
function* scoreRows(
  corpus: Corpus,
  candidates: readonly Candidate[],
  weights: readonly number[],
  wanted: WordSearch,
): Script<readonly Scored[]> {
  const { wordings, terms, scope } = wanted;
  const meanLength = candidates.reduce((sum, { reading }) => sum + reading.length, 0) / candidates.length;
  const scales = wordings.map((query): Scale => {
    const places = termsOf(query).map((term) => terms.indexOf(term));
    const own = new Set(places);
    return { places, weights: weights.map((weight, term) => (own.has(term) ? weight : 0)), meanLength };
  });
  const rows = corpus === messages ? yield* withNeighbours(candidates, { weights, meanLength }, wanted) : candidates;
  const turns = rows.map(({ row, reading }) => ({ ...row, reading }));
  const scores = wordings.map((query, at): readonly number[] => {
    const scale = scales[at] ?? { places: [], weights: [], meanLength };
    return corpus === messages
      ? scoreTurns(turns, query, scale)
      : rows.map(({ reading }) => ownScore(reading, scale.weights, meanLength));
  });
  const totals = scales.map((scale) => scale.weights.reduce((sum, weight) => sum + weight, 0));
  const fused = fuseWordings(scores, totals);
  return rows
    .map((row, at) => ({ ...row, score: fused[at] ?? 0 }))
    .filter(
      ({ row, score }) => score > 0 && row.text.trim() !== "" && (corpus !== messages || isWithin(row, scope.filter)),
    );
}

/**
 * Messages and the turns around the best of them. A turn without any of the words can answer a question, so for a
 * question these turns are read too; for a word or two they would be noise.
 */
function* withNeighbours(
  candidates: readonly Candidate[],
  { weights, meanLength }: Pick<Scale, "weights" | "meanLength">,
  wanted: WordSearch,
): Script<readonly Candidate[]> {
  if (!wanted.query.isQuestion) return candidates;
  const scored = candidates.map((each): Scored => ({ ...each, score: ownScore(each.reading, weights, meanLength) }));
  const neighbours = yield* all(turnsAt(placesAround(scored)), toSearchedRow);
  return [...candidates, ...neighbours.map((row) => ({ row, reading: readRow(wanted, row) }))];
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
