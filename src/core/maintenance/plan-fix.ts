/**
 * Plans the fix of a conversation: corrects what can be derived from other rows. Pure.
 * Anything that needs a decision (a new text, a dissolved summary, a backup) is left alone.
 */

import type { DerivedFacts, ConversationFix } from "../model/changes.ts";
import { closure, flatten } from "../model/summary-graph.ts";
import type { ContextItem, MessageId, Ref, Sources, SummaryId, Totals } from "../model/types.ts";
import type { Skeleton, SummaryFacts } from "../model/store.ts";
import { parseTimestamp, type Timestamp } from "../base/time.ts";

/** Null if there is nothing to fix. */
export function planFix(skeleton: Skeleton): ConversationFix | null {
  const { conversation } = skeleton;
  const right = deriveRows(skeleton);
  const plan: ConversationFix = {
    conversation: conversation.id,
    revision: conversation.revision,
    times: skeleton.messageIds.flatMap((id, at) => {
      const time = right.times.get(id);
      return time === undefined || time === skeleton.messageTimes[at] ? [] : [{ message: id as MessageId, at: time }];
    }),
    sources: skeleton.summaries.flatMap(({ id }) => {
      const should = right.summaries.get(id)?.sources;
      return should === undefined || isSameSources(skeleton.sources.get(id), should)
        ? []
        : [{ summary: id, ...should }];
    }),
    summaries: skeleton.summaries.flatMap((summary) => {
      const facts = right.summaries.get(summary.id)?.facts ?? null;
      return facts === null || isSameFacts(summary, facts) ? [] : [{ summary: summary.id, ...facts }];
    }),
    context: rightContext(skeleton, right),
    recount: wrongTotals(skeleton).length > 0,
    unindexed: skeleton.search.missing,
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

type Range = Pick<DerivedFacts, "earliestAt" | "latestAt">;

/** The first and last message that an item covers, by `seq`. */
interface Span {
  readonly first: number;
  readonly last: number;
}

interface DerivedSummary {
  /** In the order of the conversation, without links to rows that are not in it. */
  readonly sources: Sources;
  /** Null if it covers only copies, whose order `seq` does not tell. */
  readonly span: Span | null;
  /** As recorded if it has no sources; null in a cycle, where nothing can be derived. */
  readonly facts: DerivedFacts | null;
}

export interface Derivation {
  /** In UTC with milliseconds, for all messages with a valid time. */
  readonly times: ReadonlyMap<number, Timestamp>;
  readonly summaries: ReadonlyMap<SummaryId, DerivedSummary>;
  /** Summaries that are their own sources. */
  readonly cyclic: ReadonlySet<SummaryId>;
  readonly spanOf: (item: Ref) => Span | null;
}

/** The part of a skeleton that facts are derived from. */
export interface DerivationInput extends Pick<
  Skeleton,
  "messageIds" | "messageSeqs" | "messageTimes" | "copies" | "sources" | "gone"
> {
  readonly summaries: readonly RecordedFacts[];
}
type RecordedFacts = Omit<SummaryFacts, "released">;

export function deriveRows(skeleton: DerivationInput): Derivation {
  const times = new Map<number, Timestamp>();
  const seqOf = new Map<number, number>();
  for (const [at, id] of skeleton.messageIds.entries()) {
    const time = parseTimestamp(skeleton.messageTimes[at] ?? "");
    if (time !== null) times.set(id, time);
    seqOf.set(id, skeleton.messageSeqs[at] ?? 0);
  }
  const byId = new Map(skeleton.summaries.map((summary) => [summary.id, summary]));
  const known = new Map<SummaryId, DerivedSummary>();
  const underWay = new Set<SummaryId>();
  const cyclic = new Set<SummaryId>();
  const isPartial = partialIn(skeleton);
  const spanOfMessage = (id: MessageId): Span | null => {
    const seq = skeleton.copies.has(id) ? undefined : seqOf.get(id);
    return seq === undefined ? null : { first: seq, last: seq };
  };

  const derive = (summary: RecordedFacts): DerivedSummary => {
    const before = known.get(summary.id);
    if (before !== undefined) return before;
    underWay.add(summary.id);
    const named = skeleton.sources.get(summary.id) ?? { messages: [], summaries: [] };
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
    const made: DerivedSummary = {
      sources,
      span: joined([...messages.map(spanOfMessage), ...[...derived.values()].map(({ span }) => span)]),
      facts:
        isCyclic || facts.length < derived.size
          ? null
          : factsOf(summary, {
              messages: messages.map((id) => times.get(id) ?? null),
              below: facts,
              isPartial: isPartial(summary.id),
            }),
    };
    underWay.delete(summary.id);
    known.set(summary.id, made);
    return made;
  };
  for (const summary of skeleton.summaries) derive(summary);
  const spanOf = (item: Ref): Span | null =>
    item.kind === "message" ? spanOfMessage(item.id) : (known.get(item.id)?.span ?? null);
  return { times, summaries: known, cyclic, spanOf };
}

/** Whether a source message of a summary is missing. */
export function partialIn({ gone }: Pick<Skeleton, "gone">): (summary: SummaryId) => boolean {
  const partial = new Set(gone.map(({ summary }) => summary));
  return (summary) => partial.has(summary);
}

interface SourceFacts {
  /** The time of each message; null if it has none. */
  readonly messages: readonly (Timestamp | null)[];
  readonly below: readonly DerivedFacts[];
  readonly isPartial: boolean;
}

/**
 * Keeps the recorded facts of a summary that is carried or has no sources left, and the recorded depth of one with both
 * kinds of sources.
 */
function factsOf(
  { kind, depth, earliestAt, latestAt, descendants, carriedFrom }: RecordedFacts,
  { messages, below, isPartial }: SourceFacts,
): DerivedFacts {
  if (carriedFrom !== null || messages.length + below.length === 0)
    return { kind, depth, earliestAt, latestAt, descendants };
  const deepest = below.reduce((most, each) => Math.max(most, each.depth), -1);
  const shape =
    messages.length > 0 ? { kind: "leaf" as const, depth: 0 } : { kind: "condensed" as const, depth: deepest + 1 };
  // Only the summary still knows the time of a missing message.
  const times = [...messages, ...(isPartial ? [earliestAt, latestAt] : [])];
  return {
    ...(messages.length > 0 && below.length > 0 ? { kind, depth } : shape),
    earliestAt: least([...times, ...below.map((each) => each.earliestAt)], (a, b) => a < b),
    latestAt: least([...times, ...below.map((each) => each.latestAt)], (a, b) => a > b),
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

/**
 * Sorts items by what they cover, and inserts `more` among them. Overlapping items keep their relative order, because
 * moving them cannot help. Items without a span stay in front of the item that they precede.
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

/** Null if the context is right, or cannot be improved. */
function rightContext(skeleton: Skeleton, right: Derivation): ConversationFix["context"] {
  const kept = onceEach(skeleton, right);
  const added = lostIn(skeleton, right, kept);
  const items = arranged<Ref>(kept, right.spanOf, added).map(bare);
  if (isSame(idsOf(skeleton.context), idsOf(items))) return null;
  const isAdded = new Set(added.map(({ id }) => id));
  const stayed = items.filter(({ id }) => !isAdded.has(id));
  const reordered = !isSame(idsOf(kept), idsOf(stayed));
  return { items, added: added.length, dropped: skeleton.context.length - kept.length, reordered };
}

const idsOf = (items: readonly Ref[]): readonly Ref["id"][] => items.map(({ id }) => id);

const bare = (item: Ref): Ref =>
  item.kind === "message" ? { kind: "message", id: item.id } : { kind: "summary", id: item.id };

/** Drops items of other conversations, missing items, duplicates, and items covered by a summary in the context. */
function onceEach(skeleton: Skeleton, { summaries, cyclic }: Derivation): readonly ContextItem[] {
  const messages = new Set(skeleton.messageIds);
  const own = skeleton.context.filter(({ kind, id }) => (kind === "message" ? messages.has(id) : summaries.has(id)));
  const sourcesOf = (id: SummaryId): Sources | undefined => summaries.get(id)?.sources;
  const shown = own.filter((item) => item.kind === "summary");
  const covered = new Set<MessageId | SummaryId>(flatten(shown, sourcesOf).messages);
  // In a cycle, both summaries would be dropped.
  const below = cyclic.size > 0 ? [] : shown.flatMap(({ id }) => sourcesOf(id)?.summaries ?? []);
  for (const id of closure(below, sourcesOf)) covered.add(id);
  const seen = new Set<MessageId | SummaryId>();
  return own.filter(({ id }) => {
    if (covered.has(id) || seen.has(id)) return false;
    seen.add(id);
    return true;
  });
}

/** What the context does not reach: whole summaries, deepest and newest first, then single messages. */
function lostIn(skeleton: Skeleton, { summaries }: Derivation, kept: readonly Ref[]): readonly Ref[] {
  const sourcesOf = (id: SummaryId): Sources | undefined => summaries.get(id)?.sources;
  const reached = new Set(flatten(kept, sourcesOf).messages);
  const isLost = (id: MessageId): boolean => !reached.has(id) && !skeleton.asides.has(id);
  const ids = skeleton.messageIds as readonly MessageId[];
  if (!ids.some(isLost)) return [];
  const returning: Ref[] = [];
  const deepestFirst = skeleton.summaries.toReversed().sort((a, b) => b.depth - a.depth);
  for (const { id, released } of deepestFirst) {
    const { messages, cyclic } = flatten(released ? [] : [{ kind: "summary", id }], sourcesOf);
    const isWhole = messages.length > 0 && new Set(messages).size === messages.length && messages.every(isLost);
    if (!isWhole || cyclic.length > 0) continue;
    returning.push({ kind: "summary", id });
    for (const message of messages) reached.add(message);
  }
  return [...returning, ...ids.filter(isLost).map((id): Ref => ({ kind: "message", id }))];
}
