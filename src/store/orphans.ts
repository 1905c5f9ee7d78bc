/**
 * Content in the files folder that no row names, and drafts of such content: what a process leaves that is ended while
 * it stores a file. Nobody can read it through the store, but it is on the disk: whatever forgets must look here too.
 */

import { readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isFileId } from "../core/model.ts";
import type { ConversationId, FileId } from "../core/model.ts";

export interface Orphan {
  readonly id: FileId;
  readonly storageUri: string;
  /** Whoever was storing it has long been done, or is no more. */
  readonly isAbandoned: boolean;
}

const abandonedMs = 60 * 60 * 1_000;

/** Only names that the store itself gives: what else lies in the folder is not ours. */
const ownName = /^(file_[0-9a-f]{16})\.[A-Za-z0-9]{1,8}(\.\d{1,10}\.new)?$/;

/** The orphans of one conversation's folder, or of all; `stored` tells which of these ids have a row. */
export async function findOrphans(
  folder: string,
  scope: ConversationId | null,
  stored: (ids: readonly FileId[]) => Promise<ReadonlySet<FileId>>,
): Promise<readonly Orphan[]> {
  const found: Orphan[] = [];
  for (const conversation of scope === null ? await namesIn(folder) : [String(scope)]) {
    if (!/^\d+$/.test(conversation)) continue;
    const contents = (await namesIn(join(folder, conversation))).flatMap((name) => {
      const [, id = "", draft] = ownName.exec(name) ?? [];
      return isFileId(id) ? [{ id, storageUri: `${conversation}/${name}`, isDraft: draft !== undefined }] : [];
    });
    // Asked after the folder was listed: what was stored meanwhile has its row.
    const rows = await stored(contents.map(({ id }) => id));
    for (const { id, storageUri, isDraft } of contents) {
      if (!isDraft && rows.has(id)) continue;
      const facts = await stat(join(folder, storageUri)).catch(() => null); // A draft may be in its place by now.
      if (facts?.isFile() === true)
        found.push({ id, storageUri, isAbandoned: Date.now() - facts.mtimeMs > abandonedMs });
    }
  }
  return found;
}

/** None where there is no such folder, or it is none. */
const namesIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder).catch((): string[] => [])).toSorted();

export async function holdsAny(folder: string, { storageUri }: Orphan, words: readonly string[]): Promise<boolean> {
  const bytes = await readFile(join(folder, storageUri)).catch(() => Buffer.alloc(0)); // In its place by now, or gone.
  return words.some((word) => bytes.includes(word));
}
