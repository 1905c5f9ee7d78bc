/**
 * Describes the changes in the journal, one line each and step by step, and plans their undo.
 * A change is everything that one command did.
 */

import type { JournalFilter, Obstacle } from "../model/changes.ts";
import { LcmError } from "../base/errors.ts";
import { isSummaryId, parseMessageId } from "../model/types.ts";
import type { ConversationId, JournalEntry, Operation, SummaryId, Touched } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { formatCount, plural } from "../base/format.ts";
import type { Timestamp } from "../base/time.ts";

export interface Change {
  readonly change: number;
  /** When it started. */
  readonly at: Timestamp;
  readonly operation: Operation;
  /** Empty for a change of the whole file. */
  readonly conversations: readonly ConversationId[];
  readonly what: string;
  readonly state: "holds" | "undone" | "partly undone" | "for good";
  /** The changes that undid it, or parts of it. */
  readonly undoneBy: readonly number[];
  /** The change that it undid, if it is an undo. */
  readonly undoes: number | null;
  /** The command that undoes it, or redoes it if it is undone; null if it is permanent. */
  readonly wayBack: string | null;
  /** Oldest first. */
  readonly steps: readonly ChangeStep[];
}

export interface ChangeStep {
  readonly conversation: ConversationId | null;
  readonly subject: string;
  readonly what: string;
  /** The text of a summary before and after, if that changed. */
  readonly texts: { readonly before: string; readonly after: string } | null;
  readonly undoneBy: number | null;
}

/** Newest first. A filter by conversation selects the changes that touched it, with all their steps. */
export async function history(store: Store, filter: JournalFilter = {}): Promise<readonly Change[]> {
  const entries = await store.journal(filter);
  const numbers = [...new Set(entries.map(({ change }) => change))];
  const whole = filter.conversation === undefined ? Map.groupBy(entries, ({ change }) => change) : null;
  return await Promise.all(
    numbers.map(async (change) => await describeChange(store, whole?.get(change) ?? (await store.journal({ change })))),
  );
}

export interface PlannedUndo {
  /** What is undone: the change, the rest of it, or its part of one summary. */
  readonly undoing: Change;
  readonly summary: SummaryId | null;
  readonly obstacles: readonly (Obstacle & {
    /** The command that removes the obstacle, if there is one. */
    readonly remedy: string | null;
  })[];
  /** The command that redoes it, if that is not `lcm undo` of the new change. */
  readonly again: string | null;
}

export interface AppliedUndo {
  readonly plan: PlannedUndo;
  /** The new change; null if an obstacle prevented it, and then nothing has changed. */
  readonly change: number | null;
}

/** `not_found` if there is no such change, or if it did nothing to this summary. */
export async function planUndo(store: Store, change: number, summary?: SummaryId): Promise<PlannedUndo> {
  const { entries, obstacles } = await store.planUndo(change, summary);
  const undoing = await describeChange(store, entries.length > 0 ? entries : await store.journal({ change }));
  const remedies = await Promise.all(obstacles.map(async (obstacle) => await remedyOf(store, change, obstacle)));
  return {
    undoing,
    summary: summary ?? null,
    obstacles: obstacles.map((obstacle, at) => ({ ...obstacle, remedy: remedies[at] ?? null })),
    again: undoing.operation === "transplant" ? copyAgain(undoing.steps[0]?.subject ?? "") : null,
  };
}

export async function undo(store: Store, change: number, summary?: SummaryId): Promise<AppliedUndo> {
  const plan = await planUndo(store, change, summary);
  if (plan.obstacles.length > 0) return { plan, change: null };
  const outcome = await store.undo(change, summary);
  if (outcome.kind === "undone") return { plan, change: outcome.change };
  return { plan: await planUndo(store, change, summary), change: null };
}

async function remedyOf(store: Store, own: number, { change, cover, subject }: Obstacle): Promise<string | null> {
  if (change !== null) return change === own ? `lcm undo ${own} --summary ${subject}` : `lcm undo ${change}`;
  if (cover === null) return null;
  const [summary] = await store.summaries({ ids: [cover] });
  // A summary written from the text must be purged; one that only occupies the place must be dissolved.
  return summary === undefined
    ? null
    : `lcm dissolve ${summary.conversation} --summary ${cover}${cover === subject ? " --purge" : ""}`;
}

