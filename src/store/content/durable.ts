/**
 * Makes files survive a power cut. A file's bytes are durable once the file is synced, and its name once its folder is:
 * a rename alone can leave an empty file, or none.
 */

import { closeSync, fsyncSync, mkdirSync, openSync, renameSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/** Windows cannot open a folder; its file system records names in order. */
const syncsFolders = process.platform !== "win32";

export async function syncFile(path: string): Promise<void> {
  await using file = await open(path, "r+"); // Windows syncs only what is open for writing.
  await file.sync();
}

/** Makes the names in a folder durable: files created, renamed and removed there. */
export function syncFolder(path: string): void {
  if (!syncsFolders) return;
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } catch (error) {
    if (!isUnsupported(error)) throw error;
  } finally {
    closeSync(folder);
  }
}

/** Some network file systems cannot sync a folder; SQLite ignores that too. */
const isUnsupported = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "EINVAL" || error.code === "ENOTSUP");

/** Renames a synced file or folder in its folder, durably. */
export function renameDurably(from: string, to: string): void {
  renameSync(from, to);
  syncFolder(dirname(to));
}

/** Creates a private folder and what is missing above it, durably. */
export function makeFolder(path: string): void {
  const highest = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (highest === undefined) return;
  const top = dirname(resolve(highest));
  for (let folder = dirname(resolve(path)); folder.length >= top.length; folder = dirname(folder)) {
    syncFolder(folder);
    if (folder === top) return;
  }
}
