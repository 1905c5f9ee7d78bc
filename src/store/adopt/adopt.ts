/**
 * Moving in: a database of the older program becomes ours, in place. It is checked, locked and backed up; then its tables
 * are rebuilt as ours in one transaction (rebuild.ts). Search is built afterwards in the background. Adopting twice does
 * nothing, and a crash at any moment leaves either the old file or the new one.
 */

import { rmSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { LcmError, errorText } from "../../core/base/errors.ts";
import { backUpDatabase, backupPath, unusedPath } from "../sqlite/backup.ts";
import { rebuildTables } from "./rebuild.ts";
import type { Rebuilt } from "./rebuild.ts";
import { formatBytes } from "../../core/base/format.ts";
import { errcodeOf, retryWhileBusy } from "../sqlite/errors.ts";
import { checkWhole, identify, kindOf } from "../sqlite/file-kind.ts";

export type Adopted =
  | ({ readonly kind: "adopted"; readonly backup: string } & Rebuilt)
  /** It is ours already. */
  | { readonly kind: "unchanged" };

export interface AdoptOptions {
  /** How long to wait for another process that holds the file. */
  readonly busyTimeoutMs?: number;
  /** How many bytes the disk of a folder has left. */
  readonly freeBytes?: (folder: string) => Promise<number>;
}

const busyTimeoutMsDefault = 30_000;

/** `now` names the backup. Throws, and leaves the file as it is, for one that is damaged, locked or not ours to adopt. */
export async function adopt(path: string, now: string, options: AdoptOptions = {}): Promise<Adopted> {
  const { busyTimeoutMs = busyTimeoutMsDefault, freeBytes = freeBytesOfDisk } = options;
  const kind = await retryWhileBusy(busyTimeoutMs, () => identify(path));
  if (kind === "empty") {
    throw new LcmError("not_found", `there is nothing to adopt at ${path}`, { hint: "name an lcm.db file" });
  }
  if (kind !== "older_program") return { kind: "unchanged" };
  await retryWhileBusy(busyTimeoutMs, () => checkWhole(path));
  await checkSpace(path, freeBytes);
  using db = await retryWhileBusy(busyTimeoutMs, () => lock(path));
  // Another process may have been here while this one waited.
  if (kindOf(db, path) !== "older_program") return { kind: "unchanged" };
  const backup = unusedPath(`${backupPath(path, now)}-older`);
  await backUpDatabase(path, backup);
  const rebuilt = rebuildOrNot(db, path, backup);
  giveBackRoom(db);
  return { kind: "adopted", backup, ...rebuilt };
}

const freeBytesOfDisk = async (folder: string): Promise<number> => {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

/** The backup, the new tables beside the old, and the log that holds them until they are in the file. */
async function checkSpace(path: string, freeBytes: (folder: string) => Promise<number>): Promise<void> {
  const needed = statSync(path).size * 3;
  const free = await freeBytes(dirname(path));
  if (free >= needed) return;
  const [want, have] = [formatBytes(needed), formatBytes(free)];
  throw new LcmError("unavailable", `adopting ${path} needs ${want} of free disk, and there is ${have}`, {
    hint: "make room, or move the file to a larger disk first",
  });
}

/**
 * From here on nobody else writes, so that the backup is exactly what is rebuilt. In WAL mode others can still read, and
 * a crash leaves the file itself as it was.
 */
function lock(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 10, enableForeignKeyConstraints: false });
  try {
    db.exec("PRAGMA journal_mode = WAL; PRAGMA cache_size = -16000; BEGIN IMMEDIATE");
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function rebuildOrNot(db: DatabaseSync, path: string, backup: string): Rebuilt {
  try {
    const rebuilt = rebuildTables(db);
    db.exec("COMMIT");
    return rebuilt;
  } catch (cause) {
    if (db.isTransaction) db.exec("ROLLBACK");
    rmSync(backup, { force: true });
    if (errcodeOf(cause) === null) throw cause;
    throw new LcmError("unavailable", `${path} could not be adopted, and is as it was: ${errorText(cause)}`, {
      cause,
      hint: "check that the disk has room; `lcm adopt` can be run again",
    });
  }
}

/** The older tables were most of the file: text three times over, and two search indexes. Pages get the size of ours. */
function giveBackRoom(db: DatabaseSync): void {
  try {
    db.exec("PRAGMA journal_mode = DELETE; PRAGMA page_size = 8192; VACUUM; PRAGMA journal_mode = WAL");
  } catch {
    // Somebody else has the file open, or the disk is full. Nothing is lost: free pages are used again.
  }
}
