/**
 * Measures how long this thread keeps its timers waiting while something runs. What counts is the time that the event
 * loop spends outside its wait for events, without the time in which the system runs other processes instead: a loaded
 * machine delays every thread. The measure is the difference to a baseline of the same run, and the best of a few tries:
 * real blocking shows every time.
 */

import { existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";

const everyMs = 5;
const triesMax = 5;

/** Linux counts for the main thread: ns on a processor, ns of waiting for one, turns. */
const schedule = "/proc/self/schedstat";
const hasSchedule = existsSync(schedule);
const waitedMs = (): number => (hasSchedule ? Number(readFileSync(schedule, "utf8").split(" ")[1]) / 1e6 : 0);

/** The longest stretch in ms for which this thread was busy, or blocked, and so could not run a timer. */
export async function busiestDuring(work: () => Promise<unknown>): Promise<number> {
  let busiest = 0;
  const busyMs = (): number => performance.eventLoopUtilization().active - waitedMs();
  let before = busyMs();
  const measure = (): void => {
    const now = busyMs();
    busiest = Math.max(busiest, now - before);
    before = now;
  };
  const timer = setInterval(measure, everyMs);
  try {
    await sleep(4 * everyMs);
    await work();
    await sleep(4 * everyMs); // A timer that was blocked until the end fires only afterwards.
    return busiest;
  } finally {
    clearInterval(timer);
  }
}

/** How much longer timers have to wait during `work` than during `baseline`, in ms; the best of several tries. */
export async function extraLag(
  baseline: () => Promise<unknown>,
  work: () => Promise<unknown>,
  goodMs: number,
): Promise<number> {
  let best = Infinity;
  for (let tries = 0; tries < triesMax && best > goodMs; tries++) {
    const usual = await busiestDuring(baseline);
    best = Math.min(best, (await busiestDuring(work)) - usual);
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
