/**
 * Measures how late this thread's timers are while something runs. A busy machine delays timers by itself, so the
 * measure is the difference to a baseline of the same run, and the best of a few tries: real blocking shows every time.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";

const everyMs = 5;
const triesMax = 5;

/** The greatest delay of a timer, in ms. */
async function latestDuring(work: () => Promise<unknown>): Promise<number> {
  let latest = 0;
  let expected = performance.now() + everyMs;
  const timer = setInterval(() => {
    const now = performance.now();
    latest = Math.max(latest, now - expected);
    expected = now + everyMs;
  }, everyMs);
  try {
    await sleep(4 * everyMs);
    await work();
    await sleep(4 * everyMs); // A timer that was blocked until the end fires only afterwards.
    return latest;
  } finally {
    clearInterval(timer);
  }
}

/** How much later timers are during `work` than during `baseline`, in ms; the best of several tries. */
export async function extraLag(
  baseline: () => Promise<unknown>,
  work: () => Promise<unknown>,
  goodMs: number,
): Promise<number> {
  let best = Infinity;
  for (let tries = 0; tries < triesMax && best > goodMs; tries++) {
    const usual = await latestDuring(baseline);
    best = Math.min(best, (await latestDuring(work)) - usual);
  }
  return best;
}

/** Another thread that spins. */
export async function busyThread(forMs: number): Promise<void> {
  const worker = new Worker(`const end = performance.now() + ${forMs}; while (performance.now() < end);`, {
    eval: true,
  });
  await new Promise<void>((resolve, reject) => {
    worker.once("exit", () => resolve());
    worker.once("error", reject);
  });
}
