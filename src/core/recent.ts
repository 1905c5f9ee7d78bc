/**
 * What happened between two times, told by summaries: what stands in each conversation's context for that time, in finer
 * summaries as far as they fit, and raw messages where nothing is summarised yet. When not all of it fits, the newest
 * stays. Work follows from how much may be told, never from how long a conversation is.
 */

import { LcmError } from "./errors.ts";
import type {
  ContextItem,
  Conversation,
  ConversationId,
  Message,
  MessageId,
  Role,
  Sources,
  Summary,
  SummaryId,
  Timestamp,
} from "./model.ts";
import type { Clock, Store } from "./ports.ts";
import { timeBound } from "./recall.ts";
import { isWithin, originOf } from "./scope.ts";
import type { Reach } from "./scope.ts";
import { estimateTokens, excerpt, msToTimestamp, timestampToMs } from "./text.ts";

export interface RecentRequest {
  readonly reach: Reach;
  /** Any time that `parseTimestamp` reads; `since` is inclusive, `before` exclusive. Left out: the last 24 hours. */
  readonly since?: string;
  readonly before?: string;
  readonly tokenCap: number;
}

export interface Recent {
  readonly since: Timestamp;
  readonly before: Timestamp | null;
  /** Oldest first. */
  readonly items: readonly RecentItem[];
  readonly tokens: number;
  /** What stands for that time and did not fit. */
  readonly leftOut: { readonly items: number; readonly tokens: number };
  /** Whether there was more than was counted. */
  readonly isBounded: boolean;
}

export type RecentItem = {
  readonly conversation: ConversationId;
  readonly earliestAt: Timestamp;
  readonly latestAt: Timestamp;
  readonly text: string;
  readonly tokens: number;
  /** False where only an excerpt is told. */
  readonly isWhole: boolean;
} & (
  | { readonly kind: "summary"; readonly id: SummaryId; readonly depth: number }
  | { readonly kind: "message"; readonly id: MessageId; readonly role: Role }
);

const dayMs = 86_400_000;
/** Conversations that are looked at, the newest ones. */
const conversationsMax = 50;
/** Items of one context that are counted, the newest ones; and rows that are read at a time. */
const refsMax = 2_000;
const rowsAtOnce = 50;
/** A raw message with more to say is told in an excerpt. */
const messageCharactersMax = 400;

export async function recent(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  request: RecentRequest,
): Promise<Recent> {
  const { reach, tokenCap } = request;
  if (!Number.isSafeInteger(tokenCap) || tokenCap < 1) {
    throw new LcmError("invalid", `tokenCap is ${tokenCap}, but must be a whole number from 1`);
  }
  const before = timeBound("before", request.before);
  const dayBefore = Math.max(0, timestampToMs(before ?? clock.now()) - dayMs);
  const since = timeBound("since", request.since) ?? msToTimestamp(dayBefore);
  if (before !== null && before <= since) {
    throw new LcmError("invalid", `since is ${since}, which is not earlier than before, ${before}`);
  }
  const span = { since, before };
  const lived = (await conversationsOf(store, reach)).filter(({ lastMessageAt }) => (lastMessageAt ?? "") >= since);
  const standing: Standing[] = [];
  for (const conversation of lived.slice(0, conversationsMax)) {
    standing.push(await standingIn(store, reach, conversation.id, span, tokenCap));
  }
  const newestFirst = standing.flatMap(({ items }) => items).toSorted((a, b) => compare(b.latestAt, a.latestAt));
  const kept = keepNewest(newestFirst, tokenCap);
  const missed = newestFirst.slice(kept.length);
  const items = await refine(store, span, kept.toReversed(), tokenCap);
  const sum = (of: (each: Standing) => number): number => standing.reduce((total, each) => total + of(each), 0);
  return {
    ...span,
    items: items.toSorted((a, b) => compare(a.earliestAt, b.earliestAt)),
    tokens: tokensOf(items),
    leftOut: {
      items: sum((each) => each.unread) + missed.length,
      tokens: sum((each) => each.unreadTokens) + tokensOf(missed),
    },
    isBounded: lived.length > conversationsMax || standing.some((each) => each.isBounded),
  };
}

const compare = (a: Timestamp, b: Timestamp): number => (a < b ? -1 : a > b ? 1 : 0);

async function conversationsOf(store: Store, { conversations }: Reach): Promise<readonly Conversation[]> {
  if (conversations === null) return await store.conversations();
  const named = new Set(conversations);
  return (await store.conversations({ includeHidden: true })).filter(({ id }) => named.has(id));
}

