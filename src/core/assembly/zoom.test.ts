import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import fc from "fast-check";
import { openSqlite } from "../../store/sqlite/store.ts";
import { checkLossless } from "../../../test/support/lossless.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toIncoming, turnWithTool } from "../../../test/support/scripted-host.ts";
import { checkValid } from "../../../test/support/valid-prompt.ts";
import { createLcm, type Lcm } from "../lcm.ts";
import type { HostMessage } from "../messages/codec.ts";
import { promptTokens, targetShareOf } from "../model/prompt-cost.ts";
import { resolveSettings } from "../model/settings.ts";
import type { ContextItem, ConversationId, MessageId, SummaryId } from "../model/types.ts";
import type { Timestamp } from "../base/time.ts";
import type { AssemblyReport } from "./assemble.ts";
import { costOf } from "./prompt-items.ts";
import { roomFor, zoomIn } from "./zoom.ts";

const folder = makeScratch("zoom");
after(() => rmSync(folder, { recursive: true, force: true }));

let databases = 0;
let clockMs = Date.UTC(2026, 10, 15);
const clock = { now: (): Timestamp => new Date((clockMs += 5)).toISOString() as Timestamp };

const small = {
  freshTailCount: 8,
  leafChunkTokens: 1_500,
  leafTargetTokens: 150,
  condensedTargetTokens: 200,
  leafMinFanout: 3,
  condensedMinFanout: 3,
};
const settingsOf = (config: object) => resolveSettings({ env: {}, config: { ...small, ...config } }).values;

interface Folded {
  readonly lcm: Lcm;
  readonly id: ConversationId;
  readonly live: (turns: number) => Promise<void>;
  readonly check: () => Promise<void>;
}

/** A conversation of which everything but the tail was folded, as the older program and earlier versions do. */
async function folded(turns: number): Promise<Folded> {
  const store = await openSqlite({ path: join(folder, `${++databases}.db`), now: clock.now, housekeeping: false });
  const lcm = createLcm({ store, clock, settings: settingsOf({}) });
  const { id } = await store.open({ sessionId: "s", sessionKey: "agent:main:s" });
  const host = createHost("h");
  let delivered = 0;
  let turn = 0;
  const live = async (count: number): Promise<void> => {
    for (const end = turn + count; turn < end; turn++) {
      const answer = `entry ${turn} says that the ledger of day ${turn} costs ${turn * 7} and is kept by Noor. `;
      for (const raw of turnWithTool(`call_${turn}`, `What about day ${turn}?`, answer.repeat(3))) host.says(raw);
    }
    await lcm.ingest(id, host.entries.slice(delivered).map(toIncoming));
    delivered = host.entries.length;
  };
  await live(turns);
  const further = createLcm({ store, clock, settings: settingsOf({ contextTarget: 0 }) });
  await further.compact({ conversation: id, mode: "due", budget: 1_000 });
  const check = async (): Promise<void> =>
    await checkLossless(store, [{ conversation: id, entries: host.entries }], { expected: ["summary_below_normal"] });
  return { lcm, id, live, check };
}

/** The messages that items reach, in order. */
async function reached({ store }: Lcm, items: readonly ContextItem[]): Promise<readonly MessageId[]> {
  const messages: MessageId[] = [];
  for (const item of items) {
    if (item.kind === "message") messages.push(item.id);
    else messages.push(...(await reached({ store } as Lcm, (await store.sourceItems([item.id])).get(item.id) ?? [])));
  }
  return messages;
}

const tokensOf = async ({ store }: Lcm, id: ConversationId): Promise<number> =>
  promptTokens((await store.conversation(id))?.totals ?? assert.fail());

const budgets = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 1_000_000];

describe("the room for finer texts", () => {
  const sizes = fc.integer({ min: 0, max: 1_000_000 });

  it("never takes a prompt above the target, and is none above it", () => {
    fc.assert(
      fc.property(sizes, sizes, sizes, (context, target, budget) => {
        const room = roomFor(context, target, budget);
        assert.ok(room >= 0 && (room === 0 || context + room <= target));
      }),
    );
  });

  it("only shrinks as a context grows, and by whole steps", () => {
    const [target, budget] = [64_000, 128_000];
    const rooms = new Set<number>();
    for (let context = 0; context <= target; context += 100) rooms.add(roomFor(context, target, budget));
    assert.deepEqual([...rooms], [64_000, 48_000, 32_000, 16_000, 0]);
  });
});

