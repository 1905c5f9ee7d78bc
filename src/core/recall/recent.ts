/**
 * What happened between two times, told by summaries: what stands in each conversation's context for that time, and raw
 * messages where nothing is summarised yet. First comes an overview of the whole time, cut where it must be; with room to
 * spare it is told by finer summaries. Of what reaches beyond the time, as little is told as can be. Work follows from
 * how much may be told, never from how long a conversation is.
 */

import { cutToTokens } from "./citations.ts";
import { checkWhole, LcmError } from "../base/errors.ts";
import type {
  ContextItem,
  ConversationId,
  Message,
  MessageId,
  Ref,
  Role,
  Sources,
  Summary,
  SummaryId,
} from "../model/types.ts";
import type { Clock, Store } from "../model/store.ts";
import { timeBound } from "./grep.ts";
import { conversationsWithin, isWithin, originOf } from "./scope.ts";
import type { Reach } from "./scope.ts";
import { passage } from "../base/excerpt.ts";
import { estimateTokens, sumTokens } from "../base/tokens.ts";
import { dayMs, parseTimestamp, timeAfter } from "../base/time.ts";
import { compare } from "../base/format.ts";
import type { Timestamp } from "../base/time.ts";

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
  /** False where only a part is told; `…` of a summary that reaches beyond the time and cannot be cut to it. */
  readonly isWhole: boolean;
} & (
  | { readonly kind: "summary"; readonly id: SummaryId; readonly depth: number }
  | { readonly kind: "message"; readonly id: MessageId; readonly role: Role }
);

/** Conversations that are looked at, the newest ones. */
const conversationsMax = 50;
/** Items of one context that are counted, the newest ones; and rows that are read at a time. */
const refsMax = 2_000;
/** Items on each side of a time that are looked at for strays, and how many decide where it is. */
const strayMax = 32;
const strayRowsMax = 200;
const votersMax = 3;
const rowsAtOnce = 50;
/** A raw message with more to say is told in an excerpt. */
const messageCharactersMax = 400;

export async function recent(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  request: RecentRequest,
): Promise<Recent> {
  const { reach, tokenCap } = request;
  checkWhole("tokenCap", tokenCap);
  const before = timeBound("before", request.before);
  const since = timeBound("since", request.since) ?? timeAfter(before ?? clock.now(), -dayMs);
  if (before !== null && before <= since) {
    throw new LcmError("invalid", `since is ${since}, which is not earlier than before, ${before}`);
  }
  const telling = { store, reach, since, before, tokenCap };
  const lived = (await conversationsWithin(store, reach)).filter(({ lastMessageAt }) => (lastMessageAt ?? "") >= since);
  const standing: Standing[] = [];
  for (const { id } of lived.slice(0, conversationsMax)) {
    const found = await standingIn(telling, id);
    standing.push(found.items.length + found.unread.length > 0 ? found : await strayIn(telling, id));
  }
  const found = standing.flatMap(({ items }) => items).toSorted((a, b) => compare(b.latestAt, a.latestAt));
  const fitting = fit(telling, found);
  const items = sumTokens(found) > tokenCap ? fitting : await refine(telling, found);
  const ids = new Set(fitting.map(({ id }) => id));
  const leftOut = [...standing.flatMap(({ unread }) => unread), ...found.filter(({ id }) => !ids.has(id))];
  return {
    since,
    before,
    items: items.toReversed().toSorted((a, b) => compare(a.earliestAt, b.earliestAt)),
    tokens: sumTokens(items),
    leftOut: { items: leftOut.length, tokens: sumTokens(leftOut) },
    isBounded: lived.length > conversationsMax || standing.some((each) => each.isBounded),
  };
}

// ── What stands there for that time ──────────────────────────────────────────────────────────────────────────────────

type Span = Pick<Recent, "since" | "before">;

/** What is told from, of which time, and how much of it. */
interface Telling extends Span {
  readonly store: Store;
  readonly reach: Reach;
  readonly tokenCap: number;
}

