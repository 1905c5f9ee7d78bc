/** `lcm prune`: old conversations, deleted for good or put into an archive that `lcm import` brings back. */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "commander";
import { LcmError } from "../../core/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Timestamp } from "../../core/model.ts";
import type { Pruned, PrunePlan, PruneRequest } from "../../core/prune.ts";
import { formatBytes, formatCount } from "../../core/text.ts";
import { parseWhen } from "../../core/when.ts";
import { breakLines, clockTime, listed, oneLine, plural, table } from "../../show/render.ts";
import { applyOptions, backUpFirst, backupOption, isApplying, sayNothingChanged } from "./applying.ts";
import { nameOf } from "../../show/conversations.ts";
import { exitOk, withLcm } from "./session.ts";
import type { CommandDefinition, CommonOptions, Session } from "./session.ts";

interface PruneCommandOptions {
  readonly olderThan?: string;
  readonly match?: string;
  readonly hidden?: boolean;
  readonly archive?: string;
  readonly delete?: boolean;
}

export const pruneCommand: CommandDefinition = {
  name: "prune",
  summary: "take old conversations out: into an archive, or for good",
  description:
    "Take old conversations out of the database, with all that belongs to them: into an archive, or for good. What is " +
    "said here adds up: only conversations that meet all of it go.",
  options: (command) =>
    command
      .argument("[conversation...]", "only these: numbers, session keys or session ids")
      .option("--older-than <age>", "nothing was said for so long, or since a day: 90d, 12w, 1y, 2026-01-01")
      .option("--match <pattern>", "the session key or session id is like this; * stands for anything")
      .option("--hidden", "the session was deleted in the host")
      .option("--archive <file>", "put them into this file first, a database of its own")
      .option("--delete", "only delete them"),
  shared: [...applyOptions, backupOption],
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
};

async function pruneAll(session: Session, command: Command, ...names: readonly string[]): Promise<number> {
  const options = command.opts<PruneCommandOptions>();
  const applying = isApplying(command);
  const archive = archivePath(options, applying);
  return await withLcm(session, applying ? "write" : "read", async (lcm) => {
    const request = await requestOf(session, lcm, options, names);
    const plan = await lcm.planPrune(request);
    if (!session.json) printPlan(session, plan, options);
    if (!applying || plan.conversations.length === 0) {
      if (session.json) session.printJson({ dryRun: !applying, applied: false, plan });
      else if (plan.conversations.length > 0) sayHow(session, options);
      return exitOk;
    }
    let backup: string | null = null;
    const result = await lcm.prune(request, plan, {
      ...(archive === undefined ? {} : { archive }),
      beforeDeleting: async () => {
        backup = await backUpFirst(session, command);
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
    } else if (result !== null) printResult(session, result, backup, command.optsWithGlobals<CommonOptions>().db);
    else if (archive !== undefined) session.note(`nothing was deleted; ${archive} is out of date, and can go`);
    return exitOk;
  });
}

/** Undefined for `--delete`, and as long as it is not said in a dry run. */
function archivePath({ archive, delete: deleting }: PruneCommandOptions, applying: boolean): string | undefined {
  if (archive !== undefined && deleting === true)
    throw new LcmError("invalid", "--archive and --delete contradict each other", { hint: "give one of them" });
  if (archive?.trim() === "") throw new LcmError("invalid", "--archive names no file", { hint: "for example old.db" });
  if (applying && archive === undefined && deleting !== true) {
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

function sayHow(session: Session, { archive, delete: deleting }: PruneCommandOptions): void {
  if (archive !== undefined || deleting === true) sayNothingChanged(session);
  else session.note("nothing was changed; --archive FILE --apply takes them out, --delete --apply deletes them");
}

function printResult(session: Session, result: Pruned, backup: string | null, db: string | undefined): void {
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
  const back = `lcm ${db === undefined ? "" : `--db ${db} `}import ${source}`;
  if (source !== null) note(`\`${back}\` brings ${plan.totals.conversations === 1 ? "it" : "them"} back`);
}
