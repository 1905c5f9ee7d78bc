/**
 * Opens databases only for reading, also on a read-only disk and in folders that this user may not write to. SQLite needs
 * to create files beside a database that has a log; where it cannot, the file is read as it is, without the log.
 */

import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { isDenied, isRollbackDenied } from "./errors.ts";

export const openReadOnly = (path: string): DatabaseSync =>
  new DatabaseSync(isShutOut(path) ? immutableUri(path) : path, { readOnly: true, timeout: 10 });

/** For ATTACH. */
export function readOnlyUri(path: string): string {
  if (isShutOut(path)) return immutableUri(path).href;
  const uri = pathToFileURL(path);
  uri.searchParams.set("mode", "ro");
  return uri.href;
}

/** Reads the file as it is: without its log, without locks, and without creating anything beside it. */
export function immutableUri(path: string): URL {
  const uri = pathToFileURL(path);
  uri.searchParams.set("immutable", "1");
  return uri;
}

/** The size of the log that cannot be read; 0 if everything can be. */
export const unseenLogBytes = (path: string): number => (logBytes(path) > 0 && isShutOut(path) ? logBytes(path) : 0);

const logBytes = (path: string): number => statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;

/** Whether SQLite may not create or use the files that it needs beside the database. */
function isShutOut(path: string): boolean {
  try {
    using db = new DatabaseSync(path, { readOnly: true, timeout: 10 });
    db.prepare("SELECT 1 FROM sqlite_schema").get();
    return false;
  } catch (error) {
    return isDenied(error) && !isRollbackDenied(error);
  }
}
