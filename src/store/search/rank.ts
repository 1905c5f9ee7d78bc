/**
 * Scores how well a text answers a query: BM25, adapted to the turns of a conversation.
 * A reply also matches through its question, a turn through the turns around it, its speaker and its date. Long texts
 * count less, and so do bare tool calls; words that stand together as in the query count more.
 */

import type { Role } from "../../core/model/types.ts";
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
  /** Terms that directly follow another: `first * number of terms + second`. */
  readonly pairs: ReadonlySet<number>;
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
  /** In which text each stem was found last. */
  const seenIn = stems.map(() => 0);
  let texts = 0;
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
    texts += 1;
    const visit = (word: string, from: number, to: number, place: number): void => {
      let found = known.get(word);
      if (found === undefined) known.set(word, (found = numbersOf(word)));
      if (found === none) return;
      spots.push({ place, stems: found, from, to });
      for (const number of found) seenIn[number] = texts;
    };
    const length = eachWord(text, visit, wanted);

    const counts = terms.map(() => 0);
    const matches: Match[] = [];
    for (const row of rows) {
      // Most texts have few of the words, and hardly any has two of them written as one.
      if (seenIn[row.stems[0] ?? -1] !== texts) continue;
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
    return { length, counts, matches, pairs: pairsIn(matches, terms.length) };
  };
}

/** Blanks, a quote or a bracket may be between two words that stand together. */
const gapMax = 3;
const noPairs: ReadonlySet<number> = new Set();

function pairsIn(matches: readonly Match[], terms: number): ReadonlySet<number> {
  if (matches.length < 2) return noPairs;
  const pairs = new Set<number>();
  const sorted = matches.toSorted((one, other) => one.from - other.from).slice(0, matchesMax);
  for (const [at, { term, to }] of sorted.entries()) {
    for (const next of sorted.slice(at + 1, at + 4))
      if (next.from >= to && next.from - to <= gapMax) pairs.add(term * terms + next.term);
  }
  return pairs;
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
  // Words that begin with a longer one begin with the shorter one too: a word begins each compound of it.
  const beginnings = stems
    .map((wanted) => wanted.slice(0, -1))
    .toSorted((one, other) => one.length - other.length)
    .reduce<readonly string[]>(
      (shorter, one) => (shorter.some((each) => one.startsWith(each)) ? shorter : [...shorter, one]),
      [],
    );
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
  readonly role: Role | null;
  readonly text: string;
  readonly at: string;
  /** The message's `name` field, if the host sent one. */
  readonly name: string | null;
  readonly reading: Reading;
}

export const neighboursEachSide = 3;

/** Round numbers; `npm run bench:recall -- --tune` tries others. */
export const turnRules = {
  /** How much a word counts for a turn if it is in the user's question before that turn. */
  replyShare: 0.5,
  /** How much it counts if it is in a turn nearby; results of tools lend less and borrow nothing. */
  neighbourShare: 0.25,
  toolShare: 0.5,
  /** How much of the lesser weight two words add that stand together as in the query. */
  pairShare: 0.5,
  /** For a turn whose speaker the query names. */
  speakerFactor: 1.2,
  /** For what a user said, if the query asks for that. */
  userFactor: 1.25,
  /** For a turn that mentions a time, if the query asks for one. */
  timeFactor: 1.3,
  /** For a turn that is nothing but calls of tools: what they returned, or what was said about it, tells more. */
  callFactor: 0.6,
  /** Longer texts count less, and lend and borrow less: by (words / lengthRef) to this power. */
  lengthRef: 100,
  lengthPower: 0.4,
  /** A turn with fewer words and none of the query's is no hit, whatever is said around it. */
  lonelyWords: 8,
};
export type TurnRules = Readonly<typeof turnRules>;

export interface Scale {
  /** By term of the search; 0 for a term that is not of this query. */
  readonly weights: readonly number[];
  /** Where the terms of this query are among those of the search, in its order. */
  readonly places: readonly number[];
  readonly meanLength: number;
}

/**
 * Scores each turn together with the turns around it. Their words count as its own in part: a turn with one word of the
 * query next to a turn with another word scores higher than a turn with the same word twice. Turns that are not given do
 * not count.
 */
