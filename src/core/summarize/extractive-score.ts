/** Scores statements by rare terms and cue words, and links answers to questions and repeats to each other. */

import {
  assent,
  cueKinds,
  cuePatterns,
  cuePhrases,
  cueWords,
  narration,
  smallTalk,
  type CueKind,
} from "./extractive-cues.ts";
import { once } from "../base/once.ts";
import { everydayWords } from "../base/stop-words.ts";
import type { Statement } from "./extractive-split.ts";

type TermKind = "word" | "name" | "code" | "number" | "pair";

/** A word, name, code, number, or two characters of a script without spaces. Counts grow while statements are read. */
export interface Term {
  kind: TermKind;
  shown: string;
  weight: number;
  /** Number of turns it occurs in; then where it occurred last. */
  turns: number;
  lastTurn: number;
  lastStatement: number;
  /** Occurrences inside a sentence with and without a capital letter. */
  capital: number;
  plain: number;
  /** The newest statements that contain it. */
  readonly places: number[];
}

/** A statement with its terms and cues. */
interface ReadStatement extends Statement {
  readonly terms: readonly Term[];
  readonly cues: ReadonlySet<CueKind>;
}

export interface ScoredStatement extends ReadStatement {
  readonly place: number;
  /** Summed weight of its terms. */
  readonly total: number;
  /** For its cues. */
  readonly bonus: number;
  /** For speaker, form and position; lowered if it is repeated or corrected later. */
  factor: number;
  /** Quoted with it: the question it answers, the rest of the user's message. */
  needs: readonly ScoredStatement[];
}

const termWorth: Readonly<Record<TermKind, number>> = { word: 0.8, name: 2.5, code: 1.6, number: 1.6, pair: 0.35 };
/** A word that occurs once is rarely a topic. */
const loneWordWorth = 0.7;
const cueWorth = { decision: 3, duty: 1.2, rule: 1.2, change: 1.2, trouble: 0.8, outcome: 0.8, fact: 0.9 } as const;
const bonusMax = 4;
/** Exponent by which statements of a turn lose weight that is longer than this. */
const dilution = 0.6;
const undilutedTokens = 40;
/** Longest instruction, and the share of the room that all of them may need to be favoured. */
const instructionTokensMax = 80;
const instructionsShare = 0.5;
const instructionFavour = 2;
const instructionBonus = 1;
/** How much more the last statement counts than the first. */
const recency = 0.15;

export function scoreStatements(statements: readonly Statement[], room: number): readonly ScoredStatement[] {
  const vocabulary = new Vocabulary();
  const read = statements.map((statement, place) => ({ ...statement, ...vocabulary.read(statement, place) }));
  const turnCount = new Set(statements.map(({ turn }) => turn)).size;
  for (const term of vocabulary.terms()) term.weight = weightOf(term, turnCount);

  const lengths = tokensByTurn(read.filter(({ form }) => form === "prose"));
  const instructions = instructionsIn(read, room);
  const scored = read.map((statement, place): ScoredStatement => {
    const dilutedBy = Math.max(1, (lengths.get(statement.turn) ?? 0) / undilutedTokens) ** dilution;
    const isInstruction = statement.typed && instructions.has(statement.turn);
    return {
      ...statement,
      place,
      total: statement.terms.reduce((sum, term) => sum + term.weight, 0),
      bonus: bonusOf(statement) + (isInstruction ? instructionBonus : 0),
      factor:
        ((statement.worth * substance(statement) * (1 + (recency * place) / read.length)) / dilutedBy) *
        (isInstruction ? instructionFavour : 1),
      needs: [],
    };
  });
  linkAnswers(scored);
  joinTurns(scored, instructions);
  discountRepeats(scored);
  return scored;
}

/** Turns in which the user typed a short text, unless these are too many to quote: then they must compete. */
function instructionsIn(statements: readonly Statement[], room: number): ReadonlySet<number> {
  const lengths = tokensByTurn(statements.filter(({ typed }) => typed));
  const short = [...lengths].filter(([, tokens]) => tokens <= instructionTokensMax);
  const total = short.reduce((sum, [, tokens]) => sum + tokens, 0);
  return new Set(total <= instructionsShare * room ? short.map(([turn]) => turn) : []);
}

function tokensByTurn(statements: readonly Statement[]): ReadonlyMap<number, number> {
  const lengths = new Map<number, number>();
  for (const { turn, tokens } of statements) lengths.set(turn, (lengths.get(turn) ?? 0) + tokens);
  return lengths;
}

/** The statements of such a message are quoted together. */
function joinTurns(statements: readonly ScoredStatement[], turns: ReadonlySet<number>): void {
  const joined = statements.filter(({ typed, turn }) => typed && turns.has(turn));
  for (const together of Map.groupBy(joined, ({ turn }) => turn).values()) {
    const all = new Set([...together.flatMap(({ needs }) => needs), ...together]);
    for (const statement of together) statement.needs = [...all].filter((other) => other !== statement);
  }
}

const opensList = (text: string): boolean => /[:：]$/u.test(text);

