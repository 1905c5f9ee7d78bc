/** `lcm move`: copies a database file to a PostgreSQL server, or back to a file. */

import { formatCount, plural, shellPath } from "../../core/base/format.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { Move, MovedConversation, MovePlan } from "../../core/model/database-file.ts";
import type { ConversationId } from "../../core/model/types.ts";
import { bareName } from "../../format/conversations.ts";
import { table } from "../../format/table.ts";
import { exitInterrupted, exitUnavailable } from "../failure.ts";
import { applyOptions, endAtPlan, isApplying } from "./_applying.ts";
import { flag, list, maybe, object, text, whole } from "./_json.ts";
import type { OptionsOf, OptionTable } from "./_options.ts";
import { defineCommand, exitFindings, exitOk, type Session } from "./_session.ts";
import { planned } from "./_shapes.ts";
import { stoppedBy } from "./_stopping.ts";

const flags = {
  to: ["--to <where>", "the new database: postgres://… or a file"],
  from: ["--from <where>", "move this database (default: as configured)"],
  ...applyOptions,
} as const satisfies OptionTable;

const differing = list(object({ conversation: whole, table: text, rows: whole }));
const json = planned(
  object({
    from: text,
    to: text,
    conversations: list(
      object({
        conversation: whole,
        title: maybe(text),
        sessionKey: maybe(text),
        sessionId: text,
        messages: whole,
        summaries: whole,
        isThere: flag,
      }),
    ),
  }),
  maybe(
    object({
      moved: whole,
      alreadyThere: whole,
      left: whole,
      rows: whole,
      files: whole,
      missingFiles: whole,
      differing,
    }),
  ),
);

export const moveCommand = defineCommand({
  name: "move",
  json,
  summary: "copy a database to a PostgreSQL server, or back to a file",
  description:
    "Copy every conversation of a database file to a PostgreSQL server, or of a server to a file, with everything that " +
    "belongs to it. Each is copied whole and compared row by row. Stop it at any time and run it again to continue. The " +
    "original stays as it is.",
  options: flags,
  examples: [
    ["lcm move --to postgres://lcm@db.example.org/agents", "show what would be moved"],
    ["lcm move --to postgres://lcm@db.example.org/agents --apply", "move your database to a server"],
    ["lcm move --from postgres://lcm@db.example.org/agents --to lcm.db --apply", "move it back to a file"],
  ],
  notes:
    "Stop the hosts that use the database first: what they store meanwhile is not moved. Exit status 1: what an earlier " +
    "run has moved is no longer the same in both.",
  run: moveAll,
});

async function moveAll(session: Session, options: OptionsOf<typeof flags>): Promise<number> {
  const { context } = session;
  if (options.to === undefined)
    throw new LcmError("invalid", "Where to? Pass --to", {
      hint: "for example --to postgres://lcm@db.example.org/agents",
    });
  const applying = isApplying(options);
  const from = options.from === undefined ? session.database : await context.database(options.from);
  const to = await context.database(options.to);
  const move = await context.openMove(from.place, to.place, !applying);
  try {
    const plan = { from: from.path, to: to.path, ...(await move.plan()) };
    if (!session.json) printPlan(session, plan);
    if (!applying) {
      const isDone = plan.conversations.length > 0 && plan.conversations.every(({ isThere }) => isThere);
      endAtPlan(session, applying, plan, isDone ? "pass --apply to compare them row by row" : undefined);
      return exitOk;
    }
    const result = await carryOut(session, move, plan);
    if (session.json) session.printJson(json, { dryRun: false, applied: true, plan, result });
    else printResult(session, result, plan);
    if (session.signal.aborted) return stoppedBy(session.signal) === "interrupt" ? exitInterrupted : exitUnavailable;
    return result.differing.length === 0 ? exitOk : exitFindings;
  } finally {
    await move.close();
  }
}

type NamedPlan = MovePlan & { readonly from: string; readonly to: string };

interface Result extends MovedConversation {
  readonly moved: number;
  readonly alreadyThere: number;
  readonly left: number;
  readonly differing: readonly { readonly conversation: number; readonly table: string; readonly rows: number }[];
}

