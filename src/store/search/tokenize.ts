/**
 * What a word is. The index holds text prepared here, and a query is prepared the same way, so that what is stored can
 * be found: CJK words of two characters, emoji, parts of identifiers, words in any form or accent. It also knows what
 * FTS5's `porter unicode61` makes of prepared text, because rows are ranked from their stored text, not by FTS5.
 */

import { LcmError } from "../../core/base/errors.ts";
import { queryStopWords } from "../../core/base/stop-words.ts";

/** The word that stands in every indexed text for its conversation, and makes a search in one conversation cheap. */
export const conversationWord = (conversation: number): string => `xconv${conversation}`;

/** The text as it goes into the index. Plain ASCII prose passes untouched: this is on the path of every import. */
export function prepareForIndex(text: string, conversation: number): string {
  let prepared = conversationWord(conversation) + " ";
  let copied = 0;
  const parts = new Set<string>();
  eachRun(text, (from, to, shape) => {
    if (shape === "foreign") {
      prepared += `${text.slice(copied, from)} `;
      copied = to;
    }
    for (const piece of piecesOf(text, from, to, shape)) {
      if (shape === "foreign") prepared += `${piece.words.join(" ")} `;
      for (const part of piece.parts) parts.add(part);
    }
  });
  prepared += text.slice(copied);
  return parts.size === 0 ? prepared : `${prepared} ${[...parts].join(" ")}`;
}

/**
 * The words of a text, lowercase and unstemmed, in the order of the index, each with where it stands in the text and as
 * which of them; and how many there are. Parts of identifiers come last, as they do in the index, so that they never
 * stand between the words of a phrase. Plain words that are not wanted are only counted: most words of most texts.
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

/** What plain words to visit. */
export interface Wanted {
  /** Not 0 at 128 times the first of a word's characters plus the second, or what stands behind it. */
  readonly opens: Uint8Array;
  readonly begins: (text: string, from: number) => boolean;
}

/** The terms that FTS5 holds for a prepared text, without its conversation. */
export function tokenize(text: string): string[] {
  const terms: string[] = [];
  eachWord(text, (word) => terms.push(stem(word)));
  return terms;
}

// ── Queries ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One thing to look for: a word, or words in a row. */
export interface Term {
  /** As it was asked for, to be named in an answer. */
  readonly text: string;
  /** An FTS5 expression made of quoted strings only. */
  readonly match: string;
  /** Stems in a row; a text that holds any of these rows holds the term. */
  readonly alternatives: readonly (readonly string[])[];
  /** Whether the last stem may go on. */
  readonly prefix: boolean;
}

export interface Query {
  /** Quoted in the query: a hit holds every one. */
  readonly phrases: readonly Term[];
  /** A row with all of these is a full match. */
  readonly words: readonly Term[];
  /** Pieces of words such as paths: they help ranking, and are not asked of a full match. */
  readonly pieces: readonly Term[];
  /** Every word of the query, lowercase, also those too common to search for. */
  readonly mentioned: ReadonlySet<string>;
  /** Whether it asks something, rather than naming what to look for. */
  readonly isQuestion: boolean;
}

const termsMax = 256;

