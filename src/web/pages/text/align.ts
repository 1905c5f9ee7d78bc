/** Aligns a summary with its sources: for each line, those that share its rarer words, so that both can be read together. */

export interface Aligned {
  readonly line: string;
  /** Indexes of the sources that it most likely tells of, in order; empty for headings and the like. */
  readonly sources: readonly number[];
}

const perLine = 3;
/** How much of a line's weight a source must have. */
const leastShare = 0.25;

export function align(text: string, sources: readonly string[]): readonly Aligned[] {
  const words = sources.map((source) => new Set(wordsOf(source)));
  const counts = new Map<string, number>();
  for (const set of words) for (const word of set) counts.set(word, (counts.get(word) ?? 0) + 1);
  const weight = (word: string): number => {
    const count = counts.get(word) ?? 0;
    return count === 0 ? 0 : Math.log(1 + sources.length / count);
  };
  return text.split("\n").map((line) => {
    const own = [...new Set(wordsOf(line))];
    const total = own.reduce((sum, word) => sum + weight(word), 0);
    const scored = words.map((set, source) => ({
      source,
      score: own.reduce((sum, word) => sum + (set.has(word) ? weight(word) : 0), 0),
    }));
    const best = scored.reduce((most, { score }) => Math.max(most, score), 0);
    const near = scored.filter(({ score }) => own.length > 1 && score > leastShare * total && score >= best * 0.7);
    const top = near.toSorted((a, b) => b.score - a.score).slice(0, perLine);
    return { line, sources: top.map(({ source }) => source).sort((a, b) => a - b) };
  });
}

const wordsOf = (text: string): readonly string[] =>
  (text.toLowerCase().match(/[\p{L}\d][\p{L}\d_.-]*[\p{L}\d]|\p{Script=Han}/gu) ?? []).filter(
    (word) => word.length > 3 || /\d|\p{Script=Han}/u.test(word),
  );
