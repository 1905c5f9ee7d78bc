/** `lcm transplant`: copies what one conversation's context knows in front of another's, with all that lies below it. */

import type { Transplantation } from "../../core/maintenance/transplant.ts";
import { transplantationLines, transplantedWords } from "../../format/transplant.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying, sayUndo } from "./_applying.ts";
import { defineCommand, indexAll, withLcm } from "./_session.ts";

export const transplantCommand = defineCommand({
  name: "transplant",
  summary: "copy the summaries of one conversation into another",
  description:
    "Copy the summaries of one conversation's context, and everything below them down to the messages, in front of " +
    "another's context. The source stays as it is, and the copies are the target's own.",
  arguments: [
    ["<source>", "the conversation to copy from: its number, session key or session id"],
    ["<target>", "the conversation to copy into"],
  ],
  options: {
    ...backupOption,
    ...applyOptions,
  },
  examples: [
    ["lcm transplant 553 642", "what would be copied"],
    ["lcm transplant 553 642 --apply", "copy it"],
    ["lcm transplant agent:main:main agent:main:work --apply", "by session key: their newest segments"],
  ],
  notes:
    "Messages of the source that are not under a summary are not copied; `lcm compact` folds them first. What the " +
    "target holds already is not copied again (exit status 4).",
  async run(session, options, from, into) {
    const applying = isApplying(options);
    return await withLcm(session, applying ? "write" : "read", async (lcm) => {
      const [source, target] = [await lcm.find(from), await lcm.find(into)];
      const plan = await lcm.planTransplant(source.id, target.id);
      const show = (planned: Transplantation): void => {
        if (!session.json)
          for (const line of transplantationLines(session, planned, source, target)) session.print(line);
      };
      show(plan);
      if (plan.summaries.length === 0) return endAtPlan(session, applying, plan, null);
      if (!applying) return endAtPlan(session, applying, plan);
      const backup = await backUpFirst(session, options);
      const done = await lcm.transplant(plan, (replanned) => {
        if (!session.json) session.note(`conversation ${source.id} changed meanwhile: planned again`);
        show(replanned);
      });
      await indexAll(session, lcm);
      if (done === null && session.json) session.printJson({ dryRun: false, applied: false, plan, backup });
      if (done === null) return;
      const { plan: applied, ...result } = done;
      if (session.json) return session.printJson({ dryRun: false, applied: true, plan: applied, result, backup });
      session.print(`${transplantedWords(result, target.id)}.`);
      sayUndo(session, result.change);
    });
  },
});
