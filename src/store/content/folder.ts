/**
 * The folder of large files: content that was moved out of messages. Private to the user, one folder per conversation,
 * names made from ids alone. An id is never a path: whatever a caller or a row says, nothing outside is touched.
 */

import { createHash } from "node:crypto";
import { renameSync } from "node:fs";
import { chmod, copyFile, mkdir, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep, win32 } from "node:path";
import { LcmError, errorText } from "../../core/base/errors.ts";
import { isFileId } from "../../core/model/types.ts";
import type { ConversationId, FileEncoding, FileId, StoredFile } from "../../core/model/types.ts";
import type { LineRange, NewFile } from "../../core/model/store.ts";

interface Saved {
  readonly storageUri: string;
  readonly bytes: number;
  readonly lines: number | null;
}

/** Content beside its place. */
export interface Draft {
  readonly saved: Saved;
  /** Moves it there at once: in the transaction that records it, so that hardly a crash leaves it without its row. */
  keep(): void;
  /** Removes it, if it was not kept. */
  drop(): Promise<void>;
}

export async function draftContent(folder: string, id: FileId, file: NewFile): Promise<Draft> {
  if (!isFileId(id)) throw new LcmError("invalid", `${id} is not the id of a file`);
  const storageUri = `${file.conversation}/${id}.${extensionOf(file)}`;
  const path = pathInside(folder, storageUri);
  const { bytes, size } = measured(file.content, file.encoding);
  const draft = await writeDraft(folder, path, (to) => writeFile(to, bytes, { mode: 0o600 }));
  let isKept = false;
  return {
    saved: { storageUri, ...size },
    keep() {
      if (isKept) return; // A transaction may be tried again.
      try {
        renameSync(draft, path);
      } catch (cause) {
        throw cannotStore(folder, cause);
      }
      isKept = true;
    },
    drop: async () => await rm(draft, { force: true }),
  };
}

const extensionOf = ({ name, mimeType, encoding }: NewFile): string =>
  /\.([A-Za-z0-9]{1,8})$/.exec(name ?? "")?.[1]?.toLowerCase() ??
  extensions.get(mimeType?.split(";")[0]?.trim().toLowerCase() ?? "") ??
  (encoding === "base64" ? "bin" : "txt");

const extensions: ReadonlyMap<string, string> = new Map([
  ["image/png", "png"],
  ["image/jpeg", "jpg"],
  ["image/gif", "gif"],
  ["image/webp", "webp"],
  ["image/svg+xml", "svg"],
  ["application/pdf", "pdf"],
  ["application/json", "json"],
  ["application/x-ndjson", "jsonl"],
  ["application/xml", "xml"],
  ["application/yaml", "yaml"],
  ["audio/mpeg", "mp3"],
  ["audio/wav", "wav"],
  ["text/csv", "csv"],
  ["text/html", "html"],
  ["text/markdown", "md"],
  ["text/plain", "txt"],
  ["text/x-log", "log"],
]);

/** Equal for equal contents in the same encoding, and only for those. */
export const hashContent = ({ encoding, content }: Pick<NewFile, "encoding" | "content">): string =>
  createHash("sha256").update(`${encoding}:`).update(content).digest("hex");

/** The bytes that read back as exactly this content. Base64 has one way to write them, and half a character has none. */
function bytesOf(content: string, encoding: FileEncoding): Buffer {
  const bytes = Buffer.from(content, encoding);
  if (encoding === "utf8" ? content.isWellFormed() : bytes.toString("base64") === content) return bytes;
  throw new LcmError(
    "invalid",
    encoding === "utf8"
      ? "a text that ends or begins with half a character cannot be stored as a file"
      : "what is to be stored as bytes is not base64 in its canonical form",
  );
}

function measured(content: string, encoding: FileEncoding) {
  const bytes = bytesOf(content, encoding);
  const lines = encoding === "base64" ? null : content === "" ? 0 : content.split("\n").length;
  return { bytes, size: { bytes: bytes.length, lines } };
}

/** Written beside its place and then moved there, so a crash leaves no half of a file. */
async function writeDraft(folder: string, path: string, write: (draft: string) => Promise<void>): Promise<string> {
  const draft = `${path}.${process.pid}.new`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await write(draft);
    await chmod(draft, 0o600);
    return draft;
  } catch (cause) {
    await rm(draft, { force: true }).catch(() => undefined); // Where nothing can be written there is nothing to remove.
    throw cannotStore(folder, cause);
  }
}

async function writeInPlace(folder: string, path: string, write: (draft: string) => Promise<void>): Promise<void> {
  const draft = await writeDraft(folder, path, write);
  try {
    await rename(draft, path);
  } catch (cause) {
    await rm(draft, { force: true });
    throw cannotStore(folder, cause);
  }
}

