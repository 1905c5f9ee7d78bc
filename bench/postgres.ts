/**
 * Measures the store on PostgreSQL beside SQLite, on the same data in one run: `npm run bench:postgres [-- 10k 100k]`.
 *
 * Both stores are told the same, call by call in turns, so that both see the same noise of the machine. The server keeps
 * its defaults, commits wait for the disk (`synchronous_commit`), and its connection is a local one; then some calls are
 * made through a relay, and through one that adds half a millisecond to each round trip (postgres-line.ts).
 */

import { mkdirSync, mkdtempSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { SourceLine } from "../src/core/ingest/import-transcript.ts";
import { createLcm } from "../src/core/lcm.ts";
import type { SearchRequest } from "../src/core/model/store.ts";
import type { ConversationId } from "../src/core/model/types.ts";
import { openPostgres } from "../src/store/postgres/store.ts";
import { openSqlite, systemNow } from "../src/store/sqlite/store.ts";
import { startPostgres } from "../test/support/postgres-server.ts";
import { corpusEntry, markers, question, searched } from "./corpus.ts";
import { cpuMs } from "./measure.ts";
import { delayed } from "./postgres-line.ts";
import {
  askServer,
  compare,
  foldOldest,
  growLived,
  readPrompt,
  serverCpuMs,
  sizeOf,
  turnOf,
  warmed,
  watchServer,
} from "./postgres-steps.ts";
import type { Compared, Side } from "./postgres-steps.ts";
import { table } from "./table.ts";

const sizes = new Map([
  ["1k", 1_000],
  ["10k", 10_000],
  ["100k", 100_000],
]);
const asked = process.argv.slice(2).filter((each) => !each.startsWith("--"));
const chosen = [...sizes].filter(([name]) => (asked.length === 0 ? name !== "1k" : asked.includes(name)));
const roundTripMs = 0.5;
const results: Compared[] = [];

async function measure(size: string, n: number): Promise<readonly Compared[]> {
  const path = join(folder, `${size}.db`);
  const schema = `bench_${size}`;
  const filesDir = join(folder, "files");
  const sqlite: Side = await openSqlite({ path, housekeeping: false, durability: "normal" });
  const address = `${server.url}?schema=${schema}`;
  const postgres: Side = await openPostgres({ url: address, filesDir, housekeeping: false });
  const sides = { sqlite, postgres };
  const found: Compared[] = [];
  const note = (compared: Compared): void => {
    found.push({ ...compared, size });
    console.error(lineOf({ ...compared, size }).join("  "));
  };
  note(await importBoth(sides, n));
  note({ what: "size", unit: "MB", sqlite: one(statSync(path).size / 2 ** 20), postgres: one(await sizeOf(address)) });
  const [, lived] = [await growLived(sqlite), await growLived(postgres)];
  const named = async (sessionId: string): Promise<ConversationId> =>
    (await sqlite.conversations({ sessionId }))[0]?.id as ConversationId;
  const ids: Ids = { lived, long: await named("long"), short: await named("other-1") };
  // What autovacuum does within some minutes, so that it does not happen while calls are measured.
  for (const words of ["VACUUM ANALYZE", "CHECKPOINT"]) await askServer(address, words);
  for (const each of await measureCalls(sides, ids, n)) note(each);
  // Both through a relay, whose own time is not that of the round trips.
  const lines = [await delayed(server.url, 0), await delayed(server.url, roundTripMs)];
  const ends: Side[] = [];
  for (const { url } of lines)
    ends.push(await openPostgres({ url: `${url}?schema=${schema}`, filesDir, housekeeping: false }));
  const [near, far] = ends as [Side, Side];
  for (const each of await measureFar({ sqlite: near, postgres: far }, ids, n)) note(each);
  for (const store of [far, near, sqlite, postgres]) await store.close();
  for (const line of lines) await line.stop();
  return found;
}

const one = (value: number): Compared["sqlite"] => ({ p50: value, p95: value, cpuMs: 0 });

/** Most of the corpus is one long conversation; a fifth is spread over twenty others. Chunks of it in turns. */
async function importBoth(sides: Readonly<Record<"sqlite" | "postgres", Side>>, n: number): Promise<Compared> {
  const took = { sqlite: 0, postgres: 0 };
  const cpu = { sqlite: 0, postgres: 0 };
  const long = Math.floor(n * 0.8);
  const share = Math.ceil((n - long) / 20);
  const chunk = Math.ceil(long / 8);
  const parts = Array.from({ length: 8 }, (_, at) => ({
    session: "long",
    from: at * chunk,
    upto: Math.min(long, (at + 1) * chunk),
  }));
  for (let other = 0; other < 20; other++)
    parts.push({
      session: `other-${other + 1}`,
      from: long + other * share,
      upto: Math.min(n, long + (other + 1) * share),
    });
  for (const { session, from, upto } of parts) {
    const lines = Array.from({ length: upto - from }, (_, at) => JSON.stringify(corpusEntry(from + at)));
    for (const name of ["sqlite", "postgres"] as const) {
      const lcm = createLcm({ store: sides[name], clock: { now: systemNow } });
      const start = performance.now();
      const [client, served] = [process.cpuUsage(), serverCpuMs()];
      await lcm.import(asSource(lines), { fallbackSessionId: session, sessionId: session });
      took[name] += performance.now() - start;
      cpu[name] += cpuMs(client) + (name === "postgres" ? serverCpuMs() - served : 0);
    }
  }
  const rate = (name: "sqlite" | "postgres") => ({
    p50: n / (took[name] / 1_000),
    p95: n / (took[name] / 1_000),
    cpuMs: cpu[name] / n,
  });
  return { what: "import and index", unit: "messages/s", sqlite: rate("sqlite"), postgres: rate("postgres") };
}

async function* asSource(lines: readonly string[]): AsyncGenerator<SourceLine> {
  for (const [at, text] of lines.entries()) yield { position: at + 1, text };
}

type Sides = Readonly<Record<"sqlite" | "postgres", Side>>;
type Ids = Readonly<Record<"long" | "lived" | "short", ConversationId>>;

async function measureCalls(sides: Sides, { long, lived, short }: Ids, n: number): Promise<readonly Compared[]> {
  const found: Compared[] = [];
  const step = async (what: string, times: number, work: (store: Side, at: number) => Promise<unknown>) =>
    found.push({ what, unit: "ms", ...(await compare(sides, times, work)) });
  await warmed(sides, async (store, at) => await store.append(long, turnOf(n, "warm", at)));
  await step("append of a turn", 150, async (store, at) => await store.append(long, turnOf(n, "live", at)));
  await step("append of a known turn", 60, async (store, at) => await store.append(long, turnOf(n, "live", at)));
  await step("fold of 20", 60, foldOldest(long));
  for (const store of [sides.sqlite, sides.postgres]) while ((await store.index(8_000)) > 0);
  await step("reading for a lived prompt", 60, async (store) => await readPrompt(store, lived));
  const search = async (what: string, times: number, request: (at: number) => SearchRequest) =>
    await step(what, times, async (store, at) => await store.search(request(at), { timeoutMs: 120_000 }));
  await search("grep, rare word", 50, (at) => words(searched.rare(at % 25, n)));
  await search("grep, less rare word", 20, (at) => words(searched.mid(at)));
  await search("grep, frequent word", 15, (at) => words(searched.common(at % 15)));
  await search("grep, newest with two words", 20, (at) => ({
    ...words(`${searched.common(at % 15)} ${searched.common(40)}`),
    sort: "recency",
  }));
  await search("question", 20, (at) => words(question(at)));
  await search("question in one conversation", 15, (at) => ({ ...words(question(at)), conversations: [short] }));
  await search("question in the long one", 15, (at) => ({ ...words(question(at)), conversations: [long] }));
  await search("quoted phrase", 15, (at) =>
    words(`"${question(at).split(" ").slice(0, 2).join(" ")}" ${searched.mid(at)}`),
  );
  await search("regex, rare", 5, () => regex(`${markers.oldest} \\w+`));
  await search("regex, nowhere", 3, () => regex(searched.nowhere.source));
  await search("regex without a literal", 3, () => regex(searched.nowhereWithoutLiteral.source));
  return found;
}

/** The same calls on a connection and on a delayed one: the difference, in round trips. */
async function measureFar(sides: Sides, { long, lived }: Ids, n: number): Promise<readonly Compared[]> {
  const calls: readonly (readonly [string, (store: Side, at: number) => Promise<unknown>])[] = [
    [
      "append of a turn",
      async (store, at) => await store.append(long, turnOf(n, store === sides.postgres ? "far" : "near", at)),
    ],
    ["fold of 20", foldOldest(long)],
    ["a prompt", async (store) => await readPrompt(store, lived)],
    ["grep, rare word", async (store) => await store.search(words(markers.oldest))],
    ["question", async (store, at) => await store.search(words(question(at)))],
  ];
  const found: Compared[] = [];
  for (const [what, work] of calls) {
    const { sqlite: near, postgres: far } = await compare(sides, 40, work);
    found.push({
      what: `round trips, ${what}`,
      unit: "",
      sqlite: one(0),
      postgres: one((far.p50 - near.p50) / roundTripMs),
    });
  }
  return found;
}

const words = (pattern: string): SearchRequest => ({
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

function lineOf({ size = "", what, unit, sqlite, postgres, differing = 0 }: Compared): readonly string[] {
  const shown = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toFixed(2));
  const ratio = sqlite.p50 === 0 ? "" : (postgres.p50 / sqlite.p50).toFixed(2);
  return [
    `${size}: ${what}${unit === "" ? "" : `, ${unit}`}`,
    ...(sqlite.p50 === 0 ? [""] : [`${shown(sqlite.p50)} / ${shown(sqlite.p95)}`]),
    `${shown(postgres.p50)} / ${shown(postgres.p95)}`,
    ratio,
    `${shown(sqlite.cpuMs)} / ${shown(postgres.cpuMs)}`,
    differing === 0 ? "" : `${differing} differ`,
  ];
}

function report(): void {
  console.log(table(["p50 / p95", "SQLite", "PostgreSQL", "ratio of p50", "CPU, ms", "results"], results.map(lineOf)));
  const out = fileURLToPath(new URL("./out/", import.meta.url));
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, "postgres.json"), JSON.stringify(results, null, 2));
}

// On the disk, because commits wait for it.
const folder = mkdtempSync(join(tmpdir(), "lcm-bench-postgres-"));
const server = await startPostgres([], mkdtempSync(join(tmpdir(), "lcm-bench-server-")));
watchServer(server.url);
try {
  for (const [name, n] of chosen) results.push(...(await measure(name, n)));
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
report();
