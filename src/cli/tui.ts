/** The terminal UI on this process's terminal, over one database: where it meets the store, the model and the host's files. */

import { join, resolve } from "node:path";
import type { Lcm } from "../core/lcm.ts";
import { LcmError } from "../core/base/errors.ts";
import { changedSettings } from "../core/model/settings.ts";
import { createPaint } from "../format/paint.ts";
import type { Port, Writer } from "../tui/port.ts";
import type { CommandContext, Engine, TuiRequest } from "./commands/_session.ts";
import { createConnection } from "./connection.ts";
import { importedCounts, importTranscriptFile, sessionNameOf } from "./transcript-files.ts";
import { stateDirectory } from "./open.ts";
import { hostTranscripts } from "./session-files.ts";

interface Opening extends TuiRequest {
  readonly context: CommandContext;
  readonly signal: AbortSignal;
}

interface Ground extends Omit<TuiRequest, "typed"> {
  readonly context: Pick<CommandContext, "settings" | "prompts" | "summariser">;
}

export async function openTui(opening: Opening): Promise<void> {
  const { context, typed, signal } = opening;
  const { ProcessTerminal } = await import("@earendil-works/pi-tui");
  const { runTui } = await import("../tui/run.ts");
  const port = createPort(opening);
  const look = { paint: createPaint(context.stdout.colour), zone: context.zone, typed };
  const running = { port, terminal: new ProcessTerminal(), clock: context.clock, look, ...suspending };
  try {
    await untilItBreaks(signal, async (ending) => await runTui({ ...running, signal: ending }));
  } finally {
    await port.close();
  }
}

/** With all of its process group, as the terminal itself would. Where nobody could continue it, it is not stopped. */
const suspending = process.platform === "win32" ? {} : { suspend: () => void process.kill(0, "SIGTSTP") };

/**
 * What nobody caught ends the work in good order, and is thrown after it: the terminal is restored before anything is
 * told on it.
 */
async function untilItBreaks(signal: AbortSignal, work: (ending: AbortSignal) => Promise<void>): Promise<void> {
  const ending = new AbortController();
  const failures: unknown[] = [];
  const fail = (error: unknown): void => {
    failures.push(error);
    ending.abort();
  };
  process.on("uncaughtException", fail);
  try {
    await work(AbortSignal.any([signal, ending.signal]));
  } finally {
    process.off("uncaughtException", fail);
  }
  if (failures.length > 0) throw failures[0];
}

/** Everything is read through a connection that cannot write; the one that can is opened for the first change. */
export function createPort({ context, database, readOnly, sessions, model, promptDir }: Ground): Port & {
  close(): Promise<void>;
} {
  const folder = sessions === null ? join(stateDirectory(), "agents") : resolve(sessions);
  const summariser = async () => await context.summariser(model);
  const reader = createConnection(database, async () => await database.open("look"));
  const wants = async () => {
    const [{ values: settings }, { templates }, found] = [
      await context.settings(),
      await context.prompts(promptDir),
      await summariser(),
    ];
    return { settings, templates, found, basis: JSON.stringify([settings, templates, found?.name]) };
  };
  let basis = "";
  const writer = createConnection(database, async () => {
    const { settings, templates, found, basis: now } = await wants();
    basis = now;
    const engine: Engine = { settings, templates, model: found === null ? null : await found.create(settings) };
    return await database.open("change", engine);
  });
  const reading = async (): Promise<Lcm> => await reader.get();
  let backup: { readonly identity: string | null; readonly path: string } | null = null;
  const makeBackup = async () => {
    const identity = database.identity();
    const made = await database.backup(undefined);
    backup = { identity, path: made.path };
    return made;
  };
  const whyNot = (): string | null => {
    if (readOnly) return "it was opened with --read-only";
    return database.stamp() === null || database.isWritable() ? null : "this file cannot be written to by you";
  };
  const mayWrite = (): void => {
    const why = whyNot();
    if (why !== null) throw new LcmError("denied", `nothing can be changed: ${why}`);
  };
  return {
    path: database.path,
    readOnly: whyNot(),
    reading,
    renew() {
      reader.giveUp();
      writer.giveUp();
    },
    rest: () => void Promise.all([reader.rest(), writer.rest()]),
    async writing(work) {
      mayWrite();
      const backUp = async (): Promise<string> =>
        backup?.identity === database.identity() ? backup.path : (await makeBackup()).path;
      // What a plan was made with must be what it is carried out with.
      if ((await wants()).basis !== basis) writer.giveUp();
      return await work(await writer.get(), backUp);
    },
    async backUp() {
      mayWrite();
      return await makeBackup();
    },
    async summariser(): Promise<Writer | null> {
      const found = await summariser();
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
      const name = sessionNameOf(path);
      const target = { fallbackSessionId: name, ...(agentId === null ? {} : { agentId }) };
      const lcm = await database.open("import");
      try {
        const tell = (done: number): void => onProgress({ done, of: bytes, words: name });
        return importedCounts(await importTranscriptFile(lcm, { path, bytes, isFound: true }, target, tell));
      } finally {
        await lcm.close();
      }
    },
    surroundings: async () => ({
      settings: changedSettings(await context.settings()),
      prompts: await context.prompts(promptDir),
      backups: database.backups(),
    }),
    stamp: () => database.stamp(),
    async close() {
      await Promise.all([reader.close(), writer.close()]);
    },
  };
}
