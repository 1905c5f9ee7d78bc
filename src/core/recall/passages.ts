/**
 * Plans what a search shows within a number of tokens: of each hit the part that matches, and beside it the call of a
 * result, the result of a call, the question before an answer. Many hits are shown in short, few at length.
 */

import { cutPassage, showParts, withoutBlanks } from "../base/cut-passage.ts";
import { quote, type TextRange } from "../base/excerpt.ts";
import { estimateTokens } from "../base/tokens.ts";
import type { Message, MessageId } from "../model/types.ts";
import { saysLittle } from "./expand.ts";

/** A message as the planner needs it. */
export interface Turn extends Pick<Message, "id" | "conversation" | "seq" | "role" | "at" | "text"> {
  /** Its tool calls, and where each is in the text. */
  readonly calls: readonly { readonly id: string; readonly range: TextRange }[];
  /** Ids of the calls that it answers. */
  readonly answers: readonly string[];
  /** Whether it is the output of a failed call. */
  readonly isFailed: boolean;
}

export interface PassageHit {
  readonly turn: Turn;
  /** The best match in its text; empty if only its neighbours match. */
  readonly focus: TextRange;
}

export interface Passage extends Pick<Message, "id" | "conversation" | "seq" | "role" | "at"> {
  /** Parts of the stored text, with `…` where something was left out. */
  readonly text: string;
  /** Whether it did not match itself, but helps to understand what did. */
  readonly context: boolean;
  readonly isWhole: boolean;
}

export interface PassageBudget {
  readonly tokens: number;
  /** What the line above a passage takes. */
  readonly headingTokens: number;
}

/** Sizes in tokens; `npm run bench:recall` measures what they show. */
export const passageRules = {
  /** The best hits are shown longer, and together with what belongs to them. */
  best: { hits: 2, tokens: 70 },
  other: { tokens: 36 },
  context: { tokens: 26 },
  /** Less than this is not worth a heading. */
  least: 16,
};

/** How far from a hit its call, result, question or answer is looked for. */
export const lookBack = 12;
export const lookAhead = 6;

/** Groups of messages that belong together, the group of the best hit first; in each, in order. No message twice. */
export function planPassages(
  hits: readonly PassageHit[],
  around: readonly Turn[],
  budget: PassageBudget,
): readonly (readonly Passage[])[] {
  const board = createBoard(budget);
  const turns = new Map([...around, ...hits.map(({ turn }) => turn)].map((turn) => [placeOf(turn), turn]));
  const near: Near = ({ conversation, seq }, offset) => turns.get(placeOf({ conversation, seq: seq + offset }));
  const said = hits.filter(({ turn }) => turn.text.trim() !== "");
  // Padding such as "ok" is ranked because of what is around it; it is no answer by itself.
  const telling = said.filter(({ turn, focus }) => !isEmpty(focus) || !saysLittle(turn.text));
  const told = telling.length > 0 ? telling : said;
  const shown: PassageHit[] = [];
  for (const [rank, hit] of told.entries()) {
    const isBest = rank < passageRules.best.hits;
    if (
      !board.show(viewOf(hit), {
        rank,
        isContext: false,
        tokens: (isBest ? passageRules.best : passageRules.other).tokens,
      })
    )
      break;
    shown.push(hit);
    if (isBest) showBeside(hit, rank);
  }
  // What is left goes to what belongs to the other hits, then to longer passages, then to other neighbours.
  for (const [rank, hit] of shown.entries()) showBeside(hit, rank);
  for (let tokens = 2 * passageRules.best.tokens; tokens <= 2 * budget.tokens && board.hasRoom(); tokens *= 2)
    for (const [rank, hit] of shown.entries()) board.show(viewOf(hit), { rank, isContext: false, tokens });
  shown.forEach(showAround);
  return board.groups();

  function showAround(hit: PassageHit, rank: number): void {
    for (const other of [near(hit.turn, -1), near(hit.turn, 1)])
      if (other !== undefined && other.answers.length === 0 && !saysLittle(other.text))
        board.show(headOf(other), { rank, isContext: true, tokens: passageRules.context.tokens });
  }

  function showBeside(hit: PassageHit, rank: number): void {
    for (const view of besideOf(hit, near))
      board.show(view, { rank, isContext: true, tokens: passageRules.context.tokens });
  }
}

