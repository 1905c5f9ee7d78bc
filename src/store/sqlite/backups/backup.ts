/**
 * Backs up a database and its stored files with SQLite's online backup, while other processes use it. A backup is whole
 * or is not one: its database gets its name last, once everything that it names is durable.
 */

import { closeSync, existsSync, openSync, readdirSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { LcmError, errorText } from "../../../core/base/errors.ts";
import { formatBytes } from "../../../core/base/format.ts";
import type { BackedUp } from "../../../core/model/database-file.ts";
import { renameDurably, syncFile } from "../../content/durable.ts";
import { copyContents } from "../../content/folder.ts";
import { contentsNamedIn, holds, recordLost, type NamedContent } from "./contents.ts";
import { openReadOnly, unseenLogBytes } from "../read-only.ts";
import { filesBeside, type DatabaseLocation } from "../location.ts";

export async function backUp(from: DatabaseLocation, to: string): Promise<BackedUp> {
  let copied: Copied = { files: 0, lost: 0 };
  await writeWhole(to, "backup", async (draft) => {
    removeDeadDrafts(dirname(to), basename(from.path));
    copied = await copyDatabase(from, draft);
  });
  return { path: to, bytes: statSync(to).size, ...copied };
}

type Copied = Pick<BackedUp, "files" | "lost">;

/** Without the stored files. */
export async function backUpDatabase(from: string, to: string): Promise<void> {
  await writeWhole(to, "backup", async (draft) => {
    removeDeadDrafts(dirname(to), basename(from));
    await copyPages(from, draft);
    leaveWal(draft);
  });
}

const attemptsMax = 5;

/** Copies the rows, then the content that they name; again if content was removed or changed in between. */
async function copyDatabase({ path, filesDir }: DatabaseLocation, draft: string): Promise<Copied> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    rmSync(filesBeside(draft), { recursive: true, force: true });
    await copyPages(path, draft);
    leaveWal(draft);
    const named = contentsNamedIn(draft);
    const uris = named.map(({ storageUri }) => storageUri);
    const missing = await copyContents(filesDir, filesBeside(draft), uris);
    const lacking: NamedContent[] = [];
    for (const content of named) if (!(await holds(filesBeside(draft), content, false))) lacking.push(content);
    const present = new Map(
      lacking.length === 0 ? [] : contentsNamedIn(path).map((each) => [each.storageUri, each.bytes]),
    );
    if (lacking.some(({ storageUri, bytes }) => present.get(storageUri) !== bytes)) continue;
    await recordLost(
      draft,
      lacking.map(({ storageUri }) => storageUri),
    );
    return { files: named.length - missing.length, lost: lacking.length };
  }
  throw new LcmError(
    "unavailable",
    `stored files of ${path} kept changing during ${attemptsMax} attempts to copy them`,
    {
      hint: "wait until the prune or forget under way has ended, then try again",
    },
  );
}

/**
 * Writes a private file under a temporary name, syncs it, and renames it once complete, so that no crash or power cut
 * leaves half of it. Files that were written beside the draft get their name first.
 */
export async function writeWhole(
  to: string,
  what: "backup" | "archive",
  write: (draft: string) => Promise<void>,
  replace = false,
): Promise<void> {
  if (statSync(to, { throwIfNoEntry: false })?.isDirectory() === true)
    throw new LcmError("invalid", `${to} is a folder`, { hint: "name a file in it" });
  const taken = [to, filesBeside(to)].find((path) => existsSync(path));
  if (!replace && taken !== undefined)
    throw new LcmError("conflict", `${taken} already exists`, { hint: "choose another name" });
  const folder = dirname(to);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
    throw new LcmError("not_found", `there is no folder ${folder}`, {
      hint: "create the folder first, or check that its disk is mounted",
    });
  }
  const draft = join(folder, `.${basename(to)}.${process.pid}.new`);
  const made = [draft, `${draft}-journal`, filesBeside(draft)];
  try {
    removeDeadDrafts(folder, basename(to));
    closeSync(openSync(draft, "wx", 0o600));
    await write(draft);
    await syncFile(draft);
    if (existsSync(filesBeside(draft))) {
      renameDurably(filesBeside(draft), filesBeside(to));
      made.push(filesBeside(to));
    }
    renameDurably(draft, to);
  } catch (cause) {
    for (const path of made) rmSync(path, { recursive: true, force: true });
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
    const pid = /\.(\d+)\.new(-journal|\.files)?$/.exec(name)?.[1];
    const draft = join(folder, name);
    if (pid === undefined || !name.startsWith(`.${database}.`) || isBeingWritten(draft, Number(pid))) continue;
    rmSync(draft, { recursive: true, force: true });
  }
}

/** In a container a process often has the number that the one before it had. */
function isBeingWritten(draft: string, pid: number): boolean {
  if (pid !== process.pid) return isAlive(pid);
  return (statSync(draft, { throwIfNoEntry: false })?.mtimeMs ?? 0) >= performance.timeOrigin;
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

export async function copyPages(from: string, to: string): Promise<void> {
  const unseen = unseenLogBytes(from);
  if (unseen > 0) {
    throw new LcmError(
      "denied",
      `the log of ${from}, ${formatBytes(unseen)}, cannot be read, so a copy would be incomplete`,
      {
        hint: `copy ${basename(from)} and ${basename(from)}-wal to a folder that you may write to, and use that copy`,
      },
    );
  }
  using source = openReadOnly(from);
  await backup(source, to, { rate: pagesPerStep });
}

/** In WAL mode, reading the backup would create two more files beside it. */
export function leaveWal(path: string): void {
  using db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = DELETE");
}
