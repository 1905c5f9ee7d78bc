/**
 * Walking down from summaries to what they were made from, within a number of tokens. Asked for something, it takes what
 * speaks of it, best first, and nothing else; asked for nothing, it takes everything in order until the tokens are used
 * up. Either way it says what it left out, and reads nothing beyond the reach of whoever asks.
 */

import { everydayWords } from "../base/stop-words.ts";
import { LcmError } from "../base/errors.ts";
import type { ConversationId, Message, MessageId, Role, Summary, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { isWithin, originOf } from "./scope.ts";
import type { Reach } from "./scope.ts";
import { passage } from "../base/excerpt.ts";
import { estimateTokens, sumTokens } from "../base/tokens.ts";
import { isTimestamp, timeAfter } from "../base/time.ts";
import type { Timestamp } from "../base/time.ts";

export interface ExpandRequest {
  readonly summaryIds: readonly SummaryId[];
  /** How far whoever asks may read. */
  readonly reach: Reach;
  /** What is looked for. */
  readonly query?: string;
  /** How many levels of summaries below the named ones are read; messages lie below the leaves. */
  readonly maxDepth?: number;
  readonly includeMessages?: boolean;
  readonly tokenCap: number;
}

export type Expanded = {
  readonly conversation: ConversationId;
  readonly text: string;
  /** Of the text as it is here. */
  readonly tokens: number;
  readonly isWhole: boolean;
  readonly at: Timestamp;
  /** Its place among all of them by relevance, from 0; their order if nothing was asked for. */
  readonly rank: number;
} &
  /** It is of the time from `at` to `latestAt`. */
  (
    | { readonly kind: "summary"; readonly id: SummaryId; readonly depth: number; readonly latestAt: Timestamp | null }
    | { readonly kind: "message"; readonly id: MessageId; readonly role: Role; readonly seq: number }
  );

export interface Expansion {
  /** In the order of the conversation, a level of summaries before the one below it, messages last. */
  readonly items: readonly Expanded[];
  readonly tokens: number;
  /** Summaries whose sources were read. */
  readonly expanded: readonly SummaryId[];
  /** Messages right below these that were not asked for. */
  readonly messagesBelow: number;
  /** What was read and did not fit, or does not speak of what was asked for. */
  readonly leftOut: { readonly items: number; readonly tokens: number };
  /** Whether there was more below than one expansion reads. */
  readonly isBounded: boolean;
}

/** Summaries and messages that one expansion reads at most, and how many at once: a host's thread takes them in. */
const summariesMax = 500;
const messagesMax = 1_000;
const pageRows = 100;

export async function expand(store: Store, request: ExpandRequest): Promise<Expansion> {
  const { tokenCap, query = "", maxDepth = 1 } = request;
  for (const [name, value, least] of [["tokenCap", tokenCap, 1] as const, ["maxDepth", maxDepth, 0] as const]) {
    if (!Number.isInteger(value) || value < least)
      throw new LcmError("invalid", `${name} is ${value}, but must be a whole number of at least ${least}`);
  }
  const roots: Summary[] = [];
  for (const named of await namedSummaries(store, request.summaryIds, request.reach))
    roots.push((await originOf(store, request.reach, named)) ?? named);
  const below = await walkDown(store, roots, maxDepth);
  const scores = query.trim() === "" ? null : await scoresOf(store, roots, query);
  const wanted = request.includeMessages === true ? worthReading(below.messages, scores) : [];
  const messages = (await inPages(wanted, async (ids) => await store.messages({ ids }))).filter(
    ({ conversation, text }) => below.conversations.has(conversation) && text.trim() !== "",
  );
  const inOrder = [...below.summaries.map(summaryToItem), ...messages.map(messageToItem)];
  const ranked = scores === null ? inOrder : byRelevance(inOrder, scores);
  const taken = new Map<Expanded, Expanded>();
  // Asked for something, one long text may take half of what is left: the next best should be seen too.
  const roomFor = (left: number): number =>
    scores === null ? left : Math.min(left, Math.max(2 * partTokensMin, Math.ceil(left / 2)));
  let tokens = 0;
  for (const [rank, item] of ranked.entries()) {
    const part = partAbout(item.text, query, roomFor(tokenCap - tokens), taken.size === 0 ? 1 : partTokensMin);
    // What comes next is worth less: to take it because it is short would be to pass over what answers.
    if (part === null) break;
    taken.set(item, { ...item, ...part, rank });
    tokens += part.tokens;
  }
  const leftOut = inOrder.filter((item) => !taken.has(item));
  return {
    items: inOrder.flatMap((item) => taken.get(item) ?? []),
    tokens,
    expanded: below.expanded,
    messagesBelow: request.includeMessages === true ? 0 : below.messages.length,
    leftOut: { items: leftOut.length, tokens: sumTokens(leftOut) },
    isBounded: below.isBounded || wanted.length < (request.includeMessages === true ? below.messages.length : 0),
  };
}

/** A foreign id is told from one that does not exist by nothing. */
export async function namedSummaries(
  store: Store,
  ids: readonly SummaryId[],
  reach: Reach,
): Promise<readonly Summary[]> {
  const named = new Map((await store.summaries({ ids })).map((summary) => [summary.id, summary]));
  for (const { id, conversation } of named.values()) {
    if (!(await isWithin(store, reach, conversation))) named.delete(id);
  }
  const missing = ids.filter((id) => !named.has(id));
  if (missing.length > 0)
    throw new LcmError("not_found", `there is no summary ${missing.join(", ")}`, {
      hint: "a search by words finds ids of summaries; they look like sum_0123456789abcdef",
    });
  return [...named.values()];
}

// ── What lies below ──────────────────────────────────────────────────────────────────────────────────────────────────

interface Below {
  readonly summaries: readonly Summary[];
  readonly messages: readonly MessageId[];
  readonly expanded: readonly SummaryId[];
  /** Nothing crosses from one conversation into another, except in a damaged database. */
  readonly conversations: ReadonlySet<ConversationId>;
  readonly isBounded: boolean;
}

async function walkDown(store: Store, roots: readonly Summary[], maxDepth: number): Promise<Below> {
  const conversations = new Set(roots.map(({ conversation }) => conversation));
  const summaries: Summary[] = [];
  const messages = new Set<MessageId>();
  const expanded = new Set<SummaryId>();
  let isBounded = false;
  let level = [...new Set(roots.map(({ id }) => id))];
  for (let depth = 0; level.length > 0 && depth <= maxDepth; depth++) {
    const sources = await store.sources(level);
    for (const id of level) expanded.add(id);
    for (const id of level) for (const message of sources.get(id)?.messages ?? []) messages.add(message);
    const next = [...new Set(level.flatMap((id) => sources.get(id)?.summaries ?? []))].filter(
      (id) => !expanded.has(id),
    );
    const read = depth === maxDepth ? [] : next.slice(0, summariesMax - summaries.length);
    isBounded ||= depth < maxDepth && read.length < next.length;
    const found = (await inPages(read, async (ids) => await store.summaries({ ids }))).filter(({ conversation }) =>
      conversations.has(conversation),
    );
    summaries.push(...found);
    level = found.map(({ id }) => id);
  }
  return { summaries, messages: [...messages], expanded: [...expanded], conversations, isBounded };
}

async function inPages<Id, Row>(
  ids: readonly Id[],
  read: (ids: readonly Id[]) => Promise<readonly Row[]>,
): Promise<readonly Row[]> {
  const rows: Row[] = [];
  for (let from = 0; from < ids.length; from += pageRows) rows.push(...(await read(ids.slice(from, from + pageRows))));
  return rows;
}

/** All of them, if they are not too many; else those that answer, with what stands beside them; else the first. */
function worthReading(messages: readonly MessageId[], scores: Scores | null): readonly MessageId[] {
  if (messages.length <= messagesMax) return messages;
  const answers = (id: MessageId | undefined): boolean => id !== undefined && scores?.has(id) === true;
  const answering = messages.filter((id, at) => answers(id) || answers(messages[at - 1]) || answers(messages[at + 1]));
  return (answering.length === 0 ? messages : answering).slice(0, messagesMax);
}

export const summaryToItem = (summary: Summary): Expanded => ({
  kind: "summary",
  id: summary.id,
  conversation: summary.conversation,
  depth: summary.depth,
  text: summary.text,
  tokens: summary.tokens,
  isWhole: true,
  at: summary.earliestAt ?? summary.createdAt,
  latestAt: summary.latestAt,
  rank: 0,
});

export const messageToItem = ({ id, conversation, seq, role, text, tokens, at }: Message): Expanded => ({
  kind: "message",
  id,
  conversation,
  seq,
  role,
  text,
  tokens,
  isWhole: true,
  at,
  rank: 0,
});

// ── What of it answers ───────────────────────────────────────────────────────────────────────────────────────────────

type Scores = ReadonlyMap<MessageId | SummaryId, number>;

/** How well what was said in the time of the roots answers, by the store's own ranking. */
async function scoresOf(store: Store, roots: readonly Summary[], query: string): Promise<Scores> {
  const conversations = [...new Set(roots.map(({ conversation }) => conversation))];
  const since = roots.map(({ earliestAt }) => earliestAt ?? "").toSorted()[0];
  const until = roots
    .map(({ latestAt }) => latestAt ?? "")
    .toSorted()
    .at(-1);
  const { hits } = await store.search({
    pattern: query,
    mode: "full_text",
    scope: "both",
    sort: "relevance",
    limit: 200,
    conversations,
    around: roots.map(({ id }) => id),
    ...(since !== undefined && isTimestamp(since) ? { since } : {}),
    ...(until !== undefined && isTimestamp(until) ? { before: timeAfter(until, 1) } : {}),
  });
  return new Map(hits.flatMap((hit) => (hit.kind === "file" ? [] : [[hit.id, hit.score]])));
}

/** Best first, without what neither speaks of the query nor stands beside what does; all, in order, if nothing does. */
function byRelevance(items: readonly Expanded[], scores: Scores): readonly Expanded[] {
  const own = (item: Expanded | undefined): number => (item === undefined ? 0 : (scores.get(item.id) ?? 0));
  const worth = items.map((item, at) => {
    if (item.kind === "summary") return summaryShare * own(item);
    const [before, behind] = [items[at - 1], items[at + 1]].map((beside) =>
      beside?.kind === "message" ? beside : undefined,
    );
    // An answer often shares no word with its question, but stands right behind what does.
    const speaks = own(item) + replyShare * own(before) + leadShare * own(behind);
    return speaks > 0 && saysLittle(item.text) && !asks(before) ? 0 : speaks;
  });
  const speaking = items.flatMap((item, at) => ((worth[at] ?? 0) > 0 ? [{ item, worth: worth[at] ?? 0 }] : []));
  return speaking.length === 0 ? items : speaking.toSorted((a, b) => b.worth - a.worth).map(({ item }) => item);
}

/** A summary says again what the messages below it say, and takes as many tokens as several of them. */
const summaryShare = 0.5;
const replyShare = 0.2;
const leadShare = 0.05;

/** Too little to tell anything by itself: "continue", "/", "(no output)". Where somebody asked, it is an answer. */
export const saysLittle = (text: string): boolean =>
  !/^[^\p{L}\p{N}]*(?:[\p{L}\p{N}]+[^\p{L}\p{N}]+){2}[\p{L}\p{N}]/u.test(text) && !/[\p{N}\p{Lo}]/u.test(text);

export const asks = (item: Pick<Expanded, "text"> | undefined): boolean => /[?？]\s*$/u.test(item?.text ?? "");

// ── Parts of texts ───────────────────────────────────────────────────────────────────────────────────────────────────

/** A text longer than what is left is shown in part, if at least this much of it is. */
const partTokensMin = 40;

export interface PartOfText {
  readonly text: string;
  readonly tokens: number;
  readonly isWhole: boolean;
}

/** A text if it fits, else a passage of it around what speaks of the query; null if that would be too little. */
export function partAbout(
  text: string,
  query: string,
  tokensMax: number,
  tokensMin = partTokensMin,
): PartOfText | null {
  if (text.length <= tokensMax * charactersPerTokenMax) {
    const tokens = estimateTokens(text);
    if (tokens <= tokensMax) return { text, tokens, isWhole: true };
  }
  if (tokensMax < tokensMin) return null;
  const sample = text.slice(0, sampleCharacters);
  let width = (tokensMax * sample.length) / Math.max(1, estimateTokens(sample));
  const found = telling(text, queryTerms(query), (width * 2) / 3);
  // Who reads a part understands it best from its beginning.
  const place = found.to < width * 0.9 ? { from: 0, to: 0 } : found;
  for (let attempt = 0; attempt < 8 && width > 1; attempt++) {
    const part = passage(text, place, Math.floor(width));
    const tokens = estimateTokens(part);
    if (tokens <= tokensMax) return { text: part, tokens, isWhole: false };
    width *= Math.min(0.9, (0.98 * tokensMax) / tokens);
  }
  return null;
}

/** Far more than in any language: a longer text is not worth counting. */
const charactersPerTokenMax = 8;
const sampleCharacters = 4_000;
const placesMax = 100;

/** The stretch, at most so wide, with the most different words; a word counts less the more often it is in the text. */
function telling(
  text: string,
  words: readonly string[],
  width: number,
): { readonly from: number; readonly to: number } {
  const lower = text.toLowerCase();
  const places = words
    .flatMap((word) => {
      const found: number[] = [];
      for (let at = lower.indexOf(word); at !== -1 && found.length < placesMax; at = lower.indexOf(word, at + 1))
        found.push(at);
      return found.map((from) => ({ word, from, to: from + word.length, worth: 1 / found.length }));
    })
    .toSorted((one, other) => one.from - other.from);
  let best = { from: 0, to: 0, worth: 0 };
  for (const [index, first] of places.entries()) {
    const here = new Map<string, (typeof places)[number]>();
    for (let next = index; (places[next]?.to ?? Infinity) - first.from <= width; next++) {
      const place = places[next];
      if (place !== undefined && !here.has(place.word)) here.set(place.word, place);
    }
    const worth = [...here.values()].reduce((sum, place) => sum + place.worth, 0);
    if (worth > best.worth) best = { from: first.from, to: Math.max(...[...here.values()].map(({ to }) => to)), worth };
  }
  return best;
}

/** Words as they are matched: beginnings of longer ones, so that forms of a word meet; pairs of characters in CJK. */
export function queryTerms(text: string): readonly string[] {
  const words = [...new Set(text.toLowerCase().match(/[\p{L}\p{N}_]+/gu))];
  const telling = words.filter((word) => !everydayWords.has(word));
  return (telling.length === 0 ? words : telling).flatMap((word) => {
    if (!/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u.test(word))
      return word.length < 3 ? [] : [word.length > 6 ? word.slice(0, 6) : word];
    const letters = [...word];
    return letters.length === 1 ? letters : letters.slice(1).map((letter, at) => `${letters[at] ?? ""}${letter}`);
  });
}