const cannotStore = (folder: string, cause: unknown): LcmError =>
  new LcmError("unavailable", `a file cannot be stored in ${folder}: ${errorText(cause)}`, {
    cause,
    hint: "check that the folder can be written, and that the disk has room",
  });

export async function readContent(folder: string, file: StoredFile): Promise<string> {
  try {
    return await readFile(pathInside(folder, file.storageUri), file.encoding);
  } catch (cause) {
    if (cause instanceof LcmError) throw cause;
    throw new LcmError("unavailable", `the content of ${file.id} cannot be read`, {
      cause,
      hint: "the files folder was moved or emptied; restore it from a backup",
    });
  }
}

/** Whether a content of this size is not what was stored; the older program does not always say what that was. */
export const isAltered = ({ bytes }: Pick<StoredFile, "bytes">, found: number): boolean => bytes > 0 && bytes !== found;

/** All of it, or nothing: where a message is put together from it, a part would pass for the whole. */
export async function readWhole(folder: string, file: StoredFile): Promise<string> {
  const found = await sizeOfContent(folder, file);
  if (found === null || !isAltered(file, found)) return await readContent(folder, file);
  throw new LcmError(
    "unavailable",
    `the content of ${file.id} was cut or altered: it has not the size that was stored`,
    {
      hint: "restore the files folder from a backup",
    },
  );
}

/** Cut here, so that what is not shown never leaves this thread. */
export function linesOf(content: string, { fromLine, toLine = Infinity, charactersMax }: LineRange) {
  let [lines, from, to] = [1, fromLine === 1 ? 0 : content.length, content.length];
  for (let at = content.indexOf("\n"); at !== -1; at = content.indexOf("\n", at + 1)) {
    if (lines === toLine) to = at;
    lines += 1;
    if (lines === fromLine) from = at + 1;
  }
  const text = content.slice(from, Math.min(to, from + charactersMax));
  return { text, lines: content === "" ? 0 : lines };
}

export async function rewriteContent(
  folder: string,
  file: StoredFile,
  content: string,
  encoding: FileEncoding,
): Promise<Omit<Saved, "storageUri">> {
  const { bytes, size } = measured(content, encoding);
  await writeInPlace(folder, pathInside(folder, file.storageUri), (draft) => writeFile(draft, bytes, { mode: 0o600 }));
  return size;
}

export const removeContent = async (folder: string, storageUri: string): Promise<void> =>
  await rm(pathInside(folder, storageUri), { force: true });

export const hasContent = async (folder: string, file: Pick<StoredFile, "storageUri">): Promise<boolean> =>
  (await sizeOfContent(folder, file)) !== null;

/** In bytes; null where there is none. */
export async function sizeOfContent(folder: string, file: Pick<StoredFile, "storageUri">): Promise<number | null> {
  try {
    const facts = await stat(pathInside(folder, file.storageUri));
    return facts.isFile() ? facts.size : null;
  } catch {
    return null; // Absent, or outside the folder: either way it cannot be read back, which is what was asked.
  }
}

/** Databases of the older program store absolute paths; those under our folder, or with its layout, are ours to read. */
function pathInside(folder: string, storageUri: string): string {
  const root = resolve(folder);
  const plain = storageUri.replace(/^file:\/\//, "");
  // As either kind of system writes paths: a database may have been made on another.
  const tail = join(win32.basename(win32.dirname(plain)), win32.basename(plain));
  const path = resolve(root, win32.isAbsolute(plain) && !plain.startsWith(root + sep) ? tail : plain);
  if (path !== root && !path.startsWith(root + sep)) {
    throw new LcmError("denied", `a stored file lies outside the files folder: ${storageUri}`);
  }
  return path;
}

/** One content to the same place of another folder, where nothing is replaced. False if there is none. */
export async function copyContent(from: string, to: string, storageUri: string): Promise<boolean> {
  if (!(await hasContent(from, { storageUri }))) return false;
  if (await hasContent(to, { storageUri })) return true;
  const source = pathInside(from, storageUri);
  await writeInPlace(to, pathInside(to, storageUri), (draft) => copyFile(source, draft));
  return true;
}

/** Copies every stored file to another folder; tells how many. */
export async function copyFiles(from: string, to: string): Promise<number> {
  let copied = 0;
  for (const entry of await listFiles(from)) {
    const target = join(to, entry);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await copyFile(join(from, entry), target);
    await chmod(target, 0o600);
    copied += 1;
  }
  return copied;
}

/** Relative paths of all files; none when the folder does not exist. */
async function listFiles(folder: string): Promise<readonly string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath, entry.name)));
}

export const removeFiles = async (folder: string): Promise<void> => await rm(folder, { recursive: true, force: true });

// ── Orphans ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Content that no row names, and drafts of such content: what a process leaves that is ended while it stores a file.
 * Nobody can read it through the store, but it is on the disk: whatever forgets must look here too.
 */
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
