/**
 * Keeps large content in a folder: private to the user, one folder per conversation, file names made from ids alone. A
 * URI from a row or a caller can never lead outside the folder, and no link in it is followed. Content is durable before
 * a row can name it.
 */

import { renameSync } from "node:fs";
import { chmod, constants, copyFile, readdir, rm, writeFile } from "node:fs/promises";
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
import { makeFolder, renameDurably, syncFile, syncFolder } from "./durable.ts";
import { checkFolder, isLink, lookAt, notPlain, readPlain, type Spot } from "./plain-file.ts";

export function openFolder(folder: string): ContentStore {
  return {
    put: async (id, file) => await putIn(folder, id, file),
    async read({ id, storageUri, encoding }) {
      try {
        return (await readPlain(resolve(folder), pathInside(folder, storageUri))).toString(encoding);
      } catch (cause) {
        if (cause instanceof LcmError) throw cause;
        throw new LcmError("unavailable", `the content of ${id} cannot be read`, {
          cause,
          hint: "restore the files folder from a backup; it was moved or emptied",
        });
      }
    },
    path: async (storageUri) => pathInside(folder, storageUri),
    facts: async (storageUri) => await factsIn(folder, storageUri),
    async oddity(storageUri) {
      const spot = await spotIn(folder, storageUri);
      return spot.kind === "odd" ? spot.what : null;
    },
    async replace(storageUri, content, encoding) {
      const { bytes, size } = encode(content, encoding);
      const path = pathInside(folder, storageUri);
      await writeInPlace(folder, path, (draft) => writeFile(draft, bytes, { mode: 0o600, flag: "wx" }));
      syncFolder(dirname(path));
      return size;
    },
    remove: async (storageUri) => await removeIn(folder, pathInside(folder, storageUri)),
    async list(conversation) {
      const listed: ListedContent[] = [];
      for (const name of conversation === null ? await namesIn(folder) : [String(conversation)])
        if (/^\d+$/.test(name) && !isLink(join(folder, name)))
          listed.push(...(await namesIn(join(folder, name))).flatMap(toListed(name)));
      return listed;
    },
    async contains(storageUri, texts) {
      // Kept or removed since, or not ours.
      const bytes = await readPlain(resolve(folder), pathInside(folder, storageUri)).catch(() => Buffer.alloc(0));
      return texts.some((text) => bytes.includes(text));
    },
  };
}

async function putIn(folder: string, id: FileId, file: NewFile): Promise<ContentDraft> {
  const storageUri = uriOf(id, file);
  const path = pathInside(folder, storageUri);
  const { bytes, size } = encode(file.content, file.encoding);
  const draft = await writeDraft(folder, path, (to) => writeFile(to, bytes, { mode: 0o600, flag: "wx" }));
  let isKept = false;
  return {
    storageUri,
    ...size,
    keep() {
      if (isKept) return; // The transaction may be retried.
      try {
        renameDurably(draft, path);
      } catch (cause) {
        throw cannotStore(folder, cause);
      }
      isKept = true;
    },
    drop: async () => await rm(draft, { force: true }),
  };
}

