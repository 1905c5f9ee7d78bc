/** Increasing sequences of numbers: the longest one within a list, and positions in one. */

/** How many of these increasing numbers are below a limit. */
export function countBelow(increasing: readonly number[], limit: number): number {
  let [low, high] = [0, increasing.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((increasing[middle] ?? limit) < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The indexes of the longest increasing sequence, which need not be adjacent; null is never part of it. */
export function longestIncreasing(values: readonly (number | null)[]): ReadonlySet<number> {
  const ends: number[] = []; // The index of the lowest value that a sequence of each length can end with.
  const endValues: number[] = [];
  const previous = new Map<number, number | undefined>();
  for (const [at, value] of values.entries()) {
    if (value === null) continue;
    const length = countBelow(endValues, value);
    previous.set(at, ends[length - 1]);
    ends[length] = at;
    endValues[length] = value;
  }
  const indexes = new Set<number>();
  for (let at = ends.at(-1); at !== undefined; at = previous.get(at)) indexes.add(at);
  return indexes;
}
