/** Measures prompts and compactions, each in a separate process; prints JSON. See bench.ts. */

import { encode } from "../test/support/scripted-host.ts";
import { boundMemory } from "../src/cli/bound-memory.ts";
import { createLcm } from "../src/core/lcm.ts";
import type { Lcm } from "../src/core/lcm.ts";
import type { ConversationId, Summary } from "../src/core/model/types.ts";
import type { Incoming } from "../src/core/messages/codec.ts";
import type { Model, Store } from "../src/core/model/store.ts";
import { resolveSettings } from "../src/core/model/settings.ts";
import { openSqliteWorker } from "../src/store/sqlite/worker.ts";
import { openSqlite } from "../src/store/sqlite/store.ts";
import { corpusEntry, question } from "./corpus.ts";
import { commonPrefix, cpuMs, timed } from "./measure.ts";
import type { JsonObject } from "../src/core/base/json.ts";
import type { Timestamp } from "../src/core/base/time.ts";

export interface PromptCost {
  readonly items: number;
  readonly tokens: number;
  readonly cpuMs: number;
  /** Through the store's own thread, as in a host. */
  readonly wallMs: number;
}

export interface Compacted {
  readonly prompt: PromptCost;
  readonly summaries: number;
  readonly deepest: number;
  readonly sweepsCpuS: number;
  readonly recalled: Recalled;
}

/** Turns in that conversation. */
export interface Lived {
  readonly peakRssMb: number;
  /** Share of a turn's prompt, in bytes, that is identical to the previous turn's, over 1,000 turns. */
  readonly prefixReused: number;
  readonly compactions: number;
  /** CPU of a turn in that conversation: storing it, checking what is due, compacting if so, assembling. */
  readonly turnCpuMs: number;
}

/** From a summary of depth 3, or the deepest, through the store's own thread: median ms. */
export interface Recalled {
  readonly depth: number;
  readonly messagesBelow: number;
  readonly describeMs: number;
  readonly expandMs: number;
  /** Down to the messages, ranked by a question. */
  readonly expandAskedMs: number;
  /** A question to the whole conversation, answered without a model. */
  readonly askMs: number;
}

export interface Swept {
  readonly messages: number;
  readonly passes: number;
  readonly cpuS: number;
  readonly peakRssMb: number;
}

const budget = 200_000;
const sweepEvery = 600;
const messagesPerTurn = 4;

const clock = { now: (): Timestamp => new Date().toISOString() as Timestamp };

/** Returns a summary of the right size, after this delay. */
const instantModel = (delayMs = 0): Model => ({
  provider: "bench",
  name: "instant",
  async complete({ prompt, maxOutputTokens }) {
    if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs));
    const words = prompt.slice(-12_000).match(/[a-z]{4,}/g) ?? [];
    const text = words.slice(0, Math.floor(maxOutputTokens * 0.35)).join(" ");
    return {
      kind: "text",
      text: `${text}.\nExpand for details about: the rest`,
      finish: "stop",
      inputTokens: 0,
      outputTokens: 0,
    };
  },
});

const lcmOf = (store: Store, delayMs = 0, config: Readonly<Record<string, unknown>> = {}): Lcm =>
  createLcm({
    store,
    clock,
    model: instantModel(delayMs),
    settings: resolveSettings({ env: {}, config: { spendCeilingCalls: 1_000_000_000, ...config } }).values,
  });

const itemAt = (index: number): Incoming => {
  const entry = corpusEntry(index) as JsonObject & { readonly message: JsonObject; readonly timestamp: string };
  return { kind: "message", message: entry.message, key: `live-${index}`, at: entry.timestamp as Timestamp };
};

const itemsBetween = (from: number, to: number): readonly Incoming[] =>
  Array.from({ length: to - from }, (_, at) => itemAt(from + at));

// ── A prompt ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Enough that the compiler has settled. */
const assembliesWarm = 240;
const assembliesMeasured = 80;

