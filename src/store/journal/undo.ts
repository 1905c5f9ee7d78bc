/**
 * Undoes a change: puts every row back as it was, newest step first, in one transaction. Only possible while each row is
 * as the change left it and nothing was written from it since. An undo is itself a change and can be undone.
 */

import type { Obstacle } from "../../core/model/changes.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { JournalEntry, SummaryId } from "../../core/model/types.ts";
import { replaceRows, stateOf, type Trace } from "./record.ts";
import { steps, type StoredStep } from "./read.ts";
import { sql, type ReadScript, type Script, type ScriptDeps, type WriteScript } from "../script.ts";
import { final, isSame, obstaclesTo, undoneAlready } from "./undo-obstacles.ts";

export const planUndo: ReadScript<"planUndo"> = function* (change, summary) {
  const { left, obstacles } = yield* look(change, summary);
  return { change, summary: summary ?? null, entries: left.map(({ entry }) => entry), obstacles };
};

interface Look {
  /** Steps that are not undone yet. */
  readonly left: readonly StoredStep[];
  readonly obstacles: readonly Obstacle[];
}

function* look(change: number, summary: SummaryId | undefined): Script<Look> {
  const known = (yield* steps({ change })).filter(({ entry }) => summary === undefined || entry.subject === summary);
  const [newest] = known;
  if (newest === undefined) {
    const what = summary === undefined ? `there is no change ${change}` : `change ${change} did nothing to ${summary}`;
    throw new LcmError("not_found", what, { hint: "run `lcm history` to list the changes" });
  }
  const left = known.filter(({ entry }) => entry.undoneBy === null);
  if (left.length === 0) return { left, obstacles: [undoneAlready(newest.entry)] };
  const obstacles = yield* obstaclesTo(left);
  const isIdle = obstacles.length === 0 && left.every(changesNothing);
  return { left, obstacles: isIdle ? [idle(newest.entry)] : obstacles };
}

const changesNothing = ({ after }: StoredStep): boolean => after?.rows.length === 0 && after.totals === undefined;

const idle = (entry: JournalEntry): Obstacle =>
  final(entry, "it only removed orphaned rows or updated the search index; the backup made before it has those rows");

export const undo: WriteScript<"undo"> = function* (deps, change, summary) {
  const { left, obstacles } = yield* look(change, summary);
  if (obstacles.length > 0) return { kind: "blocked", obstacles };
  let undoing: number | undefined;
  for (const step of left) undoing = yield* undoStep(deps, step, undoing);
  if (undoing === undefined) throw new LcmError("corrupt", `change ${change} has no steps`);
  yield* settle(left.map(({ entry }) => entry));
  return { kind: "undone", change: undoing, entries: left.length };
};

function* undoStep(
  deps: ScriptDeps,
  { entry, before, after }: StoredStep,
  undoing: number | undefined,
): Script<number> {
  const { conversation, subject } = entry;
  if (before === null || after === null)
    throw new LcmError("corrupt", `step ${entry.id} of the journal cannot be read`);
  const isUntouched = isSame(yield* stateOf(conversation), after.conversation);
  const partOf = undoing === undefined ? {} : { partOf: { change: undoing } };
  const step = { operation: "undo", conversation, subject, undoes: entry.change, ...partOf } as const;
  const totals = after.totals === undefined ? undefined : negated(after.totals);
  const change = yield* replaceRows(deps, step, before.rows, {
    totals,
    state: isUntouched ? before.conversation : null,
  });
  yield sql`UPDATE journal SET undone_by = ${change} WHERE journal_id = ${entry.id}`;
  return change;
}

/** Undoing an undo restores the change that it had undone, whose own undone change is undone again, and so on. */
function* settle(entries: readonly JournalEntry[]): Script<void> {
  const subjects = [...new Set(entries.map(({ subject }) => subject))];
  let by = entries[0]?.change ?? 0;
  let undone = entries[0]?.undoes ?? null;
  for (let holds = true; undone !== null; holds = !holds) {
    const [was, is] = holds ? [by, null] : [null, by];
    yield sql`UPDATE journal SET undone_by = ${is} WHERE change_id = ${undone}
                AND subject IN (SELECT value FROM texts_in(${subjects})) AND undone_by IS NOT DISTINCT FROM ${was}`;
    by = undone;
    const [row] =
      yield sql`SELECT json_number(after_json, '$.undoes') AS undoes FROM journal WHERE change_id = ${undone} LIMIT 1`;
    undone = typeof row?.["undoes"] === "number" ? row["undoes"] : null;
  }
}

const negated = (totals: NonNullable<Trace["totals"]>): NonNullable<Trace["totals"]> =>
  Object.fromEntries(Object.entries(totals).map(([name, by]) => [name, -by]));
