/**
 * Scores how well a text answers a query: BM25, adapted to the turns of a conversation.
 * A reply also matches through its question, a turn through the turns around it, its speaker and its date.
 */

import type { Query, Term } from "./query.ts";
import { stem } from "./stem.ts";
import { eachWord, type Wanted } from "./tokenize.ts";

/** A part of a text: from one character up to, not including, another. */
export interface TextRange {
  readonly from: number;
  readonly to: number;
}

/** Where a term occurs in a text. */
interface Match extends TextRange {
  readonly term: number;
}

/** What a text contains of a query. */
export interface Reading {
  /** In words. */
  readonly length: number;
  /** How often each term occurs. */
  readonly counts: readonly number[];
  readonly matches: readonly Match[];
}

/** Creates a function that reads texts and remembers each word it has seen; use one per search. */
export function createReader(terms: readonly Term[]): (text: string) => Reading {
  const stems: { readonly stem: string; readonly prefix: boolean }[] = [];
  const numberOf = (wanted: string, prefix: boolean): number => {
    const known = stems.findIndex((one) => one.stem === wanted && one.prefix === prefix);
    return known >= 0 ? known : stems.push({ stem: wanted, prefix }) - 1;
  };
  const rows = terms.flatMap((term, index) =>
    term.alternatives.map((row) => ({
      term: index,
      stems: row.map((wanted, at) => numberOf(wanted, term.prefix && at === row.length - 1)),
    })),
  );
  const none: readonly number[] = [];
  const known = new Map<string, readonly number[]>();
  const numbersOf = (word: string): readonly number[] => {
    const stemmed = stem(word);
    const found = stems.flatMap((one, number) =>
      (one.prefix ? stemmed.startsWith(one.stem) : stemmed === one.stem) ? [number] : [],
    );
    return found.length === 0 ? none : found;
  };
  const wanted = wantedFor(stems.map((one) => one.stem));

  return (text) => {
    const spots: {
      readonly place: number;
      readonly stems: readonly number[];
      readonly from: number;
      readonly to: number;
    }[] = [];
    const visit = (word: string, from: number, to: number, place: number): void => {
      let found = known.get(word);
      if (found === undefined) known.set(word, (found = numbersOf(word)));
      if (found !== none) spots.push({ place, stems: found, from, to });
    };
    const length = eachWord(text, visit, wanted);

    const counts = terms.map(() => 0);
    const matches: Match[] = [];
    for (const row of rows) {
      let count = 0;
      for (const [index, first] of spots.entries()) {
        const isHere = row.stems.every((wanted, at) => {
          const spot = spots[index + at];
          return spot !== undefined && spot.place === first.place + at && spot.stems.includes(wanted);
        });
        if (!isHere) continue;
        count += 1;
        matches.push({ term: row.term, from: first.from, to: spots[index + row.stems.length - 1]?.to ?? first.to });
      }
      counts[row.term] = Math.max(counts[row.term] ?? 0, count);
    }
    return { length, counts, matches };
  };
}

/** A word shares every letter but the last with its stem, so two letters are enough to skip most words. */
function wantedFor(stems: readonly string[]): Wanted {
  const opens = new Uint8Array(128 * 128);
  const bothCases = (letter: string): readonly number[] =>
    [letter, letter.toUpperCase()].map((each) => each.charCodeAt(0) & 127);
  for (const wanted of stems) {
    for (const first of bothCases(wanted.charAt(0))) {
      if (wanted.length < 3) opens.fill(1, first * 128, first * 128 + 128);
      else for (const second of bothCases(wanted.charAt(1))) opens[first * 128 + second] = 1;
    }
  }
  const beginnings = stems.map((wanted) => wanted.slice(0, -1));
  const longest = beginnings.reduce((length, beginning) => Math.max(length, beginning.length), 0);
  const begins = (text: string, from: number): boolean => {
    const word = text.slice(from, from + longest).toLowerCase();
    return beginnings.some((beginning) => word.startsWith(beginning));
  };
  return { opens, begins };
}