export function uriOf(id: FileId, file: NewFile): string {
  if (!isFileId(id)) throw new LcmError("invalid", `${id} is not a file id`);
  return `${file.conversation}/${id}.${extensionOf(file)}`;
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
export function encode(
  content: string,
  encoding: FileEncoding,
): { readonly bytes: Buffer; readonly size: ContentSize } {
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

/** Written and synced beside its final place, then renamed, so that no crash or power cut leaves half a file. */
async function writeDraft(folder: string, path: string, write: (draft: string) => Promise<void>): Promise<string> {
  const draft = `${path}.${process.pid}.new`;
  try {
    makeFolder(dirname(path));
    await checkFolder(resolve(folder), dirname(path));
    await rm(draft, { force: true }); // Of a process that died, or a link.
    await write(draft);
    await chmod(draft, 0o600);
    await syncFile(draft);
    return draft;
  } catch (cause) {
    if (cause instanceof LcmError) throw cause;
    await rm(draft, { force: true }).catch(() => undefined); // An unwritable folder has no draft to remove.
    throw cannotStore(folder, cause);
  }
}

/** The caller syncs the folder, so that many files need it once. */
async function writeInPlace(folder: string, path: string, write: (draft: string) => Promise<void>): Promise<void> {
  const draft = await writeDraft(folder, path, write);
  try {
    renameSync(draft, path);
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
  const spot = await spotIn(folder, storageUri);
  return spot.kind === "plain" ? { bytes: spot.bytes, writtenAtMs: spot.writtenAtMs } : null;
}

async function spotIn(folder: string, storageUri: string): Promise<Spot> {
  try {
    return await lookAt(resolve(folder), pathInside(folder, storageUri));
  } catch {
    return { kind: "absent" }; // Outside the folder: it cannot be read either way.
  }
}

/** A link is removed, not what it leads to; what is behind a linked folder is not ours. */
async function removeIn(folder: string, path: string): Promise<void> {
  const isBehindLink = await checkFolder(resolve(folder), dirname(path)).then(
    () => false,
    () => true,
  );
  if (!isBehindLink) await rm(path, { force: true });
}

/** Throws `denied` if one of these contents is there as something else than a plain file. */
export async function refuseLinks(folder: string, uris: readonly string[]): Promise<void> {
  for (const storageUri of uris) {
    const spot = await spotIn(folder, storageUri);
    if (spot.kind === "odd") throw notPlain(join(folder, storageUri), spot.what);
  }
}

/** The older program stored absolute paths: one inside the folder is used, any other is looked up by its last two names. */
function pathInside(folder: string, storageUri: string): string {
  const root = resolve(folder);
  const plain = storageUri.replace(/^file:\/\//, "");
  const tail = join(...lastNames(plain));
  const path = resolve(root, win32.isAbsolute(plain) && !plain.startsWith(root + sep) ? tail : plain);
  if (path !== root && !path.startsWith(root + sep)) {
    throw new LcmError("denied", `a stored file is outside the files folder: ${storageUri}`);
  }
  return path;
}

/** The folder and the name at the end of a URI, which are the same wherever the files folder is. */
export function lastNames(storageUri: string): readonly [folder: string, name: string] {
  // win32 splits the paths of every platform; the database may come from another.
  return [win32.basename(win32.dirname(storageUri)), win32.basename(storageUri)];
}

/** Null for a URI that leads outside the folder, which nothing reads or writes. */
export function placeOf(folder: string, storageUri: string): string | null {
  try {
    return pathInside(folder, storageUri);
  } catch {
    return null; // A forged row, which must not hinder work with the others.
  }
}

/** Only names that `put` gives; other files in the folder are not ours. */
const ownName = /^(file_[0-9a-f]{16})\.[A-Za-z0-9]{1,8}(\.\d{1,10}\.new)?$/;

export const toListed =
  (conversation: string) =>
  (name: string): readonly ListedContent[] => {
    const [, id = "", draft] = ownName.exec(name) ?? [];
    return isFileId(id) ? [{ id, storageUri: `${conversation}/${name}`, isDraft: draft !== undefined }] : [];
  };

/** Empty if there is no such folder. */
const namesIn = async (folder: string): Promise<readonly string[]> =>
  (await readdir(folder).catch((): string[] => [])).toSorted();

/** How many files are copied at once: their syncs then share the disk's work. */
const copiesAtOnce = 16;

/**
 * Copies contents durably to the same URIs of another folder, unless they are there already with the same size. Returns
 * the URIs that the source does not have.
 */
export async function copyContents(
  from: string,
  to: string,
  uris: readonly string[],
  replace = false,
): Promise<readonly string[]> {
  const missing: string[] = [];
  const folders = new Set<string>();
  const copy = async (storageUri: string): Promise<void> => {
    const source = await factsIn(from, storageUri);
    if (source === null) return void missing.push(storageUri);
    const [path, target] = [pathInside(from, storageUri), pathInside(to, storageUri)];
    if (replace || (await factsIn(to, storageUri))?.bytes !== source.bytes) {
      try {
        await writeInPlace(to, target, (draft) =>
          copyFile(path, draft, constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL),
        );
      } catch (error) {
        if ((await factsIn(from, storageUri)) !== null) throw error;
        return void missing.push(storageUri); // Removed since.
      }
    }
    folders.add(dirname(target));
  };
  for (let start = 0; start < uris.length; start += copiesAtOnce)
    await Promise.all(uris.slice(start, start + copiesAtOnce).map(copy));
  for (const folder of folders) syncFolder(folder);
  return missing;
}

/** Null if there is no such content. */
export const bytesOf = async (folder: string, storageUri: string): Promise<Buffer | null> =>
  (await factsIn(folder, storageUri)) === null
    ? null
    : await readPlain(resolve(folder), pathInside(folder, storageUri));

/** Copies every file of a folder to another, whether a row names it or not. Drafts of other processes may vanish. */
export async function copyFiles(from: string, to: string): Promise<void> {
  const entries = await readdir(from, { recursive: true, withFileTypes: true }).catch(() => []);
  const names = entries.filter((entry) => entry.isFile() && !entry.name.endsWith(".new"));
  await copyContents(
    from,
    to,
    names.map(({ parentPath, name }) => relative(from, join(parentPath, name))),
  );
}

/** Removes the content that no row names. Drafts are left to their processes. */
export async function removeUnnamed(folder: string, named: () => readonly string[]): Promise<void> {
  const listed = await openFolder(folder).list(null);
  // Asked after the listing: content stored in between has its row by now.
  const kept = new Set(named().map((storageUri) => placeOf(folder, storageUri)));
  for (const { storageUri, isDraft } of listed) {
    const path = pathInside(folder, storageUri);
    if (!isDraft && !kept.has(path)) await removeIn(folder, path);
  }
}