function bonusOf({ form, worth, cues }: ReadStatement): number {
  if (form !== "prose" && !(form === "output" && worth > 1)) return 0;
  const bonus = [...cues].reduce((sum, cue) => sum + cueWorth[cue], 0);
  return Math.min(bonus, bonusMax);
}

function weightOf(term: Term, turnCount: number): number {
  if (term.kind === "word" && term.capital > term.plain) term.kind = "name";
  if (term.kind === "word") term.shown = term.shown.toLowerCase();
  const rarity = Math.log((turnCount + 1) / term.turns) / Math.log(turnCount + 1);
  const worth = term.kind === "word" && term.places.length === 1 ? loneWordWorth : termWorth[term.kind];
  return rarity * worth * term.weight;
}

/** Discounts politeness, announcements of the next step, and questions. */
function substance({ form, text, stamp, terms, cues }: ReadStatement): number {
  if (form !== "prose") return 1;
  const isConcrete = terms.some(({ kind }) => kind === "code" || kind === "number") || cues.has("decision");
  const isPolite = !isConcrete && !cues.has("duty") && smallTalk.test(text);
  const announces = !/^(?:user|system)/.test(stamp.who) && narration.test(text);
  const isEmpty = !isConcrete && (terms.length < 2 || (stamp.who === "assistant" && text.endsWith("!")));
  return (isEmpty ? 0.4 : 1) * (isPolite ? 0.3 : announces ? 0.4 : 1) * (isQuestion(text) || opensList(text) ? 0.6 : 1);
}

