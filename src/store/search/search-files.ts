/**
 * Finding text inside stored files: what was moved out of messages because it is long. There is no index of it, so files
 * are read one by one, newest first, and forgotten before the next. A hit is a place in a file, not a file; so that one
 * file does not fill the answer, its places beyond the first few come after all others.
 */

import { LcmError } from "../../core/base/errors.ts";
import type { StoredFile } from "../../core/model/types.ts";
import type { SearchCaveat, SearchHit, SearchRequest, SearchResult } from "../../core/model/store.ts";
import { excerpt } from "../../core/base/excerpt.ts";
import { heldFiles } from "./shared-files.ts";
import { compilePattern } from "./regex.ts";
import { bestRange, createReader, ownScore, recencyBoosts, weightOf } from "./rank.ts";
import type { Reading, TextRange } from "./rank.ts";
import { toStoredFile } from "../rows.ts";
import { all, count, sql } from "../script.ts";
import type { Script } from "../script.ts";
import { checkLimit, isLate, snippetWidth, timeoutMsOf } from "./limits.ts";
import type { Deadline } from "./limits.ts";
import { parseQuery } from "./query.ts";
import type { Term } from "./query.ts";

/** The texts among the files, newest first. Conversations that are asked for by name are searched even if hidden. */
export function* filesToSearch(request: SearchRequest): Script<readonly StoredFile[]> {
  const { conversations, since = "", before = "~" } = request;
  const only = conversations ?? null;
  const held = yield* heldFiles(conversations ?? null);
  const files = yield* all(
    sql`SELECT file_id, f.conversation_id, file_name, mime_type, byte_size, line_count, encoding, storage_uri,
               NULL AS exploration_summary, f.created_at, message_key,
               (CASE WHEN ${only} IS NULL THEN c.hidden = 0
                ELSE c.conversation_id IN (SELECT value FROM json_each(${only})) END) AS own
        FROM large_files f JOIN conversations c USING (conversation_id)
        WHERE encoding = 'utf8' AND f.created_at >= ${since} AND f.created_at < ${before}
          AND (own OR file_id IN (SELECT value FROM json_each(${[...held.keys()]})))
        ORDER BY f.created_at DESC, f.rowid DESC`,
    (row) => ({ file: toStoredFile(row), isOwn: row["own"] === 1 }),
  );
  return files.map(({ file, isOwn }) =>
    isOwn ? file : { ...file, conversation: held.get(file.id)?.conversation ?? file.conversation },
  );
}

/** Texts that were moved out of the messages to be searched: their references are searched, their contents are not. */
export function* filesUnsearched(request: SearchRequest): Script<number> {
  const { scope, conversations, since = "", before = "~" } = request;
  if (scope === "summaries") return 0;
  const only = conversations ?? null;
  // Copies may have brought files of others along; where there are none, counting is cheap.
  const copies = yield* count(
    sql`SELECT EXISTS (SELECT 1 FROM json_each(${only}) c CROSS JOIN messages m
          ON m.conversation_id = c.value AND m.message_key >= 'copy:' AND m.message_key < 'copy;')`,
  );
  if (copies > 0) return (yield* filesToSearch(request)).length;
  return yield* count(
    sql`SELECT count(*) FROM large_files f JOIN conversations c USING (conversation_id)
        WHERE f.encoding = 'utf8' AND f.created_at >= ${since} AND f.created_at < ${before} AND (CASE WHEN ${only} IS NULL THEN c.hidden = 0
              ELSE c.conversation_id IN (SELECT value FROM json_each(${only})) END)`,
  );
}

