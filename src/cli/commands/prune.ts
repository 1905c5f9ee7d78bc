/** `lcm prune`: deletes old conversations, or moves them to an archive that `lcm import` can restore. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Pruned, PrunePlan, PruneRequest } from "../../core/maintenance/prune.ts";
import { parseAge } from "../../core/base/parse-time.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying } from "./_applying.ts";
import { pruneLines, prunedLines } from "../../format/prune.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import { flag, list, maybe, object, text, time, whole } from "./_json.ts";
import { planned } from "./_shapes.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { formatBytes } from "../../core/base/format.ts";

const flags = {
  olderThan: [
    "--older-than <age>",
    "select conversations inactive for this long, or since this day: 90d, 12w, 1y, 2026-01-01",
  ],
  match: ["--match <pattern>", "select by session key or session id; * matches anything"],
  hidden: ["--hidden", "select conversations whose session was deleted in the host"],
  archive: ["--archive <file>", "move them to this file, a new database"],
  delete: ["--delete", "delete them permanently"],
  ...applyOptions,
  ...backupOption,
} as const satisfies OptionTable;

type PruneCommandOptions = OptionsOf<typeof flags>;

const json = planned(
  object({
    conversations: list(
      object({
        conversation: whole,
        revision: whole,
        title: maybe(text),
        sessionKey: maybe(text),
        sessionId: text,
        active: flag,
        hidden: flag,
        messages: whole,
        summaries: whole,
        lastActivityAt: time,
        bytes: whole,
        files: whole,
        fileBytes: whole,
        warnings: list(text),
      }),
    ),
    totals: object({
      conversations: whole,
      messages: whole,
      summaries: whole,
      bytes: whole,
      files: whole,
      fileBytes: whole,
    }),
  }),
  maybe(
    object({
      change: whole,
      bytes: whole,
      reusable: whole,
      archive: maybe(object({ path: text, bytes: whole, files: whole })),
    }),
  ),
);

export const pruneCommand = defineCommand({
  name: "prune",
  json,
  summary: "archive or delete old conversations",
  description:
    "Archive or delete old conversations, with everything that belongs to them. Only conversations that match all given " +
    "options are selected.",
  arguments: [["[conversation...]", "only these: numbers, session keys or session ids"]],
  options: flags,
  examples: [
    ["lcm prune --older-than 1y", "show what would be removed, and how much space that frees"],
    ["lcm prune --older-than 1y --archive old.db --apply", "archive it"],
    ["lcm import old.db", "restore it"],
    ["lcm --db old.db grep invoice", "search the archive"],
    ["lcm prune --match 'agent:*:cron:*' --older-than 30d --delete --apply", "delete permanently"],
  ],
  notes:
    "`lcm undo` cannot restore pruned conversations; `lcm import` can, from the archive or from the backup that is made " +
    "first.",
  run: pruneAll,
});

async function pruneAll(session: Session, options: PruneCommandOptions, ...names: readonly string[]): Promise<void> {
  const applying = isApplying(options);
  const archive = archivePath(options, applying);
  return await withLcm(session, applying ? "change" : "apart", async (lcm) => {
    const request = await requestOf(session, lcm, options, names);
    const plan = await lcm.planPrune(request);
    if (!session.json) printPlan(session, plan, options);
    if (plan.conversations.length === 0) return endAtPlan(session, applying, plan, null);
    if (!applying) return endAtPlan(session, applying, plan, isDecided(options) ? undefined : undecided);
    let backup: string | null = null;
    const result = await lcm.prune(request, plan, {
      ...(archive === undefined ? {} : { archive }),
      beforeDeleting: async () => {
        backup = await backUpFirst(session, options);
        if (session.context.stderr.isTerminal && !session.json)
          session.note(session.paint.soft("deleting and shrinking the file …"));
      },
      onReplan: (again) => {
        session.note("a conversation changed meanwhile; here is the new plan");
        if (!session.json) printPlan(session, again, options);
      },
    });
    if (session.json) {
      if (result === null) return session.printJson(json, { dryRun: false, applied: false, plan, result, backup });
      const { plan: done, ...rest } = result;
      session.printJson(json, { dryRun: false, applied: true, plan: done, result: rest, backup });
    } else if (result !== null) printResult(session, result, backup);
    else if (archive !== undefined) session.note(`nothing was deleted; ${archive} is out of date and can be removed`);
  });
}

/** Undefined for `--delete`, and in a dry run without `--archive`. */
function archivePath(options: PruneCommandOptions, applying: boolean): string | undefined {
  const { archive, delete: deleting } = options;
  if (archive !== undefined && deleting === true)
    throw new LcmError("invalid", "--archive and --delete exclude each other", { hint: "pass only one of them" });
  if (archive?.trim() === "")
    throw new LcmError("invalid", "--archive needs a file name", { hint: "for example --archive old.db" });
  if (applying && !isDecided(options)) {
    throw new LcmError("invalid", "--apply needs --archive or --delete", {
      hint: "pass --archive FILE to move them to a file that `lcm import` can restore, or --delete to delete them",
    });
  }
  if (archive !== undefined && existsSync(archive))
    throw new LcmError("conflict", `${resolve(archive)} already exists`, { hint: "choose another file" });
  return archive === undefined ? undefined : resolve(archive);
}

async function requestOf(
  session: Session,
  lcm: Lcm,
  { olderThan, match, hidden }: PruneCommandOptions,
  names: readonly string[],
): Promise<PruneRequest> {
  const { zone, clock } = session.context;
  const named = [];
  for (const name of names) named.push((await lcm.find(name)).id);
  return {
    ...(olderThan === undefined ? {} : { olderThan: parseAge("--older-than", olderThan, zone, clock.now()) }),
    ...(match === undefined ? {} : { pattern: match }),
    ...(hidden === true ? { hidden } : {}),
    ...(named.length === 0 ? {} : { conversations: named }),
  };
}

function printPlan(session: Session, plan: PrunePlan, options: PruneCommandOptions): void {
  const { print, note, paint, context } = session;
  for (const line of pruneLines(session, plan, actionWords(options))) print(line);
  if (plan.conversations.length > 0) note(paint.soft(`times in ${context.zone}`));
}

const actionWords = ({ archive, delete: deleting }: PruneCommandOptions): string =>
  archive !== undefined
    ? `to archive in ${resolve(archive)}`
    : deleting === true
      ? "to delete permanently"
      : "selected";

const isDecided = ({ archive, delete: deleting }: PruneCommandOptions): boolean =>
  archive !== undefined || deleting === true;
const undecided =
  "nothing was changed; pass --archive FILE --apply to archive them, or --delete --apply to delete them";

function printResult(session: Session, result: Pruned, backup: string | null): void {
  const { print, note } = session;
  const { archive, plan, bytes, reusable } = result;
  for (const line of prunedLines(result)) print(line);
  if (bytes === 0 && reusable > 0) {
    note(
      `the file keeps its size, with ${formatBytes(reusable)} free for new data: another program has it open, or the disk ` +
        "is full. The next prune tries again to shrink it.",
    );
  }
  const source = archive?.path ?? backup;
  const them = plan.totals.conversations === 1 ? "it" : "them";
  if (source !== null) note(`restore ${them} with \`lcm import ${source}\``);
}
