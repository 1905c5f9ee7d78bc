/**
 * Journals the steps of a change as images of the rows it touched, before and after, and writes such images back.
 * Totals, checksums and search entries are derived from the rows, so no image contains them.
 */

import type { PartOf } from "../../core/model/changes.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId, Operation, SummaryId, Totals } from "../../core/model/types.ts";
import { renewChecksum } from "../checksums.ts";
import { reindex, reindexRow } from "../search/indexing.ts";
import { freshSearchId } from "../conversation/summary-rows.ts";
import { freshNumber } from "../registry.ts";
import { forgetAnswers } from "../ledger/map-answers.ts";
import { asConversation, asMessage } from "../rows.ts";
import { all, count, first, sql, statement, text, textOrNull } from "../script.ts";
import type { Row, Script, ScriptDeps, Value } from "../script.ts";
import { adjustTotals, totalsIn, type TotalsChange } from "../totals.ts";
import { forgottenMark } from "../../core/model/types.ts";

/** Rows with an identity of their own, and rows that only link them; links are always written whole. */
const entities = { messages: ["message_id"], summaries: ["summary_id"] } as const;
const ties = {
  message_parts: ["message_id", "ordinal"],
  summary_messages: ["summary_id", "message_id"],
  summary_parents: ["summary_id", "parent_summary_id"],
  context_items: ["conversation_id", "ordinal"],
  pins: ["conversation_id", "message_id"],
} as const;
const keys = { ...entities, ...ties };
export type Table = keyof typeof keys;

export type Columns = Readonly<Record<string, Value>>;

/** A row as it was or should be: some of its columns, or null if there is no such row. */
export interface Image {
  readonly table: Table;
  readonly key: Columns;
  readonly columns: Columns | null;
}

export interface Step {
  readonly operation: Operation;
  readonly conversation: ConversationId | null;
  readonly subject: string;
  readonly partOf?: PartOf | undefined;
  /** The change that it undoes. */
  readonly undoes?: number;
}

/** One side of a step, stored as JSON. */
export interface Trace {
  readonly rows: readonly Image[];
  /** Times of the conversation. */
  readonly conversation: Columns | null;
  /** What was added to totals to correct them. */
  readonly totals?: TotalsChange;
}

// ── Making a step ────────────────────────────────────────────────────────────────────────────────────────────────────

/** Does some work and journals how it changed these rows. `columns`: those that it may change; by default all. */
export function* recordWork<T>(
  deps: ScriptDeps,
  step: Step,
  watched: readonly { readonly table: Table; readonly key: Columns; readonly columns?: readonly string[] }[],
  work: Script<T>,
): Script<{ readonly change: number; readonly result: T }> {
  const before = yield* traceOf(step.conversation, watched);
  const result = yield* work;
  const after = yield* traceOf(step.conversation, watched);
  return { change: yield* journalStep(deps, step, before, after), result };
}

/**
 * Writes these images, with everything derived from them, and journals the step. `totals`: a correction besides;
 * `state`: the conversation's times. The content of removed copies is not journalled: their originals have it.
 */
export function* replaceRows(
  deps: ScriptDeps,
  step: Step,
  images: readonly Image[],
  { totals, state = null }: { readonly totals?: TotalsChange | undefined; readonly state?: Columns | null } = {},
): Script<number> {
  const isOfCopies = step.subject.includes(" → ");
  const watched = images.map(({ table, key, columns }) => ({
    table,
    key,
    ...(table in ties || (columns === null && !isOfCopies) ? {} : { columns: Object.keys(columns ?? {}) }),
  }));
  const before = yield* traceOf(step.conversation, watched);
  yield* put(deps, step.conversation, images, before.rows);
  if (totals !== undefined && step.conversation !== null) yield* adjustTotals(deps, step.conversation, totals);
  if (state !== null) {
    yield sql`UPDATE conversations SET updated_at = ${state["updated_at"] ?? null}
              WHERE conversation_id = ${step.conversation}`;
  }
  const after = { ...(yield* traceOf(step.conversation, watched)), ...(totals === undefined ? {} : { totals }) };
  return yield* journalStep(deps, step, before, after);
}

/** Returns the number of the change. */
export function* journalStep(
  deps: ScriptDeps,
  { operation, conversation, subject, partOf, undoes }: Step,
  before: Trace | object,
  after: Trace | object,
): Script<number> {
  const next = partOf?.change ?? (yield* freshNumber("changes"));
  yield sql`INSERT INTO journal (change_id, at, operation, conversation_id, subject, before_json, after_json)
            VALUES (${next}, ${deps.now()}, ${partOf?.operation ?? operation}, ${conversation}, ${subject},
                    ${JSON.stringify(before)}, ${JSON.stringify({ ...after, undoes })})`;
  return next;
}

