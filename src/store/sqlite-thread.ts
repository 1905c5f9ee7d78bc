/**
 * The other end of sqlite-worker.ts: a thread that owns one SQLite store and answers calls by name. Two kinds are
 * started from this file: the store itself, and a read-only one that only searches and may be ended at any moment.
 */

import { parentPort, workerData } from "node:worker_threads";
import type { MessagePort } from "node:worker_threads";
import { LcmError } from "../core/errors.ts";
import type { ErrorCode } from "../core/errors.ts";
import type { Store } from "../core/ports.ts";
import { openSqlite } from "./sqlite.ts";
import type { SqliteOptions } from "./sqlite.ts";

export const threadUrl = new URL(import.meta.url);

/** What crosses between the threads must be cloneable: functions stay at home. */
export type ThreadOptions = Omit<SqliteOptions, "now" | "hex16">;

export interface ThreadStart {
  readonly lcmThread: true;
  readonly options: ThreadOptions;
}

export interface Call {
  readonly id: number;
  readonly method: keyof Store;
  readonly args: readonly unknown[];
}

export type Answer =
  | { readonly id: number; readonly kind: "value"; readonly value: unknown }
  | { readonly id: number; readonly kind: "error"; readonly error: Failure };

export interface Failure {
  readonly code: ErrorCode | null;
  readonly message: string;
  readonly hint: string | undefined;
  readonly stack: string | undefined;
}

const isThreadStart = (data: unknown): data is ThreadStart =>
  typeof data === "object" && data !== null && "lcmThread" in data;

if (parentPort !== null && isThreadStart(workerData)) serve(parentPort, workerData.options);

function serve(port: MessagePort, options: ThreadOptions): void {
  const opened = openSqlite(options);
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

const failureOf = (error: unknown): Failure => ({
  code: error instanceof LcmError ? error.code : null,
  message: error instanceof Error ? error.message : String(error),
  hint: error instanceof LcmError ? error.hint : undefined,
  stack: error instanceof Error ? error.stack : undefined,
});
