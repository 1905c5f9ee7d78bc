/**
 * The graph of summaries: walks from a context down to its messages, and back up in order, over ids only.
 *
 * A cycle or a missing source, which only a damaged database has, ends the walk there.
 */

import type { MessageId, Ref, Sources, SummaryId } from "./types.ts";
import { compare } from "../base/format.ts";

export type SourcesOf = (summary: SummaryId) => Sources | undefined;

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

/** The summaries that a context reaches; those of one depth are in conversation order. */
export const reachedFrom = (context: readonly Ref[], sourcesOf: SourcesOf): readonly SummaryId[] =>
  closure(
    context.flatMap((item) => (item.kind === "summary" ? [item.id] : [])),
    sourcesOf,
  );

/** Sources first: the order for copying summaries, and for rewriting them from rewritten sources. */
export function bottomUp<
  T extends { readonly id: SummaryId; readonly depth: number; readonly earliestAt: string | null },
>(summaries: readonly T[]): readonly T[] {
  return [...summaries].sort(
    (a, b) => a.depth - b.depth || compare(a.earliestAt ?? "", b.earliestAt ?? "") || compare(a.id, b.id),
  );
}

/** Walks the sources of every item, oldest first. The lossless invariant is about its result. */
export function flatten(context: readonly Ref[], sourcesOf: SourcesOf) {
  /** Every message under the context, once for each time it is reached; more than once is a fault. */
  const messages: MessageId[] = [];
  /** Summaries that are among their own sources, directly or not. */
  const cyclic: SummaryId[] = [];
  const walk = (item: Ref, above: ReadonlySet<SummaryId>): void => {
    if (item.kind === "message") {
      messages.push(item.id);
      return;
    }
    if (above.has(item.id)) {
      cyclic.push(item.id);
      return;
    }
    // A summary carried over from an earlier segment has no sources here; a damaged one may have none.
    const { messages: own = [], summaries = [] } = sourcesOf(item.id) ?? {};
    for (const id of own) messages.push(id);
    const within = new Set(above).add(item.id);
    for (const id of summaries) walk({ kind: "summary", id }, within);
  };
  for (const item of context) walk(item, new Set());
  return { messages, cyclic };
}

/** Messages that the context does not reach and that are not exempt, and those that it reaches more than once. */
export function coverage(reached: readonly number[], expected: readonly number[], exempt: ReadonlySet<number>) {
  const times = new Map<number, number>();
  for (const id of reached) times.set(id, (times.get(id) ?? 0) + 1);
  return {
    lost: expected.filter((id) => !times.has(id) && !exempt.has(id)),
    doubled: [...times].filter(([, n]) => n > 1).map(([id]) => id),
  };
}
