/** `lcm tui`, which `lcm` alone and `lcm-tui` lead to: everything there is, to walk through and to set right. */

import type { Command } from "commander";
import { LcmError } from "../../core/errors.ts";
import { providerOptions } from "./options.ts";
import { adoptIfOlder } from "./session.ts";
import type { CommandDefinition, ModelOptions, Session } from "./session.ts";

interface TuiOptions extends ModelOptions {
  readonly sessions?: string;
  readonly readOnly?: boolean;
  readonly promptDir?: string;
}

export const tuiCommand: CommandDefinition = {
  name: "tui",
  summary: "walk through everything in the terminal, and set it right",
  description:
    "Walk through conversations, messages, summaries and contexts, search them, and rewrite, dissolve, transplant or undo " +
    "what you see. Nothing is written before you say yes to a plan.",
  options: (command) =>
    command
      .option(
        "--sessions <folder>",
        "where the host keeps its transcripts (default: those under OpenClaw's state directory)",
      )
      .option("--read-only", "change nothing, whatever is pressed")
      .option("--model <name>", "which model writes summaries anew, as provider/model"),
  shared: [...providerOptions, ["--prompt-dir <folder>", "the folder whose files replace the built-in prompts"]],
  examples: [
    ["lcm", "the same, in a terminal"],
    ["lcm tui --db copy.db --read-only", "look at another database without touching it"],
  ],
  notes: "In it, ? lists the keys; docs/keys.md has them all.",
  run: openTui,
};

async function openTui(session: Session, command: Command): Promise<number> {
  const { context, database, typed, json } = session;
  const { sessions, readOnly = false, promptDir, ...model } = command.opts<TuiOptions>();
  if (json || !context.isInteractive || !context.stdout.isTerminal) {
    throw new LcmError("invalid", "the terminal UI needs a terminal to show itself on", {
      hint: "`lcm --help` lists the commands, which do the same for programs",
    });
  }
  if (!readOnly) await adoptIfOlder(session);
  return await context.openTui({ database, typed, readOnly, sessions: sessions ?? null, promptDir, model });
}
