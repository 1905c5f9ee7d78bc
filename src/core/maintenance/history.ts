/**
 * What operators have done, told from the journal: one line for each change, which is all that one command did, and what
 * it did step by step. Taking a change back begins with the same words, and with what stands in the way.
 */

import type { Obstacle } from "../model/changes.ts";
import { LcmError } from "../base/errors.ts";
import { isSummaryId } from "../model/types.ts";
import type { ConversationId, JournalEntry, Operation, SummaryId, Touched } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { formatCount, plural } from "../base/format.ts";
import type { Timestamp } from "../base/time.ts";

export interface Change {
  readonly change: number;
  /** When it began. */
  readonly at: Timestamp;
  readonly operation: Operation;
  /** None for what concerns the whole file. */
  readonly conversations: readonly ConversationId[];
  /** What it did, in one line. */
  readonly what: string;
  readonly state: "holds" | "undone" | "partly undone" | "for good";
  /** The changes that took it back, or parts of it. */
  readonly undoneBy: readonly number[];
  /** The change that it took back, if it is an undo. */
  readonly undoes: number | null;
  /** The command that takes it back, or does it again if it is undone; null for what is for good. */
  readonly wayBack: string | null;
  /** Oldest first. */
  readonly steps: readonly ChangeStep[];
}

export interface ChangeStep {
  readonly conversation: ConversationId | null;
  readonly subject: string;
  readonly what: string;
  /** What a summary said before and after, where that is what changed. */
  readonly texts: { readonly before: string; readonly after: string } | null;
  readonly undoneBy: number | null;
}

export interface HistoryFilter {
  /** Changes that did something to it; all of what they did is told. */
  readonly conversation?: ConversationId;
  readonly change?: number;
  readonly limit?: number;
}

/** Newest first. */
export async function history(store: Store, filter: HistoryFilter = {}): Promise<readonly Change[]> {
  const entries = await store.journal(filter);
  const numbers = [...new Set(entries.map(({ change }) => change))];
  const whole = filter.conversation === undefined ? Map.groupBy(entries, ({ change }) => change) : null;
  return await Promise.all(
    numbers.map(async (change) => await told(store, whole?.get(change) ?? (await store.journal({ change })))),
  );
}

// ── Taking back ──────────────────────────────────────────────────────────────────────────────────────────────────────

export interface PlannedUndo {
  /** What is taken back: the change, or what is left of it, or its part of one summary. */
  readonly undoing: Change;
  readonly summary: SummaryId | null;
  readonly obstacles: readonly (Obstacle & {
    /** The command that takes the obstacle away, if there is one. */
    readonly remedy: string | null;
  })[];
  /** The command that does again what this takes back, if that is not `lcm undo` of the change that this makes. */
  readonly again: string | null;
}

export interface AppliedUndo {
  readonly plan: PlannedUndo;
  /** The change that this is; null if something stands in the way, and then nothing has changed. */
  readonly change: number | null;
}

/** `not_found` if there is no such change, or if it did nothing to this summary. */
export async function planUndo(store: Store, change: number, summary?: SummaryId): Promise<PlannedUndo> {
  const { entries, obstacles } = await store.planUndo(change, summary);
  const undoing = await told(store, entries.length > 0 ? entries : await store.journal({ change }));
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
  // What was written from a text that is to go must go itself; what merely stands in a place has only to leave it.
  return summary === undefined
    ? null
    : `lcm dissolve ${summary.conversation} --summary ${cover}${cover === subject ? " --purge" : ""}`;
}

// ── One change in words ──────────────────────────────────────────────────────────────────────────────────────────────

/** From all of its steps, newest first. */
async function told(store: Store, entries: readonly JournalEntry[]): Promise<Change> {
  const ordered = entries.toReversed();
  const [first] = ordered;
  if (first === undefined) throw new LcmError("corrupt", "a change without steps is in the journal");
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
    what: undoes === null ? whatOf(first.operation, ordered, depths) : undoWords(undoes, undone, entries.length),
    state,
    undoneBy,
    undoes,
    wayBack: wayBackOf(first, state, undoneBy),
    steps: ordered.map((step) => ({
      conversation: step.conversation,
      subject: step.subject,
      what: whatOf(step.operation, [step], depths),
      texts: textsOf(step),
      undoneBy: step.undoneBy,
    })),
  };
}

function stateOf(entries: readonly JournalEntry[]): Change["state"] {
  if (entries.some(({ operation }) => operation === "forget" || operation === "prune")) return "for good";
  // Copies that were removed are made again.
  if (entries.some(({ operation, subject }) => operation === "undo" && copyAgain(subject) !== null)) return "for good";
  const undone = entries.filter(({ undoneBy }) => undoneBy !== null).length;
  return undone === 0 ? "holds" : undone === entries.length ? "undone" : "partly undone";
}

/** Copies are not brought back once they are removed: they are made again. */
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

function undoWords(change: number, steps: readonly JournalEntry[], taken: number): string {
  const operation = steps[0]?.operation;
  const named = `change ${change}${operation === undefined ? "" : ` (${operation})`}`;
  return steps.length > taken ? `took back part of ${named}` : `took back ${named}`;
}