/** A term's weight, from how many of the rows contain it. */
export const weightOf = (holding: number, rows: number): number =>
  Math.log(1 + (Math.max(rows, holding) - holding + 0.5) / (holding + 0.5));

const saturation = 1.2;
const lengthShare = 0.75;

/** The BM25 score of a text by itself. */
export const ownScore = (reading: Reading, weights: readonly number[], meanLength: number): number =>
  sumOf(frequenciesOf(reading, meanLength), weights);

/** How often each term occurs, reduced in texts longer than the mean. */
function frequenciesOf({ counts, length }: Reading, meanLength: number): readonly number[] {
  const excess = 1 - lengthShare + (lengthShare * length) / meanLength;
  return counts.map((count) => count / excess);
}

const sumOf = (frequencies: readonly number[], weights: readonly number[]): number =>
  frequencies.reduce(
    (sum, frequency, term) => sum + ((weights[term] ?? 0) * frequency * (saturation + 1)) / (frequency + saturation),
    0,
  );

/** The part of a text, at most this wide, whose terms weigh most. */
export function bestRange(reading: Reading, weights: readonly number[], width: number): TextRange {
  const matches = reading.matches.toSorted((one, other) => one.from - other.from).slice(0, matchesMax);
  let best = { from: 0, to: 0, worth: 0 };
  for (const [index, first] of matches.entries()) {
    const here = new Map<number, Match>();
    for (const match of matches.slice(index)) {
      if (match.to - first.from > width && match !== first) break;
      if (!here.has(match.term)) here.set(match.term, match);
    }
    const worth = [...here.keys()].reduce((sum, term) => sum + (weights[term] ?? 0), 0);
    if (worth > best.worth)
      best = { from: first.from, to: Math.max(...[...here.values()].map((match) => match.to)), worth };
  }
  return { from: best.from, to: best.to };
}

/** In a text that repeats a word thousands of times, looking at the first matches is enough. */
const matchesMax = 200;

interface Turn {
  readonly conversation: number;
  readonly seq: number;
  readonly text: string;
  readonly at: string;
  /** The message's `name` field, if the host sent one. */
  readonly name: string | null;
  readonly reading: Reading;
}

export const neighboursEachSide = 3;

/** Round numbers; `npm run bench:recall -- --tune` tries others. */
export const turnRules = {
  /** How much a word counts for a turn if it is in the question before that turn. */
  replyShare: 0.5,
  /** How much it counts if it is in a turn nearby. */
  neighbourShare: 0.25,
  /** For a turn whose speaker the query names. */
  speakerFactor: 1.3,
  /** For a turn that mentions a time, if the query asks for one. */
  timeFactor: 1.3,
  /** For a turn that ends with a question, because answers seldom do. */
  askingFactor: 0.9,
};
export type TurnRules = Readonly<typeof turnRules>;

/**
 * Scores each turn together with the turns around it. Their words count as its own in part: a turn with one word of the
 * query next to a turn with another word scores higher than a turn with the same word twice. Turns that are not given do
 * not count.
 */
export function scoreTurns(
  turns: readonly Turn[],
  query: Query,
  { weights, meanLength }: { readonly weights: readonly number[]; readonly meanLength: number },
  rules: TurnRules = turnRules,
): readonly number[] {
  const own = turns.map(({ reading }) => frequenciesOf(reading, meanLength));
  const places = new Map(turns.map((turn, at) => [placeOf(turn.conversation, turn.seq), at]));
  const dateScore = createDateScore(turns, query);
  const wantsTime = query.isQuestion && query.mentioned.has("when");
  return turns.map((turn, at) => {
    const near = (offset: number): number => places.get(placeOf(turn.conversation, turn.seq + offset)) ?? -1;
    const asked = asks(turns[near(-1)]?.text ?? "") ? own[near(-1)] : undefined;
    const nearby = weights.map(() => 0);
    for (let offset = -neighboursEachSide; offset <= neighboursEachSide; offset++) {
      const other = offset === 0 ? undefined : own[near(offset)];
      other?.forEach((frequency, term) => (nearby[term] = Math.max(nearby[term] ?? 0, frequency)));
    }
    const counted = nearby.map(
      (most, term) => (own[at]?.[term] ?? 0) + rules.replyShare * (asked?.[term] ?? 0) + rules.neighbourShare * most,
    );
    const score = sumOf(counted, weights);
    if (score === 0) return 0;
    const factor =
      (isNamed(turn, query) ? rules.speakerFactor : 1) *
      (wantsTime && timeMentioned.test(turn.text) ? rules.timeFactor : 1) *
      (endsAsking(turn.text) ? rules.askingFactor : 1);
    return (score + dateScore(turn)) * factor;
  });
}

