/** `lcm dissolve`: puts what a summary was made from back into its place in the context. */

import type { Command } from "commander";
import { Option } from "commander";
import type { Dissolution } from "../../core/dissolve.ts";
import { LcmError } from "../../core/errors.ts";
import { headline } from "../../show/conversations.ts";
import { dissolutionLines, dissolvedWords } from "../../show/dissolution.ts";
import { applyOptions, backUpFirst, backupOption, isApplying, sayNothingChanged, sayUndo } from "./applying.ts";
import { findSummary, givenSummary } from "./dag.ts";
import { conversationWords } from "./options.ts";
import { exitOk, withLcm } from "./session.ts";
import type { CommandDefinition, Session } from "./session.ts";

interface DissolveOptions {
  readonly summary?: string;
  readonly summaryId?: string;
  readonly purge?: boolean;
}

export const dissolveCommand: CommandDefinition = {
  name: "dissolve",
  summary: "put what a summary was made from back into the context",
  description:
    "Put what a summary was made from back into its place in the context: the messages of a leaf, the summaries of a " +
    "condensed one. The summary itself stays stored and is still found, unless --purge removes it.",
  options: (command) =>
    command
      .argument("<conversation>", conversationWords)
      .option("--summary <id>", "the summary, as `lcm context` and `lcm dag` show it")
      .addOption(new Option("--summary-id <id>", "the same").hideHelp())
      .option("--purge", "remove the summary too, if nothing was made from it"),
  shared: [backupOption, ...applyOptions],
  examples: [
    ["lcm dissolve 3 --summary sum_0123456789abcdef", "what would come back"],
    ["lcm dissolve 3 --summary sum_0123456789abcdef --apply", "put it back"],
  ],
  notes:
    "A summary below another one is reached from above: dissolve the one that the context shows first. What comes " +
    "back may be folded again by the next compaction.",
  run: dissolveOne,
};

async function dissolveOne(session: Session, command: Command, name: string): Promise<number> {
  const options = command.opts<DissolveOptions>();
  const { purge = false } = options;
  const applying = isApplying(command);
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
    if (!applying) {
      if (session.json) session.printJson({ dryRun: true, applied: false, plan });
      else sayNothingChanged(session);
      return exitOk;
    }
    const backup = await backUpFirst(session, command);
    const { plan: applied, ...result } = await lcm.dissolve(plan, (replanned) => {
      if (!session.json) session.note("the conversation changed meanwhile: planned again");
      show(replanned);
    });
    if (session.json) session.printJson({ dryRun: false, applied: true, plan: applied, result, backup });
    else {
      session.print(dissolvedWords(applied));
      sayUndo(session, result.change);
    }
    return exitOk;
  });
}
