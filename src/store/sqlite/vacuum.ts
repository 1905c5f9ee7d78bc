/** Syncs the log, empties it, and gives the space of deleted rows back to the disk. */

import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { syncFile } from "../content/durable.ts";
import { sql } from "../script.ts";
import { errcodeOf, sqliteBusy } from "./errors.ts";
import { pragma } from "./pragma.ts";

/** Removes free pages and what the search index kept of deleted rows. Others can read meanwhile. */
export function rewriteFile(db: DatabaseSync): void {
  db.exec("INSERT INTO messages_fts (messages_fts) VALUES ('optimize')");
  db.exec("INSERT INTO summaries_fts (summaries_fts) VALUES ('optimize')");
  db.exec("PRAGMA temp_store = FILE"); // VACUUM copies the whole database, which may not fit into memory.
  try {
    db.exec("VACUUM");
  } finally {
    db.exec("PRAGMA temp_store = MEMORY");
  }
}

/** Throws SQLITE_BUSY while a reader still needs the log. */
export function emptyLog(db: DatabaseSync): void {
  const outcome = db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
  if (outcome?.["busy"] === 1) throw Object.assign(new Error("the log is being read"), { errcode: sqliteBusy });
}

/** Makes every commit so far durable, whatever the connection waits for. The log is never locked, so opening it is safe. */
export async function syncLog(path: string): Promise<void> {
  const log = `${path}-wal`;
  if (existsSync(log)) await syncFile(log);
}

/** Shrinks the file, unless other processes have it open and would have to wait, or the disk is full. */
export function giveBack(db: DatabaseSync): void {
  try {
    db.exec("PRAGMA journal_mode = DELETE"); // Fails while another process has it open.
    db.exec("PRAGMA journal_mode = WAL");
    rewriteFile(db);
    emptyLog(db);
  } catch (error) {
    if (errcodeOf(error) === null) throw error;
  }
}

/** The size of the file, for scripts. */
export const fileBytes = sql`SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`;

export const bytesIn = (db: DatabaseSync): { readonly all: number; readonly free: number } => {
  const page = pragma(db, "page_size");
  return { all: pragma(db, "page_count") * page, free: pragma(db, "freelist_count") * page };
};