interface Standing {
  /** Newest first of each kind, as many as may be told. */
  readonly items: readonly RecentItem[];
  /** Items of that time beyond these. */
  readonly unread: readonly ContextItem[];
  readonly isBounded: boolean;
}

const isInSpan = (item: RecentItem, { since, before }: Span): boolean =>
  item.latestAt >= since && (before === null || item.earliestAt < before);

async function standingIn(telling: Telling, conversation: ConversationId): Promise<Standing> {
  const { store, reach, since, before } = telling;
  const from = await firstPlace(store, conversation, ({ latestAt }) => latestAt >= since);
  const to = before === null ? null : await firstPlace(store, conversation, ({ earliestAt }) => earliestAt >= before);
  const window = { after: from - 1, keep: "newest", limit: refsMax } as const;
  const within = await store.context(conversation, to === null ? window : { ...window, before: to });
  const early = await store.context(conversation, { before: from, keep: "newest", limit: strayMax });
  const late = to === null ? [] : await store.context(conversation, { after: to - 1, limit: strayMax });
  const stray = await itemsOf(store, [...early, ...late], reach);
  const ids = new Set(stray.filter((item) => isInSpan(item, telling)).map(({ id }) => id));
  const refs = [...early.filter(({ id }) => ids.has(id)), ...within, ...late.filter(({ id }) => ids.has(id))];
  // Strays as far away as was looked: there may be more beyond.
  const isUnsure = [early[0], late.at(-1)].some((ref) => ref !== undefined && ids.has(ref.id) && ids.size >= strayMax);
  const summaries = await readNewest(telling, refs, "summary");
  const messages = await readNewest(telling, refs, "message");
  return {
    items: [...summaries.items, ...messages.items],
    unread: [...summaries.unread, ...messages.unread],
    isBounded: within.length === refsMax || isUnsure,
  };
}

/** One more than may be told is read, so that what is missing is known to be. */
async function readNewest(
  telling: Telling,
  refs: readonly ContextItem[],
  kind: Ref["kind"],
): Promise<Pick<Standing, "items" | "unread">> {
  const items: RecentItem[] = [];
  let unread = refs.filter((ref) => ref.kind === kind);
  for (let tokens = 0; unread.length > 0 && tokens <= telling.tokenCap;) {
    const rows = await itemsOf(telling.store, unread.slice(-rowsAtOnce), telling.reach);
    const inSpan = rows.filter((item) => isInSpan(item, telling));
    const clipped = inSpan.map((item) => clip(item, telling));
    const read = await narrow(telling, clipped);
    items.push(...read.toReversed());
    tokens += read.reduce((sum, item) => sum + leastOf(item), 0);
    unread = unread.slice(0, -rowsAtOnce);
  }
  return { items, unread };
}

/** Where times do not rise at all, what was said in the span is looked for by its time alone. */
async function strayIn({ store, since, before }: Telling, conversation: ConversationId): Promise<Standing> {
  const within = { conversation, since, limit: strayRowsMax, keep: "newest" } as const;
  const messages = await store.messages(before === null ? within : { ...within, before });
  const said = messages.filter(({ text, aside }) => text.trim() !== "" && aside === null);
  const isBounded = messages.length === strayRowsMax;
  return { items: said.map(messageToItem).toReversed(), unread: [], isBounded };
}

