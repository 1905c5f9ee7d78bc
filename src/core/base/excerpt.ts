/**
 * Excerpts: cuts a few words out of a long text, and finds how much of it fits into a number of tokens.
 *
 * Widths are in characters as a reader counts them: an emoji of five code points is one.
 */

import { estimateTokens } from "./tokens.ts";

/** How far a cut may move to fall between words. A longer word is cut in the middle. */
const wordMax = 24;

/**
 * One line of at most `width` characters around a match, cut between words, with `…` where text was left out. It shows
 * the whole match if that fits, otherwise its beginning. Reads only the text near the match.
 */
export const excerpt = (text: string, match: TextRange, width: number): string =>
  cutAround(text, match, width, onOneLine);

/** An excerpt that keeps its line breaks, for code, lists and logs. */
export const passage = (text: string, match: TextRange, width: number): string =>
  cutAround(text, match, width, inLines);

/** A part of a text: from one character up to, not including, another. */
export interface TextRange {
  readonly from: number;
  readonly to: number;
}

const onOneLine = (piece: string): string => piece.replace(blanksAndControls, " ");

/** Without trailing blanks, and with at most one empty line in a row. */
export const inLines = (piece: string): string =>
  piece
    .replace(lineEnds, "\n")
    .replace(controls, " ")
    .replace(/[^\S\n]+(?=\n)/g, "")
    .replace(/\n{3,}/g, "\n\n");

function cutAround(text: string, match: TextRange, width: number, tidy: (piece: string) => string): string {
  const { from, to } = wholeMatch(text, match);
  const reach = 2 * width + wordMax;
  const before = charactersBefore(text, from, reach, tidy);
  const found = charactersAfter(text.slice(0, to), from, reach, tidy);
  const after = charactersAfter(text, to, reach, tidy);

  const room = width - found.shown.length;
  if (found.more || room < 0) {
    const start = cutStart(before, width > 1 ? 1 : 0);
    return start + cutEnd({ ...found, more: true }, width - characters(start).length);
  }
  const half = Math.floor(room / 2);
  const unusedAfter = after.more ? 0 : Math.max(0, room - half - after.shown.length);
  const start = cutStart(before, half + unusedAfter);
  const end = cutEnd(after, room - characters(start).length);
  return start + joined(found.shown) + end;
}

/** Prefixes every line with `> `, so that quoted text cannot be mistaken for the text around it. */
export const quote = (text: string): string => `> ${text.replace(lineEnds, "\n").replaceAll("\n", "\n> ")}`;

/** The first line that is not blank, cut to `width` characters: a title for a text without one. */
export function firstLine(text: string, width: number): string {
  const line = /[^\s\p{Cc}].*/u.exec(text)?.[0] ?? "";
  return cutEnd(charactersAfter(line, 0, 2 * width + wordMax, onOneLine), width);
}

/** A text without the bare headings that it begins with, such as `Timeline:` or `[Cut short]`, and the bullet after them. */
export const belowHeadings = (text: string): string => text.replace(bareHeadings, "");

