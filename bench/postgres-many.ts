/**
 * `npm run bench:many`: what calls cost on a server with 100 conversations of 1,000 messages, and what they cost when
 * there are 100 times as many: 10,000,000 messages in 10,000 conversations (30 GB of disk; a smaller number of copies may
 * be given, `-- 9`).
 *
 * The hundred are imported; the others are copies of them on the server under ids, sessions and agents of their own. The
 * server has its default settings and commits wait for the disk, but not while copies are made.
 */

import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SourceLine } from "../src/core/ingest/import-transcript.ts";
import { createLcm } from "../src/core/lcm.ts";
import type { SearchRequest } from "../src/core/model/store.ts";
import { numbersPerConversation, type ConversationId } from "../src/core/model/types.ts";
import { openPostgres } from "../src/store/postgres/store.ts";
import { systemNow } from "../src/store/sqlite/store.ts";
import { startPostgres } from "../test/support/postgres-server.ts";
import { corpusEntry, question, searched } from "./corpus.ts";
import { cpuMs, timed, type Spread } from "./measure.ts";
import {
  askServer,
  foldOldest,
  growLived,
  readPrompt,
  serverCpuMs,
  sizeOf,
  turnOf,
  watchServer,
  type Side,
} from "./postgres-steps.ts";
import { table } from "./table.ts";

const [conversations, messagesEach] = [100, 1_000];
const copies = Number(process.argv[2] ?? 99);
const messages = conversations * messagesEach;

const usual: SearchRequest = { pattern: "", mode: "full_text", scope: "both", sort: "relevance", limit: 20 };

type Measured = ReadonlyMap<string, Spread & { readonly cpuMs: number }>;

const folder = mkdtempSync(join(tmpdir(), "lcm-bench-many-"));
const server = await startPostgres([], mkdtempSync(join(tmpdir(), "lcm-bench-server-")));
const address = `${server.url}?schema=many`;
watchServer(server.url);
const open = async (): Promise<Side> =>
  await openPostgres({ url: address, filesDir: join(folder, "files"), housekeeping: false });
try {
  const store = await open();
  const imported = await importAll(store);
  const lived = await growLived(store);
  while ((await store.index(8_000)) > 0);
  await store.close();
  await settle();
  const few = await measure(imported, lived, "few");
  const size = await sizeOf(address);
  await copyAll(Math.max(...imported, lived));
  await settle();
  const many = await measure(imported, lived, "many");
  report(few, many);
  console.log(`${size.toFixed(0)} MB of tables and indexes, then ${(await sizeOf(address)).toFixed(0)}`);
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}

async function importAll(store: Side): Promise<readonly ConversationId[]> {
  const lcm = createLcm({ store, clock: { now: systemNow } });
  for (let at = 0; at < conversations; at++) {
    const lines = Array.from({ length: messagesEach }, (_, n) => JSON.stringify(corpusEntry(at * messagesEach + n)));
    await lcm.import(asSource(lines), { fallbackSessionId: "", sessionId: `session-${at}`, agentId: "agent-0" });
  }
  return (await store.conversations({ agentId: "agent-0" })).map(({ id }) => id).toSorted((one, other) => one - other);
}

async function* asSource(lines: readonly string[]): AsyncGenerator<SourceLine> {
  for (const [at, text] of lines.entries()) yield { position: at + 1, text };
}

/** What autovacuum does within some minutes, so that it does not happen while calls are measured. */
async function settle(): Promise<void> {
  for (const words of ["VACUUM ANALYZE", "CHECKPOINT"]) await askServer(address, words);
}

/** Each copy is one more agent with all conversations of the first. */
async function copyAll(highest: number): Promise<void> {
  const settings = ["fsync = off", "synchronous_commit = off", "max_wal_size = '16GB'"];
  for (const words of settings) await askServer(address, `ALTER SYSTEM SET ${words}`);
  await askServer(address, "SELECT pg_reload_conf()");
  for (let copy = 1; copy <= copies; copy++) {
    await askServer(address, copyOf(copy, copy * highest, await tables()));
    console.error(`${copy} of ${copies} copies`);
  }
  await askServer(address, "ALTER SYSTEM RESET ALL");
  await askServer(address, "SELECT pg_reload_conf()");
}

type Tables = ReadonlyMap<string, readonly string[]>;

