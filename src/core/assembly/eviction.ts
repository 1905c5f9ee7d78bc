/**
 * Where a context is cut when it is more than its budget, so that the cut stays put while the context grows. Pure.
 *
 * As much is evicted from the oldest end as brings the context within its budget, rounded up to whole steps. That
 * follows from the context's size alone, and counts from its oldest end: until the context has grown by a step, the
 * cut lies before the same item, and nothing has to be remembered between turns.
 *
 * A host's budget is a little different in every turn, and the cut must not follow it. So steps are powers of two: a
 * thousand steps of a budget's quarter would differ by much, and a power of two is a multiple of every smaller one. Nor
 * may all steps double at the same budget, or every cut would jump to and fro there: they double one after the other
 * while the budget grows from five steps to seven.
 */

export interface Sizes {
  readonly budget: number;
  /** Tokens of the whole context. */
  readonly total: number;
  /** Tokens of everything older than each item, of as many of the newest items as are looked at. */
  readonly before: readonly number[];
}

/** The first steps double at so many to a budget, the last at so many. Fewer: a cut stays longer; more: more is shown. */
const stepsBeforeDoubling = 5;
const stepsMax = 7;
/** How often a step may be halved. */
const halvingsMax = 4;

/**
 * Where to cut, as positions in `before` up to `floor`, the most that is shown first. Steps are smaller only where
 * larger ones would cut beyond the floor. The floor itself comes last.
 */
export function* cutsTo(floor: number, { budget, total, before }: Sizes): Generator<number> {
  let last = -1;
  if (total <= budget) yield (last = 0);
  const largest = stepOf(budget);
  for (let halvings = 0; halvings <= halvingsMax; halvings++) {
    const step = Math.max(1, largest / 2 ** halvings);
    for (let steps = Math.max(0, Math.ceil((total - budget) / step)); ; steps++) {
      if (halvings === 0 && isDoubled(steps, budget / step)) continue;
      const kept = before.findIndex((tokens) => tokens >= steps * step);
      if (kept < 0 || kept > floor) break;
      if (kept > last) yield (last = kept);
    }
  }
  if (last < floor) yield floor;
}

/** A power of two, between a seventh and two sevenths of the budget. */
const stepOf = (budget: number): number => 2 ** Math.floor(Math.log2(Math.max(1, (2 * budget) / stepsMax)));

/** Whether a step is left out, so that the ones around it are one of twice its size. Every second step can be. */
function isDoubled(steps: number, stepsInBudget: number): boolean {
  const share = (stepsInBudget - stepsBeforeDoubling) / (stepsMax - stepsBeforeDoubling);
  return steps % 2 === 1 && spread(steps) < share;
}

/** From 0 to 1. Multiples of the golden ratio: at every budget the doubled steps lie evenly among the others. */
const spread = (count: number): number => (count * 0.618_033_988_75) % 1;

/**
 * How large that may be which stands in front of a cut: between an eighth and a quarter of the budget. It doubles too,
 * at a budget of the cut's own. So where a budget varies around that one, it does so no longer than until the next cut.
 */
export function frontMax(budget: number, tokensBefore: number): number {
  const offset = spread(tokensBefore);
  return Math.floor(2 ** (Math.floor(Math.log2(Math.max(1, budget) / 4) - offset) + offset));
}
