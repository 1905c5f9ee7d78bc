/** `lcm prune`: old conversations, deleted for good or put into an archive that `lcm import` brings back. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Pruned, PrunePlan, PruneRequest } from "../../core/maintenance/prune.ts";
import { parseWhen } from "../../core/base/parse-time.ts";
import { applyOptions, backUpFirst, backupOption, endAtPlan, isApplying } from "./_applying.ts";
import { nameOf } from "../../format/conversations.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import { defineCommand, withLcm } from "./_session.ts";
import type { Session } from "./_session.ts";
import { formatBytes, formatCount, listed, plural } from "../../core/base/format.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { breakLines } from "../../format/width.ts";
import { table } from "../../format/table.ts";
import { clockTime } from "../../format/times.ts";
import { oneLine } from "../../format/safe-text.ts";

const flags = {
  olderThan: ["--older-than <age>", "nothing was said for so long, or since a day: 90d, 12w, 1y, 2026-01-01"],
  match: ["--match <pattern>", "the session key or session id is like this; * stands for anything"],
  hidden: ["--hidden", "the session was deleted in the host"],
  archive: ["--archive <file>", "put them into this file first, a database of its own"],
  delete: ["--delete", "only delete them"],
  ...applyOptions,
  ...backupOption,
} as const satisfies OptionTable;

type PruneCommandOptions = OptionsOf<typeof flags>;

export const pruneCommand = defineCommand({
  name: "prune",
  summary: "take old conversations out: into an archive, or for good",
  description:
    "Take old conversations out of the database, with all that belongs to them: into an archive, or for good. What is " +
    "said here adds up: only conversations that meet all of it go.",
  arguments: [["[conversation...]", "only these: numbers, session keys or session ids"]],
  options: flags,
  examples: [
    ["lcm prune --older-than 1y", "what would go, and how much space returns"],
    ["lcm prune --older-than 1y --archive old.db --apply", "take it out"],
    ["lcm import old.db", "bring it back"],
    ["lcm --db old.db grep invoice", "or only look into it"],
    ["lcm prune --match 'agent:*:cron:*' --older-than 30d --delete --apply", "for good"],
  ],
  notes:
    "`lcm undo` does not bring back what was pruned; the archive does, or the backup that is made first: " +
    "`lcm import` takes either.",
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
          session.note(session.paint.soft("deleting, and giving the space back …"));
      },
      onReplan: (again) => {
        session.note("a conversation changed meanwhile: planned again");
        if (!session.json) printPlan(session, again, options);
      },
    });
    if (session.json) {
      const { plan: done = plan, ...rest } = result ?? {};
      session.printJson({ dryRun: false, applied: result !== null, plan: done, result: result && rest, backup });
    } else if (result !== null) printResult(session, result, backup);
    else if (archive !== undefined) session.note(`nothing was deleted; ${archive} is out of date, and can go`);
  });
}

/** Undefined for `--delete`, and as long as it is not said in a dry run. */
function archivePath(options: PruneCommandOptions, applying: boolean): string | undefined {
  const { archive, delete: deleting } = options;
  if (archive !== undefined && deleting === true)
    throw new LcmError("invalid", "--archive and --delete contradict each other", { hint: "give one of them" });
  if (archive?.trim() === "") throw new LcmError("invalid", "--archive names no file", { hint: "for example old.db" });
  if (applying && !isDecided(options)) {
    throw new LcmError("invalid", "--apply wants to know what becomes of them", {
      hint: "--archive FILE puts them into a file that `lcm import` brings back; --delete deletes them",
    });
  }
  if (archive !== undefined && existsSync(archive))
    throw new LcmError("conflict", `${resolve(archive)} exists already`, { hint: "name another file" });
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

/** Whoever writes `6m` means months, and must not get minutes; nor does anybody mean a day that is yet to come. */
function parseAge(text: string, zone: string, now: Timestamp): Timestamp {
  if (/^\d+[mh]$/i.test(text.trim())) {
    throw new LcmError("invalid", `--older-than is ${JSON.stringify(text)}, and counts in days, weeks or years`, {
      hint: "six months are 26w or 180d",
    });
  }
  const when = parseWhen("--older-than", text, zone, now);
  if (when <= now) return when;
  throw new LcmError("invalid", `--older-than is ${JSON.stringify(text)}, which is yet to come`, {
    hint: "every conversation is older than that; name a day in the past",
  });
}

// ── Showing it ───────────────────────────────────────────────────────────────────────────────────────────────────────

const rowsShown = 50;

function printPlan(session: Session, { conversations, totals }: PrunePlan, options: PruneCommandOptions): void {
  const { print, note, paint, columns, context } = session;
  if (conversations.length === 0) return print("no conversation is like that: nothing to do");
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
  const going = `${contentsOf(totals)} to go${whereTo(options)}: ${spaceOf(totals)}`;
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

const whereTo = ({ archive, delete: deleting }: PruneCommandOptions): string =>
  archive !== undefined ? ` into ${resolve(archive)}` : deleting === true ? " for good" : "";

const contentsOf = ({ conversations, messages, summaries }: PrunePlan["totals"]): string =>
  `${plural(conversations, "conversation")} with ${plural(messages, "message")} and ${plural(summaries, "summary", "summaries")}`;

const spaceOf = ({ bytes, files, fileBytes }: PrunePlan["totals"]): string =>
  `about ${formatBytes(bytes)} of the database${files === 0 ? "" : `, and ${plural(files, "stored file")} of ${formatBytes(fileBytes)}`}`;

const isDecided = ({ archive, delete: deleting }: PruneCommandOptions): boolean =>
  archive !== undefined || deleting === true;
const undecided = "nothing was changed; --archive FILE --apply takes them out, --delete --apply deletes them";

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
      `the file is as large as before, with ${formatBytes(reusable)} free in it for what comes next: another program has ` +
        "it open, or the disk is full. The next prune gives the space back if it can.",
    );
  }
  const source = archive?.path ?? backup;
  const them = plan.totals.conversations === 1 ? "it" : "them";
  if (source !== null) note(`\`lcm import ${source}\` brings ${them} back`);
}
