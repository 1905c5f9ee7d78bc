/**
 * Finds out what a request says that is not stored yet, and where it belongs. Pure: a request and the stored branch are
 * lists of pieces (path.ts).
 *
 * A host that compacts, trims or edits its history leaves pieces out or writes its own in their place. What it left out
 * stays ours, what it wrote instead is not stored, and the conversation goes on behind the last message that both have.
 */

import { isAnswer } from "./path.ts";

export interface RequestPieces {
  readonly pieces: readonly string[];
  /** Where what follows the host's own summary of the past begins; null if there is no such summary. */
  readonly afterSummary: number | null;
  /** How many pieces the path had when the host last asked for a summary; null if unknown. */
  readonly summarisedAt: number | null;
  /** Whether the host named the session. If not, it takes more to prove that the request belongs to it. */
  readonly isNamed: boolean;
}

export interface Alignment {
  readonly kind: "extension" | "retry" | "branch" | "folded by the host" | "new start";
  /** For each piece of the request its place in the path; -1 if it is not there. */
  readonly places: Int32Array;
  /** From this piece of the request on everything is new. */
  readonly from: number;
  /** How many pieces of the path it continues. */
  readonly parent: number;
}

export function align(path: readonly string[], request: RequestPieces): Alignment {
  const { pieces, afterSummary } = request;
  const places = new Int32Array(pieces.length).fill(-1);
  let same = 0;
  while (same < path.length && same < pieces.length && path[same] === pieces[same]) places[same] = same++;
  // Behind a summary, the words that the path began with may be new ones.
  const isBeginningKept = afterSummary !== null && pieces.slice(afterSummary, same).some(isAnswer);
  if (afterSummary !== null && !isBeginningKept) same = Math.min(same, afterSummary);
  places.fill(-1, same);
  if (same === path.length) return { kind: "extension", places, from: same, parent: same };
  if (same === pieces.length) return { kind: "retry", places, from: same, parent: same };
  const lastPlaced = placeFromBehind(path, pieces, same, places);
  const lastKnown = isBeginningKept ? Math.max(lastPlaced, same - 1) : lastPlaced;
  const isKept = (): boolean => {
    for (let at = same; at <= lastKnown; at++) if ((places[at] ?? -1) >= 0 && isAnswer(pieces[at])) return true;
    return false;
  };
  const isProven = (): boolean => (request.isNamed ? isKept() : keptAnswers(path, places) >= keptMin);
  const isFolded = afterSummary !== null || (lastKnown >= 0 && isProven());
  if (!isFolded) {
    // What a person said again by chance is not known by it.
    places.fill(-1, same);
    return same > 0
      ? { kind: "branch", places, from: same, parent: same }
      : { kind: "new start", places, from: 0, parent: 0 };
  }
  if (afterSummary !== null && lastKnown < afterSummary) {
    const since = sinceSummary(path, pieces.slice(afterSummary), request.summarisedAt);
    if (since !== null) return alignSince(path, { pieces, afterSummary }, places, since);
  }
  const from = Math.max(lastKnown + 1, afterSummary ?? 0);
  return { kind: "folded by the host", places, from, parent: parentBehind(path, places, lastKnown, pieces) };
}

/** How many answers the request shows of those at the end of the path, with all that was said between them. */
function keptAnswers(path: readonly string[], places: Int32Array): number {
  let at = places.indexOf(path.findLastIndex(isAnswer));
  let kept = 0;
  for (let place = places[at] ?? -1; place >= 0 && places[at] === place; at--, place--)
    if (isAnswer(path[place])) kept++;
  return kept;
}

/** One answer such as "Done." may be in any session. */
const keptMin = 2;

/**
 * Where on the path goes on what is said behind a summary; null if unknown. If the host asked for it before the model had
 * answered, it says again what was left unanswered.
 */
