/**
 * Searches stored files: large content that was moved out of messages. Files are not indexed, so they are read one at a
 * time, newest first. A hit is a spot in a file; a file's spots beyond its first few rank after all other files' spots.
 */

import { LcmError } from "../../core/base/errors.ts";
import { mapMimeType, type StoredFile } from "../../core/model/types.ts";
import type { SearchCaveat, SearchHit, SearchRequest, SearchResult } from "../../core/model/store.ts";
import { excerpt } from "../../core/base/excerpt.ts";
import { sharedFiles } from "./shared-files.ts";
import { compilePattern } from "./regex.ts";
import { bestRange, createReader, ownScore, recencyBoosts, weightOf, type Reading, type TextRange } from "./rank.ts";
import { toStoredFile } from "../rows.ts";
import { all, count, sql, type Script } from "../script.ts";
import { checkRequest, isLate, runUntil, snippetWidth, timeoutMsOf, type Deadline } from "./limits.ts";
import { parseQuery, type Term } from "./query.ts";

/** Text files, newest first. Conversations that are named are searched even if hidden. */
export function* filesToSearch(request: SearchRequest): Script<readonly StoredFile[]> {
  const { conversations, since = "", before = "~" } = request;
  const only = conversations ?? null;
  const shared = yield* sharedFiles(conversations ?? null);
  const files = yield* all(
    sql`SELECT * FROM (SELECT file_id, f.conversation_id, file_name, mime_type, byte_size, line_count, encoding, storage_uri,
               NULL AS exploration_summary, f.created_at, message_key, f.file_number AS number,
               (CASE WHEN ${only} IS NULL THEN c.hidden = 0
                ELSE c.conversation_id IN (SELECT value FROM numbers_in(${only})) END) AS own
        FROM large_files f JOIN conversations c USING (conversation_id)
        WHERE encoding = 'utf8' AND f.created_at >= ${since} AND f.created_at < ${before}) AS found
        WHERE (own OR file_id IN (SELECT value FROM texts_in(${[...shared.keys()]})))
        ORDER BY created_at DESC, number DESC`,
    (row) => ({ file: toStoredFile(row), isOwn: row["own"] === 1 }),
  );
  return files.map(({ file, isOwn }) =>
    isOwn ? file : { ...file, conversation: shared.get(file.id)?.conversation ?? file.conversation },
  );
}

/** How many text files of the searched messages are not searched themselves. */
export function* filesUnsearched(request: SearchRequest): Script<number> {
  const { scope, conversations, since = "", before = "~" } = request;
  if (scope === "summaries") return 0;
  const only = conversations ?? null;
  // Copied messages may share files of other conversations. Without copies, counting is cheap.
  const copies = yield* count(
    sql`SELECT EXISTS (SELECT 1 FROM numbers_in(${only}) c CROSS JOIN messages m
          ON m.conversation_id = c.value AND m.message_key >= 'copy:' AND m.message_key < 'copy;')`,
  );
  // Answers of a map are not part of any message.
  if (copies > 0) return (yield* filesToSearch(request)).filter(({ mimeType }) => mimeType !== mapMimeType).length;
  return yield* count(
    sql`SELECT count(*) FROM large_files f JOIN conversations c USING (conversation_id)
        WHERE f.encoding = 'utf8' AND coalesce(f.mime_type, '') <> ${mapMimeType} AND f.created_at >= ${since} AND f.created_at < ${before} AND (CASE WHEN ${only} IS NULL THEN c.hidden = 0
              ELSE c.conversation_id IN (SELECT value FROM numbers_in(${only})) END)`,
  );
}

