/**
 * Measures how long a search takes at each size: `node bench/recall/latency.ts [1k 100k 1m]`. Each question has eight words,
 * from common to rare; with `also` two more wordings of eight words each. The conversation is that of the benchmarks.
 */

import { rmSync } from "node:fs";
import { join } from "node:path";
import { createLcm } from "../../src/core/lcm.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { makeScratch } from "../../test/support/scratch.ts";
import type { Json } from "../../src/core/base/json.ts";
import { corpusEntry, question } from "../corpus.ts";
import { timed, type Spread } from "../measure.ts";
import { table } from "../table.ts";

const sizes: Readonly<Record<string, number>> = { "1k": 1_000, "100k": 100_000, "1m": 1_000_000 };
const searches = 200;
/** Messages of one conversation, so that a store has many. */
const perConversation = 10_000;

async function* linesOf(from: number, to: number): AsyncGenerator<{ readonly position: number; readonly value: Json }> {
  for (let n = from; n < to; n++) yield { position: n - from + 1, value: JSON.parse(JSON.stringify(corpusEntry(n))) };
}

const inMs = ({ p50, p95 }: Spread): readonly string[] => [p50, p95].map((ms) => ms.toFixed(1));

async function measureAt(name: string, messages: number): Promise<readonly string[]> {
  const folder = makeScratch("latency");
  const store = await openSqlite({ path: join(folder, "lcm.db") });
  const lcm = createLcm({ store, clock: { now: systemNow } });
  try {
    for (let from = 0; from < messages; from += perConversation) {
      const to = Math.min(messages, from + perConversation);
      await lcm.import(linesOf(from, to), { fallbackSessionId: `latency-${from}` });
    }
    while ((await store.index(10_000)) > 0);
    const request = { mode: "full_text", reach: { kind: "all", conversations: null }, limit: 20 } as const;
    const alone = await timed(searches, async (n) => await lcm.grep({ ...request, pattern: question(n) }));
    const also = await timed(searches, async (n) => {
      await lcm.grep({ ...request, pattern: question(n), also: [question(n + 10_000), question(n + 20_000)] });
    });
    const mistyped = await timed(searches, async (n) => {
      await lcm.grep({ ...request, pattern: `${question(n)} databsae` });
    });
    return [name, ...inMs(alone), ...inMs(also), ...inMs(mistyped)];
  } finally {
    await lcm.close();
    rmSync(folder, { recursive: true });
  }
}

const asked = process.argv.slice(2);
const rows: (readonly string[])[] = [];
for (const name of asked.length === 0 ? ["1k", "100k"] : asked) {
  const messages = sizes[name];
  if (messages === undefined) throw new Error(`unknown size ${name}; choose from ${Object.keys(sizes).join(", ")}`);
  rows.push(await measureAt(name, messages));
}
const head = ["messages", "p50 ms", "p95 ms", "with also p50", "p95", "with a typo p50", "p95"];
console.log(table(head, rows));
