/**
 * A part of a conversation at one fineness, in columns: bars with places on an axis as numbers in typed arrays, sorted,
 * so that what is in view is found by halving and drawn without allocating.
 */

import type { MessageId, Role } from "../../../core/model/types.ts";
import type { Mark, MessageBucket, MessageNode, NodeState, Pace, Timeline } from "../../contract.ts";

/** What becomes of an item, from the model's side, in the order of the legend. */
export const states = ["prompt", "context", "below", "evicted", "outside", "forgotten"] as const satisfies NodeState[];

export const axes = ["time", "messages"] as const;
export type Axis = (typeof axes)[number];

/** The lanes of messages. */
export const lanes = ["user", "assistant", "tool"] as const;

const laneOf: Readonly<Record<Role, number>> = { user: 0, assistant: 1, tool: 2, system: 2 };

export interface Bars {
  readonly count: number;
  /** Where each begins and ends on the axis; both never fall. */
  readonly from: Float64Array;
  readonly to: Float64Array;
  readonly tokens: Float64Array;
  /** Of each, which state most of it has: an index into `states`. */
  readonly state: Uint8Array;
  /** The first and last message. */
  readonly first: Uint32Array;
  readonly last: Uint32Array;
}

export interface MessageBars extends Bars {
  /** Null if the bars are of several messages each. */
  readonly ids: readonly MessageId[] | null;
  readonly lane: Uint8Array;
  /** Of each bar, how many messages have which state, `states.length` numbers each. */
  readonly shares: Float64Array;
}

export interface SummaryBars extends Bars {
  readonly depth: number;
  /** Null for neighbours that share a bar. */
  readonly ids: readonly (string | null)[];
  readonly counts: Uint32Array;
  /** 1 if its text no longer matches its sources. */
  readonly stale: Uint8Array;
}

export interface Layer {
  readonly axis: Axis;
  /** The part of the axis that it covers. */
  readonly from: number;
  readonly to: number;
  /** Units of the axis per bar: finer views need another layer. */
  readonly fineness: number;
  readonly messages: MessageBars;
  /** From the shallowest up. */
  readonly summaries: readonly SummaryBars[];
  readonly marks: readonly PlacedMark[];
}

export interface PlacedMark {
  readonly mark: Mark;
  readonly x: number;
}

/** Numbers and times of a conversation's messages, to change between them. */
export interface Scale {
  readonly axis: Axis;
  readonly length: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly originMs: number;
  /** The time zone of its ticks. */
  readonly zone: string;
  readonly pace: Pace;
}

export function toScale(axis: Axis, { extent, pace }: Pick<Timeline, "extent" | "pace">, zone: string): Scale {
  const { from, to } = extent ?? { from: 1, to: 1 };
  const originMs = pace[0]?.[1] ?? 0;
  const endMs = pace.at(-1)?.[1] ?? originMs;
  // The last message has some room behind it.
  const length = axis === "time" ? Math.max(endMs - originMs, leastSpanMs) * 1.005 + leastMs : to - from + 1;
  return { axis, length, firstSeq: from, lastSeq: to, originMs, zone, pace };
}

const leastSpanMs = 60_000;

/** The same with the times of a finer part. */
export function refined(scale: Scale, { window, pace }: Pick<Timeline, "window" | "pace">): Scale {
  const outside = scale.pace.filter(([seq]) => seq < window.from || seq > window.to);
  return { ...scale, pace: [...outside, ...pace].sort(([a], [b]) => a - b) };
}

/** The place of a message's beginning. */
export const placeOfSeq = (scale: Scale, seq: number): number =>
  scale.axis === "time" ? msAt(scale.pace, seq) - scale.originMs : seq - scale.firstSeq;

export function seqAtPlace(scale: Scale, x: number): number {
  const seq = scale.axis === "time" ? seqAtMs(scale.pace, x + scale.originMs) : x + scale.firstSeq;
  return Math.max(scale.firstSeq, Math.min(scale.lastSeq, seq));
}

/** Between two known messages, the others are evenly spaced. */
function msAt(pace: Pace, seq: number): number {
  const next = firstIndex(pace.length, (at) => (pace[at]?.[0] ?? 0) >= seq);
  const [a = pace.at(-1), b = a] = [pace[next - 1] ?? pace[next], pace[next]];
  if (a === undefined || b === undefined) return 0;
  return a[0] === b[0] ? b[1] : a[1] + ((b[1] - a[1]) * (seq - a[0])) / (b[0] - a[0]);
}

