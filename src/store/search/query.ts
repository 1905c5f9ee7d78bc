/** Parses a query into the terms to search for. */

import { LcmError } from "../../core/base/errors.ts";
import { queryStopWords } from "../../core/base/stop-words.ts";
import { formsOf, languageOf, type Language } from "./inflect.ts";
import { stem } from "./stem.ts";
import { allPieces, eachWord, unspacedCharacter, type Piece } from "./tokenize.ts";

/** One thing to look for: a word, or words in a row. */
export interface Term {
  /** As the query wrote it, for caveats. */
  readonly text: string;
  /** Rows of stems; a text that contains any of these rows contains the term. */
  readonly alternatives: readonly (readonly string[])[];
  /** Whether the last stem is the beginning of a word. */
  readonly prefix: boolean;
  /** Equal for terms that ask for the same words, before stemming. */
  readonly key: string;
}

export interface Query {
  /** Quoted in the query: a hit contains every one. */
  readonly phrases: readonly Term[];
  /** A row with all of these is a full match. */
  readonly words: readonly Term[];
  /** Pieces of words such as paths: they improve the ranking and are not required. */
  readonly pieces: readonly Term[];
  /** Every word of the query in lower case, including those too common to search for. */
  readonly mentioned: ReadonlySet<string>;
  /** Whether it asks a question rather than naming what to look for. */
  readonly isQuestion: boolean;
  /** Whether it asks for what the user said: it speaks of its asker, or of what should, must or may be. */
  readonly asksUser: boolean;
}

const termsMax = 256;

export const termsOf = ({ phrases, words, pieces }: Query): readonly Term[] => [...phrases, ...words, ...pieces];

/** The wordings of a search: as one query, which finds what any of them finds, and each by itself. */
export interface Wordings {
  readonly united: Query;
  /** The pattern first. Terms of different wordings that ask for the same words are one object. */
  readonly each: readonly Query[];
  /** All distinct terms; readings count them by position. */
  readonly terms: readonly Term[];
}

export function parseWordings(patterns: readonly string[]): Wordings {
  const parsed = patterns.map((pattern) => parseQuery(pattern));
  const known = new Map<string, Term>();
  for (const term of parsed.flatMap(termsOf)) known.set(term.key, united(known.get(term.key), term));
  const same = (terms: readonly Term[]): readonly Term[] => terms.map((term) => known.get(term.key) ?? term);
  const each = parsed.map((query) => ({
    ...query,
    phrases: same(query.phrases),
    words: same(query.words),
    pieces: same(query.pieces),
    asksUser: parsed.some(({ asksUser }) => asksUser),
  }));
  const terms = [...known.values()];
  const [first, ...others] = each;
  if (first === undefined) throw new LcmError("invalid", "nothing to search for");
  if (others.length === 0) return { united: first, each, terms };
  const all = {
    // A phrase is required only within its own wording.
    phrases: [],
    words: distinct(each.flatMap(({ phrases, words }) => [...phrases, ...words])),
    pieces: distinct(each.flatMap(({ pieces }) => pieces)),
    mentioned: new Set(each.flatMap(({ mentioned }) => [...mentioned])),
    isQuestion: each.some(({ isQuestion }) => isQuestion),
    asksUser: first.asksUser,
  };
  return { united: all, each, terms };
}

/** The same word in two wordings, with the compounds of both. */
function united(one: Term | undefined, other: Term): Term {
  if (one === undefined) return other;
  const rows = new Map([...one.alternatives, ...other.alternatives].map((row) => [row.join(" "), row]));
  return { ...one, alternatives: [...rows.values()] };
}

