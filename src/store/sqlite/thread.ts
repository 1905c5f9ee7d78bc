/** The thread behind worker.ts: opens one SQLite store, adopting an older database first, and answers calls. */

import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import type { adopt } from "../adopt/adopt.ts";
import type { Store } from "../../core/model/store.ts";
import { openSqlite, systemNow, type SqliteOptions } from "./store.ts";
import { formatCount } from "../../core/base/format.ts";
import { backUp } from "./backups/backup.ts";
import { restore } from "./backups/restore.ts";
import { retryWhileBusy } from "./errors.ts";
import { databaseFileOf, type DatabaseFile } from "../../core/model/database-file.ts";
import type { StoreMethod } from "../script.ts";
import { answerCalls, reply, type Reply } from "../threads/calls.ts";
import { identify } from "./file-kind.ts";

/** Where the build puts the thread, relative to its other parts: in a file of its own, which loads faster than many. */
declare const threadFile: string | undefined;

export const threadUrl = new URL(typeof threadFile === "string" ? threadFile : import.meta.url, import.meta.url);

/** Functions cannot be cloned to another thread. */
export type ThreadOptions = Omit<SqliteOptions, "now" | "hex16">;

export interface ThreadStart {
  readonly lcmThread: true;
  readonly options: ThreadOptions;
  /** Whether a database of the older program is adopted first. */
  readonly isAdopting: boolean;
}

/** Work on whole files that takes one long step, in a thread that does nothing else. */
const jobs = {
  adopt: async (...args: Parameters<typeof adopt>) => await (await import("../adopt/adopt.ts")).adopt(...args),
  backUp,
  restore,
} as const;

export type JobName = keyof typeof jobs;
export type JobArguments<Name extends JobName> = Parameters<(typeof jobs)[Name]>;
export type JobResult<Name extends JobName> = Awaited<ReturnType<(typeof jobs)[Name]>>;

export interface JobStart {
  readonly lcmJob: JobName;
  readonly args: readonly unknown[];
}

export type MethodName = StoreMethod | keyof DatabaseFile;

/** How long to wait while another process adopts the same database. */
const adoptionMsMax = 30 * 60_000;

const isThreadStart = (data: unknown): data is ThreadStart =>
  typeof data === "object" && data !== null && "lcmThread" in data;

const isJobStart = (data: unknown): data is JobStart => typeof data === "object" && data !== null && "lcmJob" in data;

if (parentPort !== null && isThreadStart(workerData)) serve(parentPort, workerData);
if (parentPort !== null && isJobStart(workerData)) void runJob(parentPort, workerData);

async function runJob(port: MessagePort, { lcmJob, args }: JobStart): Promise<void> {
  await reply(port, 0, async () => await (jobs[lcmJob] as (...given: readonly unknown[]) => Promise<unknown>)(...args));
}

function serve(port: MessagePort, { options, isAdopting }: ThreadStart): void {
  const report = (message: string): void => port.postMessage({ kind: "report", message } satisfies Reply);
  const opened = isAdopting ? adoptAndOpen(options, report) : openSqlite(options);
  answerCalls(
    port,
    opened.then((store) => ({ ...store, ...databaseFileOf(store) })),
  );
}

async function adoptAndOpen(options: ThreadOptions, report: (message: string) => void): Promise<Store> {
  const { path } = options;
  if ((await retryWhileBusy(adoptionMsMax, () => identify(path))) === "older_program") {
    report(`${path} was made by an older lossless-claw; converting it now, once`);
    const { adopt } = await import("../adopt/adopt.ts");
    const adopted = await adopt(path, systemNow(), { busyTimeoutMs: adoptionMsMax });
    report(
      adopted.kind === "unchanged"
        ? `another process has converted ${path} in the meantime`
        : `converted ${path}: ${formatCount(adopted.messages)} messages and ${formatCount(adopted.summaries)} summaries; the original is kept as ${adopted.backup}`,
    );
  }
  return await openSqlite(options);
}
