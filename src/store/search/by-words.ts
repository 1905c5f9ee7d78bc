/**
 * Searches messages and summaries by words: picks rows through the index, reads them, and orders them by time or by how
 * well they answer. Several wordings of a question are one search: each row is read once and scored by each of them.
 */

import type { SearchCaveat, SearchResult } from "../../core/model/store.ts";
import { findBest } from "./by-score.ts";
import { findByTime } from "./by-time.ts";
import { snippetWidth, timeoutMsOf } from "./limits.ts";
import { parseWordings } from "./query.ts";
import { bestRange, createReader } from "./rank.ts";
import type { WordSearch } from "./read-candidates.ts";
import { openScope, toResult, toSearchHit } from "./sources.ts";
import type { Script } from "../script.ts";

export function* searchByWords(
  given: Pick<WordSearch, "index" | "request" | "deadline" | "postings">,
): Script<SearchResult> {
  const { request, deadline } = given;
  const { united, each, terms } = parseWordings([request.pattern, ...(request.also ?? [])]);
  if (request.conversations?.length === 0) return { hits: [], caveats: [] };
  const timeoutMs = timeoutMsOf(deadline);
  const scope = yield* openScope(request);
  const wanted: WordSearch = { ...given, query: united, wordings: each, scope, terms, read: createReader(terms) };
  const isByTime = request.sort === "recency" || request.sort === "oldest";
  const { found, collected, missing, weights } = yield* isByTime ? findByTime(wanted) : findBest(wanted);
  const { isLimited, ...result } = toResult(found, request, ({ row, reading, score }) =>
    toSearchHit(row, bestRange(reading, weights, snippetWidth), score),
  );

  const caveats: SearchCaveat[] = [];
  if (isLimited) caveats.push({ kind: "limit", limit: request.limit });
  if (collected.endedLate) caveats.push({ kind: "time", timeoutMs, scanned: collected.looked, of: collected.total });
  if (collected.isCut) caveats.push({ kind: "newest_ranked", ranked: collected.ranked });
  if (missing !== null && found.length > 0)
    caveats.push({ kind: "partial_match", missing: missing.map((word) => word.text) });
  if (collected.unindexed > 0) caveats.push({ kind: "unindexed", rows: collected.unindexed });
  return { ...result, caveats };
}
