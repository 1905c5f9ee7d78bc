/**
 * Plans what a search shows within a number of tokens: of each hit the part that matches, and beside it the call of a
 * result, the result of a call, the question before an answer. Many hits are shown in short, few at length.
 */

import { showParts, withoutBlanks } from "../../base/cut-passage.ts";
import { quote, type TextRange } from "../../base/excerpt.ts";
import { estimateTokens } from "../../base/tokens.ts";
import type { Message, MessageId } from "../../model/types.ts";
import { saysLittle } from "../expand.ts";
import {
  errorLine,
  hasFrames,
  headOf,
  isEmpty,
  lineAt,
  linesOf,
  linesWith,
  showLines,
  viewOf,
  wholeOf,
  wholeText,
} from "./views.ts";
import type { PassageHit, Size, Turn, View } from "./views.ts";
import type { ReadableCall } from "../readable-text.ts";

export interface Passage extends Pick<Message, "id" | "conversation" | "seq" | "role" | "at"> {
  /** Parts of the text, with `…` where something was left out. */
  readonly text: string;
  /** Whether it did not match itself, but helps to understand what did. */
  readonly context: boolean;
  readonly isWhole: boolean;
  /** Further hits that say the same and are not shown. */
  readonly alike: readonly MessageId[];
  /** Whether only lines that match are shown, without `…` between them. */
  readonly isLines: boolean;
}

export interface PassageBudget {
  readonly tokens: number;
  /** What the line above a passage takes. */
  readonly headingTokens: number;
  /** `ranked` (default): the best first. `listed`: by time. `exact`: by time too, and little around each match. */
  readonly manner?: Manner;
  /** What is `listed` is shown oldest first, unless this says otherwise. */
  readonly isNewestFirst?: boolean;
  /** The words that were searched for: of many matches by time, the lines that contain them are shown. */
  readonly words?: readonly string[];
}

export type Manner = "ranked" | "listed" | "exact";

/**
 * Sizes in tokens; `npm run bench:recall` measures what they show. A message of up to `whole` tokens is never cut, of a
 * longer one at most `tokens` are shown.
 */