describe("a context smaller than it need be", () => {
  it("is shown by the finest texts that fit, the newest finest, under any budget", async () => {
    const { lcm, id, check } = await folded(300);
    const context = await lcm.store.context(id);
    assert.ok(context.some(({ depth }) => depth >= 2));
    const all = await reached(lcm, context);
    let finest = 0;
    for (const budget of budgets) {
      const { messages, report } = await lcm.assemble(id, { budget });
      checkValid(messages);
      assert.ok(report.tokens <= budget, `${report.tokens} of ${budget}`);
      const room = roomFor(await tokensOf(lcm, id), targetShareOf(lcm.settings) * budget, budget);
      if (report.outcome !== "whole") continue;
      const shown = await zoomIn(lcm.store, context, room);
      assert.deepEqual(await reached(lcm, shown), all, "each message once, in order");
      const added =
        shown.reduce((sum, item) => sum + costOf(item), 0) - context.reduce((sum, item) => sum + costOf(item), 0);
      assert.ok(added <= room);
      assert.equal(report.finer.tokens, added);
      for (const depth of [0, 1, 2, 3]) {
        const item = shown.findLast((each) => each.kind === "summary" && each.depth === depth);
        const sources = item && (await lcm.store.sourceItems([item.id as SummaryId])).get(item.id as SummaryId);
        if (item === undefined || sources === undefined) continue;
        const extra = sources.reduce((sum, each) => sum + costOf(each), -costOf(item));
        assert.ok(extra > room - added, `a summary of depth ${depth} would have fitted at ${budget}`);
      }
      finest = report.older.items + report.tail.items;
    }
    assert.equal(finest, all.length, "the largest shows everything raw");
    await check();
  });

  it("names what is shown in place of what", async () => {
    const { lcm, id } = await folded(120);
    const { report } = await lcm.assemble(id, { budget: 16_000 });
    const context = new Set<unknown>((await lcm.store.context(id)).map((item) => item.id));
    const places = report.origins.flatMap((origin) => (origin.kind === "note" ? [] : [origin]));
    assert.ok(report.finer.items > 0);
    const isInContext = places.map(({ id: shown, within }) => context.has(within ?? shown));
    const [question, ...others] = places.filter((_, at) => isInContext[at] === false);
    assert.deepEqual(others, []);
    const covering = question?.kind === "message" ? await lcm.store.coveredBy(question.id) : [];
    assert.ok(
      places.some(({ id: shown }) => covering.some((summary) => summary === shown)),
      "a question by its summary",
    );
    assert.equal(new Set(places.flatMap(({ within }) => within ?? [])).size, report.finer.items);
  });

  it("stays small if somebody asked for it, or a prompt was rejected, until a sweep is due by itself", async () => {
    for (const request of [{ mode: "sweep" }, { mode: "until_under", targetTokens: 1_500 }] as const) {
      const { lcm, id, live } = await folded(120);
      const finer = async (): Promise<AssemblyReport["finer"]> =>
        (await lcm.assemble(id, { budget: 64_000 })).report.finer;
      assert.ok((await finer()).items > 0);
      await live(20);
      await lcm.compact({ conversation: id, ...request });
      assert.deepEqual(await finer(), { items: 0, tokens: 0 });
      await live(80);
      await lcm.compact({ conversation: id, mode: "due", budget: 4_000 });
      assert.ok((await finer()).items > 0, request.mode);
    }
  });

  it("stays small after a prompt was rejected although nothing was left to fold", async () => {
    const { lcm, id } = await folded(120);
    const tokens = async (): Promise<number> => (await lcm.assemble(id, { budget: 64_000 })).report.tokens;
    const before = await tokens();
    const request = { conversation: id, mode: "until_under", budget: 64_000, targetTokens: 16_000 } as const;
    assert.deepEqual((await lcm.compact(request)).outcome, { kind: "under", targetTokens: 16_000 });
    assert.ok((await tokens()) < before / 4);
  });

  it("is not shown finer where a source is missing, or where the target is 0", async () => {
    const { lcm, id } = await folded(120);
    const context = await lcm.store.context(id);
    const store = { sourceItems: async () => new Map() };
    assert.deepEqual(await zoomIn(store, context, 1_000_000), context);
    const plain = createLcm({ store: lcm.store, clock, settings: settingsOf({ contextTarget: 0 }) });
    assert.equal((await plain.assemble(id, { budget: 64_000 })).report.finer.items, 0);
  });

  it("reads no more of a longer conversation than fits", async () => {
    const reads = async (turns: number): Promise<number> => {
      const { lcm, id } = await folded(turns);
      let read = 0;
      const store = {
        sourceItems: async (ids: readonly SummaryId[]) => {
          read += ids.length;
          return await lcm.store.sourceItems(ids);
        },
      };
      await zoomIn(store, await lcm.store.context(id), 8_000);
      return read;
    };
    const [shorter, longer] = [await reads(150), await reads(600)];
    assert.ok(longer <= shorter + 16, `${shorter} and ${longer} summaries`);
  });
});

describe("guarantee 15: finer texts stay as they are between compactions", () => {
  it("until the context has grown by a step, turn after turn", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 60, max: 200 }),
        fc.integer({ min: 6_000, max: 60_000 }),
        async (turns, budget) => {
          const { lcm, id, live } = await folded(turns);
          let before: readonly HostMessage[] = [];
          let changes = 0;
          const start = await tokensOf(lcm, id);
          for (let turn = 0; turn < 60; turn++) {
            await live(1);
            const { messages, report } = await lcm.assemble(id, { budget });
            assert.ok(report.tokens <= budget);
            const isSame = before.every((message, at) => JSON.stringify(message) === JSON.stringify(messages[at]));
            if (!isSame) changes += 1;
            before = messages;
          }
          const steps = Math.ceil(((await tokensOf(lcm, id)) - start) / (budget / 8));
          assert.ok(changes <= steps, `${changes} changes in ${steps} steps`);
          await lcm.close();
        },
      ),
      { numRuns: 12 },
    );
  });

  it("with a budget that varies around the stored one", async () => {
    const { lcm, id, live } = await folded(150);
    for (const budget of [16_000, 33_086, 43_086]) {
      await lcm.store.setPromptBudget(id, budget);
      let [before, changes] = [(await lcm.assemble(id)).messages, 0];
      const start = await tokensOf(lcm, id);
      for (let turn = 0; turn < 40; turn++) {
        await live(1);
        const varied = Math.round(budget * (0.97 + 0.06 * ((turn * 0.618) % 1)));
        const { messages, report } = await lcm.assemble(id, { budget: varied });
        assert.ok(report.tokens <= varied);
        if (!before.every((message, at) => JSON.stringify(message) === JSON.stringify(messages[at]))) changes += 1;
        before = messages;
      }
      const steps = Math.ceil(((await tokensOf(lcm, id)) - start) / (budget / 8));
      assert.ok(changes <= steps, `${changes} changes in ${steps} steps at ${budget}`);
    }
  });
});
