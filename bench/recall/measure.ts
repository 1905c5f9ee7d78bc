/** Measures ways of searching on data sets: recall at a few ranks, reciprocal rank, and evidence that the tool shows. */

import type { Question, Sample } from "./data.ts";
import type { Stored, StoredSet } from "./store.ts";
import { evidenceTokens, type Way } from "./ways.ts";

export const cutoffs = [5, 10, 20] as const;

/** Shares from 0 to 1. */
export interface Figures {
  readonly questions: number;
  /** The share of gold groups with a message among the first 5, 10 and 20 hits. */
  readonly recall: readonly number[];
  /** The mean reciprocal rank of the first gold message. */
  readonly mrr: number;
  /** The share of gold groups with a passage of a message's own text in the tool's answer; null without a tool. */
  readonly evidence: number | null;
  /** The same within fewer tokens, see `answerTokens`. */
  readonly evidenceWithin: readonly number[];
  /** Of the tool's own answer: the share of gold groups with a message that is shown whole, and its mean length. */
  readonly whole: number;
  readonly characters: number;
}

/** Sizes of an answer in tokens at which evidence is measured, beside `evidenceTokens`. */
export const answerTokens = [300, 450, 600] as const;

/** What one way found for one question. */
interface Outcome {
  readonly question: Question;
  readonly hits: readonly string[];
  /** The share of its gold groups of which the tool shows a passage. */
  readonly shown: number | null;
  readonly answered: Answered | null;
}

interface Answered {
  readonly within: readonly number[];
  readonly whole: number;
  readonly characters: number;
}

export interface Measured {
  readonly set: string;
  /** By category, and `all`; by the name of the way. */
  readonly figures: ReadonlyMap<string, ReadonlyMap<string, Figures>>;
}

export async function measure(set: StoredSet, ways: readonly Way[]): Promise<Measured> {
  const categories = ["all", ...new Set(set.conversations.flatMap(({ sample }) => categoriesOf(sample)))];
  const figures = new Map(categories.map((category) => [category, new Map<string, Figures>()]));
  for (const way of ways) {
    const outcomes = (await Promise.all(set.conversations.map(async (stored) => await runWay(way, stored)))).flat();
    for (const [category, byWay] of figures) {
      const of = outcomes.filter(({ question }) => category === "all" || category === question.category);
      if (of.length > 0) byWay.set(way.name, figuresOf(of));
    }
  }
  return { set: set.name, figures };
}

const categoriesOf = ({ questions }: Sample): readonly string[] => questions.map(({ category }) => category);

async function runWay(way: Way, stored: Stored): Promise<readonly Outcome[]> {
  const search = await way.open(stored);
  const texts = new Map(stored.messages.map(({ key, text }) => [key, text]));
  const outcomes: Outcome[] = [];
  for (const question of stored.sample.questions) {
    if (way.applies?.(question) === false) continue;
    const hits = await search.hits(question);
    const { shown } = search;
    const evidence = async (tokens: number): Promise<number> => {
      const passages = (await shown?.(question, tokens))?.texts;
      return shareOf(question.gold, (key) => hasPassage(texts.get(key) ?? "", passages?.get(key) ?? ""));
    };
    const within = async (): Promise<Answered> => {
      const answer = await shown?.(question);
      const shares: number[] = [];
      for (const tokens of answerTokens) shares.push(await evidence(tokens));
      const whole = shareOf(question.gold, (key) => answer?.whole.has(key) === true);
      return { within: shares, whole, characters: answer?.characters ?? 0 };
    };
    outcomes.push({
      question,
      hits,
      shown: shown === undefined ? null : await evidence(evidenceTokens),
      answered: shown === undefined ? null : await within(),
    });
  }
  return outcomes;
}

const passageCharacters = 40;

/** Whether a text shows so many characters in a row of a message, or all of a shorter one. Blanks may differ. */
function hasPassage(message: string, shown: string): boolean {
  const [whole, part] = [message, shown].map((text) => text.replace(/\s+/g, " ").trim()) as [string, string];
  const length = Math.min(passageCharacters, whole.length);
  if (length === 0 || part.length < length) return false;
  for (let at = 0; at + length <= part.length; at++) if (whole.includes(part.slice(at, at + length))) return true;
  return false;
}

export function figuresOf(outcomes: readonly Outcome[]): Figures {
  const reciprocalRank = ({ hits, question }: Outcome): number => {
    const wanted = new Set(question.gold.flat());
    const rank = hits.findIndex((key) => wanted.has(key));
    return rank < 0 ? 0 : 1 / (rank + 1);
  };
  const shown = outcomes.flatMap((each) => each.shown ?? []);
  const answered = outcomes.flatMap((each) => each.answered ?? []);
  return {
    questions: outcomes.length,
    recall: cutoffs.map((k) => mean(outcomes.map(({ question, hits }) => recallAt(k, question, hits)))),
    mrr: mean(outcomes.map(reciprocalRank)),
    evidence: shown.length === 0 ? null : mean(shown),
    evidenceWithin: answerTokens.map((_, at) => mean(answered.map(({ within }) => within[at] ?? 0))),
    whole: mean(answered.map(({ whole }) => whole)),
    characters: mean(answered.map(({ characters }) => characters)),
  };
}

export function recallAt(k: number, { gold }: Question, hits: readonly string[]): number {
  const first = new Set(hits.slice(0, k));
  return shareOf(gold, (key) => first.has(key));
}

const shareOf = (groups: Question["gold"], isFound: (key: string) => boolean): number =>
  groups.filter((group) => group.some(isFound)).length / groups.length;

export const mean = (figures: readonly number[]): number =>
  figures.reduce((sum, each) => sum + each, 0) / Math.max(1, figures.length);
