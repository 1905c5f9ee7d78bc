/** `lcm transplant`: copies the summaries of one conversation, with their sources, into another. */

import type { Transplantation } from "../../core/maintenance/transplant.ts";
import { transplantationLines, transplantedWords } from "../../format/transplant.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying, noteUndo } from "./_applying.ts";
import { about, list, object, text, whole } from "./_json.ts";
import { planned, summaryFields } from "./_shapes.ts";
import { defineCommand, indexAll, withLcm } from "./_session.ts";

const json = planned(
  object({
    source: whole,
    target: whole,
    summaries: list(text),
    shown: list(object(summaryFields)),
    prepended: about(list(text), "those that the target's context begins with afterwards"),
    depths: list(object({ depth: whole, summaries: whole })),
    messages: whole,
    carried: about(list(text), "summaries of the target that get their sources instead of a copy"),
    targetContext: object({ items: whole, summaries: whole, messages: whole }),
    tokensBefore: whole,
    tokensAfter: whole,
  }),
  object({ change: whole, contextItems: whole, summaries: whole, messages: whole, carried: whole }),
);

export const transplantCommand = defineCommand({
  name: "transplant",
  json,
  summary: "copy the summaries of one conversation into another",
  description:
    "Copy the summaries in the context of one conversation, with everything below them down to the messages, to the start of " +
    "another's context. The source does not change, and the copies belong to the target.",
  arguments: [
    ["<source>", "the conversation to copy from: its number, session key or session id"],
    ["<target>", "the conversation to copy into"],
  ],
  options: {
    ...backupOption,
    ...applyOptions,
  },
  examples: [
    ["lcm transplant 553 642", "show what would be copied"],
    ["lcm transplant 553 642 --apply", "copy it"],
    ["lcm transplant agent:main:main agent:main:work --apply", "by session key, which selects its newest segment"],
  ],
  notes:
    "Messages of the source that no summary covers are not copied; fold them first with `lcm compact`. A summary that " +
    "/new carried over to the target is not copied again: it keeps its id and gets its sources. If the target already " +
    "has copies of these summaries, nothing is copied (exit status 4).",
  async run(session, options, from, into) {
    const applying = isApplying(options);
    return await withLcm(session, applying ? "change" : "apart", async (lcm) => {
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
        if (!session.json) session.note(`conversation ${source.id} changed meanwhile; here is the new plan`);
        show(replanned);
      });
      await indexAll(session, lcm);
      if (done === null && session.json) session.printJson(json, { dryRun: false, applied: false, plan, backup });
      if (done === null) return;
      const { plan: applied, ...result } = done;
      if (session.json) return session.printJson(json, { dryRun: false, applied: true, plan: applied, result, backup });
      session.print(`${transplantedWords(result, target.id)}.`);
      noteUndo(session, result.change);
    });
  },
});
