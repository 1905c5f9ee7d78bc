/** The timeline of a conversation, as fine as asked: a call reads about the same amount however long the conversation is. */

import { messagesPerWeight, type PaceMark } from "../core/model/outlines.ts";
import { timestampToMs, type Timestamp } from "../core/base/time.ts";
import type { Lcm } from "../core/lcm.ts";
import type { Store } from "../core/model/store.ts";
import { mustFind } from "../core/model/find-conversation.ts";
import { seqOf } from "../core/model/types.ts";
import type { Conversation, ConversationId } from "../core/model/types.ts";
import { bareName } from "../format/conversations.ts";
import type { MessageBucket, MessageNode, Pace, SummaryBucket, SummaryNode, Timeline } from "./contract.ts";
import { layOut, messageState, statesIn, viewOfRecord, viewOfReport, type Laid, type Layout } from "./layout.ts";
import { marksIn } from "./marks.ts";

export interface TimelineAsked {
  readonly conversation: ConversationId;
  readonly from: number | undefined;
  readonly to: number | undefined;
  readonly cells: number;
  readonly prompt: number | null;
}

type Window = Timeline["window"];

/** Up to this many messages are sent one by one. */
const nodesMax = 1_500;

export function createTimeline() {
  const layouts = createNewest<Layout>();
  const scales = createWeights();
  return async (lcm: Lcm, { conversation: id, from, to, cells, prompt }: TimelineAsked): Promise<Timeline> => {
    const { store } = lcm;
    const conversation = await mustFind(store, id);
    const pace = await store.pace(id, cells + 1, from === undefined || to === undefined ? undefined : { from, to });
    const ends = await store.pace(id, 2);
    const [first, last] = [ends[0], ends.at(-1)].map((mark) => (mark === undefined ? 0 : seqOf(mark.id)));
    const extent = ends.length === 0 ? null : { from: first ?? 0, to: last ?? 0 };
    const window = clipped({ from, to }, extent);
    const layout = await layouts(
      `${id} ${conversation.revision} ${prompt}`,
      async () => await readLayout(lcm, id, prompt),
    );
    const isFine = window.to - window.from < nodesMax;
    const messages = isFine && extent !== null ? await readNodes(lcm, id, window, layout) : null;
    const weigh = messages === null && extent !== null ? await scales(lcm, conversation, window) : () => null;
    const neighbours = await segmentsAround(lcm, conversation);
    return {
      conversation,
      name: bareName(conversation),
      extent,
      window,
      pace: paceOf(pace),
      prompt,
      depthMax: layout.summaries.at(-1)?.outline.depth ?? -1,
      messages,
      buckets: messages === null ? bucketsOf(pace, layout, weigh) : [],
      ...summariesIn(window, cells, layout),
      marks: await marksIn(lcm, conversation, { window, cells, layout, extent, ...neighbours }),
      ...neighbours,
    };
  };
}

interface SinceAsked {
  readonly conversation: ConversationId;
  /** Of all of it. */
  readonly pace: readonly PaceMark[];
  readonly since: Timestamp;
}

/** The number of the first message from a time on, or the one after the last; looks closer until each has a mark. */
export async function seqSince(store: Store, { conversation, pace, since }: SinceAsked): Promise<number> {
  const at = pace.findIndex((mark) => mark.at >= since);
  const last = pace.at(-1);
  if (at < 0) return last === undefined ? 1 : seqOf(last.id) + 1;
  const [before, mark] = [pace[at - 1], pace[at]];
  const [from, to] = [before, mark].map((each) => (each === undefined ? 0 : seqOf(each.id))) as [number, number];
  if (before === undefined || to - from < 2) return to;
  return await seqSince(store, { conversation, since, pace: await store.pace(conversation, closer, { from, to }) });
}

const closer = 33;

export const paceOf = (marks: readonly PaceMark[]): Pace => marks.map(({ id, at }) => [seqOf(id), timestampToMs(at)]);

