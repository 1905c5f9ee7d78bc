/**
 * Turns search hits into excerpts: reads the messages around each hit and the best leaves, and formats them.
 * Excerpts are what a delegate starts from, and the answer itself if there is no model or no time.
 */

import { asks, messageToItem, partAbout, saysLittle, summaryToItem, queryTerms, type Expanded } from "./expand.ts";
import { messageName, type Message, type MessageId, type SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { quote } from "../base/excerpt.ts";
import { estimateTokens } from "../base/tokens.ts";
import { formatTimestamp } from "../base/time.ts";
import type { Leads, MessageHit } from "./leads.ts";

/** Text that was read or is a search snippet; a lower rank is more relevant. */
export type Excerpt = Expanded & {
  /** The leaf that covers a message; null if none does. */
  readonly leaf: SummaryId | null;
};

/** Flattens the first ranks. */
const rankOffset = 10;

/** Search snippets as excerpts, for when nothing more can be read. */
export function snippetsOf({ messages, summaries }: Leads): readonly Excerpt[] {
  return [...messages, ...summaries].map((hit, rank): Excerpt => {
    const { conversation, snippet: text, at } = hit;
    const shown = { conversation, text, tokens: estimateTokens(text), isWhole: false, at, rank, leaf: null };
    return hit.kind === "message"
      ? { ...shown, kind: "message", id: hit.id, role: hit.role, seq: hit.seq }
      : { ...shown, kind: "summary", id: hit.id, depth: hit.depth, at: hit.earliestAt ?? at, latestAt: at };
  });
}

/**
 * The best hits are read with the messages around them, because a question is often settled a few turns later. Around
 * the other hits, messages are read last, with the tokens that remain.
 */
const exchanges = { hits: 2, before: 1, after: 3 };
const others = { before: 1, after: 1 };
/** How far around a hit to look for prose, past tool calls and their results. */
const turnsAround = 16;
const leavesMax = 2;
/** Reserved for leaves. */
const leavesShare = 1 / 6;
/** With less than this left, reading more is useless. */
const tokensLeast = 16;
const messagesPerRead = 16;

/** Limit of one excerpt: a number of tokens, or this share of the whole if that is more. */
const lengths = { found: [80, 1 / 40], around: [48, 1 / 80], summary: [256, 1 / 12] } as const;

/** Reads the leads, best first, up to a number of tokens. */
export async function readLeads(
  store: Store,
  { messages, summaries }: Leads,
  { query, tokensMax }: { readonly query: string; readonly tokensMax: number },
): Promise<readonly Excerpt[]> {
  const excerpts = new Map<Excerpt["id"], Expanded>();
  const hitIds = new Set(messages.map(({ id }) => id));
  const read = new Map<MessageId, Message>();
  let left = tokensMax;
  const take = (item: Expanded, [least, share]: (typeof lengths)[keyof typeof lengths]): void => {
    const room = Math.min(left, Math.max(least, Math.floor(share * tokensMax)));
    const part = excerpts.has(item.id) ? null : partAbout(item.text, query, room, Math.min(tokensLeast, tokensMax));
    if (part === null) return;
    excerpts.set(item.id, { ...item, ...part, rank: excerpts.size });
    left -= part.tokens;
  };
  const leaves = await store.summaries({ ids: summaries.slice(0, leavesMax).map(({ id }) => id) });
  const tokensForLeaves = leaves.length === 0 ? 0 : leavesShare * tokensMax;
  const takeAround = async (hit: MessageHit, { before, after }: typeof others): Promise<void> => {
    for (const message of await readAround(store, hit, before, after))
      take(messageToItem(message), hitIds.has(message.id) ? lengths.found : lengths.around);
  };
  for (const [at, hit] of messages.entries()) {
    if (left <= tokensForLeaves + (excerpts.size === 0 ? 0 : tokensLeast)) break;
    if (at < exchanges.hits) await takeAround(hit, exchanges);
    else {
      const next = messages.slice(at, at + messagesPerRead).map(({ id }) => id);
      if (!read.has(hit.id)) for (const message of await store.messages({ ids: next })) read.set(message.id, message);
      const message = read.get(hit.id);
      if (message !== undefined) take(messageToItem(message), lengths.found);
    }
  }
  for (const leaf of leaves) take(summaryToItem(leaf), lengths.summary);
  for (const hit of messages.slice(exchanges.hits)) {
    if (left <= tokensLeast) break;
    await takeAround(hit, others);
  }
  return await withLeaves(store, [...excerpts.values()]);
}

/** A message, then its neighbours before and after it. */
async function readAround(store: Store, hit: MessageHit, before: number, after: number): Promise<readonly Message[]> {
  const { id, conversation, seq } = hit;
  const near = await store.messages({ conversation, afterSeq: seq - turnsAround, beforeSeq: seq + turnsAround });
  const own = near.filter((message) => message.id === id);
  const said = near.filter((message) => message.aside === own[0]?.aside && isProse(message));
  const telling = said.filter(({ text }, at) => !saysLittle(text) || asks(said[at - 1]));
  const earlier = telling.filter((message) => message.seq < seq);
  const later = telling.filter((message) => message.seq > seq);
  return [...own, ...earlier.slice(Math.max(0, earlier.length - before)), ...later.slice(0, after)];
}

/** Neither a tool call nor its result. */
const isProse = ({ role, parts }: Message): boolean =>
  role !== "tool" &&
  parts.some(({ type, text, toolCallId }) => type === "text" && toolCallId === null && (text ?? "").trim() !== "");

/** All at once, to wait for the store's thread only once. */
export const withLeaves = async (store: Store, items: readonly Expanded[]): Promise<readonly Excerpt[]> =>
  await Promise.all(
    items.map(async (item) => {
      const [leaf = null] = item.kind === "message" ? await store.coveredBy(item.id) : [];
      return { ...item, leaf };
    }),
  );

/** All excerpts in the order of the conversation: the record that a delegate answers from. */
export const recordOf = (excerpts: readonly Excerpt[]): string =>
  show(consecutive(excerpts), (...asked) => [labelOf(...asked)]);

/** Token limits below which there is no room for full labels, a second passage, or any label. */
const roomFor = { fullLabels: 240, second: 80, labels: 16 };
/** Share left to the next best excerpt, and the shortest part of a text worth showing. */
const nextShare = 0.6;
const partTokensMin = 20;

/** As many excerpts as fit, best first; always the best one, cut to its most relevant passage if it is too long. */
export function excerptsOf(
  excerpts: readonly Excerpt[],
  { query, maxTokens, zone }: { readonly query: string; readonly maxTokens: number; readonly zone?: string },
): { readonly text: string; readonly shown: readonly Excerpt[] } {
  const isFull = maxTokens >= roomFor.fullLabels;
  const label: Labeller = (excerpt, hasTime, hasLeaf) =>
    maxTokens < roomFor.labels ? [] : [labelOf(excerpt, isFull && hasTime, isFull && hasLeaf, zone)];
  const showBestFirst = (some: readonly Excerpt[]): string =>
    show(
      consecutive(some).toSorted((one, other) => bestRank(one) - bestRank(other)),
      label,
    );
  const shown: Excerpt[] = [];
  let left = maxTokens;
  for (const [rank, excerpt] of bestFirst(excerpts, query).entries()) {
    const least = rank === 0 ? 1 : partTokensMin;
    let part = partAbout(excerpt.text, query, left < roomFor.second ? left : Math.ceil((1 - nextShare) * left), least);
    while (part !== null) {
      left = maxTokens - estimateTokens(showBestFirst([...shown, { ...excerpt, ...part, rank }]));
      if (left >= 0) break;
      part = partAbout(excerpt.text, query, part.tokens + left, least);
    }
    if (part === null && rank > 0) break;
    shown.push({ ...excerpt, ...part, rank });
  }
  return { text: showBestFirst(shown), shown };
}

/** Prefers texts that contain the query's words, and statements over questions. */
function bestFirst(excerpts: readonly Excerpt[], query: string): readonly Excerpt[] {
  const words = queryTerms(query);
  const worth = new Map(
    excerpts.map((excerpt) => {
      const text = excerpt.text.toLowerCase();
      const own = words.filter((word) => text.includes(word)).length / Math.max(1, words.length);
      return [excerpt, ((0.5 + own) * (asks(excerpt) ? 0.8 : 1)) / (rankOffset + excerpt.rank)];
    }),
  );
  return excerpts.toSorted((one, other) => (worth.get(other) ?? 0) - (worth.get(one) ?? 0));
}

type Labeller = (excerpt: Excerpt, hasTime: boolean, hasLeaf: boolean) => readonly string[];

const bestRank = (group: readonly Excerpt[]): number => Math.min(...group.map(({ rank }) => rank));

/** Groups messages that follow one another, ignoring tool calls in between. */
function consecutive(excerpts: readonly Excerpt[]): readonly (readonly Excerpt[])[] {
  const groups: Excerpt[][] = [];
  for (const excerpt of excerpts.toSorted(byPlace)) {
    const group = groups.at(-1);
    const last = group?.at(-1);
    if (group !== undefined && last !== undefined && follows(last, excerpt)) group.push(excerpt);
    else groups.push([excerpt]);
  }
  return groups;
}

const gapMax = 3;

const follows = (one: Excerpt, other: Excerpt): boolean =>
  one.kind === "message" &&
  other.kind === "message" &&
  one.conversation === other.conversation &&
  one.leaf === other.leaf &&
  other.seq > one.seq &&
  other.seq <= one.seq + gapMax;

/** A summary is sorted by the start of what it covers. */
function byPlace(one: Excerpt, other: Excerpt): number {
  if (one.conversation !== other.conversation) return one.conversation - other.conversation;
  if (one.kind === "message" && other.kind === "message") return one.seq - other.seq;
  return one.at === other.at ? (one.kind === "summary" ? -1 : 1) : one.at < other.at ? -1 : 1;
}

/**
 * `[2026-02-17 15:30 UTC · user · msg_1-42 · in sum_…]`, then the text. The time is shown once per group, each leaf once.
 * The text is quoted, so no line of it can pass for a label.
 */
function show(groups: readonly (readonly Excerpt[])[], label: Labeller): string {
  const named = new Set<SummaryId | null>([null]);
  const blocks = groups.map((group) => {
    const lines = group.flatMap((excerpt, at) => {
      const above = label(excerpt, at === 0, !named.has(excerpt.leaf));
      named.add(excerpt.leaf);
      return [...above, quote(excerpt.text.trim())];
    });
    return lines.join("\n");
  });
  return blocks.join("\n\n");
}

function labelOf(excerpt: Excerpt, hasTime: boolean, hasLeaf: boolean, zone?: string): string {
  const name = excerpt.kind === "message" ? messageName(excerpt.id) : excerpt.id;
  const words = [
    ...(hasTime ? [formatTimestamp(excerpt.at, zone)] : []),
    excerpt.kind === "message" ? excerpt.role : "summary",
    name,
    ...(hasLeaf && excerpt.leaf !== null ? [`in ${excerpt.leaf}`] : []),
  ];
  return `[${words.join(" · ")}]`;
}