const bareHeadings =
  /^(?:\s*(?:#{1,6} [^\n]{1,80}|\*\*[^\n*]{1,80}\*\*|\**[^\n.!?:]{1,40}:\**|\[[^\]\n]{1,80}\])[ \t\r]*\n)+\s*(?:[-*•] +)?(?=\S)/;

/** The match, clamped to the text, without blanks around it and without half a character. */
function wholeMatch(text: string, match: TextRange): TextRange {
  let from = Math.min(Math.max(match.from, 0), text.length);
  let to = Math.min(Math.max(match.to, from), text.length);
  while (from < to && isBlank(text.charAt(from))) from++;
  while (from < to && isBlank(text.charAt(to - 1))) to--;
  while (from === to && isBlank(text.charAt(to))) from = ++to;
  if (isInsidePair(text, from)) from--;
  if (isInsidePair(text, to)) to++;
  return { from, to };
}

/** Characters next to a match, and whether there are more beyond them. */
interface Nearby {
  readonly shown: Characters;
  readonly more: boolean;
}

function charactersBefore(text: string, to: number, reach: number, tidy: (piece: string) => string): Nearby {
  const from = Math.max(0, to - reach);
  const near = tidy(text.slice(from, to));
  if (from === 0) return { shown: characters(near.trimStart()), more: false };
  // The edge of the window may have cut the outermost character in two.
  return { shown: characters(near).slice(1), more: true };
}

function charactersAfter(text: string, from: number, reach: number, tidy: (piece: string) => string): Nearby {
  const to = Math.min(text.length, from + reach);
  const near = tidy(text.slice(from, to));
  if (to === text.length) return { shown: characters(near.trimEnd()), more: false };
  return { shown: characters(near).slice(0, -1), more: true };
}

function cutStart({ shown, more }: Nearby, room: number): string {
  if (!more && shown.length <= room) return joined(shown);
  if (room < 1) return "";
  const earliest = Math.max(0, shown.length - (room - 1));
  let cut = earliest;
  while (cut < shown.length && cut < earliest + wordMax && isInsideWord(shown, cut)) cut++;
  const kept = shown.slice(isInsideWord(shown, cut) || cut === shown.length ? earliest : cut);
  return `…${joined(kept).trimStart()}`;
}

function cutEnd({ shown, more }: Nearby, room: number): string {
  if (!more && shown.length <= room) return joined(shown);
  if (room < 1) return "";
  const latest = Math.min(shown.length, room - 1);
  let cut = latest;
  while (cut > 0 && cut > latest - wordMax && isInsideWord(shown, cut)) cut--;
  const kept = shown.slice(0, isInsideWord(shown, cut) || cut === 0 ? latest : cut);
  return `${joined(kept).trimEnd()}…`;
}

/** Skips single spaces, which is faster. */
const blanksAndControls = /[\s\p{Cc}]{2,}|[[\s\p{Cc}]--\x20]/gv;
const lineEnds = /\r\n|[\v\f\r\u0085\u2028\u2029]/g;
const controls = /[^\P{Cc}\t\n]+/gu;
const isBlank = (unit: string): boolean => /[\s\p{Cc}]/u.test(unit);
const isOfWord = (character: string | undefined): boolean =>
  character !== undefined && !/^[\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(character);
const isInsideWord = (shown: Characters, at: number): boolean => isOfWord(shown[at - 1]) && isOfWord(shown[at]);

function isInsidePair(text: string, at: number): boolean {
  return (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}

/** A plain string serves as the list of its characters, and needs no segmenting. */
type Characters = string | readonly string[];

const joined = (shown: Characters): string => (typeof shown === "string" ? shown : shown.join(""));

/** Created on first use, since that takes longer than everything else in this file. */
let graphemes: Intl.Segmenter | undefined;

function characters(text: string): Characters {
  if (!/[^\t\n\u0020-\u02ff\u2010-\u2027]/.test(text)) return text;
  graphemes ??= new Intl.Segmenter("en", { granularity: "grapheme" });
  return Array.from(graphemes.segment(text), ({ segment }) => segment);
}

/** More characters than any text has per token, except for long runs of one character. */
export const charactersPerToken = 16;
const sampleCharacters = 4_000;

/**
 * How many characters of a text's beginning fit into a number of tokens, to within 0.2%, and a length that does not fit;
 * null if all of it fits. Reads little beyond that.
 */
export function lengthWithin(
  text: string,
  tokensMax: number,
  isTooLong: (begun: string) => boolean,
): { readonly fitting: number; readonly tooLong: number | null } {
  const furthest = Math.min(text.length, tokensMax * charactersPerToken);
  if (furthest === text.length && !isTooLong(text)) return { fitting: furthest, tooLong: null };
  // The first guess comes from a sample, since each test counts the tokens of everything up to the guess.
  const sample = text.slice(0, sampleCharacters);
  const reach = Math.ceil((1.05 * tokensMax * sample.length) / Math.max(1, estimateTokens(sample)));
  let [fitting, tooLong] = [0, furthest + 1];
  for (let step = 0; tooLong - fitting > 1 + (fitting >> 9); step++) {
    const guess = step === 0 ? reach : step === 1 ? Math.floor(reach * 0.9) : (fitting + tooLong) >> 1;
    const middle = Math.min(Math.max(guess, fitting + 1), tooLong - 1);
    if (isTooLong(text.slice(0, middle))) tooLong = middle;
    else fitting = middle;
  }
  return { fitting, tooLong };
}