/** Journals removed references to missing rows, which an undo cannot restore. */
export const journalGone = (
  deps: ScriptDeps,
  subject: string,
  gone: Readonly<Record<string, readonly Row[]>>,
  partOf?: PartOf,
): Script<number> =>
  journalStep(
    deps,
    { operation: "fix", conversation: null, subject, partOf },
    { rows: [], conversation: null, gone },
    { rows: [], conversation: null },
  );

/** Removes the previous text of a summary that covered something forgotten from its latest step. */
export function* forgetBefore(summary: SummaryId): Script<void> {
  yield sql`UPDATE journal SET before_json = ${JSON.stringify({ text: forgottenMark })} WHERE journal_id = (
              SELECT max(journal_id) FROM journal WHERE subject = ${summary})`;
}

// ── Reading rows ──────────────────────────────────────────────────────────────────────────────────────────────────────────

function* traceOf(
  conversation: ConversationId | null,
  watched: readonly { readonly table: Table; readonly key: Columns; readonly columns?: readonly string[] }[],
): Script<Trace> {
  const rows: Image[] = [];
  for (const { table, key, columns } of watched) rows.push({ table, key, columns: yield* rowAt(table, key, columns) });
  return { rows, conversation: yield* stateOf(conversation) };
}

/** Computed by the database, or again when the row is written. */
const derived: ReadonlySet<string> = new Set(["part_id", "seq", "checksum"]);

/** The row with this key: these columns, or all except the key; null if there is none. */
export function* rowAt(table: Table, key: Columns, columns?: readonly string[]): Script<Columns | null> {
  const [row] = yield statement(`SELECT * FROM ${table} WHERE ${conditions(table)}`, keyValues(table, key));
  if (row === undefined) return null;
  const names = columns ?? Object.keys(row).filter((name) => !(name in key) && !derived.has(name));
  return Object.fromEntries(names.map((name) => [name, row[name] ?? null]));
}

/** An undo restores these if nothing was written since. */
export const stateOf = (conversation: ConversationId | null): Script<Columns | null> =>
  first(sql`SELECT updated_at, last_message_at FROM conversations WHERE conversation_id = ${conversation}`, (row) => ({
    updated_at: text(row, "updated_at"),
    last_message_at: textOrNull(row, "last_message_at"),
  }));

// ── Writing rows ───────────────────────────────────────────────────────────────────────────────────────────────

/** Links are removed first and inserted last, so that no link ever refers to a missing row. */
function* put(
  deps: ScriptDeps,
  conversation: ConversationId | null,
  images: readonly Image[],
  before: readonly Image[],
): Script<void> {
  const totalsBefore = yield* totalsOf(conversation, images);
  const links = images.filter(({ table }) => table in ties);
  const rows = images.flatMap((image, at) =>
    image.table in ties ? [] : [{ image, was: before[at]?.columns ?? null }],
  );
  for (const { table, key } of links) yield* remove(table, key);
  // Summaries go before their sources, and messages last.
  const going = rows.filter(({ image, was }) => image.columns === null && was !== null).toReversed();
  for (const { image } of going) if (image.table === "summaries") yield* removeEntity(image);
  for (const { image } of going) if (image.table === "messages") yield* removeEntity(image);
  for (const { image, was } of rows) if (image.columns !== null) yield* store(image, was);
  for (const image of links) if (image.columns !== null) yield* insertRow(image.table, image.key, image.columns);
  for (const { image, was } of rows)
    if (image.columns !== null && (was === null || "content" in image.columns))
      yield* derive(image.table === "messages" ? "messages" : "summaries", idIn(image));
  if (conversation === null) return;
  const totalsAfter = yield* totalsOf(conversation, images);
  const names = Object.keys(totalsAfter) as readonly (keyof Totals)[];
  const change = names.map((name) => [name, totalsAfter[name] - totalsBefore[name]] as const);
  yield* adjustTotals(deps, conversation, Object.fromEntries(change));
  if (rows.some(({ image, was }) => image.table === "messages" && (image.columns === null || was === null))) {
    yield sql`UPDATE conversations SET last_message_at = (
                SELECT max(created_at) FROM messages WHERE conversation_id = ${conversation})
              WHERE conversation_id = ${conversation}`;
  }
}

/** Brings what follows from the text of a row up to date. */
function* derive(table: "messages" | "summaries", id: number | string): Script<void> {
  yield* renewChecksum(table, id);
  yield* reindex(table, id);
}

function* remove(table: Table, key: Columns): Script<void> {
  yield statement(`DELETE FROM ${table} WHERE ${conditions(table)}`, keyValues(table, key));
}

