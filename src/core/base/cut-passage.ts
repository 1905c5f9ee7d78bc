/** Cuts a passage out of a text: around a match, within a number of tokens, ending where a line or a sentence ends. */

import { inLines, type TextRange } from "./excerpt.ts";
import { estimateTokens } from "./tokens.ts";

/** Share of the room before a match; what answers a question mostly follows the words of the question. */
const leadShare = 0.35;
/** A match this near to the start of the text is shown from the start. */
const headShare = 0.8;
/** A passage may end this much earlier to end with a sentence. */
const endShare = 0.55;
const sampleCharacters = 2_000;
const attemptsMax = 10;

/** The part around a match that fits; the whole text if that fits; null if not even a few words do. */
export function cutPassage(text: string, match: TextRange, tokensMax: number): TextRange | null {
  const whole = withoutBlanks(text, { from: 0, to: text.length });
  if (whole.to - whole.from <= tokensMax * charactersPerTokenMax && fits(text, whole, tokensMax)) return whole;
  const focus = withoutBlanks(text, {
    from: clamp(match.from, whole.from, whole.to),
    to: clamp(match.to, whole.from, whole.to),
  });
  const start = clamp(focus.from - sampleCharacters / 2, 0, text.length);
  const sample = text.slice(start, start + sampleCharacters);
  let width = (tokensMax * sample.length) / Math.max(1, estimateTokens(sample));
  for (let attempt = 0; attempt < attemptsMax && width >= 1; attempt++) {
    const range = withoutBlanks(text, rangeAround(text, whole, focus, Math.floor(width)));
    if (range.to > range.from && fits(text, range, tokensMax)) return range;
    width *= 0.85;
  }
  return null;
}

/** No language has longer tokens on average. A text with more characters cannot fit, so its tokens need not be counted. */
const charactersPerTokenMax = 8;

const fits = (text: string, range: TextRange, tokensMax: number): boolean =>
  estimateTokens(showParts(text, [range])) <= tokensMax;

const clamp = (value: number, least: number, most: number): number => Math.max(least, Math.min(value, most));

function rangeAround(text: string, whole: TextRange, focus: TextRange, width: number): TextRange {
  const shown = Math.min(focus.to - focus.from, width);
  const isNearHead = focus.from + shown - whole.from <= width * headShare;
  const latest = Math.max(whole.from, whole.to - width);
  const earliest = isNearHead ? whole.from : focus.from - Math.floor((width - shown) * leadShare);
  const from = wellFormed(text, wordStart(text, startAt(text, clamp(earliest, whole.from, latest), focus.from)));
  const to = Math.min(whole.to, from + width);
  if (to === whole.to) return { from, to };
  // A match that is wider than the room is cut as any other text.
  const least = focus.to - focus.from >= width ? 0 : focus.from + shown;
  return { from, to: wellFormed(text, endAt(text, Math.max(least, from + width * endShare), to)) };
}

/** Not inside a word: back to where it starts, unless that is far. */
function wordStart(text: string, at: number): number {
  const begun = /[\p{L}\p{N}]+$/u.exec(text.slice(Math.max(0, at - wordMax), at))?.[0] ?? "";
  return /^[\p{L}\p{N}]/u.test(text.slice(at, at + 2)) && begun.length < wordMax / 2 ? at - begun.length : at;
}

/** The first line or sentence that starts here or later, up to a place; otherwise the first word. */
function startAt(text: string, earliest: number, latest: number): number {
  if (earliest <= 0 || earliest >= latest) return Math.max(0, Math.min(earliest, latest));
  const piece = text.slice(earliest - 1, latest);
  const end = boundaries(piece).next().value;
  if (end !== undefined) return earliest - 1 + end;
  const word = /\s(?=\S)/.exec(piece.slice(0, wordMax));
  return word === null ? earliest : earliest + word.index;
}

/** The last line or sentence that ends here or earlier, down to a place; otherwise the last word. */
function endAt(text: string, earliest: number, latest: number): number {
  const from = Math.floor(Math.min(earliest, latest));
  const piece = text.slice(from, latest + 1);
  const end = [...boundaries(piece)].filter((each) => each <= latest - from).at(-1);
  if (end !== undefined) return from + end;
  const tail = text.slice(Math.max(from, latest - wordMax), latest + 1);
  const blank = tail.search(/\s\S*$/);
  return blank < 0 ? latest : Math.max(from, latest - wordMax) + blank;
}

const wordMax = 40;
/** The number of an item in a list ends nothing. */
const sentenceEnd = /(?<!^[\s>*+-]*\d{1,3})[.!?…][)\]"'”’*_`]{0,3}(?=\s)|[。！？]|\n/gmu;

/** Where lines and sentences of a piece end. */
function* boundaries(piece: string): Generator<number, undefined> {
  for (const match of piece.matchAll(sentenceEnd)) yield match.index + match[0].length;
}

/** Not between the halves of a surrogate pair. */
const wellFormed = (text: string, at: number): number =>
  (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00 ? at - 1 : at;

/** A range without the blanks at its ends. */
export function withoutBlanks(text: string, { from, to }: TextRange): TextRange {
  let [start, end] = [from, to];
  while (start < end && isBlank(text, start)) start++;
  while (end > start && isBlank(text, end - 1)) end--;
  return { from: start, to: end };
}

const isBlank = (text: string, at: number): boolean => /[\s\p{Cc}]/u.test(text.charAt(at));

/** The parts of a text, in order, with `…` where something was left out and without empty lines. */
export function showParts(text: string, parts: readonly TextRange[]): string {
  const whole = withoutBlanks(text, { from: 0, to: text.length });
  const pieces = parts.map(({ from, to }) =>
    inLines(text.slice(from, to))
      .replace(/\n{2,}/g, "\n")
      .trim(),
  );
  const before = (parts[0]?.from ?? 0) > whole.from ? "…" : "";
  const after = (parts.at(-1)?.to ?? whole.to) < whole.to ? "…" : "";
  return `${before}${pieces.join("\n…\n")}${after}`;
}
