/** `lcm tui`, also run by `lcm` alone and `lcm-tui`: browses and repairs everything in the terminal. */

import { LcmError } from "../../core/base/errors.ts";
import { providerOptions } from "./_options.ts";
import { adoptIfOlder, defineCommand } from "./_session.ts";

export const tuiCommand = defineCommand({
  name: "tui",
  json: null,
  summary: "browse and repair everything in the terminal",
  description:
    "Browse conversations, messages, summaries and contexts, search them, and rewrite, dissolve, transplant or undo. " +
    "Nothing is written before you confirm a plan.",
  options: {
    sessions: ["--sessions <folder>", "look for transcripts here (default: OpenClaw's state directory)"],
    readOnly: ["--read-only", "never change anything"],
    model: ["--model <name>", "rewrite summaries with this model, named as provider/model"],
    ...providerOptions,
    promptDir: ["--prompt-dir <folder>", "use the prompt files in this folder"],
  },
  examples: [
    ["lcm", "the same, when run in a terminal"],
    ["lcm tui --db copy.db --read-only", "browse another database without changing it"],
  ],
  notes: "Press ? for the keys; docs/keys.md lists them all.",
  async run(session, options) {
    const { context, database, typed, json } = session;
    const { sessions, readOnly = false, promptDir, ...model } = options;
    if (json || !context.isInteractive || !context.stdout.isTerminal) {
      throw new LcmError("invalid", "the terminal UI needs a terminal", {
        hint: "use the other commands in scripts; list them with `lcm --help`",
      });
    }
    if (!readOnly) await adoptIfOlder(session);
    return await context.openTui({ database, typed, readOnly, sessions: sessions ?? null, promptDir, model });
  },
});
