/** One step of the benchmark in a process of its own; prints its figures as JSON. See bench.ts. */

import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { messageToStore, textOfParts } from "../src/core/content.ts";
import { openTranscript } from "../src/cli/files.ts";
import { createDatabase } from "../src/cli/open.ts";
import type { SourceLine } from "../src/core/ingest.ts";
import type { ConversationId, JsonObject, NewMessage, Timestamp } from "../src/core/model.ts";
import type { SearchRequest, Store } from "../src/core/ports.ts";
import { openSqliteWorker } from "../src/store/sqlite-worker.ts";
import { openSqlite } from "../src/store/sqlite.ts";
import { corpusEntry, markers, question, wordOfRank } from "./corpus.ts";

export interface Imported {
  readonly cpuS: number;
  readonly wallS: number;
  readonly peakRssMb: number;
  readonly sizeRatio: number;
  readonly rareAfterImportMs: number;
}

interface Spread {
  readonly p50: number;
  readonly p95: number;
}

export interface Measured {
  readonly append: {
    readonly cpuUs: number;
    readonly cpuWithIndexUs: number;
    readonly p50: number;
    readonly p99: number;
  };
  readonly floor: { readonly cpuUs: number };
  readonly openMs: number;
  readonly rare: Spread;
  readonly mid: Spread;
  readonly common: Spread;
  readonly question: Spread;
  readonly questionInShort: Spread;
  readonly questionInLong: Spread;
  readonly regexNoMatchMs: number;
  readonly regexNoLiteralMs: number;
  readonly regexOldestMs: number;
  readonly runawayMs: number;
}

const clock = { now: (): Timestamp => new Date().toISOString() as Timestamp };
const [step, database = "", transcript = "", count = "0"] = process.argv.slice(2);
const n = Number(count);

// ── Import ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Most of the corpus is one long conversation; a fifth is spread over twenty others. */
async function measureImport(): Promise<Imported> {
  const lcm = await createDatabase(database).open("import");
  const { store } = lcm;
  const cpu = process.cpuUsage();
  const start = performance.now();
  const long = Math.floor(n * 0.8);
  const { lines: source } = await openTranscript({
    path: transcript,
    bytes: statSync(transcript).size,
    isFound: false,
  });
  const lines = source[Symbol.asyncIterator]();
  await lcm.import(take(lines, long), { fallbackSessionId: "long" });
  const share = Math.ceil((n - long) / 20);
  for (let other = 1; other <= 20; other++)
    await lcm.import(take(lines, share), { fallbackSessionId: `other-${other}` });
  const used = process.cpuUsage(cpu);
  const wallS = (performance.now() - start) / 1_000;
  const rareAfterImportMs = (await timed(store, 9, () => fullText(`${markers.rare}0`))).p50;
  await store.close();
  return {
    cpuS: (used.user + used.system) / 1e6,
    wallS,
    peakRssMb: process.resourceUsage().maxRSS / 1_024,
    sizeRatio: statSync(database).size / rawTextBytes(),
    rareAfterImportMs,
  };
}

async function* take(lines: AsyncIterator<SourceLine>, limit: number): AsyncGenerator<SourceLine> {
  for (let taken = 0; taken < limit; taken++) {
    const next = await lines.next();
    if (next.done === true) return;
    yield next.value;
  }
}

const rawTextBytes = (): number => {
  const db = new DatabaseSync(database, { readOnly: true });
  const bytes = Number(db.prepare("SELECT sum(octet_length(content)) AS bytes FROM messages").get()?.["bytes"]);
  db.close();
  return bytes;
};

// ── On top of N ──────────────────────────────────────────────────────────────────────────────────────────────────────

