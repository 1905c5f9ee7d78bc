/** The store on one SQLite file, in the calling thread: connects, runs scripts, keeps house and stores content. */

import { randomBytes } from "node:crypto";
import type { DatabaseSync } from "node:sqlite";
import type { Timestamp } from "../../core/base/time.ts";
import type { Durability } from "../../core/model/settings.ts";
import type { DatabaseFile, WholeDatabase } from "../../core/model/database-file.ts";
import type { RemovePlan, SearchLimits, SearchRequest, SearchResult, Store } from "../../core/model/store.ts";
import { openFolder } from "../content/folder.ts";
import { createForgetting } from "../forgetting.ts";
import { mustHave } from "../conversation/reads.ts";
import { offer, rowSteps, reads, writes } from "../operations.ts";
import { searchTimeoutMsDefault, throwIfCancelled } from "../search/limits.ts";
import { filesToSearch, searchFiles } from "../search/search-files.ts";
import { search } from "../search/search.ts";
import {
  fileContent,
  fileLines,
  filePath,
  inspectContent,
  removeContents,
  saveFile,
  type StoredFiles,
} from "../stored-files.ts";
import { archive } from "./archive.ts";
import { backUp } from "./backups/backup.ts";
import { backUpBeforeUpgrade } from "./backups/before-upgrade.ts";
import { connect } from "./connect.ts";
import { errcodeOf, retryWhileBusy } from "./errors.ts";
import { identify } from "./file-kind.ts";
import { createHousekeeper } from "./housekeeping.ts";
import { leftovers } from "./leftovers.ts";
import { exposuresOf, filesDirOf, locationOf, type DatabaseLocation } from "./location.ts";
import { merge } from "./merge.ts";
import { schemaVersion } from "./schema.ts";
import { createQueue, createRunner, type ScriptQueue } from "./runner.ts";
import { createSearchIndex } from "./search-index.ts";
import { bytesIn, emptyLog, fileBytes, giveBack, rewriteFile, syncLog } from "./vacuum.ts";

export interface SqliteOptions {
  readonly path: string;
  /** The folder of large content; by default the one beside the database. */
  readonly filesDir?: string;
  readonly readOnly?: boolean;
  /** How long a call may wait for another process before it is `unavailable`. */
  readonly busyTimeoutMs?: number;
  /** Indexing and checkpoints between calls; on by default. */
  readonly housekeeping?: boolean;
  /** Whether commits wait for the disk; `full` by default. `normal` is for callers that can bring the same rows again. */
  readonly durability?: Durability;
  readonly now?: () => Timestamp;
  readonly hex16?: () => string;
}

const busyTimeoutMsDefault = 60_000;

export const systemNow = (): Timestamp => new Date().toISOString() as Timestamp;
const randomHex16 = (): string => randomBytes(8).toString("hex");

