/** Shared by commands that change something: dry runs, --apply, the backup before it, and how to undo it. */

import { LcmError } from "../../core/base/errors.ts";
import { anything } from "./_json.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import { planned } from "./_shapes.ts";
import type { Session } from "./_session.ts";

export const applyOptions = {
  apply: ["--apply", "apply the plan; without it, only show the plan"],
  dryRun: ["--dry-run", "only show the plan (the default)"],
} as const satisfies OptionTable;

export const backupOption = {
  backup: ["--no-backup", "skip the backup before --apply"],
} as const satisfies OptionTable;

export function isApplying({ apply, dryRun }: OptionsOf<typeof applyOptions>): boolean {
  if (apply === true && dryRun === true) {
    throw new LcmError("invalid", "--dry-run and --apply exclude each other", { hint: "pass only one of them" });
  }
  return apply === true;
}

/** What changes are protected by instead. */
const noBackup = "no backup is made: the database is on a server, which makes its own";

/** Returns the path of the backup; null for `--no-backup`, and for a database on a server, which has its own. */
export async function backUpFirst(
  session: Session,
  { backup }: OptionsOf<typeof backupOption>,
): Promise<string | null> {
  if (backup === false) return null;
  if (session.database.place.kind === "server") {
    if (!session.json) session.note(session.paint.soft(noBackup));
    return null;
  }
  const { path, pruned } = await session.database.backup(undefined);
  if (!session.json) {
    session.note(session.paint.soft(`backup: ${path}`));
    if (pruned.length > 0) session.note(session.paint.soft(`removed older backups: ${pruned.join(", ")}`));
  }
  return path;
}

const unchanged = "nothing was changed; pass --apply to do it";

/** Ends a dry run, or a command with nothing to do; the latter needs no `note`. */
export function endAtPlan(session: Session, applying: boolean, plan: unknown, note: string | null = unchanged): void {
  if (session.json) session.printJson(planned(anything, anything), { dryRun: !applying, applied: false, plan });
  else if (note !== null) session.note(note);
}

export const noteUndo = ({ note, paint }: Session, change: number): void =>
  note(`${paint.soft("change")} ${change}${paint.soft(":")} undo it with \`lcm undo ${change} --apply\``);
