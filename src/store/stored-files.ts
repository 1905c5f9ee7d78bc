/** Saves, reads, checks and forgets stored files: the rows that describe large content, and the content. */

import { createHash } from "node:crypto";
import { LcmError } from "../core/base/errors.ts";
import { escapedForms, redactText } from "../core/maintenance/redact.ts";
import type { ContentFacts } from "../core/model/content-store.ts";
import type { ForgetPlan, LineRange, NewFile, Skeleton } from "../core/model/store.ts";
import { messageName } from "../core/model/types.ts";
import type { ConversationId, FileEncoding, FileId, MessageId, StoredFile } from "../core/model/types.ts";
import type { StoredContent } from "./content/staged.ts";
import { fileWith, hashOf, mustHave, storedAmong } from "./conversation/reads.ts";
import { freshFileId } from "./ledger/files.ts";
import { filesIn, filesOnlyOf, mapFiles, replaceFileRow, withCopies } from "./maintenance/forget.ts";
import { rowSteps, reads } from "./operations.ts";
import { toStoredFile } from "./rows.ts";
import { first, type ScriptDeps, type Transactions } from "./script.ts";

export interface StoredFiles extends Transactions {
  readonly content: StoredContent;
  readonly deps: ScriptDeps;
}

/** Throws if the content was truncated or altered: a message rebuilt from it would look like the original. */
export async function fileContent(files: StoredFiles, id: FileId): Promise<string> {
  const file = await mustFindFile(files, id);
  const facts = await files.content.facts(file.storageUri);
  if (facts !== null && isAltered(file, facts)) throw changed(id, `it has ${facts.bytes} bytes, not ${file.bytes}`);
  const content = await files.content.read(file);
  const hash = await files.read(() => hashOf(id));
  if (hash === null || hash === contentHash(content, file.encoding)) return content;
  throw changed(id, "it does not match its hash");
}

const changed = (id: FileId, how: string): LcmError =>
  new LcmError("unavailable", `the content of ${id} was changed: ${how}`, {
    hint: "restore the files folder from a backup",
  });

export const filePath = async (files: StoredFiles, id: FileId): Promise<string | null> =>
  await files.content.path((await mustFindFile(files, id)).storageUri);

/** Extracts the lines here, so that a worker thread passes on only these. */
export async function fileLines(files: StoredFiles, id: FileId, range: LineRange) {
  const content = await files.content.read(await mustFindFile(files, id));
  const { fromLine, toLine = Infinity, charactersMax } = range;
  let [lines, from, to] = [1, fromLine === 1 ? 0 : content.length, content.length];
  for (let at = content.indexOf("\n"); at !== -1; at = content.indexOf("\n", at + 1)) {
    if (lines === toLine) to = at;
    lines += 1;
    if (lines === fromLine) from = at + 1;
  }
  const text = content.slice(from, Math.min(to, from + charactersMax));
  return { text, lines: content === "" ? 0 : lines };
}

async function mustFindFile({ read }: StoredFiles, id: FileId): Promise<StoredFile> {
  const file = await read(() => reads.file(id));
  if (file === null) throw new LcmError("not_found", `there is no stored file ${id}`);
  return file;
}

/** The older program did not always record a size; then any is accepted. */
const isAltered = ({ bytes }: StoredFile, facts: ContentFacts): boolean => bytes > 0 && bytes !== facts.bytes;

/** The hash of content by which it is found again and verified. */
export const contentHash = (content: string | Buffer, encoding: FileEncoding): string =>
  createHash("sha256").update(`${encoding}:`).update(content).digest("hex");

/** Returns the row of the same content in the same conversation if there is one, and restores its content if needed. */
export async function saveFile({ content, deps, read, write }: StoredFiles, file: NewFile): Promise<StoredFile> {
  const { content: text, ...described } = file;
  const hash = contentHash(text, file.encoding);
  await read(() => mustHave(file.conversation)); // First: content of a missing conversation would never be found.
  const known = await read(() => first(fileWith(file.conversation, hash), toStoredFile));
  if (known !== null) {
    const facts = await content.facts(known.storageUri);
    if (facts === null || isAltered(known, facts)) await content.replace(known.storageUri, text, file.encoding);
    return known;
  }
  const id = await read(() => freshFileId(deps, file.conversation));
  const { keep, drop, rows = [], ...saved } = await content.put(id, file);
  try {
    return await write(function* () {
      const stored = yield* rowSteps.recordFile(deps, { ...described, id, contentHash: hash, ...saved });
      if (stored.id !== id) return stored;
      yield rows;
      keep();
      return stored;
    });
  } catch (error) {
    await content.remove(saved.storageUri); // It may have been kept, but was not recorded.
    throw error;
  } finally {
    await drop();
  }
}

