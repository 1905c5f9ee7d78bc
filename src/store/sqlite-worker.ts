/**
 * The SQLite store in a thread of its own, behind the same port: a host that shares its thread with a database freezes
 * when the database is slow or locked. Searches go to a second, read-only thread. One that outlives its limit (a runaway
 * regular expression cannot be interrupted) is ended with its thread, and reported as a time limit, never as "no matches".
 */

import { Worker } from "node:worker_threads";
import { LcmError } from "../core/errors.ts";
import type { SearchLimits, SearchRequest, SearchResult, Store } from "../core/ports.ts";
import { threadUrl } from "./sqlite-thread.ts";
import type { Answer, Call, Failure, ThreadOptions, ThreadStart } from "./sqlite-thread.ts";

/** How long past its limit a search may take to come back by itself, with what it has found so far. */
const graceMs = 10;

/** A search that comes this close to its limit has its successor started, so that nobody waits for a thread to start. */
const headStartMs = 200;

/** Where the search stops by default; the same as in-process. */
const searchTimeoutMsDefault = 10_000;

const methods = [
  "conversation",
  "conversations",
  "context",
  "messages",
  "entries",
  "summaries",
  "sources",
  "derived",
  "coveredBy",
  "closure",
  "file",
  "files",
  "fileContent",
  "grant",
  "usageSince",
  "journal",
  "status",
  "integrity",
  "skeleton",
  "planForget",
  "open",
  "openSegment",
  "setTitle",
  "setHidden",
  "append",
  "fold",
  "dissolve",
  "rewrite",
  "transplant",
  "forget",
  "saveFile",
  "issueGrant",
  "spendGrant",
  "revokeGrant",
  "sweepGrants",
  "recordUsage",
  "index",
  "backup",
] as const satisfies readonly Exclude<keyof Store, "search" | "close">[];

type Missing = Exclude<keyof Store, "search" | "close" | (typeof methods)[number]>;
/** Does not compile while a method of the port is missing above. */
true satisfies Missing extends never ? true : never;

export async function openSqliteWorker(options: ThreadOptions): Promise<Store> {
  const thread = startThread(options);
  const searcher = createSearcher({ ...options, readOnly: true });
  const forwarded = Object.fromEntries(
    methods.map((method) => [method, async (...args: readonly unknown[]) => await thread.call(method, args)]),
  ) as unknown as Pick<Store, (typeof methods)[number]>;
  const store: Store = {
    ...forwarded,
    search: async (request, limits) => await searcher.search(request, limits),
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
  /** Stops it wherever it is; calls under way fail as unavailable. */
  end(): Promise<void>;
}

function startThread(options: ThreadOptions): Thread {
  const worker = new Worker(threadUrl, { workerData: { lcmThread: true, options } satisfies ThreadStart });
  const waiting = new Map<number, PromiseWithResolvers<unknown>>();
  let lastId = 0;
  let fate: LcmError | null = null;

  const failAll = (error: LcmError): void => {
    fate ??= error;
    for (const { reject } of waiting.values()) reject(fate);
    waiting.clear();
    worker.unref();
  };
  worker.on("message", (answer: Answer) => {
    const asked = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (waiting.size === 0) worker.unref();
    if (answer.kind === "value") asked?.resolve(answer.value);
    else asked?.reject(errorOf(answer.error));
  });
  worker.on("error", (cause) => failAll(new LcmError("unavailable", "the store's thread failed", { cause })));
  worker.on("exit", () => failAll(new LcmError("unavailable", "the store is closed")));
  worker.unref();

  return {
    call(method, args) {
      if (fate !== null) return Promise.reject(fate);
      const asked = Promise.withResolvers<unknown>();
      const id = ++lastId;
      waiting.set(id, asked);
      worker.ref(); // A process with a call under way stays alive for the answer.
      worker.postMessage({ id, method, args } satisfies Call);
      return asked.promise;
    },
    async end() {
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

interface Searcher {
  search(request: SearchRequest, limits?: SearchLimits): Promise<SearchResult>;
  stop(): void;
}

/** One search at a time, so that ending the thread ends only the search that ran too long. */
function createSearcher(options: ThreadOptions): Searcher {
  let thread: Thread | null = null;
  let successor: Thread | null = null;
  let turn: Promise<unknown> = Promise.resolve();
  const ready = (): Thread => (thread ??= startThread(options));
  const prepareSuccessor = (): Thread => (successor ??= startThread(options));
  /** Nobody waits for the old one, which ends when its statement does. */
  const replace = (): void => {
    const old = thread;
    thread = prepareSuccessor();
    successor = null;
    void old?.end();
  };

  const run = async (request: SearchRequest, limits: SearchLimits): Promise<SearchResult> => {
    const { signal } = limits;
    throwIfCancelled(signal);
    const timeoutMs = limits.timeoutMs ?? searchTimeoutMsDefault;
    const outcome = Promise.withResolvers<SearchResult>();
    const headStart = setTimeout(prepareSuccessor, Math.max(0, timeoutMs - headStartMs));
    const timer = setTimeout(() => {
      replace();
      outcome.resolve({ hits: [], caveats: [{ kind: "time", timeoutMs, scanned: 0, of: 0 }] });
    }, timeoutMs + graceMs);
    const cancel = (): void => {
      replace();
      outcome.reject(cancelled());
    };
    signal?.addEventListener("abort", cancel, { once: true });
    ready()
      .call("search", [request, { timeoutMs }])
      .then((value) => outcome.resolve(value as SearchResult), outcome.reject);
    try {
      return await outcome.promise;
    } finally {
      clearTimeout(headStart);
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    }
  };

  return {
    async search(request, limits = {}) {
      throwIfCancelled(limits.signal);
      const result = turn.then(() => run(request, limits));
      turn = result.catch(() => undefined); // Its caller hears of it; the next search only waits its turn.
      return await result;
    },
    stop() {
      void thread?.end();
      void successor?.end();
    },
  };
}

const cancelled = (): LcmError => new LcmError("unavailable", "the search was cancelled");

const throwIfCancelled = (signal: AbortSignal | undefined): void => {
  if (signal?.aborted === true) throw cancelled();
};