/** `entries` are all its steps, newest first. */
async function describeChange(store: Store, entries: readonly JournalEntry[]): Promise<Change> {
  const ordered = entries.toReversed();
  const [first] = ordered;
  if (first === undefined) throw new LcmError("corrupt", "the journal contains a change without steps");
  const depths = await depthsOf(store, ordered);
  const state = stateOf(entries);
  const undoneBy = [...new Set(entries.flatMap((entry) => entry.undoneBy ?? []))].toSorted((a, b) => a - b);
  const { undoes } = first;
  const undone = undoes === null ? [] : await store.journal({ change: undoes });
  return {
    change: first.change,
    at: first.at,
    operation: first.operation,
    conversations: [...new Set(entries.flatMap(({ conversation }) => conversation ?? []))].toSorted((a, b) => a - b),
    what:
      undoes === null ? describeSteps(first.operation, ordered, depths) : describeUndo(undoes, undone, entries.length),
    state,
    undoneBy,
    undoes,
    wayBack: wayBackOf(first, state, undoneBy),
    steps: ordered.map((step) => ({
      conversation: step.conversation,
      subject: step.subject,
      what: describeSteps(step.operation, [step], depths),
      texts: textsOf(step),
      undoneBy: step.undoneBy,
    })),
  };
}

function stateOf(entries: readonly JournalEntry[]): Change["state"] {
  if (entries.some(({ operation }) => operation === "forget" || operation === "prune")) return "for good";
  // Removed copies are not restored, but copied again.
  if (entries.some(({ operation, subject }) => operation === "undo" && copyAgain(subject) !== null)) return "for good";
  const undone = entries.filter(({ undoneBy }) => undoneBy !== null).length;
  return undone === 0 ? "holds" : undone === entries.length ? "undone" : "partly undone";
}

function wayBackOf(
  { change, operation, subject }: JournalEntry,
  state: Change["state"],
  undoneBy: readonly number[],
): string | null {
  const copying = copyAgain(subject);
  switch (state) {
    case "for good":
      return operation === "undo" ? copying : null;
    case "undone":
      return copying ?? `lcm undo ${undoneBy.at(-1)}`;
    case "holds":
    case "partly undone":
      return `lcm undo ${change}`;
  }
}

/** Transplants are journalled as `source → target`. */
function copyAgain(subject: string): string | null {
  const [, source, target] = /^(\d+) → (\d+)$/.exec(subject) ?? [];
  return source === undefined || target === undefined ? null : `lcm transplant ${source} ${target}`;
}

function describeUndo(change: number, steps: readonly JournalEntry[], taken: number): string {
  const operation = steps[0]?.operation;
  const named = `change ${change}${operation === undefined ? "" : ` (${operation})`}`;
  return steps.length > taken ? `undid part of ${named}` : `undid ${named}`;
}

type Depths = ReadonlyMap<string, number>;

async function depthsOf(store: Store, steps: readonly JournalEntry[]): Promise<Depths> {
  const ids = steps.map(({ subject }) => subject).filter(isSummaryId);
  const summaries = await store.summaries({ ids: [...new Set(ids)] });
  return new Map(summaries.map(({ id, depth }) => [id, depth]));
}

function describeSteps(operation: Operation, steps: readonly JournalEntry[], depths: Depths): string {
  if (operation === "rewrite" || operation === "repair") return describeRewrite(steps, depths);
  if (operation === "fix") return describeFix(steps);
  return steps.map((step) => describers[operation](step, depths)).join("; ");
}

const describers = {
  dissolve: describeDissolve,
  transplant: describeTransplant,
  pin: ({ subject }: JournalEntry) => `${subject} pinned`,
  unpin: ({ subject }: JournalEntry) => `${subject} unpinned`,
  undo: describeUndoStep,
  forget: describeRemoval,
  prune: describeRemoval,
};

