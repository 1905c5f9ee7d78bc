/**
 * The other end of sqlite-worker.ts: a thread that owns one SQLite store and answers calls by name. Two kinds are
 * started from this file: the store itself, and a read-only one that only searches and may be ended at any moment. The
 * store's thread can adopt a database of the older program before it opens it.
 */

import { parentPort, workerData } from "node:worker_threads";
import type { MessagePort } from "node:worker_threads";
import { LcmError } from "../../core/base/errors.ts";
import type { ErrorCode } from "../../core/base/errors.ts";
import type { Store } from "../../core/model/store.ts";
import { openSqlite, systemNow } from "./store.ts";
import type { SqliteOptions } from "./store.ts";
import { formatCount } from "../../core/base/format.ts";
import { retryWhileBusy } from "./errors.ts";
import { identify } from "./file-kind.ts";

export const threadUrl = new URL(import.meta.url);

/** What crosses between the threads must be cloneable: functions stay at home. */
export type ThreadOptions = Omit<SqliteOptions, "now" | "hex16">;

export interface ThreadStart {
  readonly lcmThread: true;
  readonly options: ThreadOptions;
  /** A database of the older program is adopted before it is opened. */
  readonly isAdopting: boolean;
}

export interface Call {
  readonly id: number;
  readonly method: keyof Store;
  readonly args: readonly unknown[];
}

export type Answer =
  | { readonly id: number; readonly kind: "value"; readonly value: unknown }
  | { readonly id: number; readonly kind: "error"; readonly error: Failure }
  /** Nobody asked, but somebody may want to know. */
  | { readonly kind: "told"; readonly message: string };

export interface Failure {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly hint: string | undefined;
  readonly stack: string | undefined;
}

/** How long to wait for another process that is adopting the same database. */
const adoptionMsMax = 30 * 60_000;

const isThreadStart = (data: unknown): data is ThreadStart =>
  typeof data === "object" && data !== null && "lcmThread" in data;

if (parentPort !== null && isThreadStart(workerData)) serve(parentPort, workerData);

function serve(port: MessagePort, { options, isAdopting }: ThreadStart): void {
  const tell = (message: string): void => port.postMessage({ kind: "told", message } satisfies Answer);
  const opened = isAdopting ? adoptAndOpen(options, tell) : openSqlite(options);
  opened.catch(() => undefined); // Told to whoever calls first; here it would only end the thread without a word.
  port.on("message", (call: Call) => void answer(call));

  const answer = async ({ id, method, args }: Call): Promise<void> => {
    try {
      const store = await opened;
      const value: unknown = await (store[method] as (...given: readonly unknown[]) => Promise<unknown>)(...args);
      port.postMessage({ id, kind: "value", value } satisfies Answer);
    } catch (error) {
      port.postMessage({ id, kind: "error", error: failureOf(error) } satisfies Answer);
    }
  };
}

async function adoptAndOpen(options: ThreadOptions, tell: (message: string) => void): Promise<Store> {
  const { path } = options;
  if ((await retryWhileBusy(adoptionMsMax, () => identify(path))) === "older_program") {
    tell(`${path} was made by an older lossless-claw, and is moved over now; this is done once`);
    const { adopt } = await import("../adopt/adopt.ts");
    const adopted = await adopt(path, systemNow(), { busyTimeoutMs: adoptionMsMax });
    tell(
      adopted.kind === "unchanged"
        ? `${path} was moved over by another process meanwhile`
        : `adopted ${path}: ${formatCount(adopted.messages)} messages and ${formatCount(adopted.summaries)} summaries; what it was is kept as ${adopted.backup}`,
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
