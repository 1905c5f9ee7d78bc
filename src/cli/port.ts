/** Connects what people see and do to the database, the model and the host's files. */

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Lcm } from "../core/lcm.ts";
import { LcmError } from "../core/base/errors.ts";
import { changedSettings } from "../core/model/settings.ts";
import type { Backup } from "../format/status.ts";
import type { ConversationId } from "../core/model/types.ts";
import type { ExportTarget, Port, Surroundings, Writer } from "../operator/port.ts";
import { onDemand, type CommandContext, type Database, type Engine, type TuiRequest } from "./commands/_session.ts";
import { createConnection } from "./connection.ts";
import { importedCounts, importTranscriptFile, sessionNameOf } from "./transcript-files.ts";
import { checkTarget, countedLines, writeWhole, type Exported } from "./export-file.ts";
import { stateDirectory, typedPath } from "./open.ts";
import { hostTranscripts } from "./session-files.ts";

interface Ground extends Omit<TuiRequest, "typed" | "readOnly"> {
  /** Why nothing may be changed; null if it may, as far as the file permits. */
  readonly whyReadOnly: string | null;
  readonly context: Pick<CommandContext, "settings" | "prompts" | "summariser" | "zone" | "proxyReports">;
}

/** Reads go through a connection that cannot write; the one that can is opened for the first change. */
export function createPort(ground: Ground): Port & { close(): Promise<void> } {
  const { context, database, whyReadOnly, sessions, model, promptDir } = ground;
  const folder = sessions === null ? join(stateDirectory(), "agents") : resolve(sessions);
  const { reading, writing, ...connections } = createConnections(ground);
  const backups = createBackups(database);
  const whyNot = (): string | null => {
    if (whyReadOnly !== null) return whyReadOnly;
    return database.stamp() === null || database.isWritable() ? null : "you have no write permission for this file";
  };
  const mayWrite = (): void => {
    const why = whyNot();
    if (why !== null) throw new LcmError("denied", `nothing can be changed: ${why}`);
  };
  return {
    path: database.path,
    readOnly: whyNot(),
    reading,
    ...connections,
    async writing(work) {
      mayWrite();
      return await work(await writing(), backups.latest);
    },
    async backUp() {
      mayWrite();
      return await backups.make();
    },
    async summariser(): Promise<Writer | null> {
      const found = await context.summariser(model);
      if (found === null) return null;
      const { name, from, keyVariables } = found;
      return { name, from, keyVariables, problem: await found.check() };
    },
    prompts: async () => await context.prompts(promptDir),
    sessions: folder,
    async transcripts() {
      const lcm = await reading().catch((error: unknown) => {
        if (error instanceof LcmError && error.code === "not_found") return null;
        throw error;
      });
      return await hostTranscripts({ folder, isNamed: sessions !== null }, lcm);
    },
    async importTranscript({ path, bytes, agentId }, onProgress) {
      mayWrite();
      const name = sessionNameOf({ path });
      const target = { fallbackSessionId: name, ...(agentId === null ? {} : { agentId }) };
      const onBytes = (done: number): void => onProgress({ done, of: bytes, words: name });
      return await onDemand(
        async () => await database.open("import"),
        async (open) =>
          importedCounts(
            await importTranscriptFile({ path, bytes, isFound: true }, { open, target, onProgress: onBytes }),
          ),
      );
    },
    ...createFiles(ground, reading),
    async restore(plan) {
      mayWrite();
      connections.renew();
      return await database.restore(plan);
    },
    zone: context.zone,
    surroundings: async () => await readSurroundings(ground),
    stamp: () => database.stamp(),
  };
}

async function readSurroundings({ context, database, promptDir }: Ground): Promise<Surroundings> {
  const settings = await context.settings();
  return {
    settings: changedSettings(settings),
    misplaced: settings.misplaced,
    prompts: await context.prompts(promptDir),
    backups: database.backups(),
    proxies: await context.proxyReports(database.place.nearby),
  };
}

/** Exports, archives and backups: files beside the database or elsewhere. */
function createFiles({ database }: Ground, reading: () => Promise<Lcm>) {
  return {
    exportTarget(conversation: ConversationId, given: string | null): ExportTarget {
      const path = typedPath(given ?? `conversation-${conversation}.jsonl`);
      checkTarget(path, true);
      return { path, exists: existsSync(path) };
    },
    async exportTranscript(
      conversation: ConversationId,
      path: string,
      onLines: (lines: number) => void,
      signal: AbortSignal,
    ) {
      const counter: Exported = { lines: 0, incomplete: [] };
      const counting = async function* (lcm: Lcm): AsyncGenerator<string> {
        for await (const text of countedLines(lcm, conversation, counter)) {
          onLines(counter.lines);
          yield text;
        }
      };
      await writeWhole(counting(await reading()), path, signal);
      return { lines: counter.lines, incomplete: counter.incomplete.length };
    },
    archivePath: () => database.archivePath(),
    restorable: async () => await database.restorable(),
    planRestore: async (from: string) => await database.planRestore(from),
  };
}

/** The writer is reopened when settings, prompts or model have changed: plans must be carried out with what made them. */
function createConnections({ context, database, model, promptDir }: Ground) {
  const reader = createConnection(database, async () => await database.open("look"));
  const readBasis = async () => {
    const { values: settings } = await context.settings();
    const { templates } = await context.prompts(promptDir);
    const summariser = await context.summariser(model);
    return { settings, templates, summariser, text: JSON.stringify([settings, templates, summariser?.name]) };
  };
  let basis = "";
  const writer = createConnection(database, async () => {
    const { settings, templates, summariser, text } = await readBasis();
    basis = text;
    const engine: Engine = {
      settings,
      templates,
      model: summariser === null ? null : await summariser.create(settings),
    };
    return await database.open("change", engine);
  });
  return {
    reading: async (): Promise<Lcm> => await reader.get(),
    writing: async (): Promise<Lcm> => {
      if ((await readBasis()).text !== basis) writer.giveUp();
      return await writer.get();
    },
    renew() {
      reader.giveUp();
      writer.giveUp();
    },
    rest: () => void Promise.all([reader.rest(), writer.rest()]),
    async close() {
      await Promise.all([reader.close(), writer.close()]);
    },
  };
}

/** One backup serves all changes made to a file. */
function createBackups(database: Database) {
  if (database.place.kind === "server")
    return { make: async () => await database.backup(undefined), latest: async () => null };
  let made: { readonly identity: string | null; readonly path: string } | null = null;
  let making: Promise<Backup> | null = null;
  const copy = async (): Promise<Backup> => {
    const identity = database.identity();
    const backup = await database.backup(undefined);
    made = { identity, path: backup.path };
    return backup;
  };
  /** One that is still being made, for a change that was cancelled, serves the next one too. */
  const make = async (): Promise<Backup> => {
    making ??= copy().finally(() => (making = null));
    return await making;
  };
  const latest = async (): Promise<string> =>
    made?.identity === database.identity() ? made.path : (await make()).path;
  return { make, latest };
}
