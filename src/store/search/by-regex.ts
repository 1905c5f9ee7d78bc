/** Searches messages and summaries by regular expression: reads every row, the latest conversation first. */

import type { SearchCaveat, SearchRequest, SearchResult } from "../../core/model/store.ts";
import { isLate, timeoutMsOf, type Deadline } from "./limits.ts";
import { later } from "./read-candidates.ts";
import type { TextRange } from "./rank.ts";
import { compilePattern, type Pattern } from "./regex.ts";
import { runUntil } from "./run-until.ts";
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
import { rowsIn, takeOldest, takeSpans } from "./spans.ts";
import type { Corpus, Scope, SearchedRow } from "./sources.ts";
import type { Row, Script } from "../script.ts";

export function* searchByRegex(request: SearchRequest, deadline: Deadline): Script<SearchResult> {
  const pattern = compilePattern(request.pattern);
  const { limit } = request;
  const timeoutMs = timeoutMsOf(deadline);
  const scope = yield* openScope(request);
  const scans: Scan[] = [];
  const isOldest = request.sort === "oldest";
  for (const corpus of scope.corpora)
    scans.push(
      yield* (isOldest ? scanOldest : scanRows)(corpus, scope.filter, pattern, {
        limit: rowsNeeded(request),
        deadline,
      }),
    );
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

const inOrder = (hits: readonly RegexHit[], isOldest = false): readonly RegexHit[] =>
  hits.toSorted((one, other) => recalledLast(one.row, other.row, isOldest ? byRecency(other.row, one.row) : 0));

interface Scan {
  readonly hits: readonly RegexHit[];
  readonly scanned: number;
  readonly rows: number;
  readonly endedLate: boolean;
}

/** How long one statement should take, and how many rows it reads: few at first, since rows may be long. */
const chunkMs = 6;
const chunkRowsMin = 16;
const chunkRowsMax = 1_000;
const nextChunk = (rows: number, tookMs: number): number =>
  tookMs > chunkMs ? Math.max(chunkRowsMin, rows >> 1) : Math.min(chunkRowsMax, rows << 1);

/**
 * The newest rows that match, and one more than the limit if there are more. A statement cannot be interrupted, so rows
 * are read in chunks, and the deadline is checked in between.
 */
function* scanRows(
  corpus: Corpus,
  filter: Scope["filter"],
  { regex, like }: Pattern,
  { limit, deadline }: { readonly limit: number; readonly deadline: Deadline },
): Script<Scan> {
  let hits: readonly RegexHit[] = [];
  const add = (hit: RegexHit): void => {
    const last = hits[limit];
    if (last === undefined || recalledLast(hit.row, last.row) < 0) hits = inOrder([...hits, hit]).slice(0, limit + 1);
  };
  const spans = [...(yield* corpus.spans("all", filter))].reverse();
  const rows = rowsIn(spans);
  let untested = 0;
  let chunkRows = chunkRowsMin;
  while (spans.length > 0 && untested === 0 && !isLate(deadline)) {
    let { since } = filter;
    const next = takeSpans(spans, chunkRows);
    if (hits[limit]?.row.isRecalled === false) {
      // Enough rows. Only later ones could still replace one of them.
      since = later(since, hits[limit - 1]?.row.at ?? "");
      if ((next[0]?.latest ?? "") <= since) return { hits, scanned: rows, rows, endedLate: false };
    }
    const startedMs = deadline.nowMs();
    // Rows are returned in the order of their spans, oldest first.
    const chunk = (yield corpus.spanned(next.toReversed(), { ...filter, since }, like)).toReversed();
    chunkRows = nextChunk(chunkRows, deadline.nowMs() - startedMs);
    const tested = testRows(chunk, regex, deadline);
    untested = tested.untested;
    for (const hit of tested.hits) add(hit);
    const unread = spans.at(-1);
    if (
      corpus === messages &&
      hits[limit]?.row.isRecalled === false &&
      unread?.conversation === next.at(-1)?.conversation
    )
      spans.pop(); // Its other rows are older.
  }
  const left = untested + rowsIn(spans);
  return { hits, scanned: rows - left, rows, endedLate: left > 0 };
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

/** The oldest rows that match. Only within a conversation do rows come in the order of time, so each is begun. */
function* scanOldest(
  corpus: Corpus,
  filter: Scope["filter"],
  { regex, like }: Pattern,
  { limit, deadline }: { readonly limit: number; readonly deadline: Deadline },
): Script<Scan> {
  let hits: readonly RegexHit[] = [];
  const spans = [...(yield* corpus.spans("all", filter))];
  const rows = rowsIn(spans);
  let untested = 0;
  let chunkRows = chunkRowsMin;
  while (spans.length > 0 && untested === 0 && !isLate(deadline)) {
    const next = takeOldest(spans, chunkRows);
    const startedMs = deadline.nowMs();
    const chunk = yield corpus.spanned(next, filter, like);
    chunkRows = nextChunk(chunkRows, deadline.nowMs() - startedMs);
    const tested = testRows(chunk, regex, deadline);
    untested = tested.untested;
    hits = inOrder([...hits, ...tested.hits], true).slice(0, limit + 1);
    const last = hits[limit]?.row;
    const isEnough = last?.isRecalled === false && tested.hits.some(({ row }) => byRecency(row, last) <= 0);
    if (corpus === messages && isEnough && spans.at(-1)?.conversation === next.at(-1)?.conversation) spans.pop(); // Later.
  }
  const left = untested + rowsIn(spans);
  return { hits, scanned: rows - left, rows, endedLate: left > 0 };
}
