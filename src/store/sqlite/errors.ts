/** Translates SQLite's errors into LcmErrors and waits for locks that other processes hold. */

import { setTimeout as sleep } from "node:timers/promises";
import { LcmError, errorText, type ErrorCode } from "../../core/base/errors.ts";

export const errcodeOf = (error: unknown): number | null =>
  error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode : null;

/** Without what an extended code adds to it. */
const primaryCodeOf = (error: unknown): number => (errcodeOf(error) ?? 0) & 0xff;

export const sqliteBusy = 5;
const sqliteLocked = 6;
export const isBusy = (error: unknown): boolean => [sqliteBusy, sqliteLocked].includes(primaryCodeOf(error));
/** PERM, READONLY and CANTOPEN. */
export const isDenied = (error: unknown): boolean => [3, 8, 14].includes(primaryCodeOf(error));

/** A crashed writer left a journal, and a read-only connection may not roll it back. */
export const isRollbackDenied = (error: unknown): boolean => errcodeOf(error) === 776;

/** Retries while another process holds the lock, until the time-out; between attempts this thread is free. */
export async function retryWhileBusy<T>(timeoutMs: number, attempt: () => T): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (let pause = 1; ; pause = Math.min(pause * 2, 50)) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw translate(error);
      if (performance.now() >= deadline) {
        throw new LcmError("unavailable", `the database has been locked by another process for ${timeoutMs} ms`, {
          cause: error,
          hint: "end the process that holds the lock, or try again later",
        });
      }
    }
    await sleep(pause);
  }
}

/** What Node throws once a connection was closed; it is no error of SQLite. */
const isClosed = (error: unknown): boolean => error instanceof Error && error.message === "database is not open";

/** Only errors of the database are translated; any other is returned unchanged. */
function translate(error: unknown): unknown {
  if (isClosed(error)) return new LcmError("unavailable", "the store is closed", { cause: error });
  const as = (code: ErrorCode, what: string, hint: string): LcmError =>
    new LcmError(code, `${what}: ${errorText(error)}`, { cause: error, hint });
  switch (primaryCodeOf(error)) {
    case 11: // CORRUPT
    case 26: // NOTADB
      return as("corrupt", "the database is damaged", "restore a backup with `lcm restore`");
    case 13: // FULL
      return as("unavailable", "the disk is full", "free some space and try again: what was stored before is kept");
    case 10: // IOERR
      return as("unavailable", "the disk refused the operation", "check that the disk is healthy and has free space");
    case 8: // READONLY
    case 14: // CANTOPEN
    case 3: // PERM
      return as(
        "denied",
        "no permission to use the database",
        "check who owns the file and its folder: both must be writable to change anything",
      );
    default:
      return error;
  }
}