async function carryOut(session: Session, move: Move, { conversations }: MovePlan): Promise<Result> {
  const progress = session.progress("moving");
  const of = conversations.reduce((sum, { messages }) => sum + messages, 0);
  const done = { moved: 0, alreadyThere: 0, rows: 0, files: 0, missingFiles: 0, messages: 0 };
  const differing: Result["differing"][number][] = [];
  try {
    for (const { conversation, messages, isThere } of conversations) {
      if (session.signal.aborted) break;
      progress.update({ done: done.messages, of, unit: "messages", detail: `conversation ${conversation}` });
      if (isThere) {
        done.alreadyThere += 1;
        for (const [name, rows] of Object.entries(await move.compare(conversation)))
          differing.push({ conversation, table: name, rows });
      } else {
        const copied = await copyUnlessStopped(session, move, conversation, (rows) =>
          progress.update({ done: done.messages + rows, of, unit: "messages", detail: `conversation ${conversation}` }),
        );
        if (copied === null) break;
        done.moved += 1;
        done.rows += copied.rows;
        done.files += copied.files;
        done.missingFiles += copied.missingFiles;
      }
      done.messages += messages;
    }
    const left = conversations.length - done.moved - done.alreadyThere;
    if (left === 0) await move.finish();
    const { messages: _, ...counted } = done;
    return { ...counted, left, differing };
  } finally {
    progress.end();
  }
}

class Stop extends Error {}

/** Null if the command was stopped; then nothing of the conversation is there. */
async function copyUnlessStopped(
  { signal }: Session,
  move: Move,
  conversation: ConversationId,
  onMessages: (messages: number) => void,
): Promise<MovedConversation | null> {
  let messages = 0;
  try {
    return await move.copy(conversation, (name, rows) => {
      if (signal.aborted) throw new Stop("stopped");
      onMessages((messages += name === "messages" ? rows : 0));
    });
  } catch (error) {
    if (error instanceof Stop) return null;
    throw error;
  }
}

function printPlan(session: Session, { conversations, from, to }: NamedPlan): void {
  const columns = [
    { title: "id", align: "right" },
    { title: "conversation", flexible: true },
    { title: "messages", align: "right" },
    { title: "summaries", align: "right" },
    { title: "" },
  ] as const;
  const cells = conversations.map((each) => [
    String(each.conversation),
    bareName(each),
    formatCount(each.messages),
    formatCount(each.summaries),
    each.isThere ? "already there" : "",
  ]);
  for (const line of table(columns, cells, session.bounds, session.paint)) session.print(line);
  const waiting = conversations.filter(({ isThere }) => !isThere);
  const messages = waiting.reduce((sum, each) => sum + each.messages, 0);
  session.print();
  session.print(
    waiting.length === 0 && conversations.length > 0
      ? `every conversation of ${from} is at ${to} already`
      : `${plural(waiting.length, "conversation")} with ${plural(messages, "message")} to move from ${from} to ${to}`,
  );
}

function printResult(session: Session, result: Result, { from, to }: NamedPlan): void {
  const { moved, alreadyThere, left, rows, files, missingFiles, differing } = result;
  const before = alreadyThere === 0 ? "" : `; ${formatCount(alreadyThere)} were there already`;
  session.print(
    `moved ${plural(moved, "conversation")}: ${plural(rows, "row")} and ${plural(files, "file")}, each compared${before}`,
  );
  if (missingFiles > 0) session.note(`${plural(missingFiles, "file")} had no content to move`);
  for (const { conversation, table: name, rows: count } of differing)
    session.note(`conversation ${conversation} differs in ${plural(count, "row")} of ${name}: one was changed since`);
  if (left > 0)
    session.print(session.paint.caution(`stopped: ${plural(left, "conversation")} to do; run it again to continue`));
  else session.note(`${from} is unchanged; to use the new one, set ${variableFor(to)}`);
  if (moved > 0)
    session.note(`hosts build its search index in the background; \`lcm index --db ${shellPath(to)}\` builds it now`);
}

const variableFor = (to: string): string =>
  to.startsWith("postgres") ? `LCM_DATABASE_URL or databaseUrl to ${to}` : `LCM_DATABASE_PATH to ${to}`;