async function measurePrompt(path: string, id: ConversationId): Promise<PromptCost> {
  const store = await openSqlite({ path, housekeeping: false, durability: "normal" });
  const lcm = lcmOf(store);
  for (let warm = 0; warm < assembliesWarm; warm++) await lcm.assemble(id, { budget });
  const before = process.cpuUsage();
  for (let n = 1; n < assembliesMeasured; n++) await lcm.assemble(id, { budget });
  const { messages, report } = await lcm.assemble(id, { budget });
  const used = cpuMs(before) / assembliesMeasured;
  await store.close();

  const thread = await openSqliteWorker({ path, housekeeping: false, durability: "normal" });
  const through = lcmOf(thread);
  const { p50: wallMs } = await timed(20, async () => await through.assemble(id, { budget }));
  await thread.close();
  return { items: messages.length, tokens: report.tokens, cpuMs: used, wallMs };
}

async function longOne(path: string): Promise<ConversationId> {
  const store = await openSqlite({ path, housekeeping: false, durability: "normal" });
  const [conversation] = await store.conversations({ sessionId: "long" });
  await store.close();
  return conversation?.id as ConversationId;
}

// ── A sweep ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A whole conversation that was never compacted, with a model that answers at once. */
async function measureSweep(path: string, messages: number): Promise<Swept> {
  const store = await openSqlite({ path, housekeeping: false, durability: "normal" });
  const lcm = lcmOf(store);
  const { id } = await store.open({ sessionId: "sweep" });
  for (let from = 0; from < messages; from += 2_000)
    await store.append(id, itemsBetween(from, Math.min(messages, from + 2_000)).map(encode));
  const before = process.cpuUsage();
  const report = await lcm.compact({ conversation: id, mode: "sweep", budget: 1_000_000_000 });
  const cpuS = cpuMs(before) / 1_000;
  await store.close();
  return { messages, passes: report.passes.length, cpuS, peakRssMb: process.resourceUsage().maxRSS / 1_024 };
}

/** Seconds for the same sweep with a model that takes 200 ms, one call at a time and four. */
async function measureConcurrency(path: string): Promise<Readonly<Record<string, number>>> {
  const took: Record<string, number> = {};
  for (const summaryConcurrency of [1, 4]) {
    const store = await openSqlite({ path: `${path}.${summaryConcurrency}`, housekeeping: false });
    const { id } = await store.open({ sessionId: "slow" });
    await store.append(id, itemsBetween(0, 4_000).map(encode));
    const lcm = lcmOf(store, 200, { summaryConcurrency });
    const start = performance.now();
    await lcm.compact({ conversation: id, mode: "sweep" });
    took[String(summaryConcurrency)] = (performance.now() - start) / 1_000;
    await store.close();
  }
  return took;
}

// ── A long-running conversation ──────────────────────────────────────────────────────────────────────────────────────

/** A conversation after n messages, with a sweep when one is due, checked every 600. */
async function measureCompacted(path: string, n: number): Promise<Compacted> {
  const store = await openSqlite({ path, housekeeping: false, durability: "normal" });
  const lcm = lcmOf(store);
  const { id } = await store.open({ sessionId: "compacted" });
  let sweepsCpu = 0;
  for (let said = 0; said < n;) {
    const upto = Math.min(n, said + sweepEvery);
    await store.append(id, itemsBetween(said, upto).map(encode));
    said = upto;
    if (said % sweepEvery !== 0) continue;
    const before = process.cpuUsage();
    await lcm.compact({ conversation: id, mode: "due", budget });
    sweepsCpu += cpuMs(before);
  }
  // A short one is not due yet, and is folded as one that fills its budget is.
  if ((await store.conversation(id))?.totals.summaries === 0)
    await lcm.compact({ conversation: id, mode: "until_under", budget, targetTokens: budget / 2 });
  const summaries = (await store.conversation(id))?.totals.summaries ?? 0;
  const deepest = Math.max(0, ...(await store.context(id, { kind: "summary" })).map(({ depth }) => depth));
  // Closing checkpoints the log, as a host's housekeeping does all the time.
  await store.close();
  const prompt = await measurePrompt(path, id);
  const recalled = await measureRecall(path, id);
  return { prompt, recalled, summaries, deepest, sweepsCpuS: sweepsCpu / 1_000 };
}

