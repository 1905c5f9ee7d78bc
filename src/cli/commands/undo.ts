/** `lcm undo`: takes back a change, all of it or its part of one summary, unless something newer stands on it. */

import { LcmError } from "../../core/base/errors.ts";
import type { PlannedUndo } from "../../core/maintenance/history.ts";
import type { Lcm } from "../../core/lcm.ts";
import { isSummaryId } from "../../core/model/types.ts";
import type { SummaryId } from "../../core/model/types.ts";
import { exitConflict, failureOf } from "../failure.ts";
import { obstacleLines, undoLines, undoneWords, undoRefusal } from "../../format/changes.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying, sayUndo } from "./_applying.ts";
import type { OptionsOf } from "./_options.ts";
import { defineCommand, withLcm } from "./_session.ts";
import type { Session } from "./_session.ts";

export const undoCommand = defineCommand({
  name: "undo",
  summary: "take back a change",
  description:
    "Take back a change: every row is again as it was before. What was said or changed since stays. If something newer " +
    "stands on the change, nothing happens, and it is said what.",
  arguments: [["<change>", "its number; `lcm history` lists them"]],
  options: {
    summary: ["--summary <id>", "only what the change did to this summary"],
    ...applyOptions,
    ...backupOption,
  },
  examples: [
    ["lcm undo 12", "what taking back change 12 would do"],
    ["lcm undo 12 --apply", "take it back"],
    ["lcm undo 13 --apply", "take that back too, if it was change 13"],
  ],
  notes: "Exit status 4 means that something stands on the change.",
  async run(session, options, name) {
    const applying = isApplying(options);
    const change = changeNumber(name);
    const summary = summaryOf(options.summary);
    return await withLcm(session, applying ? "write" : "read", async (lcm) => {
      const plan = await lcm.planUndo(change, summary);
      if (!session.json) for (const line of undoLines(session, plan)) session.print(line);
      if (plan.obstacles.length > 0) return refuse(session, applying, plan);
      if (applying) return await apply(session, options, lcm, plan);
      const words = `nothing was changed; --apply takes it back, after a backup; ${againWords(plan)}`;
      return endAtPlan(session, applying, plan, words);
    });
  },
});

function changeNumber(text: string): number {
  if (/^\d{1,15}$/.test(text) && Number(text) > 0) return Number(text);
  throw new LcmError("invalid", `${JSON.stringify(text)} is not the number of a change`, {
    hint: "`lcm history` lists the changes",
  });
}

function summaryOf(text: string | undefined): SummaryId | undefined {
  if (text === undefined || isSummaryId(text)) return text;
  throw new LcmError("invalid", `${JSON.stringify(text)} is not the id of a summary`, {
    hint: "`lcm history --change N` names them",
  });
}

async function apply(
  session: Session,
  options: OptionsOf<typeof backupOption>,
  lcm: Lcm,
  planned: PlannedUndo,
): Promise<number | void> {
  const { undoing, summary } = planned;
  const backup = await backUpFirst(session, options);
  const { plan, change } = await lcm.undo(undoing.change, summary ?? undefined);
  if (change === null) return refuse(session, true, plan);
  if (session.json) return session.printJson({ dryRun: false, applied: true, plan, result: { change }, backup });
  session.print(undoneWords(plan));
  if (plan.again === null) sayUndo(session, change);
  else session.note(`\`${plan.again} --apply\` copies them again`);
}

const againWords = ({ again }: PlannedUndo): string =>
  again === null ? "that is a change of its own, and can be undone too" : `\`${again} --apply\` copies them again`;

/** What stands on it, each with what takes that back. Nothing has changed. */
function refuse(session: Session, applying: boolean, plan: PlannedUndo): number {
  const { message, hint } = undoRefusal(plan);
  const error = new LcmError("conflict", message, hint === null ? {} : { hint });
  if (session.json) {
    session.printJson({ dryRun: !applying, applied: false, plan, error: failureOf(error, session.typed) });
    return exitConflict;
  }
  session.print();
  for (const line of obstacleLines(session, plan)) session.print(line);
  throw error;
}