/**
 * The ordinal at which a context turns to being of a time, found by halving: times rise along a context, but for a few
 * messages that came late or from a clock that was wrong. So the majority of a few decides, and those around are looked at.
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
    const refs = await store.context(conversation, { after: middle - 1, before: high, limit: votersMax });
    const [ref] = refs;
    const votes = (await itemsOf(store, refs, null)).map(isThere);
    if (ref === undefined || votes.filter((vote) => vote).length * 2 > votes.length) high = middle;
    else low = ref.ordinal + 1;
  }
  return low;
}

/** In order; what says nothing is left out, and so is what a summary carried over while its origin is told itself. */
async function itemsOf(store: Store, refs: readonly Ref[], reach: Reach | null): Promise<readonly RecentItem[]> {
  const messageIds = refs.flatMap((ref) => (ref.kind === "message" ? [ref.id] : []));
  const summaryIds = refs.flatMap((ref) => (ref.kind === "summary" ? [ref.id] : []));
  const [messages, summaries] = await Promise.all([
    messageIds.length === 0 ? [] : store.messages({ ids: messageIds }),
    summaryIds.length === 0 ? [] : store.summaries({ ids: summaryIds }),
  ]);
  const itemOf = new Map<RecentItem["id"], RecentItem>();
  for (const message of messages) itemOf.set(message.id, messageToItem(message));
  for (const summary of summaries) {
    const origin = reach === null ? null : await originOf(store, reach, summary);
    const isToldElsewhere = reach !== null && origin !== null && (await isWithin(store, reach, origin.conversation));
    if (!isToldElsewhere) itemOf.set(summary.id, summaryToItem(summary));
  }
  return refs.flatMap(({ id }) => itemOf.get(id) ?? []).filter(({ text }) => reach === null || text.trim() !== "");
}

function messageToItem({ id, conversation, role, text, at }: Message): RecentItem {
  const isWhole = text.length <= messageCharactersMax;
  const told = isWhole ? text.trim() : passage(text, { from: 0, to: 0 }, messageCharactersMax);
  const tokens = estimateTokens(told);
  return { kind: "message", id, conversation, role, earliestAt: at, latestAt: at, text: told, tokens, isWhole };
}

function summaryToItem({ id, conversation, depth, text, ...summary }: Summary): RecentItem {
  const latestAt = summary.latestAt ?? summary.createdAt;
  const times = { earliestAt: summary.earliestAt ?? latestAt, latestAt };
  return { kind: "summary", id, conversation, depth, ...times, text, tokens: estimateTokens(text), isWhole: true };
}

// ── What fits ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What is worth telling of a summary; and the part of all that is sure for messages, which no summary tells of. */
const leastTokens = 60;
const messagesShare = 1 / 4;

const leastOf = ({ kind, tokens }: RecentItem): number => (kind === "summary" ? Math.min(tokens, leastTokens) : tokens);

/**
 * The overview: every summary, at least in part, and the newest messages. If there are too many, the newest; but never
 * messages alone, if there is a summary. What is left goes to the summaries that are cut most, then to messages.
 */
function fit(telling: Telling, newestFirst: readonly RecentItem[]): readonly RecentItem[] {
  const summaries = newestFirst.filter(({ kind }) => kind === "summary");
  const messages = newestFirst.filter(({ kind }) => kind === "message");
  let left = telling.tokenCap;
  const grant = (tokens: number): number => {
    const granted = Math.min(tokens, left);
    left -= granted;
    return granted;
  };
  const granted = new Map<RecentItem, number>(summaries.slice(0, 1).map((item) => [item, grant(leastOf(item))]));
  const sure = Math.max(leastTokens, Math.floor(messagesShare * telling.tokenCap));
  let forMessages = grant(Math.min(sumTokens(messages), sure));
  for (const item of summaries.slice(1)) {
    if (leastOf(item) > left) break;
    granted.set(item, grant(leastOf(item)));
  }
  if (granted.size === summaries.length) {
    left += [...granted.values()].reduce((sum, tokens) => sum + tokens, 0);
    for (const [at, item] of summaries.toSorted((one, other) => one.tokens - other.tokens).entries())
      granted.set(item, grant(Math.min(item.tokens, Math.floor(left / (summaries.length - at)))));
    forMessages += left;
  }
  return [
    ...[...granted].map(([item, tokens]) => partOf(item, telling, tokens)),
    ...newestOf(messages, telling, forMessages),
  ];
}

