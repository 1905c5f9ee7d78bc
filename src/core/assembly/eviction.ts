/**
 * Chooses where to cut a context that exceeds its budget, so that the cut stays put while the context grows. Pure.
 *
 * The excess, rounded up to whole steps, is evicted from the oldest end. So the cut stays before the same item until the
 * context has grown by a step, and no state is kept between turns.
 *
 * A host's budget varies slightly from turn to turn, and the cut must not follow it. So steps are powers of two, each a
 * multiple of every smaller one. Nor may all steps double at the same budget, or every cut would jump back and forth
 * there: they double one by one as the budget grows from five steps to seven.
 */

export interface Sizes {
  readonly budget: number;
  /** Tokens of the whole context. */
  readonly total: number;
  /** For each of the newest items: tokens of everything older. */
  readonly before: readonly number[];
}

/** Steps per budget at which the first and the last step double. Fewer: a cut stays longer; more: more is shown. */
const stepsBeforeDoubling = 5;
const stepsMax = 7;
/** How often a step may be halved. */
const halvingsMax = 4;

/**
 * Possible cuts as positions in `before` up to `floor`, those that keep most first. Steps are halved only where larger
 * ones would cut beyond the floor. The floor itself comes last.
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

/** Whether to skip a step, which merges its neighbours into one of twice the size. Only odd steps can be skipped. */
function isDoubled(steps: number, stepsInBudget: number): boolean {
  const share = (stepsInBudget - stepsBeforeDoubling) / (stepsMax - stepsBeforeDoubling);
  return steps % 2 === 1 && spread(steps) < share;
}

/** From 0 to 1. Multiples of the golden ratio spread the doubled steps evenly at every budget. */
const spread = (count: number): number => (count * 0.618_033_988_75) % 1;

/**
 * Most tokens of the user message in front of a cut: between an eighth and a quarter of the budget. The limit doubles
 * too, at a budget that differs per cut, so that a budget varying around that point matters only until the next cut.
 */
export function frontMax(budget: number, tokensBefore: number): number {
  const offset = spread(tokensBefore);
  return Math.floor(2 ** (Math.floor(Math.log2(Math.max(1, budget) / 4) - offset) + offset));
}
