/** Connects the commands to this process: its streams, signals, settings and databases. */

import { constants, homedir } from "node:os";
import type { ResolvedSettings } from "../core/model/settings.ts";
import { sessionPlaces } from "../hosts/shared/session-places.ts";
import { packageFolder, packageVersion } from "../package.ts";
import type { ProxyVerbs } from "./commands/_proxying.ts";
import type { CommandContext } from "./commands/_session.ts";
import { isBrokenPipe } from "./failure.ts";
import { configVariables } from "./setup/agents.ts";
import { splitPath } from "./setup/find-agents.ts";
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
    isTerminal: isTerminal(stream),
    columns: isTerminal(stream) ? stream.columns : wholeNumber(env["COLUMNS"]),
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
    agents: () => sessionPlaces(env, homedir()),
    openCode: async (path) => (await opening()).openOpenCode(path),
    database: async (path) => await (await opening()).findDatabase(path, settings),
    openMove: async (from, to, isDryRun) => (await opening()).findMove(from, to, isDryRun, await settings()),
    summariser: async (flags) => (await opening()).findSummariser(await settings(), flags),
    prompts: async (dir) => (await opening()).readPrompts(await settings(), dir),
    interruptible,
    machine: () => ({
      home: homedir(),
      path: splitPath(env["PATH"]),
      variables: Object.fromEntries(configVariables.flatMap((name) => (env[name] ? [[name, env[name]]] : []))),
      folder: packageFolder(),
      version: packageVersion(),
    }),
    surroundings: () => ({
      folder: env["CLAUDE_PROJECT_DIR"] ?? process.cwd(),
      home: homedir(),
      claudeSession: env["CLAUDE_CODE_SESSION_ID"] ?? null,
      pluginData: env["CLAUDE_PLUGIN_DATA"] ?? null,
      parentPid: process.ppid,
    }),
    async serveMcp(service) {
      const { serveMcp } = await import("../mcp/server.ts");
      await interruptible(async (signal) => {
        await serveMcp({ ...service, version: packageVersion(), stdin, stdout, signal });
      }, endings);
    },
    async serveHost(service) {
      const { serveHost } = await import("./serve.ts");
      await interruptible(async (signal) => {
        await serveHost({ ...service, context: this, version: packageVersion(), stdin, stdout, signal });
      }, endings);
    },
    ...servingVerbs,
    async openTui(request) {
      const { openTui } = await import("./tui.ts");
      return await interruptible(async (signal) => {
        await openTui({ ...request, context: this, signal });
        return statusAfter(signal);
      }, endings);
    },
    async confirm(question, isLikely = false) {
      const { confirm } = await import("@clack/prompts");
      const answer = await confirm({ message: question, initialValue: isLikely, output: stderr });
      return answer === true;
    },
    finish,
    kill: (signal) => void process.kill(process.pid, signal),
  };
}

const servingVerbs: ProxyVerbs & Pick<CommandContext, "serveWeb"> & ThisType<CommandContext> = {
  async serveWeb(request) {
    const { serveWeb } = await import("./web.ts");
    await interruptible(async (signal) => await serveWeb({ ...request, context: this, signal }), endings);
  },

  async serveProxy(request) {
    const { serveProxy } = await import("./proxy.ts");
    await interruptible(async (signal) => await serveProxy({ ...request, context: this, signal }), endings);
  },
  proxyReports: async (path) => (await import("./proxy-reports.ts")).readReports(path),
  async runAgent(request) {
    const { runAgent } = await import("./proxy.ts");
    return await runAgent({ ...request, context: this });
  },
};

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
  return isTerminal(stream) && env["TERM"] !== "dumb";
}

/** A pipe or a file has no `isTTY`; undefined would leave the colours to decide by `CI` and platform. */
const isTerminal = (stream: NodeJS.WriteStream): boolean => "isTTY" in stream && stream.isTTY;

/** If the reader of our output has closed the pipe, that is not a failure. */
export function survivePipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error) => {
      if (!isBrokenPipe(error)) throw error;
    });
  }
}