async function measure(): Promise<Measured> {
  const floor = measureFloor();
  const append = await measureAppend();
  const openMs = await measureOpen();
  const store = await openSqliteWorker({ path: database });
  await store.search(fullText("warm"));
  const named = async (sessionId: string): Promise<readonly ConversationId[]> =>
    (await store.conversations({ sessionId })).map(({ id }) => id);
  const short = await named("other-1");
  const long = await named("long");
  const measured = {
    append,
    floor,
    openMs,
    rare: await timed(store, 25, (i) => fullText(`${markers.rare}${Math.floor((i * n) / 25 / 10_000) * 10_000}`)),
    mid: await timed(store, 25, (i) => fullText(wordOfRank(2_000 + 37 * i))),
    common: await timed(store, 15, (i) => fullText(wordOfRank(20 + i))),
    question: await timed(store, 40, (i) => fullText(question(i))),
    questionInShort: await timed(store, 40, (i) => ({ ...fullText(question(i)), conversations: short })),
    questionInLong: await timed(store, 40, (i) => ({ ...fullText(question(i)), conversations: long })),
    regexNoMatchMs: await once(store, regex("nosuchword\\d+anywhere")),
    regexNoLiteralMs: await once(store, regex("\\b[qx]{3}\\d{7}\\b")),
    regexOldestMs: await once(store, regex(`${markers.oldest} \\w+`)),
    runawayMs: await measureRunaway(store),
  };
  await store.close();
  return measured;
}

const fullText = (pattern: string): SearchRequest => ({
  pattern,
  mode: "full_text",
  scope: "both",
  sort: "relevance",
  limit: 20,
});
const regex = (pattern: string): SearchRequest => ({
  pattern,
  mode: "regex",
  scope: "both",
  sort: "recency",
  limit: 20,
});

async function timed(store: Store, times: number, request: (i: number) => SearchRequest): Promise<Spread> {
  const took: number[] = [];
  for (let i = 0; i < times; i++) took.push(await once(store, request(i)));
  return { p50: quantile(took, 0.5), p95: quantile(took, 0.95) };
}

async function once(store: Store, request: SearchRequest): Promise<number> {
  const start = performance.now();
  await store.search(request, { timeoutMs: 120_000 });
  return performance.now() - start;
}

const quantile = (values: readonly number[], q: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * q))] ?? 0;

const turnsMeasured = 1_000;
const warmUp = 200;

type CorpusEntry = JsonObject & { readonly message: JsonObject; readonly timestamp: string };
const entryAt = (at: number): CorpusEntry => corpusEntry(at) as CorpusEntry;

function turn(first: number): readonly NewMessage[] {
  return [0, 1, 2, 3].map((offset) => {
    const entry = entryAt(first + offset);
    return messageToStore(entry.message, { key: `live-${first + offset}`, at: entry.timestamp as Timestamp, entry });
  });
}

async function measureAppend(): Promise<Measured["append"]> {
  const store = await openSqlite({ path: database, housekeeping: false });
  const [conversation] = await store.conversations({ sessionId: "long" });
  const id = conversation?.id as ConversationId;
  const raws = Array.from({ length: turnsMeasured + warmUp }, (_, index) =>
    [0, 1, 2, 3].map((offset) => entryAt(n + 4 * index + offset)),
  );
  const took: number[] = [];
  let cpu = process.cpuUsage();
  for (const [index, entries] of raws.entries()) {
    if (index === warmUp) cpu = process.cpuUsage();
    const start = performance.now();
    await store.append(
      id,
      entries.map((entry, offset) => ({
        kind: "message",
        message: messageToStore(entry.message, {
          key: `live-${n + 4 * index + offset}`,
          at: entry.timestamp as Timestamp,
          entry,
        }),
      })),
    );
    if (index >= warmUp) took.push(performance.now() - start);
  }
  const used = process.cpuUsage(cpu);
  const indexCpu = process.cpuUsage();
  while ((await store.index(256)) > 0);
  const indexed = process.cpuUsage(indexCpu);
  await store.close();
  const cpuUs = (used.user + used.system) / turnsMeasured;
  return {
    cpuUs,
    cpuWithIndexUs: cpuUs + (indexed.user + indexed.system) / (turnsMeasured + warmUp),
    p50: quantile(took, 0.5),
    p99: quantile(took, 0.99),
  };
}

