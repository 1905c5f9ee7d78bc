/** Provides seeded randomness: everything random in a test comes from here, so a seed replays the whole run. */

export interface Random {
  /** An integer, 0 ≤ n < below. */
  below(below: number): number;
  /** An integer, both ends included. */
  between(from: number, to: number): number;
  chance(probability: number): boolean;
  pick<T>(from: readonly T[]): T;
  /** Picks by weight; a choice of weight 0 is never taken. */
  weighted<T extends string>(weights: Readonly<Record<T, number>>): T;
  shuffled<T>(items: readonly T[]): readonly T[];
  hex16(): string;
}

export function createRandom(seed: number): Random {
  const next = sfc32(seed);
  const below = (limit: number): number => Math.floor(next() * limit);
  const pick = <T>(from: readonly T[]): T => {
    if (from.length === 0) throw new RangeError("nothing to pick from");
    return from[below(from.length)] as T;
  };
  return {
    below,
    between: (from, to) => from + below(to - from + 1),
    chance: (probability) => next() < probability,
    pick,
    weighted(weights) {
      const choices = Object.entries<number>(weights);
      let left = next() * choices.reduce((sum, [, weight]) => sum + weight, 0);
      const found = choices.find(([, weight]) => (left -= weight) < 0) ?? choices[0];
      return found?.[0] as keyof typeof weights;
    },
    shuffled(items) {
      const order = [...items];
      for (let last = order.length - 1; last > 0; last--) {
        const other = below(last + 1);
        [order[last], order[other]] = [order[other] as never, order[last] as never];
      }
      return order;
    },
    hex16: () => Array.from({ length: 16 }, () => below(16).toString(16)).join(""),
  };
}

/** Small Fast Counter: passes the usual batteries, and its whole state is four numbers. */
function sfc32(seed: number): () => number {
  let [a, b, c, counter] = [0x9e3779b9 ^ seed, 0x243f6a88, 0xb7e15162 ^ Math.floor(seed / 0x1_0000_0000), 1];
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 0x1_0000_0000;
  };
  for (let round = 0; round < 12; round++) next();
  return next;
}