/** A file that cannot be read is a caveat, not an error. */
export async function searchFiles(
  request: SearchRequest,
  deadline: Deadline,
  files: readonly StoredFile[],
  read: (file: StoredFile) => Promise<string>,
): Promise<SearchResult> {
  checkRequest(request);
  const look = request.mode === "regex" ? lookByPattern(request, deadline) : lookByWords(request, deadline);
  const timeoutMs = timeoutMsOf(deadline);
  const boosts = request.sort === "hybrid" ? recencyBoosts(files.map((file) => file.createdAt)) : [];
  const scored = (places: readonly FileSpot[]): FileSpot[] => {
    const score = look.scorer();
    return places.map((place) => ({ ...place, score: score(place.spot) * (boosts[place.age] ?? 1) }));
  };
  let kept: readonly FileSpot[] = [];
  let [scanned, unreadable, endedLate] = [0, 0, false];
  for (const [age, file] of files.entries()) {
    if (!look.isRanked && kept.length > request.limit && kept.every(isAmongFirst)) break; // The others are older.
    endedLate ||= isLate(deadline);
    if (endedLate) break;
    const text = await readOrNull(file, read);
    if (text === null) unreadable += 1;
    else {
      const { spots, isWhole } = look.spotsIn(text);
      const found = spots.map((spot, rank): FileSpot => ({ file, age, rank, spot, score: 0, shown: null }));
      const first = scored([...kept, ...found])
        .sort(keptFirst)
        .slice(0, request.limit + 1);
      kept = withShown(first, text);
      endedLate = !isWhole;
    }
    if (!endedLate) scanned += 1;
  }

  const full = kept.filter(({ spot }) => spot.isFull);
  const places = full.length > 0 ? full : kept;
  const caveats: SearchCaveat[] = [];
  if (places.length > request.limit) caveats.push({ kind: "limit", limit: request.limit });
  if (endedLate) caveats.push({ kind: "time", timeoutMs, scanned, of: files.length });
  const missing = look.missingFrom(places);
  if (missing !== null && places.length > 0)
    caveats.push({ kind: "partial_match", missing: missing.map((word) => word.text) });
  if (unreadable > 0) caveats.push({ kind: "unreadable", files: unreadable });
  return { hits: scored(places.slice(0, request.limit)).sort(shownFirst).map(toHit), caveats };
}

async function readOrNull(file: StoredFile, read: (file: StoredFile) => Promise<string>): Promise<string | null> {
  try {
    return await read(file);
  } catch (error) {
    if (error instanceof LcmError) return null; // Missing content; a caveat reports how many.
    throw error;
  }
}

// ── Places ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A part of a text that matches. */
interface Spot extends TextRange {
  /** Whether it contains everything that was asked for. */
  readonly isFull: boolean;
  /** What it contains of the words; null for a regular expression. */
  readonly reading: Reading | null;
}

/** A spot among those of all files. */
interface FileSpot {
  readonly file: StoredFile;
  /** How many files are newer. */
  readonly age: number;
  /** How many spots of the same file come before it. */
  readonly rank: number;
  readonly spot: Spot;
  readonly score: number;
  /** Filled in while the text is in memory, for spots that are kept. */
  readonly shown: { readonly line: number; readonly snippet: string } | null;
}

/** How many spots of one file rank among those of other files. */
const firstOfFile = 5;

const isAmongFirst = ({ spot, rank }: FileSpot): boolean => spot.isFull && rank < firstOfFile;

const shownFirst = (one: FileSpot, other: FileSpot): number =>
  other.score - one.score || one.age - other.age || one.rank - other.rank;

const keptFirst = (one: FileSpot, other: FileSpot): number =>
  Number(other.spot.isFull) - Number(one.spot.isFull) ||
  Number(one.rank >= firstOfFile) - Number(other.rank >= firstOfFile) ||
  shownFirst(one, other);

/** Adds a line and a snippet to the spots that have none yet; these are in this text. */
function withShown(places: readonly FileSpot[], text: string): readonly FileSpot[] {
  const lines = new Map<Spot, number>();
  let [line, counted] = [1, 0];
  const spots = places.filter(({ shown }) => shown === null).map(({ spot }) => spot);
  for (const spot of spots.sort((one, other) => one.from - other.from)) {
    for (let at = text.indexOf("\n", counted); at >= 0 && at < spot.from; at = text.indexOf("\n", counted)) {
      line += 1;
      counted = at + 1;
    }
    lines.set(spot, line);
  }
  return places.map((place) => ({
    ...place,
    shown: place.shown ?? { line: lines.get(place.spot) ?? 1, snippet: linesAt(text, place.spot) },
  }));
}

/** The whole lines of a spot, as many as fit; of a line that is too long, the part around the match. */
function linesAt(text: string, spot: TextRange): string {
  const beside = 3 * snippetWidth; // More than an excerpt uses.
  const edge = Math.max(0, spot.from - beside);
  const near = text.slice(edge, Math.min(spot.to, spot.from + snippetWidth) + beside);
  const from = spot.from - edge;
  const start = from === 0 ? 0 : near.lastIndexOf("\n", from - 1) + 1;
  const ends = Array.from(`${near}\n`.matchAll(/\r?\n/g), ({ index }) => index).filter((end) => end >= from);
  const fitting = ends.filter((end) => end - start <= snippetWidth);
  const end = fitting.find((each) => each >= spot.to - edge) ?? fitting.at(-1);
  if (end !== undefined) return near.slice(start, end);
  const line = near.slice(start, ends[0]);
  return excerpt(line, { from: from - start, to: Math.min(spot.to - edge, start + line.length) - start }, snippetWidth);
}

