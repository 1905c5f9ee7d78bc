/** Runs the `lcm` program: parses the command line, runs a command and returns its exit status. */

import { Command, CommanderError } from "commander";
import { addCommands, reportUsage, versionText, type CommandContext } from "./commands/index.ts";
import { refuseOtherWord } from "./commands/_other-words.ts";
import { packageVersion } from "../package.ts";
import { createContext, survivePipes } from "./context.ts";
import { reportFailure } from "./failure.ts";

/** Never throws. */
export async function main(argv: readonly string[]): Promise<number> {
  silenceExperiments();
  let status = 0;
  const context = createContext({ finish: (ended) => (status = ended) });
  survivePipes();
  // What follows `--` belongs to another program (`lcm run`).
  const own = argv.slice(0, argv.indexOf("--") < 0 ? argv.length : argv.indexOf("--"));
  const json = own.includes("--json");
  const program = createProgram(context, json);
  try {
    await program.parseAsync(withoutUselessHelp(program, withCommand(program, context, argv)), { from: "user" });
    return status;
  } catch (error) {
    if (!(error instanceof CommanderError)) return reportFailure(context, json, error);
    return error.exitCode === 0 ? 0 : reportUsage(context, json, error.message);
  }
}

function createProgram(context: CommandContext, json: boolean): Command {
  const program = new Command("lcm")
    .description("Lossless context management: every message is stored once and can always be recalled.")
    .version(versionText(packageVersion(), json), "-V, --version", "print the version")
    .exitOverride();
  addCommands(program, context, json);
  return program;
}

/** Without a command, a terminal gets the terminal UI; elsewhere, an empty command line gets help. */
function withCommand(program: Command, context: CommandContext, argv: readonly string[]): readonly string[] {
  if (!context.isInteractive || !context.stdout.isTerminal) return argv.length === 0 ? ["--help"] : argv;
  const isAsking = argv.some((word) => ["-h", "--help", "-V", "--version", "--json"].includes(word));
  return isAsking || program.parseOptions([...argv]).operands.length > 0 ? argv : ["tui", ...argv];
}

/** Help for an unknown command must be an error; commander would print the help of the program. */
function withoutUselessHelp(program: Command, argv: readonly string[]): string[] {
  const { operands } = program.parseOptions([...argv]);
  const [first, second] = operands;
  const name = first === "help" ? second : first;
  const isThere = name === undefined || name === "help" || program.commands.some((each) => each.name() === name);
  if (!isThere) refuseOtherWord(name);
  return isThere ? [...argv] : [name, ...argv.filter((word) => word === "--json")];
}

/** Some versions of Node warn that their SQLite is experimental, which does not concern users. */
function silenceExperiments(): void {
  process.removeAllListeners("warning");
  process.on("warning", (warning) => {
    if (warning.name !== "ExperimentalWarning") process.stderr.write(`${warning.name}: ${warning.message}\n`);
  });
}
