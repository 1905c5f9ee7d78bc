/**
 * Finds the session of an agent that sends no id, by what its request says. Two sessions that begin alike stay apart until
 * a request shows an answer that only one of them got.
 *
 * An agent that compacts may keep no answer. But its request for a summary quotes the answers that it sums up, and what it
 * sends from then on quotes that summary. The words around the quotes are the host's.
 */

import { isAnswer, type Path } from "./path.ts";

export interface Candidate {
  readonly sessionId: string;
  readonly path: Path;
}

/** Null if the request belongs to none of them. */
export function findSession<T extends Candidate>(candidates: readonly T[], pieces: readonly string[]): T | null {
  const shown = new Set(pieces);
  let best: T | null = null;
  let most = 0;
  for (const candidate of candidates) {
    const score = scoreOf(candidate.path.pieces, pieces, shown);
    if (score <= most) continue;
    best = candidate;
    most = score;
  }
  return best;
}

/** Answers that a session and a request share; 0 if they prove nothing. */
function scoreOf(path: readonly string[], pieces: readonly string[], shown: ReadonlySet<string>): number {
  let same = 0;
  let answers = 0;
  while (same < path.length && path[same] === pieces[same]) if (isAnswer(path[same++])) answers++;
  // A request that is repeated before there was an answer.
  if (answers === 0 && same === path.length && same > 0 && same === pieces.length) return 1;
  if (answers > 0) return 2 + same;
  // The host has compacted: the newest answers, which it kept, are the proof. Earlier ones may be alike in many sessions.
  const missing = path.findLastIndex((piece) => isAnswer(piece) && !shown.has(piece));
  const kept = path.slice(missing + 1).filter(isAnswer).length;
  return kept >= keptMin ? 1 + kept : 0;
}

/** One answer such as "Done." may be in any session. */
const keptMin = 2;

/** A text that the model wrote, as far as a quote of it is looked for; null if others may well have the same words. */
export function quotable(text: string): string | null {
  const words = text.trim();
  return words.length < quoteMin ? null : words.slice(0, quoteMax);
}

const quoteMin = 200;
const quoteMax = 1_000;

/** The one of which the most texts are quoted; null if there is none, or more than one. */
export function mostQuoted<T>(words: string, texts: ReadonlyMap<T, readonly string[]>): T | null {
  let [best, most, isOne]: [T | null, number, boolean] = [null, 0, false];
  for (const [each, written] of texts) {
    const count = written.filter((text) => words.includes(text)).length;
    if (count < most || count === 0) continue;
    [best, most, isOne] = [each, count, count > most];
  }
  return isOne ? best : null;
}
