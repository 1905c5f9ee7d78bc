/** `lcm restore`: lists backups, or replaces the database with one, after setting the old one aside. */

import { basename } from "node:path";
import { LcmError } from "../../core/base/errors.ts";
import { about, either, list, maybe, object, oneOf, text, whole } from "./_json.ts";
import { backupFields, planned } from "./_shapes.ts";
import { defineCommand, type Session } from "./_session.ts";
import { applyOptions, endAtPlan, isApplying } from "./_applying.ts";
import { backupLine, isSound, restoredLines, restoreLines } from "../../format/restore.ts";

const databaseFields = {
  ...backupFields,
  missingFiles: about(whole, "stored files that it should hold and does not"),
  format: oneOf("current", "outdated", "older_program", "newer", "damaged", "no_database"),
  contents: maybe(object({ conversations: whole, messages: whole, summaries: whole })),
};
const listJson = object({
  database: text,
  backups: list(object({ kind: oneOf("backup", "set-aside"), ...databaseFields })),
});
const restoreJson = planned(
  object({ from: object(databaseFields), replaces: maybe(object(databaseFields)), to: text }),
  object({ replaced: maybe(text), files: whole, missing: whole, pruned: list(text) }),
);

export const restoreCommand = defineCommand({
  name: "restore",
  json: either(listJson, restoreJson),
  summary: "list backups, or replace the database with one",
  description:
    "Replace the database with a backup, even if the database is damaged or missing. The backup is verified before " +
    "anything is changed. The current file is set aside first; the newest three set-aside files are kept, besides all " +
    "backups.",
  arguments: [["[from]", "the backup; without it, list those next to the database"]],
  options: {
    ...applyOptions,
    partial: ["--partial", "restore everything else if stored files are missing from the backup"],
  },
  examples: [
    ["lcm restore", "list backups"],
    ["lcm restore lcm.db.backup-20260217T073700Z", "show what would be replaced"],
    ["lcm restore lcm.db.backup-20260217T073700Z --apply", "replace it"],
  ],
  async run(session, options, from?: string) {
    const applying = isApplying(options);
    if (from === undefined) {
      if (!applying) return await listAll(session);
      throw new LcmError("invalid", "missing: which backup", { hint: "list backups with `lcm restore`" });
    }
    const plan = await session.database.planRestore(from);
    if (!session.json) for (const line of restoreLines(plan)) session.print(line);
    if (!applying)
      return endAtPlan(
        session,
        applying,
        plan,
        "nothing was changed; pass --apply to do it and set the current file aside",
      );
    const result = await session.database.restore(plan, options.partial === true);
    if (session.json) return session.printJson(restoreJson, { dryRun: false, applied: true, plan, result });
    for (const line of restoredLines(plan, result)) session.print(line);
    if (result.pruned.length > 0) session.note(`removed older files that were set aside: ${result.pruned.join(", ")}`);
    if (plan.from.format === "older_program")
      session.note("it was made by an older lossless-claw; convert it with `lcm adopt`");
  },
});

/** Newest first. */
async function listAll({ database, json, print, printJson, note, typed }: Session): Promise<void> {
  const found = (await database.restorable()).toReversed();
  if (json) printJson(listJson, { database: database.path, backups: found });
  else if (found.length === 0)
    print(
      typed(`no backups next to ${database.path}${database.kind() === "none" ? "" : "; make one with `lcm backup`"}`),
    );
  else {
    for (const copy of found) print(backupLine(copy));
    const [sound] = found.filter(isSound);
    if (sound !== undefined)
      note(`\`lcm restore ${basename(sound.path)}\` shows what it would replace; add --apply to restore it`);
  }
}
