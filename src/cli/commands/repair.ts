/** `lcm repair`: new texts for the summaries that `lcm doctor` finds fault with. */

import { LcmError } from "../../core/base/errors.ts";
import { headline } from "../../format/conversations.ts";
import { findingLines } from "../../format/rewrite.ts";
import { conversationWords } from "./_options.ts";
import { modelWords, rewriteChosen, rewritingOptions } from "./_rewriting.ts";
import { defineCommand } from "./_session.ts";

export const repairCommand = defineCommand({
  name: "repair",
  summary: "have faulty summaries written anew by a model",
  description:
    "Have the summaries written anew that are empty, cut short, outdated, longer than what they stand for, or made without a " +
    "model. A dry run asks the model too, after saying what that costs, and shows old and new; --apply puts the " +
    "new texts in place, and `lcm undo` takes them back.",
  arguments: [["[conversation]", `only ${conversationWords}`]],
  options: {
    all: ["--all", "of all conversations, which is the default"],
    ...rewritingOptions,
  },
  examples: [
    ["lcm repair --estimate", "what is to be repaired, and what that would cost"],
    ["lcm repair 3 --diff", "what would change in conversation 3"],
    ["lcm repair 3 --apply", "do it"],
  ],
  notes: modelWords,
  async run(session, options, name?: string) {
    if (name !== undefined && options.all === true) {
      throw new LcmError("invalid", "a conversation and --all contradict each other", { hint: "give one of them" });
    }
    return await rewriteChosen(session, options, "repair", async (lcm) => {
      const only = name === undefined ? null : await lcm.find(name);
      const progress = session.progress("looking for faults");
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
