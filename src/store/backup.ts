/** Copies of a database that are whole although others are writing, through SQLite's own backup. */

import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { LcmError } from "../core/errors.ts";
import { copyFiles, removeFiles } from "./files.ts";
import { identify, messageOf } from "./migrate.ts";

/** All pages in one step, under one read of the source: a busy writer cannot make it start over. */
const pagesPerStep = 1 << 30;

/** Copies the database file alone. */
export async function copyDatabase(from: string, to: string): Promise<void> {
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
  const source = new DatabaseSync(from, { readOnly: true });
  try {
    await backup(source, to, { rate: pagesPerStep });
    chmodSync(to, 0o600);
  } catch (cause) {
    throw new LcmError("unavailable", `no backup could be written to ${to}: ${messageOf(cause)}`, {
      cause,
      hint: "check that the folder exists, can be written, and has room",
    });
  } finally {
    source.close();
  }
}

/** The folder that holds a backup's files, beside the backup. */
export const filesBeside = (path: string): string => `${path}.files`;

export async function backUp(
  path: string,
  filesDir: string,
  to: string,
): Promise<{ readonly path: string; readonly bytes: number; readonly files: number }> {
  if (existsSync(to)) throw new LcmError("conflict", `${to} exists already`, { hint: "name another file" });
  await copyDatabase(path, to);
  const files = await copyFiles(filesDir, filesBeside(to));
  return { path: to, bytes: statSync(to).size, files };
}

/** Names that sort by time: `lcm.db.backup-20261115T083700Z`. */
export const backupPath = (path: string, now: string): string => `${path}.backup-${now.replace(/[-:]|\.\d+/g, "")}`;

/** Keeps the newest few of our backups of this database. */
export function pruneBackups(path: string, keep: number): readonly string[] {
  const prefix = `${basename(path)}.backup-`;
  const old = readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix) && /^\d{8}T\d{6}Z$/.test(name.slice(prefix.length)))
    .sort()
    .slice(0, -keep)
    .map((name) => join(dirname(path), name));
  for (const file of old) {
    rmSync(file, { force: true });
    rmSync(filesBeside(file), { recursive: true, force: true });
  }
  return old;
}

/**
 * Puts a backup in the place of a database. Goes through SQLite as well, so that processes which have the database open
 * see the restored content, and a crash leaves either the old or the new. What was there is backed up first.
 */
export async function restore(
  from: string,
  path: string,
  filesDir: string,
  now: string,
): Promise<{ readonly replaced: string | null; readonly files: number }> {
  if (!existsSync(from)) throw new LcmError("not_found", `there is no backup ${from}`);
  if (identify(from) === "empty") throw new LcmError("invalid", `${from} is empty`);
  checkWhole(from);
  let replaced: string | null = null;
  if (existsSync(path) && statSync(path).size > 0) {
    replaced = backupPath(path, now);
    await backUp(path, filesDir, replaced);
  }
  await copyDatabase(from, path);
  if (existsSync(filesBeside(from))) await removeFiles(filesDir);
  const files = await copyFiles(filesBeside(from), filesDir);
  return { replaced, files };
}

function checkWhole(path: string): void {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const verdict = Object.values(db.prepare("PRAGMA quick_check(1)").get() ?? {})[0];
    if (verdict !== "ok") throw new Error(String(verdict));
  } catch (cause) {
    throw new LcmError("corrupt", `${path} is damaged, and nothing was restored: ${messageOf(cause)}`, { cause });
  } finally {
    db.close();
  }
}
