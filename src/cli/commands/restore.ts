/** `lcm restore`: a backup in the place of the database, which is itself backed up first. */

import type { Command } from "commander";
import { formatBytes } from "../../core/text.ts";
import { listed, plural } from "../../show/render.ts";
import { exitOk } from "./session.ts";
import type { CommandDefinition, DatabaseFacts, RestorePlan, Session } from "./session.ts";
import { applyOptions, isApplying } from "./applying.ts";

export const restoreCommand: CommandDefinition = {
  name: "restore",
  summary: "put a backup in the place of the database",
  description: "Put a backup in the place of the database. What is there now is backed up first.",
  options: (command) => command.argument("<from>", "the backup; `lcm status` lists those beside the database"),
  shared: applyOptions,
  examples: [
    ["lcm restore lcm.db.backup-20260217T073700Z", "what would be replaced"],
    ["lcm restore lcm.db.backup-20260217T073700Z --apply", "replace it"],
  ],
  run: restoreFrom,
};

async function restoreFrom(session: Session, command: Command, from: string): Promise<number> {
  const applying = isApplying(command);
  const plan = await session.database.planRestore(from);
  if (!session.json) for (const line of planLines(plan)) session.print(line);
  if (!applying) {
    if (session.json) session.printJson({ dryRun: true, applied: false, plan });
    else session.note("nothing was changed; --apply does it, after a backup of what is there now");
    return exitOk;
  }
  const result = await session.database.restore(plan);
  if (session.json) {
    session.printJson({ dryRun: false, applied: true, plan, result });
    return exitOk;
  }
  session.print(`restored ${plan.to}`);
  if (result.files > 0) session.print(`with ${plural(result.files, "stored file")}`);
  if (result.replaced !== null) session.print(`what was there before is now ${result.replaced}`);
  if (plan.from.format === "older_program")
    session.note("it was made by an older lossless-claw: `lcm adopt` moves it over");
  return exitOk;
}

const planLines = ({ from, replaces, to }: RestorePlan): readonly string[] => [
  `restore   ${factsLine(from)}`,
  replaces === null ? `to        ${to}, where there is nothing yet` : `replaces  ${factsLine(replaces)}`,
];

const formatWords: Readonly<Record<DatabaseFacts["format"], string>> = {
  current: "of the present format",
  outdated: "of an earlier format",
  older_program: "made by an older lossless-claw",
  newer: "made by a newer lossless-claw",
  damaged: "damaged",
};

function factsLine({ path, bytes, format, contents }: DatabaseFacts): string {
  if (contents === null) return `${path} (${formatBytes(bytes)}, ${formatWords[format]})`;
  const counts = listed([
    plural(contents.conversations, "conversation"),
    plural(contents.messages, "message"),
    plural(contents.summaries, "summary", "summaries"),
  ]);
  return `${path} (${formatBytes(bytes)}: ${counts})`;
}
