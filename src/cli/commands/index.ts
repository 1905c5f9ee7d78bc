/**
 * All commands, on any commander program: `lcm` itself, or a group of a host's own (`openclaw lcm …`). Whoever mounts
 * them gives the context, and ends the program where commander wants it to end.
 */

import type { Command } from "commander";
import { exitInvalid } from "../failure.ts";
import { createPaint } from "../../format/paint.ts";
import { adoptCommand } from "./adopt.ts";
import { askCommand } from "./ask.ts";
import { backupCommand } from "./backup.ts";
import { compactCommand } from "./compact.ts";
import { contextCommand } from "./context.ts";
import { conversationsCommand } from "./conversations.ts";
import { dagCommand } from "./dag.ts";
import { demoCommand } from "./demo.ts";
import { describeCommand } from "./describe.ts";
import { dissolveCommand } from "./dissolve.ts";
import { doctorCommand } from "./doctor.ts";
import { expandCommand } from "./expand.ts";
import { exportCommand } from "./export.ts";
import { forgetCommand } from "./forget.ts";
import { grepCommand } from "./grep.ts";
import { historyCommand } from "./history.ts";
import { importCommand } from "./import.ts";
import { mcpCommand } from "./mcp.ts";
import { messagesCommand } from "./messages.ts";
import { paragraph } from "./_options.ts";
import { promptsCommand } from "./prompts.ts";
import { pruneCommand } from "./prune.ts";
import { recentCommand } from "./recent.ts";
import { repairCommand } from "./repair.ts";
import { restoreCommand } from "./restore.ts";
import { rewriteCommand } from "./rewrite.ts";
import type { CommandContext } from "./_session.ts";
import { statusCommand } from "./status.ts";
import { undoCommand } from "./undo.ts";
import { transplantCommand } from "./transplant.ts";
import { tuiCommand } from "./tui.ts";
import { breakText } from "../../format/width.ts";
import { jsonText } from "../../format/safe-text.ts";

export type { CommandContext } from "./_session.ts";

const groups = [
  {
    heading: "Look:",
    commands: [tuiCommand, statusCommand, conversationsCommand, messagesCommand, contextCommand, dagCommand],
  },
  {
    heading: "Recall:",
    commands: [grepCommand, askCommand, recentCommand, describeCommand, expandCommand, mcpCommand],
  },
  { heading: "Work:", commands: [compactCommand, promptsCommand, demoCommand] },
  { heading: "Bring in and take out:", commands: [importCommand, exportCommand] },
  {
    heading: "Look after:",
    commands: [doctorCommand, repairCommand, historyCommand, undoCommand, backupCommand, restoreCommand],
  },
  {
    heading: "Change:",
    commands: [rewriteCommand, dissolveCommand, transplantCommand, forgetCommand, pruneCommand, adoptCommand],
  },
] as const;

/** `json`: whether a program asks. It cannot be asked of commander, which may not have understood the command line. */
export function addCommands(program: Command, context: CommandContext, json: boolean): void {
  const { stdout, stderr } = context;
  program
    .option("--db <path>", "the database file (default: as set, else lcm.db in the state directory)")
    .option("--json", "answer as JSON, for programs")
    .option("--no-color", "no colours; NO_COLOR=1 does the same")
    .configureHelp({
      showGlobalOptions: true,
      visibleGlobalOptions: (command) =>
        command.parent === program ? program.options.filter(({ long }) => isFor(command.name(), long)) : [],
      styleTitle: (title) => `\u001b[1m${title}\u001b[22m`, // Taken out again where there are no colours.
      subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map(argumentTerm)].join(" "),
    })
    .addHelpText("after", paragraph(exitStatuses))
    .addHelpText("after", zoneWords)
    .helpOption("-h, --help", "show help; after a command, help for it with examples")
    .showHelpAfterError("hint: add --help to see what is possible")
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
  for (const { heading, commands } of groups) {
    program.commandsGroup(heading);
    for (const add of commands) add(program, context);
  }
  program.commandsGroup("Help:").helpCommand("help [command]", "show help for a command");
}

/** Commander did not understand the command line, and has told people so; programs are told here. The exit status. */
export function reportUsage({ stdout }: CommandContext, json: boolean, said: string): number {
  const message = said.replace(/^error: /, "");
  if (json) stdout.stream.write(jsonText({ error: { code: "invalid", message } }));
  return exitInvalid;
}

const isFor = (command: string, option: string | undefined): boolean =>
  option !== "--version" && !(command === "mcp" && option === "--json");

const argumentTerm = (argument: Command["registeredArguments"][number]): string => {
  const name = argument.name() + (argument.variadic ? "…" : "");
  return argument.required ? `<${name}>` : `[${name}]`;
};

const exitStatuses =
  "Exit status: 0 ok, 1 findings, 2 invalid, 3 not found, 4 conflict, 5 denied, 6 unavailable, 7 corrupt.";
const zoneWords = "Times are shown and typed in your own zone (TZ); JSON has UTC.";
