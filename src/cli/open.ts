/**
 * Opens what commands need: settings, database, prompts and model. Only here does the command line use the environment,
 * the store and src/models; the latter is loaded on demand.
 */

import { accessSync, constants, existsSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { errorText, LcmError } from "../core/base/errors.ts";
import { createLcm } from "../core/lcm.ts";
import type { Move } from "../core/model/database-file.ts";
import type { DatabasePlace } from "../core/base/database-place.ts";
import type { Clock, Embedder, Model, Store } from "../core/model/store.ts";
import { durabilityOf, envOf, resolveSettings, type ResolvedSettings, type Settings } from "../core/model/settings.ts";
import {
  databasePlaceIn,
  fromHome,
  misplacedSettingsIn,
  openclawConfigPath,
  placeOf,
  pluginConfigIn,
  readOpenclawConfig,
  stateDirectoryIn,
} from "../models/openclaw-files.ts";
import { openMove } from "../store/open-move.ts";
export { openOpenCode } from "../store/foreign/opencode.ts";
import { filesLackingIn } from "../store/sqlite/backups/contents.ts";
import { backupPath, copiesBeside, isLost, pruneBackups, unusedPath } from "../store/sqlite/backups/copies.ts";
import { filesDirOf, type DatabaseLocation } from "../store/sqlite/location.ts";
import { openSqliteBriefly, openSqliteWorker, runApart } from "../store/sqlite/worker.ts";
import { openSqlite, systemNow } from "../store/sqlite/store.ts";
import type {
  ConfigFile,
  Database,
  DatabaseFacts,
  ModelOptions,
  PromptFiles,
  Purpose,
  RestorePlan,
  Summariser,
} from "./commands/_session.ts";
import { unseenLogBytes } from "../store/sqlite/read-only.ts";
import { boundMemory } from "./bound-memory.ts";
import { createServerDatabase } from "./server-database.ts";
import { retryWhileBusy } from "../store/sqlite/errors.ts";
import { identify } from "../store/sqlite/file-kind.ts";
import { checkMerge } from "../store/sqlite/merge.ts";
import type { ThreadOptions } from "../store/sqlite/thread.ts";

const clock: Clock = { now: systemNow };

/** `given` is the host's config if a host runs us; otherwise it is read from disk as the host would. */
export async function readSettings(given: unknown): Promise<ResolvedSettings> {
  // A broken config must not block commands; `lcm settings` and finding a model report it.
  const config = given ?? (await readOpenclawConfig(stateDirectory(), process.env).catch(() => null));
  const own = Object.entries(pluginConfigIn(config));
  const filled = given === null ? own.map(([key, value]) => [key, filledIn(value)] as const) : own;
  const misplaced = misplacedSettingsIn(config);
  return resolveSettings({ env: process.env, config: Object.fromEntries(filled), misplaced });
}

/** The file that the host reads, and why it cannot be read. */
export async function checkConfigFile(): Promise<ConfigFile> {
  const path = openclawConfigPath(stateDirectory(), process.env);
  if (!existsSync(path)) return { path, exists: false, problem: null };
  try {
    await readOpenclawConfig(stateDirectory(), process.env);
    return { path, exists: true, problem: null };
  } catch (error) {
    return { path, exists: true, problem: errorText(error) };
  }
}

/** Expands `${NAME}` as the host does; `$${NAME}` is an escape. */
const filledIn = (value: unknown): unknown =>
  typeof value !== "string"
    ? value
    : value.replace(/\$(\$?)\{([A-Z_][A-Z0-9_]*)\}/g, (found: string, escape: string, name: string) =>
        escape === "" ? process.env[name] || found : found.slice(1),
      );

/** `--db`, then the settings, then `lcm.db` in the state directory. Does not open it. */
export async function findDatabase(
  given: string | undefined,
  settings: () => Promise<ResolvedSettings>,
): Promise<Database> {
  if (given?.trim() === "") {
    throw new LcmError("invalid", "--db needs a file name or a URL", {
      hint: "pass a path or postgres://…, or remove --db to use your own database",
    });
  }
  return databaseAt(
    given === undefined ? databasePlaceIn(process.env, await settings()) : placeOf(given, process.env),
    settings,
  );
}

export function databaseAt(place: DatabasePlace, settings: () => Promise<ResolvedSettings>): Database {
  if (place.kind === "file") return createDatabase(place.path, settings);
  return createServerDatabase(place, { clock, settings, findEmbedder, stoppable, env: process.env });
}

export async function findMove(
  from: DatabasePlace,
  to: DatabasePlace,
  isDryRun: boolean,
  { values: settings }: ResolvedSettings,
): Promise<Move> {
  return await openMove({ from, to, isDryRun, settings, env: process.env });
}

/** A path as a person types it. */
export const typedPath = (given: string): string => resolve(fromHome(given));

export const stateDirectory = (): string => stateDirectoryIn(process.env);

/** How long to wait for a locked database. The terminal UI retries, so it waits less. */
const lockTimeoutMs = 60_000;
const lookTimeoutMs = 500;

/** File ids exceed the range of numbers on some systems. */
const exactly = { throwIfNoEntry: false, bigint: true } as const;

export function createDatabase(
  path: string,
  settings: () => Promise<ResolvedSettings> = async () => await readSettings(null),
): Database {
  const filesDir = filesDirOf(path);
  const missing = (): LcmError =>
    new LcmError("not_found", `there is no database at ${path}`, {
      hint:
        hintOfBackups(path) ??
        "the first answer of an agent that `lcm setup` has connected creates it, and so does `lcm import --discover` or `lcm import FILE…`; " +
          "try one with `lcm demo --keep`, or name another with --db or LCM_DATABASE_PATH",
    });
  const kind = (): ReturnType<Database["kind"]> => kindOf(path);
  return {
    path,
    place: { kind: "file", path, shown: path, nearby: path },
    close: async () => undefined,
    kind,
    identity() {
      const found = statSync(path, exactly);
      return found === undefined ? null : `${found.dev}:${found.ino}`;
    },
    stamp() {
      const [file, log] = [path, `${path}-wal`].map((each) => statSync(each, exactly));
      return file === undefined ? null : [file.dev, file.ino, file.mtimeNs, log?.mtimeNs, log?.size].join(":");
    },
    isWritable: () => isWritable(path),
    unseenLogBytes: () => unseenLogBytes(path),
    async open(purpose, { settings: given, until, ...engine } = {}) {
      const creates = purpose === "import" || purpose === "merge";
      const writes = purpose === "write" || purpose === "change" || creates;
      const busyTimeoutMs = purpose === "look" ? lookTimeoutMs : lockTimeoutMs;
      const found = await retryWhileBusy(busyTimeoutMs, kind);
      if (!creates && found === "none") throw missing();
      const values = given ?? (await settings()).values;
      if (purpose === "import") boundMemory();
      const readOnly = purpose === "look" || (!writes && !isWritable(path));
      if (purpose === "look" && isWritable(path) && identify(path) === "outdated") await upgrade({ path, filesDir });
      // An import that is run again brings the same rows.
      const durability = durabilityOf(values, creates ? "normal" : "full");
      const options = { path, filesDir, readOnly, durability, housekeeping: !creates, busyTimeoutMs };
      const store = stoppable(await openers[purpose](options), until);
      // A person at a terminal may just have fixed the key.
      const embedder = await findEmbedder(values);
      return createLcm({ clock, store, settings: values, embedder, breaker: "ignored", ...engine });
    },
    async adopt() {
      if (kind() === "none") throw missing();
      return await runApart("adopt", path, clock.now());
    },
    async checkMerge(from) {
      checkMerge(path, from);
      await factsOf(from);
    },
    async backup(to) {
      if (kind() === "none") throw missing();
      const place = to === undefined ? unusedPath(backupPath(path, clock.now())) : resolve(to);
      const made = await runApart("backUp", { path, filesDir }, place);
      return { ...made, pruned: to === undefined ? await pruneBackups(path, made.path) : [] };
    },
    archivePath: () => unusedPath(join(dirname(path), `lcm-archive-${clock.now().slice(0, "2026-02-17".length)}.db`)),
    backups: () => copiesBeside(path),
    restorable: async () =>
      await Promise.all(copiesBeside(path).map(async (copy) => ({ ...copy, ...(await outlineOf(copy.path)) }))),
    planRestore: async (from) => await planRestore(from, path),
    restore: async (plan, isPartialAllowed = false) =>
      await runApart("restore", plan.from.path, { path: plan.to, filesDir }, { now: clock.now(), isPartialAllowed }),
  };
}

function kindOf(path: string): ReturnType<Database["kind"]> {
  const found = identifyOrHint(path);
  return found === "older_program" ? found : existsSync(path) && found !== "empty" ? "ours" : "none";
}

/** A read-only connection cannot do it. */
async function upgrade(location: DatabaseLocation): Promise<void> {
  const upgraded = await openSqliteWorker({ ...location, housekeeping: false });
  while ((await upgraded.index(1_000)) > 0);
  await upgraded.close();
}

/** A thread costs more to start than most commands need for their work. */
const openers = {
  look: openSqliteWorker,
  read: openSqlite,
  search: openSqliteBriefly,
  apart: openSqliteWorker,
  write: openSqlite,
  change: openSqliteWorker,
  import: openSqlite,
  merge: openSqliteWorker,
} as const satisfies Readonly<Record<Purpose, (options: ThreadOptions) => Promise<Store>>>;

/** Ends work after the call under way: each call after it fails. */
function stoppable(store: Store, until: AbortSignal | undefined): Store {
  if (until === undefined) return store;
  const guard = <T extends object>(methods: T): T =>
    Object.fromEntries(
      Object.entries(methods).map(([name, method]: [string, (...args: readonly unknown[]) => unknown]) => [
        name,
        async (...args: readonly unknown[]) => {
          if (until.aborted) throw new LcmError("unavailable", "stopped", { cause: until.reason });
          return await method(...args);
        },
      ]),
    ) as T;
  const { databaseFile, ...methods } = store;
  const close = async (): Promise<void> => await store.close();
  return { ...guard(methods), close, ...(databaseFile && { databaseFile: guard(databaseFile) }) };
}

/** Loads no model yet: only a search or an indexing needs it. */
async function findEmbedder(settings: Settings): Promise<Embedder | null> {
  if (settings.embedder === null) return null;
  const { chooseEmbedder } = await import("../models/choose-embedder.ts");
  return await chooseEmbedder(settings, { stateDir: stateDirectory(), env: process.env, cwd: process.cwd() });
}

/** The flags, then the settings, then OpenClaw's config. */
export async function findSummariser(
  { values: settings, sources }: ResolvedSettings,
  flags: ModelOptions = {},
): Promise<Summariser | null> {
  const [{ chooseModel }, { variablesOf }] = await Promise.all([
    import("../models/choose-model.ts"),
    import("../models/credentials.ts"),
  ]);
  const stateDir = stateDirectory();
  const openclawConfig = await readOpenclawConfig(stateDir, process.env);
  const choice = chooseModel({ settings, openclawConfig, flags });
  if (choice === null) return null;
  const key = settings.summaryModel !== null ? "summaryModel" : "summaryProvider";
  const setBy = { environment: envOf(key), "plugin config": "plugin config", default: "OpenClaw's config" };
  return {
    name: `${choice.provider}/${choice.model}`,
    from: flags.model !== undefined ? "--model" : setBy[sources[key]],
    keyVariables: variablesOf(choice.provider),
    async check() {
      const { checkModel } = await import("../models/provider-model.ts");
      return await checkModel(choice, { stateDir, env: process.env });
    },
    async create({ summaryTimeoutSeconds }) {
      const { createModel } = await import("../models/provider-model.ts");
      return await createModel(choice, { stateDir, env: process.env, timeoutMs: summaryTimeoutSeconds * 1_000 });
    },
  };
}

/** A model with a key of its own, by the format that its provider speaks. */
export async function keyedModel(
  { api, provider, model, baseUrl, key }: KeyedModel,
  { summaryTimeoutSeconds }: Pick<Settings, "summaryTimeoutSeconds">,
): Promise<Model> {
  const apis = { anthropic: "anthropic-messages", chat: "openai-completions", responses: "openai-responses" } as const;
  const { createKeyedModel } = await import("../models/provider-model.ts");
  const endpoint = { api: apis[api], baseUrl, needsKey: true };
  return createKeyedModel({ provider, model, baseUrl }, endpoint, key, { timeoutMs: summaryTimeoutSeconds * 1_000 });
}

interface KeyedModel {
  readonly api: "anthropic" | "chat" | "responses";
  readonly provider: string;
  readonly model: string;
  readonly baseUrl: string;
  readonly key: string;
}

export async function readPrompts({ values }: ResolvedSettings, named?: string): Promise<PromptFiles> {
  const { loadTemplates } = await import("../models/prompt-files.ts");
  const dir = resolve(fromHome(named ?? values.promptDir ?? join(stateDirectory(), "lcm-prompts")));
  if (named !== undefined && !existsSync(dir)) {
    throw new LcmError("not_found", `there is no folder ${dir}`, {
      hint: "create one with `lcm prompts --export FOLDER`",
    });
  }
  return { dir, ...(await loadTemplates(dir)) };
}

function isWritable(path: string): boolean {
  try {
    for (const needed of [path, dirname(path)]) accessSync(needed, constants.W_OK); // The log is beside the file.
    return true;
  } catch {
    return false; // For any reason, open it read-only.
  }
}

/** Adds a hint on backups if the database cannot be used. */
function identifyOrHint(path: string): ReturnType<typeof identify> {
  try {
    return identify(path);
  } catch (error) {
    const hint = error instanceof LcmError && (error.code === "corrupt" || isLost(path)) ? hintOfBackups(path) : null;
    if (!(error instanceof LcmError) || hint === null) throw error;
    throw new LcmError(error.code, error.message, { cause: error, hint });
  }
}

function hintOfBackups(path: string): string | null {
  const copies = copiesBeside(path);
  if (copies.length === 0) return null;
  const newest = copies.findLast(({ kind }) => kind === "backup");
  const name = newest === undefined ? "" : `; the newest backup is ${basename(newest.path)}`;
  return `list backups with \`lcm restore\`${name}`;
}

/** A quick guess; restoring reads every page and file first. */
async function outlineOf(path: string): Promise<Omit<DatabaseFacts, "path" | "bytes">> {
  const outline = { contents: null, missingFiles: 0 };
  try {
    const kind = identify(path);
    if (kind === "empty") return { ...outline, format: "no_database" };
    return { ...outline, format: kind, missingFiles: await filesLackingIn(path) };
  } catch (error) {
    if (!(error instanceof LcmError)) throw error;
    const format = error.code === "conflict" ? "newer" : error.code === "corrupt" ? "damaged" : "no_database";
    return { ...outline, format };
  }
}

async function planRestore(from: string, path: string): Promise<RestorePlan> {
  const source = backupNamed(from, path);
  if (source === null)
    throw new LcmError("not_found", `there is no backup ${resolve(from)}`, { hint: "list backups with `lcm restore`" });
  if (source === path)
    throw new LcmError("invalid", `${source} is the database itself`, { hint: "name a backup of it" });
  const replaces = existsSync(path) && statSync(path).size > 0 ? await factsOfDamaged(path) : null;
  return { from: await factsOf(source), replaces, to: path };
}

/** A bare name is a file in this folder, else one next to the database, as `lcm restore` lists them. */
function backupNamed(name: string, database: string): string | null {
  const places = basename(name) === name ? [resolve(name), join(dirname(database), name)] : [resolve(name)];
  return places.find((place) => existsSync(place)) ?? null;
}

async function factsOf(path: string): Promise<DatabaseFacts> {
  const kind = identify(path);
  if (kind === "empty") throw new LcmError("invalid", `${path} is empty`, { hint: "choose another backup" });
  const facts = { path, bytes: statSync(path).size, missingFiles: await filesLackingIn(path) };
  if (kind !== "current") return { ...facts, format: kind, contents: null };
  const lcm = createLcm({ clock, store: await openSqlite({ path, readOnly: true }) });
  try {
    const { conversations, messages, summaries } = await lcm.store.status();
    return { ...facts, format: kind, contents: { conversations, messages, summaries } };
  } finally {
    await lcm.close();
  }
}

/** The database to be replaced may be damaged or of a newer version. */
async function factsOfDamaged(path: string): Promise<DatabaseFacts> {
  try {
    return await factsOf(path);
  } catch (error) {
    if (!(error instanceof LcmError)) throw error;
    const isReplaceable = error.code === "corrupt" || error.code === "conflict" || isLost(path);
    if (!isReplaceable) throw error;
    return { path, bytes: statSync(path).size, ...(await outlineOf(path)) };
  }
}
