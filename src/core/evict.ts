/**
 * Where a context is cut when it is more than its budget, so that the cut stays put while the context grows. Pure.
 *
 * As much is evicted from the oldest end as brings the context within its budget, rounded up to whole steps. That
 * follows from the context's size alone, and counts from its oldest end: until the context has grown by a step, the
 * cut lies before the same item, and nothing has to be remembered between turns. Steps are powers of two, because a
 * host's budget is a little different in every turn, and a thousand steps of a budget's quarter would differ by much.
 */

export interface Sizes {
  readonly budget: number;
  /** Tokens of the whole context. */
  readonly total: number;
  /** Tokens of everything older than each item, of as many of the newest items as are looked at. */
  readonly before: readonly number[];
}

/** A step is at most this part of the budget. The larger, the longer a cut stays; the smaller, the more is shown. */
const stepsOfBudget = 4;
/** How often a step may be halved. */
const halvingsMax = 4;

/**
 * Where to cut, as positions in `before` up to `floor`, the most that is shown first. Steps are smaller only where
 * larger ones would cut beyond the floor. The floor itself comes last.
 */
export function* cutsTo(floor: number, { budget, total, before }: Sizes): Generator<number> {
  let last = -1;
  if (total <= budget) yield (last = 0);
  const largest = 2 ** Math.floor(Math.log2(Math.max(1, budget / stepsOfBudget)));
  for (let halvings = 0; halvings <= halvingsMax; halvings++) {
    const step = Math.max(1, largest / 2 ** halvings);
    for (let evicted = Math.max(0, Math.ceil((total - budget) / step)) * step; ; evicted += step) {
      const kept = before.findIndex((tokens) => tokens >= evicted);
      if (kept < 0 || kept > floor) break;
      if (kept > last) yield (last = kept);
    }
  }
  if (last < floor) yield floor;
}