function sinceSummary(path: readonly string[], said: readonly string[], summarisedAt: number | null): number | null {
  const end = summarisedAt ?? path.findLastIndex((piece) => !isAnswer(piece)) + 1;
  const begin = path.slice(0, end).findLastIndex(isAnswer) + 1;
  for (let at = begin; at < end; at++) if (path.slice(at, end).every((piece, nth) => piece === said[nth])) return at;
  return summarisedAt; // Null for a proxy that was restarted.
}

/** Behind a summary that kept nothing, the conversation goes on where the host asked for it. */
function alignSince(
  path: readonly string[],
  { pieces, afterSummary: begin }: { readonly pieces: readonly string[]; readonly afterSummary: number },
  places: Int32Array,
  since: number,
): Alignment {
  let same = 0;
  while (since + same < path.length && begin + same < pieces.length && path[since + same] === pieces[begin + same]) {
    places[begin + same] = since + same;
    same++;
  }
  const [from, parent] = [begin + same, since + same];
  const isRetry = from === pieces.length && parent < path.length;
  return { kind: isRetry ? "retry" : "folded by the host", places, from, parent };
}

/**
 * Places what comes behind the common beginning, the order kept, from behind: answers first, at their latest occurrence
 * behind the same piece, or at their only one. What a person said goes beside an answer that has a place: the same words may
 * be new. Returns the last piece that has a place, or -1.
 */
function placeFromBehind(path: readonly string[], pieces: readonly string[], same: number, places: Int32Array): number {
  const only = new Map<string, number>();
  const pairs = new Map<string, number[]>();
  for (let at = same; at < path.length; at++) {
    const piece = path[at] ?? "";
    if (!isAnswer(piece)) continue;
    only.set(piece, only.has(piece) ? -1 : at);
    const pair = `${path[at - 1]} ${piece}`;
    const known = pairs.get(pair);
    if (known === undefined) pairs.set(pair, [at]);
    else known.push(at);
  }
  let limit = path.length;
  const latest = (piece: string, before: string | undefined): number => {
    const known = pairs.get(`${before} ${piece}`) ?? [];
    // The limit only goes down, so what is behind it now is never looked at again.
    while ((known.at(-1) ?? -1) >= limit) known.pop();
    return known.at(-1) ?? -1;
  };
  for (let at = pieces.length - 1; at >= same; at--) {
    const piece = pieces[at] ?? "";
    const alone = only.get(piece);
    if (alone === undefined) continue;
    const isNext = places[at + 1] === limit && limit > same && path[limit - 1] === piece;
    const paired = isNext ? limit - 1 : latest(piece, pieces[at - 1]);
    const place = paired >= 0 ? paired : alone;
    if (place < 0 || place >= limit) continue;
    places[at] = place;
    limit = place;
  }
  const isBeside = (at: number, beside: number): boolean =>
    (places[beside] ?? -1) >= 0 && path[(places[beside] ?? 0) + at - beside] === pieces[at];
  for (let at = same; at < pieces.length; at++)
    if (places[at] === -1 && isBeside(at, at - 1)) places[at] = (places[at - 1] ?? 0) + 1;
  for (let at = pieces.length - 1; at >= same; at--)
    if (places[at] === -1 && isBeside(at, at + 1)) places[at] = (places[at + 1] ?? 0) - 1;
  return places.findLastIndex((place, at) => at >= same && place >= 0);
}

/**
 * Behind a compaction of the host: the end of the path, unless the request goes back to a place before it. That shows by a
 * run of pieces, answers among them, that ends earlier. What the host wrote in the place of a piece does not end the run.
 */
function parentBehind(
  path: readonly string[],
  places: Int32Array,
  lastKnown: number,
  pieces: readonly string[],
): number {
  const end = (places[lastKnown] ?? -1) + 1;
  if (lastKnown < 0 || end === path.length) return path.length;
  let [known, hasAnswer] = [1, isAnswer(pieces[lastKnown])];
  for (let at = lastKnown - 1; at >= 0; at--) {
    if (places[at] === -1) continue;
    if (places[at] !== end - 1 - (lastKnown - at)) break;
    hasAnswer ||= isAnswer(pieces[at]);
    known++;
  }
  return known > 1 && hasAnswer ? end : path.length;
}
