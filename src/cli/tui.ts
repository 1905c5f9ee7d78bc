/** The terminal UI on this process's terminal, over one database: where it meets the store, the model and the host's files. */

import type { Lcm } from "../core/lcm.ts";
import { LcmError } from "../core/errors.ts";
import { createPaint } from "../show/render.ts";
import type { Port, Writer } from "../tui/port.ts";
import type { CommandContext, Engine, TuiRequest } from "./commands/session.ts";

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
  try {
    const look = { paint: createPaint(context.stdout.colour), zone: context.zone, typed };
    await runTui({ port, terminal: new ProcessTerminal(), clock: context.clock, look, signal });
  } finally {
    await port.close();
  }
}

/** Everything is read through a connection that cannot write; what changes something has one for as long as it takes. */
export function createPort({ context, database, readOnly, model, promptDir }: Ground): Port & {
  close(): Promise<void>;
} {
  let reader: { readonly identity: string | null; readonly lcm: Promise<Lcm> } | null = null;
  let backup: Promise<string> | null = null;
  const close = async (): Promise<void> => {
    const open = reader;
    reader = null;
    if (open !== null) await (await open.lcm.catch(() => null))?.close();
  };
  const whyNot = (): string | null => {
    if (readOnly) return "it was opened with --read-only";
    return database.stamp() === null || database.isWritable() ? null : "this file cannot be written to by you";
  };
  const summariser = async () => await context.summariser(model);
  return {
    path: database.path,
    readOnly: whyNot(),
    async reading() {
      const identity = database.identity();
      if (reader !== null && reader.identity !== identity) await close();
      const open = (reader ??= { identity, lcm: database.open("look") });
      try {
        return await open.lcm;
      } catch (error) {
        if (reader === open) reader = null;
        throw error;
      }
    },
    async writing(work) {
      const why = whyNot();
      if (why !== null) throw new LcmError("denied", `nothing can be changed: ${why}`);
      const { values: settings } = await context.settings();
      const { templates } = await context.prompts(promptDir);
      const writer = await summariser();
      const engine: Engine = { settings, templates, model: writer === null ? null : await writer.create(settings) };
      const lcm = await database.open("write", engine);
      const backUp = async (): Promise<string> =>
        await (backup ??= database.backup(undefined).then(({ path }) => path));
      try {
        return await work(lcm, backUp);
      } finally {
        await lcm.close();
      }
    },
    async summariser(): Promise<Writer | null> {
      const found = await summariser();
      return found === null ? null : { name: found.name, from: found.from, problem: await found.check() };
    },
    transcripts: async () => [],
    importTranscript: async () => "",
    stamp: () => database.stamp(),
    close,
  };
}
