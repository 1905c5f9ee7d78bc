/** Shortens a long text to what was asked for: its beginning and end, or every place where some words occur. */

import { cutPassage, showParts, withoutBlanks } from "../base/cut-passage.ts";
import type { TextRange } from "../base/excerpt.ts";
import { estimateTokens } from "../base/tokens.ts";
import { queryTerms } from "./expand.ts";

export interface TextParts {
  readonly parts: readonly TextPart[];
  /** Tokens left out after the last part. */
  readonly leftOut: number;
  /** How often the words occur, if some were asked for. */
  readonly found: number | null;
}

export interface TextPart {
  readonly text: string;
  /** Tokens left out before it. */
  readonly leftOut: number;
}

/** Share of the room for the beginning; the rest is for the end, where outputs name their error. */
const headShare = 0.6;
/** With less room than this, only the beginning is shown. */
const tailTokensMin = 40;
/** What is shown around each place, at least and at most. */
const placeTokens = { least: 30, most: 200 };
const placesMax = 1_000;
/** Characters after a place that are shown with it, for each token around it. */
const aheadPerToken = 2;

export interface PartsWanted {
  readonly tokensMax: number;
  /** A text of up to this many tokens is not cut, even if it is longer than `tokensMax`. */
  readonly wholeMax?: number;
  readonly find?: string;
}

export function partsOf(text: string, { tokensMax, wholeMax = tokensMax, find = "" }: PartsWanted): TextParts {
  const places = find.trim() === "" ? null : placesOf(text, find.trim());
  if (places === null || places.length === 0)
    return { ...cut(text, endsOf(text, fits(text, wholeMax) ? Infinity : tokensMax)), found: places && 0 };
  return { ...cut(text, rangesAround(text, places, tokensMax)), found: places.length };
}

const wholeOf = (text: string): TextRange => ({ from: 0, to: text.length });

function endsOf(text: string, tokensMax: number): readonly TextRange[] {
  if (fits(text, tokensMax)) return [wholeOf(text)];
  const tailTokens = tokensMax < tailTokensMin ? 0 : Math.floor((1 - headShare) * tokensMax);
  const head = cutPassage(text, { from: 0, to: 0 }, tokensMax - tailTokens);
  const tail = tailTokens === 0 ? null : cutPassage(text, { from: text.length, to: text.length }, tailTokens);
  if (head === null) return [];
  return tail === null || tail.from <= head.to ? [head] : [head, tail];
}

const fits = (text: string, tokensMax: number): boolean =>
  text.length <= tokensMax * charactersPerTokenMax && estimateTokens(text) <= tokensMax;

/** No language has longer tokens on average. A text with more characters cannot fit, so its tokens need not be counted. */
const charactersPerTokenMax = 16;

/** Where the words occur as they are written; if nowhere, where most of them are together. */
function placesOf(text: string, find: string): readonly TextRange[] {
  const lower = text.toLowerCase();
  const places: TextRange[] = [];
  const collect = (wanted: string): void => {
    for (
      let from = lower.indexOf(wanted);
      from >= 0 && places.length < placesMax;
      from = lower.indexOf(wanted, from + 1)
    )
      places.push({ from, to: from + wanted.length });
  };
  collect(find.toLowerCase());
  if (places.length === 0) for (const term of queryTerms(find)) collect(term);
  return places.toSorted((one, other) => one.from - other.from);
}

/** As many places as fit, from the first on; those that touch become one. */
function rangesAround(text: string, places: readonly TextRange[], tokensMax: number): readonly TextRange[] {
  const each = Math.min(placeTokens.most, Math.max(placeTokens.least, Math.floor(tokensMax / places.length)));
  const ranges: { from: number; to: number }[] = [];
  let left = tokensMax;
  for (const place of places) {
    const last = ranges.at(-1);
    if (last !== undefined && place.to <= last.to) continue;
    // What is looked for mostly follows the words.
    const ahead = { from: place.from, to: Math.min(text.length, place.to + aheadPerToken * each) };
    const range = cutPassage(text, ahead, Math.min(each, left));
    if (range === null) break;
    const from = Math.max(range.from, last?.to ?? 0);
    const tokens = estimateTokens(text.slice(from, range.to)) + 2;
    if (tokens > left && last !== undefined) break;
    left -= tokens;
    if (last !== undefined && from <= last.to) last.to = range.to;
    else ranges.push({ from, to: range.to });
  }
  return ranges;
}

function cut(text: string, ranges: readonly TextRange[]): Pick<TextParts, "parts" | "leftOut"> {
  const whole = withoutBlanks(text, wholeOf(text));
  let end = whole.from;
  const tokensTo = (from: number): number => (from > end ? estimateTokens(text.slice(end, from).trim()) : 0);
  const isWhole = ranges.length === 1 && (ranges[0]?.from ?? 0) <= whole.from && (ranges[0]?.to ?? 0) >= whole.to;
  const parts = ranges.map((range): TextPart => {
    const leftOut = tokensTo(range.from);
    end = range.to;
    return { text: isWhole ? text : showParts(text.slice(range.from, range.to), [wholeOf(text)]), leftOut };
  });
  return { parts, leftOut: tokensTo(whole.to) };
}
