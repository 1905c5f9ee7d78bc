/** Finds the newest or the oldest rows that contain every word of one of the wordings, or some if none does. */

import { conversationIn } from "../../core/model/types.ts";
import { requiredBy, withTerms, type Picked } from "./candidates.ts";
import type { Match } from "./indexing.ts";
import type { Query } from "./query.ts";
import type { Reading } from "./rank.ts";
import { collect, holds, type WordHits, type WordSearch } from "./read-candidates.ts";
import { byRecency, rowsNeeded, type Corpus } from "./sources.ts";
import { asMessage } from "../rows.ts";
import type { Script } from "../script.ts";

/** Newest or oldest first: rows that contain every word; if there are none, rows that contain some. */
export function* findByTime(wanted: WordSearch): Script<WordHits> {
  const full = yield* findHolding(wanted, "all");
  const isSingle = wanted.wordings.every(({ phrases, words }) => phrases.length + words.length === 1);
  const isAnswer = full.found.length > 0 || isSingle || full.collected.endedLate;
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
  const { wordings, request, terms } = wanted;
  // Phrases are required in any case, and are enough where not every word is.
  const isHeld = (reading: Reading, { phrases, words }: Query): boolean =>
    phrases.every((phrase) => holds(wanted, reading, phrase)) &&
    (which === "all"
      ? words.every((word) => holds(wanted, reading, word))
      : phrases.length > 0 || words.some((word) => holds(wanted, reading, word)));
  const isOldest = request.sort === "oldest";
  const collected = yield* collect(wanted, {
    isMatch: (reading) => wordings.some((query) => isHeld(reading, query)),
    enough: isOldest ? newestMax : rowsNeeded(request) + 1,
    pick: (corpus) => pickByTime(wanted, corpus, which),
  });
  const direction = isOldest ? -1 : 1;
  const candidates = collected.candidates.toSorted((one, other) => direction * byRecency(one.row, other.row));
  const words = wordings[0]?.words ?? [];
  return {
    found: candidates.map((candidate) => ({ ...candidate, score: 0 })),
    collected,
    missing:
      which === "all" ? null : words.filter((word) => !candidates.some(({ reading }) => holds(wanted, reading, word))),
    weights: terms.map(() => 1),
  };
}

/** What the index is asked for: the highest ids of each wording. */
function* pickByTime(
  { wordings, scope, request, index, postings, query }: WordSearch,
  corpus: Corpus,
  which: "all" | "some",
): Script<Picked> {
  const isOldest = request.sort === "oldest";
  const most = isOldest ? postings : newestMax;
  const matches = wordings.map((wording): Match => {
    const required = requiredBy(wording, scope);
    return which === "all"
      ? withTerms(required, ...wording.words)
      : { ...required, any: wording.phrases.length > 0 ? [] : wording.words };
  });
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