const toHit = ({ file, score, shown }: FileSpot): SearchHit => ({
  kind: "file",
  id: file.id,
  name: file.name,
  line: shown?.line ?? 1,
  conversation: file.conversation,
  snippet: shown?.snippet ?? "",
  at: file.createdAt,
  score,
});

// ── Looking into a text ──────────────────────────────────────────────────────────────────────────────────────────────

interface Look {
  /** Whether spots of an older file can rank before those of a newer one. */
  readonly isRanked: boolean;
  /** The first spots of a text, and one more than the limit if there are more; not whole if time ran out. */
  readonly spotsIn: (text: string) => { readonly spots: readonly Spot[]; readonly isWhole: boolean };
  /** Scores spots by the frequencies of the words so far. */
  readonly scorer: () => (spot: Spot) => number;
  /** Words that were not found; empty if each was found but not all together; null if none is worth reporting. */
  readonly missingFrom: (places: readonly FileSpot[]) => readonly Term[] | null;
}

/** How many characters are searched between two checks of the deadline. */
const pieceMax = 2 ** 20;

function lookByPattern({ pattern, limit }: SearchRequest, deadline: Deadline): Look {
  const { regex, literal, isOfOneLine } = compilePattern(pattern);
  const each = new RegExp(regex, `${regex.flags}g`);
  const mayMatch = (text: string): boolean => {
    for (let from = 0; from < text.length; from += pieceMax)
      if (
        text
          .slice(from, from + pieceMax + literal.length)
          .toLowerCase()
          .includes(literal)
      )
        return true;
    return literal === "";
  };
  /** Matches in a piece, so far apart that no snippet shows two. */
  function* matchesIn(piece: string): Generator<TextRange> {
    each.lastIndex = 0;
    for (let match = each.exec(piece); match !== null; match = each.exec(piece)) {
      const to = match.index + match[0].length;
      // The line of a match is that of its first visible character.
      yield { from: match.index + Math.max(0, match[0].search(/\S/)), to };
      const beside = piece.slice(to, to + snippetWidth / 2);
      each.lastIndex = to + (beside.includes("\n") ? beside.indexOf("\n") : beside.length) + 1;
    }
  }

  return {
    isRanked: false,
    scorer: () => () => 0,
    missingFrom: () => null,
    spotsIn(text) {
      const spots: Spot[] = [];
      let isWhole = false;
      const isInTime = runUntil(deadline, () => void (isWhole = collect(text, spots)));
      return { spots, isWhole: isInTime && isWhole };
    },
  };

  /** Whether the whole text was searched, or enough was found. */
  function collect(text: string, spots: Spot[]): boolean {
    for (let from = 0; from <= text.length;) {
      if (isLate(deadline)) return false;
      const end = isOfOneLine ? text.indexOf("\n", from + pieceMax) : -1;
      const piece = text.slice(from, end < 0 ? text.length : end);
      for (const match of mayMatch(piece) ? matchesIn(piece) : []) {
        spots.push({ from: from + match.from, to: from + match.to, isFull: true, reading: null });
        if (spots.length > limit) return true;
        if (isLate(deadline)) return false;
      }
      from += piece.length + 1;
    }
    return true;
  }
}

/** How many spots of a text are collected before the best are chosen. */
const spotsMax = 2_000;

/**
 * Reads a text in windows of about the size of a message. The text must contain every phrase; a window matches if it
 * contains one of them or, without phrases, a word. Sorted by recency, windows that contain everything come first.
 */