const isQuestion = (text: string): boolean => /[?？؟][”"'’」』)\]]*$|(?:か|吗|呢|까|나요)[。.]?$/u.test(text);

const shortAnswerTokens = 14;
const turnStatementsMax = 8;

/** A short statement at the start of a turn answers the last question of the previous turn, or agrees with its end. */
function linkAnswers(statements: readonly ScoredStatement[]): void {
  const isNewTurn = (place: number): boolean => statements[place - 1]?.turn !== statements[place]?.turn;
  for (const [place, statement] of statements.entries()) {
    const assents = assent.test(statement.text);
    if (place === 0 || statement.form !== "prose" || !isNewTurn(place)) continue;
    if (statement.tokens > shortAnswerTokens && !(assents && statement.tokens < 2 * shortAnswerTokens)) continue;
    for (let before = place - 1; before >= Math.max(0, place - turnStatementsMax); before--) {
      const asked = statements[before];
      if (asked === undefined || asked.form !== "prose" || asked.stamp.who === statement.stamp.who) break;
      if (isQuestion(asked.text) || (before === place - 1 && (assents || statement.cues.has("change")))) {
        statement.needs = [asked];
        if (isQuestion(asked.text)) asked.needs = [statement];
      }
      if (isNewTurn(before) || isQuestion(asked.text)) break;
    }
  }
}

const nearlyEqual = 0.8;
const sameButFigures = 0.95;
const sameSubject = 0.4;

/**
 * Discounts the earlier of two nearly equal statements, unless it scores much higher, and statements corrected later.
 * Numbers are not compared, because an update changes them. Nor are statements of one turn: similar ones are a list.
 */
function discountRepeats(statements: readonly ScoredStatement[]): void {
  const shared = new Float64Array(statements.length);
  const sums = statements.map(({ terms }) => terms.reduce((sum, term) => sum + wordWeight(term), 0));
  const newest = new Map<string, ScoredStatement>();
  for (const later of statements) {
    const words = later.terms.filter((term) => wordWeight(term) > 0);
    const key = words.map((term) => term.shown).join(" ");
    const before = newest.get(key);
    if (words.length > 0) newest.set(key, later);
    if (before !== undefined && before.turn !== later.turn) fade(before, later, 0.05);

    const met: number[] = [];
    for (const term of words) {
      for (const place of term.places) {
        if (place >= later.place) break;
        if (shared[place] === 0) met.push(place);
        shared[place] = (shared[place] ?? 0) + term.weight;
      }
    }
    for (const place of met) {
      const earlier = statements[place];
      const weight = shared[place] ?? 0;
      shared[place] = 0;
      if (earlier === undefined || earlier === before || earlier.turn === later.turn) continue;
      const [one, other] = [sums[place] ?? 0, sums[later.place] ?? 0];
      if (weight > nearlyEqual * Math.min(one, other) && weight > 0.5 * Math.max(one, other)) {
        fade(earlier, later, weight > sameButFigures * Math.max(one, other) ? 0.05 : 0.3);
      } else if (later.form === "prose" && later.cues.has("change") && weight > sameSubject * one) {
        earlier.factor *= 0.5;
      }
    }
  }
}

function fade(earlier: ScoredStatement, later: ScoredStatement, share: number): void {
  const weaker = earlier.factor > 1.15 * later.factor ? later : earlier;
  weaker.factor *= share;
}

const wordWeight = (term: Term): number => (term.kind === "number" ? 0 : term.weight);

const unspaced = String.raw`\p{sc=Han}\p{sc=Hira}\p{sc=Kana}ー々〆\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}`;
const letter = String.raw`[[\p{L}\p{M}\p{N}_]--[${unspaced}]]`;
const address = String.raw`https?:\/\/[^\s<>"'\x60\)\]]+`;
const spacedTerm = String.raw`[@#$€£¥~\/]?${letter}+(?:[\-.:\/@'’+]${letter}+|,\d{3})*%?`;
const emoji = String.raw`\p{Emoji_Presentation}`;
const termPattern = once(
  () => new RegExp(String.raw`${address}|[「『《“]?[${unspaced}]+|${spacedTerm}|${emoji}`, "gv"),
);
const unspacedPattern = once(() => new RegExp(`[${unspaced}]`, "v"));
const cueOfWord: ReadonlyMap<string, CueKind> = new Map(
  cueKinds.flatMap((cue) => cueWords[cue].map((word) => [word, cue] as const)),
);
const placesMax = 12;
const quotedCharsMax = 16;

/** Collects the terms of all statements. */
class Vocabulary {
  readonly #byKey = new Map<string, Term>();
  /** Each spelling seen: its term, null for a function word; and its cue. */
  readonly #bySpelling = new Map<string, { readonly term: Term | null; readonly cue: CueKind | undefined }>();

  terms(): Iterable<Term> {
    return this.#byKey.values();
  }

  read(statement: Statement, place: number): Pick<ReadStatement, "terms" | "cues"> {
    const terms: Term[] = [];
    const cues = new Set<CueKind>();
    const meet = (term: Term): void => {
      if (term.lastStatement === place) return;
      term.lastStatement = place;
      if (term.lastTurn !== statement.turn) term.turns++;
      term.lastTurn = statement.turn;
      if (term.places.push(place) > placesMax) term.places.shift();
      terms.push(term);
    };
    let isUnspaced = false;
    for (const [at, spelling] of (statement.text.match(termPattern()) ?? []).entries()) {
      if (spelling.charCodeAt(0) >= 0xe00 && unspacedPattern().test(spelling)) {
        isUnspaced = true;
        for (const term of this.#unspacedTerms(spelling)) meet(term);
        continue;
      }
      const { term, cue } = this.#lookUp(spelling);
      if (cue !== undefined) cues.add(cue);
      if (term === null) continue;
      if (at > 0 && term.kind === "word") term[/^\p{Lu}/u.test(spelling) ? "capital" : "plain"]++;
      meet(term);
    }
    if (statement.form === "prose") {
      const isPatterned = isUnspaced || /[\u0590-\u0dff\uac00-\ud7a3]/.test(statement.text);
      for (const cue of cueKinds)
        if (cuePhrases[cue]?.test(statement.text) === true || (isPatterned && cuePatterns[cue].test(statement.text)))
          cues.add(cue);
    }
    return { terms, cues };
  }

  #lookUp(spelling: string): { readonly term: Term | null; readonly cue: CueKind | undefined } {
    const known = this.#bySpelling.get(spelling);
    if (known !== undefined) return known;
    const lower = spelling.toLowerCase().replace(/['’]s$/, "");
    const kind = kindOf(spelling);
    const key = kind === "word" ? stem(lower) : lower;
    const weight = /^(?:.|\p{Emoji_Presentation})$/u.test(lower) ? 0.3 : 1;
    const term = everydayWords.has(lower) ? null : this.#term(key, kind, spelling, weight);
    const entry = { term, cue: cueOfWord.get(lower) };
    this.#bySpelling.set(spelling, entry);
    return entry;
  }

  /** Terms of text in a script without spaces: quoted text is a name, and any two characters may be a word. */
  *#unspacedTerms(run: string): Generator<Term> {
    const letters = run.replace(/^[「『《“]/u, "");
    if (letters !== run && letters.length <= quotedCharsMax) yield this.#term(letters, "name", letters, 1);
    for (const pair of pairsOf(letters)) yield this.#term(pair, "pair", pair, /^\p{sc=Hira}+$/u.test(pair) ? 0.1 : 1);
  }

  #term(key: string, kind: TermKind, shown: string, weight: number): Term {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const counts = { turns: 0, lastTurn: -1, lastStatement: -1, capital: 0, plain: 0 };
    const term = { kind, shown, weight, ...counts, places: [] };
    this.#byKey.set(key, term);
    return term;
  }
}

function kindOf(spelling: string): TermKind {
  if (/\p{N}/u.test(spelling)) return /\p{L}|[_/#@]/u.test(spelling) ? "code" : "number";
  return /[_/@.:~$#]|\p{Ll}\p{Lu}|^\p{Lu}{2}/u.test(spelling) ? "code" : "word";
}

/** Crude, but enough to match two statements on one subject. */
const stem = (word: string): string => (word.length > 4 ? word.replace(/(?:ing|ed|es|s|e)$/, "") : word);

function pairsOf(run: string): readonly string[] {
  const characters = [...run];
  return characters.length === 1
    ? [run]
    : characters.slice(1).map((character, at) => `${characters[at] ?? ""}${character}`);
}
