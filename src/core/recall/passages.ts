/**
 * Plans what a search shows within a number of tokens: of each hit the part that matches, and beside it the call of a
 * result, the result of a call, the question before an answer. Many hits are shown in short, few at length.
 */

import { cutPassage, showParts, withoutBlanks } from "../base/cut-passage.ts";
import { quote, type TextRange } from "../base/excerpt.ts";
import { estimateTokens } from "../base/tokens.ts";
import type { Message, MessageId } from "../model/types.ts";
import { saysLittle } from "./expand.ts";
import type { ReadableCall } from "./readable-text.ts";

/** A message as the planner needs it; its text is written for reading, see `readableText`. */
export interface Turn extends Pick<Message, "id" | "conversation" | "seq" | "role" | "at" | "text"> {
  readonly calls: readonly ReadableCall[];
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
  /** Parts of the text, with `…` where something was left out. */
  readonly text: string;
  /** Whether it did not match itself, but helps to understand what did. */
  readonly context: boolean;
  readonly isWhole: boolean;
  /** Further hits that say the same and are not shown. */
  readonly alike: readonly MessageId[];
}

export interface PassageBudget {
  readonly tokens: number;
  /** What the line above a passage takes. */
  readonly headingTokens: number;
  /** `ranked` (default): the best first. `listed`: by time. `exact`: by time too, and little around each match. */
  readonly manner?: Manner;
}

export type Manner = "ranked" | "listed" | "exact";

/**
 * Sizes in tokens; `npm run bench:recall` measures what they show. A message of up to `whole` tokens is never cut, of a
 * longer one at most `tokens` are shown.
 */
export const passageRules = {
  /** The best hits are shown longer, and together with what belongs to them. */
  best: { hits: 3, tokens: 80, whole: 150 },
  other: { tokens: 40, whole: 60 },
  context: { tokens: 26, whole: 50 },
  /** Many matches in the order of time: a line or two of each. */
  line: { tokens: 26, whole: 36 },
  /** Around a match of a regular expression. */
  exact: { tokens: 40, whole: 50 },
  /** Less than this is not worth a heading. */
  least: 16,
};
type Size = (typeof passageRules)["other"];

/** More matches than this are many. */
const fewListed = 6;
/** So many of the best hits are shown longer if there is room. */
const filled = 4;

/** How far from a hit its call, result, question or answer is looked for. */
export const lookBack = 12;
export const lookAhead = 6;

/** Groups of messages that belong together, the group of the best hit first; in each, in order. No message twice. */
export function planPassages(
  hits: readonly PassageHit[],
  around: readonly Turn[],
  budget: PassageBudget,
): readonly (readonly Passage[])[] {
  const { manner = "ranked" } = budget;
  const board = createBoard(budget);
  const turns = new Map([...around, ...hits.map(({ turn }) => turn)].map((turn) => [placeOf(turn), turn]));
  const near: Near = ({ conversation, seq }, offset) => turns.get(placeOf({ conversation, seq: seq + offset }));
  const told = manner === "exact" ? mostFirst(tellingOf(hits, near)) : tellingOf(hits, near);
  const isLong = manner === "listed" && told.length > fewListed;
  const shown: Told[] = [];
  for (const [rank, hit] of (manner === "ranked" ? mergeAlike(told) : told).entries()) {
    const isBest = rank < passageRules.best.hits;
    const size = isLong ? passageRules.line : manner === "exact" ? passageRules.exact : isBest && passageRules.best;
    if (!board.show(viewOf(hit), { rank, isContext: false, alike: hit.alike, ...(size || passageRules.other) })) break;
    shown.push(hit);
    if (isBest && !isLong) showBeside(hit, rank);
  }
  // What is left goes to what belongs to the other hits, then to longer passages of the best.
  if (manner === "ranked") for (const [rank, hit] of shown.entries()) showBeside(hit, rank);
  const most = manner === "exact" ? 0 : isLong ? passageRules.best.tokens : 2 * budget.tokens;
  const longer = isLong ? shown : shown.slice(0, filled);
  for (let tokens = (isLong ? 1 : 2) * passageRules.best.tokens; tokens <= most && board.hasRoom(); tokens *= 2)
    for (const [rank, hit] of longer.entries())
      board.show(viewOf(hit), { rank, isContext: false, alike: hit.alike, tokens, whole: tokens });
  return board.groups(manner);

  function showBeside(hit: PassageHit, rank: number): void {
    for (const view of besideOf(hit, near))
      board.show(view, { rank, isContext: true, alike: [], ...passageRules.context });
  }
}

