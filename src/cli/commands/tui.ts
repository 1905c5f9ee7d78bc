/** `lcm tui`, which `lcm` alone and `lcm-tui` lead to: everything there is, to walk through and to set right. */

import { LcmError } from "../../core/base/errors.ts";
import { providerOptions } from "./_options.ts";
import { adoptIfOlder, defineCommand } from "./_session.ts";

export const tuiCommand = defineCommand({
  name: "tui",
  summary: "walk through everything in the terminal, and set it right",
  description:
    "Walk through conversations, messages, summaries and contexts, search them, and rewrite, dissolve, transplant or undo " +
    "what you see. Nothing is written before you say yes to a plan.",
  options: {
    sessions: [
      "--sessions <folder>",
      "where the host keeps its transcripts (default: those under OpenClaw's state directory)",
    ],
    readOnly: ["--read-only", "change nothing, whatever is pressed"],
    model: ["--model <name>", "which model writes summaries anew, as provider/model"],
    ...providerOptions,
    promptDir: ["--prompt-dir <folder>", "the folder whose files replace the built-in prompts"],
  },
  examples: [
    ["lcm", "the same, in a terminal"],
    ["lcm tui --db copy.db --read-only", "look at another database without touching it"],
  ],
  notes: "In it, ? lists the keys; docs/keys.md has them all.",
  async run(session, options) {
    const { context, database, typed, json } = session;
    const { sessions, readOnly = false, promptDir, ...model } = options;
    if (json || !context.isInteractive || !context.stdout.isTerminal) {
      throw new LcmError("invalid", "the terminal UI needs a terminal to show itself on", {
        hint: "`lcm --help` lists the commands, which do the same for programs",
      });
    }
    if (!readOnly) await adoptIfOlder(session);
    return await context.openTui({ database, typed, readOnly, sessions: sessions ?? null, promptDir, model });
  },
});
