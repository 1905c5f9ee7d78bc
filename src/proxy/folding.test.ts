import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lcm } from "../core/lcm.ts";
import type { ConversationId } from "../core/model/types.ts";
import { createFolding, foldTime } from "./folding.ts";

const budget = 1_000;
const [one, other] = [1 as ConversationId, 2 as ConversationId];

describe("the time of a fold", () => {
  it("is when the cache is cold, as long as there is room", () => {
    assert.equal(foldTime({ kind: "nothing", promptTokens: 990, budget }), "never");
    assert.equal(foldTime({ kind: "sweep", promptTokens: 900, budget }), "when idle");
    assert.equal(foldTime({ kind: "sweep", promptTokens: 901, budget }), "now");
    assert.equal(foldTime({ kind: "incremental", promptTokens: 10, budget }), "now");
  });

  const lcm = (promptTokens: number): Lcm =>
    ({ due: async () => ({ kind: "sweep", promptTokens, budget }) }) as unknown as Lcm;
  const start = (idleMs: number) => {
    const folded: ConversationId[] = [];
    const folding = createFolding({ compactSoon: (conversation) => void folded.push(conversation) }, idleMs);
    return { folded, folding };
  };

  it("comes once the session is idle, and not while requests come", async () => {
    const { folded, folding } = start(20);
    await folding.consider(lcm(800), one, null);
    await folding.consider(lcm(800), other, null);
    folding.stir(one);
    assert.deepEqual(folded, []);
    await sleep(60);
    assert.deepEqual(folded, [other]);
    await folding.consider(lcm(800), one, null);
    await sleep(60);
    assert.deepEqual(folded, [other, one]);
  });

  it("is at once when there is hardly any room, or when nothing more will come", async () => {
    const { folded, folding } = start(100_000);
    await folding.consider(lcm(950), one, null);
    assert.deepEqual(folded, [one]);
    await folding.consider(lcm(800), other, null);
    folding.flush();
    folding.flush();
    assert.deepEqual(folded, [one, other]);
  });
});