/** Without gaps, and the newest at least in part. */
function newestOf(newestFirst: readonly RecentItem[], span: Span, tokensMax: number): readonly RecentItem[] {
  const kept: RecentItem[] = [];
  let left = tokensMax;
  for (const item of newestFirst) {
    if (item.tokens > left) break;
    kept.push(item);
    left -= item.tokens;
  }
  const isCut = kept.length === 0 && tokensMax > 0;
  return isCut ? newestFirst.slice(0, 1).map((item) => partOf(item, span, tokensMax)) : kept;
}

function partOf(item: RecentItem, span: Span, tokensMax: number): RecentItem {
  if (item.tokens <= tokensMax) return item;
  const cut = item.kind === "message" ? cutToTokens(item.text, tokensMax).text : thin(item.text, tokensMax);
  const text = isVague(item, span) ? "…" : cut;
  return { ...item, text, tokens: estimateTokens(text), isWhole: false };
}

/** By finer summaries, the coarsest and the newest first, as far as that fits. */
async function refine(telling: Telling, newestFirst: readonly RecentItem[]): Promise<readonly RecentItem[]> {
  let left = telling.tokenCap - sumTokens(newestFirst);
  const fits = (item: RecentItem, sources: readonly RecentItem[]): boolean => {
    const more = sumTokens(sources) - item.tokens;
    if (more > left) return false;
    left -= more;
    return true;
  };
  // The messages of a leaf are told only where the leaf tells of another time too.
  const isCoarse = (item: RecentItem): boolean => depthOf(item) > 0 || isVague(item, telling);
  return (await byFiner(telling, newestFirst.toReversed(), isCoarse, fits)).toReversed();
}

/** Of what reaches beyond the span, what is of the span. Of a leaf, that is its messages, if they take less. */
async function narrow(telling: Telling, items: readonly RecentItem[]): Promise<readonly RecentItem[]> {
  const isWide = (item: RecentItem): boolean => (depthOf(item) > 0 ? isBeyond : isVague)(item, telling);
  const isBetter = (item: RecentItem, sources: readonly RecentItem[]): boolean =>
    (isVague(item, telling) && (depthOf(item) > 0 || item.tokens > telling.tokenCap)) ||
    sumTokens(sources) < item.tokens;
  return await byFiner(telling, items, isWide, isBetter);
}

/** What is coarse, told by what it was made from wherever that is better: the deepest first, of a depth the newest. */
async function byFiner(
  telling: Telling,
  oldestFirst: readonly RecentItem[],
  isCoarse: (item: RecentItem) => boolean,
  isBetter: (item: RecentItem, sources: readonly RecentItem[]) => boolean,
): Promise<readonly RecentItem[]> {
  let told = oldestFirst;
  for (let depth = Math.max(-1, ...told.map(depthOf)); depth >= 0; depth--) {
    const coarse = told.filter((item) => depthOf(item) === depth && isCoarse(item));
    const finer = new Map(await finerOf(telling, coarse));
    for (const [item, sources] of [...finer].toReversed()) if (!isBetter(item, sources)) finer.delete(item);
    told = told.flatMap((item) => finer.get(item) ?? [item]);
  }
  return told;
}

const isBeyond = ({ earliestAt, latestAt }: RecentItem, { since, before }: Span): boolean =>
  earliestAt < since || (before !== null && latestAt >= before);

/** Whether it tells of another time too, and nobody knows which part of it does. */
const isVague = (item: RecentItem, span: Span): boolean =>
  item.isWhole && isBeyond(item, span) && sectionsOf(item) === null;

/** How many times a summary can be told by finer ones; -1 for a message. */
const depthOf = (item: RecentItem): number => (item.kind === "summary" ? item.depth : -1);

