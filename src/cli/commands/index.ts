/** Adds all commands to a commander program: `lcm` itself, or the group of a host (`openclaw lcm …`). */

import type { Command } from "commander";
import { exitInvalid } from "../failure.ts";
import { createPaint } from "../../format/paint.ts";
import { adoptCommand } from "./adopt.ts";
import { askCommand } from "./ask.ts";
import { backupCommand } from "./backup.ts";
import { compactCommand } from "./compact.ts";
import { completeCommand, completionCommand } from "./completion.ts";
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
import { indexCommand } from "./index-search.ts";
import { mapCommand } from "./map.ts";
import { mcpCommand } from "./mcp.ts";
import { messagesCommand } from "./messages.ts";
import { moveCommand } from "./move.ts";
import { paragraph } from "./_options.ts";
import { pinsCommand } from "./pins.ts";
import { promptsCommand } from "./prompts.ts";
import { proxyCommand } from "./proxy.ts";
import { pruneCommand } from "./prune.ts";
import { recentCommand } from "./recent.ts";
import { repairCommand } from "./repair.ts";
import { restoreCommand } from "./restore.ts";
import { rewriteCommand } from "./rewrite.ts";
import { seenCommand } from "./seen.ts";
import type { CommandContext, DefinedCommand } from "./_session.ts";
import { serveCommand } from "./serve.ts";
import { setupCommand } from "./setup.ts";
import { runCommand } from "./run.ts";
import { settingsCommand } from "./settings.ts";
import { statsCommand } from "./stats.ts";
import { statusCommand } from "./status.ts";
import { undoCommand } from "./undo.ts";
import { transplantCommand } from "./transplant.ts";
import { tuiCommand } from "./tui.ts";
import { webCommand } from "./web.ts";
import { breakText } from "../../format/width.ts";
import { jsonText } from "../../format/safe-text.ts";

export type { CommandContext } from "./_session.ts";

const groups = [
  {
    heading: "Inspect:",
    commands: [
      tuiCommand,
      webCommand,
      statusCommand,
      conversationsCommand,
      messagesCommand,
      contextCommand,
      seenCommand,
      statsCommand,
      dagCommand,
      settingsCommand,
    ],
  },
  {
    heading: "Recall:",
    commands: [
      grepCommand,
      askCommand,
      mapCommand,
      recentCommand,
      describeCommand,
      expandCommand,
      mcpCommand,
      serveCommand,
    ],
  },
  { heading: "Summarise and try out:", commands: [compactCommand, promptsCommand, demoCommand] },
  {
    heading: "Connect, import and export:",
    commands: [setupCommand, runCommand, proxyCommand, importCommand, exportCommand],
  },
  {
    heading: "Maintain:",
    commands: [doctorCommand, repairCommand, indexCommand, historyCommand, undoCommand, backupCommand, restoreCommand],
  },
  {
    heading: "Change:",
    commands: [
      pinsCommand,
      rewriteCommand,
      dissolveCommand,
      transplantCommand,
      forgetCommand,
      pruneCommand,
      adoptCommand,
      moveCommand,
    ],
  },
  { heading: "Help:", commands: [completionCommand, completeCommand] },
] as const;

export const commands: readonly DefinedCommand[] = groups.flatMap((group) => [...group.commands]);

/** `json` is passed in because commander may not have understood the command line. */
export function addCommands(program: Command, context: CommandContext, json: boolean): void {
  const { stdout, stderr } = context;
  program
    .option(
      "--db <path>",
      "use this database file or postgres:// URL (default: as configured, else lcm.db in the state directory)",
    )
    .option("--json", "print JSON, for programs")
    .option("--no-color", "print without colours, like NO_COLOR=1")
    .configureHelp({
      showGlobalOptions: true,
      minWidthToWrap: 20,
      visibleGlobalOptions: (command) =>
        command.parent === program ? program.options.filter(({ long }) => isFor(command.name(), long)) : [],
      styleTitle: (title) => `\u001b[1m${title}\u001b[22m`, // Commander strips it where there are no colours.
      subcommandTerm: (command) => [command.name(), ...command.registeredArguments.map(argumentTerm)].join(" "),
    })
    .addHelpText("after", paragraph(exitStatuses))
    .addHelpText("after", zoneWords)
    .helpOption("-h, --help", "show help; after a command, its help with examples")
    .showHelpAfterError("hint: pass --help to see the usage")
    .configureOutput({
      writeOut: (text) => void stdout.stream.write(text),
      writeErr: (text) => void (json || stderr.stream.write(text)),
      getOutHelpWidth: () => Math.min(stdout.columns ?? 100, 100),
      getErrHelpWidth: () => Math.min(stderr.columns ?? 100, 100),
      getOutHasColors: () => stdout.colour,
      getErrHasColors: () => stderr.colour,
      outputError: (text, write) =>
        write(
          breakText(
            plainly(text)
              .trimEnd()
              .replace(/^error:/, createPaint(stderr.colour).bad("error:")),
            stderr.columns,
          ),
        ),
    });
  for (const { heading, commands } of groups) {
    program.commandsGroup(heading);
    for (const { add } of commands) add(program, context);
  }
  program.commandsGroup("Help:").helpCommand("help [command]", "show help for a command");
}

export const versionText = (version: string, json: boolean): string =>
  json ? jsonText({ version }).trimEnd() : version;

/** Commander's words for an argument that is not one of its choices are about the program, not about what was typed. */
const plainly = (error: string): string =>
  error.replace(
    /command-argument value '([^]*)' is invalid for argument '[\w-]+'\. Allowed choices are (.+)\.$/m,
    "'$1' is not one of $2",
  );

/** Reports a usage error as JSON; commander has already printed it for people. Returns the exit status. */
export function reportUsage({ stdout }: CommandContext, json: boolean, error: string): number {
  const message = plainly(error).replace(/^error: /, "");
  if (json) stdout.stream.write(jsonText({ error: { code: "invalid", message } }));
  return exitInvalid;
}

const isFor = (command: string, option: string | undefined): boolean =>
  option !== "--version" && !(without[command] ?? []).includes(option ?? "");

/** Options that make no sense with these: a server and a screen print no JSON, and the demo makes its own database. */
const without: Readonly<Record<string, readonly string[]>> = {
  mcp: ["--json"],
  run: ["--json"],
  tui: ["--json"],
  demo: ["--db"],
};

const argumentTerm = (argument: Command["registeredArguments"][number]): string => {
  const name = argument.name() + (argument.variadic ? "…" : "");
  return argument.required ? `<${name}>` : `[${name}]`;
};

const exitStatuses =
  "Exit status: 0 ok, 1 findings or no match, 2 invalid, 3 not found, 4 conflict, 5 denied, 6 unavailable, 7 corrupt, " +
  "130 interrupted by Ctrl-C.";
const zoneWords = "Times are shown and entered in your time zone (TZ); JSON uses UTC.";
