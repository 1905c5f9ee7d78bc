/** The store in a PostgreSQL schema, which many machines may share: runs scripts, keeps house and stores content. */

import { randomBytes } from "node:crypto";
import type { Timestamp } from "../../core/base/time.ts";
import type { RemovePlan, SearchLimits, SearchRequest, SearchResult, Store } from "../../core/model/store.ts";
import type { ContentStore } from "../../core/model/content-store.ts";
import { readAddress, type Address } from "../../core/base/database-place.ts";
import { openFolder } from "../content/folder.ts";
import type { StoredContent } from "../content/staged.ts";
import { openTable } from "../content/table.ts";
import { mustHave } from "../conversation/reads.ts";
import { offer, reads, rowSteps, writes } from "../operations.ts";
import { noLeftovers, sql, type ScriptDeps } from "../script.ts";
import { searchTimeoutMsDefault, throwIfCancelled } from "../search/limits.ts";
import { filesToSearch, searchFiles } from "../search/search-files.ts";
import type { SearchIndex } from "../search/indexing.ts";
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
import { createForgetting } from "../forgetting.ts";
import type { ArchiveFiles } from "../transfer/archives.ts";
import { createHousekeeper } from "./housekeeping.ts";
import { lockOf } from "./locks.ts";
import { migrate } from "./migrate.ts";
import { openPool } from "./pool.ts";
import { createRunner, type Runner } from "./runner.ts";
import { schemaVersion } from "./schema.ts";
import { createSearchIndex, rememberEverything } from "./search-index.ts";
import { createWholeDatabase } from "./whole-database.ts";

export interface PostgresOptions {
  /** `postgres://user@host:5432/database?schema=lcm`. */
  readonly url: string;
  /** A folder for content above 1 MiB, which all machines share. Without it, all content is in the database. */
  readonly filesDir?: string;
  /** The same in another place than a folder. */
  readonly larger?: ContentStore;
  /** Up to which size content is in the database if there is another place; 1 MiB by default. */
  readonly tableBytesMax?: number;
  /** For archives and merging. */
  readonly archives?: ArchiveFiles;
  readonly connectionsMax?: number;
  readonly lockTimeoutMs?: number;
  /** Indexing between calls; on by default. */
  readonly housekeeping?: boolean;
  /** Throws `not_found` if there is no schema, instead of creating it. */
  readonly mustExist?: boolean;
  readonly now?: () => Timestamp;
  readonly hex16?: () => string;
}

const systemNow = (): Timestamp => new Date().toISOString() as Timestamp;

/** The parts of an open database, for work that is not a method of the store. */
export interface Server {
  readonly address: Address;
  readonly runner: Runner;
  readonly content: StoredContent;
  readonly close: () => Promise<void>;
}

/** Creates the schema if there is none. */
export async function connectServer(options: Omit<PostgresOptions, "archives" | "housekeeping">): Promise<Server> {
  const { filesDir, connectionsMax = 4, lockTimeoutMs = 60_000, mustExist = false } = options;
  const address = readAddress(options.url);
  const pool = await openPool(address, connectionsMax);
  try {
    await migrate(pool, address, { mustExist });
  } catch (error) {
    await pool.end();
    throw error;
  }
  const runner = createRunner({ pool, schema: address.schema, lockTimeoutMs });
  const content = openTable({
    read: runner.read,
    write: async (script) => await runner.write("contents", script),
    nowMs: Date.now,
    ...(options.tableBytesMax === undefined ? {} : { bytesMax: options.tableBytesMax }),
    larger: options.larger ?? (filesDir === undefined ? null : openFolder(filesDir)),
  });
  return { address, runner, content, close: async () => await pool.end() };
}

/** Creates the schema if there is none, unless it must exist. */
export async function openPostgres(options: PostgresOptions): Promise<Store> {
  const { now = systemNow, hex16 = () => randomBytes(8).toString("hex"), archives = null } = options;
  const server = await connectServer(options);
  const { address, runner, content } = server;
  const index = createSearchIndex(address.schema);
  const housekeeper = createHousekeeper(runner, index, now);
  if (options.housekeeping === false) housekeeper.stop();
  const deps: ScriptDeps = { now, hex16, leftovers: noLeftovers };
  const { read } = runner;
  const everything = rememberEverything(() => performance.now());
  const write: typeof runner.write = async (lock, script) => {
    const written = await runner.write(lock, script);
    housekeeper.wake();
    return written;
  };
  const files: StoredFiles = {
    content,
    deps,
    read,
    write: async (script) => await write(null, script),
  };
  return {
    ...offer(reads, [], read),
    ...offer(writes, [deps], async (script, name, args) => await write(lockOf[name](args as never), script)),
    ...createForgetting({ ...files, isReadOnly: false, erase: async () => {} }),
    async setPromptBudget(id, tokens) {
      // Every turn sets it, mostly to the same value: only a change has to wait for other writers.
      if ((await read(() => mustHave(id))).promptBudget === tokens) return;
      await write(id, () => writes.setPromptBudget(deps, id, tokens));
    },
    async index(rowsMax) {
      await runner.settled();
      return await housekeeper.index(rowsMax);
    },
    search: async (request, limits = {}) =>
      await searchStore(files, () => createSearchIndex(address.schema, everything), request, limits),
    fileContent: async (id) => await fileContent(files, id),
    fileLines: async (id, range) => await fileLines(files, id, range),
    filePath: async (id) => await filePath(files, id),
    saveFile: async (file) =>
      await saveFile({ ...files, write: async (script) => await write(file.conversation, script) }, file),
    status: async () => ({
      path: address.shown,
      ...(await read(() => rowSteps.status(schemaVersion, tableBytes))),
    }),
    skeleton: async (id) => ({ ...(await read(() => rowSteps.skeleton(id))), ...(await inspectContent(files, id)) }),
    remove: async (plan) => await remove(files, plan),
    ...createWholeDatabase({ runner, schema: address.schema, content, archives }),
    async close() {
      await runner.settled();
      await housekeeper.finish();
      await server.close();
    },
  };
}

/** Of the tables that grow. The sizes of a whole database take long where it has thousands of tables. */
const tableBytes = sql`SELECT sum(pg_total_relation_size(coalesce(part.relid, name::regclass)))
  FROM unnest(ARRAY['messages', 'message_parts', 'summaries', 'context_items', 'search_blocks']) AS name
    LEFT JOIN LATERAL pg_partition_tree(name::regclass) AS part ON true`;

async function searchStore(
  files: StoredFiles,
  createIndex: () => SearchIndex,
  request: SearchRequest,
  limits: SearchLimits,
): Promise<SearchResult> {
  throwIfCancelled(limits.signal);
  const nowMs = (): number => performance.now();
  const deadline = { deadlineMs: nowMs() + (limits.timeoutMs ?? searchTimeoutMsDefault), nowMs };
  if (request.scope !== "files") return await files.read(() => search(createIndex(), request, deadline));
  const candidates = await files.read(() => filesToSearch(request));
  return await searchFiles(request, deadline, candidates, (file) => files.content.read(file));
}

/** The server reuses the space of deleted rows and gives none of it back at once. */
async function remove(files: StoredFiles, plan: RemovePlan): ReturnType<Store["remove"]> {
  const outcome = await files.write(() => rowSteps.remove(files.deps, plan));
  if (outcome.kind === "stale") return outcome;
  await removeContents(files, outcome.contents, null);
  return { kind: "written", change: outcome.change, bytes: 0, reusable: 0 };
}
