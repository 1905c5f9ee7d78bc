/**
 * The store on one SQLite file, in this thread. A script runs from its first statement to its last without leaving the
 * thread, so nothing can interleave and no mutex exists. When another process holds the write lock, waiting happens
 * between attempts and not inside SQLite: the event loop stays free, and reads go on meanwhile.
 */

import { randomBytes } from "node:crypto";
import { basename, dirname, join, resolve } from "node:path";
import { LcmError } from "../../core/base/errors.ts";
import { formsOf, redactText } from "../../core/maintenance/redact.ts";
import type { ConversationId, FileId, StoredFile } from "../../core/model/types.ts";
import type { ForgetPlan, Store } from "../../core/model/store.ts";
import { archive } from "./archive.ts";
import type { Place } from "./archive.ts";
import { backUp } from "./backup.ts";
import * as folder from "../content/folder.ts";
import type { Orphan } from "../content/folder.ts";
import {
  filesIn,
  filesOnlyOf,
  filesToForget,
  isScrubPending,
  recordScrub,
  replaceFileRow,
} from "../maintenance/forget.ts";
import { merge } from "./merge.ts";
import { fileWith, mustHave, storedAmong } from "../conversation/reads.ts";
import { toStoredFile } from "../rows.ts";
import { first } from "../script.ts";
import type { Script } from "../script.ts";
import { beyond, reads, writes } from "../operations.ts";
import { filesToSearch, searchFiles } from "../search/search-files.ts";
import { searchTimeoutMsDefault, throwIfCancelled } from "../search/limits.ts";
import { search } from "../search/search.ts";
import { bytesIn, emptyLog, giveBack, rewriteFile } from "./vacuum.ts";
import { forgottenMark } from "../../core/model/types.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { errcodeOf, retryWhileBusy } from "./errors.ts";
import { createRunner, offer } from "./runner.ts";
import { connect } from "./connect.ts";
import { createHousekeeper } from "./housekeeping.ts";

export interface SqliteOptions {
  readonly path: string;
  /** Where large files lie; `lcm-files` beside the database unless said otherwise. */
  readonly filesDir?: string;
  readonly readOnly?: boolean;
  /** How long a write may wait for another process before it is `unavailable`. */
  readonly busyTimeoutMs?: number;
  /** Indexing and checkpoints between the calls; off where a caller does it all by hand. */
  readonly housekeeping?: boolean;
  readonly now?: () => Timestamp;
  readonly hex16?: () => string;
}

const busyTimeoutMsDefault = 60_000;

export const systemNow = (): Timestamp => new Date().toISOString() as Timestamp;
const randomHex16 = (): string => randomBytes(8).toString("hex");

/** `lcm-files` beside `lcm.db`; a database of another name has a folder of its own, so that two never share one. */
export const defaultFilesDir = (path: string): string => {
  const name = basename(path);
  return join(dirname(path), name === "lcm.db" ? "lcm-files" : `${name}-files`);
};

const placeOf = (path: string): Place => ({ path: resolve(path), filesDir: defaultFilesDir(resolve(path)) });