/** 1,000 turns more, in a process that does nothing else, as `lcm serve` does. */
async function measureLived(path: string, n: number): Promise<Lived> {
  boundMemory();
  const store = await openSqlite({ path, housekeeping: false, durability: "normal" });
  const [conversation] = await store.conversations({ sessionId: "compacted" });
  if (conversation === undefined) throw new Error("there is no conversation to live on");
  const turns = await measureTurns(lcmOf(store), conversation.id, n);
  await store.close();
  return { ...turns, peakRssMb: process.resourceUsage().maxRSS / 1_024 };
}

async function measureRecall(path: string, id: ConversationId): Promise<Recalled> {
  const whole = await openSqlite({ path, housekeeping: false, durability: "normal" });
  while ((await whole.index(10_000)) > 0);
  await whole.close();

  const store = await openSqliteWorker({ path, housekeeping: false, durability: "normal" });
  const lcm = createLcm({ store, clock });
  const reach = { kind: "conversation", conversations: [id] } as const;
  const tokenCap = 4_000;
  let node: Summary | undefined;
  for (let depth = 3; node === undefined && depth >= 0; depth--)
    [node] = await store.summaries({ conversation: id, depth, limit: 1 });
  if (node === undefined) throw new Error("nothing was compacted");
  const median = async (work: () => Promise<unknown>): Promise<number> => (await timed(20, work)).p50;
  const asked = question(id);
  const walk = { summaryIds: [node.id], reach, tokenCap };
  const deep = { ...walk, query: asked, includeMessages: true, maxDepth: 3 };
  const figures = {
    depth: node.depth,
    messagesBelow: (await store.manifest(node.id, 10_000)).messages?.count ?? 0,
    describeMs: await median(async () => await lcm.describe({ id: node.id, reach, tokenCap })),
    expandMs: await median(async () => await lcm.expand(walk)),
    expandAskedMs: await median(async () => await lcm.expand(deep)),
    askMs: await median(async () => await lcm.expandQuery({ prompt: asked, query: asked, reach, timeoutMs: 120_000 })),
  };
  await store.close();
  return figures;
}

const turnsMeasured = 1_000;

async function measureTurns(lcm: Lcm, id: ConversationId, n: number): Promise<Omit<Lived, "peakRssMb">> {
  let before = JSON.stringify((await lcm.assemble(id, { budget })).messages);
  let [reused, shown, compactions, spent] = [0, 0, 0, 0];
  for (let turn = 0; turn < turnsMeasured; turn++) {
    const first = n + turn * messagesPerTurn;
    const items = itemsBetween(first, first + messagesPerTurn);
    const cpu = process.cpuUsage();
    await lcm.ingest(id, items);
    const report = await lcm.compact({ conversation: id, mode: "due", budget });
    const { messages } = await lcm.assemble(id, { budget });
    spent += cpuMs(cpu);
    if (report.compacted) compactions += 1;
    const now = JSON.stringify(messages);
    reused += commonPrefix(before, now);
    shown += before.length;
    before = now;
  }
  return { prefixReused: reused / shown, compactions, turnCpuMs: spent / turnsMeasured };
}

const [step, path = "", count = "0"] = process.argv.slice(2);
const figures = {
  prompt: async () => await measurePrompt(path, await longOne(path)),
  sweep: async () => await measureSweep(path, Number(count)),
  concurrency: async () => await measureConcurrency(path),
  compacted: async () => await measureCompacted(path, Number(count)),
  lived: async () => await measureLived(path, Number(count)),
}[step ?? ""];
if (figures === undefined) throw new Error(`unknown step: ${step}`);
console.log(JSON.stringify(await figures()));
