/** The space that deleted rows leave behind: free inside the file, until the file is written anew without it. */

import type { DatabaseSync } from "node:sqlite";
import { errcodeOf, sqliteBusy } from "./errors.ts";
import { pragma } from "./pragma.ts";

/** Without free pages, and without what the index has kept of rows that are gone. Others can read meanwhile. */
export function rewriteFile(db: DatabaseSync): void {
  db.exec("INSERT INTO messages_fts (messages_fts) VALUES ('optimize')");
  db.exec("INSERT INTO summaries_fts (summaries_fts) VALUES ('optimize')");
  db.exec("PRAGMA temp_store = FILE"); // It is a copy of everything, for which there may not be memory.
  try {
    db.exec("VACUUM");
  } finally {
    db.exec("PRAGMA temp_store = MEMORY");
  }
}

/** Busy as long as somebody reads what the log holds from before: then it cannot be emptied. */
export function emptyLog(db: DatabaseSync): void {
  const outcome = db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
  if (outcome?.["busy"] === 1) throw Object.assign(new Error("the log is being read"), { errcode: sqliteBusy });
}

/** Makes the file smaller if it can: not while others have it open, who would have to wait, nor on a full disk. */
export function giveBack(db: DatabaseSync): void {
  try {
    db.exec("PRAGMA journal_mode = DELETE"); // Refused while anybody else has it open.
    db.exec("PRAGMA journal_mode = WAL");
    rewriteFile(db);
    emptyLog(db);
  } catch (error) {
    if (errcodeOf(error) === null) throw error;
  }
}

export const bytesIn = (db: DatabaseSync): { readonly all: number; readonly free: number } => {
  const page = pragma(db, "page_size");
  return { all: pragma(db, "page_count") * page, free: pragma(db, "freelist_count") * page };
};