/** Also deletes its parts, pin, words, drafts and search entry; links of a summary are deleted by the foreign key. */
export function* removeEntity({ table, key }: Pick<Image, "table" | "key">): Script<void> {
  if (table === "messages") {
    const id = Number(key["message_id"]);
    yield sql`DELETE FROM message_parts WHERE message_id = ${id}`;
    yield* forgetAnswers(asMessage(id));
    yield sql`DELETE FROM search_words WHERE message_id = ${id}`;
    yield sql`DELETE FROM pins WHERE message_id = ${id} AND conversation_id = ${id} >> 24`;
    yield* remove(table, key);
    yield* reindexRow("messages", id, null);
    return;
  }
  const number = yield* count(sql`SELECT search_id FROM summaries WHERE summary_id = ${key["summary_id"] ?? null}`);
  yield sql`DELETE FROM drafts WHERE summary_id = ${key["summary_id"] ?? null}`;
  yield* remove(table, key);
  yield* reindexRow("summaries", number, null);
}

function* store({ table, key, columns }: Image, was: Columns | null): Script<void> {
  if (columns === null) return;
  if (was === null) {
    yield* insertRow(table, key, table === "summaries" ? yield* withSearchId(columns) : columns);
  } else if (Object.keys(columns).length > 0) {
    const names = Object.keys(columns).map(plain);
    yield statement(`UPDATE ${table} SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE ${conditions(table)}`, [
      ...names.map((name) => columns[name] ?? null),
      ...keyValues(table, key),
    ]);
  }
}

/** Images of schema 1 lack the number. */
function* withSearchId(columns: Columns): Script<Columns> {
  if ("search_id" in columns) return columns;
  return { ...columns, search_id: yield* freshSearchId(asConversation(Number(columns["conversation_id"]))) };
}

export function* insertRow(table: Table, key: Columns, columns: Columns): Script<void> {
  const row = { ...key, ...columns };
  const names = Object.keys(row).map(plain);
  yield statement(
    `INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`,
    Object.values(row),
  );
}

/** What the rows of these images contribute to the totals of their conversation. */
function* totalsOf(id: ConversationId | null, images: readonly Image[]): Script<Totals> {
  const touched = (table: Table, column: string): string =>
    JSON.stringify(images.filter((image) => image.table === table).map(({ key }) => key[column]));
  const [messages, summaries] = [touched("messages", "message_id"), touched("summaries", "summary_id")];
  const [sums = {}] = yield sql`
    SELECT count(*) AS items, coalesce(sum(coalesce(m.token_count, s.token_count)), 0) AS tokens,
      count(m.message_id) AS raw_items, coalesce(sum(m.token_count), 0) AS raw_tokens,
      (SELECT count(*) FROM messages WHERE +conversation_id = ${id}
         AND message_id IN (SELECT value FROM numbers_in(${messages}))) AS messages,
      (SELECT coalesce(sum(token_count), 0) FROM messages WHERE +conversation_id = ${id}
         AND message_id IN (SELECT value FROM numbers_in(${messages}))) AS message_tokens,
      (SELECT count(*) FROM summaries WHERE conversation_id = ${id}
         AND summary_id IN (SELECT value FROM texts_in(${summaries}))) AS summaries
    FROM context_items c LEFT JOIN messages m USING (conversation_id, message_id)
      LEFT JOIN summaries s USING (conversation_id, summary_id)
    WHERE c.conversation_id = ${id} AND c.ordinal IN (
      SELECT value FROM numbers_in(${touched("context_items", "ordinal")})
      UNION SELECT ordinal FROM context_items WHERE conversation_id = ${id}
        AND summary_id IN (SELECT value FROM texts_in(${summaries}))
      UNION SELECT ordinal FROM context_items WHERE ${messages} <> '[]' AND conversation_id = ${id}
        AND message_id IN (SELECT value FROM numbers_in(${messages})))`;
  return totalsIn(sums);
}

// ── Names in statements ──────────────────────────────────────────────────────────────────────────────────────────────

/** The id of a message or summary. */
const idIn = ({ table, key }: Image): number | string => {
  const id = key[keys[table][0]];
  return typeof id === "number" || typeof id === "string" ? id : 0;
};

const conditions = (table: Table): string => keys[table].map((name) => `${name} = ?`).join(" AND ");
const keyValues = (table: Table, key: Columns): readonly Value[] => keys[table].map((name) => key[name] ?? null);

/** Column names come from the journal, which may be damaged. */
function plain(name: string): string {
  if (!/^[a-z_]+$/.test(name))
    throw new LcmError("corrupt", `the journal contains an invalid column name: ${JSON.stringify(name)}`);
  return name;
}

export const isTable = (name: string): name is Table => name in keys;

/** The links of a summary to its sources. */
export const tiesOf = (table: "summary_messages" | "summary_parents", summary: string): Script<readonly Image[]> =>
  all(
    statement(`SELECT * FROM ${table} WHERE summary_id = ? ORDER BY ordinal`, [summary]),
    ({ ordinal = null, conversation_id = null, ...key }) => ({ table, key, columns: { ordinal, conversation_id } }),
  );
