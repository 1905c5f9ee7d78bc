/** Chance that comes out the same every time: the demo is one conversation, not a family of them. */

export interface Chance {
  /** A whole number, both ends included. */
  between(from: number, to: number): number;
  pick<T>(of: readonly T[]): T;
  /** Like pick, but everything once before anything comes again. */
  draw<T>(of: readonly T[]): T;
}

export function createChance(seed: string): Chance {
  const next = mulberry32(hashOf(seed));
  const between = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  const decks = new Map<unknown, unknown[]>();
  const take = <T>(from: T[]): T => {
    const [taken] = from.splice(between(0, from.length - 1), 1);
    if (taken === undefined) throw new RangeError("nothing to pick from");
    return taken;
  };
  return {
    between,
    pick: (of) => take([...of]),
    draw<T>(of: readonly T[]): T {
      const known = decks.get(of) as T[] | undefined;
      const deck = known === undefined || known.length === 0 ? [...of] : known;
      decks.set(of, deck);
      return take(deck);
    },
  };
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const character of text) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193);
  return hash;
}

function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
