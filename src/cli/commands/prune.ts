/** `lcm prune`: deletes old conversations, or moves them to an archive that `lcm import` can restore. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Pruned, PrunePlan, PruneRequest } from "../../core/maintenance/prune.ts";
import { parseWhen } from "../../core/base/parse-time.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying } from "./_applying.ts";
import { nameOf } from "../../format/conversations.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import { defineCommand, withLcm, type Session } from "./_session.ts";
import { formatBytes, formatCount, listed, plural } from "../../core/base/format.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { breakLines } from "../../format/width.ts";
import { table } from "../../format/table.ts";
import { clockTime } from "../../format/times.ts";
import { oneLine } from "../../format/safe-text.ts";

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

export const pruneCommand = defineCommand({
  name: "prune",
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
  return await withLcm(session, applying ? "write" : "read", async (lcm) => {
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
      const { plan: done = plan, ...rest } = result ?? {};
      session.printJson({ dryRun: false, applied: result !== null, plan: done, result: result && rest, backup });
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
    ...(olderThan === undefined ? {} : { olderThan: parseAge(olderThan, zone, clock.now()) }),
    ...(match === undefined ? {} : { pattern: match }),
    ...(hidden === true ? { hidden } : {}),
    ...(named.length === 0 ? {} : { conversations: named }),
  };
}

/** Rejects `6m`, which would mean minutes where months are meant, and days in the future. */
function parseAge(text: string, zone: string, now: Timestamp): Timestamp {
  if (/^\d+[mh]$/i.test(text.trim())) {
    throw new LcmError("invalid", `--older-than takes days, weeks or years, not ${JSON.stringify(text)}`, {
      hint: "for six months, pass 26w or 180d",
    });
  }
  const when = parseWhen("--older-than", text, zone, now);
  if (when <= now) return when;
  throw new LcmError("invalid", `--older-than is in the future: ${JSON.stringify(text)}`, {
    hint: "pass a day in the past",
  });
}

const rowsShown = 50;

function printPlan(session: Session, { conversations, totals }: PrunePlan, options: PruneCommandOptions): void {
  const { print, note, paint, columns, context } = session;
  if (conversations.length === 0) return print("no matching conversations; nothing to do");
  const rows = conversations
    .slice(0, rowsShown)
    .map((each) => [
      String(each.conversation),
      each.title === null || each.sessionKey === null ? nameOf(each) : `${oneLine(each.sessionKey)} · ${nameOf(each)}`,
      formatCount(each.messages),
      formatCount(each.summaries),
      formatBytes(each.bytes + each.fileBytes),
      clockTime(each.lastActivityAt, context.zone),
    ]);
  const lines = table(
    [
      { title: "id", align: "right", paint: paint.strong },
      { title: "conversation", flexible: true },
      { title: "messages", align: "right" },
      { title: "summaries", align: "right" },
      { title: "size", align: "right" },
      { title: "last activity", paint: paint.soft },
    ],
    rows,
    context.stdout.columns,
    paint,
  );
  for (const line of lines) print(line);
  if (conversations.length > rows.length)
    print(`and ${formatCount(conversations.length - rows.length)} more; --json lists all`);
  print();
  const going = `${contentsOf(totals)} ${actionWords(options)}: ${spaceOf(totals)}`;
  for (const line of breakLines(going, columns)) print(line);
  const warned = Map.groupBy(
    conversations.flatMap(({ conversation, warnings }) => warnings.map((warning) => ({ conversation, warning }))),
    ({ warning }) => warning,
  );
  for (const [warning, those] of warned) {
    const ids = those.map(({ conversation }) => String(conversation));
    const which = `${ids.length === 1 ? "conversation" : "conversations"} ${listed(ids)}:`;
    for (const line of breakLines(`${paint.caution(which)} ${warning}`, columns)) print(line);
  }
  note(paint.soft(`times in ${context.zone}`));
}

const actionWords = ({ archive, delete: deleting }: PruneCommandOptions): string =>
  archive !== undefined
    ? `to archive in ${resolve(archive)}`
    : deleting === true
      ? "to delete permanently"
      : "selected";

const contentsOf = ({ conversations, messages, summaries }: PrunePlan["totals"]): string =>
  `${plural(conversations, "conversation")} with ${plural(messages, "message")} and ${plural(summaries, "summary", "summaries")}`;

const spaceOf = ({ bytes, files, fileBytes }: PrunePlan["totals"]): string =>
  `about ${formatBytes(bytes)} of the database${files === 0 ? "" : `, and ${plural(files, "stored file")} of ${formatBytes(fileBytes)}`}`;

const isDecided = ({ archive, delete: deleting }: PruneCommandOptions): boolean =>
  archive !== undefined || deleting === true;
const undecided =
  "nothing was changed; pass --archive FILE --apply to archive them, or --delete --apply to delete them";

function printResult(session: Session, result: Pruned, backup: string | null): void {
  const { print, note } = session;
  const { archive, plan, bytes, reusable } = result;
  if (archive !== null) {
    const files = archive.files === 0 ? "" : ` and ${plural(archive.files, "stored file")}`;
    print(`archived in ${archive.path}: ${formatBytes(archive.bytes)}${files}`);
  }
  const shrunk = bytes === 0 ? "" : `; the database is ${formatBytes(bytes)} smaller`;
  print(`deleted ${plural(plan.totals.conversations, "conversation")}${shrunk}`);
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