const isEmpty = ({ from, to }: TextRange): boolean => from >= to;
const placeOf = ({ conversation, seq }: Pick<Turn, "conversation" | "seq">): string => `${conversation}-${seq}`;

// ── What is shown of a message ───────────────────────────────────────────────────────────────────────────────────────

/** The parts of a message to show within a number of tokens; null if nothing useful fits. */
interface View {
  readonly turn: Turn;
  readonly cut: (tokensMax: number) => readonly TextRange[] | null;
}

/** The part that matches; of a failed call's output also the line that names the error. */
function viewOf({ turn, focus }: PassageHit): View {
  const error = turn.isFailed ? errorLine(turn.text) : null;
  return {
    turn,
    cut(tokensMax) {
      const part = cutPassage(turn.text, isEmpty(focus) && error !== null ? error : focus, tokensMax);
      if (part === null || error === null || (error.from >= part.from && error.to <= part.to)) return part && [part];
      const apart = error.from > part.to ? [part, error] : error.to < part.from ? [error, part] : null;
      return apart ?? [{ from: Math.min(part.from, error.from), to: Math.max(part.to, error.to) }];
    },
  };
}

const wholeOf = ({ text }: Turn): TextRange => ({ from: 0, to: text.length });

/** The beginning of a part of a message: a call, its prose, or all of it. */
function headOf(turn: Turn, of: TextRange = wholeOf(turn)): View {
  const { from, to } = withoutBlanks(turn.text, of);
  const text = turn.text.slice(from, to);
  return {
    turn,
    cut(tokensMax) {
      const head = cutPassage(text, { from: 0, to: 0 }, tokensMax);
      return head && [{ from: from + head.from, to: from + head.to }];
    },
  };
}

