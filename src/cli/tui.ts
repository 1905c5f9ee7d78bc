/** Runs the terminal UI in this process. */

import { createPaint } from "../format/paint.ts";
import type { CommandContext, TuiRequest } from "./commands/_session.ts";
import { createPort } from "./port.ts";

interface Opening extends TuiRequest {
  readonly context: CommandContext;
  readonly signal: AbortSignal;
}

export async function openTui(opening: Opening): Promise<void> {
  const { context, typed, signal } = opening;
  const { ProcessTerminal } = await import("@earendil-works/pi-tui");
  const { runTui } = await import("../tui/run.ts");
  const whyReadOnly = opening.readOnly ? "it was opened with --read-only" : null;
  const port = createPort({ ...opening, whyReadOnly });
  const look = { paint: createPaint(context.stdout.colour), zone: context.zone, typed };
  const running = { port, terminal: new ProcessTerminal(), clock: context.clock, look, ...suspending };
  try {
    await untilItBreaks(signal, async (ending) => await runTui({ ...running, signal: ending }));
  } finally {
    await port.close();
    await opening.database.close();
  }
}

/** Stops the whole process group, as the terminal would; Windows cannot continue a stopped process. */
const suspending = process.platform === "win32" ? {} : { suspend: () => void process.kill(0, "SIGTSTP") };

/** An uncaught exception ends the work and is thrown after it, once the terminal is restored. */
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
