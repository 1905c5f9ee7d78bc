/** The thread behind worker.ts: opens one SQLite store, adopting an older database first, and answers calls. */

import { parentPort, workerData, type MessagePort } from "node:worker_threads";
import type { adopt } from "../adopt/adopt.ts";
import { LcmError, type ErrorCode } from "../../core/base/errors.ts";
import type { Store } from "../../core/model/store.ts";
import { openSqlite, systemNow, type SqliteOptions } from "./store.ts";
import { formatCount } from "../../core/base/format.ts";
import { backUp } from "./backups/backup.ts";
import { restore } from "./backups/restore.ts";
import { retryWhileBusy } from "./errors.ts";
import { databaseFileOf, type DatabaseFile } from "../../core/model/database-file.ts";
import type { StoreMethod } from "../script.ts";
import { identify } from "./file-kind.ts";

export const threadUrl = new URL(import.meta.url);

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

export interface Call {
  readonly id: number;
  readonly method: MethodName;
  readonly args: readonly unknown[];
}

export type Reply =
  | { readonly id: number; readonly kind: "value"; readonly value: unknown }
  | { readonly id: number; readonly kind: "error"; readonly error: Failure }
  /** Progress of an adoption, which answers no call. */
  | { readonly kind: "report"; readonly message: string };

export interface Failure {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly hint: string | undefined;
  readonly stack: string | undefined;
}

/** How long to wait while another process adopts the same database. */
const adoptionMsMax = 30 * 60_000;

const isThreadStart = (data: unknown): data is ThreadStart =>
  typeof data === "object" && data !== null && "lcmThread" in data;

const isJobStart = (data: unknown): data is JobStart => typeof data === "object" && data !== null && "lcmJob" in data;

if (parentPort !== null && isThreadStart(workerData)) serve(parentPort, workerData);
if (parentPort !== null && isJobStart(workerData)) void runJob(parentPort, workerData);

async function runJob(port: MessagePort, { lcmJob, args }: JobStart): Promise<void> {
  try {
    const value: unknown = await (jobs[lcmJob] as (...given: readonly unknown[]) => Promise<unknown>)(...args);
    port.postMessage({ id: 0, kind: "value", value } satisfies Reply);
  } catch (error) {
    port.postMessage({ id: 0, kind: "error", error: failureOf(error) } satisfies Reply);
  }
}

function serve(port: MessagePort, { options, isAdopting }: ThreadStart): void {
  const report = (message: string): void => port.postMessage({ kind: "report", message } satisfies Reply);
  const opened = isAdopting ? adoptAndOpen(options, report) : openSqlite(options);
  opened.catch(() => undefined); // The first call gets the error; unhandled, it would end the thread without a reply.
  port.on("message", (call: Call) => void answer(call));

  const answer = async ({ id, method, args }: Call): Promise<void> => {
    try {
      const store = await opened;
      const methods = { ...store, ...databaseFileOf(store) };
      const value: unknown = await (methods[method] as (...given: readonly unknown[]) => Promise<unknown>)(...args);
      port.postMessage({ id, kind: "value", value } satisfies Reply);
    } catch (error) {
      port.postMessage({ id, kind: "error", error: failureOf(error) } satisfies Reply);
    }
  };
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

const failureOf = (error: unknown): Failure => ({
  code: error instanceof LcmError ? error.code : null,
  message: error instanceof Error ? error.message : String(error),
  hint: error instanceof LcmError ? error.hint : undefined,
  stack: error instanceof Error ? error.stack : undefined,
});