/** Creates the database if there is none. Throws `conflict` for a file of the older program, which must be adopted. */
export async function openSqlite(options: SqliteOptions): Promise<Store> {
  const { path, readOnly: isReadOnly = false, busyTimeoutMs = busyTimeoutMsDefault } = options;
  const { now = systemNow, hex16 = randomHex16, filesDir = filesDirOf(path) } = options;
  const kind = await retryWhileBusy(busyTimeoutMs, () => identify(path));
  if (kind === "outdated" && !isReadOnly) await backUpBeforeUpgrade(path, now());
  const db = await retryWhileBusy(busyTimeoutMs, () => connect(path, isReadOnly, options.durability, kind));
  const runner = createRunner(db);
  const queue = createQueue(runner, busyTimeoutMs, () => housekeeper.wake());
  const housekeeper = createHousekeeper({ db, path, runner, writes: queue.settled, now });
  if (options.housekeeping === false || isReadOnly) housekeeper.stop();
  const { read, write, retry } = queue;
  const deps = { now, hex16, leftovers };
  const files: StoredFiles = { content: openFolder(filesDir), deps, read, write };
  /** For writes that content is removed or replaced after: a row that came back would name what is gone. */
  const durably: StoredFiles = {
    ...files,
    async write(script) {
      const written = await write(script);
      await syncLog(path);
      return written;
    },
  };

  housekeeper.wake(); // An import or adoption may have left rows to index.
  return {
    ...offer(reads, [], read),
    ...offer(writes, [deps], write),
    ...createForgetting({
      ...durably,
      isReadOnly,
      // No free page keeps the text, and no log.
      async erase() {
        await retry(() => rewriteFile(db));
        await retry(() => emptyLog(db));
      },
    }),
    async setPromptBudget(id, tokens) {
      // Every turn sets it, mostly to the same value: only a change has to wait for other writers.
      if ((await read(() => mustHave(id))).promptBudget === tokens) return;
      await write(() => writes.setPromptBudget(deps, id, tokens));
    },
    async index(rowsMax) {
      await queue.settled();
      return await retry(() => housekeeper.tidy(rowsMax));
    },
    search: async (request, limits = {}) => await searchStore(files, request, limits),
    fileContent: async (id) => await fileContent(files, id),
    fileLines: async (id, range) => await fileLines(files, id, range),
    filePath: async (id) => await filePath(files, id),
    saveFile: async (file) => await saveFile(files, file),
    status: async () => ({ path, ...(await read(() => rowSteps.status(schemaVersion, fileBytes))) }),
    skeleton: async (id) => ({ ...(await read(() => rowSteps.skeleton(id))), ...(await inspectContent(files, id)) }),
    remove: async (plan) => await remove(db, durably, plan),
    ...createWholeDatabase({ path, filesDir }, db, queue),
    async close() {
      await queue.settled();
      housekeeper.finish();
      runner.forgetStatements();
      // SQLite checkpoints when the last connection closes, but a searching thread may hold its own a moment longer.
      try {
        if (!isReadOnly) db.exec("PRAGMA wal_checkpoint(PASSIVE)");
      } catch (error) {
        if (errcodeOf(error) === null) throw error; // On a full disk, for one, the log stays and nothing is lost.
      }
      db.close();
    },
  };
}

async function searchStore(files: StoredFiles, request: SearchRequest, limits: SearchLimits): Promise<SearchResult> {
  throwIfCancelled(limits.signal);
  const nowMs = (): number => performance.now();
  const deadline = { deadlineMs: nowMs() + (limits.timeoutMs ?? searchTimeoutMsDefault), nowMs };
  if (request.scope !== "files") return await files.read(() => search(createSearchIndex(), request, deadline));
  const candidates = await files.read(() => filesToSearch(request));
  return await searchFiles(request, deadline, candidates, (file) => files.content.read(file));
}

async function remove(db: DatabaseSync, files: StoredFiles, plan: RemovePlan): ReturnType<Store["remove"]> {
  const before = bytesIn(db).all;
  const outcome = await files.write(() => rowSteps.remove(files.deps, plan));
  if (outcome.kind === "stale") return outcome;
  await removeContents(files, outcome.contents, null);
  giveBack(db);
  const { all: bytes, free } = bytesIn(db);
  return { kind: "written", change: outcome.change, bytes: Math.max(0, before - bytes), reusable: free };
}

function createWholeDatabase(location: DatabaseLocation, db: DatabaseSync, queue: ScriptQueue) {
  const databaseFile: DatabaseFile = {
    async backup(to) {
      await queue.settled();
      return await backUp(location, to);
    },
  };
  const whole: WholeDatabase = {
    async archive(ids, to, replace = false) {
      await queue.settled();
      return await archive(location, ids, locationOf(to), replace);
    },
    merge: async (from) => await merge({ ...location, db, read: queue.read, write: queue.write }, locationOf(from)),
    integrity: async () => ({
      ...(await queue.read(() => rowSteps.engineCheck())),
      ...(await queue.read(() => rowSteps.integrity())),
      exposures: exposuresOf(location),
    }),
  };
  return { ...whole, databaseFile };
}
