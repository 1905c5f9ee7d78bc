/** Backs up and restores a database with SQLite's online backup, while other processes use it. */

import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { LcmError, errorText } from "../../core/base/errors.ts";
import { copyFiles, removeFiles } from "../content/folder.ts";
import { pragma } from "./pragma.ts";
import { checkWhole, hasSqliteHeader, identify } from "./file-kind.ts";

/** The folder of a backup's stored files. */
export const filesBeside = (path: string): string => `${path}.files`;

export async function backUp(
  path: string,
  filesDir: string,
  to: string,
): Promise<{ readonly path: string; readonly bytes: number; readonly files: number }> {
  await backUpDatabase(path, to);
  const files = await copyFiles(filesDir, filesBeside(to));
  return { path: to, bytes: statSync(to).size, files };
}

/** Without the stored files. */
export async function backUpDatabase(from: string, to: string): Promise<void> {
  await writeWhole(to, "backup", async (draft) => {
    removeDeadDrafts(dirname(to), basename(from));
    await copyPages(from, draft);
    leaveWal(draft);
  });
}

/** Writes a private file under a temporary name and renames it once complete, so that a crash never leaves half of it. */
export async function writeWhole(
  to: string,
  what: "backup" | "archive",
  write: (draft: string) => Promise<void>,
  replace = false,
): Promise<void> {
  if (!replace && existsSync(to))
    throw new LcmError("conflict", `${to} already exists`, { hint: "choose another name" });
  const folder = dirname(to);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new LcmError("not_found", `there is no folder ${folder}`, {
      hint: "create the folder first, or check that its disk is mounted",
    });
  }
  const draft = join(folder, `.${basename(to)}.${process.pid}.new`);
  try {
    closeSync(openSync(draft, "wx", 0o600));
    await write(draft);
    renameSync(draft, to);
  } catch (cause) {
    if (existsSync(draft)) rmSync(draft);
    if (cause instanceof LcmError) throw cause;
    throw new LcmError("unavailable", `the ${what} could not be written to ${to}: ${errorText(cause)}`, {
      cause,
      hint: "check that the folder is writable and the disk has free space",
    });
  }
}

