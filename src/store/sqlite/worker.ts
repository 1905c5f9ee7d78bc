/**
 * The SQLite store in a thread of its own, behind the same port: a host that shares its thread with a database freezes
 * when the database is slow or locked. Searches go to a second, read-only thread. One that outlives its limit (a runaway
 * regular expression cannot be interrupted) is ended with its thread, and reported as a time limit, never as "no matches".
 */

import { Worker } from "node:worker_threads";
import { LcmError } from "../../core/base/errors.ts";
import type { SearchLimits, SearchRequest, SearchResult, Store } from "../../core/model/store.ts";
import { methods } from "../operations.ts";
import { searchTimeoutMsDefault, throwIfCancelled, cancelled } from "../search/limits.ts";
import { threadUrl } from "./thread.ts";
import type { Answer, Call, Failure, ThreadOptions, ThreadStart } from "./thread.ts";

/** How long past its limit a search may take to come back by itself, with what it has found so far. */
const graceMs = 10;

/** A search that comes this close to its limit has its successor started, so that nobody waits for a thread to start. */
const headStartMs = 200;

/**
 * Opens the database, making it and its folder if there is none. With somebody to `tell`, one of the older program is
 * adopted first, in the same thread and with a backup beside it: that takes as long as it takes, while the host goes on
 * with everything else, and is told when it begins and what came of it. If it fails, the file is as it was.
 */
export async function openSqliteWorker(options: ThreadOptions, tell?: (message: string) => void): Promise<Store> {
  const thread = startThread(options, tell);
  const searcher = createSearcher({ ...options, readOnly: true });
  const forwarded = Object.fromEntries(
    methods.map((method) => [method, async (...args: readonly unknown[]) => await thread.call(method, args)]),
  ) as unknown as Store;
  const store: Store = {
    ...forwarded,
    search: searcher.search,
    async close() {
      searcher.stop();
      await thread.call("close", []);
      await thread.end();
    },
  };
  try {
    // Opening reports its own trouble here, not at the first call.
    await store.status();
  } catch (error) {
    await thread.end();
    throw error;
  }
  return store;
}

interface Thread {
  call(method: keyof Store, args: readonly unknown[]): Promise<unknown>;
  /** False once it has failed or ended, of itself or not; a call would only tell why. */
  isAlive(): boolean;
  /** Stops it wherever it is; calls under way fail as unavailable. */
  end(): Promise<void>;
}

function startThread(options: ThreadOptions, tell?: (message: string) => void): Thread {
  const start: ThreadStart = { lcmThread: true, options, isAdopting: tell !== undefined };
  const worker = new Worker(threadUrl, { workerData: start });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let lastId = 0;
  let fate: LcmError | null = null;
  let isEnding = false;

  const failAll = (error: LcmError): void => {
    fate ??= error;
    for (const { reject } of waiting.values()) reject(fate);
    waiting.clear();
    worker.unref();
  };
  worker.on("message", (answer: Answer) => {
    if (answer.kind === "told") return tell?.(answer.message);
    const asked = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (waiting.size === 0) worker.unref();
    if (answer.kind === "value") asked?.resolve(answer.value);
    else asked?.reject(errorOf(answer.error));
  });
  worker.on("error", (cause) => failAll(new LcmError("unavailable", "the store's thread failed", { cause })));
  worker.on("exit", () =>
    failAll(isEnding ? closed() : new LcmError("unavailable", "the store's thread ended before it was told to")),
  );
  worker.unref();

  return {
    call(method, args) {
      if (fate !== null) return Promise.reject(fate);
      const asked = Promise.withResolvers<unknown>();
      const id = ++lastId;
      waiting.set(id, asked);
      worker.ref(); // A process with a call under way stays alive for the answer.
      try {
        worker.postMessage({ id, method, args } satisfies Call);
      } catch (cause) {
        waiting.delete(id);
        if (waiting.size === 0) worker.unref();
        asked.reject(new LcmError("invalid", `what ${method} was given cannot be handed to a thread`, { cause }));
      }
      return asked.promise;
    },
    isAlive: () => fate === null,
    async end() {
      isEnding = true;
      await worker.terminate();
    },
  };
}

function errorOf({ code, message, hint, stack }: Failure): Error {
  if (code !== null) return new LcmError(code, message, hint === undefined ? {} : { hint });
  const error = new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}

// ── Searching ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One search at a time, so that ending the thread ends only the search that ran too long. */
function createSearcher(options: ThreadOptions) {
  let thread: Thread | null = null;
  let successor: Thread | null = null;
  let turn: Promise<unknown> = Promise.resolve();
  let isStopped = false;
  const living = (known: Thread | null): Thread => (known?.isAlive() === true ? known : startThread(options));
  const prepareSuccessor = (): void => {
    if (!isStopped) successor = living(successor);
  };
  /** Nobody waits for the old one, which ends when its statement does. */
  const replace = (): void => {
    const old = thread;
    prepareSuccessor();
    thread = successor;
    successor = null;
    void old?.end();
  };

  const search = async (request: SearchRequest, limits: SearchLimits = {}): Promise<SearchResult> => {
    if (isStopped) throw closed();
    const { signal, timeoutMs = searchTimeoutMsDefault } = limits;
    throwIfCancelled(signal);
    const startedMs = performance.now();
    const outcome = Promise.withResolvers<SearchResult>();
    let state: "queued" | "running" | "over" = "queued";
    // Waiting for its turn, too, is for its caller to end, and takes of its time.
    const end = (settle: () => void): void => {
      if (state === "running") replace();
      state = "over";
      settle();
    };
    const timers = [
      startTimer(timeoutMs - headStartMs, () => state === "running" && prepareSuccessor()),
      startTimer(timeoutMs + graceMs, () =>
        end(() => outcome.resolve({ hits: [], caveats: [{ kind: "time", timeoutMs, scanned: 0, of: 0 }] })),
      ),
    ];
    const cancel = (): void => end(() => outcome.reject(cancelled()));
    signal?.addEventListener("abort", cancel, { once: true });

    const run = async (): Promise<void> => {
      if (state === "over") return;
      if (isStopped) return outcome.reject(closed());
      state = "running";
      const leftMs = Math.max(0, timeoutMs - (performance.now() - startedMs));
      thread = living(thread);
      thread
        .call("search", [request, { timeoutMs: leftMs }])
        .then((value) => outcome.resolve(sayLimit(value as SearchResult, timeoutMs)), outcome.reject);
      await outcome.promise;
    };
    turn = turn.then(run).catch(() => undefined); // Its caller hears of it; the next search only waits its turn.
    try {
      return await outcome.promise;
    } finally {
      state = "over";
      for (const timer of timers) clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    }
  };

  return {
    search,
    stop(): void {
      isStopped = true;
      void thread?.end();
      void successor?.end();
    },
  };
}

/** What is longer than a timer can wait is no limit; the timer would take it for none of the time. */
const timerMsMax = 2 ** 31 - 1;

const startTimer = (ms: number, act: () => void): NodeJS.Timeout | undefined =>
  ms > timerMsMax ? undefined : setTimeout(act, Math.max(0, ms));

/** A search that waited for its turn had less time, but what was asked for is what its caller knows. */
const sayLimit = ({ hits, caveats }: SearchResult, timeoutMs: number): SearchResult => ({
  hits,
  caveats: caveats.map((caveat) => (caveat.kind === "time" ? { ...caveat, timeoutMs } : caveat)),
});

const closed = (): LcmError => new LcmError("unavailable", "the store is closed");