/** What each was made from, of the span alone; without those of which there is nothing. */
async function finerOf(
  { store, ...span }: Telling,
  coarse: readonly RecentItem[],
): Promise<ReadonlyMap<RecentItem, readonly RecentItem[]>> {
  const ids = coarse.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
  const sources = ids.length === 0 ? new Map<SummaryId, Sources>() : await store.sources(ids);
  const refs = [...sources.values()].flatMap(({ summaries, messages }): readonly Ref[] => [
    ...summaries.map((id) => ({ kind: "summary", id }) as const),
    ...messages.map((id) => ({ kind: "message", id }) as const),
  ]);
  const inSpan = new Map<RecentItem["id"], RecentItem>();
  for (const item of await itemsOf(store, refs, null))
    if (isInSpan(item, span) && item.text !== "") inSpan.set(item.id, clip(item, span));
  const finer = new Map<RecentItem, readonly RecentItem[]>();
  for (const item of coarse) {
    const below = item.kind === "summary" ? sources.get(item.id) : undefined;
    const items = [...(below?.summaries ?? []), ...(below?.messages ?? [])]
      .flatMap((id) => inSpan.get(id) ?? [])
      .filter(({ conversation }) => conversation === item.conversation);
    if (items.length > 0) finer.set(item, items);
  }
  return finer;
}

// ── Parts of summaries ───────────────────────────────────────────────────────────────────────────────────────────────
//
// Lines of a summary may begin with the time of what they tell, as the summaries of this machine do.

interface Section {
  readonly from: Timestamp;
  readonly lines: readonly string[];
}

const lineTime = /^\W{0,4}(?:(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d))?|(?<=\[)(\d\d:\d\d))\b/;

/** Null where lines begin with no times, or with times that cannot be those of this summary in UTC. */
function sectionsOf({ text, earliestAt, latestAt }: RecentItem): readonly Section[] | null {
  const sections: { readonly from: Timestamp; readonly lines: string[] }[] = [{ from: earliestAt, lines: [] }];
  let day = earliestAt.slice(0, "2026-02-17".length);
  for (const line of text.split("\n")) {
    const [stamp, date = day, dayClock, clock = dayClock] = lineTime.exec(line) ?? [];
    if (stamp !== undefined) {
      const written = clock === undefined ? date : `${date}T${clock}`;
      const from = parseTimestamp(written);
      const last = sections.at(-1)?.from ?? earliestAt;
      if (from === null || from > latestAt || written < last.slice(0, written.length)) return null;
      sections.push({ from: from > last ? from : last, lines: [] });
      day = date;
    }
    sections.at(-1)?.lines.push(line);
  }
  const told = sections.filter(({ lines }) => lines.length > 0);
  return told.length > 1 ? told : null;
}

/** A summary that reaches beyond the span, without what it tells of other times, if that can be known. */
function clip(item: RecentItem, span: Span): RecentItem {
  const sections = item.kind === "summary" && isBeyond(item, span) ? sectionsOf(item) : null;
  const isOf = ({ from }: Section, next: Section | undefined): boolean =>
    (span.before === null || from < span.before) && (next === undefined || next.from > span.since);
  const within = (sections ?? []).filter((section, at, all) => isOf(section, all[at + 1]));
  const text = within.flatMap(({ lines }) => lines).join("\n");
  return text.trim() === "" ? item : { ...item, text, tokens: estimateTokens(text), isWhole: text === item.text };
}

/** Something of every time that it tells of: the first lines of all, then the second; from the beginning if of none. */
function thin(text: string, tokensMax: number): string {
  let place = -1;
  const lines = text.split("\n").map((line) => ({ line, place: (place = lineTime.test(line) ? 0 : place + 1) }));
  const taken = new Set<object>();
  let left = tokensMax;
  for (const each of lines.toSorted((one, other) => one.place - other.place)) {
    left -= estimateTokens(each.line) + 2;
    if (left < 0) break;
    taken.add(each);
  }
  const kept = lines.flatMap((each, at) => {
    const next = lines[at + 1];
    return !taken.has(each) ? [] : [next === undefined || taken.has(next) ? each.line : `${each.line} …`];
  });
  return kept.length > 0 ? kept.join("\n") : cutToTokens(text, tokensMax).text;
}
