/** Splits text into the tokens of BERT-like embedding models (WordPiece), from `tokenizer.json` or `vocab.txt`. */

import { LcmError } from "../core/base/errors.ts";
import { fieldsOf, parseJson, textAt, valueAt } from "./read-files.ts";

/** The ids of at most `tokensMax` tokens, the opening and closing ones included. */
export type Tokenizer = (text: string, tokensMax: number) => readonly number[];

/** Longer words become one unknown token, as in the models' own tokenizers. */
const wordCharactersMax = 100;
/** No token of a usual text is shorter on average, so that the rest of a long text need not be looked at. */
const charactersPerToken = 16;

export function createTokenizer(content: string, file: "tokenizer.json" | "vocab.txt"): Tokenizer {
  const { ids, isLowercase } = file === "vocab.txt" ? readVocabulary(content) : readTokenizer(content);
  const special = (token: string): number => {
    const id = ids.get(token);
    if (id === undefined)
      throw new LcmError("invalid", `${file} lacks the token ${token}: only WordPiece vocabularies are supported`);
    return id;
  };
  const [unknown, opening, closing] = [special("[UNK]"), special("[CLS]"), special("[SEP]")];
  return (text, tokensMax) => {
    const tokens = [opening];
    const normal = normalise(text.slice(0, tokensMax * charactersPerToken), isLowercase);
    for (const [word] of normal.matchAll(words)) {
      tokens.push(...piecesOf(word, ids, unknown));
      if (tokens.length >= tokensMax - 1) break;
    }
    return [...tokens.slice(0, tokensMax - 1), closing];
  };
}

interface Vocabulary {
  readonly ids: ReadonlyMap<string, number>;
  readonly isLowercase: boolean;
}

function readVocabulary(content: string): Vocabulary {
  const ids = new Map(content.split(/\r?\n/).map((token, id) => [token, id]));
  return { ids, isLowercase: !ids.has("The") };
}

function readTokenizer(content: string): Vocabulary {
  const tokenizer = parseJson(content);
  const type = textAt(tokenizer, "model", "type") ?? "an unknown kind";
  if (type !== "WordPiece") {
    throw new LcmError("invalid", `tokenizer.json is of ${type}, but only WordPiece is supported`, {
      hint: "use a BERT-like model such as gte-small, all-MiniLM-L6-v2 or bge-small, or serve the model with Ollama",
    });
  }
  const vocabulary = Object.entries(fieldsOf(valueAt(tokenizer, "model", "vocab")));
  const ids = new Map(vocabulary.map(([token, id]) => [token, Number(id)]));
  return { ids, isLowercase: valueAt(tokenizer, "normalizer", "lowercase") !== false };
}

/** Accents are dropped with case, as the models were trained. */
function normalise(text: string, isLowercase: boolean): string {
  const clean = text.replaceAll(/[\p{Cc}\p{Cf}\uFFFD]/gu, (letter) => (/\s/.test(letter) ? " " : ""));
  return isLowercase
    ? clean
        .toLowerCase()
        .normalize("NFD")
        .replaceAll(/\p{Mn}/gu, "")
    : clean;
}

/** A Chinese character, a punctuation mark, or a run of anything else. */
const words = /\p{Script=Han}|[\p{P}$+<=>^`|~]|[^\s\p{Script=Han}\p{P}$+<=>^`|~]+/gu;

/** The longest known beginning, then the longest known continuation, and so on. */
function piecesOf(word: string, ids: ReadonlyMap<string, number>, unknown: number): readonly number[] {
  if (word.length > wordCharactersMax) return [unknown];
  const pieces: number[] = [];
  for (let from = 0; from < word.length;) {
    let to = word.length;
    let id: number | undefined;
    for (; to > from && id === undefined; to--) id = ids.get((from === 0 ? "" : "##") + word.slice(from, to));
    if (id === undefined) return [unknown];
    pieces.push(id);
    from = to + 1;
  }
  return pieces;
}
