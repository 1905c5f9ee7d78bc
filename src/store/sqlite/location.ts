/** Where the parts of a database are: the file, its log, its stored content and copies; and who may read them. */

import { chmodSync, existsSync, lstatSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Exposure } from "../../core/model/database-file.ts";

/** A database file, and the folder with its stored content. */
export interface DatabaseLocation {
  readonly path: string;
  readonly filesDir: string;
}

/** `lcm-files` beside `lcm.db`, and `NAME-files` beside any other, so that two databases never share a folder. */
export const defaultFilesDir = (path: string): string => {
  const name = basename(path);
  return join(dirname(path), foldersByName.get(name) ?? `${name}-files`);
};

/** A database named `lcm` would otherwise share the folder of `lcm.db`; no other name leads to the one it gets. */
const foldersByName: ReadonlyMap<string, string> = new Map([
  ["lcm.db", "lcm-files"],
  ["lcm", "lcm-files.d"],
]);

export const locationOf = (path: string): DatabaseLocation => ({
  path: resolve(path),
  filesDir: defaultFilesDir(resolve(path)),
});

/** The folder of a backup's stored files. */
export const filesBeside = (path: string): string => `${path}.files`;

/** The folder with the stored files of a database that is opened, which may be a backup. A link may lead elsewhere. */
export function filesDirOf(path: string): string {
  const [usual, beside] = [defaultFilesDir(path), filesBeside(path)];
  return !existsSync(usual) && isFolder(beside) ? beside : usual;
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch {
    return false; // There is nothing, or no way to it.
  }
}

/** The parts of a database that other users may read or write. Windows inherits permissions, so it has none. */
export function exposuresOf(location: DatabaseLocation): readonly Exposure[] {
  if (process.platform === "win32") return [];
  return partsOf(location).flatMap((path) => {
    const isOpen = ({ mode }: Mode): boolean => (mode & 0o011) !== 0; // Nobody gets into any other folder.
    const mode = modesBelow(path, isOpen).reduce((all, each) => all | each.mode, 0);
    return (mode & 0o077) === 0 ? [] : [{ path, isToEveryone: (mode & 0o007) !== 0 }];
  });
}

/** Takes the permissions of others away, as far as this user may. Copies beside it are left alone. */
export function makePrivate({ path, filesDir }: DatabaseLocation): void {
  const parts = [path, `${path}-wal`, `${path}-shm`, filesDir].flatMap((part) => modesBelow(part, () => true));
  try {
    for (const { path: each, mode } of parts) if ((mode & 0o077) !== 0) chmodSync(each, mode & 0o700);
  } catch {
    // Another user owns it; doctor reports it.
  }
}

/** The file, its log, its files, and the backups and set-aside copies beside it. */
function partsOf({ path, filesDir }: DatabaseLocation): readonly string[] {
  const own = basename(path);
  const isCopy = (name: string): boolean => name.startsWith(`${own}.backup-`) || name.startsWith(`${own}.set-aside-`);
  const copies = namesIn(dirname(path)).filter(isCopy);
  return [path, `${path}-wal`, `${path}-shm`, filesDir, ...copies.map((name) => join(dirname(path), name))];
}

interface Mode {
  readonly path: string;
  readonly mode: number;
}

/** The modes of a file, or of a folder and what is in the entered ones below it; none if there is nothing. Follows no links. */
function modesBelow(path: string, isEntered: (folder: Mode) => boolean): readonly Mode[] {
  const facts = lstatSync(path, { throwIfNoEntry: false });
  if (facts === undefined || facts.isSymbolicLink()) return [];
  const own = { path, mode: facts.mode & 0o777 };
  const below = facts.isDirectory() && isEntered(own) ? namesIn(path) : [];
  return [own, ...below.flatMap((name) => modesBelow(join(path, name), isEntered))];
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // Removed since, or not ours to look into.
  }
}
