/**
 * Estimates what the ranking finds in a conversation that its rules have not seen: leaves out each in turn, chooses rules
 * on all others, starting from neutral ones, and measures these on it. The current rules were chosen by hand with all of
 * these conversations in view, so their own figures are too good. Every message of a conversation is scored.
 */

import type { Message } from "../../src/core/model/types.ts";
import { parseQuery, termsOf } from "../../src/store/search/query.ts";
import { createReader, scoreTurns, turnRules, weightOf, type TurnRules } from "../../src/store/search/rank.ts";
import { table } from "../table.ts";
import type { Question } from "./data.ts";
import { figuresOf, mean, type Figures } from "./measure.ts";
import type { StoredSet } from "./store.ts";
import { hitsMax } from "./ways.ts";

/** What each rule is without an opinion: no effect, or what it was before the data sets other than LoCoMo were looked at. */
const neutral: TurnRules = {
  replyShare: 0.5,
  neighbourShare: 0.25,
  toolShare: 1,
  pairShare: 0,
  speakerFactor: 1.3,
  userFactor: 1,
  timeFactor: 1.3,
  callFactor: 1,
  lengthRef: 100,
  lengthPower: 0,
  lonelyWords: 0,
};
const rounds = 2;

/** Values to try for each rule, one after the other. */
const choices: Readonly<Record<keyof TurnRules, readonly number[]>> = {
  replyShare: [0.25, 0.5, 0.75],
  neighbourShare: [0.15, 0.2, 0.25, 0.3],
  toolShare: [0.25, 0.5, 1],
  pairShare: [0, 0.25, 0.5, 1],
  speakerFactor: [1, 1.1, 1.2, 1.3],
  userFactor: [1, 1.1, 1.25, 1.4],
  timeFactor: [1, 1.15, 1.3],
  callFactor: [0.5, 0.6, 0.8, 1],
  lengthRef: [60, 100, 150],
  lengthPower: [0, 0.3, 0.4, 0.5],
  lonelyWords: [0, 5, 8, 12],
};

/** Enough of the questions of a conversation to choose by; the others of LoCoMo would only take time. */
const questionsMax = 70;

interface Trial {
  readonly set: string;
  readonly name: string;
  readonly figures: (rules: TurnRules) => Figures;
}

export function tune(sets: readonly StoredSet[]): string {
  const trials = sets.flatMap(({ name: set, conversations }) =>
    conversations.map(({ sample, messages }): Trial => {
      return { set, name: sample.name, figures: createTrial(messages, sample.questions) };
    }),
  );
  const left = trials.map((trial) => {
    const rules = bestRules(trials.filter((each) => each !== trial));
    return { trial, rules, figures: [neutral, rules, turnRules].map((each) => trial.figures(each)) };
  });
  const shown = (figures: readonly Figures[]): string =>
    (
      (100 * sum(figures.map(({ questions, recall }) => questions * (recall[1] ?? 0)))) /
      sum(figures.map(({ questions }) => questions))
    ).toFixed(1);
  const cells = (of: typeof left): readonly string[] => [
    String(sum(of.map(({ figures }) => figures[0]?.questions ?? 0))),
    ...[0, 1, 2].map((at) => shown(of.flatMap(({ figures }) => figures[at] ?? []))),
  ];
  const rows = [
    ...sets.map(({ name }) => [`all of ${name}`, ...cells(left.filter(({ trial }) => trial.set === name)), ""]),
    ...left.map((each) => [each.trial.name, ...cells([each]), Object.values(each.rules).join(" ")]),
  ];
  const head = [
    "conversation",
    "questions",
    "@10, neutral",
    "@10, chosen on the others",
    "@10, current (seen)",
    "rules chosen",
  ];
  return `${table(head, rows)}\n\nRules: ${Object.keys(neutral).join(", ")}. Current: ${Object.values(turnRules).join(" ")}.`;
}

const sum = (figures: readonly number[]): number => figures.reduce((total, each) => total + each, 0);

function bestRules(trials: readonly Trial[]): TurnRules {
  let best: TurnRules = neutral;
  let most = worth(trials, best);
  const order = Array.from({ length: rounds }, () => Object.keys(choices) as (keyof TurnRules)[]).flat();
  for (const rule of order) {
    for (const value of choices[rule]) {
      const rules = { ...best, [rule]: value };
      const found = worth(trials, rules);
      if (found > most) [best, most] = [rules, found];
    }
  }
  return best;
}

/** Every data set counts the same, however many questions it has. */
function worth(trials: readonly Trial[], rules: TurnRules): number {
  const sets = [...new Set(trials.map(({ set }) => set))];
  return mean(
    sets.map((name) => {
      const figures = trials.filter(({ set }) => set === name).map((trial) => trial.figures(rules));
      return mean(figures.map(({ recall, mrr }) => mean([...recall, mrr])));
    }),
  );
}

/** The figures of a conversation by rules; each is worked out once. */
function createTrial(messages: readonly Message[], questions: readonly Question[]): Trial["figures"] {
  const step = Math.max(1, Math.round(questions.length / questionsMax));
  const asked = questions.filter((_, at) => at % step === 0).map((question) => prepare(messages, question));
  const known = new Map<string, Figures>();
  return (rules) => {
    const key = JSON.stringify(rules);
    const figures = known.get(key) ?? figuresOf(asked.map((rank) => rank(rules)));
    known.set(key, figures);
    return figures;
  };
}

function prepare(messages: readonly Message[], question: Question) {
  const query = parseQuery(question.question);
  const terms = termsOf(query);
  const read = createReader(terms);
  const turns = messages.map(({ conversation, seq, role, text, at }) => {
    return { conversation, seq, role, text, at, name: null, reading: read(text) };
  });
  const matching = turns.filter(({ reading }) => reading.matches.length > 0);
  const holding = (term: number): number => turns.filter(({ reading }) => (reading.counts[term] ?? 0) > 0).length;
  const scale = {
    weights: terms.map((_, term) => weightOf(holding(term), turns.length)),
    places: [...terms.keys()],
    meanLength: mean(matching.map(({ reading }) => reading.length)),
  };
  return (rules: TurnRules) => {
    const scores = scoreTurns(turns, query, scale, rules);
    const best = [...scores.keys()]
      .filter((at) => (scores[at] ?? 0) > 0)
      .sort((one, other) => (scores[other] ?? 0) - (scores[one] ?? 0));
    return { question, hits: best.slice(0, hitsMax).map((at) => messages[at]?.key ?? ""), shown: null, answered: null };
  };
}