function seqAtMs(pace: Pace, ms: number): number {
  const next = firstIndex(pace.length, (at) => (pace[at]?.[1] ?? 0) >= ms);
  const [a = pace.at(-1), b = a] = [pace[next - 1] ?? pace[next], pace[next]];
  if (a === undefined || b === undefined) return 0;
  return a[1] === b[1] ? b[0] : a[0] + ((b[0] - a[0]) * (ms - a[1])) / (b[1] - a[1]);
}

function firstIndex(count: number, isThere: (at: number) => boolean): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isThere(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** On the axis of time, how long a token lasts unless the next message begins earlier: about as fast as one reads. */
const tokenMs = 200;
const leastMs = 1_000;

export function toLayer(timeline: Timeline, scale: Scale): Layer {
  const { window, marks } = timeline;
  const messages =
    timeline.messages === null
      ? bucketBars(timeline.buckets, scale, averageTokens(timeline.conversation))
      : eachBar(timeline.messages, scale);
  const isStart = window.from <= scale.firstSeq;
  const isEnd = window.to >= scale.lastSeq;
  const from = isStart ? 0 : placeOfSeq(scale, window.from);
  const to = isEnd ? scale.length : placeOfSeq(scale, window.to + 1);
  return {
    axis: scale.axis,
    from,
    to,
    fineness: messages.ids !== null ? 0 : (to - from) / Math.max(1, messages.count),
    messages,
    summaries: summaryRows(timeline, scale),
    marks: marks.map((mark) => ({ mark, x: placeOf(scale, mark) })),
  };
}

const placeOf = (scale: Scale, { seq, at }: { readonly seq: number; readonly at: string }): number =>
  scale.axis === "time" ? Math.max(0, Date.parse(at) - scale.originMs) : seq - scale.firstSeq + 1;

const codeOf = (state: NodeState): number => states.indexOf(state);

function eachBar(nodes: readonly MessageNode[], scale: Scale): MessageBars {
  const count = nodes.length;
  const starts = nodes.map((node) =>
    scale.axis === "time" ? Date.parse(node.at) - scale.originMs : node.seq - scale.firstSeq,
  );
  const from = rising(starts);
  const widest = nodes.reduce((most, { tokens }) => Math.max(most, tokens), 1);
  const to = Float64Array.from(nodes, ({ tokens }, at) => {
    const start = from[at] ?? 0;
    // In order, each has a slot of the same width, and fills a part of it.
    if (scale.axis === "messages") return start + 0.25 + 0.7 * Math.sqrt(tokens / widest);
    return Math.max(start, Math.min(start + Math.max(leastMs, tokens * tokenMs), from[at + 1] ?? Infinity));
  });
  const shares = new Float64Array(count * states.length);
  for (const [at, { state }] of nodes.entries()) shares[at * states.length + codeOf(state)] = 1;
  return {
    count,
    from,
    to,
    shares,
    ids: nodes.map(({ id }) => id),
    tokens: Float64Array.from(nodes, ({ tokens }) => tokens),
    state: Uint8Array.from(nodes, ({ state }) => codeOf(state)),
    lane: Uint8Array.from(nodes, ({ role }) => laneOf[role]),
    first: Uint32Array.from(nodes, ({ seq }) => seq),
    last: Uint32Array.from(nodes, ({ seq }) => seq),
  };
}

/** Where the tokens of a bucket are only known roughly, its messages are as long as those of the conversation are on average. */
function averageTokens({ totals }: Timeline["conversation"]): number {
  return totals.messageTokens / Math.max(1, totals.messages);
}

function bucketBars(buckets: readonly MessageBucket[], scale: Scale, average: number): MessageBars {
  const isTime = scale.axis === "time";
  const shares = new Float64Array(buckets.length * states.length);
  for (const [at, bucket] of buckets.entries())
    for (const [code, state] of states.entries()) shares[at * states.length + code] = bucket.states[state] ?? 0;
  return {
    count: buckets.length,
    ids: null,
    shares,
    from: rising(
      buckets.map(({ from, earliestAt }) => (isTime ? Date.parse(earliestAt) - scale.originMs : from - scale.firstSeq)),
    ),
    to: rising(
      buckets.map(({ to, latestAt }) =>
        isTime ? Date.parse(latestAt) - scale.originMs + leastMs : to + 1 - scale.firstSeq,
      ),
    ),
    tokens: Float64Array.from(buckets, ({ tokens, from, to }) => tokens ?? (to - from + 1) * average),
    state: Uint8Array.from(buckets, ({ states: counts }) => mostOf(counts)),
    lane: new Uint8Array(buckets.length),
    first: Uint32Array.from(buckets, ({ from }) => from),
    last: Uint32Array.from(buckets, ({ to }) => to),
  };
}

function mostOf(counts: Readonly<Partial<Record<NodeState, number>>>): number {
  let best = 0;
  for (const [code, state] of states.entries())
    if ((counts[state] ?? 0) > (counts[states[best] ?? "prompt"] ?? 0)) best = code;
  return best;
}

/** A clock that was set back does not make the axis go back. */
function rising(values: readonly number[]): Float64Array {
  let highest = 0;
  return Float64Array.from(values, (value) => (highest = Math.max(highest, value)));
}

interface SummaryBar {
  readonly depth: number;
  readonly from: number;
  readonly to: number;
  readonly id: string | null;
  readonly count: number;
  readonly tokens: number;
  readonly state: number;
  readonly isStale: boolean;
  readonly left: number;
  readonly right: number;
}

function summaryRows({ summaries, summaryBuckets, depthMax }: Timeline, scale: Scale): readonly SummaryBars[] {
  const left = (seq: number): number => placeOfSeq(scale, seq);
  const carriedWidth = scale.length / 100;
  const bars: readonly SummaryBar[] = [
    ...summaries.map((node) => ({
      ...node,
      count: 1,
      state: codeOf(node.state),
      left: scale.axis === "time" ? Date.parse(node.earliestAt) - scale.originMs : node.from - scale.firstSeq,
      right: node.isCarried
        ? carriedWidth
        : scale.axis === "time"
          ? Date.parse(node.latestAt) - scale.originMs + leastMs
          : node.to + 1 - scale.firstSeq,
    })),
    ...summaryBuckets.map((bucket) => ({
      ...bucket,
      id: null,
      isStale: false,
      state: mostOf(bucket.states),
      left: left(bucket.from),
      right: left(bucket.to + (scale.axis === "time" ? 0 : 1)),
    })),
  ];
  const byDepth = Map.groupBy(bars, ({ depth }) => depth);
  return Array.from({ length: depthMax + 1 }, (_, depth) => {
    const row = (byDepth.get(depth) ?? []).toSorted((a, b) => a.from - b.from || a.to - b.to);
    return {
      depth,
      count: row.length,
      from: rising(row.map((bar) => Math.max(0, bar.left))),
      to: rising(row.map((bar) => bar.right)),
      tokens: Float64Array.from(row, ({ tokens }) => tokens),
      state: Uint8Array.from(row, ({ state }) => state),
      first: Uint32Array.from(row, ({ from }) => from),
      last: Uint32Array.from(row, ({ to }) => to),
      counts: Uint32Array.from(row, ({ count }) => count),
      stale: Uint8Array.from(row, ({ isStale }) => (isStale ? 1 : 0)),
      ids: row.map(({ id }) => id),
    };
  });
}

// ── Finding ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The first index whose value is above the limit; `count` if there is none. */
export function firstAbove(values: Float64Array, limit: number): number {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((values[middle] ?? Infinity) > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The bar at a point of the axis, or the nearest within some distance; -1 if there is none. */
export function barAt({ from, to, count }: Bars, x: number, within: number): number {
  const at = firstAbove(to, x);
  let best = -1;
  let least = within;
  for (let index = Math.max(0, at - 1); index <= at + 1 && index < count; index++) {
    const away = Math.max(0, (from[index] ?? 0) - x, x - (to[index] ?? 0));
    if (away < least) [best, least] = [index, away];
  }
  return best;
}

export const barOfSeq = ({ first, last, count }: Bars, seq: number): number => {
  const at = firstIndex(count, (index) => (last[index] ?? 0) >= seq);
  return at < count && (first[at] ?? 0) <= seq ? at : -1;
};