// ── Which hits are worth showing ─────────────────────────────────────────────────────────────────────────────────────

/** A hit, with others that say the same. */
interface Told extends PassageHit {
  readonly alike: readonly MessageId[];
}

/** Without padding such as "ok", which is ranked because of what is around it, and with edits for "file changed". */
function tellingOf(hits: readonly PassageHit[], near: Near): readonly Told[] {
  const said = hits.filter(({ turn }) => turn.text.trim() !== "");
  const telling = said.filter(({ turn, focus }) => !isEmpty(focus) || !saysLittle(turn.text));
  const told = new Map<MessageId, Told>();
  const found = new Set(said.map(({ turn }) => turn.id));
  for (const hit of telling.length > 0 ? telling : said) {
    const edit = confirmedEdit(hit.turn, near);
    if (edit === null) told.set(hit.turn.id, { ...hit, alike: [] });
    else if (!found.has(edit.turn.id) && !told.has(edit.turn.id)) told.set(edit.turn.id, { ...edit, alike: [] });
  }
  return told.size > 0 ? [...told.values()] : said.map((hit) => ({ ...hit, alike: [] }));
}

const confirmationMax = 240;

/** The edit of which a message says only that it was made. */
function confirmedEdit(turn: Turn, near: Near): PassageHit | null {
  if (turn.answers.length === 0 || turn.isFailed || turn.text.length > confirmationMax) return null;
  const found = findCall(turn, near);
  return found?.call.isEdit === true ? { turn: found.turn, focus: found.call.range } : null;
}

/** Of the same words around the match only the best hit; the others are named with it. */
function mergeAlike(hits: readonly Told[]): readonly Told[] {
  const merged = new Map<string, Told>();
  for (const hit of hits) {
    const { turn, focus } = hit;
    const [from, to] = isEmpty(focus) ? [0, 240] : [Math.max(0, focus.from - 80), focus.from + 160];
    const words = `${turn.role} ${turn.text.slice(from, to).replace(/\s+/g, " ").trim().toLowerCase()}`;
    const first = merged.get(words);
    merged.set(words, first === undefined ? hit : { ...first, alike: [...first.alike, turn.id] });
  }
  return [...merged.values()];
}

/** The conversation with most matches first. */
function mostFirst(hits: readonly Told[]): readonly Told[] {
  const counts = new Map<number, number>();
  for (const { turn } of hits) counts.set(turn.conversation, (counts.get(turn.conversation) ?? 0) + 1);
  const countOf = ({ turn }: Told): number => counts.get(turn.conversation) ?? 0;
  return hits.toSorted((one, other) => countOf(other) - countOf(one));
}

const isEmpty = ({ from, to }: TextRange): boolean => from >= to;
const placeOf = ({ conversation, seq }: Pick<Turn, "conversation" | "seq">): string => `${conversation}-${seq}`;

// ── What is shown of a message ───────────────────────────────────────────────────────────────────────────────────────

/** The parts of a message to show within a number of tokens; null if nothing useful fits. */
interface View {
  readonly turn: Turn;
  readonly cut: (tokensMax: number) => readonly TextRange[] | null;
}

/** The part that matches; of an output or report with an error also the line that names it; of a user's also the start. */
function viewOf({ turn, focus }: PassageHit): View {
  const { text } = turn;
  const error = turn.isFailed || hasFrames.test(text) ? errorLine(text) : null;
  const lead = turn.role === "user" && turn.answers.length === 0 ? leadOf(text) : null;
  return {
    turn,
    cut(tokensMax) {
      const match = isEmpty(focus) && error !== null ? error : focus;
      const part = cutPassage(text, match, tokensMax);
      if (part === null) return null;
      const others = error === null ? [] : [error];
      if (lead === null || tokensMax < leadTokensMin || lead.to >= part.from)
        return joined([throughList(text, part), ...others]);
      const after = cutPassage(text, match, tokensMax - estimateTokens(text.slice(lead.from, lead.to)) - 2) ?? part;
      return joined([lead, throughList(text, after), ...others]);
    },
  };
}

