/**
 * Measures what recording prompts costs, and how long rebuilding one takes: `npm run bench:seen [-- 1000 1000000]`. Each
 * size in messages is a conversation that is folded by the thousand, in which turns follow each other. CPU is of all
 * threads of the process.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createLcm, type Lcm } from "../src/core/lcm.ts";
import { sumTokens } from "../src/core/base/tokens.ts";
import type { ConversationId } from "../src/core/model/types.ts";
import { openSqlite, systemNow } from "../src/store/sqlite/store.ts";
import { encode } from "../test/support/scripted-host.ts";
import { summary } from "../test/store-contract/ground.ts";
import { corpusEntry } from "./corpus.ts";
import { cpuMs, spread } from "./measure.ts";

const sizes = process.argv.slice(2).map(Number);
const budget = 100_000;
const turns = 400;
const foldEvery = 50;
/** A question, a call, its result and an answer. */
const messagesPerTurn = 4;

for (const size of sizes.length === 0 ? [1_000, 1_000_000] : sizes) {
  const folder = mkdtempSync(join(tmpdir(), "lcm-seen-"));
  try {
    console.log(JSON.stringify(await measure(join(folder, "lcm.db"), size)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(path: string, size: number) {
  const store = await openSqlite({ path, housekeeping: false });
  const lcm = createLcm({ store, clock: { now: systemNow } });
  const { id } = await store.open({ sessionId: "long" });
  await grow(lcm, id, size);
  const [assembling, recording, wall]: [number[], number[], number[]] = [[], [], []];
  for (let turn = 0; turn < turns; turn++) {
    await say(lcm, id, size + messagesPerTurn * turn, messagesPerTurn);
    if (turn % foldEvery === foldEvery - 1) await foldOldest(lcm, id, 100);
    const before = process.cpuUsage();
    const assembly = await lcm.assemble(id, { budget });
    assembling.push(cpuMs(before));
    const [start, then] = [performance.now(), process.cpuUsage()];
    await lcm.recordPrompt(assembly, { model: "provider/model" });
    recording.push(cpuMs(then));
    wall.push(performance.now() - start);
  }
  const first = (await lcm.findPrompt({ conversation: id, number: 1 })).record;
  const rebuilding: number[] = [];
  for (let time = 0; time < 20; time++) {
    const start = process.cpuUsage();
    const { isExact } = await lcm.rebuild(first);
    if (!isExact) throw new Error("not rebuilt to the byte");
    rebuilding.push(cpuMs(start));
  }
  const { tokens, bytes } = first;
  await lcm.close();
  const rows = bytesIn(path);
  return {
    messages: size,
    promptTokens: tokens,
    promptBytes: bytes,
    assembleCpuMs: spread(assembling).p50,
    recordCpuMs: spread(recording).p50,
    recordCpuMsP95: spread(recording).p95,
    recordWallMs: spread(wall).p50,
    rebuildCpuMs: spread(rebuilding).p50,
    bytesPerPrompt: rows.prompts / turns,
    heads: rows.count,
    bytesPerHead: rows.heads / rows.count,
    bytesPerTurn: (rows.prompts + rows.heads) / turns,
  };
}

async function say(lcm: Lcm, id: ConversationId, from: number, count: number): Promise<void> {
  const entries = Array.from({ length: count }, (_, at) => {
    const {
      id: key,
      timestamp,
      message,
    } = corpusEntry(from + at) as never as { id: string; timestamp: string; message: object };
    return encode({ kind: "message", key: `${key}-${from + at}`, at: timestamp as never, message: message as never });
  });
  await lcm.store.append(id, entries);
}

async function grow(lcm: Lcm, id: ConversationId, size: number): Promise<void> {
  for (let at = 0; at < size; at += 1_000) {
    await say(lcm, id, at, Math.min(1_000, size - at));
    if (at >= 1_000) await foldOldest(lcm, id, 1_000);
  }
}

async function foldOldest(lcm: Lcm, id: ConversationId, count: number): Promise<void> {
  const run = await lcm.store.context(id, { kind: "message", limit: count });
  if (sumTokens(run) > 400)
    await lcm.store.fold(id, run, summary("what was said, in short. ".repeat(60), { tokens: 400 }));
}

/** Bytes of the rows of the two tables, without unused space in their pages. */
function bytesIn(path: string) {
  const db = new DatabaseSync(path, { readOnly: true });
  const of = (table: string) => {
    const { bytes, rows } =
      db.prepare("SELECT sum(payload) AS bytes, sum(ncell) AS rows FROM dbstat WHERE name = ?").get(table) ?? {};
    return { bytes: Number(bytes), rows: Number(rows) };
  };
  try {
    return { prompts: of("prompts").bytes, heads: of("prompt_heads").bytes, count: of("prompt_heads").rows };
  } finally {
    db.close();
  }
}
