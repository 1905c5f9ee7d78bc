/** Searches messages and summaries by regular expression: reads every row, the latest conversation first. */

import type { SearchCaveat, SearchRequest, SearchResult } from "../../core/model/store.ts";
import { isLate, runUntil, timeoutMsOf, type Deadline } from "./limits.ts";
import { later } from "./read-candidates.ts";
import type { TextRange } from "./rank.ts";
import { compilePattern, type Pattern } from "./regex.ts";
import {
  byRecency,
  messages,
  openScope,
  recalledLast,
  rowsNeeded,
  searchedText,
  toResult,
  toSearchHit,
  toSearchedRow,
} from "./sources.ts";
import type { Corpus, Scope, SearchedRow } from "./sources.ts";
import { rowsIn, takeSpans, type Span } from "./spans.ts";
import { int, type Row, type Script } from "../script.ts";
import { numbersPerConversation } from "../../core/model/types.ts";

export function* searchByRegex(request: SearchRequest, deadline: Deadline): Script<SearchResult> {
  const pattern = compilePattern(request.pattern);
  const { limit } = request;
  const timeoutMs = timeoutMsOf(deadline);
  const scope = yield* openScope(request);
  const scans: Scan[] = [];
  const isOldest = request.sort === "oldest";
  const wanted = { limit: rowsNeeded(request), deadline, isOldest };
  for (const corpus of scope.corpora) scans.push(yield* scanRows(corpus, scope.filter, pattern, wanted));
  const hits = inOrder(
    scans.flatMap((scan) => scan.hits),
    isOldest,
  );
  const total = (of: "scanned" | "rows"): number => scans.reduce((sum, scan) => sum + scan[of], 0);

  const caveats: SearchCaveat[] = [];
  const { isLimited, ...result } = toResult(hits, request, ({ row, range }) => toSearchHit(row, range, 0));
  if (isLimited) caveats.push({ kind: "limit", limit });
  if (scans.some((scan) => scan.endedLate))
    caveats.push({ kind: "time", timeoutMs, scanned: total("scanned"), of: total("rows") });
  return { ...result, caveats };
}

interface RegexHit {
  readonly row: SearchedRow;
  readonly range: TextRange;
}

const inOrder = (hits: readonly RegexHit[], isOldest: boolean): readonly RegexHit[] =>
  hits.toSorted((one, other) => recalledLast(one.row, other.row, isOldest ? byRecency(other.row, one.row) : 0));

interface Scan {
  readonly hits: readonly RegexHit[];
  readonly scanned: number;
  readonly rows: number;
  readonly endedLate: boolean;
}

/**
 * How long one statement should take beyond the quickest of them, which a server far away is slow to answer too, and how
 * many rows it reads: few at first, since rows may be long.
 */
const chunkMs = 6;
const chunkRowsMin = 16;
const chunkRowsMax = 1_000;
const nextChunk = (rows: number, tookMs: number): number =>
  tookMs > chunkMs ? Math.max(chunkRowsMin, rows >> 1) : Math.min(chunkRowsMax, rows << 1);

/**
 * The newest or oldest rows that match, and one more than the limit if there are more. A statement cannot be interrupted,
 * so rows are read in chunks, and the deadline is checked in between. Only within a conversation do rows come in the order
 * of time, so the oldest are looked for in each.
 */
function* scanRows(
  corpus: Corpus,
  filter: Scope["filter"],
  pattern: Pattern,
  { limit, deadline, isOldest }: { readonly limit: number; readonly deadline: Deadline; readonly isOldest: boolean },
): Script<Scan> {
  const turned = <T>(list: readonly T[]): T[] => (isOldest ? [...list] : list.toReversed());
  let hits: readonly RegexHit[] = [];
  const spans = turned(yield* corpus.spans("all", filter));
  const rows = rowsIn(spans);
  let untested = 0;
  let chunkRows = chunkRowsMin;
  let quickestMs = Infinity;
  while (spans.length > 0 && untested === 0 && !isLate(deadline)) {
    let { since } = filter;
    const next = takeSpans(spans, chunkRows, isOldest ? "oldest" : "newest");
    if (!isOldest && hits[limit]?.row.isRecalled === false) {
      // Enough rows. Only later ones could still replace one of them.
      since = later(since, hits[limit - 1]?.row.at ?? "");
      if ((next[0]?.latest ?? "") <= since) return { hits, scanned: rows, rows, endedLate: false };
    }
    const startedMs = deadline.nowMs();
    const chunk = turned(inOrderOf(turned(next), yield corpus.spanned(next, { ...filter, since }, pattern)));
    const tookMs = deadline.nowMs() - startedMs;
    quickestMs = Math.min(quickestMs, tookMs);
    chunkRows = nextChunk(chunkRows, tookMs - quickestMs);
    const tested = testRows(chunk, pattern.regex, deadline);
    untested = tested.untested;
    hits = inOrder([...hits, ...tested.hits], isOldest).slice(0, limit + 1);
    const last = hits[limit]?.row;
    const isEnough =
      last?.isRecalled === false && (!isOldest || tested.hits.some(({ row }) => byRecency(row, last) <= 0));
    // Its other rows are older, or later.
    if (corpus === messages && isEnough && spans.at(-1)?.conversation === next.at(-1)?.conversation) spans.pop();
  }
  const left = untested + rowsIn(spans);
  return { hits, scanned: rows - left, rows, endedLate: left > 0 };
}

/**
 * Rows in the order of their spans, oldest first. A conversation has one span at most. SQLite returns them so, and sorting
 * each chunk again would cost as much as a twentieth of the search.
 */
function inOrderOf(spans: readonly Span[], rows: readonly Row[]): readonly Row[] {
  const places = new Map(spans.map(({ conversation }, place) => [conversation, place]));
  const placeOf = (row: Row): number =>
    (places.get(int(row, "conversation_id")) ?? 0) * numbersPerConversation + (int(row, "id") % numbersPerConversation);
  let before = 0;
  for (const row of rows) {
    const place = placeOf(row);
    if (place < before) return rows.toSorted((one, other) => placeOf(one) - placeOf(other));
    before = place;
  }
  return rows;
}

/** Matches each row, until time is up. */
function testRows(chunk: readonly Row[], regex: RegExp, deadline: Deadline) {
  const matches: (RegExpExecArray | null)[] = [];
  runUntil(deadline, () => {
    for (const row of chunk) {
      if (matches.length > 0 && isLate(deadline)) return;
      matches.push(regex.exec(searchedText(row)));
    }
  });
  const hits = matches.flatMap((match, at): readonly RegexHit[] => {
    const row = chunk[at];
    if (row === undefined || match === null) return [];
    return [{ row: toSearchedRow(row), range: { from: match.index, to: match.index + match[0].length } }];
  });
  return { hits, untested: chunk.length - matches.length };
}
