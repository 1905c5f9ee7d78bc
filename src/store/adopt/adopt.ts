/**
 * Adopts a database of the older program in place: checks, locks and backs it up, then rebuilds its tables.
 * The rebuild is one transaction (rebuild.ts), so a crash leaves either the old file or the new one. The search index is
 * built later, in the background.
 */

import { rmSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { LcmError, errorText } from "../../core/base/errors.ts";
import { backUpDatabase } from "../sqlite/backups/backup.ts";
import { backupPath, unusedPath } from "../sqlite/backups/copies.ts";
import { rebuildTables, type Rebuilt } from "./rebuild.ts";
import { formatBytes } from "../../core/base/format.ts";
import { errcodeOf, retryWhileBusy } from "../sqlite/errors.ts";
import { locationOf, makePrivate } from "../sqlite/location.ts";
import { checkWhole, identify, kindOf } from "../sqlite/file-kind.ts";

export type Adopted =
  | ({ readonly kind: "adopted"; readonly backup: string } & Rebuilt)
  /** It already has our format. */
  | { readonly kind: "unchanged" };

export interface AdoptOptions {
  /** How long to wait while another process locks the file. */
  readonly busyTimeoutMs?: number;
  /** Free bytes on the disk of a folder. */
  readonly freeBytes?: (folder: string) => Promise<number>;
}

const busyTimeoutMsDefault = 30_000;

/** `now` names the backup. Throws, without changing the file, if it is damaged, locked or not a database to adopt. */
export async function adopt(path: string, now: string, options: AdoptOptions = {}): Promise<Adopted> {
  const { busyTimeoutMs = busyTimeoutMsDefault, freeBytes = freeBytesOfDisk } = options;
  const kind = await retryWhileBusy(busyTimeoutMs, () => identify(path));
  if (kind === "empty") {
    throw new LcmError("not_found", `there is nothing to adopt at ${path}`, {
      hint: "pass the path of an lcm.db file",
    });
  }
  if (kind !== "older_program") return { kind: "unchanged" };
  await retryWhileBusy(busyTimeoutMs, () => checkWhole(path));
  await checkSpace(path, freeBytes);
  using db = await retryWhileBusy(busyTimeoutMs, () => lock(path));
  // Another process may have adopted it while this one waited for the lock.
  if (kindOf(db, path) !== "older_program") return { kind: "unchanged" };
  const backup = unusedPath(`${backupPath(path, now)}-older`);
  await backUpDatabase(path, backup);
  const rebuilt = rebuildOrRollBack(db, path, backup);
  shrink(db);
  makePrivate(locationOf(path));
  return { kind: "adopted", backup, ...rebuilt };
}

const freeBytesOfDisk = async (folder: string): Promise<number> => {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
};

/** Room for the backup, the new tables beside the old, and the log until it is checkpointed. */
async function checkSpace(path: string, freeBytes: (folder: string) => Promise<number>): Promise<void> {
  const needed = statSync(path).size * 3;
  const free = await freeBytes(dirname(path));
  if (free >= needed) return;
  const [want, have] = [formatBytes(needed), formatBytes(free)];
  throw new LcmError("unavailable", `adopting ${path} needs ${want} of free disk space; ${have} is available`, {
    hint: "free up disk space, or move the file to a larger disk first",
  });
}

/** Blocks other writers, so the backup equals what is rebuilt. With WAL others can read, and a crash changes nothing. */
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

function rebuildOrRollBack(db: DatabaseSync, path: string, backup: string): Rebuilt {
  try {
    const rebuilt = rebuildTables(db);
    db.exec("COMMIT");
    return rebuilt;
  } catch (cause) {
    if (db.isTransaction) db.exec("ROLLBACK");
    rmSync(backup, { force: true });
    if (errcodeOf(cause) === null) throw cause;
    const hint = "check that the disk has free space, then run `lcm adopt` again";
    throw new LcmError("unavailable", `adopting ${path} failed and changed nothing: ${errorText(cause)}`, {
      cause,
      hint,
    });
  }
}

/** Most of the file is free now: the older tables stored texts up to three times. Also sets our page size. */
function shrink(db: DatabaseSync): void {
  try {
    db.exec("PRAGMA journal_mode = DELETE; PRAGMA page_size = 8192; VACUUM; PRAGMA journal_mode = WAL");
  } catch {
    // Another process has the file open, or the disk is full. Nothing is lost: free pages are reused.
  }
}
