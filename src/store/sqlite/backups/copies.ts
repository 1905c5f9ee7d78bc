/** Names, lists and prunes the copies beside a database: backups, and what restores replaced. */

import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { LcmError } from "../../../core/base/errors.ts";
import { filesLackingIn } from "./contents.ts";
import { hasSqliteHeader, identify } from "../file-kind.ts";
import { filesBeside } from "../location.ts";

/** A copy beside a database: a backup, or what a restore replaced. */
type CopyKind = "backup" | "set-aside";

/** Names that sort by time: `lcm.db.backup-20261115T083700Z`. */
export const backupPath = (path: string, now: string): string => copyPath(path, "backup", now);

/** A set-aside copy may be damaged, so it must never count as a backup. */
export const setAsidePath = (path: string, now: string): string => copyPath(path, "set-aside", now);

const copyPath = (path: string, kind: CopyKind, now: string): string =>
  `${path}.${kind}-${now.replace(/[-:]|\.\d+/g, "")}`;

/** Appends a number if the name is taken. */
export function unusedPath(wanted: string): string {
  for (let number = 1; ; number++) {
    const path = number === 1 ? wanted : `${wanted}-${number}`;
    if (!existsSync(path) && !existsSync(filesBeside(path))) return path;
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

/** Whether a file is no longer a database, but was one, judging by its name and the backups beside it. */
export const isLost = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isFile() === true &&
  !hasSqliteHeader(path) &&
  (path.endsWith(".db") || copiesBeside(path).length > 0);

/** The newest backups are kept, and besides them the newest of each day. */
const backupsKept = 3;
const daysKept = 7;

/**
 * Deletes old backups with a name of ours, and returns the deleted paths. An incomplete one counts for nothing: it never
 * takes the place of a complete one, and is deleted once enough of those are newer. Always keeps the backup just made: a
 * clock that was once ahead leaves names that sort after it.
 */
export async function pruneBackups(path: string, made?: string): Promise<readonly string[]> {
  removeStrayFiles(path);
  const copies = stamped(path, "backup");
  if (copies.length <= backupsKept) return [];
  const last = made ?? copies.reduce((one, other) => (writtenAt(other) >= writtenAt(one) ? other : one), "");
  const complete: string[] = [];
  for (const file of copies) if (await isComplete(file)) complete.push(file);
  const others = complete.filter((file) => resolve(file) !== resolve(last)).toReversed();
  const newest = [last, ...others.slice(0, backupsKept - 1)];
  const lastDay = dayOf(last);
  const daily = new Map<number, string>(); // By day; `others` has the newest first.
  for (const file of [last, ...others]) if (!daily.has(dayOf(file))) daily.set(dayOf(file), file);
  const isRecent = ([day]: readonly [number, string]): boolean => day > lastDay - daysKept && day <= lastDay;
  const kept = new Set(
    [...newest, ...[...daily].filter(isRecent).map(([, file]) => file)].map((file) => resolve(file)),
  );
  const oldest = newest.length < backupsKept ? 0 : Math.min(...newest.map((file) => copies.indexOf(file)));
  return removeCopies(
    copies.filter((file, at) => !kept.has(resolve(file)) && (complete.includes(file) || at < oldest)),
  );
}

/** Set-aside copies may be damaged and are kept as they are, but only the newest of them, and those that are needed. */
export function pruneSetAside(path: string, keep: number, needed: readonly string[]): readonly string[] {
  const copies = stamped(path, "set-aside");
  const kept = new Set(needed.map((file) => resolve(file)));
  const others = copies.filter((file) => !kept.has(resolve(file)));
  return removeCopies(others.slice(0, Math.max(0, copies.length - keep)));
}

/** Copies with a name that we gave, oldest first. */
function stamped(path: string, kind: CopyKind): readonly string[] {
  const ours = new RegExp(`\\.${kind}-\\d{8}T\\d{6}Z(-\\d+)?$`);
  return copiesBeside(path)
    .filter((copy) => copy.kind === kind && ours.test(copy.path))
    .map((copy) => copy.path);
}

/** The day in UTC of a copy's name, counted from 1970. */
function dayOf(file: string): number {
  const [, year, month, day] = /-(\d{4})(\d\d)(\d\d)T\d{6}Z(?:-\d+)?$/.exec(file) ?? [];
  return Date.UTC(Number(year), Number(month) - 1, Number(day)) / (24 * 60 * 60 * 1_000);
}

async function isComplete(file: string): Promise<boolean> {
  try {
    return identify(file) !== "empty" && (await filesLackingIn(file)) === 0;
  } catch (error) {
    // A newer version's backup is complete for all we know; anything else is damaged.
    return error instanceof LcmError && error.code === "conflict";
  }
}

const writtenAt = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;

function removeCopies(files: readonly string[]): readonly string[] {
  for (const file of files) {
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
    rmSync(filesBeside(file), { recursive: true, force: true });
  }
  return files;
}

/** So old that no backup can still be between giving its files their name and giving the database its own. */
const strayMs = 60 * 60 * 1_000;

/** A power cut may leave a backup's files without their database. */
function removeStrayFiles(path: string): void {
  const stray = /\.backup-\d{8}T\d{6}Z(-\d+)?\.files$/;
  for (const name of readdirSync(dirname(path))) {
    if (!name.startsWith(`${basename(path)}.`) || !stray.test(name)) continue;
    const folder = join(dirname(path), name);
    if (existsSync(folder.slice(0, -".files".length)) || Date.now() - writtenAt(folder) < strayMs) continue;
    rmSync(folder, { recursive: true, force: true });
  }
}