/** The same rows of the same turns, values ready, with bare prepared statements. Rolled into the same database, and left there. */
function measureFloor(): Measured["floor"] {
  const db = new DatabaseSync(database);
  db.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -16000; PRAGMA foreign_keys = ON",
  );
  const now = clock.now();
  const made = Number(
    db.prepare("INSERT INTO conversations (session_id, created_at, updated_at) VALUES ('floor', ?, ?)").run(now, now)
      .lastInsertRowid,
  );
  const addMessage =
    db.prepare(`INSERT INTO messages (message_id, conversation_id, seq, role, content, token_count, created_at,
    stored_at, message_key, parent_key, envelope, entry, aside) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  const addPart =
    db.prepare(`INSERT INTO message_parts (message_id, ordinal, part_type, text_length, text_content, tool_call_id,
    tool_name, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`);
  const addItem = db.prepare(
    "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id) VALUES (?, ?, 'message', ?)",
  );
  const addTotals =
    db.prepare(`UPDATE conversations SET message_count = message_count + ?, message_tokens = message_tokens + ?,
    context_items = context_items + ?, context_tokens = context_tokens + ?, context_messages = context_messages + ?,
    context_message_tokens = context_message_tokens + ?, next_seq = ?, updated_at = ?, revision = revision + 1 WHERE conversation_id = ?`);
  const begin = db.prepare("BEGIN IMMEDIATE");
  const commit = db.prepare("COMMIT");
  let id = Number(db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'messages'").get()?.["seq"]);
  let seq = 1;
  const rows = Array.from({ length: turnsMeasured + warmUp }, (_, index) => {
    const messages = turn(n + 4 * index).map((message) => ({
      row: [
        ++id,
        made,
        seq++,
        message.role,
        textOfParts(message.parts),
        message.tokens,
        message.at,
        Date.parse(now),
        message.key,
        null,
        message.envelope,
        message.entry,
        null,
      ] as const,
      parts: message.parts.map(
        (part, ordinal) =>
          [
            id,
            ordinal,
            part.type,
            part.text?.length ?? null,
            part.kept,
            part.toolCallId,
            part.toolName,
            part.metadata,
          ] as const,
      ),
      item: [made, seq, id] as const,
    }));
    const tokens = messages.reduce((sum, message) => sum + message.row[5], 0);
    return { messages, totals: [4, tokens, 4, tokens, 4, tokens, seq, now, made] as const };
  });
  let cpu = process.cpuUsage();
  for (const [index, { messages, totals }] of rows.entries()) {
    if (index === warmUp) cpu = process.cpuUsage();
    begin.run();
    for (const { row, parts, item } of messages) {
      addMessage.run(...row);
      for (const part of parts) addPart.run(...part);
      addItem.run(...item);
    }
    addTotals.run(...totals);
    commit.run();
  }
  const used = process.cpuUsage(cpu);
  db.close();
  return { cpuUs: (used.user + used.system) / turnsMeasured };
}

/** Warm: the second opening. */
async function measureOpen(): Promise<number> {
  let took = 0;
  for (let time = 0; time < 3; time++) {
    const start = performance.now();
    const store = await openSqliteWorker({ path: database });
    took = performance.now() - start;
    await store.close();
  }
  return took;
}

/** From the limit of a search that will not end to the first answer of the reader that replaces it. */
async function measureRunaway(store: Store): Promise<number> {
  const conversation = await store.open({ sessionId: "runaway" });
  const message = messageToStore({ role: "user", content: `${"a".repeat(64)}!` }, { key: "runaway", at: clock.now() });
  await store.append(conversation.id, [{ kind: "message", message }]);
  const timeoutMs = 300;
  const start = performance.now();
  await store.search({ ...regex("^(a+)+$"), conversations: [conversation.id] }, { timeoutMs });
  await store.search({ ...fullText(markers.oldest), conversations: [conversation.id] });
  return performance.now() - start - timeoutMs;
}

const figures = step === "import" ? await measureImport() : await measure();
console.log(JSON.stringify(figures));