/** Never throws for a file that cannot be read: that is a caveat. */
export async function searchFiles(
  request: SearchRequest,
  deadline: Deadline,
  files: readonly StoredFile[],
  read: (file: StoredFile) => Promise<string>,
): Promise<SearchResult> {
  checkLimit(request);
  const look = request.mode === "regex" ? lookByPattern(request, deadline) : lookByWords(request, deadline);
  const timeoutMs = timeoutMsOf(deadline);
  const boosts = request.sort === "hybrid" ? recencyBoosts(files.map((file) => file.createdAt)) : [];
  const scored = (places: readonly Place[]): Place[] => {
    const score = look.scorer();
    return places.map((place) => ({ ...place, score: score(place.spot) * (boosts[place.age] ?? 1) }));
  };
  let kept: readonly Place[] = [];
  let [scanned, unreadable, endedLate] = [0, 0, false];
  for (const [age, file] of files.entries()) {
    if (!look.isRanked && kept.length > request.limit && kept.every(isAmongFirst)) break; // The others are older.
    endedLate ||= isLate(deadline);
    if (endedLate) break;
    const text = await readOrNull(file, read);
    if (text === null) unreadable += 1;
    else {
      const { spots, isWhole } = look.spotsIn(text);
      const found = spots.map((spot, rank): Place => ({ file, age, rank, spot, score: 0, shown: null }));
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
    if (error instanceof LcmError) return null; // Gone, or not in the folder: the caveat says how many.
    throw error;
  }
}

// ── Places ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A part of one text that matches. */
interface Spot extends TextRange {
  /** Whether it holds everything that was asked for. */
  readonly isFull: boolean;
  /** What it holds of the words; null where none were asked for. */
  readonly reading: Reading | null;
}

/** A spot among those of all files. */
interface Place {
  readonly file: StoredFile;
  /** How many files are newer. */
  readonly age: number;
  /** How many spots of the same file come first. */
  readonly rank: number;
  readonly spot: Spot;
  readonly score: number;
  /** Made while the text is at hand, for those that are kept. */
  readonly shown: { readonly line: number; readonly snippet: string } | null;
}

/** How many places of one file come before the others of it have to wait. */
const firstOfFile = 5;

const isAmongFirst = ({ spot, rank }: Place): boolean => spot.isFull && rank < firstOfFile;

const shownFirst = (one: Place, other: Place): number =>
  other.score - one.score || one.age - other.age || one.rank - other.rank;

const keptFirst = (one: Place, other: Place): number =>
  Number(other.spot.isFull) - Number(one.spot.isFull) ||
  Number(one.rank >= firstOfFile) - Number(other.rank >= firstOfFile) ||
  shownFirst(one, other);

/** With a line and a snippet for those that have none yet, which are of this text. */
function withShown(places: readonly Place[], text: string): readonly Place[] {
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

/** The lines of a spot as they stand, as many as fit; of a longer line, what stands around the match. */
function linesAt(text: string, spot: TextRange): string {
  const beside = 3 * snippetWidth; // More than an excerpt looks at.
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

const toHit = ({ file, score, shown }: Place): SearchHit => ({
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
  /** Whether places of an older file can come before those of a newer. */
  readonly isRanked: boolean;
  /** The first places of a text, and one more than was asked for if there are more; not whole if time ran out. */
  readonly spotsIn: (text: string) => { readonly spots: readonly Spot[]; readonly isWhole: boolean };
  /** By what is known so far of how rare the words are. */
  readonly scorer: () => (spot: Spot) => number;
  /** Words that were not found; empty when each was, but not together; null when there is nothing to say. */
  readonly missingFrom: (places: readonly Place[]) => readonly Term[] | null;
}

/** Characters that are looked at between two looks at the clock, where a text can be looked at in pieces. */
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
  /** Matches in a piece, so far apart that one is not seen beside the other. */
  function* matchesIn(piece: string): Generator<TextRange> {
    each.lastIndex = 0;
    for (let match = each.exec(piece); match !== null; match = each.exec(piece)) {
      const to = match.index + match[0].length;
      // Its line is that of what can be seen of it.
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
      for (let from = 0; from <= text.length;) {
        if (isLate(deadline)) return { spots, isWhole: false };
        const end = isOfOneLine ? text.indexOf("\n", from + pieceMax) : -1;
        const piece = text.slice(from, end < 0 ? text.length : end);
        for (const match of mayMatch(piece) ? matchesIn(piece) : []) {
          spots.push({ from: from + match.from, to: from + match.to, isFull: true, reading: null });
          if (spots.length > limit) return { spots, isWhole: true };
          if (isLate(deadline)) return { spots, isWhole: false };
        }
        from += piece.length + 1;
      }
      return { spots, isWhole: true };
    },
  };
}

/** Spots of one text that are held before the first of them are chosen. */
const spotsMax = 2_000;

/**
 * Reads a text in windows, each of which is like a message. Phrases are required of the text; a window holds one of
 * them or, where there are none, a word. By recency, windows that hold everything come before those that do not.
 */
function lookByWords({ pattern, sort, limit }: SearchRequest, deadline: Deadline): Look {
  const { phrases, words, pieces } = parseQuery(pattern);
  const terms = [...phrases, ...words, ...pieces];
  const isRanked = sort !== "recency";
  const wanted = new Set(phrases.length > 0 ? phrases : isRanked ? terms : words);
  const mayHold = createSieve(wanted);
  const margin = marginOf(terms);
  /** Terms in texts that hold all the phrases. */
  const known = new Set<Term>();
  /** Windows that hold each term, all windows, those that were read, and the words in these. */
  const holding = terms.map(() => 0);
  let [windows, readings, length] = [0, 0, 0];
  const weights = (): readonly number[] => holding.map((held) => (isRanked ? weightOf(held, windows) : 1));
  const scorer: Look["scorer"] = () => {
    const [weighed, meanLength] = [weights(), length / readings];
    return ({ reading }) => (isRanked && reading !== null ? ownScore(reading, weighed, meanLength) : 0);
  };
  const inOrder = (spots: readonly WordSpot[]): readonly WordSpot[] => {
    const score = scorer();
    const scored = spots.map((spot) => ({ ...spot, score: score(spot) }));
    return scored.sort(
      (one, other) => Number(other.isFull) - Number(one.isFull) || other.score - one.score || one.from - other.from,
    );
  };
  /** The first of them, narrowed to what they are about: windows overlap, and two can be about the same. */
  const narrow = (spots: readonly WordSpot[]): readonly Spot[] => {
    const weighed = weights();
    const narrowed: Spot[] = [];
    for (const spot of inOrder(spots)) {
      const stretch = bestRange(spot.reading, weighed, snippetWidth);
      const [from, to] = [spot.from + stretch.from, spot.from + stretch.to];
      if (!narrowed.some((known) => from < known.to && known.from < to)) narrowed.push({ ...spot, from, to });
      if (narrowed.length > limit) break;
    }
    return narrowed;
  };

  return {
    isRanked,
    scorer,
    spotsIn(text) {
      const read = createReader(terms); // For this text alone: it remembers words, and with them what they were cut from.
      const held = new Set<Term>();
      let spots: WordSpot[] = [];
      let isWhole = true;
      for (const { from, to } of windowsOf(text, margin)) {
        isWhole = !isLate(deadline);
        if (!isWhole) break;
        windows += 1;
        const window = text.slice(from, to);
        if (!mayHold(window)) continue;
        const reading = read(window);
        const here = terms.filter((_, term) => (reading.counts[term] ?? 0) > 0);
        if (!here.some((term) => wanted.has(term))) continue;
        readings += 1;
        length += reading.length;
        for (const [term, count] of reading.counts.entries()) if (count > 0) holding[term] = (holding[term] ?? 0) + 1;
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
      const isTold = isRanked ? unknown.length > 0 : places.some(({ spot }) => !spot.isFull);
      return isTold ? unknown : null;
    },
  };
}

/** A window, and what it holds. */
type WordSpot = Spot & { readonly reading: Reading };

/**
 * Whether a text may hold any of these terms. Quick, and certain if it says no: stemming changes no letter of a word
 * before the last of its stem. Letters beyond ASCII are folded in too many ways to tell.
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

/** So much is certainly in two windows: what the longest term may take in a text, with blanks and line ends. */
const marginOf = (terms: readonly Term[]): number => 80 + 2 * Math.max(...terms.map((term) => term.text.length));

/** Parts of a text, of some hundred words, that overlap: what is said across an edge is whole in one of them. */
function* windowsOf(text: string, margin: number): Generator<TextRange> {
  for (let from = 0, to = 0; to < text.length; from = edgesIn(text, to - 2 * margin, to - margin)[0] ?? to - margin) {
    const most = from + 8 * margin;
    to = most < text.length ? (edgesIn(text, most - margin, most).at(-1) ?? most) : text.length;
    yield { from, to };
  }
}

/** Where lines begin in a stretch of a text; if nowhere, where words do. */
function edgesIn(text: string, from: number, to: number): readonly number[] {
  const stretch = text.slice(from, to);
  return Array.from(stretch.matchAll(stretch.includes("\n") ? /\n/g : /\s/g), ({ index }) => from + index + 1);
}
