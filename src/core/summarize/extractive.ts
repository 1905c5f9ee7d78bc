/**
 * Summarises without a model: quotes the most informative statements in their original order.
 * It is the last resort of every summary, so it always succeeds, always fits, and adds nothing that was not said. A
 * statement's value is the weight of its terms not covered yet, plus a bonus for cue words, times a factor for speaker,
 * form and position; statements are taken by value per length until the target is reached.
 */

import { expandFooter } from "../prompts/summary.ts";
import { cutAt, type Passage, type Stamp, statementsOf } from "./extractive-split.ts";
import { estimateTokens } from "../base/tokens.ts";
import { scoreStatements, type ScoredStatement, type Term } from "./extractive-score.ts";

export type { Passage } from "./extractive-split.ts";

/** A shorter text is not worth shortening, and the footer alone may make the result longer. */
const sourceTokensMin = 40;

/**
 * The most informative statements of the passages, in their order; with the footer, which names what was left out, at
 * most `targetTokens` (at least 32). Deterministic, and no longer than the passages unless these are a few words.
 */
export function extract(passages: readonly Passage[], options: { readonly targetTokens: number }): string {
  const sourceTokens = estimateTokens(passages.map((passage) => passage.text).join("\n"));
  const target = Math.min(options.targetTokens, Math.max(sourceTokens, sourceTokensMin));
  const footerTokens = Math.min(footerTokensMax, Math.max(footerTokensMin, Math.floor(target / 12)));
  const room = target - footerTokens - jointTokens;

  const sentenceTokensMax = Math.max(sentenceTokensMin, Math.floor(target / 2));
  const split = passages.map((passage, place) => statementsOf(passage, place, sentenceTokensMax));
  const said = split.flatMap((each) => each.statements);
  const statements = scoreStatements(said, room);
  const grain = target < timedTokensMin ? Infinity : grainOf(statements);

  const units: Unit[] = [];
  const floor = leastShare * statements.reduce((most, statement) => Math.max(most, densityOf(statement)), 0);
  for (let round = 0; round < fittingRounds; round++) {
    choose(statements, units, room - estimateTokens(render(units.flat(), grain)), floor);
    dropExcess(units, () => estimateTokens(render(units.flat(), grain)) - room);
  }
  const picks = units.flat();
  const quoted = picks.length > 0 ? render(picks, grain) : cutToFit(statements, room);
  const below = split.flatMap((each) => each.topics);
  return [quoted, footerOf(statements, picks, below, footerTokens)].filter((line) => line !== "").join("\n");
}

/** A sentence is quoted whole or not at all, unless it is longer than this and half of the summary. */
const sentenceTokensMin = 64;
/** For the line break before the footer, and because estimates of parts add up to less than that of the whole. */
const jointTokens = 3;
/** The length of labels is guessed while choosing; a second round uses the room that remains. */
const fittingRounds = 2;

function dropExcess(units: Unit[], excess: () => number): void {
  for (let over = excess(); over > 0 && units.length > 0; over = excess()) {
    for (let freed = 0; freed < over && units.length > 0;)
      for (const { tokens } of units.pop() ?? []) freed += tokens + labelTokens;
  }
}

/** Statements that are quoted together. */
type Unit = readonly ScoredStatement[];

/** Tokens of a label, on average. */
const labelTokens = 6;
/** A statement counts half if this much of its turn is quoted already, so that no turn takes all the room. */
const crowdTokens = 65;
const crowdTokensOfOutput = 20;
/** How length counts against a statement: to this power, after adding this many tokens. */
const costPower = 0.9;
const costOffset = 7;
/** Share of the value of what a statement needs that counts for it. */
const neededShare = 0.7;
/** The threshold falls by this factor per round, down to this share of the best statement. */
const thresholdDecay = 0.88;
const leastShare = 0.02;
/** Nothing fits into less. */
const roomMin = 4;

/** A statement's value per length while nothing has been chosen. */
const densityOf = (statement: ScoredStatement): number =>
  valueOf(statement) / (statement.tokens + labelTokens + costOffset) ** costPower;

