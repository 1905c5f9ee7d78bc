/**
 * Where a context is cut when it is more than its budget, so that the cut stays put while the context grows. Pure.
 *
 * As much is evicted from the oldest end as brings the context within its budget, rounded up to whole steps. That
 * follows from the context's size alone, and counts from its oldest end: until the context has grown by a step, the
 * cut lies before the same item, and nothing has to be remembered between turns.
 */

export interface Sizes {
  readonly budget: number;
  /** The budget, less what is said about what is not shown. */
  readonly room: number;
  /** Tokens of the whole context. */
  readonly total: number;
  /** Tokens of everything older than each item, of as many of the newest items as are looked at. */
  readonly before: readonly number[];
}

/** Parts of the budget that a step may be. The larger, the longer a cut stays; the smaller, the more is shown. */
const stepsOfBudget = [4, 8, 16, 32, 64] as const;

/**
 * Where to cut, as positions in `before` up to `floor`, the most that is shown first. A step is a quarter of the
 * budget, and smaller only where that would cut beyond the floor. The floor itself comes last.
 */
export function* cutsTo(floor: number, { budget, room, total, before }: Sizes): Generator<number> {
  let last = -1;
  if (total <= budget) yield (last = 0);
  for (const parts of stepsOfBudget) {
    const step = Math.max(1, Math.floor(budget / parts));
    for (let evicted = Math.max(0, Math.ceil((total - room) / step)) * step; ; evicted += step) {
      const kept = before.findIndex((tokens) => tokens >= evicted);
      if (kept < 0 || kept > floor) break;
      if (kept > last) yield (last = kept);
    }
  }
  if (last < floor) yield floor;
}
