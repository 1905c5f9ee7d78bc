/** Measures CPU of this process, sorted durations, and how much of a prompt repeats the one before it. */

export interface Spread {
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly most: number;
}

/** Milliseconds of CPU, of all threads, since then or since the start. */
export function cpuMs(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1_000;
}

export function spread(took: readonly number[]): Spread {
  const sorted = took.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), most: sorted.at(-1) ?? 0 };
}

/** How long each of this many runs takes, in ms. */
export async function timed(times: number, work: (time: number) => unknown): Promise<Spread> {
  const took: number[] = [];
  for (let time = 0; time < times; time++) {
    const start = performance.now();
    await work(time);
    took.push(performance.now() - start);
  }
  return spread(took);
}

/** How many characters two prompts, each a JSON list, share at their beginning. */
export function commonPrefix(a: string, b: string): number {
  // The list's closing bracket is not part of what a provider caches.
  const end = Math.min(a.length - 1, b.length);
  let at = 0;
  while (at < end && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  return at;
}
