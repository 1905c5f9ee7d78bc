/**
 * What of a conversation can be set right without deciding anything, because it follows from other rows: the time of a
 * message from what is written there, the depth, range and count of a summary from its sources, the context from what it
 * must reach. Pure. Whatever needs a decision (a new text, a summary to be opened up, a backup) is left as it is.
 */

import type { DerivedFacts, Mending } from "../model/changes.ts";
import { closure, flatten } from "../model/summary-graph.ts";
import type { ContextItem, MessageId, Ref, Sources, SummaryId, Totals } from "../model/types.ts";
import type { Skeleton, SummaryFacts } from "../model/store.ts";
import { parseTimestamp } from "../base/time.ts";
import type { Timestamp } from "../base/time.ts";

/** Null where there is nothing to set right. */
export function planFix(bones: Skeleton): Mending | null {
  const { conversation } = bones;
  const right = whatFollows(bones);
  const plan: Mending = {
    conversation: conversation.id,
    revision: conversation.revision,
    times: bones.messageIds.flatMap((id, at) => {
      const time = right.times.get(id);
      return time === undefined || time === bones.messageTimes[at] ? [] : [{ message: id as MessageId, at: time }];
    }),
    sources: bones.summaries.flatMap(({ id }) => {
      const should = right.summaries.get(id)?.sources;
      return should === undefined || isSameSources(bones.sources.get(id), should) ? [] : [{ summary: id, ...should }];
    }),
    summaries: bones.summaries.flatMap((summary) => {
      const facts = right.summaries.get(summary.id)?.facts ?? null;
      return facts === null || isSameFacts(summary, facts) ? [] : [{ summary: summary.id, ...facts }];
    }),
    context: rightContext(bones, right),
    recount: wrongTotals(bones).length > 0,
    unindexed: bones.search.missing,
  };
  const { times, sources, summaries, context, recount, unindexed } = plan;
  const isNothing = times.length + sources.length + summaries.length + unindexed.length === 0;
  return isNothing && context === null && !recount ? null : plan;
}

export const wrongTotals = ({ conversation, recounted }: Skeleton): readonly (keyof Totals)[] =>
  (Object.keys(recounted) as readonly (keyof Totals)[]).filter((name) => conversation.totals[name] !== recounted[name]);

const isSame = <T>(a: readonly T[] = [], b: readonly T[]): boolean =>
  a.length === b.length && a.every((each, at) => each === b[at]);

export const isSameSources = (is: Sources | undefined, should: Sources): boolean =>
  isSame(is?.messages, should.messages) && isSame(is?.summaries, should.summaries);

export const isSameRange = (a: Range, b: Range): boolean => a.earliestAt === b.earliestAt && a.latestAt === b.latestAt;
const isSameFacts = (a: DerivedFacts, b: DerivedFacts): boolean =>
  a.kind === b.kind && a.depth === b.depth && a.descendants === b.descendants && isSameRange(a, b);

// ── What follows from the rows ───────────────────────────────────────────────────────────────────────────────────────

type Range = Pick<DerivedFacts, "earliestAt" | "latestAt">;

/** From the first to the last message of the conversation that something stands for, by `seq`. */
interface Span {
  readonly first: number;
  readonly last: number;
}

interface Derived {
  /** Without links to what is not in the conversation, in its order. */
  readonly sources: Sources;
  /** Null where it stands for nothing whose order `seq` tells. */
  readonly span: Span | null;
  /** As it says itself where it has no sources; null where it is among its own, for then nothing follows. */
  readonly facts: DerivedFacts | null;
}

export interface WhatFollows {
  /** Times in UTC with milliseconds, of all messages that have a time. */
  readonly times: ReadonlyMap<number, Timestamp>;
  readonly summaries: ReadonlyMap<SummaryId, Derived>;
  /** Summaries that are among their own sources. */
  readonly cyclic: ReadonlySet<SummaryId>;
  readonly spanOf: (item: Ref) => Span | null;
}

/** What it goes by: the messages of a conversation, its summaries and what these were made from. */
export type Bones = Pick<Skeleton, "messageIds" | "messageSeqs" | "messageTimes" | "copies" | "sources" | "gone"> & {
  readonly summaries: readonly Stated[];
};
type Stated = Omit<SummaryFacts, "released">;

