/** Copies of a database that are whole although others are writing, through SQLite's own backup. */

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

/** The folder that holds a backup's files, beside the backup. */
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

/** The database alone. */
export async function backUpDatabase(from: string, to: string): Promise<void> {
  await writeWhole(to, "backup", async (draft) => {
    removeDeadDrafts(dirname(to), basename(from));
    await copyPages(from, draft);
    leaveWal(draft);
  });
}

/** One private file, written beside its place. It gets its name when it is whole: a crash leaves no half of it. */
export async function writeWhole(
  to: string,
  what: "backup" | "archive",
  write: (draft: string) => Promise<void>,
  replace = false,
): Promise<void> {
  if (!replace && existsSync(to)) throw new LcmError("conflict", `${to} exists already`, { hint: "name another file" });
  const folder = dirname(to);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new LcmError("not_found", `there is no folder ${folder}`, {
      hint: "make it first; a disk may not be mounted",
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
    throw new LcmError("unavailable", `no ${what} could be written to ${to}: ${errorText(cause)}`, {
      cause,
      hint: "check that the folder exists, can be written, and has room",
    });
  }
}

/** What a process that was killed while it backed this database up, or wrote this file, has left behind. */
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

/** All pages in one step, under one read of the source: a busy writer cannot make it start over. */
const pagesPerStep = 1 << 30;

async function copyPages(from: string, to: string): Promise<void> {
  using source = new DatabaseSync(from, { readOnly: true });
  await backup(source, to, { rate: pagesPerStep });
}

/** A file in WAL mode comes as three as soon as somebody reads it. */
function leaveWal(path: string): void {
  using db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = DELETE");
}

/** What lies beside a database: copies that were asked for, and what a restore has put out of the way. */
type CopyKind = "backup" | "set-aside";

/** Names that sort by time: `lcm.db.backup-20261115T083700Z`. */
export const backupPath = (path: string, now: string): string => copyPath(path, "backup", now);

/** What is set aside may be damaged, and so must never count as one of the backups. */
const copyPath = (path: string, kind: CopyKind, now: string): string =>
  `${path}.${kind}-${now.replace(/[-:]|\.\d+/g, "")}`;

/** The same name, or with a number if there is such a file already. */
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

/** All that lie beside this database, oldest first, also those whose names are a person's. */
export function copiesBeside(path: string): readonly Copy[] {
  const copies: (Copy & { readonly stamp: string })[] = [];
  const folder = dirname(path);
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    for (const kind of ["backup", "set-aside"] as const) {
      const prefix = `${basename(path)}.${kind}-`;
      if (!name.startsWith(prefix) || /(\.files|-wal|-shm|-journal)$/.test(name)) continue;
      const found = statSync(join(folder, name), { throwIfNoEntry: false });
      if (found?.isFile() !== true) continue;
      copies.push({ kind, path: join(folder, name), bytes: found.size, stamp: name.slice(prefix.length) });
    }
  }
  return copies
    .toSorted((one, other) => (one.stamp < other.stamp ? -1 : one.stamp > other.stamp ? 1 : 0))
    .map(({ kind, path: file, bytes }) => ({ kind, path: file, bytes }));
}

/**
 * Keeps the newest few of our backups of this database, and what it was before it was adopted. The one just made is
 * kept in any case: a clock that was wrong for a day leaves names, and files, of a time that is yet to come.
 */
export const pruneBackups = (path: string, keep: number, made?: string): readonly string[] =>
  pruneCopies(path, "backup", keep, made === undefined ? [] : [made]);

/** Of one kind; those of the other are not counted. */
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
  /** Where what was there has been set aside; null when there was nothing. */
  readonly replaced: string | null;
  readonly files: number;
  /** What earlier restores had set aside, and had to make room. */
  readonly pruned: readonly string[];
}

/**
 * Puts a backup in the place of a database. Goes through SQLite as well, so that processes which have the database open
 * see the restored content, and a crash leaves either the old or the new. What was there is set aside first.
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

/** Throws for a file that is not ours to replace. */
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
      case "conflict": // Made by a newer version of ours; going back from it is what this is for.
        return "whole";
      default:
        if (isLost(path)) return "damaged";
        throw error;
    }
  }
}

/** A file that is no database any more, but was one by all that its name and its neighbours say. */
export const isLost = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isFile() === true &&
  !hasSqliteHeader(path) &&
  (path.endsWith(".db") || copiesBeside(path).length > 0);

/** What is too damaged to be copied page by page is kept byte by byte: something may yet be recovered from it. */
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
      // Pages of another size do not go into a log.
      if (pageSizeOf(from) !== pageSizeOf(path)) leaveWal(path);
      await copyPages(from, path);
      return;
    }
    // What is damaged cannot be written to either. Nobody can have it open and be well.
    const fresh = unusedPath(`${path}.new`);
    await backUpDatabase(from, fresh);
    for (const suffix of ["-wal", "-shm", "-journal"]) rmSync(path + suffix, { force: true });
    renameSync(fresh, path);
  } catch (cause) {
    throw cause instanceof LcmError ? cause : unavailable(path, cause);
  }
}

const unavailable = (path: string, cause: unknown): LcmError =>
  new LcmError("unavailable", `${path} cannot be replaced: ${errorText(cause)}`, {
    cause,
    hint: "end the programs that have it open, and check that it can be written",
  });

function pageSizeOf(path: string): number {
  using db = new DatabaseSync(path, { readOnly: true });
  return pragma(db, "page_size");
}