const hasFrames = /^\s+at .*:\d+/m;
const leadTokensMin = 60;
const leadCharactersMax = 100;

/** The first line or sentence, if it is short. */
function leadOf(text: string): TextRange | null {
  const { from, to } = withoutBlanks(text, wholeText(text));
  const end = /[.!?](?=\s)|\n/.exec(text.slice(from, from + leadCharactersMax + 1))?.index;
  return end === undefined ? null : withoutBlanks(text, { from, to: Math.min(to, from + end + 1) });
}

const listItem = /^\s*(?:[-*•+]|\d{1,2}[.)])\s/;
const listCharactersMax = 240;

/** A part that ends inside a short list goes on to its end. */
function throughList(text: string, part: TextRange): TextRange {
  const lineStart = text.lastIndexOf("\n", part.to - 1) + 1;
  if (!listItem.test(text.slice(lineStart, part.to))) return part;
  let to = part.to;
  for (const line of text.slice(part.to, part.to + listCharactersMax + 1).split(/(?<=\n)/)) {
    if (to > part.to && line.trim() !== "" && !listItem.test(line)) break;
    to += line.length;
  }
  return to - part.to > listCharactersMax ? part : withoutBlanks(text, { from: part.from, to });
}

/** Ranges in order, those that touch as one. */
function joined(ranges: readonly TextRange[]): readonly TextRange[] {
  const merged: { from: number; to: number }[] = [];
  for (const { from, to } of ranges.toSorted((one, other) => one.from - other.from)) {
    const last = merged.at(-1);
    if (last !== undefined && from <= last.to + 1) last.to = Math.max(last.to, to);
    else merged.push({ from, to });
  }
  return merged;
}

const wholeText = (text: string): TextRange => ({ from: 0, to: text.length });
const wholeOf = ({ text }: Turn): TextRange => wholeText(text);

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
  if (isInCall) return resultOf(turn, focus, near);
  const { text } = turn;
  const last = text.slice(0, turn.calls[0]?.range.from).trim() === "" ? resultOf(turn, focus, near) : [];
  return [...questionOf(turn, near), ...last, ...replyTo(turn, near)];
}

function findCall(turn: Turn, near: Near): { readonly turn: Turn; readonly call: ReadableCall } | null {
  for (let offset = -1; offset >= -lookBack; offset--) {
    const other = near(turn, offset);
    const call = other?.calls.find(({ id }) => turn.answers.includes(id));
    if (other !== undefined && call !== undefined) return { turn: other, call };
  }
  return null;
}

function callOf(turn: Turn, near: Near): readonly View[] {
  const found = findCall(turn, near);
  return found === null ? [] : [headOf(found.turn, found.call.range)];
}

/** A long call writes something; what it returns at length is mostly that. */
const isLong = ({ from, to }: TextRange): boolean => to - from > 300;
const shortResult = 160;

function resultOf(turn: Turn, focus: TextRange, near: Near): readonly View[] {
  const call = turn.calls.find(({ range }) => focus.from < range.to) ?? turn.calls[0];
  if (call === undefined) return [];
  for (let offset = 1; offset <= lookAhead; offset++) {
    const other = near(turn, offset);
    if (other?.answers.includes(call.id) !== true) continue;
    if (other.isFailed) return [headOf(other, errorLine(other.text) ?? wholeOf(other))];
    const isUntold = call.isEdit || (isLong(call.range) && other.text.length > shortResult);
    return isUntold || saysLittle(other.text) ? [] : [headOf(other)];
  }
  return [];
}

const replyCharactersMax = 300;

