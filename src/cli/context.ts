/** Connects the commands to this process: its streams, signals, settings and databases. */

import { constants } from "node:os";
import type { ResolvedSettings } from "../core/model/settings.ts";
import { packageVersion } from "../package.ts";
import type { CommandContext } from "./commands/_session.ts";
import { isBrokenPipe } from "./failure.ts";
import type { Timestamp } from "../core/base/time.ts";
import type { Output } from "../format/page.ts";

interface ContextOptions {
  /** The host's config, if a host runs the commands; otherwise it is read from disk when needed. */
  readonly config?: unknown;
  /** Called once, with the exit status. */
  readonly finish: (status: number) => void;
}

export function createContext({ config = null, finish }: ContextOptions): CommandContext {
  const { stdin, stdout, stderr, env } = process;
  const settings = async (): Promise<ResolvedSettings> => await (await opening()).readSettings(config);
  const output = (stream: NodeJS.WriteStream): Output => ({
    stream,
    isTerminal: stream.isTTY,
    columns: stream.isTTY ? stream.columns : wholeNumber(env["COLUMNS"]),
    colour: isColourful(stream),
  });
  return {
    stdin,
    stdout: output(stdout),
    stderr: output(stderr),
    isInteractive: stdin.isTTY && stderr.isTTY,
    zone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
    clock: { now: () => new Date().toISOString() as Timestamp },
    debug: isSet(env["LCM_DEBUG"]),
    settings,
    configFile: async () => await (await opening()).checkConfigFile(),
    variables: () => Object.keys(env),
    database: async (path) => await (await opening()).findDatabase(path, settings),
    summariser: async (flags) => (await opening()).findSummariser(await settings(), flags),
    prompts: async (dir) => (await opening()).readPrompts(await settings(), dir),
    interruptible,
    async serveMcp(service) {
      const { serveMcp } = await import("../mcp/server.ts");
      await interruptible(async (signal) => {
        await serveMcp({ ...service, version: packageVersion(), stdin, stdout, signal });
      }, endings);
    },
    async openTui(request) {
      const { openTui } = await import("./tui.ts");
      return await interruptible(async (signal) => {
        await openTui({ ...request, context: this, signal });
        return statusAfter(signal);
      }, endings);
    },
    async confirm(question) {
      const { confirm } = await import("@clack/prompts");
      const answer = await confirm({ message: question, initialValue: false, output: stderr });
      return answer === true;
    },
    finish,
    kill: (signal) => void process.kill(process.pid, signal),
  };
}

/** Loaded by the first command that needs a database, so that `--help` is fast. */
const opening = async () => await import("./open.ts");

/** Signals that end a program that runs without a person. */
const endings: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  signals: readonly NodeJS.Signals[] = ["SIGINT"],
): Promise<T> {
  const interruption = new AbortController();
  const interrupt = (name: NodeJS.Signals): void => interruption.abort(name);
  for (const signal of signals) process.once(signal, interrupt);
  try {
    return await work(interruption.signal);
  } finally {
    for (const signal of signals) process.off(signal, interrupt);
  }
}

/** The exit status that shells give a program ended by a signal. */
function statusAfter({ aborted, reason }: AbortSignal): number {
  const [name] = endings.filter((each) => aborted && each === reason);
  return name === undefined ? 0 : 128 + constants.signals[name];
}

const isSet = (variable: string | undefined): boolean => variable !== undefined && variable !== "" && variable !== "0";

const wholeNumber = (text: string | undefined): number | null =>
  text !== undefined && /^[1-9]\d{0,4}$/.test(text) ? Number(text) : null;

/** https://no-color.org, and its opposite. */
function isColourful(stream: NodeJS.WriteStream): boolean {
  const { env } = process;
  if ((env["NO_COLOR"] ?? "") !== "") return false;
  if (isSet(env["FORCE_COLOR"])) return true;
  return stream.isTTY && env["TERM"] !== "dumb";
}

/** If the reader of our output has closed the pipe, that is not a failure. */
export function survivePipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error) => {
      if (!isBrokenPipe(error)) throw error;
    });
  }
}
