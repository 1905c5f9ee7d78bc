/**
 * A summary without a model: the most telling statements of a text, quoted in their order. It is what the product does
 * offline and the last resort of every summary, so it always succeeds, always fits, and claims nothing that was not
 * said.
 *
 * A statement is a sentence, a list item, a line of a log or of code, or a clause of a sentence too long to quote. Its
 * value is the weight of the terms that nothing chosen so far has told (names, codes and numbers above words, rare
 * above frequent), plus what its words say it is for (cues.ts), times who said it, how and where. Statements are taken
 * by value for their length until the target is reached. What a later statement repeats or corrects counts little, and
 * a short answer brings along the question that gives it meaning.
 */

import { expandFooter } from "../prompts/summary.ts";
import { cutAt, type Passage, type Stamp, statementsOf } from "./extractive-split.ts";
import { estimateTokens } from "../base/tokens.ts";
import { type Term, weigh, type Weighed } from "./extractive-score.ts";

export type { Passage } from "./extractive-split.ts";

/** Below this a text is not worth shortening, and the last line alone may make the result longer than it. */
const sourceTokensMin = 40;

/**
 * The most telling statements of the passages, in their order, within `targetTokens` (at least 32) for the whole
 * result. The last line names what was left out. Deterministic; no longer than the texts of the passages, unless these
 * are a few words.
 */
export function extract(passages: readonly Passage[], options: { readonly targetTokens: number }): string {
  const sourceTokens = estimateTokens(passages.map((passage) => passage.text).join("\n"));
  const target = Math.min(options.targetTokens, Math.max(sourceTokens, sourceTokensMin));
  const footerTokens = Math.min(footerTokensMax, Math.max(footerTokensMin, Math.floor(target / 12)));
  const room = target - footerTokens - jointTokens;

  const split = passages.map(statementsOf);
  const statements = weigh(split.flatMap((each) => each.statements));
  const grain = target < timedTokensMin ? Infinity : grainOf(statements);

  const picks: Weighed[] = [];
  const floor = leastShare * statements.reduce((most, statement) => Math.max(most, densityOf(statement)), 0);
  for (let round = 0; round < fittingRounds; round++) {
    choose(statements, picks, room - estimateTokens(render(picks, grain)), floor);
    giveBack(picks, () => estimateTokens(render(picks, grain)) - room);
  }
  const told = picks.length > 0 ? render(picks, grain) : cutToFit(statements, room);
  const below = split.flatMap((each) => each.topics);
  return [told, footerOf(statements, picks, below, footerTokens)].filter((line) => line !== "").join("\n");
}

/** The line break before the last line, and what estimates of parts are short of the estimate of the whole. */
const jointTokens = 3;
/** What labels take is only guessed while choosing: what was too much is given back, what is left is used. */
const fittingRounds = 2;

function giveBack(picks: Weighed[], excess: () => number): void {
  for (let over = excess(); over > 0 && picks.length > 0; over = excess()) {
    for (let given = 0; given < over; given += (picks.pop()?.tokens ?? Infinity) + labelTokens);
  }
}

// ── Choosing ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a label takes, on average. */
const labelTokens = 6;
/** Each further statement of one passage counts less by this much, so that no passage takes the whole room. */
const crowding = 0.3;
/** How much length counts against a statement: by this power, and as if it were longer by so many tokens. */
const costPower = 0.9;
const costOffset = 7;
/** How much of a question counts for its answer. */
const askedShare = 0.7;
/** The threshold falls by this factor from round to round, to this share of the best: less is not worth its room. */
const fall = 0.88;
const leastShare = 0.05;
/** With less than this nothing is left to choose. */
const roomMin = 4;

/** What a statement tells for its length, if nothing else has been told and all of it is new. */
const densityOf = (statement: Weighed): number =>
  valueOf(statement) / (statement.tokens + labelTokens + costOffset) ** costPower;

const valueOf = (statement: Weighed): number => (statement.total + statement.bonus) * statement.factor;