/** Parses `words and "quoted phrases"`. Throws `invalid` for a query without a letter, digit or emoji. */
export function parseQuery(pattern: string, language = languageOf(pattern, queryStopWords)): Query {
  const phrases: Term[] = [];
  const words: Term[] = [];
  const common: Term[] = [];
  const pieces: Term[] = [];
  const unquoted = pattern.replace(/["“”]([^"“”]*)["“”]/gu, (_, quoted: string) => {
    phrases.push(...phraseOf(quoted));
    return " ";
  });
  const chunks = unquoted.split(/\s+/u);
  for (const [at, chunk] of chunks.entries()) {
    const asked = termsOfChunk(language, chunk.replace(/['’](?:s|t|d|m|re|ve|ll)(?=[^\p{L}\p{N}]*$)/iu, ""));
    const compounds = [compoundOf(chunks[at - 1], chunk), compoundOf(chunk, chunks[at + 1])].flatMap(
      (each) => each ?? [],
    );
    for (const word of asked.words)
      if (isCommon(word, language)) common.push(word);
      else words.push({ ...word, alternatives: [...word.alternatives, ...compounds.map((each) => [stem(each)])] });
    for (const piece of asked.pieces) if (!isCommon(piece, language)) pieces.push(piece);
  }

  const searched = distinct(words.length + phrases.length > 0 ? words : common);
  if (phrases.length + searched.length === 0) {
    const message = `nothing to search for in ${JSON.stringify(pattern)}: no letter, digit or emoji`;
    throw new LcmError("invalid", message, {
      hint: "pass words, such as: database migration; to find punctuation, use a regular expression",
    });
  }
  if (phrases.length + searched.length > termsMax) {
    const message = `the query has ${phrases.length + searched.length} words; the limit is ${termsMax}`;
    throw new LcmError("invalid", message, { hint: "pass a few distinctive words, such as: database migration" });
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
    asksUser: userWords.test(pattern),
  };
}

/** English, German, French and Spanish: I and my, the user, wishes and rules. */
const userWords =
  /(?<![\p{L}\p{N}_./-])(?:I|me|my|mine|(?:the|by|from) user|should|must|allowed|forbidden|never|always|want|wants|wanted|wish|prefer|ich|mir|mich|mein\p{L}{0,2}|soll|sollte|muss|darf|je|j['’]ai|mon|mes|yo|mi|mis|debe|doit)(?![\p{L}\p{N}_/-])/iu;

/** The same wordings, with other terms in place of some words. */
export function replaceTerms({ united, each, terms }: Wordings, instead: ReadonlyMap<Term, Term>): Wordings {
  const replaced = (list: readonly Term[]): readonly Term[] => list.map((term) => instead.get(term) ?? term);
  const within = (query: Query): Query => ({ ...query, words: replaced(query.words) });
  return { united: within(united), each: each.map(within), terms: replaced(terms) };
}

/** The terms of a chunk without white space: `word`, `src/a.ts`, `getName`, `migrat*`, `数据库`, `🎉`. */
function termsOfChunk(
  language: Language | null,
  chunk: string,
): { readonly words: readonly Term[]; readonly pieces: readonly Term[] } {
  const words: Term[] = [];
  const spaced: Piece[] = [];
  for (const piece of allPieces(chunk)) {
    if (piece.script === "spaced") spaced.push(piece);
    else for (const word of withoutEnd(piece)) words.push(termOf(word, [[word]], isLoneCharacter(word)));
  }
  const row = spaced.flatMap((piece) => piece.words);
  if (row.length > 0) {
    const shown = chunk.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}*]+$/gu, "");
    // `getName` also finds get_name, unless the index leaves out one of its parts.
    const parts = row.length === 1 ? (spaced[0]?.parts ?? []) : [];
    const [only] = row;
    const forms =
      language === null || only === undefined || row.length > 1 ? [row] : formsOf(only, language).map((form) => [form]);
    const alternatives = parts.length > 0 && parts.join("") === only ? [row, parts] : forms;
    words.push(termOf(shown, alternatives, /[\p{L}\p{N}]{3}\*$/u.test(shown)));
  }
  const pieces = row.length > 1 ? row.filter((word) => word.length > 1) : [];
  return { words, pieces: pieces.map((word) => termOf(word, [[word]], false)) };
}

/** Two words as one, as some write them: `code block`, `codeblock`. */
const compoundOf = (one = "", other = ""): string | null =>
  [one, other].every((word) => /^\p{Script=Latin}{3,}$/u.test(word) && !queryStopWords.has(word.toLowerCase()))
    ? folded(one + other)
    : null;

function phraseOf(quoted: string): readonly Term[] {
  const pieces = allPieces(quoted);
  const row = pieces.flatMap((piece, at) => (at === pieces.length - 1 ? withoutEnd(piece) : piece.words));
  return row.length === 0 ? [] : [termOf(quoted.trim(), [row], row.length === 1 && isLoneCharacter(row[0] ?? ""))];
}

/** Drops the last character of a run: it is indexed alone only at the end of a run, and else begins a pair. */
const withoutEnd = (piece: Piece): readonly string[] =>
  piece.script === "unspaced" && piece.words.length > 1 ? piece.words.slice(0, -1) : piece.words;

const isLoneCharacter = (word: string): boolean => unspacedCharacter().test(word);

const termOf = (text: string, alternatives: readonly (readonly string[])[], prefix: boolean): Term => ({
  text,
  alternatives: alternatives.map((row) => row.map(stem)),
  prefix,
  key: JSON.stringify([alternatives, prefix]),
});

const distinct = (terms: readonly Term[]): readonly Term[] => [
  ...new Map(terms.map((term) => [term.key, term])).values(),
];

const isCommon = ({ text }: Term, language: Language | null): boolean =>
  language === null ? queryStopWords.has(text.toLowerCase()) : language.common.has(folded(text));

/** Without accents and capitals, as the index has words before it stems them. */
export const folded = (text: string): string => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

const questionWords = ["how", "what", "when", "where", "which", "who", "whom", "whose", "why"];
