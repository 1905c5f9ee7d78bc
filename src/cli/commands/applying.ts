/** Writes are dry runs until `--apply` says otherwise. Saying both is a mistake, and not ours to resolve. */

import type { Command } from "commander";
import { LcmError } from "../../core/errors.ts";

interface ApplyingOptions {
  readonly apply?: boolean;
  readonly dryRun?: boolean;
}

export const addApplying = (command: Command): Command =>
  command
    .option("--apply", "do it; otherwise only what would be done is shown")
    .option("--dry-run", "only show what would be done, which is the default");

export function isApplying(command: Command): boolean {
  const { apply, dryRun } = command.opts<ApplyingOptions>();
  if (apply === true && dryRun === true) {
    throw new LcmError("invalid", "--dry-run and --apply contradict each other", { hint: "give one of them" });
  }
  return apply === true;
}