/** Reads `words and "quoted phrases"`. Anything is a query, except what has no letter, digit or emoji in it. */
export function parseQuery(pattern: string): Query {
  const phrases: Term[] = [];
  const words: Term[] = [];
  const common: Term[] = [];
  const pieces: Term[] = [];
  const unquoted = pattern.replace(/["“”]([^"“”]*)["“”]/gu, (_, quoted: string) => {
    phrases.push(...phraseOf(quoted));
    return " ";
  });
  for (const chunk of unquoted.split(/\s+/u)) {
    const asked = termsOfChunk(chunk.replace(/['’](?:s|t|d|m|re|ve|ll)(?=[^\p{L}\p{N}]*$)/iu, ""));
    for (const word of asked.words) (isCommon(word) ? common : words).push(word);
    for (const piece of asked.pieces) if (!isCommon(piece)) pieces.push(piece);
  }

  const searched = distinct(words.length + phrases.length > 0 ? words : common);
  if (phrases.length + searched.length === 0) {
    const message = `nothing to search for in ${JSON.stringify(pattern)}: it has no letter, digit or emoji`;
    throw new LcmError("invalid", message, {
      hint: "give words, such as: database migration; only a regular expression finds punctuation",
    });
  }
  if (phrases.length + searched.length > termsMax) {
    const message = `${phrases.length + searched.length} words are too many to search for; the most is ${termsMax}`;
    throw new LcmError("invalid", message, {
      hint: "ask with the few words that tell it from the rest, such as: database migration",
    });
  }
  const mentioned = new Set<string>();
  eachWord(pattern, (word) => mentioned.add(word));
  const asks = /[?？]/u.test(pattern) || questionWords.some((word) => mentioned.has(word)) || searched.length > 2;
  return {
    phrases: distinct(phrases),
    words: searched,
    pieces: distinct(pieces),
    mentioned,
    isQuestion: asks && phrases.length === 0,
  };
}

/** What a query asks for where there is no white space: `word`, `src/a.ts`, `getName`, `migrat*`, `数据库`, `🎉`. */
function termsOfChunk(chunk: string): { readonly words: readonly Term[]; readonly pieces: readonly Term[] } {
  const words: Term[] = [];
  const spaced: Piece[] = [];
  for (const piece of allPieces(chunk)) {
    if (piece.script === "spaced") spaced.push(piece);
    else for (const word of withoutEnd(piece)) words.push(termOf(word, [[word]], isLoneCharacter(word)));
  }
  const row = spaced.flatMap((piece) => piece.words);
  if (row.length > 0) {
    const shown = chunk.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}*]+$/gu, "");
    // `getName` is also found as get_name, unless a part is missing in the index.
    const parts = row.length === 1 ? (spaced[0]?.parts ?? []) : [];
    const alternatives = parts.length > 0 && parts.join("") === row[0] ? [row, parts] : [row];
    words.push(termOf(shown, alternatives, /[\p{L}\p{N}]{3}\*$/u.test(shown)));
  }
  const pieces = row.length > 1 ? row.filter((word) => word.length > 1) : [];
  return { words, pieces: pieces.map((word) => termOf(word, [[word]], false)) };
}

function phraseOf(quoted: string): readonly Term[] {
  const pieces = allPieces(quoted);
  const row = pieces.flatMap((piece, at) => (at === pieces.length - 1 ? withoutEnd(piece) : piece.words));
  return row.length === 0 ? [] : [termOf(quoted.trim(), [row], row.length === 1 && isLoneCharacter(row[0] ?? ""))];
}

/** The character that ends a run is indexed for queries of one character; in a text that goes on, it begins a pair. */
const withoutEnd = (piece: Piece): readonly string[] =>
  piece.script === "unspaced" && piece.words.length > 1 ? piece.words.slice(0, -1) : piece.words;

const isLoneCharacter = (word: string): boolean => unspacedCharacter.test(word);

const termOf = (text: string, alternatives: readonly (readonly string[])[], prefix: boolean): Term => ({
  text,
  match: `(${alternatives.map((row) => `"${row.join(" ")}"${prefix ? " *" : ""}`).join(" OR ")})`,
  alternatives: alternatives.map((row) => row.map(stem)),
  prefix,
});

const distinct = (terms: readonly Term[]): readonly Term[] => [
  ...new Map(terms.map((term) => [term.match, term])).values(),
];

const isCommon = (term: Term): boolean => queryStopWords.has(term.text.toLowerCase());

const questionWords = ["how", "what", "when", "where", "which", "who", "whom", "whose", "why"];

// ── Runs and their pieces ────────────────────────────────────────────────────────────────────────────────────────────

/** A run is letters and digits without a break: foreign if it holds more than ASCII, joined if it is an identifier. */
type Shape = "foreign" | "joined";

const [blank, lower, upper, digit, foreign] = [0, 1, 2, 3, 4];
const kinds = new Uint8Array(2 ** 16).fill(foreign, 128);
for (const [kind, first, last] of [[lower, "a", "z"] as const, [upper, "A", "Z"] as const, [digit, "0", "9"] as const])
  kinds.fill(kind, first.charCodeAt(0), last.charCodeAt(0) + 1);

