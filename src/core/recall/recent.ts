/**
 * Reports what happened between two times: summaries of that span, and messages that are not summarised yet.
 * It starts with an overview of the whole span and refines it with finer summaries while they fit. The work depends on
 * the token limit, never on the length of a conversation.
 */

import { cutToTokens } from "./citations.ts";
import { marksAmong, type Mark } from "./marks.ts";
import { seqOf } from "../model/types.ts";
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
import { conversationsWithin, isWithin, originOf, type Reach } from "./scope.ts";
import { passage } from "../base/excerpt.ts";
import { estimateTokens, sumTokens } from "../base/tokens.ts";
import { dayMs, parseTimestamp, timeAfter, type Timestamp } from "../base/time.ts";
import { compare } from "../base/format.ts";

export interface RecentRequest {
  readonly reach: Reach;
  /** Any time that `parseTimestamp` reads; `since` is inclusive, `before` exclusive. Default: the last 24 hours. */
  readonly since?: string;
  readonly before?: string;
  /** Only messages of these roles, and no summaries. */
  readonly roles?: readonly Role[];
  readonly tokenCap: number;
}

export interface Recent {
  readonly since: Timestamp;
  readonly before: Timestamp | null;
  /** Oldest first. */
  readonly items: readonly RecentItem[];
  readonly tokens: number;
  /** Items of that span that did not fit. */
  readonly leftOut: { readonly items: number; readonly tokens: number };
  /** Whether there was more than was counted. */
  readonly isBounded: boolean;
  /** Compactions, resets and models between consecutive messages that are shown. */
  readonly marks: readonly Mark[];
}

export type RecentItem = {
  readonly conversation: ConversationId;
  readonly earliestAt: Timestamp;
  readonly latestAt: Timestamp;
  readonly text: string;
  readonly tokens: number;
  /** False for a part; the text is `…` for a summary that reaches beyond the span and cannot be cut to it. */
  readonly isWhole: boolean;
} & (
  | { readonly kind: "summary"; readonly id: SummaryId; readonly depth: number }
  | { readonly kind: "message"; readonly id: MessageId; readonly role: Role }
);

/** Conversations to read, newest first. */
const conversationsMax = 50;
/** Items to count in one context, newest first. */
const refsMax = 2_000;
/** Items to check for strays on each side of a span, and how many vote on where it starts. */
const strayMax = 32;
const strayRowsMax = 200;
const votersMax = 3;
const rowsAtOnce = 50;
/** A longer message is shown as an excerpt. */
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
    throw new LcmError("invalid", `since (${since}) is not earlier than before (${before})`);
  }
  const query = { store, reach, since, before, tokenCap };
  const active = (await conversationsWithin(store, reach)).filter(
    ({ lastMessageAt }) => (lastMessageAt ?? "") >= since,
  );
  const { roles } = request;
  const readings: Reading[] = [];
  for (const { id } of active.slice(0, conversationsMax)) {
    const reading = roles === undefined ? await readContext(query, id) : await readByRole(query, id, roles);
    const isFound = roles !== undefined || reading.items.length + reading.unread.length > 0;
    readings.push(isFound ? reading : await readByTime(query, id));
  }
  const found = readings.flatMap(({ items }) => items).toSorted((a, b) => compare(b.latestAt, a.latestAt));
  const fitting = fit(query, found);
  const items = sumTokens(found) > tokenCap ? fitting : await refine(query, found);
  const ids = new Set(fitting.map(({ id }) => id));
  const inOrder = items.toReversed().toSorted((a, b) => compare(a.earliestAt, b.earliestAt));
  const leftOut = [...readings.flatMap(({ unread }) => unread), ...found.filter(({ id }) => !ids.has(id))];
  return {
    since,
    before,
    items: inOrder,
    tokens: sumTokens(items),
    marks: await marksBetween(store, inOrder),
    leftOut: { items: leftOut.length, tokens: sumTokens(leftOut) },
    isBounded: active.length > conversationsMax || readings.some((each) => each.isBounded),
  };
}