function clipped(
  { from, to }: { readonly from?: number | undefined; readonly to?: number | undefined },
  extent: Timeline["extent"],
): Window {
  if (extent === null) return { from: 0, to: 0 };
  const start = Math.min(Math.max(from ?? extent.from, extent.from), extent.to);
  return { from: start, to: Math.max(start, Math.min(to ?? extent.to, extent.to)) };
}

export async function readLayout(lcm: Lcm, id: ConversationId, prompt: number | null): Promise<Layout> {
  const { store } = lcm;
  const outlines = await store.summaryOutlines(id);
  const items = await store.context(id, { kind: "summary" });
  const context = new Set(items.flatMap((item) => (item.kind === "summary" ? [item.id] : [])));
  const view =
    prompt === null
      ? viewOfReport((await lcm.assemble(id)).report)
      : viewOfRecord((await lcm.findPrompt({ conversation: id, number: prompt })).record);
  return layOut(outlines, context, view);
}

async function segmentsAround({ store }: Lcm, { id }: Conversation): Promise<Pick<Timeline, "before" | "after">> {
  const family = (await store.conversations({ familyOf: id, includeHidden: true })).map((each) => each.id);
  const earlier = family.filter((each) => each < id);
  const later = family.filter((each) => each > id);
  return {
    before: earlier.length === 0 ? null : earlier.reduce((one, other) => (one > other ? one : other)),
    after: later.length === 0 ? null : later.reduce((one, other) => (one < other ? one : other)),
  };
}

// ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────

async function readNodes(
  { store }: Lcm,
  id: ConversationId,
  window: Window,
  layout: Layout,
): Promise<readonly MessageNode[]> {
  const outlines = await store.messageOutlines(id, window);
  return outlines.map(({ leaves, isForgotten, ...outline }) => {
    const seq = seqOf(outline.id);
    const reached = leaves.find((leaf) => layout.byId.get(leaf)?.state !== "outside");
    const state = isForgotten ? "forgotten" : outline.aside !== null ? "outside" : messageState(layout, seq);
    return { ...outline, seq, state, leaf: reached ?? leaves.at(-1) ?? null };
  });
}

type Weigh = (from: number, to: number) => number | null;

function bucketsOf(pace: readonly PaceMark[], layout: Layout, weigh: Weigh): readonly MessageBucket[] {
  return pace.slice(0, -1).flatMap((mark, at): readonly MessageBucket[] => {
    const next = pace[at + 1] ?? mark;
    const isLast = at === pace.length - 2;
    const [from, to] = [seqOf(mark.id), seqOf(next.id) - (isLast ? 0 : 1)];
    const [earliestAt, latestAt] = [mark.at, next.at].toSorted() as [Timestamp, Timestamp];
    return [{ from, to, earliestAt, latestAt, tokens: weigh(from, to), states: statesIn(layout, from, to) }];
  });
}

/** A call weighs at most this many more messages; until then, tokens are not known. */
const weighedMax = 24_000;

interface Known {
  readonly key: string;
  readonly tokens: Map<number, number>;
}

/** Tokens by blocks. What is in a full block stays as it is, so it is read once. */
function createWeights() {
  const known = new Map<ConversationId, Known>();
  return async ({ store }: Lcm, { id, forgets }: Conversation, window: Window): Promise<Weigh> => {
    const key = `${forgets}`;
    const found = known.get(id);
    const mine = found?.key === key ? found : { key, tokens: new Map<number, number>() };
    known.delete(id);
    known.set(id, mine);
    for (const old of [...known.keys()].slice(0, Math.max(0, known.size - keptMax))) known.delete(old);
    const [start, end] = [blockOf(window.from), blockOf(window.to)];
    const missing = Array.from({ length: end - start + 1 }, (_, at) => start + at).filter(
      (block) => !mine.tokens.has(block) || block === end,
    );
    const few = missing.slice(-weighedMax / messagesPerWeight);
    const [first, last] = [few[0], few.at(-1)];
    if (first !== undefined && last !== undefined)
      for (const { block, tokens } of await store.weights(id, spanOfBlocks(first, last)))
        mine.tokens.set(block, tokens);
    return (from, to) => weighed(mine.tokens, from, to);
  };
}

