/**
 * Cuts text into the terms that are searched: CJK words as pairs of characters, emoji, parts of identifiers, and words
 * without case, accent or ending. Stored text and queries are cut the same way, so what is stored can be found.
 */

import { once } from "../../core/base/once.ts";
import { stem, stemBytes } from "./stem.ts";

/** Raise this whenever the same text gives other terms: existing files are then indexed again. */
export const termsVersion = 2;

/** The terms of a text, in order, as the index stores them. Parts of identifiers come last. */
export function tokenize(text: string): string[] {
  const terms: string[] = [];
  eachWord(text, (word) => terms.push(stem(word)));
  return terms;
}

let terms = Buffer.alloc(2 ** 14);

/** The same terms as one text, for the index. Made of bytes, because this is on the path of every import. */
export function indexText(text: string): string {
  let end = 0;
  const makeRoom = (length: number): void => {
    if (end + length > terms.length) terms = Buffer.concat([terms, Buffer.alloc(terms.length + length)]);
  };
  const add = (word: string): void => {
    makeRoom(3 * word.length + 1);
    end += terms.write(`${stem(word)} `, end);
  };
  const parts = new Set<string>();
  eachRun(
    text,
    (from, to, shape) => {
      for (const piece of piecesOf(text, from, to, shape)) {
        for (const word of piece.words) add(word);
        for (const part of piece.parts) parts.add(part);
      }
    },
    (from, to) => {
      makeRoom(to - from + 1);
      const source = codes;
      const target = terms;
      let place = end;
      for (let at = from; at < to; at++) {
        const code = source[at] ?? 0;
        target[place++] = code > 64 ? code | 32 : code;
      }
      place = stemBytes(target, end, place);
      target[place] = 32;
      end = place + 1;
    },
  );
  for (const part of parts) add(part);
  return terms.toString("utf8", 0, end);
}

/**
 * Visits the words of a text, lowercase and unstemmed, each with its range in the text and its position among the words;
 * returns how many there are. Parts of identifiers come last, so that they never separate the words of a phrase. With
 * `wanted`, other plain words, which are most words of most texts, are only counted.
 */
export function eachWord(
  text: string,
  visit: (word: string, from: number, to: number, place: number) => void,
  wanted?: Wanted,
): number {
  const parts = new Map<string, Piece>();
  let visited = 0;
  const skipped = eachRun(
    text,
    (from, to, shape, before) => {
      for (const piece of piecesOf(text, from, to, shape)) {
        for (const word of piece.words) visit(word, piece.from, piece.to, before + visited++);
        for (const part of piece.parts) if (!parts.has(part)) parts.set(part, piece);
      }
    },
    (from, to, before) => {
      const place = before + visited++;
      if (wanted?.begins(text, from) !== false) visit(text.slice(from, to).toLowerCase(), from, to, place);
    },
    wanted?.opens,
  );
  for (const [part, { from, to }] of parts) visit(part, from, to, skipped + visited++);
  return skipped + visited;
}

/** Which plain words to visit. */
export interface Wanted {
  /** Non-zero at 128 × the code of a wanted word's first character + the code of the next one. */
  readonly opens: Uint8Array;
  readonly begins: (text: string, from: number) => boolean;
}

/** A run is an unbroken row of letters and digits: foreign if it has non-ASCII letters, joined if it is an identifier. */
type Shape = "foreign" | "joined";

const [blank, lower, upper, digit, foreign] = [0, 1, 2, 3, 4];
const kinds = new Uint8Array(2 ** 16).fill(foreign, 128);
for (const [kind, first, last] of [[lower, "a", "z"] as const, [upper, "A", "Z"] as const, [digit, "0", "9"] as const])
  kinds.fill(kind, first.charCodeAt(0), last.charCodeAt(0) + 1);

/**
 * Visits the foreign and joined runs of a text, and the plain ones if asked: all, or those with a wanted beginning.
 * Passes each visit, and returns, how many plain runs were skipped so far. Copied character codes are twice as fast to read.
 */
function eachRun(
  text: string,
  visit: (from: number, to: number, shape: Shape, skipped: number) => void,
  visitPlain?: (from: number, to: number, skipped: number) => void,
  opens?: Uint8Array,
): number {
  const codes = codesOf(text);
  const end = text.length;
  let skipped = 0;
  for (let at = 0; at < end; at++) {
    const from = at;
    let before = kinds[codes[at] ?? 0];
    if (before === blank) continue;
    let isForeign = before === foreign;
    let isJoined = false;
    for (at++; at < end; at++) {
      const kind = kinds[codes[at] ?? 0];
      if (kind === before) continue;
      if (kind === blank) break;
      if (kind === foreign) isForeign = true;
      // An identifier has a joint: aB, a1, 1a, or the last capital of ABc.
      else if (kind !== lower || before === digit || at - from > 1) isJoined = true;
      before = kind;
    }
    if (isForeign) visit(from, at, "foreign", skipped);
    else if (isJoined) visit(from, at, "joined", skipped);
    else if (opens !== undefined && opens[(codes[from] ?? 0) * 128 + (codes[from + 1] ?? 0)] === 0) skipped += 1;
    else visitPlain?.(from, at, skipped);
  }
  return skipped;
}

