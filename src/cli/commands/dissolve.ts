/** `lcm dissolve`: puts what a summary was made from back into its place in the context. */

import type { Dissolution } from "../../core/maintenance/dissolve.ts";
import { LcmError } from "../../core/base/errors.ts";
import { headline } from "../../format/conversations.ts";
import { dissolutionLines, dissolvedWords } from "../../format/dissolve.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying, sayUndo } from "./_applying.ts";
import { findSummary, givenSummary } from "./dag.ts";
import { conversationWords } from "./_options.ts";
import { defineCommand, withLcm } from "./_session.ts";

export const dissolveCommand = defineCommand({
  name: "dissolve",
  summary: "put what a summary was made from back into the context",
  description:
    "Put what a summary was made from back into its place in the context: the messages of a leaf, the summaries of a " +
    "condensed one. The summary itself stays stored and is still found, unless --purge removes it.",
  arguments: [["<conversation>", conversationWords]],
  options: {
    summary: ["--summary <id>", "the summary, as `lcm context` and `lcm dag` show it"],
    summaryId: ["--summary-id <id>", null],
    purge: ["--purge", "remove the summary too, if nothing was made from it"],
    ...backupOption,
    ...applyOptions,
  },
  examples: [
    ["lcm dissolve 3 --summary sum_0123456789abcdef", "what would come back"],
    ["lcm dissolve 3 --summary sum_0123456789abcdef --apply", "put it back"],
  ],
  notes:
    "A summary below another one is reached from above: dissolve the one that the context shows first. What comes " +
    "back may be folded again by the next compaction.",
  async run(session, options, name) {
    const { purge = false } = options;
    const applying = isApplying(options);
    const given = givenSummary(options);
    if (given === undefined) {
      throw new LcmError("invalid", "it is not said which summary", {
        hint: "--summary ID; `lcm dag CONVERSATION` lists them",
      });
    }
    return await withLcm(session, applying ? "write" : "read", async (lcm) => {
      const conversation = await lcm.find(name);
      const { id } = await findSummary(lcm, given);
      const plan = await lcm.planDissolve({ conversation: conversation.id, summary: id, purge });
      const show = (planned: Dissolution): void => {
        if (!session.json) for (const line of dissolutionLines(session, planned)) session.print(line);
      };
      if (!session.json) session.print(headline(session, conversation));
      show(plan);
      if (!applying) return endAtPlan(session, applying, plan);
      const backup = await backUpFirst(session, options);
      const { plan: applied, ...result } = await lcm.dissolve(plan, (replanned) => {
        if (!session.json) session.note("the conversation changed meanwhile: planned again");
        show(replanned);
      });
      if (session.json) return session.printJson({ dryRun: false, applied: true, plan: applied, result, backup });
      session.print(dissolvedWords(applied));
      sayUndo(session, result.change);
    });
  },
});