/** Marks are shown between messages; summaries have their own times. */
async function marksBetween(store: Store, items: readonly RecentItem[]): Promise<readonly Mark[]> {
  const messages = items.flatMap((item) =>
    item.kind === "message" ? [{ conversation: item.conversation, seq: seqOf(item.id), at: item.latestAt }] : [],
  );
  const marks: Mark[] = [];
  for (const conversation of new Set(messages.map((each) => each.conversation))) {
    const own = messages.filter((each) => each.conversation === conversation).toSorted((a, b) => a.seq - b.seq);
    marks.push(...(await marksAmong(store, own)));
  }
  return marks;
}

/** The marks between an item and the next message of its conversation that is shown. */
export function marksAfter({ items, marks }: Pick<Recent, "items" | "marks">, at: number): readonly Mark[] {
  const item = items[at];
  if (item?.kind !== "message") return [];
  const isOwn = (other: RecentItem): boolean => other.kind === "message" && other.conversation === item.conversation;
  const next = items.slice(at + 1).find(isOwn);
  const until = next?.kind === "message" ? seqOf(next.id) : Infinity;
  return marks.filter(
    (mark) => mark.conversation === item.conversation && mark.afterSeq >= seqOf(item.id) && mark.afterSeq < until,
  );
}

type Span = Pick<Recent, "since" | "before">;

interface RecentQuery extends Span {
  readonly store: Store;
  readonly reach: Reach;
  readonly tokenCap: number;
}

interface Reading {
  /** Newest first of each kind, as many as may fit. */
  readonly items: readonly RecentItem[];
  /** More items of that span. */
  readonly unread: readonly ContextItem[];
  readonly isBounded: boolean;
}

const isInSpan = (item: RecentItem, { since, before }: Span): boolean =>
  item.latestAt >= since && (before === null || item.earliestAt < before);

async function readContext(query: RecentQuery, conversation: ConversationId): Promise<Reading> {
  const { store, reach, since, before } = query;
  const from = await firstPlace(store, conversation, ({ latestAt }) => latestAt >= since);
  const to = before === null ? null : await firstPlace(store, conversation, ({ earliestAt }) => earliestAt >= before);
  const window = { after: from - 1, keep: "newest", limit: refsMax } as const;
  const within = await store.context(conversation, to === null ? window : { ...window, before: to });
  const early = await store.context(conversation, { before: from, keep: "newest", limit: strayMax });
  const late = to === null ? [] : await store.context(conversation, { after: to - 1, limit: strayMax });
  const stray = await itemsOf(store, [...early, ...late], reach);
  const ids = new Set(stray.filter((item) => isInSpan(item, query)).map(({ id }) => id));
  const refs = [...early.filter(({ id }) => ids.has(id)), ...within, ...late.filter(({ id }) => ids.has(id))];
  // Strays at the edge of the search: there may be more beyond.
  const isUnsure = [early[0], late.at(-1)].some((ref) => ref !== undefined && ids.has(ref.id) && ids.size >= strayMax);
  const summaries = await readNewest(query, refs, "summary");
  const messages = await readNewest(query, refs, "message");
  return {
    items: [...summaries.items, ...messages.items],
    unread: [...summaries.unread, ...messages.unread],
    isBounded: within.length === refsMax || isUnsure,
  };
}

/** Reads past the limit by at least one item, to know whether something is left out. */
async function readNewest(query: RecentQuery, refs: readonly ContextItem[], kind: Ref["kind"]) {
  const items: RecentItem[] = [];
  let unread = refs.filter((ref) => ref.kind === kind);
  for (let tokens = 0; unread.length > 0 && tokens <= query.tokenCap;) {
    const rows = await itemsOf(query.store, unread.slice(-rowsAtOnce), query.reach);
    const inSpan = rows.filter((item) => isInSpan(item, query));
    const clipped = inSpan.map((item) => clip(item, query));
    const read = await narrow(query, clipped);
    items.push(...read.toReversed());
    tokens += read.reduce((sum, item) => sum + leastOf(item), 0);
    unread = unread.slice(0, -rowsAtOnce);
  }
  return { items, unread };
}

