/**
 * Measures the floor under each figure: the same rows, read or written by bare prepared statements in this thread. For
 * a search it is SQLite's own ranking of the same words. Prints JSON. See bench.ts.
 */

import { spawnSync } from "node:child_process";
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import type { SQLInputValue } from "node:sqlite";
import { Worker } from "node:worker_threads";
import { messageToStore, textOfParts } from "../src/core/messages/codec.ts";
import { indexes, tables } from "../src/store/sqlite/schema.ts";
import { searchTables } from "../src/store/sqlite/search-index.ts";
import { idIn } from "../src/core/model/types.ts";
import { corpusEntry, question, searched } from "./corpus.ts";
import { cpuMs, timed } from "./measure.ts";
import type { JsonObject } from "../src/core/base/json.ts";
import type { Timestamp } from "../src/core/base/time.ts";

/** Over the imported corpus. */
export interface StoreFloor {
  readonly importCpuS: number;
  readonly appendCpuUs: number;
  /** One message instead of a turn of four. */
  readonly appendOneCpuUs: number;
  readonly openMs: number;
  /** Median ms: SQLite's own ranking, and a scan of every text. */
  readonly rareMs: number;
  readonly midMs: number;
  readonly commonMs: number;
  readonly questionMs: number;
  readonly regexMs: number;
  readonly regexNoLiteralMs: number;
  readonly nodeCpuMs: number;
}

/** Over a compacted or swept conversation. */
export interface ContextFloor {
  readonly promptCpuMs: number;
  readonly describeMs: number;
  readonly expandMs: number;
  readonly expandAskedMs: number;
  readonly sweepCpuS: number;
}

const [step, path = "", transcript = "", count = "0"] = process.argv.slice(2);
const pragmas =
  "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -16000; PRAGMA foreign_keys = ON";

function connect(at = path): DatabaseSync {
  const database = new DatabaseSync(at);
  database.exec(pragmas);
  return database;
}

// ── Writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

type Values = readonly SQLInputValue[];

/** The rows of a message: itself, its parts, its position in the context. */
interface Rows {
  readonly message: Values;
  readonly parts: readonly Values[];
  readonly item: Values;
  readonly text: string;
  readonly tokens: number;
}

type CorpusEntry = JsonObject & { readonly message: JsonObject; readonly timestamp: string };

function rowsOf(entry: CorpusEntry, seq: number, conversation: number): Rows {
  const id = idIn(conversation, seq);
  const at = entry.timestamp as Timestamp;
  const {
    role,
    parts,
    tokens,
    key,
    envelope,
    entry: kept,
  } = messageToStore(entry.message, { key: `floor-${id}`, at, entry });
  const text = textOfParts(parts);
  return {
    message: [id, conversation, role, text, tokens, at, Date.parse(at), key, null, envelope, kept, null],
    parts: parts.map((part, ordinal) => [
      conversation,
      id,
      ordinal,
      part.type,
      part.text?.length ?? null,
      part.kept,
      part.toolCallId,
      part.toolName,
      part.metadata,
    ]),
    item: [conversation, seq, id],
    text,
    tokens,
  };
}