export const passageRules = {
  /** The best hits are shown longer, and together with what belongs to them. */
  best: { hits: 2, tokens: 60, whole: 120 },
  /** A short message that is clearly the best hit, by the share of the second, is not cut just before its answer. */
  clear: { tokens: 60, whole: 180, secondShare: 0.8 },
  other: { tokens: 30, whole: 60 },
  context: { tokens: 24, whole: 44 },
  /** A hit that scores less than this share of the best is shown only if there is much room. */
  leastShare: 0.35,
  muchRoom: 1_000,
  /** After so many hits the others need this share. */
  several: 5,
  severalShare: 0.5,
  /** The first hits are shown whatever they score. */
  sure: 3,
  /** What a call returned is shown beside so many of the first hits before other hits are, however long it is. */
  withResult: 5,
  /** Many matches in the order of time: a line or two of each. */
  line: { tokens: 28, whole: 28 },
  /** Around a match of a regular expression. */
  exact: { tokens: 40, whole: 50 },
  /** Less than this is not worth a heading. */
  least: 16,
};

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
  const { manner = "ranked", words = [] } = budget;
  const board = createBoard(budget);
  const turns = new Map([...around, ...hits.map(({ turn }) => turn)].map((turn) => [placeOf(turn), turn]));
  const near: Near = ({ conversation, seq }, offset) => turns.get(placeOf({ conversation, seq: seq + offset }));
  const telling = tellingOf(manner === "listed" ? matchingOf(hits, words) : hits, near);
  const told = manner === "exact" ? mostFirst(telling) : telling;
  const isLong = manner === "listed" && told.length > fewListed;
  const isClear = (told[1]?.share ?? 1) < passageRules.clear.secondShare;
  const shown: Told[] = [];
  const listed = isLong ? clearest(told, words) : told;
  const distinct = manner === "ranked" ? mergeAlike(told.filter(isRelevant), aroundMatch) : told;
  for (const [rank, hit] of (manner === "listed"
    ? mergeAlike(listed, (hit) => matchedLines(hit, words))
    : distinct
  ).entries()) {
    const isBest = rank < passageRules.best.hits;
    const view = lineOrView(hit);
    const size = isLong
      ? passageRules.line
      : manner === "exact"
        ? passageRules.exact
        : rank === 0 && isClear
          ? passageRules.clear
          : isBest && passageRules.best;
    const placed = board.show(view, { rank, isContext: false, alike: hit.alike, ...(size || passageRules.other) });
    if (placed === "full") break;
    if (placed === "fragment") continue;
    shown.push(hit);
    if (isBest && !isLong) showBeside(hit, rank);
    else if (manner === "ranked") showContext(outcomeOf(hit, near, rank < passageRules.withResult), rank);
  }
  // What is left goes to what belongs to the other hits, then to longer passages of the best.
  if (manner === "ranked") for (const [rank, hit] of shown.entries()) showBeside(hit, rank);
  const most = manner === "exact" ? 0 : isLong ? passageRules.best.tokens : 2 * budget.tokens;
  const longer = isLong ? shown : shown.slice(0, filled);
  for (let tokens = (isLong ? 1 : 2) * passageRules.best.tokens; tokens <= most && board.hasRoom(); tokens *= 2)
    for (const [rank, hit] of longer.entries())
      board.show(lineOrView(hit), {
        rank,
        isContext: false,
        alike: hit.alike,
        tokens,
        whole: tokens,
      });
  return board.groups(manner);

  function lineOrView(hit: PassageHit): View {
    return isLong || (manner === "listed" && hit.isHidden === true) ? linesOf(hit, words) : viewOf(hit);
  }

  function isRelevant({ share = 1 }: PassageHit, rank: number): boolean {
    const least = rank < passageRules.several ? passageRules.leastShare : passageRules.severalShare;
    return share >= least || rank < passageRules.sure || budget.tokens >= passageRules.muchRoom;
  }

  function showBeside(hit: PassageHit, rank: number): void {
    showContext(besideOf(hit, near), rank);
  }

  function showContext(views: readonly View[], rank: number): void {
    for (const view of views)
      board.show(view, { rank, isContext: true, alike: [], ...(view.size ?? passageRules.context) });
  }
}

// ── Which hits are worth showing ─────────────────────────────────────────────────────────────────────────────────────

/** A hit, with others that say the same. */
interface Told extends PassageHit {
  readonly alike: readonly MessageId[];
}

/** Of a list by time, hits that show the match: an edit that has the words only in lines that it keeps changes nothing. */
function matchingOf(hits: readonly PassageHit[], words: readonly string[]): readonly PassageHit[] {
  const matching = hits.filter((hit) => hit.isHidden !== true || linesWith(hit, words).count > 0);
  return matching.length > 0 ? matching : hits;
}

/** A match whose best line has less than this share of the words of the best is one by chance. */
const leastWords = 1 / 2;

