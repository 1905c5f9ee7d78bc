/** `lcm restore`: a backup in the place of the database, which is itself set aside first; without a name, which there are. */

import { basename } from "node:path";
import { LcmError } from "../../core/base/errors.ts";
import { defineCommand } from "./_session.ts";
import type { DatabaseFacts, Restorable, RestorePlan, Session } from "./_session.ts";
import { applyOptions, endAtPlan, isApplying } from "./_applying.ts";
import { formatBytes, listed, plural } from "../../core/base/format.ts";

export const restoreCommand = defineCommand({
  name: "restore",
  summary: "list the backups, or put one in the place of the database",
  description:
    "Put a backup in the place of the database, also of one that is damaged or gone. What is there now is set aside " +
    "first; of what restores set aside the newest three are kept, and backups are not counted among them.",
  arguments: [["[from]", "the backup; left out, those beside the database are listed"]],
  options: applyOptions,
  examples: [
    ["lcm restore", "which backups there are"],
    ["lcm restore lcm.db.backup-20260217T073700Z", "what would be replaced"],
    ["lcm restore lcm.db.backup-20260217T073700Z --apply", "replace it"],
  ],
  async run(session, options, from?: string) {
    const applying = isApplying(options);
    if (from === undefined) {
      if (!applying) return list(session);
      throw new LcmError("invalid", "no backup is named", { hint: "`lcm restore` lists them" });
    }
    const plan = await session.database.planRestore(from);
    if (!session.json) for (const line of planLines(plan)) session.print(line);
    if (!applying)
      return endAtPlan(
        session,
        applying,
        plan,
        "nothing was changed; --apply does it, and sets aside what is there now",
      );
    const result = await session.database.restore(plan);
    if (session.json) return session.printJson({ dryRun: false, applied: true, plan, result });
    session.print(`restored ${plan.to}`);
    if (result.files > 0) session.print(`with ${plural(result.files, "stored file")}`);
    if (result.replaced !== null) session.print(`what was there before is now ${result.replaced}`);
    if (result.pruned.length > 0)
      session.note(`of what was set aside the newest three are kept; removed: ${result.pruned.join(", ")}`);
    if (plan.from.format === "older_program")
      session.note("it was made by an older lossless-claw: `lcm adopt` moves it over");
  },
});

/** The newest first: it is the one that is wanted. */
function list({ database, json, print, printJson, note, typed }: Session): void {
  const found = database.restorable().toReversed();
  if (json) printJson({ database: database.path, backups: found });
  else if (found.length === 0) print(typed(`there is no backup beside ${database.path}; \`lcm backup\` makes one`));
  else {
    for (const copy of found) print(`${kindWords[copy.kind]}  ${factsLine(copy)}`);
    const [sound] = found.filter(({ format }) => format !== "damaged" && format !== "no_database");
    if (sound !== undefined)
      note(`\`lcm restore ${basename(sound.path)}\` shows what that one would replace; --apply does it`);
  }
}

const kindWords: Readonly<Record<Restorable["kind"], string>> = { backup: "backup   ", "set-aside": "set aside" };

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
  no_database: "not a database",
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