function lookByWords({ pattern, sort, limit }: SearchRequest, deadline: Deadline): Look {
  const { phrases, words, pieces } = parseQuery(pattern);
  const terms = [...phrases, ...words, ...pieces];
  const isRanked = sort !== "recency";
  const wanted = new Set(phrases.length > 0 ? phrases : isRanked ? terms : words);
  const mayHold = createSieve(wanted);
  const margin = marginOf(terms);
  /** Terms found in texts that contain every phrase. */
  const known = new Set<Term>();
  const frequencies = createFrequencies(terms);
  const weights = (): readonly number[] => (isRanked ? frequencies.weights() : terms.map(() => 1));
  const scorer: Look["scorer"] = () => {
    const [weighed, meanLength] = [weights(), frequencies.meanLength()];
    return ({ reading }) => (isRanked && reading !== null ? ownScore(reading, weighed, meanLength) : 0);
  };
  const inOrder = (spots: readonly WordSpot[]): readonly WordSpot[] => {
    const score = scorer();
    const scored = spots.map((spot) => ({ ...spot, score: score(spot) }));
    return scored.sort(
      (one, other) => Number(other.isFull) - Number(one.isFull) || other.score - one.score || one.from - other.from,
    );
  };
  /** The best of them, narrowed to their matches. Windows overlap, so two can show the same match. */
  const narrow = (spots: readonly WordSpot[]): readonly Spot[] => {
    const weighed = weights();
    const narrowed: Spot[] = [];
    for (const spot of inOrder(spots)) {
      const range = bestRange(spot.reading, weighed, snippetWidth);
      const [from, to] = [spot.from + range.from, spot.from + range.to];
      if (!narrowed.some((known) => from < known.to && known.from < to)) narrowed.push({ ...spot, from, to });
      if (narrowed.length > limit) break;
    }
    return narrowed;
  };

  return {
    isRanked,
    scorer,
    spotsIn(text) {
      const read = createReader(terms); // One per text, since remembered words keep their text in memory.
      const held = new Set<Term>();
      let spots: WordSpot[] = [];
      let isWhole = true;
      for (const { from, to } of windowsOf(text, margin)) {
        isWhole = !isLate(deadline);
        if (!isWhole) break;
        frequencies.addWindow();
        const window = text.slice(from, to);
        if (!mayHold(window)) continue;
        const reading = read(window);
        const here = terms.filter((_, term) => (reading.counts[term] ?? 0) > 0);
        if (!here.some((term) => wanted.has(term))) continue;
        frequencies.addReading(reading);
        for (const term of here) held.add(term);
        const isFull = isRanked || [...phrases, ...words].every((term) => here.includes(term));
        spots.push({ from, to, isFull, reading });
        if (spots.length === spotsMax) spots = inOrder(spots).slice(0, spotsMax / 2);
      }
      if (!phrases.every((phrase) => held.has(phrase))) return { spots: [], isWhole };
      for (const term of held) known.add(term);
      return { spots: narrow(spots), isWhole };
    },
    missingFrom(places) {
      const unknown = words.filter((word) => !known.has(word));
      const isWorthReporting = isRanked ? unknown.length > 0 : places.some(({ spot }) => !spot.isFull);
      return isWorthReporting ? unknown : null;
    },
  };
}

/** How frequent terms are in the windows read so far. */
function createFrequencies(terms: readonly Term[]) {
  const holding = terms.map(() => 0);
  let [windows, readings, length] = [0, 0, 0];
  return {
    addWindow: () => void (windows += 1),
    addReading(reading: Reading): void {
      readings += 1;
      length += reading.length;
      for (const [term, count] of reading.counts.entries()) if (count > 0) holding[term] = (holding[term] ?? 0) + 1;
    },
    weights: (): readonly number[] => holding.map((held) => weightOf(held, windows)),
    meanLength: (): number => length / readings,
  };
}

/** A window, and what it contains. */
type WordSpot = Spot & { readonly reading: Reading };

/**
 * A fast check that only rejects texts that cannot contain any of these terms: a word shares every letter but the last
 * with its stem. Texts with non-ASCII letters always pass, since letters are folded in too many ways.
 */
function createSieve(terms: Iterable<Term>): (text: string) => boolean {
  const openings = Array.from(terms).flatMap(({ alternatives }) =>
    alternatives.map((row) =>
      row.map((stem) => stem.slice(0, -1)).reduce((one, other) => (other.length > one.length ? other : one)),
    ),
  );
  return (text) => {
    if (/[^\x00-\x7f]/.test(text)) return true;
    const lower = text.toLowerCase();
    return openings.some((opening) => lower.includes(opening));
  };
}

/** How much windows overlap at least: what the longest term may take in a text, with blanks and line ends. */
const marginOf = (terms: readonly Term[]): number => 80 + 2 * Math.max(...terms.map((term) => term.text.length));

/** Overlapping parts of a text of some hundred words, so that what crosses an edge is whole in one of them. */
function* windowsOf(text: string, margin: number): Generator<TextRange> {
  for (let from = 0, to = 0; to < text.length; from = edgesIn(text, to - 2 * margin, to - margin)[0] ?? to - margin) {
    const most = from + 8 * margin;
    to = most < text.length ? (edgesIn(text, most - margin, most).at(-1) ?? most) : text.length;
    yield { from, to };
  }
}

/** Where lines begin in a part of a text; if there are none, where words begin. */
function edgesIn(text: string, from: number, to: number): readonly number[] {
  const stretch = text.slice(from, to);
  return Array.from(stretch.matchAll(stretch.includes("\n") ? /\n/g : /\s/g), ({ index }) => from + index + 1);
}