const valueOf = (statement: ScoredStatement): number => (statement.total + statement.bonus) * statement.factor;

/** Adds statements to `units` by value per length until the room is full, the least informative last. */
function choose(statements: readonly ScoredStatement[], units: Unit[], room: number, floor: number): void {
  const taken = new Set<ScoredStatement>();
  const covered = new Set<Term>();
  const crowd = new Map<number, number>();
  const take = (statement: ScoredStatement): void => {
    taken.add(statement);
    for (const term of statement.terms) covered.add(term);
    crowd.set(statement.turn, (crowd.get(statement.turn) ?? 0) + statement.tokens);
  };
  for (const statement of units.flat()) take(statement);
  const freshIn = (statement: ScoredStatement): number =>
    statement.terms.reduce((sum, term) => sum + (covered.has(term) ? 0 : term.weight), 0);
  const missingFor = ({ needs }: ScoredStatement): Unit => needs.filter((each) => !taken.has(each));
  const costOf = (statement: ScoredStatement): number => {
    let cost = statement.tokens + (crowd.has(statement.turn) ? 1 : labelTokens);
    for (const { tokens, turn } of missingFor(statement)) cost += tokens + (turn === statement.turn ? 1 : labelTokens);
    return cost;
  };
  const gainOf = (statement: ScoredStatement): number => {
    const own = freshIn(statement);
    const needed = missingFor(statement).reduce((sum, each) => sum + freshIn(each), 0);
    const fresh = own + needed * neededShare;
    const bonus = statement.bonus * Math.min(1, fresh / (statement.total || 1));
    return (
      ((fresh + bonus) * statement.factor) /
      (1 + (crowd.get(statement.turn) ?? 0) / (statement.form === "prose" ? crowdTokens : crowdTokensOfOutput)) /
      (costOf(statement) + costOffset) ** costPower
    );
  };

  let left = room;
  // A gain only falls as others are taken, so the last known one is an upper bound and few are recomputed.
  const bounds = statements.map(gainOf);
  let threshold = bounds.reduce((most, bound) => Math.max(most, bound), 0);
  while (left > roomMin && threshold > floor) {
    threshold *= thresholdDecay;
    for (const statement of statements) {
      if ((bounds[statement.place] ?? 0) <= threshold || taken.has(statement)) continue;
      const gain = gainOf(statement);
      const cost = costOf(statement);
      bounds[statement.place] = gain;
      if (gain <= threshold || cost > left) continue;
      left -= cost;
      const unit = [...missingFor(statement), statement];
      unit.forEach(take);
      units.push(unit);
    }
  }
}

/** The beginning of the most informative statement, if not even one fits whole. */
function cutToFit(statements: readonly ScoredStatement[], room: number): string {
  const [best] = statements.toSorted((one, other) => valueOf(other) - valueOf(one));
  let text = best?.text ?? "";
  while (text !== "" && estimateTokens(` ${text}`) > room) {
    const cut = text.slice(0, cutAt(text, Math.floor(text.length / 2)));
    text = text.length < 4 ? "" : `${cut.replace(/…$/, "")}…`;
  }
  return text === "" ? "" : ` ${text}`;
}

/** Shorter results have no room for times. */
const timedTokensMin = 120;
/** A time is repeated after 1/24 of the whole span, but at least ten minutes; from six hours on only the day is given. */
const grainsOfSpan = 24;
const grainMinutesMin = 10;
const dayGrainMinutes = 360;

const minutesOf = ({ day, clock }: Stamp): number => Date.parse(`${day}T${clock || "00:00"}Z`) / 60_000;

/** After how many minutes a new time is written. */
function grainOf(statements: readonly ScoredStatement[]): number {
  const dated = statements.filter(({ stamp }) => stamp.day !== "");
  const [first, last] = [dated[0], dated.at(-1)];
  const span = first === undefined || last === undefined ? 0 : minutesOf(last.stamp) - minutesOf(first.stamp);
  return Math.max(grainMinutesMin, span / grainsOfSpan);
}

