/**
 * Expands summaries: reads the summaries and messages below them, within a token limit.
 * With a query it returns only what is relevant, best first; without one, everything in order until the limit.
 */

import { everydayWords } from "../base/stop-words.ts";
import { LcmError } from "../base/errors.ts";
import type { ConversationId, Message, MessageId, Role, Summary, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { isWithin, originOf, type Reach } from "./scope.ts";
import { passage } from "../base/excerpt.ts";
import { estimateTokens, sumTokens } from "../base/tokens.ts";
import { isTimestamp, timeAfter, type Timestamp } from "../base/time.ts";

export interface ExpandRequest {
  readonly summaryIds: readonly SummaryId[];
  readonly reach: Reach;
  readonly query?: string;
  /** Levels of summaries to read below the given ones; messages are below the leaves. */
  readonly maxDepth?: number;
  readonly includeMessages?: boolean;
  readonly tokenCap: number;
}

export type Expanded = {
  readonly conversation: ConversationId;
  readonly text: string;
  /** Of `text`, which may be cut. */
  readonly tokens: number;
  readonly isWhole: boolean;
  /** The start of what a summary covers; `latestAt` is its end. */
  readonly at: Timestamp;
  /** Position by relevance, from 0; by order without a query. */
  readonly rank: number;
} & (
  | { readonly kind: "summary"; readonly id: SummaryId; readonly depth: number; readonly latestAt: Timestamp | null }
  | { readonly kind: "message"; readonly id: MessageId; readonly role: Role; readonly seq: number }
);

export interface Expansion {
  /** In the order of the conversation: summaries level by level, then messages. */
  readonly items: readonly Expanded[];
  readonly tokens: number;
  /** Summaries whose sources were read. */
  readonly expanded: readonly SummaryId[];
  /** Messages directly below `expanded` that were not requested. */
  readonly messagesBelow: number;
  /** What did not fit or is not relevant to the query. */
  readonly leftOut: { readonly items: number; readonly tokens: number };
  /** Whether there was more below than one expansion can read. */
  readonly isBounded: boolean;
}

/** Limits of one expansion, and rows per page: a page must not block a host's thread. */
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
  // With a query, one long text may take only half of what is left: the next best should fit too.
  const roomFor = (left: number): number =>
    scores === null ? left : Math.min(left, Math.max(2 * partTokensMin, Math.ceil(left / 2)));
  let tokens = 0;
  for (const [rank, item] of ranked.entries()) {
    const part = partAbout(item.text, query, roomFor(tokenCap - tokens), taken.size === 0 ? 1 : partTokensMin);
    // The rest is less relevant; taking a shorter item would skip a better one.
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

/** Throws `not_found` for ids that do not exist and, just the same, for those beyond the reach. */
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
      hint: "search to find summary ids; they look like sum_0123456789abcdef",
    });
  return [...named.values()];
}

