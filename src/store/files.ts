/**
 * The folder of large files: content that was moved out of messages. Private to the user, one folder per conversation,
 * names made from ids alone. An id is never a path: whatever a caller or a row says, nothing outside is touched.
 */

import { chmod, copyFile, mkdir, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { LcmError } from "../core/errors.ts";
import { isFileId } from "../core/model.ts";
import type { ConversationId, FileId, StoredFile } from "../core/model.ts";

const extensionOf = (name: string | null): string =>
  /\.([A-Za-z0-9]{1,8})$/.exec(name ?? "")?.[1]?.toLowerCase() ?? "txt";

export interface Saved {
  readonly storageUri: string;
  readonly bytes: number;
  readonly lines: number;
}

/** Written beside its place and then moved there, so a crash leaves no half of a file. */
export async function saveContent(
  folder: string,
  conversation: ConversationId,
  id: FileId,
  name: string | null,
  content: string,
): Promise<Saved> {
  if (!isFileId(id)) throw new LcmError("invalid", `${id} is not the id of a file`);
  const storageUri = `${conversation}/${id}.${extensionOf(name)}`;
  const path = pathInside(folder, storageUri);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await replaceContent(path, content);
  return { storageUri, ...sizeOf(content) };
}

const sizeOf = (content: string): Pick<Saved, "bytes" | "lines"> => ({
  bytes: Buffer.byteLength(content),
  lines: content === "" ? 0 : content.split("\n").length,
});

async function replaceContent(path: string, content: string): Promise<void> {
  const draft = `${path}.${process.pid}.new`;
  await writeFile(draft, content, { mode: 0o600 });
  await rename(draft, path);
}

export async function readContent(folder: string, file: StoredFile): Promise<string> {
  try {
    return await readFile(pathInside(folder, file.storageUri), "utf8");
  } catch (cause) {
    if (cause instanceof LcmError) throw cause;
    throw new LcmError("unavailable", `the content of ${file.id} cannot be read`, {
      cause,
      hint: "the files folder was moved or emptied; restore it from a backup",
    });
  }
}

export async function rewriteContent(
  folder: string,
  file: StoredFile,
  content: string,
): Promise<Pick<Saved, "bytes" | "lines">> {
  await replaceContent(pathInside(folder, file.storageUri), content);
  return sizeOf(content);
}

export async function hasContent(folder: string, file: StoredFile): Promise<boolean> {
  try {
    return (await stat(pathInside(folder, file.storageUri))).isFile();
  } catch {
    return false; // Absent, or outside the folder: either way it cannot be read back, which is what was asked.
  }
}

/** Databases of the older program store absolute paths; those under our folder, or with its layout, are ours to read. */
function pathInside(folder: string, storageUri: string): string {
  const root = resolve(folder);
  const plain = storageUri.replace(/^file:\/\//, "");
  const tail = join(basename(dirname(plain)), basename(plain));
  const path = resolve(root, plain.startsWith("/") && !plain.startsWith(root + sep) ? tail : plain);
  if (path !== root && !path.startsWith(root + sep)) {
    throw new LcmError("denied", `a stored file lies outside the files folder: ${storageUri}`);
  }
  return path;
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
