/**
 * The shape of what was folded: walking from a context down its summaries to the messages, and back up in order.
 * Pure, over ids only; texts never come here. A cycle or a missing source, which only a damaged database can have,
 * ends the walk at that place instead of looping.
 */

import type { MessageId, MessageRef, Sources, SummaryId, SummaryRef } from "./model.ts";

export type SourcesOf = (summary: SummaryId) => Sources | undefined;
type Item = MessageRef | SummaryRef;

/** These summaries and every one below them, each once, a summary before its sources. */
export function closure(roots: readonly SummaryId[], sourcesOf: SourcesOf): readonly SummaryId[] {
  const seen = new Set<SummaryId>();
  const waiting = [...roots].reverse();
  for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
    if (seen.has(id)) continue;
    seen.add(id);
    const below = sourcesOf(id)?.summaries ?? [];
    for (let index = below.length - 1; index >= 0; index--) waiting.push(below[index] as SummaryId);
  }
  return [...seen];
}

/** Sources first: the order in which summaries can be copied, or rewritten so that each reads fresh text below it. */
export function bottomUp<
  T extends { readonly id: SummaryId; readonly depth: number; readonly earliestAt: string | null },
>(summaries: readonly T[]): readonly T[] {
  return [...summaries].sort(
    (a, b) => a.depth - b.depth || compare(a.earliestAt ?? "", b.earliestAt ?? "") || compare(a.id, b.id),
  );
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

export interface Flattened {
  /** Every message under the context, oldest first, as often as it is reached: more than once is a fault. */
  readonly messages: readonly MessageId[];
  /** Summaries reached that have no sources of their own: carried over from an earlier segment, or damaged. */
  readonly sourceless: readonly SummaryId[];
  /** Summaries that were met inside themselves. */
  readonly cyclic: readonly SummaryId[];
}

/** Walks the sources of every item, oldest first. This is what the one invariant speaks of. */
export function flatten(context: readonly Item[], sourcesOf: SourcesOf): Flattened {
  const messages: MessageId[] = [];
  const sourceless: SummaryId[] = [];
  const cyclic: SummaryId[] = [];
  const walk = (item: Item, above: ReadonlySet<SummaryId>): void => {
    if (item.kind === "message") {
      messages.push(item.id);
      return;
    }
    if (above.has(item.id)) {
      cyclic.push(item.id);
      return;
    }
    const sources = sourcesOf(item.id);
    if (sources === undefined || sources.messages.length + sources.summaries.length === 0) {
      sourceless.push(item.id);
      return;
    }
    for (const id of sources.messages) messages.push(id);
    const within = new Set(above).add(item.id);
    for (const id of sources.summaries) walk({ kind: "summary", id }, within);
  };
  for (const item of context) walk(item, new Set());
  return { messages, sourceless, cyclic };
}

export interface Coverage {
  /** Messages that the context does not reach, and that are not exempt. */
  readonly lost: readonly number[];
  /** Messages reached more than once. */
  readonly doubled: readonly number[];
  /** Messages reached that the conversation does not hold. */
  readonly foreign: readonly number[];
}

/** Compares what a context reaches with what should be there. */
export function coverage(
  reached: readonly number[],
  expected: readonly number[],
  exempt: ReadonlySet<number>,
): Coverage {
  const times = new Map<number, number>();
  for (const id of reached) times.set(id, (times.get(id) ?? 0) + 1);
  const known = new Set(expected);
  return {
    lost: expected.filter((id) => !times.has(id) && !exempt.has(id)),
    doubled: [...times].filter(([, n]) => n > 1).map(([id]) => id),
    foreign: [...times.keys()].filter((id) => !known.has(id)),
  };
}
