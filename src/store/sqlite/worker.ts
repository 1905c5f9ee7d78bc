/**
 * The SQLite store in a worker thread, so that a slow or locked database cannot freeze the host. Searches use a second,
 * read-only thread, so that a long one delays nothing else and can be cancelled.
 */

import { statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { LcmError } from "../../core/base/errors.ts";
import type { DatabaseFile, SearchLimits, SearchRequest, SearchResult, Store } from "../../core/model/store.ts";
import { databaseFileMethods, methods } from "../operations.ts";
import { searchTimeoutMsDefault, throwIfCancelled, cancelled } from "../search/limits.ts";
import { openSqlite } from "./store.ts";
import { threadUrl } from "./thread.ts";
import type {
  Call,
  Failure,
  JobArguments,
  JobName,
  JobResult,
  JobStart,
  MethodName,
  Reply,
  ThreadOptions,
  ThreadStart,
} from "./thread.ts";

/** How long past its limit a search may still return what it has found so far. */
const graceMs = 10;

/** How long before its limit a search has a replacement thread started, so that the next search need not wait for one. */
const headStartMs = 200;

/**
 * Opens the database, creating it and its folder if there is none. With `report`, a database of the older program is
 * first adopted in the same thread, with a backup beside it; if that fails, the file is unchanged.
 */
export async function openSqliteWorker(options: ThreadOptions, report?: (message: string) => void): Promise<Store> {
  const thread = startThread(options, report);
  const searcher = createSearcher({ ...options, readOnly: true });
  const forward = (names: readonly MethodName[]): object =>
    Object.fromEntries(
      names.map((name) => [name, async (...args: readonly unknown[]) => await thread.call(name, args)]),
    );
  const store: Store = {
    ...(forward(methods) as Omit<Store, "databaseFile">),
    databaseFile: forward(databaseFileMethods) as DatabaseFile,
    search: searcher.search,
    async close() {
      searcher.stop();
      await thread.call("close", []);
      await thread.end();
    },
  };
  try {
    // A database that cannot be opened fails here, not at the first call.
    await store.status();
  } catch (error) {
    await thread.end();
    throw error;
  }
  return store;
}

/** Words are found in a file of this size in less time than a thread takes to start. */
const quickBytes = 64 * 2 ** 20;

/**
 * Opens the database in this thread, for a program that answers one question and ends. Only a search that may take long
 * starts a thread: with a regular expression, or in a large file.
 */
export async function openSqliteBriefly(options: ThreadOptions): Promise<Store> {
  const store = await openSqlite(options);
  const searcher = createSearcher({ ...options, readOnly: true });
  const isQuick = ({ mode }: SearchRequest): boolean => mode !== "regex" && statSync(options.path).size < quickBytes;
  return {
    ...store,
    search: async (request, limits) => await (isQuick(request) ? store : searcher).search(request, limits),
    async close() {
      searcher.stop();
      await store.close();
    },
  };
}

/** Runs one long step in a thread of its own, so that this one is free meanwhile. */
export async function runApart<Name extends JobName>(
  name: Name,
  ...args: JobArguments<Name>
): Promise<JobResult<Name>> {
  const worker = new Worker(threadUrl, { workerData: { lcmJob: name, args } satisfies JobStart });
  try {
    const reply = await new Promise<Reply>((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("error", reject);
      worker.once("exit", () => reject(new LcmError("unavailable", "the thread ended unexpectedly")));
    });
    if (reply.kind === "error") throw errorOf(reply.error);
    return (reply.kind === "value" ? reply.value : null) as JobResult<Name>;
  } finally {
    await worker.terminate();
  }
}

interface Thread {
  call(method: MethodName, args: readonly unknown[]): Promise<unknown>;
  /** False once the thread has failed or ended; then every call fails. */
  isAlive(): boolean;
  /** Stops the thread at once; pending calls fail as `unavailable`. */
  end(): Promise<void>;
}

function startThread(options: ThreadOptions, report?: (message: string) => void): Thread {
  const start: ThreadStart = { lcmThread: true, options, isAdopting: report !== undefined };
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
  worker.on("message", (reply: Reply) => {
    if (reply.kind === "report") return report?.(reply.message);
    const call = waiting.get(reply.id);
    waiting.delete(reply.id);
    if (waiting.size === 0) worker.unref();
    if (reply.kind === "value") call?.resolve(reply.value);
    else call?.reject(errorOf(reply.error));
  });
  worker.on("error", (cause) => failAll(new LcmError("unavailable", "the store's thread failed", { cause })));
  worker.on("exit", () =>
    failAll(isEnding ? closed() : new LcmError("unavailable", "the store's thread ended unexpectedly")),
  );
  worker.unref();

  return {
    call(method, args) {
      if (fate !== null) return Promise.reject(fate);
      const call = Promise.withResolvers<unknown>();
      const id = ++lastId;
      waiting.set(id, call);
      worker.ref(); // Keeps the process alive until the reply.
      try {
        worker.postMessage({ id, method, args } satisfies Call);
      } catch (cause) {
        waiting.delete(id);
        if (waiting.size === 0) worker.unref();
        call.reject(new LcmError("invalid", `an argument of ${method} cannot be passed to a thread`, { cause }));
      }
      return call.promise;
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

/** Runs one search at a time, so that ending the thread ends no other search. */
function createSearcher(options: ThreadOptions) {
  let thread: Thread | null = null;
  let successor: Thread | null = null;
  let turn: Promise<unknown> = Promise.resolve();
  let isStopped = false;
  const living = (known: Thread | null): Thread => (known?.isAlive() === true ? known : startThread(options));
  const prepareSuccessor = (): void => {
    if (!isStopped) successor = living(successor);
  };
  /** Does not wait for the old thread, which ends with its current statement. */
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
    // Also ends a search that is still queued: waiting counts towards its time limit.
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
        .then((value) => outcome.resolve(withTimeout(value as SearchResult, timeoutMs)), outcome.reject);
      await outcome.promise;
    };
    turn = turn.then(run).catch(() => undefined); // Its caller gets the error; the next search runs regardless.
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

/** Longer waits overflow a timer, which would then fire at once; they count as no limit. */
const timerMsMax = 2 ** 31 - 1;

const startTimer = (ms: number, act: () => void): NodeJS.Timeout | undefined =>
  ms > timerMsMax ? undefined : setTimeout(act, Math.max(0, ms));

/** A queued search had less time left, but its caveat names the limit that its caller set. */
const withTimeout = ({ caveats, ...found }: SearchResult, timeoutMs: number): SearchResult => ({
  ...found,
  caveats: caveats.map((caveat) => (caveat.kind === "time" ? { ...caveat, timeoutMs } : caveat)),
});

const closed = (): LcmError => new LcmError("unavailable", "the store is closed");
