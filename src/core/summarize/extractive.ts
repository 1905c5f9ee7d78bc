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

  const split = passages.map(statementsOf);
  const statements = scoreStatements(split.flatMap((each) => each.statements));
  const grain = target < timedTokensMin ? Infinity : grainOf(statements);

  const picks: ScoredStatement[] = [];
  const floor = leastShare * statements.reduce((most, statement) => Math.max(most, densityOf(statement)), 0);
  for (let round = 0; round < fittingRounds; round++) {
    choose(statements, picks, room - estimateTokens(render(picks, grain)), floor);
    dropExcess(picks, () => estimateTokens(render(picks, grain)) - room);
  }
  const quoted = picks.length > 0 ? render(picks, grain) : cutToFit(statements, room);
  const below = split.flatMap((each) => each.topics);
  return [quoted, footerOf(statements, picks, below, footerTokens)].filter((line) => line !== "").join("\n");
}

/** For the line break before the footer, and because estimates of parts add up to less than that of the whole. */
const jointTokens = 3;
/** The length of labels is guessed while choosing; a second round uses the room that remains. */
const fittingRounds = 2;

function dropExcess(picks: ScoredStatement[], excess: () => number): void {
  for (let over = excess(); over > 0 && picks.length > 0; over = excess()) {
    for (let freed = 0; freed < over; freed += (picks.pop()?.tokens ?? Infinity) + labelTokens);
  }
}

/** Tokens of a label, on average. */
const labelTokens = 6;
/** Discount for each further statement of one turn, so that no turn takes all the room. */
const crowdDiscount = 0.3;
/** How length counts against a statement: to this power, after adding this many tokens. */
const costPower = 0.9;
const costOffset = 7;
/** Share of a question's value that counts for its answer. */
const askedShare = 0.7;
/** The threshold falls by this factor per round, down to this share of the best statement. */
const thresholdDecay = 0.88;
const leastShare = 0.05;
/** Nothing fits into less. */
const roomMin = 4;

/** A statement's value per length while nothing has been chosen. */
const densityOf = (statement: ScoredStatement): number =>
  valueOf(statement) / (statement.tokens + labelTokens + costOffset) ** costPower;

const valueOf = (statement: ScoredStatement): number => (statement.total + statement.bonus) * statement.factor;

/** Adds statements to `picks` by value per length until the room is full, the least informative last. */
function choose(statements: readonly ScoredStatement[], picks: ScoredStatement[], room: number, floor: number): void {
  const taken = new Set(picks);
  const covered = new Set(picks.flatMap((pick) => pick.terms));
  const crowd = new Map<number, number>();
  for (const { turn } of picks) crowd.set(turn, (crowd.get(turn) ?? 0) + 1);
  const freshIn = (statement: ScoredStatement): number => {
    let fresh = 0;
    for (const term of statement.terms) if (!covered.has(term)) fresh += term.weight;
    return fresh;
  };
  const costOf = (statement: ScoredStatement): number =>
    statement.tokens + (crowd.has(statement.turn) ? 1 : labelTokens);
  const question = (statement: ScoredStatement): ScoredStatement | null =>
    statement.answers === null || taken.has(statement.answers) ? null : statement.answers;
  const gainOf = (statement: ScoredStatement): number => {
    const asked = question(statement);
    const fresh = freshIn(statement) + (asked === null ? 0 : freshIn(asked) * askedShare);
    const bonus = statement.bonus * Math.min(1, fresh / (statement.total || 1));
    const cost = costOf(statement) + (asked === null ? 0 : costOf(asked));
    return (
      ((fresh + bonus) * statement.factor) /
      (1 + crowdDiscount * (crowd.get(statement.turn) ?? 0)) /
      (cost + costOffset) ** costPower
    );
  };
  const take = (statement: ScoredStatement): void => {
    taken.add(statement);
    picks.push(statement);
    for (const term of statement.terms) covered.add(term);
    crowd.set(statement.turn, (crowd.get(statement.turn) ?? 0) + 1);
  };

  /** Adjacent pieces of a cut sentence would quote it whole after all. */
  const wouldRejoin = ({ place, continues }: ScoredStatement): boolean => {
    const [before, after] = [statements[place - 1], statements[place + 1]];
    return (continues && before !== undefined && taken.has(before)) || (after?.continues === true && taken.has(after));
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
      bounds[statement.place] = gain;
      const asked = question(statement);
      const cost = costOf(statement) + (asked === null ? 0 : costOf(asked));
      if (gain <= threshold || cost > left || wouldRejoin(statement) || (asked !== null && wouldRejoin(asked)))
        continue;
      left -= cost;
      if (asked !== null) take(asked);
      take(statement);
    }
  }
}

/** The beginning of the most informative statement, if not even one fits whole. */
function cutToFit(statements: readonly ScoredStatement[], room: number): string {
  let best = statements[0];
  for (const statement of statements)
    if (valueOf(statement) > (best === undefined ? 0 : valueOf(best))) best = statement;
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
