/**
 * The SQLite store in a worker thread, so that a slow or locked database cannot freeze the host. Searches use a second,
 * read-only thread, so that a long one delays nothing else and can be cancelled.
 */

import { statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { LcmError } from "../../core/base/errors.ts";
import type { DatabaseFile, SearchRequest, Store } from "../../core/model/store.ts";
import { databaseFileMethods, methods } from "../operations.ts";
import { createSearcher } from "../threads/searcher.ts";
import { callThread, errorOf, type Reply, type Thread } from "../threads/calls.ts";
import { openSqlite } from "./store.ts";
import { threadUrl } from "./thread.ts";
import type { JobArguments, JobName, JobResult, JobStart, MethodName, ThreadOptions, ThreadStart } from "./thread.ts";

/**
 * Opens the database, creating it and its folder if there is none. With `report`, a database of the older program is
 * first adopted in the same thread, with a backup beside it; if that fails, the file is unchanged.
 */
export async function openSqliteWorker(options: ThreadOptions, report?: (message: string) => void): Promise<Store> {
  const thread = startThread(options, report);
  const searcher = createSearcher(
    () => startThread({ ...options, readOnly: true }),
    (request, limits) => (isQuick(options.path, request) ? thread.call("search", [request, limits]) : null),
  );
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
const quickBytes = 512 * 2 ** 20;

/** Anything but words may take long, and only a thread of its own can be ended. */
const isQuick = (path: string, { mode, scope }: SearchRequest): boolean =>
  mode !== "regex" && scope !== "files" && statSync(path).size < quickBytes;

/**
 * Opens the database in this thread, for a program that answers one question and ends. Only a search that may take long
 * starts a thread: with a regular expression, or in a large file.
 */
export async function openSqliteBriefly(options: ThreadOptions): Promise<Store> {
  const store = await openSqlite(options);
  const searcher = createSearcher(() => startThread({ ...options, readOnly: true }));
  return {
    ...store,
    search: async (request, limits) =>
      await (isQuick(options.path, request) ? store : searcher).search(request, limits),
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

function startThread(options: ThreadOptions, report?: (message: string) => void): Thread<MethodName> {
  const start: ThreadStart = { lcmThread: true, options, isAdopting: report !== undefined };
  return callThread(new Worker(threadUrl, { workerData: start }), report);
}
