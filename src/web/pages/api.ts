/** Talks to the server: reads with a cache of what is shown, work that takes a while, and events. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Events, Failure, Job, JobResult, Reads, Writes } from "../contract.ts";

export class RequestError extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(failure.message);
    this.failure = failure;
  }
}

export const failureOf = (error: unknown): Failure =>
  error instanceof RequestError
    ? error.failure
    : { code: "bug", message: error instanceof Error ? error.message : String(error), hint: null };

export async function read<Name extends keyof Reads>(
  name: Name,
  query: Reads[Name]["query"],
  signal?: AbortSignal,
): Promise<Reads[Name]["answer"]> {
  const words = new URLSearchParams();
  const fields: Readonly<Record<string, string | number | boolean | readonly (string | number)[] | undefined>> = query;
  for (const [field, value] of Object.entries(fields))
    if (value !== undefined) words.set(field, typeof value === "object" ? value.join() : String(value));
  return await answerOf(`api/${name}?${words}`, signal === undefined ? {} : { signal });
}

export async function write<Name extends keyof Writes>(
  name: Name,
  body: Writes[Name]["body"],
): Promise<Writes[Name]["answer"]> {
  const headers = { "content-type": "application/json" };
  return await answerOf(`api/${name}`, { method: "POST", headers, body: JSON.stringify(body) });
}

async function answerOf<T>(path: string, options: RequestInit): Promise<T> {
  let response: Response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    const hint = "start `lcm web` again, and open the link that it prints";
    throw new RequestError({ code: "unavailable", message: "The server does not answer.", hint });
  }
  const answer: (T & { readonly error?: Failure }) | null = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const unknown = { code: "bug", message: `The server answered with status ${response.status}.`, hint: null } as const;
  throw new RequestError(answer?.error ?? unknown);
}

// ── Reading for a view ───────────────────────────────────────────────────────────────────────────────────────────────

export interface Asked<T> {
  readonly value: T | null;
  readonly failure: Failure | null;
  /** Whether an answer is under way, with or without an older one to show meanwhile. */
  readonly isLoading: boolean;
  readonly again: () => void;
}

/**
 * Reads what a view shows, again when the question or the database changes; the old answer is shown until the new one is
 * there, unless it is about something else. Null asks nothing.
 */
export function useRead<Name extends keyof Reads>(
  name: Name,
  query: Reads[Name]["query"] | null,
  { keeps = false, live = true }: { readonly keeps?: boolean; readonly live?: boolean } = {},
): Asked<Reads[Name]["answer"]> {
  type Answer = Reads[Name]["answer"];
  const key = query === null ? null : `${name} ${JSON.stringify(query)}`;
  const [state, setState] = useState<{ key: string | null; value: Answer | null; failure: Failure | null }>({
    key: null,
    value: null,
    failure: null,
  });
  const [round, setRound] = useState(0);
  const again = useCallback(() => setRound((before) => before + 1), []);
  useEffect(() => (live ? onChanged(again) : undefined), [live, again]);
  useEffect(() => {
    if (query === null) return;
    const abort = new AbortController();
    read(name, query, abort.signal).then(
      (value) => setState({ key, value, failure: null }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        setState((before) => ({ key, value: before.key === key ? before.value : null, failure: failureOf(error) }));
      },
    );
    return () => abort.abort();
    // The question is its text.
  }, [key, round]);
  const isSame = state.key === key;
  return {
    value: isSame || keeps ? state.value : null,
    failure: isSame ? state.failure : null,
    isLoading: !isSame && query !== null,
    again,
  };
}

// ── Events ───────────────────────────────────────────────────────────────────────────────────────────────────────────

type Connection = "connecting" | "live" | "lost" | "ended";
const changeListeners = new Set<() => void>();
const jobListeners = new Set<(job: Job) => void>();
const connectionListeners = new Set<(connection: Connection) => void>();
let connection: Connection = "connecting";

const listen =
  <T>(listeners: Set<(value: T) => void>) =>
  (listener: (value: T) => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };

/** Calls back after every change of the database, by whatever process. */
export function onChanged(listener: () => void): () => void {
  changeListeners.add(listener);
  return () => changeListeners.delete(listener);
}
export const onJob = listen(jobListeners);
const onConnection = listen(connectionListeners);

/** Changes of a busy writer are shown at most this often. */
const calmMs = 400;

export function followEvents(): void {
  const source = new EventSource("api/events");
  let waiting = false;
  const changed = (): void => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      for (const listener of changeListeners) listener();
    }, calmMs);
  };
  const become = (next: Connection): void => {
    // What happened while the connection was lost was not told.
    if (connection === "lost" && next === "live") changed();
    connection = next;
    for (const listener of connectionListeners) listener(next);
  };
  const names = ["changed", "replaced", "job", "end"] as const satisfies (keyof Events)[];
  for (const name of names)
    source.addEventListener(name, (event: MessageEvent<string>) => {
      if (name === "job") for (const listener of jobListeners) listener(JSON.parse(event.data));
      else if (name === "end") become("ended");
      else changed();
    });
  source.addEventListener("open", () => become("live"));
  source.addEventListener("error", () => connection !== "ended" && become("lost"));
}

export function useConnection(): Connection {
  const [now, setNow] = useState(connection);
  useEffect(() => onConnection(setNow), []);
  return now;
}

// ── Work that takes a while ──────────────────────────────────────────────────────────────────────────────────────────

/** How often a job is asked for, should its events be lost. */
const jobPollMs = 1_000;

/** Follows a job to its end. */
export async function finish(first: Job, onProgress: (job: Job) => void): Promise<JobResult> {
  let job = first;
  while (job.result === null && job.failure === null) {
    onProgress(job);
    const before = job;
    job = await new Promise<Job>((resolve, reject) => {
      const timer = setTimeout(() => void read("job", { id: before.id }).then(end, reject), jobPollMs);
      const stop = onJob((told) => told.id === before.id && end(told));
      const end = (told: Job): void => {
        clearTimeout(timer);
        stop();
        resolve(told);
      };
    });
  }
  if (job.result === null) throw new RequestError(job.failure ?? failureOf("no result"));
  return job.result;
}

export interface Working {
  readonly job: Job | null;
  readonly isBusy: boolean;
  readonly failure: Failure | null;
  /** Runs one piece of work at a time; null if it failed. */
  readonly run: (start: () => Promise<Job>) => Promise<JobResult | null>;
  readonly stop: () => void;
}

export function useWork(): Working {
  const [job, setJob] = useState<Job | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const current = useRef<Job | null>(null);
  const follow = (next: Job): void => {
    current.current = next;
    setJob(next);
  };
  const run = async (start: () => Promise<Job>): Promise<JobResult | null> => {
    current.current = null;
    setBusy(true);
    setFailure(null);
    try {
      return await finish(await start(), follow);
    } catch (error) {
      setFailure(failureOf(error));
      return null;
    } finally {
      setBusy(false);
      setJob(null);
      current.current = null;
    }
  };
  const stop = (): void => {
    if (current.current !== null) void write("jobStop", { id: current.current.id }).catch(() => undefined);
  };
  return { job, isBusy, failure, run, stop };
}
