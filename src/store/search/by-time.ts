/** Finds the newest or the oldest rows that contain every word of one of the wordings, or most if none does. */

import type { SearchRequest } from "../../core/model/store.ts";
import { conversationIn } from "../../core/model/types.ts";
import { requiredBy, withTerms, type Picked } from "./candidates.ts";
import { findBest } from "./by-score.ts";
import type { Match } from "./indexing.ts";
import type { Query, Term } from "./query.ts";
import type { Reading } from "./rank.ts";
import { collect, holds, type Candidate, type WordHits, type WordSearch } from "./read-candidates.ts";
import { byRecency, rowsNeeded, type Corpus } from "./sources.ts";
import { asMessage } from "../rows.ts";
import type { Script } from "../script.ts";

/** Newest or oldest first: rows that contain every word; if there are none, rows that contain most of them. */
export function* findByTime(wanted: WordSearch): Script<WordHits> {
  const full = yield* findHolding(wanted);
  const isSingle = wanted.wordings.every(({ phrases, words }) => phrases.length + words.length === 1);
  const isAnswer = full.found.length > 0 || isSingle || full.collected.endedLate;
  return isAnswer ? full : yield* findMost(wanted);
}

/** Rows with less than this share of the words that the best row has are left out. */
const leastShare = 0.7;

/** Of the rows that answer best, those that contain most of the words of a wording; rare words count more. */
function* findMost(wanted: WordSearch): Script<WordHits> {
  const { wordings, terms, request } = wanted;
  const best = yield* findBest({ ...wanted, request: { ...request, sort: "relevance" } });
  const weightOf = (words: readonly Term[]): number =>
    words.reduce((sum, word) => sum + (best.weights[terms.indexOf(word)] ?? 0), 0);
  const shareOf = ({ reading }: Candidate): number =>
    Math.max(
      ...wordings.map(({ phrases, words }) => {
        const asked = [...phrases, ...words];
        return (
          weightOf(asked.filter((term) => holds(wanted, reading, term))) / Math.max(weightOf(asked), Number.EPSILON)
        );
      }),
    );
  const shares = new Map(best.found.map((candidate) => [candidate, shareOf(candidate)]));
  const most = Math.max(...shares.values());
  const found = best.found.filter((candidate) => (shares.get(candidate) ?? 0) >= leastShare * most);
  const words = wordings[0]?.words ?? [];
  return {
    ...best,
    found: inOrder(request, found).map((each) => ({ ...each, score: 0 })),
    missing: words.filter((word) => !found.some(({ reading }) => holds(wanted, reading, word))),
  };
}

/** Newest first, or oldest first. */
const inOrder = <T extends Candidate>({ sort }: SearchRequest, rows: readonly T[]): readonly T[] =>
  rows.toSorted((one, other) => (sort === "oldest" ? -1 : 1) * byRecency(one.row, other.row));

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

function* findHolding(wanted: WordSearch): Script<WordHits> {
  const { wordings, request, terms } = wanted;
  const isHeld = (reading: Reading, { phrases, words }: Query): boolean =>
    [...phrases, ...words].every((term) => holds(wanted, reading, term));
  const collected = yield* collect(wanted, {
    isMatch: (reading) => wordings.some((query) => isHeld(reading, query)),
    enough: request.sort === "oldest" ? newestMax : rowsNeeded(request) + 1,
    pick: (corpus) => pickByTime(wanted, corpus),
  });
  const found = inOrder(request, collected.candidates).map((candidate) => ({ ...candidate, score: 0 }));
  return { found, collected, missing: null, weights: terms.map(() => 1) };
}

/** What the index is asked for: the highest ids of each wording. */
function* pickByTime({ wordings, scope, request, index, postings, query }: WordSearch, corpus: Corpus): Script<Picked> {
  const isOldest = request.sort === "oldest";
  const most = isOldest ? postings : newestMax;
  const matches = wordings.map((wording): Match => withTerms(requiredBy(wording, scope), ...wording.words));
  const [only] = matches;
  const match = only !== undefined && matches.length === 1 ? only : { ...requiredBy(query, scope), any: query.words };
  const found = new Set<number>();
  let cutBelow = 0;
  for (const each of matches) {
    const ids = yield* index.newest(corpus.name, each, most);
    for (const id of ids) found.add(id);
    if (ids.length === most) cutBelow = Math.max(cutBelow, ids.at(-1) ?? 0);
  }
  // Below the place where one wording was cut, the others are not complete either.
  const ids = [...found].filter((id) => id >= cutBelow).sort((one, other) => other - one);
  const picked = isOldest ? oldestOfEach(yield* corpus.sift(ids, scope.filter), request.limit + sparePerPick) : ids;
  return { ranked: picked.length, ids: (from, to) => picked.slice(from, to), holding: new Map(), match, cutBelow };
}