type Depths = ReadonlyMap<string, number>;

async function depthsOf(store: Store, steps: readonly JournalEntry[]): Promise<Depths> {
  const ids = steps.map(({ subject }) => subject).filter(isSummaryId);
  const summaries = await store.summaries({ ids: [...new Set(ids)] });
  return new Map(summaries.map(({ id, depth }) => [id, depth]));
}

function whatOf(operation: Operation, steps: readonly JournalEntry[], depths: Depths): string {
  if (operation === "rewrite" || operation === "repair") return rewriteWords(steps, depths);
  if (operation === "fix") return fixWords(steps);
  return steps.map((step) => stepWords[operation](step, depths)).join("; ");
}

const stepWords = {
  dissolve: dissolveWords,
  transplant: transplantWords,
  undo: takenBackWords,
  forget: goneWords,
  prune: goneWords,
};

/** A step of an undo is told by what it did to the rows. */
function takenBackWords(step: JournalEntry, depths: Depths): string {
  const { subject, before, after } = step;
  if (textsOf(step) !== null) return rewriteWords([step], depths);
  if (stands(after, subject) && !stands(before, subject)) return `${subject} back in its place`;
  if (stands(before, subject)) return dissolveWords(step);
  if (before.rows.messages > 0 && subject.includes(" → ")) return `${transplantWords(step)}: the copies removed`;
  return fixWords([step]).replace(/^set right/, "as before");
}

const stands = ({ places }: Touched, subject: string): boolean => places.some((id) => id === subject);

const summaryIn = ({ summaries }: Touched, id: string): Touched["summaries"][number] | undefined =>
  summaries.find((summary) => summary.id === id);

/** One summary is told by its first text and its last, however often a change has rewritten it. */
function rewriteWords(steps: readonly JournalEntry[], depths: Depths): string {
  const bySummary = Map.groupBy(steps, ({ subject }) => subject);
  const tokens = [...bySummary].map(([id, of]) => ({
    before: of.slice(0, 1).map(({ before }) => summaryIn(before, id)?.tokens)[0] ?? null,
    after: of.slice(-1).map(({ after }) => summaryIn(after, id)?.tokens)[0] ?? null,
  }));
  const [id = ""] = bySummary.keys();
  const depth = depths.get(id);
  const one = depth === undefined ? id : `${id} d${depth}`;
  const whose = bySummary.size > 1 ? plural(bySummary.size, "summary", "summaries") : one;
  if (tokens.some(({ before, after }) => before === null || after === null)) return `${whose}, text forgotten since`;
  const sum = (of: "before" | "after"): string => formatCount(tokens.reduce((all, each) => all + (each[of] ?? 0), 0));
  return `${whose}${bySummary.size > 1 ? "," : ""} ${sum("before")} → ${sum("after")} tokens`;
}

function dissolveWords({ subject, before, after }: JournalEntry): string {
  const shown = new Set(before.places);
  const items = after.places.filter((id) => !shown.has(id)).length;
  const isPurged = summaryIn(before, subject) !== undefined && summaryIn(after, subject) === undefined;
  const words = [...(items === 0 ? [] : [`opened up into ${plural(items, "item")}`]), ...(isPurged ? ["removed"] : [])];
  return `${subject} ${words.join(", ")}`.trimEnd();
}

function transplantWords({ subject, after: { rows } }: JournalEntry): string {
  return `${subject}, ${plural(rows.summaries, "summary", "summaries")}, ${plural(rows.messages, "message")}`;
}

/** What was set right, by the kind of row. */
function fixWords(steps: readonly JournalEntry[]): string {
  const sum = (kind: keyof Touched["rows"]): number => steps.reduce((all, { after }) => all + after.rows[kind], 0);
  const kinds = [
    [sum("summaries"), "summary", "summaries"],
    [sum("messages"), "message", "messages"],
    [sum("links"), "link", "links"],
    [sum("places"), "place of the context", "places of the context"],
  ] as const;
  const words = [
    ...kinds.flatMap(([count, one, many]) => (count === 0 ? [] : [plural(count, one, many)])),
    ...(steps.some(({ hasTotals }) => hasTotals) ? ["totals"] : []),
  ];
  const subjects = [...new Set(steps.map(({ subject }) => subject))];
  if (words.length === 0) return `set right: ${subjects.join(", ")}`;
  return `set right: ${[words.join(", "), ...subjects.filter((each) => / stays? removed$/.test(each))].join("; ")}`;
}

const namedMax = 10;

/** Of what is gone there are only numbers. */
function goneWords({ subject, removed, marked }: JournalEntry): string {
  if (removed.length > 0 && removed.length <= namedMax)
    return `conversation${removed.length === 1 ? "" : "s"} ${removed.join(", ")}`;
  return marked.length === 0 ? subject : `${subject}, ${plural(marked.length, "summary", "summaries")} to be rewritten`;
}

function textsOf({ subject, before, after }: JournalEntry): ChangeStep["texts"] {
  const [old, now] = [summaryIn(before, subject)?.text, summaryIn(after, subject)?.text];
  return typeof old === "string" && typeof now === "string" ? { before: old, after: now } : null;
}