/** Messages of some roles, newest first, past the limit by at least one. */
async function readByRole(query: RecentQuery, conversation: ConversationId, roles: readonly Role[]): Promise<Reading> {
  const { store, since, before } = query;
  const span = { conversation, since, ...(before === null ? {} : { before }), limit: refsMax, keep: "newest" } as const;
  const found: Message[] = [];
  for (const role of new Set(roles)) found.push(...(await store.messages({ ...span, role })));
  const said = found.filter(({ text, aside }) => text.trim() !== "" && aside !== "note");
  const newestFirst = said.toSorted((one, other) => other.seq - one.seq).map(messageToItem);
  return { items: newestFirst, unread: [], isBounded: found.length >= refsMax };
}

/** Looks for messages by time alone, for a context whose times are not in order. */
async function readByTime({ store, since, before }: RecentQuery, conversation: ConversationId): Promise<Reading> {
  const within = { conversation, since, limit: strayRowsMax, keep: "newest" } as const;
  const messages = await store.messages(before === null ? within : { ...within, before });
  const said = messages.filter(({ text, aside }) => text.trim() !== "" && aside === null);
  const isBounded = messages.length === strayRowsMax;
  return { items: said.map(messageToItem).toReversed(), unread: [], isBounded };
}

/**
 * The ordinal at which a context reaches a time, by bisection. Times rise along a context except for a few messages that
 * came late or from a wrong clock, so a majority of several items decides.
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

/** In order, without empty texts and without carried summaries whose origin is also read. */
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
    const isDuplicate = reach !== null && origin !== null && (await isWithin(store, reach, origin.conversation));
    if (!isDuplicate) itemOf.set(summary.id, summaryToItem(summary));
  }
  return refs.flatMap(({ id }) => itemOf.get(id) ?? []).filter(({ text }) => reach === null || text.trim() !== "");
}

function messageToItem({ id, conversation, role, text, at }: Message): RecentItem {
  const isWhole = text.length <= messageCharactersMax;
  const shown = isWhole ? text.trim() : passage(text, { from: 0, to: 0 }, messageCharactersMax);
  const tokens = estimateTokens(shown);
  return { kind: "message", id, conversation, role, earliestAt: at, latestAt: at, text: shown, tokens, isWhole };
}

function summaryToItem({ id, conversation, depth, text, ...summary }: Summary): RecentItem {
  const latestAt = summary.latestAt ?? summary.createdAt;
  const times = { earliestAt: summary.earliestAt ?? latestAt, latestAt };
  return { kind: "summary", id, conversation, depth, ...times, text, tokens: estimateTokens(text), isWhole: true };
}

/** The least to show of a summary, and the share reserved for messages, which no summary covers. */
const leastTokens = 60;
const messagesShare = 1 / 4;

const leastOf = ({ kind, tokens }: RecentItem): number => (kind === "summary" ? Math.min(tokens, leastTokens) : tokens);

/**
 * The overview: at least part of every summary, and the newest messages. If there are too many summaries, the newest
 * ones, but at least one. Tokens to spare go to the summaries that are cut most, then to messages.
 */
function fit(query: RecentQuery, newestFirst: readonly RecentItem[]): readonly RecentItem[] {
  const summaries = newestFirst.filter(({ kind }) => kind === "summary");
  const messages = newestFirst.filter(({ kind }) => kind === "message");
  let left = query.tokenCap;
  const grant = (tokens: number): number => {
    const granted = Math.min(tokens, left);
    left -= granted;
    return granted;
  };
  const granted = new Map<RecentItem, number>(summaries.slice(0, 1).map((item) => [item, grant(leastOf(item))]));
  const sure = Math.max(leastTokens, Math.floor(messagesShare * query.tokenCap));
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
    ...[...granted].map(([item, tokens]) => partOf(item, query, tokens)),
    ...newestOf(messages, query, forMessages),
  ];
}

/** The newest without gaps; at least part of the newest one. */
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