export function scoreTurns(
  turns: readonly Turn[],
  query: Query,
  scale: Scale,
  rules: TurnRules = turnRules,
): readonly number[] {
  const { weights, meanLength } = scale;
  const own = turns.map(({ reading }) => frequenciesOf(reading, meanLength));
  const places = new Map(turns.map((turn, at) => [placeOf(turn.conversation, turn.seq), at]));
  const brevities = turns.map(({ reading }) => Math.min(1, (rules.lengthRef / reading.length) ** rules.lengthPower));
  const lending = turns.map(({ role }, at) => (brevities[at] ?? 0) * (role === "tool" ? rules.toolShare : 1));
  const dateScore = createDateScore(turns, query);
  const pairScore = createPairScore(scale);
  const wantsTime = query.isQuestion && query.mentioned.has("when");
  return turns.map((turn, at) => {
    const { reading, role, text } = turn;
    const isTool = role === "tool";
    const hasOwn = weights.some((weight, term) => weight > 0 && (reading.counts[term] ?? 0) > 0);
    if (!hasOwn && (isTool || reading.length < rules.lonelyWords)) return 0;
    const near = (offset: number): number => places.get(placeOf(turn.conversation, turn.seq + offset)) ?? -1;
    const before = turns[near(-1)];
    const asked = !isTool && before?.role === "user" && asks(before.text) ? own[near(-1)] : undefined;
    const nearby = isTool ? [] : highestNearby(near, own, lending, weights.length);
    const borrowed = rules.neighbourShare * (brevities[at] ?? 0);
    const counted = weights.map(
      (_, term) => (own[at]?.[term] ?? 0) + rules.replyShare * (asked?.[term] ?? 0) + borrowed * (nearby[term] ?? 0),
    );
    const score = sumOf(counted, weights);
    if (score === 0) return 0;
    const factor =
      (brevities[at] ?? 0) *
      (isNamed(turn, query) ? rules.speakerFactor : 1) *
      (query.asksUser && role === "user" ? rules.userFactor : 1) *
      (wantsTime && timeMentioned.test(text) ? rules.timeFactor : 1) *
      (role === "assistant" && bareCall.test(text) ? rules.callFactor : 1);
    return (score + rules.pairShare * pairScore(reading) + dateScore(turn)) * factor;
  });
}

/** How often each term occurs in the turn nearby that lends most of it. */
function highestNearby(
  near: (offset: number) => number,
  own: readonly (readonly number[])[],
  lending: readonly number[],
  terms: number,
): readonly number[] {
  const nearby = Array.from({ length: terms }, () => 0);
  for (let offset = -neighboursEachSide; offset <= neighboursEachSide; offset++) {
    const at = offset === 0 ? -1 : near(offset);
    own[at]?.forEach((frequency, term) => {
      nearby[term] = Math.max(nearby[term] ?? 0, frequency * (lending[at] ?? 0));
    });
  }
  return nearby;
}

/** What a text gains by having words together that are together in the query. */
function createPairScore({ weights, places }: Scale): (reading: Reading) => number {
  const wanted = places.flatMap((first, at) => {
    const second = places[at + 1];
    if (second === undefined || first === second) return [];
    return [{ pair: first * weights.length + second, worth: Math.min(weights[first] ?? 0, weights[second] ?? 0) }];
  });
  return ({ pairs }) => wanted.reduce((sum, { pair, worth }) => sum + (pairs.has(pair) ? worth : 0), 0);
}

/** The text of a call is its tool's name and its arguments as JSON. */
const bareCall = /^[\w.:/-]{1,64} \{/;

/**
 * One score from those of several wordings of a question, each a list by turn. A turn that one wording finds for sure
 * beats one that all of them find a little; a wording with more weight to give counts a little more, not all of it.
 */
export function fuseWordings(
  scores: readonly (readonly number[])[],
  totals: readonly number[],
  power = fusionPower,
): readonly number[] {
  const [first = []] = scores;
  if (scores.length === 1) return first;
  return first.map((_, at) => {
    const sum = scores.reduce(
      (total, list, wording) => total + ((list[at] ?? 0) / Math.sqrt(totals[wording] || 1)) ** power,
      0,
    );
    return sum ** (1 / power);
  });
}

const fusionPower = 1.5;

/** A turn's place as one number, exact for any conversation and seq that an id can hold. */
export const placeOf = (conversation: number, seq: number): number => conversation * 2 ** 24 + seq;

const asks = (text: string): boolean => /[?？]/.test(text);

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
const recencyShare = 0.05;

/** A mild factor for each time, by its place between the oldest and the newest, so that no clock is needed. */
export function recencyBoosts(times: readonly string[]): readonly number[] {
  const moments = times.map((at) => Date.parse(at));
  const oldest = moments.reduce((one, other) => Math.min(one, other), Infinity);
  const span = moments.reduce((one, other) => Math.max(one, other), -Infinity) - oldest;
  return moments.map((moment) => (span > 0 ? 1 + (recencyShare * (moment - oldest)) / span : 1));
}