/** Of many matches by time, those that have the words together: a long output contains every word somewhere. */
function clearest(hits: readonly Told[], words: readonly string[]): readonly Told[] {
  const counts = hits.map((hit) => linesWith(hit, words).count);
  const most = Math.max(...counts);
  return hits.filter((_, at) => (counts[at] ?? 0) >= leastWords * most);
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

/** Of hits that say the same only the first; the others are named with it. */
function mergeAlike(hits: readonly Told[], partOf: (hit: Told) => TextRange): readonly Told[] {
  const merged = new Map<string, Told>();
  for (const hit of hits) {
    const { turn } = hit;
    const { from, to } = partOf(hit);
    const words = turn.text.slice(from, to).replace(/\s+/g, " ").trim().toLowerCase();
    const key = `${turn.role} ${words === "" ? turn.id : words}`;
    const first = merged.get(key);
    merged.set(key, first === undefined ? hit : { ...first, alike: [...first.alike, turn.id] });
  }
  return [...merged.values()];
}

const aroundMatch = ({ focus }: Told): TextRange =>
  isEmpty(focus) ? { from: 0, to: 240 } : { from: Math.max(0, focus.from - 80), to: focus.from + 160 };

/** In a list by time, the lines that match: a value that is said again has not changed. Empty if no words were asked. */
function matchedLines(hit: Told, words: readonly string[]): TextRange {
  if (hit.isHidden !== true && hit.focus.to - hit.focus.from < 2) return { from: 0, to: 0 };
  const { lines } = linesWith(hit, words);
  return { from: lines[0]?.from ?? 0, to: lines.at(-1)?.to ?? 0 };
}

/** The conversation with most matches first. */
function mostFirst(hits: readonly Told[]): readonly Told[] {
  const counts = new Map<number, number>();
  for (const { turn } of hits) counts.set(turn.conversation, (counts.get(turn.conversation) ?? 0) + 1);
  const countOf = ({ turn }: Told): number => counts.get(turn.conversation) ?? 0;
  return hits.toSorted((one, other) => countOf(other) - countOf(one));
}

const placeOf = ({ conversation, seq }: Pick<Turn, "conversation" | "seq">): string => `${conversation}-${seq}`;

// ── What belongs to a hit ────────────────────────────────────────────────────────────────────────────────────────────

type Near = (turn: Turn, offset: number) => Turn | undefined;

function besideOf({ turn, focus }: PassageHit, near: Near): readonly View[] {
  if (turn.answers.length > 0) return callOf(turn, near);
  if (turn.role === "user") return answerOf(turn, near);
  if (turn.role !== "assistant") return [];
  const outcome = outcomeOf({ turn, focus }, near, isInCall(turn, focus));
  if (isInCall(turn, focus)) return outcome;
  const { text } = turn;
  const last = text.slice(0, turn.calls[0]?.range.from).trim() === "" ? resultOf(turn, focus, near) : [];
  return [...outcome, ...questionOf(turn, near), ...last, ...replyTo(turn, near)];
}

const isInCall = ({ calls }: Turn, { from, to }: TextRange): boolean =>
  calls.some(({ range }) => to > range.from && from < range.to);

/**
 * The error that a message follows, and what its call returned: whoever finds the call asks for it next. What is long is
 * shown only if `isLongShown` and the call itself matches.
 */
function outcomeOf({ turn, focus }: PassageHit, near: Near, isLongShown: boolean): readonly View[] {
  if (turn.role !== "assistant") return [];
  const before = near(turn, -1);
  const isAll = isLongShown && isInCall(turn, focus);
  const results = resultOf(turn, focus, near).filter(
    (result) => isAll || result.turn.isFailed || result.turn.text.length <= shortCharacters,
  );
  return [...(before?.isFailed === true ? [errorOf(before)] : []), ...results];
}

/** An error that stops short of what it names says nothing. */
const errorOf = (turn: Turn): View => ({
  ...headOf(turn, errorLine(turn.text) ?? wholeOf(turn)),
  size: passageRules.best,
});

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
const shortCharacters = 160;

function resultOf(turn: Turn, focus: TextRange, near: Near): readonly View[] {
  const call = turn.calls.find(({ range }) => focus.from < range.to) ?? turn.calls[0];
  if (call === undefined) return [];
  for (let offset = 1; offset <= lookAhead; offset++) {
    const other = near(turn, offset);
    if (other?.answers.includes(call.id) !== true) continue;
    if (other.isFailed) return [errorOf(other)];
    const isUntold = call.isEdit || (isLong(call.range) && other.text.length > shortCharacters);
    return isUntold || saysLittle(other.text) ? [] : [headOf(other)];
  }
  return [];
}

const replyCharactersMax = 300;

/** What the user said at once to an answer, if it is short: often a correction. */
function replyTo(turn: Turn, near: Near): readonly View[] {
  const other = turn.calls.length === 0 ? near(turn, 1) : undefined;
  const isReply = other?.role === "user" && other.answers.length === 0 && other.text.length <= replyCharactersMax;
  return isReply && !saysLittle(other.text)
    ? [headOf(other)]
    : other !== undefined && isReport(other)
      ? [reportOf(other)]
      : [];
}

/** A user who pastes an error: what it names is worth more than how the message begins. */
const isReport = ({ role, answers, text }: Turn): boolean =>
  role === "user" && answers.length === 0 && hasFrames.test(text);
const reportOf = (turn: Turn): View => ({ ...viewOf({ turn, focus: { from: 0, to: 0 } }), size: passageRules.best });

function questionOf(turn: Turn, near: Near): readonly View[] {
  for (let offset = -1; offset >= -lookBack; offset--) {
    const other = near(turn, offset);
    if (other !== undefined && isReport(other)) return [reportOf(other)];
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
  readonly isLines: boolean;
}

interface Placing extends Size {
  readonly rank: number;
  readonly isContext: boolean;
  readonly alike: readonly MessageId[];
}

type Placed = "shown" | "full" | "fragment";

/** How many hits that say the same are named, and what each takes. */
const alikeMax = 3;
const alikeTokens = 8;

function createBoard({ tokens, headingTokens, isNewestFirst = false }: PassageBudget) {
  const shown = new Map<MessageId, Shown>();
  let left = tokens;
  const costOf = (turn: Turn, parts: readonly TextRange[], isLines: boolean): number =>
    headingTokens + 1 + estimateTokens(quote(isLines ? showLines(turn.text, parts) : showParts(turn.text, parts)));
  return {
    hasRoom: (): boolean => left > headingTokens + passageRules.least,
    /** Shows a message, or more of it, unless there is no room or it says nothing. Context never replaces anything. */
    show({ turn, cut, isLines = false }: View, { rank, isContext, ...placing }: Placing): Placed {
      const before = shown.get(turn.id);
      if (before !== undefined && isContext) return "shown";
      const alike = placing.alike.slice(0, alikeMax);
      const free = left + (before?.cost ?? 0) - alike.length * alikeTokens;
      const room = free - headingTokens - 1;
      const sizes = [Math.min(placing.whole, room)];
      for (let most = Math.min(placing.tokens, room); most >= passageRules.least; most = Math.floor(most * 0.8))
        sizes.push(most);
      for (const [at, most] of sizes.entries()) {
        const parts = most < passageRules.least ? null : cut(most);
        if (parts === null || (at === 0 && !isLines && !isAll(turn, parts))) continue;
        if (before === undefined && rank >= passageRules.best.hits && !isContext && !isLines && isFragment(turn, parts))
          return "fragment";
        const cost = costOf(turn, parts, isLines);
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
          isLines,
        });
        return "shown";
      }
      if (before === undefined) return "full";
      shown.set(turn.id, { ...before, isContext: before.isContext && isContext });
      return "shown";
    },
    groups(manner: Manner): readonly (readonly Passage[])[] {
      const groups = groupsOf([...shown.values()], manner);
      return isNewestFirst ? groups.map((group) => group.toReversed()).toReversed() : groups;
    },
  };
}