/** Takes statements by value for their length until the room is full. `picks` grows, the least telling last. */
function choose(statements: readonly Weighed[], picks: Weighed[], room: number, floor: number): void {
  const taken = new Set(picks);
  const told = new Set(picks.flatMap((pick) => pick.terms));
  const crowd = new Map<number, number>();
  for (const { turn } of picks) crowd.set(turn, (crowd.get(turn) ?? 0) + 1);
  const freshIn = (statement: Weighed): number => {
    let fresh = 0;
    for (const term of statement.terms) if (!told.has(term)) fresh += term.weight;
    return fresh;
  };
  const costOf = (statement: Weighed): number => statement.tokens + (crowd.has(statement.turn) ? 1 : labelTokens);
  const question = (statement: Weighed): Weighed | null =>
    statement.answers === null || taken.has(statement.answers) ? null : statement.answers;
  const gainOf = (statement: Weighed): number => {
    const asked = question(statement);
    const fresh = freshIn(statement) + (asked === null ? 0 : freshIn(asked) * askedShare);
    const bonus = statement.bonus * Math.min(1, fresh / (statement.total || 1));
    const cost = costOf(statement) + (asked === null ? 0 : costOf(asked));
    return (
      ((fresh + bonus) * statement.factor) /
      (1 + crowding * (crowd.get(statement.turn) ?? 0)) /
      (cost + costOffset) ** costPower
    );
  };
  const take = (statement: Weighed): void => {
    taken.add(statement);
    picks.push(statement);
    for (const term of statement.terms) told.add(term);
    crowd.set(statement.turn, (crowd.get(statement.turn) ?? 0) + 1);
  };

  /** Two pieces in a row of one torn sentence would make it whole again. */
  const wouldMend = ({ place, continues }: Weighed): boolean => {
    const [before, after] = [statements[place - 1], statements[place + 1]];
    return (continues && before !== undefined && taken.has(before)) || (after?.continues === true && taken.has(after));
  };

  let left = room;
  // A gain only falls as others are taken, so the last one known is a bound, and few need to be looked at again.
  const bounds = statements.map(gainOf);
  let threshold = bounds.reduce((most, bound) => Math.max(most, bound), 0);
  while (left > roomMin && threshold > floor) {
    threshold *= fall;
    for (const statement of statements) {
      if ((bounds[statement.place] ?? 0) <= threshold || taken.has(statement)) continue;
      const gain = gainOf(statement);
      bounds[statement.place] = gain;
      const asked = question(statement);
      const cost = costOf(statement) + (asked === null ? 0 : costOf(asked));
      if (gain <= threshold || cost > left || wouldMend(statement) || (asked !== null && wouldMend(asked))) continue;
      left -= cost;
      if (asked !== null) take(asked);
      take(statement);
    }
  }
}

/** The beginning of the most telling statement, where not even one fits whole. */
function cutToFit(statements: readonly Weighed[], room: number): string {
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

// ── Telling ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Results shorter than this have no room for times. */
const timedTokensMin = 120;
/** Times are told as finely as the whole span asks for: to about this part of it; above so many minutes days only. */
const grainsOfSpan = 24;
const grainMinutesMin = 10;
const dayGrainMinutes = 360;

const minutesOf = ({ day, clock }: Stamp): number => Date.parse(`${day}T${clock || "00:00"}Z`) / 60_000;

/** After how many minutes a time is written again. */
function grainOf(statements: readonly Weighed[]): number {
  const dated = statements.filter(({ stamp }) => stamp.day !== "");
  const [first, last] = [dated[0], dated.at(-1)];
  const span = first === undefined || last === undefined ? 0 : minutesOf(last.stamp) - minutesOf(first.stamp);
  return Math.max(grainMinutesMin, span / grainsOfSpan);
}

/** Statements in their order, under labels that say only what has changed since the last: day, time, speaker. */
function render(picks: readonly Weighed[], grain: number): string {
  const lines: string[] = [];
  let written: Stamp = { day: "", clock: "", until: "", zone: "", who: "" };
  let last: Weighed | null = null;
  for (const pick of [...picks].sort((one, other) => one.place - other.place)) {
    const { stamp, text } = pick;
    const timed = grain < Infinity && stamp.day !== "" && isNewTime(stamp, written, grain);
    const label = labelOf(stamp, written, timed ? grain : null);
    const line = lines.length - 1;
    if (label !== "") {
      lines.push(`${label} ${text}`);
      written = timed ? stamp : { ...written, who: stamp.who };
    } else if (last !== null && last.turn === pick.turn && sentenceEnd.test(last.text)) lines[line] += ` ${text}`;
    // The blank in front tells it from a label, also when the text begins like one.
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

/** The line that tells a reader what a look at the sources would bring: what the rest speaks of most. */
function footerOf(
  statements: readonly Weighed[],
  picks: readonly Weighed[],
  below: readonly string[],
  tokensMax: number,
): string {
  const told = new Set(picks.flatMap((pick) => pick.terms));
  const taken = new Set(picks);
  const interest = new Map<string, number>();
  const note = (topic: string, weight: number): unknown => interest.set(topic, (interest.get(topic) ?? 0) + weight);
  for (const statement of statements) {
    if (taken.has(statement) || statement.form === "code" || statement.form === "output") continue;
    const fresh = statement.terms.filter((term) => !told.has(term));
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

/** Words of scripts without blanks, as far as they can be told without a dictionary. */
const unspacedTopic =
  /[\p{sc=Katakana}ー]{3,12}|(?:(?![的了是在和与我你他她们这那个有不也就都要会能把被给对到从为很说没还])\p{sc=Han}){2,4}/gu;
