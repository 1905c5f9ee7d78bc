/** What a backup must hold: the content that its rows name, except what the database had already lost by then. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolder, syncFile, syncFolder } from "../../content/durable.ts";
import { bytesOf, openFolder } from "../../content/folder.ts";
import { isLink } from "../../content/plain-file.ts";
import { contentHash } from "../../stored-files.ts";
import { identify, readDatabase } from "../file-kind.ts";
import { defaultFilesDir, filesBeside } from "../location.ts";
import { columnsOf } from "../pragma.ts";

/** Stored content as its row describes it. */
export interface NamedContent {
  readonly storageUri: string;
  /** 0 if unknown. */
  readonly bytes: number;
  readonly encoding: "utf8" | "base64";
  /** Null if unknown, as after forgetting something in it. */
  readonly hash: string | null;
}

/** Reads databases of the older program too; none if there is no such table. */
export function contentsNamedIn(path: string): readonly NamedContent[] {
  return readDatabase(path, (db) => {
    const columns = columnsOf(db, "large_files");
    if (!columns.has("storage_uri")) return [];
    const known = ["storage_uri", "byte_size", "encoding", "content_hash"].filter((name) => columns.has(name));
    return db
      .prepare(`SELECT DISTINCT ${known.join(", ")} FROM large_files ORDER BY storage_uri`)
      .all()
      .map((row) => ({
        storageUri: String(row["storage_uri"]),
        bytes: Number(row["byte_size"] ?? 0),
        encoding: row["encoding"] === "base64" ? "base64" : "utf8",
        hash: typeof row["content_hash"] === "string" ? row["content_hash"] : null,
      }));
  });
}

/** Whether a folder has the content with its size and, if asked, with its hash. */
export async function holds(folder: string, named: NamedContent, hashed: boolean): Promise<boolean> {
  const { storageUri, bytes, encoding, hash } = named;
  const facts = await openFolder(folder).facts(storageUri);
  if (facts === null || (bytes > 0 && facts.bytes !== bytes)) return false;
  if (!hashed || hash === null) return true;
  const content = (await bytesOf(folder, storageUri)) ?? Buffer.alloc(0);
  return contentHash(encoding === "utf8" ? content : content.toString("base64"), encoding) === hash;
}

/** Lists, beside a backup's files, the content that the database had lost when it was backed up. */
const lostName = "lost.json";

export async function recordLost(backup: string, storageUris: readonly string[]): Promise<void> {
  if (storageUris.length === 0) return;
  makeFolder(filesBeside(backup));
  const path = join(filesBeside(backup), lostName);
  writeFileSync(path, JSON.stringify(storageUris, null, 1), { mode: 0o600 });
  await syncFile(path);
  syncFolder(filesBeside(backup));
}

/** None if the list is damaged: then what it named counts as missing. */
export async function lostBefore(backup: string): Promise<ReadonlySet<string>> {
  const bytes = await bytesOf(filesBeside(backup), lostName);
  try {
    const listed: unknown = JSON.parse(bytes?.toString() ?? "[]");
    return new Set(Array.isArray(listed) ? listed.map(String) : []);
  } catch {
    return new Set();
  }
}

/** Where the content of a backup may be; the latter for a copy of a database with its folder. Links are not followed. */
export const foldersOf = (path: string): readonly string[] =>
  [filesBeside(path), defaultFilesDir(path)].filter((folder) => !isLink(folder));

/**
 * How many stored files a backup should hold and does not, by their sizes. None for a database of the older program:
 * adopting leaves its files in place.
 */
export async function filesLackingIn(backup: string): Promise<number> {
  if (identify(backup) === "older_program") return 0;
  const lost = await lostBefore(backup);
  let lacking = 0;
  for (const content of contentsNamedIn(backup)) {
    if (lost.has(content.storageUri)) continue;
    if ((await folderHolding(foldersOf(backup), content, false)) === null) lacking += 1;
  }
  return lacking;
}

export async function folderHolding(
  folders: readonly string[],
  content: NamedContent,
  hashed: boolean,
): Promise<string | null> {
  for (const folder of folders) if (await holds(folder, content, hashed)) return folder;
  return null;
}
