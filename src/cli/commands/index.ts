/**
 * All commands, on any commander program: `lcm` itself, or a group of a host's own (`openclaw lcm …`). Whoever mounts
 * them gives the context, and ends the program where commander wants it to end.
 */

import type { Command } from "commander";
import { exitInvalid } from "../failure.ts";
import { breakText, createPaint, jsonText } from "../../show/render.ts";
import { addAdopt } from "./adopt.ts";
import { addAsk } from "./ask.ts";
import { addBackup } from "./backup.ts";
import { addCompact } from "./compact.ts";
import { addContext } from "./context.ts";
import { addConversations } from "./conversations.ts";
import { addDag } from "./dag.ts";
import { addDemo } from "./demo.ts";
import { addDescribe } from "./describe.ts";
import { addDissolve } from "./dissolve.ts";
import { addDoctor } from "./doctor.ts";
import { addExpand } from "./expand.ts";
import { addExport } from "./export.ts";
import { addForget } from "./forget.ts";
import { addGrep } from "./grep.ts";
import { addHistory } from "./history.ts";
import { addImport } from "./import.ts";
import { addMcp } from "./mcp.ts";
import { addMessages } from "./messages.ts";
import { paragraph } from "./options.ts";
import { addPrompts } from "./prompts.ts";
import { addPrune } from "./prune.ts";
import { addRecent } from "./recent.ts";
import { addRepair } from "./repair.ts";
import { addRestore } from "./restore.ts";
import { addRewrite } from "./rewrite.ts";
import type { CommandContext } from "./session.ts";
import { addStatus } from "./status.ts";
import { addUndo } from "./undo.ts";
import { addTransplant } from "./transplant.ts";
import { addTui } from "./tui.ts";

export type { CommandContext } from "./session.ts";

const groups = [
  { heading: "Look:", adders: [addTui, addStatus, addConversations, addMessages, addContext, addDag] },
  { heading: "Recall:", adders: [addGrep, addAsk, addRecent, addDescribe, addExpand, addMcp] },
  { heading: "Work:", adders: [addCompact, addPrompts, addDemo] },
  { heading: "Bring in and take out:", adders: [addImport, addExport] },
  { heading: "Look after:", adders: [addDoctor, addRepair, addHistory, addUndo, addBackup, addRestore] },
  { heading: "Change:", adders: [addRewrite, addDissolve, addTransplant, addForget, addPrune, addAdopt] },
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
  for (const { heading, adders } of groups) {
    program.commandsGroup(heading);
    for (const add of adders) add(program, context);
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