const blockOf = (seq: number): number => Math.floor(seq / messagesPerWeight);
const spanOfBlocks = (first: number, last: number): Window => ({
  from: first * messagesPerWeight,
  to: (last + 1) * messagesPerWeight - 1,
});

/** As if messages of a block were of equal size. Null unless all blocks are known. */
function weighed(tokens: ReadonlyMap<number, number>, from: number, to: number): number | null {
  let sum = 0;
  for (let block = blockOf(from); block <= blockOf(to); block++) {
    const whole = tokens.get(block);
    if (whole === undefined) return null;
    const span = spanOfBlocks(block, block);
    sum += whole * ((Math.min(to, span.to) - Math.max(from, span.from) + 1) / messagesPerWeight);
  }
  return Math.round(sum);
}

// ── Summaries ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Those at least as wide as a cell, and the others of each depth and cell together. */
function summariesIn(
  window: Window,
  cells: number,
  { summaries }: Layout,
): Pick<Timeline, "summaries" | "summaryBuckets"> {
  const cell = (window.to - window.from + 1) / cells;
  const isIn = ({ span }: Laid): boolean =>
    span.from <= window.to && (span.to >= window.from || (span.to === 0 && window.from <= 1));
  const inside = summaries.filter(isIn);
  const isWide = ({ span }: Laid): boolean => span.to - span.from + 1 >= cell || span.to === 0;
  const narrow = Map.groupBy(
    inside.filter((laid) => !isWide(laid)),
    ({ outline, span }) => `${outline.depth} ${Math.floor((span.from - window.from) / cell)}`,
  );
  return {
    // What an earlier segment carried over lies at the beginning.
    summaries: inside.filter(isWide).map((laid) => {
      const node = nodeOf(laid);
      return laid.span.to === 0 ? { ...node, from: window.from, to: window.from } : node;
    }),
    summaryBuckets: [...narrow.values()].flatMap((group) => bucketOf(group)),
  };
}

function nodeOf({ outline, span, state, above }: Laid): SummaryNode {
  const { id, depth, tokens, level, earliestAt, latestAt, createdAt, carriedFrom, rewriteReason } = outline;
  return {
    id,
    depth,
    ...span,
    earliestAt: earliestAt ?? createdAt,
    latestAt: latestAt ?? earliestAt ?? createdAt,
    tokens,
    level,
    state,
    isCarried: carriedFrom !== null,
    isStale: rewriteReason !== null,
    createdAt,
    above,
  };
}

function bucketOf(group: readonly Laid[]): readonly SummaryBucket[] {
  const [first] = group;
  if (first === undefined) return [];
  const states: { [State in Laid["state"]]?: number } = {};
  for (const { state } of group) states[state] = (states[state] ?? 0) + 1;
  const tokens = group.reduce((sum, { outline }) => sum + outline.tokens, 0);
  const to = Math.max(...group.map(({ span }) => span.to));
  return [{ depth: first.outline.depth, from: first.span.from, to, count: group.length, tokens, states }];
}

// ── What is kept ─────────────────────────────────────────────────────────────────────────────────────────────────────

const keptMax = 8;

/** The newest results by key; calls for the same at the same time share one. */
function createNewest<T>() {
  const kept = new Map<string, Promise<T>>();
  return async (key: string, make: () => Promise<T>): Promise<T> => {
    const found = kept.get(key) ?? make();
    kept.delete(key);
    kept.set(key, found);
    for (const old of [...kept.keys()].slice(0, Math.max(0, kept.size - keptMax))) kept.delete(old);
    try {
      return await found;
    } catch (error) {
      kept.delete(key);
      throw error;
    }
  };
}