/** A turn's place as one number, exact for any conversation and seq that an id can hold. */
export const placeOf = (conversation: number, seq: number): number => conversation * 2 ** 24 + seq;

const asks = (text: string): boolean => /[?？]/.test(text);
const endsAsking = (text: string): boolean => asks(text.trimEnd().slice(-1));

/** A date, a time of day, or a time relative to today. "May" needs a day beside it, since it is mostly a verb. */
const timeMentioned = new RegExp(
  String.raw`\b(?:(?:19|20)\d\d|\d\d?:\d\d|may \d+|\d+ may|yesterday|today|tonight|tomorrow|ago|recently|` +
    "january|february|march|april|june|july|august|september|october|november|december|" +
    "(?:mon|tues|wednes|thurs|fri|satur|sun)day|" +
    String.raw`(?:last|next|this) (?:night|morning|week|weekend|month|year|spring|summer|autumn|fall|winter))\b`,
  "i",
);

/** Whether the query names the speaker: the message's name, or `Name: …` at its start. */
function isNamed(turn: Turn, query: Query): boolean {
  const speaker = turn.name ?? /^\s*(\p{Lu}[\p{L}\p{M}'’. -]{0,40}):\s/u.exec(turn.text)?.[1];
  if (speaker === undefined) return false;
  let named = false;
  eachWord(speaker, (word) => {
    if (query.mentioned.has(word)) named = true;
  });
  return named;
}

const months = "january february march april may june july august september october november december".split(" ");

/** If a query names a month or a year, the date of each turn is scored like one of its fields. */
function createDateScore(turns: readonly Turn[], query: Query): (turn: Turn) => number {
  const wanted = [...query.mentioned].filter(
    (word) => /^(?:19|20)\d\d$/.test(word) || months.some((month) => isMonth(word, month)),
  );
  if (wanted.length === 0) return () => 0;
  const days = [...query.mentioned].filter((word) => /^(?:[1-9]|[12]\d|3[01])$/.test(word));
  const fields = [...wanted, ...days];
  const holds = (turn: Turn, word: string): boolean => {
    const [year = "", month = "", day = ""] = turn.at.slice(0, 10).split("-");
    return word === year || word === String(Number(day)) || isMonth(word, months[Number(month) - 1] ?? "");
  };
  const weights = fields.map((word) => weightOf(turns.filter((turn) => holds(turn, word)).length, turns.length));
  return (turn) => fields.reduce((sum, word, index) => sum + (holds(turn, word) ? (weights[index] ?? 0) : 0), 0);
}

const isMonth = (word: string, month: string): boolean => word.length >= 3 && month.startsWith(word);

/** How much more the newest counts than the oldest with sort `hybrid`. */
const recencyShare = 0.15;

/** A mild factor for each time, by its place between the oldest and the newest, so that no clock is needed. */
export function recencyBoosts(times: readonly string[]): readonly number[] {
  const moments = times.map((at) => Date.parse(at));
  const oldest = moments.reduce((one, other) => Math.min(one, other), Infinity);
  const span = moments.reduce((one, other) => Math.max(one, other), -Infinity) - oldest;
  return moments.map((moment) => (span > 0 ? 1 + (recencyShare * (moment - oldest)) / span : 1));
}
