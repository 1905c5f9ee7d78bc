/** A lease that one process at a time can hold. The system gives it back when the process ends, however it ends. */

import { DatabaseSync } from "node:sqlite";
import { isBusy } from "./sqlite/errors.ts";

/** Returns what gives the lease back, or null if another process holds it. The file stays empty. */
export function takeLease(path: string): (() => void) | null {
  const db = new DatabaseSync(path, { timeout: 0 });
  try {
    db.exec("BEGIN EXCLUSIVE");
    return () => db.close();
  } catch (error) {
    db.close();
    if (isBusy(error)) return null;
    throw error;
  }
}
