/** `lcm undo`: takes back a change, all of it or its part of one summary, unless something newer stands on it. */

import type { Command } from "commander";
import { LcmError } from "../../core/errors.ts";
import type { PlannedUndo } from "../../core/history.ts";
import type { Lcm } from "../../core/lcm.ts";
import { isSummaryId } from "../../core/model.ts";
import type { SummaryId } from "../../core/model.ts";
import { exitConflict, failureOf } from "../failure.ts";
import { breakLines, listed, plural } from "../../show/render.ts";
import { addApplying, addBackupOption, backUpFirst, isApplying, sayUndo } from "./applying.ts";
import { changeHeadline } from "./history.ts";
import { examples, paragraph } from "./options.ts";
import { act, exitOk, withLcm } from "./session.ts";
import type { CommandContext, Session } from "./session.ts";

export function addUndo(program: Command, context: CommandContext): void {
  const command = program
    .command("undo")
    .summary("take back a change")
    .description(
      "Take back a change: every row is again as it was before. What was said or changed since stays. If something newer " +
        "stands on the change, nothing happens, and it is said what.",
    )
    .argument("<change>", "its number; `lcm history` lists them")
    .option("--summary <id>", "only what the change did to this summary");
  addBackupOption(addApplying(command))
    .addHelpText(
      "after",
      examples(
        ["lcm undo 12", "what taking back change 12 would do"],
        ["lcm undo 12 --apply", "take it back"],
        ["lcm undo 13 --apply", "take that back too, if it was change 13"],
      ),
    )
    .addHelpText("after", paragraph("Exit status 4 means that something stands on the change."))
    .action(act(context, undoOne));
}

async function undoOne(session: Session, command: Command, name: string): Promise<number> {
  const applying = isApplying(command);
  const change = changeNumber(name);
  const summary = summaryOf(command.opts<{ readonly summary?: string }>().summary);
  return await withLcm(session, applying ? "write" : "read", async (lcm) => {
    const plan = await lcm.planUndo(change, summary);
    if (!session.json) printPlan(session, plan);
    if (plan.obstacles.length > 0) return refuse(session, applying, plan);
    if (applying) return await apply(session, command, lcm, plan);
    if (session.json) session.printJson({ dryRun: true, applied: false, plan });
    else session.note(`nothing was changed; --apply takes it back, after a backup; ${againWords(plan)}`);
    return exitOk;
  });
}

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

async function apply(session: Session, command: Command, lcm: Lcm, planned: PlannedUndo): Promise<number> {
  const { undoing, summary } = planned;
  const backup = await backUpFirst(session, command);
  const { plan, change } = await lcm.undo(undoing.change, summary ?? undefined);
  if (change === null) return refuse(session, true, plan);
  if (session.json) {
    session.printJson({ dryRun: false, applied: true, plan, result: { change }, backup });
    return exitOk;
  }
  session.print(`${summary === null ? "" : "that part of "}change ${undoing.change} is taken back`);
  if (plan.again === null) sayUndo(session, change);
  else session.note(`\`${plan.again} --apply\` copies them again`);
  return exitOk;
}

const againWords = ({ again }: PlannedUndo): string =>
  again === null ? "that is a change of its own, and can be undone too" : `\`${again} --apply\` copies them again`;

// ── Showing it ───────────────────────────────────────────────────────────────────────────────────────────────────────

const stepsShown = 10;

function printPlan(session: Session, { undoing, summary }: PlannedUndo): void {
  const { print } = session;
  const { steps, what } = undoing;
  print(changeHeadline(session, undoing));
  print(`${summary === null ? "takes back" : "of it, takes back"}: ${what}`);
  if (steps.length === 1) return;
  for (const step of steps.slice(0, stepsShown)) print(`  ${step.what}`);
  if (steps.length > stepsShown) print(`  and ${plural(steps.length - stepsShown, "more", "more")}; --json lists all`);
}

/** What stands on it, each with what takes that back. Nothing has changed. */
function refuse(session: Session, applying: boolean, plan: PlannedUndo): number {
  const { undoing, obstacles } = plan;
  const remedies = [...new Set(obstacles.flatMap(({ remedy }) => remedy ?? []))];
  const error = new LcmError(
    "conflict",
    `change ${undoing.change} cannot be taken back as things are; nothing was changed`,
    remedies.length === 0 ? {} : { hint: hintOf(undoing.state === "undone", remedies) },
  );
  if (session.json) {
    session.printJson({ dryRun: !applying, applied: false, plan, error: failureOf(error, session.typed) });
    return exitConflict;
  }
  const room = session.columns - 2;
  session.print();
  session.print(session.paint.caution("in the way:"));
  for (const { message } of obstacles.slice(0, stepsShown))
    for (const line of breakLines(message, room)) session.print(`  ${line}`);
  // Only so many are looked for.
  if (obstacles.length > stepsShown)
    session.print(`  and at least ${plural(obstacles.length - stepsShown, "more", "more")}; --json names them`);
  throw error;
}

function hintOf(isUndone: boolean, [first, ...others]: readonly string[]): string {
  if (isUndone) return `\`${first} --apply\` takes that back, so that it holds again`;
  const rest = others.length === 0 ? "" : `, then ${listed(others.map((each) => `\`${each} --apply\``))}`;
  return `\`${first} --apply\`${rest} first`;
}