/** The columns of all tables with rows of conversations, without those that the server fills in. */
async function tables(): Promise<Tables> {
  const rows = await askServer(
    address,
    `SELECT table_name, column_name FROM information_schema.columns JOIN information_schema.tables USING (table_name)
     WHERE tables.table_schema = 'many' AND columns.table_schema = 'many' AND table_type = 'BASE TABLE'
       AND is_generated = 'NEVER' AND is_identity = 'NO'`,
  );
  const grouped = Map.groupBy(rows, (row) => String(row["table_name"]));
  const columns = [...grouped].map(([name, found]) => [name, found.map((row) => String(row["column_name"]))] as const);
  return new Map(columns.filter(([, names]) => names.includes("conversation_id")));
}

function copyOf(copy: number, by: number, all: Tables): string {
  // The id of a summary names its conversation.
  const summaryIn = (column: string): string => `'sum_' || hex8(conversation_id + ${by}) || right(${column}, 8)`;
  const changed: Readonly<Record<string, string>> = {
    conversation_id: `conversation_id + ${by}`,
    message_id: `message_id + ${by * numbersPerConversation}`,
    search_id: `search_id + ${by * numbersPerConversation}`,
    summary_id: summaryIn("summary_id"),
    parent_summary_id: summaryIn("parent_summary_id"),
    session_id: `session_id || '-${copy}'`,
    agent_id: `'agent-${copy}'`,
  };
  const copied = [...all].map(
    ([name, columns]) => `INSERT INTO many.${name} (${columns.join(", ")})
      SELECT ${columns.map((column) => changed[column] ?? column).join(", ")} FROM many.${name}
      WHERE conversation_id IN (SELECT conversation_id FROM many.conversations WHERE agent_id = 'agent-0');`,
  );
  // Without triggers, so foreign keys are not looked up.
  return `BEGIN; SET LOCAL session_replication_role = replica; SET LOCAL search_path = many, pg_catalog; ${copied.join("\n")} COMMIT`;
}

/** Each call once more than it is measured, because plans and caches are those of a gateway that has been running. */
async function measure(imported: readonly ConversationId[], lived: ConversationId, name: string): Promise<Measured> {
  const store = await open();
  const [id] = imported as [ConversationId];
  const found = new Map<string, Spread & { cpuMs: number }>();
  const step = async (what: string, times: number, work: (at: number) => Promise<unknown>): Promise<void> => {
    await work(times);
    const [client, served] = [process.cpuUsage(), serverCpuMs()];
    const took = await timed(times, work);
    found.set(what, { ...took, cpuMs: (cpuMs(client) + serverCpuMs() - served) / times });
    console.error(`${name}: ${what} ${took.p50.toFixed(2)} ms`);
  };
  for (let at = 0; at < 60; at++) await store.append(id, turnOf(messages, `${name}-warm`, at));
  await step("append of a turn", 150, async (at) => await store.append(id, turnOf(messages, name, at)));
  await step("append of a known turn", 60, async (at) => await store.append(id, turnOf(messages, name, at)));
  await step("fold of 20", 40, async () => await foldOldest(id)(store));
  while ((await store.index(8_000)) > 0);
  await step("reading for a lived prompt", 60, async () => await readPrompt(store, lived));
  for (const [where, among] of [
    ["one conversation", imported.slice(10, 11)],
    ["one agent", imported],
    ["everything", undefined],
  ] as const) {
    const search = async (what: string, times: number, request: (at: number) => Partial<SearchRequest>) =>
      await step(`${where}: ${what}`, times, async (at) => {
        const scope = among === undefined ? {} : { conversations: among };
        const limits = { timeoutMs: 600_000 };
        return await store.search({ ...usual, ...request(at), ...scope }, limits);
      });
    await search("rare word", 50, (at) => ({ pattern: searched.rare(at % 25, messages) }));
    await search("frequent word", 15, (at) => ({ pattern: searched.common(at) }));
    await search("question", 20, (at) => ({ pattern: question(at) }));
    if (among === undefined) continue;
    await search("regex, nowhere", 3, () => ({ pattern: searched.nowhere.source, mode: "regex", sort: "recency" }));
  }
  await store.close();
  return found;
}

function report(few: Measured, many: Measured): void {
  const shown = (value: number | undefined): string => (value ?? 0).toFixed(2);
  const rows = [...few].map(([what, before]) => {
    const after = many.get(what);
    return [
      what,
      `${shown(before.p50)} / ${shown(before.p95)}`,
      `${shown(after?.p50)} / ${shown(after?.p95)}`,
      shown((after?.p50 ?? 0) / before.p50),
      `${shown(before.cpuMs)} / ${shown(after?.cpuMs)}`,
    ];
  });
  const [from, to] = [messages, messages * (copies + 1)].map((each) => each.toLocaleString("en"));
  console.log(table(["p50 / p95, ms", `${from} messages`, `${to}`, "ratio of p50", "CPU, ms"], rows));
}
