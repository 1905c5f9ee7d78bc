/**
 * The command line as a program: what the terminal is like, what the environment says about it, and how everything that
 * can happen becomes an exit status. The commands themselves are in commands/.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Command, CommanderError } from "commander";
import { addCommands } from "./commands/index.ts";
import type { CommandContext, Output } from "./commands/session.ts";
import type { Timestamp } from "../core/model.ts";
import { exitInvalid, isBrokenPipe, reportFailure } from "./failure.ts";
import { breakText, createPaint } from "./render.ts";

/** Runs one command. Answers the exit status; throws nothing. */
export async function main(argv: readonly string[]): Promise<number> {
  silenceExperiments();
  let status = 0;
  const context = createContext((ended) => (status = ended));
  survivePipes();
  const json = argv.includes("--json");
  const program = createProgram(context, json);
  try {
    await program.parseAsync(argv.length === 0 ? ["--help"] : withoutVainHelp(program, argv), { from: "user" });
    return status;
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportFailure(context, json, error);
    if (error.exitCode === 0) return 0;
    // To people, commander has said it already.
    const message = error.message.replace(/^error: /, "");
    if (json) context.stdout.stream.write(`${JSON.stringify({ error: { code: "invalid", message } }, null, 2)}\n`);
    return exitInvalid;
  }
}

function createProgram(context: CommandContext, json: boolean): Command {
  const { stdout, stderr } = context;
  const program = new Command("lcm")
    .description("Lossless context management: every message stored once, always one step from being recalled.")
    .version(version(), "-V, --version", "show the version")
    .helpOption("-h, --help", "show help; after a command, help for it with examples")
    .showHelpAfterError("hint: add --help to see what is possible")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => void stdout.stream.write(text),
      writeErr: (text) => void (json || stderr.stream.write(text)),
      getOutHelpWidth: () => Math.min(stdout.columns ?? 100, 100),
      getErrHelpWidth: () => Math.min(stderr.columns ?? 100, 100),
      getOutHasColors: () => stdout.colour,
      getErrHasColors: () => stderr.colour,
      outputError: (text, write) =>
        write(breakText(text.trimEnd().replace(/^error:/, createPaint(stderr.colour).bad("error:")), stderr.columns)),
    });
  addCommands(program, context);
  return program.commandsGroup("Help:").helpCommand("help [command]", "show help for a command");
}

/** Help for a command that there is not would be that of the whole program, as if all were well. */
function withoutVainHelp(program: Command, argv: readonly string[]): string[] {
  const { operands } = program.parseOptions([...argv]);
  const [first, second] = operands;
  const name = first === "help" ? second : first;
  const isThere = name === undefined || name === "help" || program.commands.some((each) => each.name() === name);
  return isThere ? [...argv] : [name, ...argv.filter((word) => word === "--json")];
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "unknown";
}

function createContext(finish: (status: number) => void): CommandContext {
  const { stdin, stdout, stderr, env } = process;
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
    settings: async () => (await opening()).readSettings(),
    async database(path) {
      const { createDatabase, databasePath } = await opening();
      return createDatabase(databasePath(path));
    },
    summariser: async (named) => await (await opening()).findSummariser(named),
    prompts: async () => await (await opening()).readPrompts(),
    interruptible,
    async serveMcp(service) {
      const { serveMcp } = await import("../mcp/server.ts");
      await interruptible(async (signal) => {
        await serveMcp({ ...service, version: version(), stdin, stdout, signal });
      }, endings);
    },
    async confirm(question) {
      const { confirm } = await import("@clack/prompts");
      const answer = await confirm({ message: question, initialValue: false, output: stderr });
      return answer === true;
    },
    finish,
  };
}

/** The database's engine is loaded by the first command that needs it: `--help` answers at once. */
const opening = async () => await import("./open.ts");

/** Ways to tell a program that nobody sits at to end. */
const endings: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

async function interruptible<T>(
  work: (signal: AbortSignal) => Promise<T>,
  signals: readonly NodeJS.Signals[] = ["SIGINT"],
): Promise<T> {
  const interruption = new AbortController();
  const interrupt = (): void => interruption.abort();
  for (const signal of signals) process.once(signal, interrupt);
  try {
    return await work(interruption.signal);
  } finally {
    for (const signal of signals) process.off(signal, interrupt);
  }
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

/** A reader that went away is no failure, and there is nobody left to tell. */
function survivePipes(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error) => {
      if (!isBrokenPipe(error)) throw error;
    });
  }
}

/** Some versions of Node warn that their SQLite is young. That is for us to know, and not for who reads our stderr. */
function silenceExperiments(): void {
  process.removeAllListeners("warning");
  process.on("warning", (warning) => {
    if (warning.name !== "ExperimentalWarning") process.stderr.write(`${warning.name}: ${warning.message}\n`);
  });
}