const errorWords =
  /\b(?:\w*error|\w*exception|fatal|panic|fail(?:ed|ure)|denied|refused|cannot|can't|could not|not found|no such|unexpected|invalid|E[A-Z]{4,})\b/i;
const exitLine = /^\s*(?:command )?(?:exited|aborted|exit code|exit status)\b/i;
const lineCharactersMax = 240;

/** The first line that names an error; otherwise the last line. */
function errorLine(text: string): TextRange | null {
  let [from, last]: [number, TextRange | null] = [0, null];
  for (const line of text.split("\n")) {
    const range = withoutBlanks(text, { from, to: from + Math.min(line.length, lineCharactersMax) });
    from += line.length + 1;
    if (isEmpty(range) || (exitLine.test(line) && last !== null)) continue;
    last = range;
    if (errorWords.test(line) && !exitLine.test(line)) break;
  }
  return last;
}

// ── What belongs to a hit ────────────────────────────────────────────────────────────────────────────────────────────

type Near = (turn: Turn, offset: number) => Turn | undefined;

function besideOf({ turn, focus }: PassageHit, near: Near): readonly View[] {
  if (turn.answers.length > 0) return callOf(turn, near);
  if (turn.role === "user") return answerOf(turn, near);
  if (turn.role !== "assistant") return [];
  const isInCall = turn.calls.some(({ range }) => focus.from >= range.from && focus.from < range.to);
  const result = resultOf(turn, focus, near);
  return isInCall ? result : [...questionOf(turn, near), ...result];
}

function callOf(turn: Turn, near: Near): readonly View[] {
  for (let offset = -1; offset >= -lookBack; offset--) {
    const other = near(turn, offset);
    const call = other?.calls.find(({ id }) => turn.answers.includes(id));
    if (other !== undefined && call !== undefined) return [headOf(other, call.range)];
  }
  return [];
}

/** A long call writes something; what it returns is mostly that it did. */
const isLong = ({ from, to }: TextRange): boolean => to - from > 300;

function resultOf(turn: Turn, focus: TextRange, near: Near): readonly View[] {
  const call = turn.calls.find(({ range }) => focus.from < range.to) ?? turn.calls[0];
  if (call === undefined) return [];
  for (let offset = 1; offset <= lookAhead; offset++) {
    const other = near(turn, offset);
    if (other?.answers.includes(call.id) !== true) continue;
    if (other.isFailed) return [headOf(other, errorLine(other.text) ?? wholeOf(other))];
    return isLong(call.range) || saysLittle(other.text) ? [] : [headOf(other)];
  }
  return [];
}

function questionOf(turn: Turn, near: Near): readonly View[] {
  for (let offset = -1; offset >= -lookBack; offset--) {
    const other = near(turn, offset);
    if (other?.role === "user" && other.answers.length === 0) return saysLittle(other.text) ? [] : [headOf(other)];
  }
  return [];
}

function answerOf(turn: Turn, near: Near): readonly View[] {
  for (let offset = 1; offset <= lookAhead; offset++) {
    const other = near(turn, offset);
    if (other?.role === "user" && other.answers.length === 0) return [];
    const prose = { from: 0, to: other?.calls[0]?.range.from ?? Infinity };
    if (other?.role === "assistant" && !saysLittle(other.text.slice(0, prose.to)))
      return [headOf(other, { from: 0, to: Math.min(prose.to, other.text.length) })];
  }
  return [];
}

// ── The board: what is shown so far, and what is left of the budget ──────────────────────────────────────────────────

interface Shown {
  readonly turn: Turn;
  readonly parts: readonly TextRange[];
  readonly cost: number;
  /** The rank of the best hit that it belongs to. */
  readonly rank: number;
  readonly isContext: boolean;
}

interface Placing {
  readonly rank: number;
  readonly isContext: boolean;
  readonly tokens: number;
}

function createBoard({ tokens, headingTokens }: PassageBudget) {
  const shown = new Map<MessageId, Shown>();
  let left = tokens;
  const costOf = (turn: Turn, parts: readonly TextRange[]): number =>
    headingTokens + 1 + estimateTokens(quote(showParts(turn.text, parts)));
  return {
    hasRoom: (): boolean => left > headingTokens + passageRules.least,
    /** Shows a message, or more of it; false if there is no room. Context never replaces anything. */
    show({ turn, cut }: View, { rank, isContext, tokens: wanted }: Placing): boolean {
      const before = shown.get(turn.id);
      if (before !== undefined && isContext) return true;
      const room = left + (before?.cost ?? 0) - headingTokens - 1;
      for (let most = Math.min(wanted, room); most >= passageRules.least; most = Math.floor(most * 0.8)) {
        const parts = cut(most);
        if (parts === null) break;
        const cost = costOf(turn, parts);
        if (cost > left + (before?.cost ?? 0)) continue;
        left += (before?.cost ?? 0) - cost;
        shown.set(turn.id, { turn, parts, cost, rank: Math.min(rank, before?.rank ?? rank), isContext });
        return true;
      }
      if (before === undefined) return false;
      shown.set(turn.id, { ...before, isContext: before.isContext && isContext });
      return true;
    },
    groups: () => groupsOf([...shown.values()]),
  };
}

/** Messages this near to each other are shown together. */
const gapMax = 2;

function groupsOf(shown: readonly Shown[]): readonly (readonly Passage[])[] {
  const groups: Shown[][] = [];
  for (const each of shown.toSorted(byPlace)) {
    const group = groups.at(-1);
    const last = group?.at(-1)?.turn;
    const isNext = last?.conversation === each.turn.conversation && each.turn.seq - last.seq <= gapMax;
    if (isNext || group?.some(({ rank }) => rank === each.rank) === true) group?.push(each);
    else groups.push([each]);
  }
  const best = (group: readonly Shown[]): number => Math.min(...group.map(({ rank }) => rank));
  return groups.toSorted((one, other) => best(one) - best(other)).map((group) => group.map(toPassage));
}

const byPlace = ({ turn: one }: Shown, { turn: other }: Shown): number =>
  one.conversation - other.conversation || one.seq - other.seq;

function toPassage({ turn, parts, isContext }: Shown): Passage {
  const { id, conversation, seq, role, at, text } = turn;
  const whole = withoutBlanks(text, wholeOf(turn));
  const isWhole = parts.length === 1 && parts[0]?.from === whole.from && parts[0].to === whole.to;
  return { id, conversation, seq, role, at, text: showParts(text, parts), context: isContext, isWhole };
}
