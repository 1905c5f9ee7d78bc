/**
 * Records what happened in a soak: counts of events, the newest in full, sampled figures, and every broken promise. A
 * broken promise is recorded with what came just before it.
 */

export interface Fault {
  readonly second: number;
  /** Which promise was broken. */
  readonly what: string;
  readonly detail: string;
  /** What happened just before. */
  readonly before: readonly string[];
}

export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

export interface Ledger {
  count(kind: string): void;
  /** Counts it, and keeps its text for a while. */
  event(kind: string, words?: string): void;
  broken(what: string, detail: unknown): void;
  readonly counts: ReadonlyMap<string, number>;
  readonly faults: readonly Fault[];
  /** The newest events, oldest first. */
  newest(): readonly string[];
  /** Seconds since the start. */
  second(): number;
}

const newestKept = 60;
/** One cause may show a thousand times; the first few suffice. */
const faultsKept = 40;
const faultsOfAKind = 8;
const detailMax = 4_000;

export function createLedger(): Ledger {
  const began = performance.now();
  const counts = new Map<string, number>();
  const newest: string[] = [];
  const faults: Fault[] = [];
  const self: Ledger = {
    counts,
    faults,
    newest: () => [...newest],
    second: () => Math.round((performance.now() - began) / 1000),
    count(kind) {
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    },
    event(kind, words = "") {
      self.count(kind);
      newest.push(`${self.second()} s: ${kind} ${words}`.trimEnd().slice(0, 300));
      if (newest.length > newestKept) newest.shift();
    },
    broken(what, detail) {
      self.count(`broken: ${what}`);
      if (faults.length >= faultsKept || (counts.get(`broken: ${what}`) ?? 0) > faultsOfAKind) return;
      const words = detail instanceof Error ? (detail.stack ?? detail.message) : String(detail);
      faults.push({ second: self.second(), what, detail: words.slice(0, detailMax), before: newest.slice(-15) });
      process.stdout.write(`soak: BROKEN at ${self.second()} s: ${what}: ${words.slice(0, 600)}\n`);
    },
  };
  return self;
}

export function spreadOf(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0);
  return { count: sorted.length, p50: at(0.5), p99: at(0.99), max: at(1) };
}

export const round = (value: number): number => Math.round(value * 10) / 10;

/** By how much the second figure grows with the first, by least squares; null where there is too little data. */
export function slopeOf(points: readonly (readonly [number, number])[]): number | null {
  const mean = (of: 0 | 1): number => points.reduce((sum, point) => sum + point[of], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  const spread = points.reduce((sum, [x]) => sum + (x - meanX) ** 2, 0);
  if (points.length < 10 || spread === 0) return null;
  return points.reduce((sum, [x, y]) => sum + (x - meanX) * (y - meanY), 0) / spread;
}