/** What the user said at once to an answer, if it is short: often a correction. */
function replyTo(turn: Turn, near: Near): readonly View[] {
  const other = turn.calls.length === 0 ? near(turn, 1) : undefined;
  const isReply = other?.role === "user" && other.answers.length === 0 && other.text.length <= replyCharactersMax;
  return isReply && !saysLittle(other.text) ? [headOf(other)] : [];
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
  readonly alike: readonly MessageId[];
}

interface Placing extends Size {
  readonly rank: number;
  readonly isContext: boolean;
  readonly alike: readonly MessageId[];
}

/** How many hits that say the same are named, and what each takes. */
const alikeMax = 3;
const alikeTokens = 8;

function createBoard({ tokens, headingTokens }: PassageBudget) {
  const shown = new Map<MessageId, Shown>();
  let left = tokens;
  const costOf = (turn: Turn, parts: readonly TextRange[]): number =>
    headingTokens + 1 + estimateTokens(quote(showParts(turn.text, parts)));
  return {
    hasRoom: (): boolean => left > headingTokens + passageRules.least,
    /** Shows a message, or more of it; false if there is no room. Context never replaces anything. */
    show({ turn, cut }: View, { rank, isContext, ...placing }: Placing): boolean {
      const before = shown.get(turn.id);
      if (before !== undefined && isContext) return true;
      const alike = placing.alike.slice(0, alikeMax);
      const free = left + (before?.cost ?? 0) - alike.length * alikeTokens;
      const room = free - headingTokens - 1;
      const sizes = [Math.min(placing.whole, room)];
      for (let most = Math.min(placing.tokens, room); most >= passageRules.least; most = Math.floor(most * 0.8))
        sizes.push(most);
      for (const [at, most] of sizes.entries()) {
        const parts = most < passageRules.least ? null : cut(most);
        if (parts === null || (at === 0 && !isAll(turn, parts))) continue;
        const cost = costOf(turn, parts);
        if (cost > free) continue;
        left = free - cost;
        const isLater = before?.isContext !== false && isContext;
        const best = Math.min(rank, before?.rank ?? rank);
        shown.set(turn.id, {
          turn,
          parts,
          cost: cost + alike.length * alikeTokens,
          rank: best,
          isContext: isLater,
          alike,
        });
        return true;
      }
      if (before === undefined) return false;
      shown.set(turn.id, { ...before, isContext: before.isContext && isContext });
      return true;
    },
    groups: (manner: Manner) => groupsOf([...shown.values()], manner),
  };
}

function isAll({ text }: Turn, parts: readonly TextRange[]): boolean {
  const { from, to } = withoutBlanks(text, wholeText(text));
  return parts.length === 1 && parts[0]?.from === from && parts[0].to === to;
}

/** Messages this near to each other are shown together. */
const gapMax = 2;

function groupsOf(shown: readonly Shown[], manner: Manner): readonly (readonly Passage[])[] {
  const groups: Shown[][] = [];
  for (const each of shown.toSorted(manner === "listed" ? byTime : byPlace)) {
    const group = groups.at(-1);
    const last = group?.at(-1)?.turn;
    const isSame = last?.conversation === each.turn.conversation;
    const isNext =
      (manner === "listed" && group !== undefined) ||
      (isSame && (manner === "exact" || each.turn.seq - last.seq <= gapMax));
    if (isNext || group?.some(({ rank }) => rank === each.rank) === true) group?.push(each);
    else groups.push([each]);
  }
  const best = (group: readonly Shown[]): number => Math.min(...group.map(({ rank }) => rank));
  return groups.toSorted((one, other) => best(one) - best(other)).map((group) => group.map(toPassage));
}

const byPlace = ({ turn: one }: Shown, { turn: other }: Shown): number =>
  one.conversation - other.conversation || one.seq - other.seq;

const byTime = (one: Shown, other: Shown): number =>
  one.turn.at === other.turn.at ? byPlace(one, other) : one.turn.at < other.turn.at ? -1 : 1;

function toPassage({ turn, parts, isContext, alike }: Shown): Passage {
  const { id, conversation, seq, role, at, text } = turn;
  const isWhole = isAll(turn, parts);
  return { id, conversation, seq, role, at, text: showParts(text, parts), context: isContext, isWhole, alike };
}
