/**
 * Restores a backup, while other processes use the database. The backup is verified before anything is touched, and at
 * every moment the database names only content that is there.
 */

import { chmodSync, copyFileSync, existsSync, rmSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { LcmError, errorText } from "../../../core/base/errors.ts";
import { makeFolder, renameDurably, syncFile, syncFolder } from "../../content/durable.ts";
import { bytesOf, copyContents, copyFiles, removeUnnamed } from "../../content/folder.ts";
import { backUp, backUpDatabase, copyPages, leaveWal } from "./backup.ts";
import { contentsNamedIn, folderHolding, foldersOf, holds, lostBefore } from "./contents.ts";
import { isLost, pruneSetAside, setAsidePath, unusedPath } from "./copies.ts";
import { checkTexts } from "../check-texts.ts";
import { checkWhole, identify, type FileKind } from "../file-kind.ts";
import { filesBeside, type DatabaseLocation } from "../location.ts";
import { openReadOnly } from "../read-only.ts";
import { pragma } from "../pragma.ts";
import { syncLog } from "../vacuum.ts";

const setAsideKept = 3;

interface Restored {
  /** Where the replaced database was set aside; null if there was none. */
  readonly replaced: string | null;
  readonly files: number;
  /** Stored files that the restored rows name and that the backup does not hold. */
  readonly missing: number;
  /** Set-aside copies of earlier restores that were deleted. */
  readonly pruned: readonly string[];
}

export interface RestoreOptions {
  /** Names the set-aside copy. */
  readonly now: string;
  /** Restores what there is, even if stored files are missing or texts are damaged. */
  readonly isPartialAllowed?: boolean;
}

/**
 * Replaces a database with a backup and sets the old one aside first. The pages are copied through SQLite: processes that
 * have the database open see the restored content, and a crash leaves either the old or the new.
 */
export async function restore(from: string, to: DatabaseLocation, options: RestoreOptions): Promise<Restored> {
  const { path, filesDir } = to;
  const contents = await verify(from, to, options.isPartialAllowed === true);
  makeFolder(dirname(path));
  const condition = conditionOf(path);
  const replaced = condition === "absent" ? null : unusedPath(setAsidePath(path, options.now));
  if (replaced !== null && condition === "whole") await backUp(to, replaced);
  if (replaced !== null && condition === "damaged") await keepBytes(to, replaced);
  // Content first: no row names what is added here until the database is replaced.
  for (const { folder, fresh } of contents.sources) await copyContents(folder, filesDir, fresh);
  await replaceDatabase(from, path, condition);
  // What both databases name, with different content, can only follow. If this is cut off, restoring again completes it.
  for (const { folder, changed } of contents.sources) await copyContents(folder, filesDir, changed, true);
  if (contents.kind !== "older_program")
    await removeUnnamed(filesDir, () => contentsNamedIn(path).map(({ storageUri }) => storageUri));
  const pruned = replaced === null ? [] : pruneSetAside(path, setAsideKept, [replaced, from]);
  return { replaced, files: contents.files, missing: contents.missing, pruned };
}

interface Contents {
  readonly kind: FileKind;
  readonly files: number;
  readonly missing: number;
  readonly sources: readonly {
    readonly folder: string;
    /** URIs of content that the files folder does not have. */
    readonly fresh: readonly string[];
    /** URIs of content that the files folder has in another form. */
    readonly changed: readonly string[];
  }[];
}

/** Reads the whole backup and all content that it names. Throws if anything is damaged or missing. */
async function verify(from: string, { path, filesDir }: DatabaseLocation, isPartial: boolean): Promise<Contents> {
  if (!existsSync(from)) throw new LcmError("not_found", `there is no backup ${from}`);
  if (resolve(from) === resolve(path)) throw new LcmError("invalid", `${from} is the database itself`);
  const kind = identify(from);
  if (kind === "empty") throw new LcmError("invalid", `${from} is empty`);
  checkWhole(from);
  if (!isPartial) checkTexts(from);
  const folders = foldersOf(from);
  const sources = folders.map((folder) => ({ folder, fresh: [] as string[], changed: [] as string[] }));
  const lost = await lostBefore(from);
  const named = contentsNamedIn(from);
  const missing: string[] = [];
  let files = 0;
  for (const content of named) {
    const { storageUri } = content;
    const holder = await folderHolding(folders, content, true);
    const source = sources.find(({ folder }) => folder === holder);
    if (source !== undefined) {
      files += 1;
      const [wanted, there] = [await bytesOf(source.folder, storageUri), await bytesOf(filesDir, storageUri)];
      if (there === null) source.fresh.push(storageUri);
      else if (wanted?.equals(there) !== true) source.changed.push(storageUri);
    } else if (!lost.has(storageUri) && !(await holds(filesDir, content, true))) missing.push(storageUri);
  }
  // Backups of the older program's databases hold no files: adopting leaves them in place.
  if (missing.length > 0 && !isPartial && kind !== "older_program") throw incomplete(from, missing, named.length);
  return { kind, files, missing: missing.length, sources };
}

const incomplete = (from: string, missing: readonly string[], of: number): LcmError =>
  new LcmError(
    "corrupt",
    `${from} is incomplete: ${missing.length} of its ${of} stored files are missing or damaged, the first is ${String(missing[0])}`,
    { hint: "restore another backup, or pass --partial to restore everything else" },
  );

type Condition = "absent" | "whole" | "damaged";

/** Throws for a file that is not ours and must not be replaced. */
function conditionOf(path: string): Condition {
  try {
    if (identify(path) === "empty" && !(existsSync(path) && statSync(path).size > 0)) return "absent";
    checkWhole(path);
    return "whole";
  } catch (error) {
    if (!(error instanceof LcmError)) throw unavailable(path, error);
    switch (error.code) {
      case "corrupt":
        return "damaged";
      case "conflict": // From a newer version; restoring is how to go back from it.
        return "whole";
      default:
        if (isLost(path)) return "damaged";
        throw error;
    }
  }
}

/** Copies a database byte by byte that is too damaged to copy by pages; parts of it may still be recoverable. */
async function keepBytes({ path, filesDir }: DatabaseLocation, to: string): Promise<void> {
  await copyFiles(filesDir, filesBeside(to));
  for (const suffix of ["-wal", ""]) {
    if (!existsSync(path + suffix)) continue;
    copyFileSync(path + suffix, to + suffix);
    chmodSync(to + suffix, 0o600);
    await syncFile(to + suffix);
  }
  syncFolder(dirname(to));
}

async function replaceDatabase(from: string, path: string, condition: Condition): Promise<void> {
  try {
    if (condition === "whole") {
      // The write-ahead log cannot take pages of another size.
      if (pageSizeOf(from) !== pageSizeOf(path)) leaveWal(path);
      await copyPages(from, path);
      await syncLog(path);
      syncFolder(dirname(path)); // Without a log, SQLite has just removed its journal.
      return;
    }
    // A damaged database cannot be written to, so its file is replaced; no process can be using it successfully.
    const fresh = unusedPath(`${path}.new`);
    await backUpDatabase(from, fresh);
    for (const suffix of ["-wal", "-shm", "-journal"]) rmSync(path + suffix, { force: true });
    syncFolder(dirname(path)); // SQLite would replay an old log into the new file.
    renameDurably(fresh, path);
  } catch (cause) {
    throw cause instanceof LcmError ? cause : unavailable(path, cause);
  }
}

const unavailable = (path: string, cause: unknown): LcmError =>
  new LcmError("unavailable", `${path} could not be replaced: ${errorText(cause)}`, {
    cause,
    hint: "close the programs that use it, and check that the file is writable",
  });

function pageSizeOf(path: string): number {
  using db = openReadOnly(path);
  return pragma(db, "page_size");
}
