/**
 * Writes are dry runs until `--apply` says otherwise; saying both is a mistake, and not ours to resolve. Before something
 * is changed a backup is made, once for a command, and afterwards it is said how to take the change back.
 */

import { LcmError } from "../../core/base/errors.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import type { Session } from "./_session.ts";

export const applyOptions = {
  apply: ["--apply", "do it; otherwise only what would be done is shown"],
  dryRun: ["--dry-run", "only show what would be done, which is the default"],
} as const satisfies OptionTable;

export const backupOption = { backup: ["--no-backup", "make no backup before --apply"] } as const satisfies OptionTable;

export function isApplying({ apply, dryRun }: OptionsOf<typeof applyOptions>): boolean {
  if (apply === true && dryRun === true) {
    throw new LcmError("invalid", "--dry-run and --apply contradict each other", { hint: "give one of them" });
  }
  return apply === true;
}

/** The path of the backup, or null for `--no-backup`. */
export async function backUpFirst(
  session: Session,
  { backup }: OptionsOf<typeof backupOption>,
): Promise<string | null> {
  if (backup === false) return null;
  const { path, pruned } = await session.database.backup(undefined);
  if (!session.json) {
    session.note(session.paint.soft(`backup: ${path}`));
    if (pruned.length > 0) session.note(session.paint.soft(`the newest three are kept; removed: ${pruned.join(", ")}`));
  }
  return path;
}

const unchanged = "nothing was changed; --apply does it";

/** Where only the plan is told: in a dry run, and where it holds nothing to do, which needs no `note`. */
export function endAtPlan(session: Session, applying: boolean, plan: unknown, note: string | null = unchanged): void {
  if (session.json) session.printJson({ dryRun: !applying, applied: false, plan });
  else if (note !== null) session.note(note);
}

export const sayUndo = ({ note, paint }: Session, change: number): void =>
  note(`${paint.soft("change")} ${change}${paint.soft(":")} \`lcm undo ${change} --apply\` takes it back`);