// ── What stands there for that time ──────────────────────────────────────────────────────────────────────────────────

interface Span {
  readonly since: Timestamp;
  readonly before: Timestamp | null;
}

interface Standing {
  /** Newest first, as many as may be told. */
  readonly items: readonly RecentItem[];
  /** Items of that time beyond these. */
  readonly unread: number;
  readonly unreadTokens: number;
  readonly isBounded: boolean;
}

const isInSpan = (item: RecentItem, { since, before }: Span): boolean =>
  item.latestAt >= since && (before === null || item.earliestAt < before);

async function standingIn(
  store: Store,
  reach: Reach,
  conversation: ConversationId,
  span: Span,
  tokenCap: number,
): Promise<Standing> {
  const { since, before } = span;
  const from = await firstPlace(store, conversation, ({ latestAt }) => latestAt >= since);
  const to = before === null ? null : await firstPlace(store, conversation, ({ earliestAt }) => earliestAt >= before);
  const window = { after: from - 1, keep: "newest", limit: refsMax } as const;
  const refs = await store.context(conversation, to === null ? window : { ...window, before: to });
  const items: RecentItem[] = [];
  let left = refs;
  // One more than may be told is read, so that what is missing is known to be.
  for (let tokens = 0; left.length > 0 && tokens <= tokenCap;) {
    const rows = await itemsOf(store, left.slice(-rowsAtOnce), reach);
    const read = await narrow(
      store,
      span,
      rows.filter((item) => isInSpan(item, span)),
    );
    items.push(...read.toReversed());
    tokens += tokensOf(read);
    left = left.slice(0, -rowsAtOnce);
  }
  return { items, unread: left.length, unreadTokens: tokensOf(left), isBounded: refs.length === refsMax };
}

/**
 * The ordinal at which a context turns to being of a time, found by halving: times rise along a context, but for a few
 * messages that came late.
 */
async function firstPlace(
  store: Store,
  conversation: ConversationId,
  isThere: (item: RecentItem) => boolean,
): Promise<number> {
  const [[first], [last]] = await Promise.all([
    store.context(conversation, { limit: 1 }),
    store.context(conversation, { limit: 1, keep: "newest" }),
  ]);
  let [low, high] = [first?.ordinal ?? 0, (last?.ordinal ?? -1) + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [ref] = await store.context(conversation, { after: middle - 1, before: high, limit: 1 });
    const [item] = ref === undefined ? [] : await itemsOf(store, [ref], null);
    if (ref === undefined || (item !== undefined && isThere(item))) high = middle;
    else low = ref.ordinal + 1;
  }
  return low;
}

/** In order; what says nothing is left out, and so is what a summary carried over while its origin is told itself. */
async function itemsOf(
  store: Store,
  refs: readonly ContextItem[],
  reach: Reach | null,
): Promise<readonly RecentItem[]> {
  const messageIds = refs.flatMap((ref) => (ref.kind === "message" ? [ref.id] : []));
  const summaryIds = refs.flatMap((ref) => (ref.kind === "summary" ? [ref.id] : []));
  const [messages, summaries] = await Promise.all([
    messageIds.length === 0 ? [] : store.messages({ ids: messageIds }),
    summaryIds.length === 0 ? [] : store.summaries({ ids: summaryIds }),
  ]);
  const itemOf = new Map<ContextItem["id"], RecentItem>();
  for (const message of messages) itemOf.set(message.id, messageToItem(message));
  for (const summary of summaries) {
    if (reach === null || !(await isToldElsewhere(store, reach, summary)))
      itemOf.set(summary.id, summaryToItem(summary));
  }
  return refs.flatMap(({ id }) => itemOf.get(id) ?? []).filter(({ text }) => reach === null || text.trim() !== "");
}

async function isToldElsewhere(store: Store, reach: Reach, summary: Summary): Promise<boolean> {
  const origin = await originOf(store, reach, summary);
  return origin !== null && (await isWithin(store, reach, origin.conversation));
}

function messageToItem({ id, conversation, role, text, at }: Message): RecentItem {
  const isWhole = text.length <= messageCharactersMax;
  const told = isWhole ? text : excerpt(text, { from: 0, to: 0 }, messageCharactersMax);
  const tokens = estimateTokens(told);
  return { kind: "message", id, conversation, role, earliestAt: at, latestAt: at, text: told, tokens, isWhole };
}

