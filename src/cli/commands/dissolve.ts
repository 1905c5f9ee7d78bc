/** `lcm dissolve`: replaces a summary in the context with the sources it was made from. */

import type { Dissolution } from "../../core/maintenance/dissolve.ts";
import { LcmError } from "../../core/base/errors.ts";
import { headline } from "../../format/conversations.ts";
import { dissolutionLines, dissolvedWords } from "../../format/dissolve.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying, noteUndo } from "./_applying.ts";
import { chosenConversation, conversationArgument } from "./_reach.ts";
import { findSummary, givenSummary } from "./dag.ts";
import { either, flag, list, maybe, object, oneOf, text, time, whole } from "./_json.ts";
import { planned, role, summaryFields } from "./_shapes.ts";
import { defineCommand, withLcm } from "./_session.ts";

const json = planned(
  object({
    conversation: whole,
    summary: text,
    ordinal: maybe(whole),
    purge: flag,
    dissolved: object(summaryFields),
    place: maybe(object({ item: whole, of: whole })),
    run: list(
      either(
        object({ kind: oneOf("summary"), ...summaryFields }),
        object({ kind: oneOf("message"), id: whole, role, tokens: whole, at: time, opening: text }),
      ),
    ),
    shifted: whole,
    tokensBefore: whole,
    tokensAfter: whole,
    derived: list(text),
    carriedBy: list(text),
  }),
  object({ change: whole, items: whole, shifted: whole }),
);

export const dissolveCommand = defineCommand({
  name: "dissolve",
  json,
  summary: "replace a summary in the context with its sources",
  description:
    "Replace a summary in the context with what it was made from: the messages of a leaf, or the summaries of a condensed one. " +
    "The summary itself stays stored and searchable, unless --purge deletes it.",
  arguments: [conversationArgument],
  options: {
    summary: ["--summary <id>", "dissolve this summary; `lcm context` and `lcm dag` show ids"],
    summaryId: ["--summary-id <id>", null],
    purge: ["--purge", "delete the summary too, if nothing was made from it"],
    ...backupOption,
    ...applyOptions,
  },
  examples: [
    ["lcm dissolve 3 --summary sum_0123456789abcdef", "show what would return"],
    ["lcm dissolve 3 --summary sum_0123456789abcdef --apply", "do it"],
  ],
  notes:
    "To dissolve a summary below another one, dissolve the one in the context first. The next compaction may fold the " +
    "returned items again.",
  async run(session, options, name?: string) {
    const { purge = false } = options;
    const applying = isApplying(options);
    const given = givenSummary(options);
    if (given === undefined) {
      throw new LcmError("invalid", "missing: which summary", {
        hint: "pass --summary ID; list summaries with `lcm dag CONVERSATION`",
      });
    }
    return await withLcm(session, applying ? "change" : "apart", async (lcm) => {
      const summary = await findSummary(lcm, given);
      const conversation = await chosenConversation(lcm, name, summary);
      const plan = await lcm.planDissolve({ conversation: conversation.id, summary: summary.id, purge });
      const show = (planned: Dissolution): void => {
        if (!session.json) for (const line of dissolutionLines(session, planned)) session.print(line);
      };
      if (!session.json) session.print(headline(session, conversation));
      show(plan);
      if (!applying) return endAtPlan(session, applying, plan);
      const backup = await backUpFirst(session, options);
      const { plan: applied, ...result } = await lcm.dissolve(plan, (replanned) => {
        if (!session.json) session.note("the conversation changed meanwhile; here is the new plan");
        show(replanned);
      });
      if (session.json) return session.printJson(json, { dryRun: false, applied: true, plan: applied, result, backup });
      session.print(dissolvedWords(applied));
      noteUndo(session, result.change);
    });
  },
});
