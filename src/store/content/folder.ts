/**
 * Keeps large content in a folder: private to the user, one folder per conversation, file names made from ids alone. A
 * URI from a row or a caller can never lead outside the folder.
 */

import { renameSync } from "node:fs";
import { chmod, copyFile, mkdir, readFile, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep, win32 } from "node:path";
import { LcmError, errorText } from "../../core/base/errors.ts";
import type {
  ContentDraft,
  ContentFacts,
  ContentSize,
  ContentStore,
  ListedContent,
} from "../../core/model/content-store.ts";
import type { NewFile } from "../../core/model/store.ts";
import { isFileId, type FileEncoding, type FileId } from "../../core/model/types.ts";

export function openFolder(folder: string): ContentStore {
  return {
    put: async (id, file) => await putIn(folder, id, file),
    async read({ id, storageUri, encoding }) {
      try {
        return await readFile(pathInside(folder, storageUri), encoding);
      } catch (cause) {
        if (cause instanceof LcmError) throw cause;
        throw new LcmError("unavailable", `the content of ${id} cannot be read`, {
          cause,
          hint: "restore the files folder from a backup; it was moved or emptied",
        });
      }
    },
    path: (storageUri) => pathInside(folder, storageUri),
    facts: async (storageUri) => await factsIn(folder, storageUri),
    async replace(storageUri, content, encoding) {
      const { bytes, size } = encode(content, encoding);
      await writeInPlace(folder, pathInside(folder, storageUri), (draft) => writeFile(draft, bytes, { mode: 0o600 }));
      return size;
    },
    remove: async (storageUri) => await rm(pathInside(folder, storageUri), { force: true }),
    async list(conversation) {
      const listed: ListedContent[] = [];
      for (const name of conversation === null ? await namesIn(folder) : [String(conversation)])
        if (/^\d+$/.test(name)) listed.push(...(await namesIn(join(folder, name))).flatMap(toListed(name)));
      return listed;
    },
    async contains(storageUri, texts) {
      const bytes = await readFile(pathInside(folder, storageUri)).catch(() => Buffer.alloc(0)); // Kept or removed since.
      return texts.some((text) => bytes.includes(text));
    },
  };
}

async function putIn(folder: string, id: FileId, file: NewFile): Promise<ContentDraft> {
  if (!isFileId(id)) throw new LcmError("invalid", `${id} is not a file id`);
  const storageUri = `${file.conversation}/${id}.${extensionOf(file)}`;
  const path = pathInside(folder, storageUri);
  const { bytes, size } = encode(file.content, file.encoding);
  const draft = await writeDraft(folder, path, (to) => writeFile(to, bytes, { mode: 0o600 }));
  let isKept = false;
  return {
    storageUri,
    ...size,
    keep() {
      if (isKept) return; // The transaction may be retried.
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

/** Throws for content that its bytes would not read back as: half a character, or base64 in another form. */
function encode(content: string, encoding: FileEncoding): { readonly bytes: Buffer; readonly size: ContentSize } {
  const bytes = Buffer.from(content, encoding);
  if (encoding === "utf8" ? !content.isWellFormed() : bytes.toString("base64") !== content) {
    throw new LcmError(
      "invalid",
      encoding === "utf8"
        ? "the text begins or ends with half a character and cannot be stored as a file"
        : "the content is not canonical base64 and cannot be stored as a file",
    );
  }
  const lines = encoding === "base64" ? null : content === "" ? 0 : content.split("\n").length;
  return { bytes, size: { bytes: bytes.length, lines } };
}

/** Written beside its final place and then renamed, so that a crash never leaves half a file. */
async function writeDraft(folder: string, path: string, write: (draft: string) => Promise<void>): Promise<string> {
  const draft = `${path}.${process.pid}.new`;
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    await write(draft);
    await chmod(draft, 0o600);
    return draft;
  } catch (cause) {
    await rm(draft, { force: true }).catch(() => undefined); // An unwritable folder has no draft to remove.
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
  new LcmError("unavailable", `no file can be stored in ${folder}: ${errorText(cause)}`, {
    cause,
    hint: "check that the folder is writable and the disk has free space",
  });

async function factsIn(folder: string, storageUri: string): Promise<ContentFacts | null> {
  try {
    const facts = await stat(pathInside(folder, storageUri));
    return facts.isFile() ? { bytes: facts.size, writtenAtMs: facts.mtimeMs } : null;
  } catch {
    return null; // Absent or outside the folder: it cannot be read either way.
  }
}

/** The older program stored absolute paths: one inside the folder is used, any other is looked up by its last two names. */
function pathInside(folder: string, storageUri: string): string {
  const root = resolve(folder);
  const plain = storageUri.replace(/^file:\/\//, "");
  // win32 splits the paths of every platform; the database may come from another.
  const tail = join(win32.basename(win32.dirname(plain)), win32.basename(plain));
  const path = resolve(root, win32.isAbsolute(plain) && !plain.startsWith(root + sep) ? tail : plain);
  if (path !== root && !path.startsWith(root + sep)) {
    throw new LcmError("denied", `a stored file is outside the files folder: ${storageUri}`);
  }
  return path;
}

/** Only names that `put` gives; other files in the folder are not ours. */
const ownName = /^(file_[0-9a-f]{16})\.[A-Za-z0-9]{1,8}(\.\d{1,10}\.new)?$/;

const toListed =
  (conversation: string) =>
  (name: string): readonly ListedContent[] => {
    const [, id = "", draft] = ownName.exec(name) ?? [];
    return isFileId(id) ? [{ id, storageUri: `${conversation}/${name}`, isDraft: draft !== undefined }] : [];
  };

/** Empty if there is no such folder. */
const namesIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder).catch((): string[] => [])).toSorted();

/** Copies one content to the same URI of another folder, unless it is there already. False if the source has none. */
export async function copyContent(from: string, to: string, storageUri: string): Promise<boolean> {
  if ((await factsIn(from, storageUri)) === null) return false;
  if ((await factsIn(to, storageUri)) !== null) return true;
  const source = pathInside(from, storageUri);
  await writeInPlace(to, pathInside(to, storageUri), (draft) => copyFile(source, draft));
  return true;
}

/** Copies every file of a folder to another and returns their number; 0 if the folder does not exist. */
export async function copyFiles(from: string, to: string): Promise<number> {
  const entries = await readdir(from, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  for (const file of files) {
    const target = join(to, relative(from, file));
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await copyFile(file, target);
    await chmod(target, 0o600);
  }
  return files.length;
}

export const removeFiles = async (folder: string): Promise<void> => await rm(folder, { recursive: true, force: true });
