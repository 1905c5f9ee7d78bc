/** Work that may take a while: it goes on if nobody looks, tells its progress, and can be stopped. */

import { randomUUID } from "node:crypto";
import { LcmError } from "../core/base/errors.ts";
import type { Doing, Port } from "../operator/port.ts";
import type { Job, JobResult } from "./contract.ts";
import { failureOf } from "./failures.ts";

type Work = (doing: Doing) => Promise<JobResult>;

interface Running {
  readonly job: Job;
  readonly stopping: AbortController;
  readonly end: Promise<void>;
}

/** Ended ones that can still be asked about. */
const keptMax = 100;
const runningMax = 8;
const beatMs = 100;

export function createJobs(port: Port, publish: (job: Job) => void) {
  const all = new Map<string, Running>();
  const isRunning = ({ job }: Running): boolean => job.result === null && job.failure === null;
  const change = (id: string, changed: Partial<Job>): void => {
    const known = all.get(id);
    if (known === undefined) return;
    const job = { ...known.job, ...changed };
    all.set(id, { ...known, job });
    publish(job);
  };
  const find = (id: string): Running => {
    const known = all.get(id);
    if (known === undefined) throw new LcmError("not_found", `there is no job ${id}`);
    return known;
  };
  const perform = async (id: string, work: Work, signal: AbortSignal): Promise<void> => {
    const tell = everyBeat((progress: Job["progress"]) => change(id, { progress }));
    const onProgress: Doing["onProgress"] = ({ done, of, words, stops = false }) =>
      tell.say({ done, of, words, stops });
    try {
      const result = await work({ port, signal, onProgress });
      tell.end();
      change(id, { result });
    } catch (error) {
      tell.end();
      change(id, { failure: failureOf(error, signal) });
    }
  };
  const forgetOld = (): void => {
    const ended = [...all].filter(([, each]) => !isRunning(each));
    for (const [id] of ended.slice(0, Math.max(0, ended.length - keptMax))) all.delete(id);
  };
  return {
    start(kind: Job["kind"], work: Work): Job {
      forgetOld();
      if ([...all.values()].filter(isRunning).length >= runningMax)
        throw new LcmError("unavailable", "too much work is under way", { hint: "wait until some of it has ended" });
      const id = randomUUID();
      const progress = { done: 0, of: null, words: "starting", stops: false };
      const job: Job = { id, kind, progress, result: null, failure: null };
      const stopping = new AbortController();
      const started = Promise.withResolvers<void>();
      const end = started.promise.then(async () => await perform(id, work, stopping.signal));
      all.set(id, { job, stopping, end });
      started.resolve();
      return job;
    },
    find: (id: string): Job => find(id).job,
    stop(id: string): Job {
      const { job, stopping } = find(id);
      stopping.abort();
      return job;
    },
    isBusy: (): boolean => [...all.values()].some(isRunning),
    async close(): Promise<void> {
      for (const { stopping } of all.values()) stopping.abort();
      await Promise.all([...all.values()].map(async ({ end }) => await end));
    },
  };
}

export type Jobs = ReturnType<typeof createJobs>;

/** Says the first thing at once, then the newest now and then. */
function everyBeat<T>(tell: (value: T) => void) {
  let [waiting, timer]: [{ readonly value: T } | null, NodeJS.Timeout | null] = [null, null];
  const flush = (): void => {
    timer = null;
    if (waiting === null) return;
    const { value } = waiting;
    waiting = null;
    tell(value);
    timer = setTimeout(flush, beatMs);
  };
  return {
    say(value: T): void {
      waiting = { value };
      if (timer === null) flush();
    },
    end(): void {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      if (waiting !== null) tell(waiting.value);
      waiting = null;
    },
  };
}
