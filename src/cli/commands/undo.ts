/** `lcm undo`: undoes a change, or its part for one summary, unless something newer depends on it. */

import { LcmError } from "../../core/base/errors.ts";
import type { PlannedUndo } from "../../core/maintenance/history.ts";
import type { Lcm } from "../../core/lcm.ts";
import { isSummaryId, type SummaryId } from "../../core/model/types.ts";
import { exitConflict, failureOf } from "../failure.ts";
import { obstacleLines, undoLines, undoneWords, undoRefusal } from "../../format/changes.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying, noteUndo } from "./_applying.ts";
import type { OptionsOf } from "./_options.ts";
import { list, maybe, object, text, whole } from "./_json.ts";
import { changeJson, planned } from "./_shapes.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";

const json = planned(
  object({
    undoing: changeJson,
    summary: maybe(text),
    obstacles: list(
      object({ subject: text, message: text, change: maybe(whole), cover: maybe(text), remedy: maybe(text) }),
    ),
    again: maybe(text),
  }),
  object({ change: whole }),
);

export const undoCommand = defineCommand({
  name: "undo",
  json,
  summary: "undo a change",
  description:
    "Undo a change: every row it changed gets its previous value. Later messages and changes are kept. If something newer " +
    "depends on the change, it is listed and nothing is undone.",
  arguments: [["[change]", "the number of the change, as printed by `lcm history` (default: the newest one)"]],
  options: {
    summary: ["--summary <id>", "undo only what the change did to this summary"],
    ...applyOptions,
    ...backupOption,
  },
  examples: [
    ["lcm undo", "show what undoing the newest change would do; a terminal asks whether to do it"],
    ["lcm undo 12", "show what undoing change 12 would do"],
    ["lcm undo 12 --apply", "undo it"],
    ["lcm undo 13 --apply", "redo it, if the undo was change 13"],
  ],
  notes: "Exit status 4: something newer depends on the change.",
  async run(session, options, name?: string) {
    const applying = isApplying(options);
    const given = name === undefined ? null : changeNumber(name);
    const summary = summaryOf(options.summary);
    const isAsking = !applying && given === null && options.dryRun !== true && mayAsk(session);
    return await withLcm(session, applying || isAsking ? "change" : "apart", async (lcm) => {
      const plan = await lcm.planUndo(given ?? (await newestChange(lcm, summary)), summary);
      if (!session.json) for (const line of undoLines(session, plan)) session.print(line);
      if (plan.obstacles.length > 0) return refuse(session, applying, plan);
      const isWanted = applying || (isAsking && (await session.context.confirm("Undo it, after a backup?")));
      if (isWanted) return await apply(session, options, lcm, plan);
      const words = `nothing was changed; pass --apply to undo it after a backup; ${againWords(plan)}`;
      return endAtPlan(session, applying, plan, words);
    });
  },
});

function changeNumber(text: string): number {
  if (/^\d{1,15}$/.test(text) && Number(text) > 0) return Number(text);
  throw new LcmError("invalid", `${JSON.stringify(text)} is not the number of a change`, {
    hint: "list the changes with `lcm history`",
  });
}

const mayAsk = ({ context, database, json }: Session): boolean =>
  context.isInteractive && context.stdout.isTerminal && !json && database.isWritable();

const changesLookedAt = 100;

/** Undos are skipped, so that repeating the command goes further back. */
async function newestChange(lcm: Lcm, summary: SummaryId | undefined): Promise<number> {
  const changes = await lcm.history({ limit: changesLookedAt });
  const newest = changes.find(
    ({ undoes, state, steps }) =>
      undoes === null &&
      (state === "holds" || state === "partly undone") &&
      (summary === undefined || steps.some(({ subject, undoneBy }) => subject === summary && undoneBy === null)),
  );
  if (newest !== undefined) return newest.change;
  throw new LcmError("not_found", "there is no change to undo", {
    hint: "list the changes with `lcm history`; redo an undone one with `lcm undo` and the number of its undo",
  });
}

function summaryOf(text: string | undefined): SummaryId | undefined {
  if (text === undefined || isSummaryId(text)) return text;
  throw new LcmError("invalid", `${JSON.stringify(text)} is not a summary id`, {
    hint: "see the ids with `lcm history --change N`",
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
  if (session.json) return session.printJson(json, { dryRun: false, applied: true, plan, result: { change }, backup });
  session.print(undoneWords(plan));
  if (plan.again === null) noteUndo(session, change);
  else session.note(`copy them again with \`${plan.again} --apply\``);
}

const againWords = ({ again }: PlannedUndo): string =>
  again === null ? "the undo can be undone too" : `to copy them again, run \`${again} --apply\``;

function refuse(session: Session, applying: boolean, plan: PlannedUndo): number {
  const { message, hint } = undoRefusal(plan);
  const error = new LcmError("conflict", message, hint === null ? {} : { hint });
  if (session.json) {
    session.printJson(json, { dryRun: !applying, applied: false, plan, error: failureOf(error, session.typed) });
    return exitConflict;
  }
  session.print();
  for (const line of obstacleLines(session, plan)) session.print(line);
  throw error;
}