export function whatFollows(bones: Bones): WhatFollows {
  const times = new Map<number, Timestamp>();
  const seqOf = new Map<number, number>();
  for (const [at, id] of bones.messageIds.entries()) {
    const time = parseTimestamp(bones.messageTimes[at] ?? "");
    if (time !== null) times.set(id, time);
    seqOf.set(id, bones.messageSeqs[at] ?? 0);
  }
  const byId = new Map(bones.summaries.map((summary) => [summary.id, summary]));
  const known = new Map<SummaryId, Derived>();
  const underWay = new Set<SummaryId>();
  const cyclic = new Set<SummaryId>();
  const isPartial = partialIn(bones);
  const spanOfMessage = (id: MessageId): Span | null => {
    const seq = bones.copies.has(id) ? undefined : seqOf.get(id);
    return seq === undefined ? null : { first: seq, last: seq };
  };

  const derive = (summary: Stated): Derived => {
    const before = known.get(summary.id);
    if (before !== undefined) return before;
    underWay.add(summary.id);
    const named = bones.sources.get(summary.id) ?? { messages: [], summaries: [] };
    const messages = named.messages.filter((id) => seqOf.has(id));
    const below = named.summaries.flatMap((id) => byId.get(id) ?? []);
    let isCyclic = false;
    for (const { id } of below) {
      if (!underWay.has(id)) continue;
      cyclic.add(id);
      isCyclic = true;
    }
    const derived = new Map(below.flatMap((each) => (underWay.has(each.id) ? [] : [[each.id, derive(each)] as const])));
    const sources = {
      messages: arranged(messages, spanOfMessage),
      summaries: arranged(
        below.map(({ id }) => id),
        (id) => derived.get(id)?.span ?? null,
      ),
    };
    const facts = [...derived.values()].map((each) => each.facts).filter((each) => each !== null);
    const made: Derived = {
      sources,
      span: joined([...messages.map(spanOfMessage), ...[...derived.values()].map(({ span }) => span)]),
      facts:
        isCyclic || facts.length < derived.size
          ? null
          : factsOf(summary, messages, facts, times, isPartial(summary.id)),
    };
    underWay.delete(summary.id);
    known.set(summary.id, made);
    return made;
  };
  for (const summary of bones.summaries) derive(summary);
  const spanOf = (item: Ref): Span | null =>
    item.kind === "message" ? spanOfMessage(item.id) : (known.get(item.id)?.span ?? null);
  return { times, summaries: known, cyclic, spanOf };
}

/** Whether a message is gone that a summary was made from. */
export function partialIn({ gone }: Pick<Skeleton, "gone">): (summary: SummaryId) => boolean {
  const partial = new Set(gone.map(({ summary }) => summary));
  return (summary) => partial.has(summary);
}

/** What nothing is left of, or what was carried over, is what it says; of what has both kinds of sources, the depth is. */
function factsOf(
  { kind, depth, earliestAt, latestAt, descendants, carriedFrom }: Stated,
  messages: readonly MessageId[],
  below: readonly DerivedFacts[],
  times: ReadonlyMap<number, Timestamp>,
  isPartial: boolean,
): DerivedFacts {
  if (carriedFrom !== null || messages.length + below.length === 0)
    return { kind, depth, earliestAt, latestAt, descendants };
  const deepest = below.reduce((most, each) => Math.max(most, each.depth), -1);
  const shape =
    messages.length > 0 ? { kind: "leaf" as const, depth: 0 } : { kind: "condensed" as const, depth: deepest + 1 };
  // When a message that is gone was said, only the summary still knows.
  const said = [...messages.map((id) => times.get(id) ?? null), ...(isPartial ? [earliestAt, latestAt] : [])];
  return {
    ...(messages.length > 0 && below.length > 0 ? { kind, depth } : shape),
    earliestAt: least([...said, ...below.map((each) => each.earliestAt)], (a, b) => a < b),
    latestAt: least([...said, ...below.map((each) => each.latestAt)], (a, b) => a > b),
    descendants: below.reduce((sum, each) => sum + each.descendants + 1, 0),
  };
}

const least = (times: readonly (string | null)[], isBefore: (a: string, b: string) => boolean): string | null =>
  times.reduce((best, time) => (time !== null && (best === null || isBefore(time, best)) ? time : best), null);

const joined = (spans: readonly (Span | null)[]): Span | null =>
  spans.reduce(
    (all, span) =>
      all === null || span === null
        ? (all ?? span)
        : { first: Math.min(all.first, span.first), last: Math.max(all.last, span.last) },
    null,
  );

// ── The order ────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Whole items in the order of what they stand for, with more that belong among them. Items that reach into each other
 * cannot be put right by moving them, and stay as they follow each other. Those whose order `seq` does not tell stay in
 * front of what they stand in front of; at the beginning, in front of all.
 */
