/**
 * What operators have done, told from the journal: one line for each change, which is all that one command did, and what
 * it did step by step. Taking a change back begins with the same words, and with what stands in the way.
 */

import type { Obstacle } from "./changes.ts";
import { LcmError } from "./errors.ts";
import { isSummaryId } from "./model.ts";
import type { ConversationId, Json, JournalEntry, JsonObject, Operation, SummaryId, Timestamp } from "./model.ts";
import type { Store } from "./ports.ts";
import { formatCount } from "./text.ts";

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
  const traces = ordered.map((entry) => ({ entry, before: traceIn(entry.before), after: traceIn(entry.after) }));
  const depths = await depthsOf(store, traces);
  const state = stateOf(entries);
  const undoneBy = [...new Set(entries.flatMap((entry) => entry.undoneBy ?? []))].toSorted((a, b) => a - b);
  const undoes = traces[0]?.after.undoes ?? null;
  const undone = undoes === null ? [] : await store.journal({ change: undoes });
  return {
    change: first.change,
    at: first.at,
    operation: first.operation,
    conversations: [...new Set(entries.flatMap(({ conversation }) => conversation ?? []))].toSorted((a, b) => a - b),
    what: undoes === null ? whatOf(first.operation, traces, depths) : undoWords(undoes, undone, entries.length),
    state,
    undoneBy,
    undoes,
    wayBack: wayBackOf(first, state, undoneBy),
    steps: traces.map((step) => ({
      conversation: step.entry.conversation,
      subject: step.entry.subject,
      what: whatOf(step.entry.operation, [step], depths),
      texts: textsOf(step),
      undoneBy: step.entry.undoneBy,
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

interface Traced {
  readonly entry: JournalEntry;
  readonly before: Traces;
  readonly after: Traces;
}

type Depths = ReadonlyMap<string, number>;

async function depthsOf(store: Store, steps: readonly Traced[]): Promise<Depths> {
  const ids = steps.map(({ entry }) => entry.subject).filter(isSummaryId);
  const summaries = await store.summaries({ ids: [...new Set(ids)] });
  return new Map(summaries.map(({ id, depth }) => [id, depth]));
}

function whatOf(operation: Operation, steps: readonly Traced[], depths: Depths): string {
  switch (operation) {
    case "rewrite":
    case "repair":
      return rewriteWords(steps, depths);
    case "dissolve":
      return steps.map(dissolveWords).join("; ");
    case "transplant":
      return steps.map(transplantWords).join("; ");
    case "fix":
      return fixWords(steps);
    case "undo":
      return steps.map((step) => takenBackWords(step, depths)).join("; ");
    case "forget":
    case "prune":
      return steps.map(goneWords).join("; ");
  }
}

/** A step of an undo is told by what it did to the rows. */
function takenBackWords(step: Traced, depths: Depths): string {
  const { entry, before, after } = step;
  const { subject } = entry;
  if (textsOf(step) !== null) return rewriteWords([step], depths);
  if (after.places.includes(subject) && !before.places.includes(subject)) return `${subject} back in its place`;
  if (before.places.includes(subject)) return dissolveWords(step);
  if (before.count("messages") > 0 && subject.includes(" → ")) return `${transplantWords(step)}: the copies removed`;
  return fixWords([step]).replace(/^set right/, "as before");
}

const counted = (count: number, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`;

/** One summary is told by its first text and its last, however often a change has rewritten it. */
function rewriteWords(steps: readonly Traced[], depths: Depths): string {
  const bySummary = Map.groupBy(steps, ({ entry }) => entry.subject);
  const tokens = [...bySummary.values()].map((of) => ({
    before: of[0]?.before.summary(of[0].entry.subject)?.tokens ?? null,
    after: of.at(-1)?.after.summary(of[0]?.entry.subject ?? "")?.tokens ?? null,
  }));
  const [id = ""] = bySummary.keys();
  const depth = depths.get(id);
  const one = depth === undefined ? id : `${id} d${depth}`;
  const whose = bySummary.size > 1 ? counted(bySummary.size, "summary", "summaries") : one;
  if (tokens.some(({ before, after }) => before === null || after === null)) return `${whose}, text forgotten since`;
  const sum = (of: "before" | "after"): string => formatCount(tokens.reduce((all, each) => all + (each[of] ?? 0), 0));
  return `${whose}${bySummary.size > 1 ? "," : ""} ${sum("before")} → ${sum("after")} tokens`;
}

function dissolveWords({ entry, before, after }: Traced): string {
  const shown = new Set(before.places);
  const items = after.places.filter((id) => !shown.has(id)).length;
  const isPurged = before.summary(entry.subject) !== null && after.summary(entry.subject) === null;
  const words = [
    ...(items === 0 ? [] : [`opened up into ${counted(items, "item")}`]),
    ...(isPurged ? ["removed"] : []),
  ];
  return `${entry.subject} ${words.join(", ")}`.trimEnd();
}

const transplantWords = ({ entry, after }: Traced): string =>
  `${entry.subject}, ${counted(after.count("summaries"), "summary", "summaries")}, ${counted(after.count("messages"), "message")}`;

/** What was set right, by the kind of row. */
function fixWords(steps: readonly Traced[]): string {
  const sum = (table: string): number => steps.reduce((all, { after }) => all + after.count(table), 0);
  const kinds = [
    [sum("summaries"), "summary", "summaries"],
    [sum("messages"), "message", "messages"],
    [sum("summary_messages") + sum("summary_parents"), "link", "links"],
    [sum("context_items"), "place of the context", "places of the context"],
  ] as const;
  const words = [
    ...kinds.flatMap(([count, one, many]) => (count === 0 ? [] : [counted(count, one, many)])),
    ...(steps.some(({ after }) => after.hasTotals) ? ["totals"] : []),
  ];
  const named = words.length === 0 ? new Set(steps.map(({ entry }) => entry.subject)) : words;
  return `set right: ${[...named].join(", ")}`;
}

/** Of what is gone there are only numbers. */
function goneWords({ entry }: Traced): string {
  const after = objectIn(entry.after);
  const held = (name: string): readonly Json[] => {
    const ids = after[name];
    return Array.isArray(ids) ? ids : [];
  };
  const conversations = held("conversations");
  if (conversations.length > 0 && conversations.length <= namedMax)
    return `conversation${conversations.length === 1 ? "" : "s"} ${conversations.map(String).join(", ")}`;
  const marked = held("summaries").length;
  return marked === 0 ? entry.subject : `${entry.subject}, ${counted(marked, "summary", "summaries")} to be rewritten`;
}

const namedMax = 10;

function textsOf({ entry, before, after }: Traced): ChangeStep["texts"] {
  const [old, now] = [before.summary(entry.subject)?.text, after.summary(entry.subject)?.text];
  return typeof old === "string" && typeof now === "string" ? { before: old, after: now } : null;
}

// ── Reading the journal ──────────────────────────────────────────────────────────────────────────────────────────────

/** The rows of one side of a step. */
interface Traces {
  /** Null where it is not there. */
  summary(id: string): { readonly text: string | null; readonly tokens: number | null } | null;
  /** Ids of what stands in the context, of the places that were touched. */
  readonly places: readonly (string | number)[];
  /** How many rows of a table were touched. */
  count(table: string): number;
  readonly hasTotals: boolean;
  readonly undoes: number | null;
}

function traceIn(json: string): Traces {
  const { rows, totals, undoes } = objectIn(json);
  const images = (Array.isArray(rows) ? rows : []).filter(isObject);
  const of = (table: string): readonly JsonObject[] => images.filter((image) => image["table"] === table);
  return {
    summary(id) {
      const image = of("summaries").find(({ key }) => isObject(key) && key["summary_id"] === id);
      const columns = image?.["columns"];
      if (!isObject(columns)) return null;
      const { content, token_count: tokens } = columns;
      return {
        text: typeof content === "string" ? content : null,
        tokens: typeof tokens === "number" ? tokens : null,
      };
    },
    places: of("context_items").flatMap(({ columns }) => {
      const id = isObject(columns) ? (columns["summary_id"] ?? columns["message_id"]) : null;
      return typeof id === "string" || typeof id === "number" ? [id] : [];
    }),
    count: (table) => of(table).length,
    hasTotals: totals !== undefined,
    undoes: typeof undoes === "number" ? undoes : null,
  };
}

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function objectIn(json: string): JsonObject {
  const value: Json = JSON.parse(json);
  return isObject(value) ? value : {};
}
