/**
 * Writes are dry runs until `--apply` says otherwise; saying both is a mistake, and not ours to resolve. Before something
 * is changed a backup is made, once for a command, and afterwards it is said how to take the change back.
 */

import type { Command } from "commander";
import { LcmError } from "../../core/errors.ts";
import type { SharedOption } from "./options.ts";
import type { Session } from "./session.ts";

interface ApplyingOptions {
  readonly apply?: boolean;
  readonly dryRun?: boolean;
  /** False for `--no-backup`. */
  readonly backup?: boolean;
}

export const applyOptions: readonly SharedOption[] = [
  ["--apply", "do it; otherwise only what would be done is shown"],
  ["--dry-run", "only show what would be done, which is the default"],
];

export const backupOption: SharedOption = ["--no-backup", "make no backup before --apply"];

export function isApplying(command: Command): boolean {
  const { apply, dryRun } = command.opts<ApplyingOptions>();
  if (apply === true && dryRun === true) {
    throw new LcmError("invalid", "--dry-run and --apply contradict each other", { hint: "give one of them" });
  }
  return apply === true;
}

/** The path of the backup, or null for `--no-backup`. */
export async function backUpFirst(session: Session, command: Command): Promise<string | null> {
  if (command.opts<ApplyingOptions>().backup === false) return null;
  const { path, pruned } = await session.database.backup(undefined);
  if (!session.json) {
    session.note(session.paint.soft(`backup: ${path}`));
    if (pruned.length > 0) session.note(session.paint.soft(`the newest three are kept; removed: ${pruned.join(", ")}`));
  }
  return path;
}

export const sayNothingChanged = ({ note }: Session): void => note("nothing was changed; --apply does it");

export const sayUndo = ({ note, paint }: Session, change: number): void =>
  note(`${paint.soft("change")} ${change}${paint.soft(":")} \`lcm undo ${change} --apply\` takes it back`);
