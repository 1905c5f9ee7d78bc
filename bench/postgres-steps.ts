/** The calls that are measured on both stores, one after the other, and what they cost. See postgres.ts. */

import { readdirSync, readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { JsonObject } from "../src/core/base/json.ts";
import type { Timestamp } from "../src/core/base/time.ts";
import { createLcm } from "../src/core/lcm.ts";
import { messageToStore } from "../src/core/messages/codec.ts";
import { resolveSettings } from "../src/core/model/settings.ts";
import type { Appendable, Model, SearchResult, Store } from "../src/core/model/store.ts";
import type { ConversationId, MessageId, SummaryId } from "../src/core/model/types.ts";
import { readAddress } from "../src/store/postgres/address.ts";
import { openPool } from "../src/store/postgres/pool.ts";
import { systemNow } from "../src/store/sqlite/store.ts";
import { corpusEntry } from "./corpus.ts";
import { cpuMs, spread } from "./measure.ts";

export type Side = Store;
type Sides = Readonly<Record<"sqlite" | "postgres", Side>>;

interface Cost {
  readonly p50: number;
  readonly p95: number;
  /** Of this process and the server, for one call. */
  readonly cpuMs: number;
}

export interface Compared {
  readonly size?: string;
  readonly what: string;
  readonly unit: string;
  readonly sqlite: Cost;
  readonly postgres: Cost;
  /** How many results were not the same. */
  readonly differing?: number;
}

/** Makes each call on one store and then on the other, in changing order. */
export async function compare(
  sides: Sides,
  times: number,
  work: (store: Side, at: number) => Promise<unknown>,
): Promise<Pick<Compared, "sqlite" | "postgres" | "differing">> {
  const took = { sqlite: [] as number[], postgres: [] as number[] };
  const cpu = { sqlite: 0, postgres: 0 };
  const servedBefore = serverCpuMs();
  let differing = 0;
  for (let at = 0; at < times; at++) {
    const results: unknown[] = [];
    const names = at % 2 === 0 ? (["sqlite", "postgres"] as const) : (["postgres", "sqlite"] as const);
    for (const name of names) {
      const [start, client] = [performance.now(), process.cpuUsage()];
      results.push(comparable(await work(sides[name], at)));
      took[name].push(performance.now() - start);
      cpu[name] += cpuMs(client);
    }
    if (!isDeepStrictEqual(results[0], results[1])) differing += 1;
  }
  cpu.postgres += serverCpuMs() - servedBefore;
  const cost = (name: "sqlite" | "postgres"): Cost => {
    const { p50, p95 } = spread(took[name]);
    return { p50, p95, cpuMs: cpu[name] / times };
  };
  return { sqlite: cost("sqlite"), postgres: cost("postgres"), differing };
}

/** Ids of summaries are random, and a search that nobody waits for reports its own time. */
function comparable(result: unknown): unknown {
  if (typeof result !== "object" || result === null || !("hits" in result)) return null;
  const { hits, summaries = [], caveats } = result as SearchResult;
  return [
    [...hits, ...summaries].map(({ score, ...hit }) => ({
      ...hit,
      id: hit.kind === "summary" ? "" : hit.id,
      score: score.toFixed(6),
    })),
    caveats,
  ];
}

const ticksPerSecond = 100;
let postmaster: string | null = null;

/** Of the server at this address and all processes that it has started, those that have ended too. Linux counts it. */
export function watchServer(url: string): void {
  const { port } = new URL(url);
  postmaster = processes().find((pid) => readProc(pid, "cmdline")?.includes(`\0-p\0${port}\0`)) ?? null;
}

/** Null if the process has ended meanwhile. */
function readProc(pid: string, file: "cmdline" | "stat"): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "latin1");
  } catch {
    return null;
  }
}

const processes = (): readonly string[] => readdirSync("/proc").filter((name) => /^\d+$/.test(name));

export function serverCpuMs(): number {
  let ticks = 0;
  for (const pid of processes()) {
    const stat = readProc(pid, "stat");
    if (stat === null) continue;
    const [, parent, ...fields] = stat.replace(/^.*\) /s, "").split(" ");
    const spent = fields.slice(9, 13).map(Number);
    if (parent === postmaster || pid === postmaster)
      ticks += spent.slice(0, pid === postmaster ? 4 : 2).reduce((sum, each) => sum + each, 0);
  }
  return (ticks * 1_000) / ticksPerSecond;
}

/** Before anything is measured: compilers have settled, caches are full. */
export async function warmed(sides: Sides, work: (store: Side, at: number) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < 60; at++) for (const store of [sides.sqlite, sides.postgres]) await work(store, at);
}