let codes = new Uint16Array(2 ** 14);
let copied = Buffer.from(codes.buffer);

/** The character codes of a text, followed by a blank; valid until the next call. */
function codesOf(text: string): Uint16Array {
  if (text.length >= codes.length) {
    codes = new Uint16Array(2 * text.length);
    copied = Buffer.from(codes.buffer);
  }
  copied.write(text, "utf16le");
  codes[text.length] = 0;
  return codes;
}

export interface Piece {
  /** Unspaced scripts have no spaces between words, so they are indexed as pairs of characters. */
  readonly script: "spaced" | "unspaced" | "emoji";
  readonly words: readonly string[];
  /** The parts of an identifier. */
  readonly parts: readonly string[];
  readonly from: number;
  readonly to: number;
}

export function allPieces(text: string): readonly Piece[] {
  const pieces: Piece[] = [];
  eachRun(
    text,
    (from, to, shape) => pieces.push(...piecesOf(text, from, to, shape)),
    (from, to) => pieces.push({ script: "spaced", words: [text.slice(from, to).toLowerCase()], parts: [], from, to }),
  );
  return pieces;
}

function piecesOf(text: string, from: number, to: number, shape: Shape): Iterable<Piece> {
  const run = text.slice(from, to);
  return shape === "foreign"
    ? fold(run, from)
    : [{ script: "spaced", words: [run.toLowerCase()], parts: identifierParts(run), from, to }];
}

const segments = once(() => /\p{RI}{2}|\p{Extended_Pictographic}|[\p{L}\p{N}\p{M}]+/gu);
const unspaced = ["Han", "Hiragana", "Katakana", "Hangul", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar"]
  .map((script) => `\\p{scx=${script}}`)
  .join("");
export const unspacedCharacter = once(() => new RegExp(`^[${unspaced}]$`, "u"));
const spans = once(() => new RegExp(`([${unspaced}]+)|[^${unspaced}]+`, "gu"));
/** Marks, and the few letters that SQLite's `unicode61` treats as marks. */
const marks = /[\p{M}\u19b0-\u19c0\u19c8\u19c9\u1cf2\u1cf3]+/gu;

/** The pieces of a foreign run, folded so far that a database's own folding changes nothing. */
function* fold(run: string, start: number): Generator<Piece> {
  for (const found of run.matchAll(segments())) {
    const from = start + found.index;
    const to = from + found[0].length;
    if (!/[\p{L}\p{N}]/u.test(found[0])) {
      const word = emojiWord(found[0]);
      if (word !== "") yield { script: "emoji", words: [word], parts: [], from, to };
      continue;
    }
    for (const span of found[0].normalize("NFKC").matchAll(spans())) {
      const where =
        span.input.length === to - from
          ? { from: from + span.index, to: from + span.index + span[0].length }
          : { from, to };
      if (span[1] !== undefined) {
        yield { script: "unspaced", words: pairs([...span[1].replace(marks, "")]), parts: [], ...where };
      } else {
        const folded = span[0].normalize("NFKD").toLowerCase().replace(marks, "").replaceAll("ς", "σ");
        const parts = isAscii(span[0]) ? identifierParts(span[0]) : [];
        yield { script: "spaced", words: folded.match(/[\p{L}\p{N}]+/gu) ?? [], parts, ...where };
      }
    }
  }
}

const isAscii = (text: string): boolean => !/[^\x00-\x7f]/.test(text);

/** `数据库` becomes 数据, 据库, 库: every pair, and the last character, so that a single character matches as a prefix. */
const pairs = (characters: readonly string[]): readonly string[] =>
  characters.map((character, at) => character + (characters[at + 1] ?? ""));

/** An emoji as a word of letters and digits that no stemmer changes, without skin tone or presentation. */
function emojiWord(segment: string): string {
  const codes = Array.from(segment.replace(marks, ""), (character) => (character.codePointAt(0) ?? 0).toString(16));
  return codes.length === 0 ? "" : `xemoji${codes.join("z")}x`;
}

const identifierMax = 64;
const partsMax = 6;

/** `getUserName` is also get, user, name. What has many short parts is a hash or an encoded blob, and has none. */
function identifierParts(run: string): readonly string[] {
  if (run.length > identifierMax) return [];
  const parts = run.match(/[A-Z]+(?![a-z]{2})|[A-Z]?[a-z]+|[0-9]+/g) ?? [];
  if (parts.length < 2 || parts.length > partsMax) return [];
  return parts.filter((part) => part.length > 1).map((part) => part.toLowerCase());
}