/** Opens the database, making it if there is none. A file of the older program must be adopted first. */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { path, readOnly = false, now = systemNow, hex16 = randomHex16 } = options;
  const busyTimeoutMs = options.busyTimeoutMs ?? busyTimeoutMsDefault;
  const filesDir = options.filesDir ?? defaultFilesDir(path);
  const db = await retryWhileBusy(busyTimeoutMs, () => connect(path, readOnly));
  const runner = createRunner(db);
  const deps = { now, hex16 };

  let writing: Promise<unknown> = Promise.resolve();
  const housekeeper = createHousekeeper(db, path, runner, () => writing);
  if (options.housekeeping === false || readOnly) housekeeper.stop();

  const read = async <T>(script: () => Script<T>): Promise<T> =>
    await retryWhileBusy(busyTimeoutMs, () => runner.atomically("BEGIN", script()));
  const write = async <T>(script: () => Script<T>): Promise<T> => {
    const result = writing.then(() =>
      retryWhileBusy(busyTimeoutMs, () => runner.atomically("BEGIN IMMEDIATE", script())),
    );
    writing = result.catch(() => undefined); // Its caller hears of it; the next write does not wait for a reason.
    const written = await result;
    housekeeper.wake();
    return written;
  };

  const fileOf = async (id: FileId): Promise<StoredFile> => {
    const file = await read(() => reads.file(id));
    if (file === null) throw new LcmError("not_found", `there is no stored file ${id}`);
    return file;
  };

  /** The text of a stored file; none of bytes, and none where it is gone. */
  const textIn = async (file: StoredFile): Promise<string | null> =>
    file.encoding === "utf8" && (await folder.hasContent(filesDir, file))
      ? await folder.readContent(filesDir, file)
      : null;

  const orphansOf = async (scope: ConversationId | null): Promise<readonly Orphan[]> =>
    await folder.findOrphans(filesDir, scope, async (ids) => new Set(await read(() => storedAmong(ids))));

  const abandonedIn = async (scope: ConversationId | null): Promise<readonly string[]> =>
    (await orphansOf(scope)).flatMap(({ isAbandoned, storageUri }) => (isAbandoned ? [storageUri] : []));

  /** What of the folder holds what is to be forgotten: stored files, and content that no row names. */
  const holdersOf = async (target: ForgetPlan["target"], scope: ConversationId | null) => {
    if (target.kind === "message") return { files: await read(() => filesOnlyOf(target.id)), orphans: [] };
    const forms = formsOf(target.text);
    const files: StoredFile[] = [];
    for (const file of await read(() => filesIn(scope))) {
      const told = [(await textIn(file)) ?? "", file.exploration ?? "", file.name ?? ""];
      if (forms.some((form) => told.some((words) => words.includes(form)))) files.push(file);
    }
    const orphans: Orphan[] = [];
    for (const orphan of await orphansOf(scope))
      if (await folder.holdsAny(filesDir, orphan, forms)) orphans.push(orphan);
    return { files, orphans };
  };

  housekeeper.wake(); // What an import or an adopting left unindexed is taken up without waiting for a write.
  return {
    ...offer(reads, [], read),
    ...offer(writes, [deps], write),
    async setPromptBudget(id, tokens) {
      // Every turn says it, and mostly the same: no turn waits for another process to be told what is known.
      if ((await read(() => mustHave(id))).promptBudget === tokens) return;
      await write(() => writes.setPromptBudget(deps, id, tokens));
    },
    async index(rowsMax) {
      await writing;
      return await retryWhileBusy(busyTimeoutMs, () => housekeeper.tidy(rowsMax));
    },
    async search(request, limits = {}) {
      throwIfCancelled(limits.signal);
      const nowMs = (): number => performance.now();
      const deadline = { deadlineMs: nowMs() + (limits.timeoutMs ?? searchTimeoutMsDefault), nowMs };
      if (request.scope !== "files") return await read(() => search(request, deadline));
      const files = await read(() => filesToSearch(request));
      return await searchFiles(request, deadline, files, (file) => folder.readContent(filesDir, file));
    },
    async fileContent(id) {
      return await folder.readWhole(filesDir, await fileOf(id));
    },
    async fileLines(id, range) {
      return folder.linesOf(await folder.readContent(filesDir, await fileOf(id)), range);
    },
    async saveFile(file) {
      const contentHash = folder.hashContent(file);
      await read(() => mustHave(file.conversation)); // Before its content lies in the folder, where nobody would find it.
      const known = await read(() => first(fileWith(file.conversation, contentHash), toStoredFile));
      if (known !== null) {
        const found = await folder.sizeOfContent(filesDir, known);
        if (found === null || folder.isAltered(known, found))
          await folder.rewriteContent(filesDir, known, file.content, file.encoding);
        return known;
      }
      const id: FileId = `file_${hex16()}`;
      const { content: _, ...described } = file;
      const draft = await folder.draftContent(filesDir, id, file);
      try {
        return await write(function* () {
          const stored = yield* beyond.recordFile(deps, { ...described, id, contentHash, ...draft.saved });
          if (stored.id === id) draft.keep();
          return stored;
        });
      } catch (error) {
        await folder.removeContent(filesDir, draft.saved.storageUri); // Kept, and then not recorded.
        throw error;
      } finally {
        await draft.drop();
      }
    },
    async status() {
      return { path, ...(await read(() => beyond.status())) };
    },
    async skeleton(id) {
      const bones = await read(() => beyond.skeleton(id));
      const files = await read(() => reads.files(id));
      const sizes = await Promise.all(files.map((file) => folder.sizeOfContent(filesDir, file)));
      const missingFiles = files.filter((_, index) => sizes[index] === null).map((file) => file.id);
      const alteredFiles = files.flatMap((file, index) => {
        const found = sizes[index] ?? null;
        return found !== null && folder.isAltered(file, found) ? [{ id: file.id, stored: file.bytes, found }] : [];
      });
      return { ...bones, missingFiles, alteredFiles, orphanedFiles: (await orphansOf(id)).length };
    },
    async planForget(scope, target) {
      await finishScrub();
      const plan = await read(() => beyond.planForget(scope, target));
      const { files, orphans } = await holdersOf(target, scope);
      return { ...plan, files: [...files, ...orphans].map(({ id }) => id) };
    },
    async forget(scope, plan) {
      await finishScrub();
      const { target } = plan;
      const { files, orphans } = await holdersOf(target, scope);
      if ([...files, ...orphans].map(({ id }) => id).join() !== plan.files.join()) {
        return { kind: "stale", reason: "other files hold it now than when this was planned" };
      }
      const outcome = await write(() => beyond.forget(deps, scope, plan));
      if (outcome.kind === "stale") return outcome;
      if (target.kind === "secret") for (const file of files) await forgetInFile(file, target.text);
      const contents = [...orphans.map(({ storageUri }) => storageUri), ...(await abandonedIn(scope))];
      for (const storageUri of contents) await folder.removeContent(filesDir, storageUri);
      await scrub();
      return { ...outcome, removed: outcome.removed + files.length + orphans.length };
    },
    async backup(to) {
      await writing;
      return await backUp(path, filesDir, to);
    },
    async archive(ids, to, replace = false) {
      await writing;
      return await archive({ path, filesDir }, ids, placeOf(to), replace);
    },
    merge: async (from) => await merge({ path, filesDir, db, read, write }, placeOf(from)),
    async remove(plan) {
      const before = bytesIn(db).all;
      const outcome = await write(() => beyond.remove(deps, plan));
      if (outcome.kind === "stale") return outcome;
      const contents = [...outcome.contents, ...(await abandonedIn(null))]; // Also by a removal that was interrupted.
      for (const storageUri of contents) await folder.removeContent(filesDir, storageUri);
      giveBack(db);
      const { all: bytes, free } = bytesIn(db);
      return { kind: "written", change: outcome.change, bytes: Math.max(0, before - bytes), reusable: free };
    },
    async close() {
      housekeeper.stop();
      await writing;
      runner.forgetStatements();
      // The last one to close moves the log; but a thread that reads may outlive this one by a moment, and cannot.
      try {
        if (!readOnly) db.exec("PRAGMA wal_checkpoint(PASSIVE)");
      } catch (error) {
        if (errcodeOf(error) === null) throw error; // A full disk, for one: then the log stays, and with it everything.
      }
      db.close();
    },
  };

  async function forgetInFile(file: StoredFile, secret: string): Promise<void> {
    const text = await textIn(file);
    const left =
      text === null
        ? file
        : { ...file, ...(await folder.rewriteContent(filesDir, file, redactText(text, secret), "utf8")) };
    await write(() => replaceFileRow(left, (words) => redactText(words, secret)));
  }

  /** Of a message that was forgotten whole, what had been moved to files goes too; then nothing may linger in free pages,
   * in the index's old segments or in the log. */
  async function scrub(): Promise<void> {
    for (const file of await read(filesToForget)) {
      const left = await folder.rewriteContent(filesDir, file, forgottenMark, "utf8");
      await write(() => replaceFileRow({ ...file, ...left, encoding: "utf8" }, () => forgottenMark));
    }
    await retryWhileBusy(busyTimeoutMs, () => rewriteFile(db));
    await retryWhileBusy(busyTimeoutMs, () => emptyLog(db));
    await write(recordScrub);
  }

  /** A forgetting that was interrupted after its rows were written: no row tells of it any more, but the pages do. */
  async function finishScrub(): Promise<void> {
    if (!readOnly && (await read(isScrubPending))) await scrub();
  }
}

// ── Connecting ───────────────────────────────────────────────────────────────────────────────────────────────────────

// ── Running scripts ──────────────────────────────────────────────────────────────────────────────────────────────────

// ── Housekeeping ─────────────────────────────────────────────────────────────────────────────────────────────────────
