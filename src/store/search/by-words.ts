/**
 * Searches messages and summaries by words: picks rows through the index, reads them, and orders them by time or by how
 * well they answer. Several wordings of a question are one search: each row is read once and scored by each of them.
 */

import type { SearchCaveat, SearchResult } from "../../core/model/store.ts";
import { findBest } from "./by-score.ts";
import { findByTime } from "./by-time.ts";
import { correctTerms } from "./correct.ts";
import { snippetWidth, timeoutMsOf } from "./limits.ts";
import { parseWordings, replaceTerms, type Term, type Wordings } from "./query.ts";
import { bestRange, createReader } from "./rank.ts";
import { holds, type WordHits, type WordSearch } from "./read-candidates.ts";
import { openScope, toResult, toSearchHit } from "./sources.ts";
import { isIndexUsable } from "./indexing.ts";
import { atOnce, type Script } from "../script.ts";

export function* searchByWords(given: GivenSearch): Script<SearchResult> {
  const { request, deadline } = given;
  const asked = parseWordings([request.pattern, ...(request.also ?? [])]);
  if (request.conversations?.length === 0) return { hits: [], caveats: [] };
  const timeoutMs = timeoutMsOf(deadline);
  const { found, collected, missing, weights, corrected, caveats: others = [] } = yield* findCorrected(given, asked);
  const { isLimited, ...result } = toResult(found, request, ({ row, reading, score }) =>
    toSearchHit(row, bestRange(reading, weights, snippetWidth), score),
  );

  const caveats: SearchCaveat[] = [];
  if (isLimited) caveats.push({ kind: "limit", limit: request.limit });
  if (collected.endedLate) caveats.push({ kind: "time", timeoutMs, scanned: collected.looked, of: collected.total });
  if (collected.isCut) caveats.push({ kind: "newest_ranked", ranked: collected.ranked });
  if (corrected.length > 0) caveats.push({ kind: "corrected", words: corrected });
  if (missing !== null && found.length > 0)
    caveats.push({ kind: "partial_match", missing: missing.map((word) => word.text) });
  caveats.push(...others);
  if (collected.unindexed > 0) caveats.push({ kind: "unindexed", rows: collected.unindexed });
  return { ...result, caveats };
}

type GivenSearch = Pick<WordSearch, "index" | "request" | "deadline" | "postings">;

interface Corrected extends WordHits {
  readonly corrected: readonly { readonly from: string; readonly to: string }[];
}

/** Searches, and searches again with other words for those of the pattern that are nowhere in reach. */
function* findCorrected(given: GivenSearch, asked: Wordings): Script<Corrected> {
  const [scope, isUsable] = yield* atOnce([openScope(given.request, given.index.everything), isIndexUsable()]);
  const { sort } = given.request;
  const find = (wanted: WordSearch): Script<WordHits> =>
    sort === "recency" || sort === "oldest" ? findByTime(wanted) : findBest(wanted);
  const searchFor = ({ united: query, each: wordings, terms }: Wordings): WordSearch => {
    return { ...given, isUsable, scope, query, wordings, terms, read: createReader(terms) };
  };
  const wanted = searchFor(asked);
  const first = yield* find(wanted);
  const { candidates, endedLate, unindexed } = first.collected;
  const isFound = (word: Term): boolean => candidates.some(({ reading }) => holds(wanted, reading, word));
  const unknown = endedLate || unindexed > 0 ? [] : (asked.each[0]?.words ?? []).filter((word) => !isFound(word));
  const instead = yield* correctTerms(wanted, unknown);
  if (instead.size === 0) return { ...first, corrected: [] };

  const better = replaceTerms(asked, instead);
  const second = yield* find(searchFor(better));
  const corrected = [...instead].flatMap(([{ text: from }, other]) => {
    const to = firstMatch(second, better.terms.indexOf(other));
    return to === null ? [] : [{ from, to }];
  });
  return { ...second, corrected };
}

/** A term as the best row that contains it writes it: the index has only its stem. */
function firstMatch({ found }: WordHits, term: number): string | null {
  for (const { row, reading } of found) {
    const match = reading.matches.find((each) => each.term === term);
    if (match !== undefined) return row.text.slice(match.from, match.to);
  }
  return null;
}