interface Below {
  readonly summaries: readonly Summary[];
  readonly messages: readonly MessageId[];
  readonly expanded: readonly SummaryId[];
  /** Sources never cross conversations, except in a damaged database. */
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
    const here = (await inPages(read, async (ids) => await store.summaries({ ids }))).filter(({ conversation }) =>
      conversations.has(conversation),
    );
    summaries.push(...here);
    level = here.map(({ id }) => id);
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

/** All messages if they are not too many; otherwise the relevant ones and their neighbours, or the first ones. */
function worthReading(messages: readonly MessageId[], scores: Scores | null): readonly MessageId[] {
  if (messages.length <= messagesMax) return messages;
  const isHit = (id: MessageId | undefined): boolean => id !== undefined && scores?.has(id) === true;
  const relevant = messages.filter((id, at) => isHit(id) || isHit(messages[at - 1]) || isHit(messages[at + 1]));
  return (relevant.length === 0 ? messages : relevant).slice(0, messagesMax);
}

export function summaryToItem({ id, conversation, depth, text, tokens, ...summary }: Summary): Expanded {
  const times = { at: summary.earliestAt ?? summary.createdAt, latestAt: summary.latestAt };
  return { kind: "summary", id, conversation, depth, text, tokens, isWhole: true, ...times, rank: 0 };
}

export function messageToItem({ id, conversation, seq, role, text, tokens, at }: Message): Expanded {
  return { kind: "message", id, conversation, seq, role, text, tokens, isWhole: true, at, rank: 0 };
}

type Scores = ReadonlyMap<MessageId | SummaryId, number>;

/** Relevance by the store's own ranking, within the time that the roots cover. */
async function scoresOf(store: Store, roots: readonly Summary[], query: string): Promise<Scores> {
  const conversations = [...new Set(roots.map(({ conversation }) => conversation))];
  const since = roots.map(({ earliestAt }) => earliestAt ?? "").toSorted()[0];
  const until = roots
    .map(({ latestAt }) => latestAt ?? "")
    .toSorted()
    .at(-1);
  const asked = {
    pattern: query,
    mode: "full_text",
    sort: "relevance",
    limit: 200,
    conversations,
    around: roots.map(({ id }) => id),
    ...(since !== undefined && isTimestamp(since) ? { since } : {}),
    ...(until !== undefined && isTimestamp(until) ? { before: timeAfter(until, 1) } : {}),
  } as const;
  const scopes = ["messages", "summaries"] as const;
  const found = await Promise.all(scopes.map(async (scope) => (await store.search({ ...asked, scope })).hits));
  return new Map(found.flat().flatMap((hit) => (hit.kind === "file" ? [] : [[hit.id, hit.score]])));
}

/** Best first, without irrelevant items; all items in order if none is relevant. */
function byRelevance(items: readonly Expanded[], scores: Scores): readonly Expanded[] {
  const own = (item: Expanded | undefined): number => (item === undefined ? 0 : (scores.get(item.id) ?? 0));
  const worth = items.map((item, at) => {
    if (item.kind === "summary") return summaryShare * own(item);
    const [before, after] = [items[at - 1], items[at + 1]].map((beside) =>
      beside?.kind === "message" ? beside : undefined,
    );
    // An answer often shares no word with its question, but directly follows it.
    const score = own(item) + replyShare * own(before) + leadShare * own(after);
    return score > 0 && saysLittle(item.text) && !asks(before) ? 0 : score;
  });
  const relevant = items.flatMap((item, at) => ((worth[at] ?? 0) > 0 ? [{ item, worth: worth[at] ?? 0 }] : []));
  return relevant.length === 0 ? items : relevant.toSorted((a, b) => b.worth - a.worth).map(({ item }) => item);
}

/** A summary repeats the messages below it, and takes as many tokens as several of them. */
const summaryShare = 0.5;
const replyShare = 0.2;
const leadShare = 0.05;

/** Whether a text means little by itself, like "continue" or "(no output)"; after a question it may be the answer. */
export const saysLittle = (text: string): boolean =>
  !/^[^\p{L}\p{N}]*(?:[\p{L}\p{N}]+[^\p{L}\p{N}]+){2}[\p{L}\p{N}]/u.test(text) && !/[\p{N}\p{Lo}]/u.test(text);

export const asks = (item: Pick<Expanded, "text"> | undefined): boolean => /[?？]\s*$/u.test(item?.text ?? "");

/** A text that does not fit is cut, unless less than this is left. */
const partTokensMin = 40;

/** The text if it fits, otherwise the passage most relevant to the query; null if that would be too short. */
export function partAbout(
  text: string,
  query: string,
  tokensMax: number,
  tokensMin = partTokensMin,
): Pick<Expanded, "text" | "tokens" | "isWhole"> | null {
  if (text.length <= tokensMax * charactersPerTokenMax) {
    const tokens = estimateTokens(text);
    if (tokens <= tokensMax) return { text, tokens, isWhole: true };
  }
  if (tokensMax < tokensMin) return null;
  const sample = text.slice(0, sampleCharacters);
  let width = (tokensMax * sample.length) / Math.max(1, estimateTokens(sample));
  const densest = densestPart(text, queryTerms(query), (width * 2) / 3);
  // A passage is easiest to understand from the start of its text.
  const place = densest.to < width * 0.9 ? { from: 0, to: 0 } : densest;
  for (let attempt = 0; attempt < 8 && width > 1; attempt++) {
    const part = passage(text, place, Math.floor(width));
    const tokens = estimateTokens(part);
    if (tokens <= tokensMax) return { text: part, tokens, isWhole: false };
    width *= Math.min(0.9, (0.98 * tokensMax) / tokens);
  }
  return null;
}

/** More than in any language: a longer text cannot fit, so it is not counted. */
const charactersPerTokenMax = 8;
const sampleCharacters = 4_000;
const placesMax = 100;

/** The part of at most `width` characters with the most different words; frequent words count less. */
function densestPart(text: string, words: readonly string[], width: number) {
  const lower = text.toLowerCase();
  const places = words
    .flatMap((word) => {
      const starts: number[] = [];
      for (let at = lower.indexOf(word); at !== -1 && starts.length < placesMax; at = lower.indexOf(word, at + 1))
        starts.push(at);
      return starts.map((from) => ({ word, from, to: from + word.length, worth: 1 / starts.length }));
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

/** Words cut to a stem, so that their forms match; pairs of characters in CJK. */
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