/** Replaces coarse summaries by finer ones while they fit, deepest and newest first. */
async function refine(query: RecentQuery, newestFirst: readonly RecentItem[]): Promise<readonly RecentItem[]> {
  let left = query.tokenCap - sumTokens(newestFirst);
  const fits = (item: RecentItem, sources: readonly RecentItem[]): boolean => {
    const more = sumTokens(sources) - item.tokens;
    if (more > left) return false;
    left -= more;
    return true;
  };
  // Deepest first, so that all of the span gets finer before the newest leaves become messages.
  return (await byFiner(query, newestFirst.toReversed(), ({ kind }) => kind === "summary", fits)).toReversed();
}

/** Replaces items that reach beyond the span by their sources within it; a leaf only if that takes fewer tokens. */
async function narrow(query: RecentQuery, items: readonly RecentItem[]): Promise<readonly RecentItem[]> {
  const isWide = (item: RecentItem): boolean => (depthOf(item) > 0 ? isBeyond : isVague)(item, query);
  const isBetter = (item: RecentItem, sources: readonly RecentItem[]): boolean =>
    (isVague(item, query) && (depthOf(item) > 0 || item.tokens > query.tokenCap)) || sumTokens(sources) < item.tokens;
  return await byFiner(query, items, isWide, isBetter);
}

/** Replaces coarse items by their sources where that is better: deepest first, newest first within a depth. */
async function byFiner(
  query: RecentQuery,
  oldestFirst: readonly RecentItem[],
  isCoarse: (item: RecentItem) => boolean,
  isBetter: (item: RecentItem, sources: readonly RecentItem[]) => boolean,
): Promise<readonly RecentItem[]> {
  let items = oldestFirst;
  for (let depth = Math.max(-1, ...items.map(depthOf)); depth >= 0; depth--) {
    const coarse = items.filter((item) => depthOf(item) === depth && isCoarse(item));
    const finer = new Map(await finerOf(query, coarse));
    for (const [item, sources] of [...finer].toReversed()) if (!isBetter(item, sources)) finer.delete(item);
    items = items.flatMap((item) => finer.get(item) ?? [item]);
  }
  return items;
}

const isBeyond = ({ earliestAt, latestAt }: RecentItem, { since, before }: Span): boolean =>
  earliestAt < since || (before !== null && latestAt >= before);

/** Whether it also covers another time, and cannot be cut to the span. */
const isVague = (item: RecentItem, span: Span): boolean =>
  item.isWhole && isBeyond(item, span) && sectionsOf(item) === null;

const depthOf = (item: RecentItem): number => (item.kind === "summary" ? item.depth : -1);

/** The sources of each item within the span; items without any are omitted. */
async function finerOf(
  { store, ...span }: RecentQuery,
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

/** Lines of a summary from one that starts with a time, as those of our own summaries do, to the next. */
interface Section {
  readonly from: Timestamp;
  readonly lines: readonly string[];
}

const lineTime = /^\W{0,4}(?:(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d))?|(?<=\[)(\d\d:\d\d))\b/;

/** Null if no lines start with times, or with times that cannot be UTC times of this summary. */
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
  const filled = sections.filter(({ lines }) => lines.length > 0);
  return filled.length > 1 ? filled : null;
}

/** Cuts a summary to the sections within the span, if its lines have times. */
function clip(item: RecentItem, span: Span): RecentItem {
  const sections = item.kind === "summary" && isBeyond(item, span) ? sectionsOf(item) : null;
  const isOf = ({ from }: Section, next: Section | undefined): boolean =>
    (span.before === null || from < span.before) && (next === undefined || next.from > span.since);
  const within = (sections ?? []).filter((section, at, all) => isOf(section, all[at + 1]));
  const text = within.flatMap(({ lines }) => lines).join("\n");
  return text.trim() === "" ? item : { ...item, text, tokens: estimateTokens(text), isWhole: text === item.text };
}

/** Thins a text evenly: the first lines of all sections, then the second ones; without sections, its start. */
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