function summaryToItem({ id, conversation, depth, text, ...summary }: Summary): RecentItem {
  const latestAt = summary.latestAt ?? summary.createdAt;
  const times = { earliestAt: summary.earliestAt ?? latestAt, latestAt };
  return { kind: "summary", id, conversation, depth, ...times, text, tokens: estimateTokens(text), isWhole: true };
}

const tokensOf = (items: readonly { readonly tokens: number }[]): number =>
  items.reduce((sum, { tokens }) => sum + tokens, 0);

// ── What fits ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Without gaps: what is older than something that does not fit is left out too. The newest is told at least in part. */
function keepNewest(newestFirst: readonly RecentItem[], tokenCap: number): readonly RecentItem[] {
  const kept: RecentItem[] = [];
  let left = tokenCap;
  for (const item of newestFirst) {
    if (item.tokens > left) break;
    kept.push(item);
    left -= item.tokens;
  }
  const [newest] = newestFirst;
  return kept.length > 0 || newest === undefined ? kept : [inPart(newest, tokenCap)];
}

function inPart(item: RecentItem, tokensMax: number): RecentItem {
  for (let width = tokensMax * 4; ; width = Math.floor(width / 2)) {
    const text = excerpt(item.text, { from: 0, to: 0 }, width);
    const tokens = estimateTokens(text);
    if (tokens <= tokensMax) return { ...item, text, tokens, isWhole: false };
  }
}

/** The coarsest summaries, newest first, replaced by what they were made from, as far as that fits. */
async function refine(
  store: Store,
  span: Span,
  kept: readonly RecentItem[],
  tokenCap: number,
): Promise<readonly RecentItem[]> {
  let told = kept;
  let left = tokenCap - tokensOf(kept);
  for (let depth = Math.max(0, ...kept.map(depthOf)); depth > 0; depth--) {
    const finer = await finerOf(
      store,
      span,
      told.filter((item) => depthOf(item) === depth),
    );
    const replaced = new Map<RecentItem, readonly RecentItem[]>();
    for (const [item, sources] of [...finer].toReversed()) {
      const more = tokensOf(sources) - item.tokens;
      if (more > left) continue;
      replaced.set(item, sources);
      left -= more;
    }
    told = told.flatMap((item) => replaced.get(item) ?? [item]);
  }
  return told;
}

/** Of a summary that reaches beyond the span, what is of the span, if that takes less than all of it. */
async function narrow(store: Store, span: Span, items: readonly RecentItem[]): Promise<readonly RecentItem[]> {
  const isBeyond = ({ earliestAt, latestAt }: RecentItem): boolean =>
    earliestAt < span.since || (span.before !== null && latestAt >= span.before);
  let narrowed = items;
  for (let depth = Math.max(0, ...items.filter(isBeyond).map(depthOf)); depth > 0; depth--) {
    const beyond = narrowed.filter((item) => isBeyond(item) && depthOf(item) === depth);
    const finer = await finerOf(store, span, beyond);
    const isLess = (item: RecentItem): boolean => tokensOf(finer.get(item) ?? [item]) < item.tokens;
    narrowed = narrowed.flatMap((item) => (isLess(item) ? (finer.get(item) ?? []) : [item]));
  }
  return narrowed;
}

/** How many times a summary can be told by finer ones. */
const depthOf = (item: RecentItem): number => (item.kind === "summary" && item.isWhole ? item.depth : 0);

/** The summaries that each was made from, of the span alone; without those of which there are none. */
async function finerOf(
  store: Store,
  span: Span,
  coarse: readonly RecentItem[],
): Promise<ReadonlyMap<RecentItem, readonly RecentItem[]>> {
  const ids = coarse.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
  const sources = ids.length === 0 ? new Map<SummaryId, Sources>() : await store.sources(ids);
  const sourceIds = [...sources.values()].flatMap(({ summaries }) => summaries);
  const read = sourceIds.length === 0 ? [] : await store.summaries({ ids: sourceIds });
  const inSpan = new Map(read.map((summary) => [summary.id, summaryToItem(summary)]));
  for (const [id, item] of inSpan) if (!isInSpan(item, span)) inSpan.delete(id);
  const finer = new Map<RecentItem, readonly RecentItem[]>();
  for (const item of coarse) {
    const below = item.kind === "summary" ? (sources.get(item.id)?.summaries ?? []) : [];
    const items = below.flatMap((id) => inSpan.get(id) ?? []);
    if (items.length > 0) finer.set(item, items);
  }
  return finer;
}