type CorpusEntry = JsonObject & { readonly message: JsonObject; readonly timestamp: string };

const appendableAt = (at: number, key: string): Appendable => {
  const entry = corpusEntry(at) as CorpusEntry;
  const message = messageToStore(entry.message, { key, at: entry.timestamp as Timestamp, entry });
  return { kind: "message", message };
};

/** A turn of four messages after the corpus of n. */
export const turnOf = (n: number, name: string, turn: number): readonly Appendable[] =>
  [0, 1, 2, 3].map((offset) => appendableAt(n + 4 * turn + offset, `${name}-${4 * turn + offset}`));

/** Folds the oldest messages that are shown. */
export const foldOldest =
  (id: ConversationId) =>
  async (store: Side): Promise<unknown> => {
    const run = runs.get(store)?.shift();
    if (run === undefined) {
      const oldest = await store.context(id, { kind: "message", limit: 20 * 300 });
      runs.set(
        store,
        Array.from({ length: Math.floor(oldest.length / 20) }, (_, at) => oldest.slice(20 * at, 20 * (at + 1))),
      );
      return await foldOldest(id)(store);
    }
    return await store.fold(id, run, summaryOf(run.length));
  };
const runs = new Map<Side, Awaited<ReturnType<Store["context"]>>[]>();

const summaryOf = (n: number): Parameters<Store["fold"]>[2] => ({
  text: `what ${n} messages said, in short: ${"the config of the branch was migrated, tested and released. ".repeat(12)}`,
  tokens: 200,
  level: "normal",
  fileIds: [],
  model: "bench",
  previousContext: null,
});

/** What the assembly of a prompt reads, in the order in which it does; see core/assembly. */
export async function readPrompt(store: Side, id: ConversationId): Promise<unknown> {
  await store.conversation(id);
  const items = await store.context(id, { limit: 1_200, keep: "newest" });
  const messages = items.flatMap((item) => (item.kind === "message" ? [item.id] : []));
  const summaries = items.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
  const condensed = items.flatMap((item) => (item.kind === "summary" && item.depth > 0 ? [item.id] : []));
  return await Promise.all([
    readOf<MessageId>(messages, async (ids) => await store.messages({ ids })),
    readOf<SummaryId>(summaries, async (ids) => await store.summaries({ ids })),
    readOf<SummaryId>(condensed, async (ids) => await store.sources(ids)),
    store.pins(id, { inForce: true, limit: 64 }),
  ]);
}

const readOf = async <Id>(ids: readonly Id[], read: (ids: readonly Id[]) => Promise<unknown>): Promise<unknown> =>
  ids.length === 0 ? null : await read(ids);

const livedMessages = 3_000;

/** A conversation that was compacted as it went. */
export async function growLived(store: Side): Promise<ConversationId> {
  const lcm = createLcm({
    store,
    clock: { now: systemNow },
    model: instantModel,
    settings: resolveSettings({ env: {}, config: { spendCeilingCalls: 1_000_000_000 } }).values,
  });
  const { id } = await store.open({ sessionId: "lived" });
  for (let said = 0; said < livedMessages; said += 200) {
    await store.append(
      id,
      Array.from({ length: 200 }, (_, at) => appendableAt(said + at, `lived-${said + at}`)),
    );
    await lcm.compact({ conversation: id, mode: "due", budget: 200_000 });
  }
  return id;
}

const instantModel: Model = {
  provider: "bench",
  name: "instant",
  async complete({ prompt, maxOutputTokens }) {
    const said = prompt.slice(-12_000).match(/[a-z]{4,}/g) ?? [];
    const text = `${said.slice(0, Math.floor(maxOutputTokens * 0.35)).join(" ")}.\nExpand for details about: the rest`;
    return { kind: "text", text, finish: "stop", inputTokens: 0, outputTokens: 0 };
  },
};

/** Megabytes of all tables of a schema with their indexes. */
export async function sizeOf(address: string): Promise<number> {
  const { schema } = readAddress(address);
  const rows = await askServer(
    address,
    `SELECT sum(pg_total_relation_size(c.oid)) AS bytes FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '${schema}' AND c.relkind = 'r'`,
  );
  return Number(rows[0]?.["bytes"]) / 2 ** 20;
}

/** Runs one statement on the server, outside of the store. */
export async function askServer(address: string, text: string): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const pool = await openPool(readAddress(address), 1);
  try {
    const client = await pool.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      client.release();
    }
  } finally {
    await pool.end();
  }
}