function writer(database: DatabaseSync) {
  const addMessage = database.prepare(`INSERT INTO messages (message_id, conversation_id, role, content, token_count,
    created_at, stored_at, message_key, parent_key, envelope, entry, aside) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const addPart =
    database.prepare(`INSERT INTO message_parts (conversation_id, message_id, ordinal, part_type, text_length, text_content,
    tool_call_id, tool_name, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const addItem = database.prepare(
    "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id) VALUES (?, ?, 'message', ?)",
  );
  const now = new Date().toISOString();
  const made = database
    .prepare(`INSERT INTO conversations (conversation_id, session_id, created_at, updated_at, unindexed)
              SELECT coalesce(max(conversation_id), 0) + 1, 'floor', ?, ?, 1 FROM conversations RETURNING conversation_id AS id`)
    .get(now, now);
  const conversation = Number(made?.["id"]);
  const add = ({ message, parts, item }: Rows): void => {
    addMessage.run(...message);
    for (const part of parts) addPart.run(...part);
    addItem.run(...item);
  };
  return { conversation, add };
}

const turnsMeasured = 1_000;
const warmUp = 200;

/** Rows of so many messages, values ready, in a transaction with the totals. Written to the same database, and left there. */
function appendCpuUs(n: number, messages: number): number {
  const database = connect();
  const { conversation, add } = writer(database);
  const addTotals = database.prepare(`UPDATE conversations SET message_count = message_count + ?, message_tokens =
    message_tokens + ?, context_items = context_items + ?, context_tokens = context_tokens + ?, context_messages =
    context_messages + ?, context_message_tokens = context_message_tokens + ?, next_seq = ?, updated_at = ?,
    revision = revision + 1 WHERE conversation_id = ?`);
  const begin = database.prepare("BEGIN IMMEDIATE");
  const commit = database.prepare("COMMIT");
  let seq = 0;
  const turns = Array.from({ length: turnsMeasured + warmUp }, (_, turn) => {
    const rows = Array.from({ length: messages }, (_, at) =>
      rowsOf(corpusEntry(n + messages * turn + at) as CorpusEntry, ++seq, conversation),
    );
    const tokens = rows.reduce((sum, row) => sum + row.tokens, 0);
    const added = [messages, tokens, messages, tokens, messages, tokens];
    return { rows, totals: [...added, seq + 1, new Date().toISOString(), conversation] };
  });
  let cpu = process.cpuUsage();
  for (const [turn, { rows, totals }] of turns.entries()) {
    if (turn === warmUp) cpu = process.cpuUsage();
    begin.run();
    for (const row of rows) add(row);
    addTotals.run(...totals);
    commit.run();
  }
  const used = cpuMs(cpu);
  database.close();
  return (used * 1_000) / turnsMeasured;
}

/** Each line read and parsed, its rows written, its words indexed by FTS5; a thousand messages a transaction. */
async function importCpuS(): Promise<number> {
  const database = connect(`${path}.floor`);
  database.exec("PRAGMA page_size = 8192");
  for (const statement of [...Object.values(tables), ...searchTables, ...indexes]) database.exec(statement);
  const { conversation, add } = writer(database);
  const index = database.prepare("INSERT INTO messages_fts (rowid, text) VALUES (?, ?)");
  const rows: Rows[] = [];
  let [spent, written] = [0, 0];
  const write = (): void => {
    const cpu = process.cpuUsage();
    database.exec("BEGIN");
    for (const row of rows) {
      add(row);
      index.run(++written, row.text);
    }
    database.exec("COMMIT");
    rows.length = 0;
    spent += cpuMs(cpu);
  };
  let read = 0;
  for await (const line of createInterface({ input: createReadStream(transcript) })) {
    const cpu = process.cpuUsage();
    const entry = JSON.parse(line) as CorpusEntry;
    spent += cpuMs(cpu);
    rows.push(rowsOf(entry, ++read, conversation));
    if (rows.length === 1_000) write();
  }
  write();
  database.close();
  return spent / 1_000;
}

// ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────

const median = async (times: number, work: (time: number) => unknown): Promise<number> =>
  (await timed(times, work)).p50;

async function storeFloor(n: number): Promise<StoreFloor> {
  const appending = { appendCpuUs: appendCpuUs(n, 4), appendOneCpuUs: appendCpuUs(n, 1) };
  const writing = { ...appending, importCpuS: await importCpuS() };
  const database = connect();
  const match = database.prepare("SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rank LIMIT 20");
  const read = database.prepare("SELECT content FROM messages WHERE message_id = ?");
  const search = (words: string): void => {
    const wanted = words.split(" ").map((word) => `"${word}"`);
    for (const { rowid } of match.all(wanted.join(" OR "))) read.get(Number(rowid));
  };
  const scan = (pattern: RegExp): void => {
    let hits = 0;
    for (const { content } of database.prepare("SELECT content FROM messages").iterate())
      if (pattern.test(String(content))) hits += 1;
    if (hits > 1) throw new Error(`${String(pattern)} should not match`);
  };
  search("warm");
  const nodes = Array.from({ length: 5 }, () => {
    const script = "const {user,system}=process.cpuUsage();console.log((user+system)/1000)";
    return Number(spawnSync(process.execPath, ["-e", script], { encoding: "utf8" }).stdout);
  });
  return {
    ...writing,
    openMs: await median(5, openInThread),
    rareMs: await median(25, (i) => search(searched.rare(i, n))),
    midMs: await median(25, (i) => search(searched.mid(i))),
    commonMs: await median(15, (i) => search(searched.common(i))),
    questionMs: await median(15, (i) => search(question(i))),
    regexMs: await median(1, () => scan(searched.nowhere)),
    regexNoLiteralMs: await median(1, () => scan(searched.nowhereWithoutLiteral)),
    nodeCpuMs: nodes.toSorted((a, b) => a - b)[2] ?? 0,
  };
}

/** A thread that opens the file and reads a row. */
async function openInThread(): Promise<void> {
  const script = `const { DatabaseSync } = require("node:sqlite");
    const database = new DatabaseSync(${JSON.stringify(path)});
    require("node:worker_threads").parentPort.postMessage(database.prepare("SELECT count(*) FROM search_progress").get());`;
  const worker = new Worker(script, { eval: true });
  await new Promise((resolve) => worker.once("message", resolve));
  await worker.terminate();
}

const assembliesMeasured = 40;

async function contextFloor(sessionId: string, items: number): Promise<ContextFloor> {
  const database = connect();
  const conversation = Number(
    database.prepare("SELECT conversation_id AS id FROM conversations WHERE session_id = ?").get(sessionId)?.["id"],
  );
  const readPrompt = promptReader(database, conversation, items);
  for (let warm = 0; warm < assembliesMeasured; warm++) readPrompt();
  const cpu = process.cpuUsage();
  for (let time = 0; time < assembliesMeasured; time++) readPrompt();
  const promptCpuMs = cpuMs(cpu) / assembliesMeasured;

  const node = database
    .prepare(
      "SELECT summary_id AS id FROM summaries WHERE conversation_id = ? AND depth <= 3 ORDER BY depth DESC, earliest_at LIMIT 1",
    )
    .get(conversation)?.["id"];
  const id = String(node);
  const below = `WITH RECURSIVE below (id) AS (SELECT ? UNION SELECT parent_summary_id FROM summary_parents JOIN below ON summary_id = id)`;
  const counted = database.prepare(`${below} SELECT count(*), sum(token_count), min(created_at), max(created_at)
    FROM below JOIN summary_messages ON summary_id = id JOIN messages USING (message_id)`);
  const sources = database.prepare(
    "SELECT content FROM summaries JOIN summary_parents ON parent_summary_id = summaries.summary_id WHERE summary_parents.summary_id = ?",
  );
  const texts = database.prepare(
    `${below} SELECT content FROM below JOIN summary_messages ON summary_id = id JOIN messages USING (message_id)`,
  );
  return {
    promptCpuMs,
    describeMs: await median(20, () => counted.get(id)),
    expandMs: await median(20, () => sources.all(id)),
    expandAskedMs: await median(20, () => texts.all(id).reduce((sum, { content }) => sum + String(content).length, 0)),
    sweepCpuS: sweepCpuS(database, conversation),
  };
}

/** The rows that a prompt of this many items is made of, newest first, with their stored JSON. */
function promptReader(database: DatabaseSync, conversation: number, items: number): () => void {
  const messages =
    database.prepare(`SELECT content, envelope FROM (SELECT message_id FROM context_items WHERE conversation_id = ?
    AND message_id IS NOT NULL ORDER BY ordinal DESC LIMIT ?) JOIN messages USING (message_id)`);
  const parts = database.prepare(`SELECT part_type, text_length, text_content, metadata FROM (SELECT message_id FROM
    context_items WHERE conversation_id = ? AND message_id IS NOT NULL ORDER BY ordinal DESC LIMIT ?) JOIN message_parts USING (message_id)`);
  const summaries = database.prepare(`SELECT content FROM context_items JOIN summaries USING (summary_id)
    WHERE context_items.conversation_id = ?`);
  return () => {
    for (const { envelope } of messages.all(conversation, items)) if (envelope !== null) JSON.parse(String(envelope));
    for (const { metadata } of parts.all(conversation, items)) if (metadata !== null) JSON.parse(String(metadata));
    summaries.all(conversation);
  };
}

/** For every summary: reads its sources, and writes its rows once more, a transaction each. */
function sweepCpuS(database: DatabaseSync, conversation: number): number {
  const read = database.prepare("SELECT * FROM summaries WHERE conversation_id = ?");
  const columns = read.columns().map(({ name }) => name);
  const summaries = read.all(conversation);
  const copy = connect(`${path}.folds`);
  copy.exec("PRAGMA foreign_keys = OFF");
  for (const statement of [
    tables.conversations,
    tables.summaries,
    tables.summary_messages,
    tables.summary_parents,
    tables.context_items,
  ])
    copy.exec(statement);
  const addSummary = copy.prepare(
    `INSERT INTO summaries (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`,
  );
  const addMessage = copy.prepare(
    "INSERT INTO summary_messages (conversation_id, summary_id, message_id, ordinal) VALUES (1, ?, ?, ?)",
  );
  const addSource = copy.prepare(
    "INSERT INTO summary_parents (conversation_id, summary_id, parent_summary_id, ordinal) VALUES (1, ?, ?, ?)",
  );
  const addItem = copy.prepare(
    "INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id) VALUES (1, ?, 'summary', ?)",
  );
  const readMessages = database.prepare(
    "SELECT message_id AS id, content FROM summary_messages JOIN messages USING (message_id) WHERE summary_id = ?",
  );
  const readSources = database.prepare(
    "SELECT s.summary_id AS id, s.content FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = ?",
  );
  const cpu = process.cpuUsage();
  for (const [at, summary] of summaries.entries()) {
    const id = String(summary["summary_id"]);
    copy.exec("BEGIN");
    addSummary.run(...columns.map((column) => summary[column] ?? null));
    for (const [ordinal, row] of readMessages.all(id).entries()) addMessage.run(id, Number(row["id"]), ordinal);
    for (const [ordinal, row] of readSources.all(id).entries()) addSource.run(id, String(row["id"]), ordinal);
    addItem.run(at, id);
    copy.exec("COMMIT");
  }
  return cpuMs(cpu) / 1_000;
}

const figures = step === "store" ? await storeFloor(Number(count)) : await contextFloor(transcript, Number(count));
console.log(JSON.stringify(figures));