/**
 * Visits the runs of a text that need care, and the plain ones if asked: all, or those that open so. One pass over
 * character codes, copied out since that is twice as quick; each visit, and the end, tells how many were skipped.
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
      // Joints: aB, a1, 1a, and the last capital of ABc.
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

/** The character codes of a text, and one of a blank behind them; valid until the next text. */
function codesOf(text: string): Uint16Array {
  if (text.length >= codes.length) {
    codes = new Uint16Array(2 * text.length);
    copied = Buffer.from(codes.buffer);
  }
  copied.write(text, "utf16le");
  codes[text.length] = 0;
  return codes;
}

interface Piece {
  /** Unspaced: written without spaces between words, so indexed as pairs of characters. */
  readonly script: "spaced" | "unspaced" | "emoji";
  readonly words: readonly string[];
  /** Of an identifier. */
  readonly parts: readonly string[];
  readonly from: number;
  readonly to: number;
}

function allPieces(text: string): readonly Piece[] {
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

const segments = /\p{RI}{2}|\p{Extended_Pictographic}|[\p{L}\p{N}\p{M}]+/gu;
const unspaced = ["Han", "Hiragana", "Katakana", "Hangul", "Bopomofo", "Thai", "Lao", "Khmer", "Myanmar"]
  .map((script) => `\\p{scx=${script}}`)
  .join("");
const unspacedCharacter = new RegExp(`^[${unspaced}]$`, "u");
const spans = new RegExp(`([${unspaced}]+)|[^${unspaced}]+`, "gu");
/** Marks, and the few letters that FTS5 takes for marks. */
const marks = /[\p{M}\u19b0-\u19c0\u19c8\u19c9\u1cf2\u1cf3]+/gu;

/** The pieces of a run beyond ASCII, folded so far that FTS5 finds nothing left to fold. */
function* fold(run: string, start: number): Generator<Piece> {
  for (const found of run.matchAll(segments)) {
    const from = start + found.index;
    const to = from + found[0].length;
    if (!/[\p{L}\p{N}]/u.test(found[0])) {
      const word = emojiWord(found[0]);
      if (word !== "") yield { script: "emoji", words: [word], parts: [], from, to };
      continue;
    }
    for (const span of found[0].normalize("NFKC").matchAll(spans)) {
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

/** `数据库` as 数据, 据库, 库: every pair, and the last character, so that one character is found as a prefix. */
const pairs = (characters: readonly string[]): readonly string[] =>
  characters.map((character, at) => character + (characters[at + 1] ?? ""));

/** Emoji as words that FTS5 keeps and does not stem; the base alone, without skin tone or presentation. */
function emojiWord(segment: string): string {
  const codes = Array.from(segment.replace(marks, ""), (character) => (character.codePointAt(0) ?? 0).toString(16));
  return codes.length === 0 ? "" : `xemoji${codes.join("z")}x`;
}

const identifierMax = 64;
const partsMax = 6;

/** `getUserName` is also get, user, name. Not so what is made of many short bits: a hash or an encoded blob. */
function identifierParts(run: string): readonly string[] {
  if (run.length > identifierMax) return [];
  const parts = run.match(/[A-Z]+(?![a-z]{2})|[A-Z]?[a-z]+|[0-9]+/g) ?? [];
  if (parts.length < 2 || parts.length > partsMax) return [];
  return parts.filter((part) => part.length > 1).map((part) => part.toLowerCase());
}

// ── Stems ────────────────────────────────────────────────────────────────────────────────────────────────────────────

type Suffix = readonly [suffix: string, replacement: string];

/**
 * Each suffix with what takes its place after the dash; by the last letter but one, as FTS5 looks them up. The first
 * that ends the word decides, applied or not.
 */
const suffixesOf = (table: string): ReadonlyMap<string, readonly Suffix[]> =>
  Map.groupBy(
    table
      .trim()
      .split(/\s+/)
      .map((pair): Suffix => {
        const [suffix = "", replacement = ""] = pair.split("-");
        return [suffix, replacement];
      }),
    ([suffix]) => suffix.at(-2) ?? "",
  );

const step2 = suffixesOf(`
  ational-ate tional-tion enci-ence anci-ance izer-ize logi-log bli-ble alli-al entli-ent eli-e ousli-ous
  ization-ize ation-ate ator-ate alism-al iveness-ive fulness-ful ousness-ous aliti-al iviti-ive biliti-ble`);
const step3 = suffixesOf("ical-ic ness- icate-ic iciti-ic ful- ative- alize-al");
const step4 = suffixesOf(
  "al- ance- ence- er- ic- able- ible- ant- ement- ment- ent- ion- ou- ism- ate- iti- ous- ive- ize-",
);

/** The stem of a lowercase word, equal to that of FTS5's porter in every quirk. */
export function stem(word: string): string {
  if (isAscii(word)) return word.length < 3 || word.length > 64 ? word : porter(word);
  // FTS5 looks at bytes. No suffix ends in a byte beyond ASCII.
  if (word.charCodeAt(word.length - 1) > 127) return word;
  const bytes = Buffer.from(word).toString("latin1");
  return bytes.length > 64 ? word : Buffer.from(porter(bytes), "latin1").toString();
}

function porter(word: string): string {
  let stem = word;
  if (stem.endsWith("s")) {
    if (stem.endsWith("es"))
      stem = stem.slice(
        0,
        (stem.length > 4 && stem.endsWith("sses")) || (stem.length > 3 && stem.endsWith("ies")) ? -2 : -1,
      );
    else if (!stem.endsWith("ss")) stem = stem.slice(0, -1);
  }
  if (stem.length > 3 && stem.endsWith("eed")) {
    if (measure(stem.slice(0, -3)) > 0) stem = stem.slice(0, -1);
  } else if (stem.length > 2 && stem.endsWith("ed") && hasVowel(stem.slice(0, -2))) stem = tidy(stem.slice(0, -2));
  else if (stem.length > 3 && stem.endsWith("ing") && hasVowel(stem.slice(0, -3))) stem = tidy(stem.slice(0, -3));
  if (stem.endsWith("y") && hasVowel(stem.slice(0, -1))) stem = `${stem.slice(0, -1)}i`;

  stem = replaceSuffix(stem, step2, (rest) => measure(rest) > 0);
  stem = replaceSuffix(stem, step3, (rest) => measure(rest) > 0);
  stem = replaceSuffix(stem, step4, (rest, suffix) => measure(rest) > 1 && (suffix !== "ion" || /[st]$/.test(rest)));

  if (stem.endsWith("e")) {
    const rest = stem.slice(0, -1);
    const m = measure(rest);
    if (m > 1 || (m === 1 && !endsShort(rest))) stem = rest;
  }
  return stem.endsWith("ll") && measure(stem.slice(0, -1)) > 1 ? stem.slice(0, -1) : stem;
}

/** What is left after -ed or -ing: conflat → conflate, hopp → hop, fil → file. */
function tidy(rest: string): string {
  if (rest.length > 2 && /(?:at|bl|iz)$/.test(rest)) return `${rest}e`;
  const last = rest.at(-1) ?? "";
  if (!"aeioulsz".includes(last) && last === rest.at(-2)) return rest.slice(0, -1);
  return measure(rest) === 1 && endsShort(rest) ? `${rest}e` : rest;
}

function replaceSuffix(
  word: string,
  suffixes: ReadonlyMap<string, readonly Suffix[]>,
  applies: (rest: string, suffix: string) => boolean,
): string {
  for (const [suffix, replacement] of suffixes.get(word.at(-2) ?? "") ?? []) {
    if (word.length <= suffix.length || !word.endsWith(suffix)) continue;
    const rest = word.slice(0, -suffix.length);
    return applies(rest, suffix) ? rest + replacement : word;
  }
  return word;
}

/** Whether each letter is a vowel; y is one after a consonant. */
function vowels(word: string): readonly boolean[] {
  const are: boolean[] = [];
  for (const letter of word) are.push("aeiou".includes(letter) || (letter === "y" && are.at(-1) === false));
  return are;
}

/** How many times vowels are followed by consonants. */
function measure(word: string): number {
  const are = vowels(word);
  return are.filter((is, at) => !is && are[at - 1] === true).length;
}

/** FTS5 takes every y but the first letter for a vowel here. */
const hasVowel = (word: string): boolean => /[aeiou]|.y/s.test(word);

/** Consonant, vowel, consonant, and the last is not w, x or y. */
function endsShort(word: string): boolean {
  const [first, second, third] = vowels(word).slice(-3);
  return !/[wxy]$/.test(word) && third === false && second === true && first === false;
}