function arranged<T>(items: readonly T[], spanOf: (item: T) => Span | null, more: readonly T[] = []): readonly T[] {
  const placed: { readonly item: T; readonly span: Span; readonly place: number; readonly ahead: readonly T[] }[] = [];
  let leading: readonly T[] | null = null;
  let waiting: T[] = [];
  for (const item of items) {
    const span = spanOf(item);
    if (span === null) {
      waiting.push(item);
      continue;
    }
    placed.push({ item, span, place: placed.length, ahead: leading === null ? [] : waiting });
    leading ??= waiting;
    waiting = [];
  }
  const trailing = leading === null ? [] : waiting;
  const front = [...(leading ?? waiting), ...more.filter((item) => spanOf(item) === null)];
  for (const item of more) {
    const span = spanOf(item);
    if (span !== null) placed.push({ item, span, place: placed.length, ahead: [] });
  }
  placed.sort((a, b) => a.span.first - b.span.first || a.place - b.place);
  const order: T[] = [...front];
  for (let from = 0; from < placed.length;) {
    let [to, last] = [from, -Infinity];
    for (let next = placed[to]; next !== undefined && (to === from || next.span.first <= last); next = placed[++to])
      last = Math.max(last, next.span.last);
    for (const { ahead, item } of placed.slice(from, to).sort((a, b) => a.place - b.place)) {
      for (const other of ahead) order.push(other);
      order.push(item);
    }
    from = to;
  }
  return [...order, ...trailing];
}

// ── The context ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** Null where it is right, or as right as it can be. */
function rightContext(bones: Skeleton, right: WhatFollows): Mending["context"] {
  const kept = onceEach(bones, right);
  const added = lostIn(bones, right, kept);
  const items = arranged<Ref>(kept, right.spanOf, added).map(bare);
  if (isSame(idsOf(bones.context), idsOf(items))) return null;
  const isAdded = new Set(added.map(({ id }) => id));
  const stayed = items.filter(({ id }) => !isAdded.has(id));
  const reordered = !isSame(idsOf(kept), idsOf(stayed));
  return { items, added: added.length, dropped: bones.context.length - kept.length, reordered };
}

const idsOf = (items: readonly Ref[]): readonly Ref["id"][] => items.map(({ id }) => id);

const bare = (item: Ref): Ref =>
  item.kind === "message" ? { kind: "message", id: item.id } : { kind: "summary", id: item.id };

/** Without what points to nothing or elsewhere, what is there twice, and what a summary that is there stands for. */
function onceEach(bones: Skeleton, { summaries, cyclic }: WhatFollows): readonly ContextItem[] {
  const messages = new Set(bones.messageIds);
  const own = bones.context.filter(({ kind, id }) => (kind === "message" ? messages.has(id) : summaries.has(id)));
  const sourcesOf = (id: SummaryId): Sources | undefined => summaries.get(id)?.sources;
  const shown = own.filter((item) => item.kind === "summary");
  const covered = new Set<MessageId | SummaryId>(flatten(shown, sourcesOf).messages);
  // Two that are among each other's sources would both go.
  const below = cyclic.size > 0 ? [] : shown.flatMap(({ id }) => sourcesOf(id)?.summaries ?? []);
  for (const id of closure(below, sourcesOf)) covered.add(id);
  const seen = new Set<MessageId | SummaryId>();
  return own.filter(({ id }) => {
    if (covered.has(id) || seen.has(id)) return false;
    seen.add(id);
    return true;
  });
}

/** What the context does not reach: summaries that stand for nothing else, the deepest and newest first, and messages. */
function lostIn(bones: Skeleton, { summaries }: WhatFollows, kept: readonly Ref[]): readonly Ref[] {
  const sourcesOf = (id: SummaryId): Sources | undefined => summaries.get(id)?.sources;
  const reached = new Set(flatten(kept, sourcesOf).messages);
  const isLost = (id: MessageId): boolean => !reached.has(id) && !bones.asides.has(id);
  const ids = bones.messageIds as readonly MessageId[];
  if (!ids.some(isLost)) return [];
  const returning: Ref[] = [];
  const deepestFirst = bones.summaries.toReversed().sort((a, b) => b.depth - a.depth);
  for (const { id, released } of deepestFirst) {
    const { messages, cyclic } = flatten(released ? [] : [{ kind: "summary", id }], sourcesOf);
    const isWhole = messages.length > 0 && new Set(messages).size === messages.length && messages.every(isLost);
    if (!isWhole || cyclic.length > 0) continue;
    returning.push({ kind: "summary", id });
    for (const message of messages) reached.add(message);
  }
  return [...returning, ...ids.filter(isLost).map((id): Ref => ({ kind: "message", id }))];
}