/** Statements in order, with labels that give only what has changed: day, time, speaker. */
function render(picks: readonly ScoredStatement[], grain: number): string {
  const lines: string[] = [];
  let written: Stamp = { day: "", clock: "", until: "", zone: "", who: "" };
  let last: ScoredStatement | null = null;
  for (const pick of [...picks].sort((one, other) => one.place - other.place)) {
    const { stamp, text } = pick;
    const timed = grain < Infinity && stamp.day !== "" && isNewTime(stamp, written, grain);
    const label = labelOf(stamp, written, timed ? grain : null);
    const line = lines.length - 1;
    if (label !== "") {
      lines.push(`${label} ${text}`);
      written = timed ? stamp : { ...written, who: stamp.who };
    } else if (last !== null && last.turn === pick.turn && sentenceEnd.test(last.text)) lines[line] += ` ${text}`;
    // The leading space distinguishes it from a label even if the text begins like one.
    else lines.push(` ${text}`);
    last = pick;
  }
  return lines.join("\n");
}

const sentenceEnd = /[.!?…。！？।؟۔:][”"'’」』)\]]*$/u;

const isNewTime = (stamp: Stamp, written: Stamp, grain: number): boolean =>
  stamp.day !== written.day || (grain < dayGrainMinutes && Math.abs(minutesOf(stamp) - minutesOf(written)) >= grain);

function labelOf(stamp: Stamp, written: Stamp, grain: number | null): string {
  const who = stamp.who === "" || (grain === null && stamp.who === written.who) ? "" : `[${stamp.who}]`;
  if (grain === null) return who;
  const day = stamp.day === written.day ? "" : stamp.day;
  const clock = grain < dayGrainMinutes || stamp.until !== "" ? stamp.clock + stamp.until : "";
  const zone = stamp.zone === written.zone ? "" : stamp.zone;
  const when = `[${[day, clock, zone].filter((part) => part !== "").join(" ")}]`;
  return who === "" ? when : `${when} ${who}`;
}

const footerTokensMin = 14;
const footerTokensMax = 44;
const topicsMax = 14;

/** The footer names the topics that the statements left out mention most. */
function footerOf(
  statements: readonly ScoredStatement[],
  picks: readonly ScoredStatement[],
  below: readonly string[],
  tokensMax: number,
): string {
  const covered = new Set(picks.flatMap((pick) => pick.terms));
  const taken = new Set(picks);
  const interest = new Map<string, number>();
  const note = (topic: string, weight: number): unknown => interest.set(topic, (interest.get(topic) ?? 0) + weight);
  for (const statement of statements) {
    if (taken.has(statement) || statement.form === "code" || statement.form === "output") continue;
    const fresh = statement.terms.filter((term) => !covered.has(term));
    for (const term of fresh) if (isTopic(term)) note(term.shown, term.weight * statement.factor);
    const pairs = new Set(fresh.map((term) => term.shown));
    if (fresh.some((term) => term.kind === "pair"))
      for (const [run] of statement.text.matchAll(unspacedTopic))
        if (pairs.has(run.slice(0, 2))) note(run, statement.factor);
  }
  const ranked = [...interest].sort(([, one], [, other]) => other - one).map(([topic]) => topic);

  let footer = `${expandFooter} exact wording`;
  const topics: string[] = [];
  for (const topic of [...ranked.slice(0, topicsMax), ...below]) {
    const longer = `${expandFooter} ${[...topics, topic].join(", ")}`;
    if (topics.length >= topicsMax || topics.includes(topic) || estimateTokens(longer) > tokensMax) continue;
    topics.push(topic);
    footer = longer;
  }
  return footer;
}

const topicCharsMin = 3;
const topicCharsMax = 40;
const isTopic = ({ kind, shown, places }: Term): boolean =>
  shown.length >= topicCharsMin &&
  shown.length <= topicCharsMax &&
  (kind === "name" || kind === "code" || (kind === "word" && places.length > 1));

/** Probable words in scripts without spaces; there is no dictionary. */
const unspacedTopic =
  /[\p{sc=Katakana}ー]{3,12}|(?:(?![的了是在和与我你他她们这那个有不也就都要会能把被给对到从为很说没还])\p{sc=Han}){2,4}/gu;