/** A step of an undo is described by what it did to the rows. */
function describeUndoStep(step: JournalEntry, depths: Depths): string {
  const { subject, before, after } = step;
  if (textsOf(step) !== null) return describeRewrite([step], depths);
  if (isPlaced(after, subject) && !isPlaced(before, subject)) return `${subject} put back in place`;
  if (isPlaced(before, subject)) return describeDissolve(step);
  if (before.rows.messages > 0 && subject.includes(" → ")) return `${describeTransplant(step)}: copies removed`;
  if (parseMessageId(subject) !== null) return `the pin of ${subject} restored`;
  return describeFix([step]).replace(/^fixed/, "restored");
}

const isPlaced = ({ places }: Touched, subject: string): boolean => places.some((id) => id === subject);

const summaryIn = ({ summaries }: Touched, id: string): Touched["summaries"][number] | undefined =>
  summaries.find((summary) => summary.id === id);

/** Compares the first text of each summary with its last, however often a change has rewritten it. */
function describeRewrite(steps: readonly JournalEntry[], depths: Depths): string {
  const bySummary = Map.groupBy(steps, ({ subject }) => subject);
  const tokens = [...bySummary].map(([id, of]) => ({
    before: of.slice(0, 1).map(({ before }) => summaryIn(before, id)?.tokens)[0] ?? null,
    after: of.slice(-1).map(({ after }) => summaryIn(after, id)?.tokens)[0] ?? null,
  }));
  const [id = ""] = bySummary.keys();
  const depth = depths.get(id);
  const one = depth === undefined ? id : `${id} d${depth}`;
  const whose = bySummary.size > 1 ? plural(bySummary.size, "summary", "summaries") : one;
  if (tokens.some(({ before, after }) => before === null || after === null)) return `${whose}, text since forgotten`;
  const sum = (of: "before" | "after"): string => formatCount(tokens.reduce((all, each) => all + (each[of] ?? 0), 0));
  return `${whose}${bySummary.size > 1 ? "," : ""} ${sum("before")} → ${sum("after")} tokens`;
}

function describeDissolve({ subject, before, after }: JournalEntry): string {
  const shown = new Set(before.places);
  const items = after.places.filter((id) => !shown.has(id)).length;
  const isPurged = summaryIn(before, subject) !== undefined && summaryIn(after, subject) === undefined;
  const words = [...(items === 0 ? [] : [`dissolved into ${plural(items, "item")}`]), ...(isPurged ? ["removed"] : [])];
  return `${subject} ${words.join(", ")}`.trimEnd();
}

function describeTransplant({ subject, after: { rows } }: JournalEntry): string {
  return `${subject}, ${plural(rows.summaries, "summary", "summaries")}, ${plural(rows.messages, "message")}`;
}

function describeFix(steps: readonly JournalEntry[]): string {
  const sum = (kind: keyof Touched["rows"]): number => steps.reduce((all, { after }) => all + after.rows[kind], 0);
  const kinds = [
    [sum("summaries"), "summary", "summaries"],
    [sum("messages"), "message", "messages"],
    [sum("links"), "link", "links"],
    [sum("places"), "context item", "context items"],
  ] as const;
  const words = [
    ...kinds.flatMap(([count, one, many]) => (count === 0 ? [] : [plural(count, one, many)])),
    ...(steps.some(({ hasTotals }) => hasTotals) ? ["totals"] : []),
  ];
  const subjects = [...new Set(steps.map(({ subject }) => subject))];
  if (words.length === 0) return `fixed: ${subjects.join(", ")}`;
  return `fixed: ${[words.join(", "), ...subjects.filter((each) => / stays? removed$/.test(each))].join("; ")}`;
}

const namedMax = 10;

/** Only numbers are left of deleted rows. */
function describeRemoval({ subject, removed, marked }: JournalEntry): string {
  if (removed.length > 0 && removed.length <= namedMax)
    return `conversation${removed.length === 1 ? "" : "s"} ${removed.join(", ")}`;
  return marked.length === 0 ? subject : `${subject}, ${plural(marked.length, "summary", "summaries")} to rewrite`;
}

function textsOf({ subject, before, after }: JournalEntry): ChangeStep["texts"] {
  const [old, now] = [summaryIn(before, subject)?.text, summaryIn(after, subject)?.text];
  return typeof old === "string" && typeof now === "string" ? { before: old, after: now } : null;
}
