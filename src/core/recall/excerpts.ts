/**
 * What a question is answered from: the places that a search found, with what was said around them, and the summaries
 * that speak of it. It is what a delegate is given to begin with, and, best first and cut to size, it is the answer
 * where there is no model or no time for one.
 */

import { asks, messageToItem, partAbout, saysLittle, summaryToItem, queryTerms } from "./expand.ts";
import type { Expanded } from "./expand.ts";
import { messageName } from "../model/types.ts";
import type { Message, MessageId, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { quote } from "../base/excerpt.ts";
import { estimateTokens } from "../base/tokens.ts";
import { formatTimestamp } from "../base/time.ts";
import type { Leads, MessageHit } from "./fusion.ts";
import { rankOffset } from "./fusion.ts";

/** Something that was read, or of which a search showed a snippet; the rank tells what answers best. */
export type Excerpt = Expanded & {
  /** The leaf that stands for a message; null if none does. */
  readonly leaf: SummaryId | null;
};

// ── Finding ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What the searches themselves showed, for when nothing more may be read. */
export function snippetsOf({ messages, summaries }: Leads): readonly Excerpt[] {
  return [...messages, ...summaries].map((hit, rank): Excerpt => {
    const { conversation, snippet: text, at } = hit;
    const shown = { conversation, text, tokens: estimateTokens(text), isWhole: false, at, rank, leaf: null };
    return hit.kind === "message"
      ? { ...shown, kind: "message", id: hit.id, role: hit.role, seq: hit.seq }
      : { ...shown, kind: "summary", id: hit.id, depth: hit.depth, at: hit.earliestAt ?? at, latestAt: at };
  });
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * The best places are read with what was said right before and after them: something is asked, and settled a few turns
 * later. Around the others it is read on with what is left in the end: the search itself has ranked replies already.
 */
const exchanges = { places: 2, before: 1, after: 3 };
const others = { before: 1, after: 1 };
/** So far around a place it is looked for words, past the calls of tools and their results. */
const turnsAround = 16;
const leavesMax = 2;
/** What the leaves are sure of; and with less than the least left, reading on brings nothing. */
const leavesShare = 1 / 6;
const tokensLeast = 16;
/** Of the places that are read alone, at once. */
const messagesPerRead = 16;

/** How long a piece may be: so many tokens, or this part of all if that is more. */
const lengths = { found: [80, 1 / 40], around: [48, 1 / 80], summary: [256, 1 / 12] } as const;

/** What the leads lead to, best first, within a number of tokens. */
export async function readLeads(
  store: Store,
  { messages, summaries }: Leads,
  { query, tokensMax }: { readonly query: string; readonly tokensMax: number },
): Promise<readonly Excerpt[]> {
  const pieces = new Map<Excerpt["id"], Expanded>();
  const isFound = new Set(messages.map(({ id }) => id));
  const read = new Map<MessageId, Message>();
  let left = tokensMax;
  const take = (item: Expanded, [least, share]: (typeof lengths)[keyof typeof lengths]): void => {
    const room = Math.min(left, Math.max(least, Math.floor(share * tokensMax)));
    const part = pieces.has(item.id) ? null : partAbout(item.text, query, room, Math.min(tokensLeast, tokensMax));
    if (part === null) return;
    pieces.set(item.id, { ...item, ...part, rank: pieces.size });
    left -= part.tokens;
  };
  const leaves = await store.summaries({ ids: summaries.slice(0, leavesMax).map(({ id }) => id) });
  const tokensForLeaves = leaves.length === 0 ? 0 : leavesShare * tokensMax;
  const takeAround = async (hit: MessageHit, { before, after }: typeof others): Promise<void> => {
    for (const message of await readAround(store, hit, before, after))
      take(messageToItem(message), isFound.has(message.id) ? lengths.found : lengths.around);
  };
  for (const [place, hit] of messages.entries()) {
    if (left <= tokensForLeaves + (pieces.size === 0 ? 0 : tokensLeast)) break;
    if (place < exchanges.places) await takeAround(hit, exchanges);
    else {
      const next = messages.slice(place, place + messagesPerRead).map(({ id }) => id);
      if (!read.has(hit.id)) for (const message of await store.messages({ ids: next })) read.set(message.id, message);
      const message = read.get(hit.id);
      if (message !== undefined) take(messageToItem(message), lengths.found);
    }
  }
  for (const leaf of leaves) take(summaryToItem(leaf), lengths.summary);
  for (const hit of messages.slice(exchanges.places)) {
    if (left <= tokensLeast) break;
    await takeAround(hit, others);
  }
  return await withLeaves(store, [...pieces.values()]);
}

/** A message, and then so many of what was said before and after it. */
async function readAround(store: Store, hit: MessageHit, before: number, after: number): Promise<readonly Message[]> {
  const { id, conversation, seq } = hit;
  const near = await store.messages({ conversation, afterSeq: seq - turnsAround, beforeSeq: seq + turnsAround });
  const found = near.filter((message) => message.id === id);
  const said = near.filter((message) => message.aside === found[0]?.aside && isSaid(message));
  const telling = said.filter(({ text }, at) => !saysLittle(text) || asks(said[at - 1]));
  const earlier = telling.filter((message) => message.seq < seq);
  const later = telling.filter((message) => message.seq > seq);
  return [...found, ...earlier.slice(Math.max(0, earlier.length - before)), ...later.slice(0, after)];
}

/** In words: neither a call of a tool nor what it gave. */
const isSaid = ({ role, parts }: Message): boolean =>
  role !== "tool" &&
  parts.some(({ type, text, toolCallId }) => type === "text" && toolCallId === null && (text ?? "").trim() !== "");

/** Asked for all at once: one after the other, the store's thread would be waited for as often. */
export const withLeaves = async (store: Store, items: readonly Expanded[]): Promise<readonly Excerpt[]> =>
  await Promise.all(
    items.map(async (item) => {
      const [leaf = null] = item.kind === "message" ? await store.coveredBy(item.id) : [];
      return { ...item, leaf };
    }),
  );

// ── Showing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** All of it in the order of the conversation: a record to answer from. */
export const recordOf = (pieces: readonly Excerpt[]): string =>
  show(stretchesOf(pieces), (...asked) => [labelOf(...asked)]);

/** In fewer tokens than these there is no room for times and leaves, for two passages, or for any label. */
const roomFor = { fullLabels: 240, second: 80, labels: 16 };
/** What is left to the next best; and how little may be shown of a text that does not fit. */
const nextShare = 0.6;
const partTokensMin = 20;

/** As much as fits, best first; the best in any case, around what it says of the query if it is too long. */
export function excerptsOf(
  pieces: readonly Excerpt[],
  { query, maxTokens, zone }: { readonly query: string; readonly maxTokens: number; readonly zone?: string },
): { readonly text: string; readonly shown: readonly Excerpt[] } {
  const isFull = maxTokens >= roomFor.fullLabels;
  const label: Labeller = (piece, hasTime, hasLeaf) =>
    maxTokens < roomFor.labels ? [] : [labelOf(piece, isFull && hasTime, isFull && hasLeaf, zone)];
  const showBestFirst = (some: readonly Excerpt[]): string =>
    show(
      stretchesOf(some).toSorted((one, other) => bestRank(one) - bestRank(other)),
      label,
    );
  const shown: Excerpt[] = [];
  let left = maxTokens;
  for (const [rank, piece] of bestFirst(pieces, query).entries()) {
    const least = rank === 0 ? 1 : partTokensMin;
    let part = partAbout(piece.text, query, left < roomFor.second ? left : Math.ceil((1 - nextShare) * left), least);
    while (part !== null) {
      left = maxTokens - estimateTokens(showBestFirst([...shown, { ...piece, ...part, rank }]));
      if (left >= 0) break;
      part = partAbout(piece.text, query, part.tokens + left, least);
    }
    if (part === null && rank > 0) break;
    shown.push({ ...piece, ...part, rank });
  }
  return { text: showBestFirst(shown), shown };
}

/** What speaks of the query in its own words before what stands beside it, and what tells before what asks. */
function bestFirst(pieces: readonly Excerpt[], query: string): readonly Excerpt[] {
  const words = queryTerms(query);
  const worth = new Map(
    pieces.map((piece) => {
      const text = piece.text.toLowerCase();
      const own = words.filter((word) => text.includes(word)).length / Math.max(1, words.length);
      return [piece, ((0.5 + own) * (asks(piece) ? 0.8 : 1)) / (rankOffset + piece.rank)];
    }),
  );
  return pieces.toSorted((one, other) => (worth.get(other) ?? 0) - (worth.get(one) ?? 0));
}

type Labeller = (piece: Excerpt, hasTime: boolean, hasLeaf: boolean) => readonly string[];

const bestRank = (stretch: readonly Excerpt[]): number => Math.min(...stretch.map(({ rank }) => rank));

/** Messages that follow one another make a stretch, also where calls of tools between them are left out. */
function stretchesOf(pieces: readonly Excerpt[]): readonly (readonly Excerpt[])[] {
  const stretches: Excerpt[][] = [];
  for (const piece of pieces.toSorted(byPlace)) {
    const stretch = stretches.at(-1);
    const last = stretch?.at(-1);
    if (stretch !== undefined && last !== undefined && follows(last, piece)) stretch.push(piece);
    else stretches.push([piece]);
  }
  return stretches;
}

const gapMax = 3;

const follows = (one: Excerpt, other: Excerpt): boolean =>
  one.kind === "message" &&
  other.kind === "message" &&
  one.conversation === other.conversation &&
  one.leaf === other.leaf &&
  other.seq > one.seq &&
  other.seq <= one.seq + gapMax;

/** A summary stands at the beginning of what it covers. */
function byPlace(one: Excerpt, other: Excerpt): number {
  if (one.conversation !== other.conversation) return one.conversation - other.conversation;
  if (one.kind === "message" && other.kind === "message") return one.seq - other.seq;
  return one.at === other.at ? (one.kind === "summary" ? -1 : 1) : one.at < other.at ? -1 : 1;
}

/**
 * `[2026-02-17 15:30 UTC · user · msg_42 · in sum_…]`, and below it what was said. The time stands where a stretch begins,
 * a leaf once. What was said is anybody's: quoted, no line of it can pass for a label or for a line of ours.
 */
function show(stretches: readonly (readonly Excerpt[])[], label: Labeller): string {
  const named = new Set<SummaryId | null>([null]);
  const blocks = stretches.map((stretch) => {
    const lines = stretch.flatMap((piece, at) => {
      const above = label(piece, at === 0, !named.has(piece.leaf));
      named.add(piece.leaf);
      return [...above, quote(piece.text.trim())];
    });
    return lines.join("\n");
  });
  return blocks.join("\n\n");
}

function labelOf(piece: Excerpt, hasTime: boolean, hasLeaf: boolean, zone?: string): string {
  const name = piece.kind === "message" ? messageName(piece.id) : piece.id;
  const words = [
    ...(hasTime ? [formatTimestamp(piece.at, zone)] : []),
    piece.kind === "message" ? piece.role : "summary",
    name,
    ...(hasLeaf && piece.leaf !== null ? [`in ${piece.leaf}`] : []),
  ];
  return `[${words.join(" · ")}]`;
}
