/**
 * The command line as a program of its own: `lcm`. How everything that can happen becomes an exit status. The commands
 * themselves are in commands/, what they get from this process is in context.ts.
 */

import { Command, CommanderError } from "commander";
import { addCommands, reportUsage } from "./commands/index.ts";
import type { CommandContext } from "./commands/index.ts";
import { packageVersion } from "../package.ts";
import { createContext, survivePipes } from "./context.ts";
import { reportFailure } from "./failure.ts";

/** Runs one command. Answers the exit status; throws nothing. */
export async function main(argv: readonly string[]): Promise<number> {
  silenceExperiments();
  let status = 0;
  const context = createContext({ finish: (ended) => (status = ended) });
  survivePipes();
  const json = argv.includes("--json");
  const program = createProgram(context, json);
  try {
    await program.parseAsync(withoutVainHelp(program, withCommand(program, context, argv)), { from: "user" });
    return status;
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportFailure(context, json, error);
    return error.exitCode === 0 ? 0 : reportUsage(context, json, error.message);
  }
}

function createProgram(context: CommandContext, json: boolean): Command {
  const program = new Command("lcm")
    .description("Lossless context management: every message stored once, always one step from being recalled.")
    .version(packageVersion(), "-V, --version", "show the version")
    .exitOverride();
  addCommands(program, context, json);
  return program;
}

/** In a terminal, options without a command are those of the terminal UI; elsewhere nothing at all asks what there is. */
function withCommand(program: Command, context: CommandContext, argv: readonly string[]): readonly string[] {
  if (!context.isInteractive || !context.stdout.isTerminal) return argv.length === 0 ? ["--help"] : argv;
  const isAsking = argv.some((word) => ["-h", "--help", "-V", "--version", "--json"].includes(word));
  return isAsking || program.parseOptions([...argv]).operands.length > 0 ? argv : ["tui", ...argv];
}

/** Help for a command that there is not would be that of the whole program, as if all were well. */
function withoutVainHelp(program: Command, argv: readonly string[]): string[] {
  const { operands } = program.parseOptions([...argv]);
  const [first, second] = operands;
  const name = first === "help" ? second : first;
  const isThere = name === undefined || name === "help" || program.commands.some((each) => each.name() === name);
  return isThere ? [...argv] : [name, ...argv.filter((word) => word === "--json")];
}

/** Some versions of Node warn that their SQLite is young. That is for us to know, and not for who reads our stderr. */
function silenceExperiments(): void {
  process.removeAllListeners("warning");
  process.on("warning", (warning) => {
    if (warning.name !== "ExperimentalWarning") process.stderr.write(`${warning.name}: ${warning.message}\n`);
  });
}
