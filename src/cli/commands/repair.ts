/** `lcm repair`: rewrites the summaries that `lcm doctor` reports. */

import { LcmError } from "../../core/base/errors.ts";
import { headline } from "../../format/conversations.ts";
import { findingLines } from "../../format/rewrite.ts";
import { conversationWords } from "./_options.ts";
import { modelWords, rewriteChosen, rewritingJson, rewritingOptions } from "./_rewriting.ts";
import { defineCommand } from "./_session.ts";

export const repairCommand = defineCommand({
  name: "repair",
  json: rewritingJson,
  summary: "rewrite faulty summaries with a model",
  description:
    "Rewrite summaries that are empty, cut short, outdated, longer than their sources, or made without a model. A dry run " +
    "shows the cost, calls the model and shows the old and new texts; --apply replaces them, and `lcm undo` undoes it.",
  arguments: [["[conversation]", `only ${conversationWords}`]],
  options: {
    all: ["--all", "repair all conversations (the default)"],
    ...rewritingOptions,
  },
  examples: [
    ["lcm repair --estimate", "list faulty summaries and estimate the cost"],
    ["lcm repair 3 --diff", "draft new texts for conversation 3, as diffs"],
    ["lcm repair 3 --apply", "apply them"],
  ],
  notes: modelWords,
  async run(session, options, name?: string) {
    if (name !== undefined && options.all === true) {
      throw new LcmError("invalid", "a conversation and --all exclude each other", { hint: "pass only one of them" });
    }
    return await rewriteChosen(session, options, "repair", async (lcm) => {
      const only = name === undefined ? null : await lcm.find(name);
      const progress = session.progress("checking summaries");
      const plan = await lcm
        .planRepair(only?.id ?? null, ({ done, of }) => progress.update({ done, of, unit: "conversations" }))
        .finally(() => progress.end());
      return {
        plan: { ...plan, conversation: only?.id ?? null },
        lines: [...(only === null ? [] : [headline(session, only)]), ...findingLines(session, plan.findings)],
        otherwise: "nothing to repair",
      };
    });
  },
});