function isAll({ text }: Turn, parts: readonly TextRange[]): boolean {
  const { from, to } = withoutBlanks(text, wholeText(text));
  return parts.length === 1 && parts[0]?.from === from && parts[0].to === to;
}

/** A few characters of a longer message, or of a call only which file it is about. */
function isFragment(turn: Turn, parts: readonly TextRange[]): boolean {
  if (isAll(turn, parts)) return false;
  const { text, calls } = turn;
  const heads = calls
    .filter(({ isEdit }) => isEdit)
    .map(({ range }) => lineAt(text, { from: range.from, to: range.from }));
  const told = parts.map(({ from, to }) => {
    const head = heads.find((line) => line.from < to && line.to > from);
    return head === undefined
      ? text.slice(from, to)
      : text.slice(from, Math.max(from, head.from)) + text.slice(head.to, to);
  });
  return told.join("").replace(/[^\p{L}\p{N}]/gu, "").length < fragmentCharacters;
}

const fragmentCharacters = 20;

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

function toPassage({ turn, parts, isContext, alike, isLines }: Shown): Passage {
  const { id, conversation, seq, role, at, text } = turn;
  const isWhole = isAll(turn, parts);
  const shown = isLines ? showLines(text, parts) : showParts(text, parts);
  return { id, conversation, seq, role, at, text: shown, context: isContext, isWhole, alike, isLines };
}