/** Removes drafts of this file that a killed process left. */
export function removeDeadDrafts(folder: string, database: string): void {
  for (const name of readdirSync(folder)) {
    const pid = /\.(\d+)\.new(-journal)?$/.exec(name)?.[1];
    if (pid === undefined || !name.startsWith(`.${database}.`) || isAlive(Number(pid))) continue;
    rmSync(join(folder, name), { force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** Copies all pages in one step: between steps, a writer would make the backup start over. */
const pagesPerStep = 1 << 30;

async function copyPages(from: string, to: string): Promise<void> {
  using source = new DatabaseSync(from, { readOnly: true });
  await backup(source, to, { rate: pagesPerStep });
}

/** In WAL mode, reading the backup would create two more files beside it. */
function leaveWal(path: string): void {
  using db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = DELETE");
}

/** A copy beside a database: a backup, or what a restore replaced. */
type CopyKind = "backup" | "set-aside";

/** Names that sort by time: `lcm.db.backup-20261115T083700Z`. */
export const backupPath = (path: string, now: string): string => copyPath(path, "backup", now);

/** A set-aside copy may be damaged, so it must never count as a backup. */
const copyPath = (path: string, kind: CopyKind, now: string): string =>
  `${path}.${kind}-${now.replace(/[-:]|\.\d+/g, "")}`;

/** Appends a number if the name is taken. */
export function unusedPath(wanted: string): string {
  for (let number = 1; ; number++) {
    const path = number === 1 ? wanted : `${wanted}-${number}`;
    if (!existsSync(path)) return path;
  }
}

interface Copy {
  readonly kind: CopyKind;
  readonly path: string;
  readonly bytes: number;
}

/** All copies beside this database, oldest first, including those that a person named. */
export function copiesBeside(path: string): readonly Copy[] {
  const copies: (Copy & { readonly stamp: string })[] = [];
  const folder = dirname(path);
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    for (const kind of ["backup", "set-aside"] as const) {
      const prefix = `${basename(path)}.${kind}-`;
      if (!name.startsWith(prefix) || /(\.files|-wal|-shm|-journal)$/.test(name)) continue;
      const facts = statSync(join(folder, name), { throwIfNoEntry: false });
      if (facts?.isFile() !== true) continue;
      copies.push({ kind, path: join(folder, name), bytes: facts.size, stamp: name.slice(prefix.length) });
    }
  }
  return copies
    .toSorted((one, other) => (one.stamp < other.stamp ? -1 : one.stamp > other.stamp ? 1 : 0))
    .map(({ kind, path: file, bytes }) => ({ kind, path: file, bytes }));
}

/**
 * Deletes all but the newest backups with a name of ours, and returns the deleted paths. Always keeps the backup just
 * made: a clock that was once ahead leaves names that sort after it.
 */
export const pruneBackups = (path: string, keep: number, made?: string): readonly string[] =>
  pruneCopies(path, "backup", keep, made === undefined ? [] : [made]);

function pruneCopies(path: string, kind: CopyKind, keep: number, needed: readonly string[]): readonly string[] {
  const ours = new RegExp(`\\.${kind}-\\d{8}T\\d{6}Z(-\\d+)?$`);
  const copies = copiesBeside(path)
    .filter((copy) => copy.kind === kind && ours.test(copy.path))
    .map((copy) => copy.path);
  const newest = copies.reduce((one, other) => (writtenAt(other) >= writtenAt(one) ? other : one), "");
  const kept = new Set((needed.length === 0 ? [newest] : needed).map((file) => resolve(file)));
  const others = copies.filter((file) => !kept.has(resolve(file)));
  const old = others.slice(0, Math.max(0, copies.length - keep));
  for (const file of old) {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
    rmSync(filesBeside(file), { recursive: true, force: true });
  }
  return old;
}

const writtenAt = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

const setAsideKept = 3;

interface Restored {
  /** Where the replaced database was set aside; null if there was none. */
  readonly replaced: string | null;
  readonly files: number;
  /** Set-aside copies of earlier restores that were deleted. */
  readonly pruned: readonly string[];
}

/**
 * Replaces a database with a backup and sets the old one aside first. The pages are copied through SQLite: processes that
 * have the database open see the restored content, and a crash leaves either the old or the new.
 */
export async function restore(from: string, path: string, filesDir: string, now: string): Promise<Restored> {
  if (!existsSync(from)) throw new LcmError("not_found", `there is no backup ${from}`);
  if (resolve(from) === resolve(path)) throw new LcmError("invalid", `${from} is the database itself`);
  if (identify(from) === "empty") throw new LcmError("invalid", `${from} is empty`);
  checkWhole(from);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const condition = conditionOf(path);
  const replaced = condition === "absent" ? null : unusedPath(copyPath(path, "set-aside", now));
  if (replaced !== null && condition === "whole") await backUp(path, filesDir, replaced);
  if (replaced !== null && condition === "damaged") await keepBytes(path, filesDir, replaced);
  await replaceDatabase(from, path, condition);
  if (existsSync(filesBeside(from))) await removeFiles(filesDir);
  const files = await copyFiles(filesBeside(from), filesDir);
  const pruned = replaced === null ? [] : pruneCopies(path, "set-aside", setAsideKept, [replaced, from]);
  return { replaced, files, pruned };
}

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

/** Whether a file is no longer a database, but was one, judging by its name and the backups beside it. */
export const isLost = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isFile() === true &&
  !hasSqliteHeader(path) &&
  (path.endsWith(".db") || copiesBeside(path).length > 0);

/** Copies a database byte by byte that is too damaged to copy by pages; parts of it may still be recoverable. */
async function keepBytes(path: string, filesDir: string, to: string): Promise<void> {
  for (const suffix of ["", "-wal"]) {
    if (!existsSync(path + suffix)) continue;
    copyFileSync(path + suffix, to + suffix);
    chmodSync(to + suffix, 0o600);
  }
  await copyFiles(filesDir, filesBeside(to));
}

async function replaceDatabase(from: string, path: string, condition: Condition): Promise<void> {
  try {
    if (condition === "whole") {
      // The write-ahead log cannot take pages of another size.
      if (pageSizeOf(from) !== pageSizeOf(path)) leaveWal(path);
      await copyPages(from, path);
      return;
    }
    // A damaged database cannot be written to, so its file is replaced; no process can be using it successfully.
    const fresh = unusedPath(`${path}.new`);
    await backUpDatabase(from, fresh);
    for (const suffix of ["-wal", "-shm", "-journal"]) rmSync(path + suffix, { force: true });
    renameSync(fresh, path);
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
  using db = new DatabaseSync(path, { readOnly: true });
  return pragma(db, "page_size");
}
