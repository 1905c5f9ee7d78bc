/**
 * Measures search by meaning: `npm run bench:meaning -- --embedder SPEC [--sizes 1000,100000]`. Embeds messages of the
 * corpus with the real model, stops half-way and resumes; then compares searches with and without meaning. Most vectors
 * of large stores are random, because only their number matters to a search, and embedding a million takes hours.
 */

import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createLcm, type Lcm } from "../src/core/lcm.ts";
import type { Json } from "../src/core/base/json.ts";
import type { Embedder } from "../src/core/model/embedder.ts";
import { resolveSettings } from "../src/core/model/settings.ts";
import type { Store } from "../src/core/model/store.ts";
import { chooseEmbedder } from "../src/models/choose-embedder.ts";
import { systemNow } from "../src/store/sqlite/store.ts";
import { openSqliteWorker } from "../src/store/sqlite/worker.ts";
import { makeScratch } from "../test/support/scratch.ts";
import { corpusEntry, createRandom, question } from "./corpus.ts";
import { cpuMs, timed, type Spread } from "./measure.ts";
import { table } from "./table.ts";

const { values } = parseArgs({
  options: { embedder: { type: "string" }, sizes: { type: "string", default: "1000,100000" } },
});
const { values: settings } = resolveSettings({
  env: {},
  config: { embedder: values.embedder ?? "off", searchTimeoutSeconds: 120 },
});
const embedder = await chooseEmbedder(settings, { stateDir: process.cwd(), env: process.env, cwd: process.cwd() });
if (embedder === null) throw new Error("name a model with --embedder");

const rows: (readonly string[])[] = [];
for (const size of values.sizes.split(",").map(Number)) {
  const folder = makeScratch("meaning");
  const store = await openSqliteWorker({ path: join(folder, "lcm.db"), durability: "normal" });
  const clock = { now: systemNow };
  const [plain, meant] = [createLcm({ store, clock, settings }), createLcm({ store, clock, settings, embedder })];
  await fill(plain, size);
  console.log(await embedSome(meant, embedder, Math.min(size, 1_000)));
  await fillRandomly(store, embedder);
  const { vectors } = await store.status();
  const [found] = vectors;
  const reach = { kind: "all", conversations: null } as const;
  const searching = async (lcm: Lcm, also: readonly string[] = []): Promise<Spread & { readonly cpu: number }> => {
    const cpu = process.cpuUsage();
    const times = 40;
    const ask = async (i: number) => await lcm.grep({ pattern: question(i), also, reach }, { timeoutMs: 120_000 });
    return { ...(await timed(times, ask)), cpu: cpuMs(cpu) / times };
  };
  await searching(meant); // Warm.
  const others = Array.from({ length: 3 }, (_, n) => question(100 + n));
  const measured = [
    ["words", await searching(plain)],
    ["words, three rewordings", await searching(plain, others)],
    ["words and meaning", await searching(meant)],
    ["all together", await searching(meant, others)],
  ] as const;
  const bytes = ((found?.bytes ?? 0) / Math.max(1, found?.made ?? 0)).toFixed(0);
  for (const [way, { p50, p95, cpu }] of measured)
    rows.push([size.toLocaleString("en"), way, p50.toFixed(1), p95.toFixed(1), cpu.toFixed(1), bytes]);
  await store.close();
  rmSync(folder, { recursive: true });
}
await embedder.close();
console.log(table(["messages", "search by", "p50 ms", "p95 ms", "CPU ms", "bytes per message"], rows));

/** Most of the corpus is one long conversation; a fifth is spread over twenty others. */
async function fill(lcm: Lcm, size: number): Promise<void> {
  const long = Math.floor(size * 0.8);
  const share = Math.ceil((size - long) / 20);
  const part = async (from: number, to: number, fallbackSessionId: string): Promise<void> => {
    async function* lines(): AsyncGenerator<{ readonly position: number; readonly value: Json }> {
      for (let n = from; n < to; n++) yield { position: n + 1, value: corpusEntry(n) as Json };
    }
    await lcm.import(lines(), { fallbackSessionId });
  };
  await part(0, long, "long");
  for (let other = 0; other < 20; other++)
    await part(long + other * share, Math.min(size, long + (other + 1) * share), `other-${other + 1}`);
  while ((await lcm.store.index(1_000)) > 0);
}

/** Stops half-way, and resumes. */
async function embedSome(lcm: Lcm, { name }: Embedder, count: number): Promise<string> {
  const cpu = process.cpuUsage();
  const startMs = performance.now();
  let embedded = 0;
  for (const target of [count / 2, count]) {
    const stopping = new AbortController();
    const from = embedded;
    const made = await lcm.makeVectors({
      signal: stopping.signal,
      onProgress(so) {
        embedded = from + so.embedded;
        if (embedded >= target) stopping.abort();
      },
    });
    if (made.outcome === "failed") throw new Error(made.problem ?? "");
  }
  const seconds = (performance.now() - startMs) / 1_000;
  const { vectors } = await lcm.store.status();
  const stored = vectors[0]?.made ?? 0;
  if (stored !== embedded) throw new Error(`${embedded} embedded, but ${stored} stored`);
  const rate = (embedded / seconds).toFixed(1);
  const rss = Math.round(process.memoryUsage().rss / 2 ** 20);
  return `${name}: ${embedded} messages in two runs, ${rate}/s, ${(cpuMs(cpu) / embedded).toFixed(1)} ms CPU each, ${rss} MB resident`;
}

async function fillRandomly(store: Store, model: Embedder): Promise<void> {
  const random = createRandom(11);
  const [known] = (await store.status()).vectors;
  if (known === undefined) throw new Error(`${model.name} has embedded nothing`);
  const bytes = known.bytes / known.made;
  for (;;) {
    const pending = await store.pendingVectors(known.model, 1_024);
    if (pending === null) return;
    const { conversation, firstSeq, forgets, texts } = pending;
    const vectors = texts.map(() => Uint8Array.from({ length: bytes }, () => random.int(256)));
    await store.saveVectors({ conversation, firstSeq, forgets, model: known.model, vectors });
  }
}