/** What is wrong with the content of a conversation's files. */
export async function inspectContent(
  files: StoredFiles,
  conversation: ConversationId,
): Promise<Pick<Skeleton, "missingFiles" | "alteredFiles" | "oddFiles" | "orphanedFiles">> {
  const missingFiles: FileId[] = [];
  const alteredFiles: Skeleton["alteredFiles"][number][] = [];
  const odd = new Map<FileId, string>();
  for (const file of await files.read(() => reads.files(conversation))) {
    const facts = await files.content.facts(file.storageUri);
    const what = facts === null ? await files.content.oddity(file.storageUri) : null;
    if (what !== null) odd.set(file.id, what);
    else if (facts === null) missingFiles.push(file.id);
    else if (isAltered(file, facts)) alteredFiles.push({ id: file.id, stored: file.bytes, found: facts.bytes });
  }
  for (const { id, storageUri } of await files.content.list(conversation)) {
    const what = await files.content.oddity(storageUri);
    if (what !== null) odd.set(id, what);
  }
  const oddFiles = [...odd].map(([id, what]) => ({ id, what }));
  return { missingFiles, alteredFiles, oddFiles, orphanedFiles: (await orphansOf(files, conversation)).length };
}

/** Content or a draft without a row, left by a process that died while storing it. Forgetting must search it too. */
interface Orphan {
  readonly id: FileId;
  readonly storageUri: string;
  /** So old that the process that stored it must have ended. */
  readonly isAbandoned: boolean;
}

const abandonedMs = 60 * 60 * 1_000;

async function orphansOf({ content, read }: StoredFiles, scope: ConversationId | null): Promise<readonly Orphan[]> {
  const listed = await content.list(scope);
  // Asked after the listing: a file stored in between has its row by now.
  const stored = new Set(await read(() => storedAmong(listed.map(({ id }) => id))));
  const orphans: Orphan[] = [];
  for (const { id, storageUri, isDraft } of listed) {
    if (!isDraft && stored.has(id)) continue;
    const facts = await content.facts(storageUri); // Null for a draft that was kept since.
    if (facts !== null) orphans.push({ id, storageUri, isAbandoned: Date.now() - facts.writtenAtMs > abandonedMs });
  }
  return orphans;
}

/** Also removes what is abandoned, including the content of a removal that was interrupted. */
export async function removeContents(
  files: StoredFiles,
  storageUris: readonly string[],
  scope: ConversationId | null,
): Promise<void> {
  const abandoned = (await orphansOf(files, scope)).filter(({ isAbandoned }) => isAbandoned);
  for (const storageUri of [...storageUris, ...abandoned.map((orphan) => orphan.storageUri)])
    await files.content.remove(storageUri);
}

/** The files and orphans that contain what a plan forgets. */
export async function holdersOf(files: StoredFiles, target: ForgetPlan["target"], scope: ConversationId | null) {
  const { content, read } = files;
  if (target.kind === "message") {
    const own = await read(() => filesOnlyOf(target.id));
    return { files: [...own, ...(await mapFilesAbout(files, target.id))], orphans: [] };
  }
  const forms = escapedForms(target.text);
  const holding: StoredFile[] = [];
  for (const file of await read(() => filesIn(scope))) {
    const texts = [(await textOf(files, file)) ?? "", file.exploration ?? "", file.name ?? ""];
    if (forms.some((form) => texts.some((text) => text.includes(form)))) holding.push(file);
  }
  const orphans: Orphan[] = [];
  for (const orphan of await orphansOf(files, scope))
    if (await content.contains(orphan.storageUri, forms)) orphans.push(orphan);
  return { files: holding, orphans };
}

/** Files in which a model answered something about this message or a copy of it. */
async function mapFilesAbout(files: StoredFiles, id: MessageId): Promise<readonly StoredFile[]> {
  const names = (await files.read(() => withCopies(id))).map((each) => `"${messageName(each)}"`);
  const found: StoredFile[] = [];
  for (const file of await files.read(mapFiles)) {
    const content = (await textOf(files, file)) ?? "";
    if (names.some((name) => content.includes(name))) found.push(file);
  }
  return found;
}

export async function forgetInFile(files: StoredFiles, file: StoredFile, secret: string): Promise<void> {
  const text = await textOf(files, file);
  await replaceContent(files, file, text === null ? null : redactText(text, secret), (words) =>
    redactText(words, secret),
  );
}

/** Replaces the content, unless it is null, and redacts the row. In between the size is unknown: a crash leaves no wrong one. */
export async function replaceContent(
  { content, write }: StoredFiles,
  file: StoredFile,
  text: string | null,
  redact: (words: string) => string,
): Promise<void> {
  await write(() => replaceFileRow({ ...file, bytes: text === null ? file.bytes : 0 }, redact));
  if (text === null) return;
  const size = await content.replace(file.storageUri, text, "utf8");
  await write(() => replaceFileRow({ ...file, ...size, encoding: "utf8" }, redact));
}

/** Null if it is not text, or the content is missing. */
const textOf = async ({ content }: StoredFiles, file: StoredFile): Promise<string | null> =>
  file.encoding === "utf8" && (await content.facts(file.storageUri)) !== null ? await content.read(file) : null;
