import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { openSqlite } from "../../store/sqlite/store.ts";
import { toIncoming, user } from "../../../test/support/scripted-host.ts";
import { createScriptedModel } from "../../../test/support/scripted-model.ts";
import { checkValid } from "../../../test/support/valid-prompt.ts";
import type { ConversationId } from "../model/types.ts";
import type { Model } from "../model/store.ts";
import { promptTokens } from "../model/prompt-cost.ts";
import { LcmError } from "../base/errors.ts";
import { newPath, clock, ground, model } from "../../../test/support/compaction-ground.ts";

describe("guarantee 5: every fold strictly lowers the context's tokens, or is not made", () => {
  for (const behaviour of ["good", "echo", "long", "garbage", "empty", "reasoning"] as const) {
    it(`with a model that is ${behaviour}`, async () => {
      const { lcm, id, live, check } = await ground({ model: model(behaviour) });
      await live(60);
      let tokens = promptTokens((await lcm.store.conversation(id))?.totals ?? assert.fail());
      await lcm.compact({
        conversation: id,
        mode: "sweep",
        force: true,
        onPass: ({ tokens: after, sourceTokens }) => assert.ok(after < sourceTokens),
      });
      const now = promptTokens((await lcm.store.conversation(id))?.totals ?? assert.fail());
      assert.ok(now < tokens);
      tokens = now;
      await check();
    });
  }

  it("leaves messages too short for any summary in place", async () => {
    const { lcm, id, host } = await ground({ model: model("good") });
    for (let n = 0; n < 40; n++) host.says(user("ok"));
    await lcm.ingest(id, host.entries.map(toIncoming));
    const report = await lcm.compact({ conversation: id, mode: "sweep", force: true });
    assert.equal(report.outcome.kind, "settled");
    assert.equal(report.compacted, report.tokensAfter < report.tokensBefore);
  });
});

describe("guarantee 8: a model never delays a turn", () => {
  it("stores and assembles while the summary model hangs", async () => {
    const { lcm, id, live, check } = await ground({ model: model("hangs") });
    await live(40);
    const stop = new AbortController();
    const hanging = lcm.compact({ conversation: id, mode: "sweep", signal: stop.signal });
    await live(2);
    const { messages, report } = await lcm.assemble(id, { budget: 4_000 });
    checkValid(messages);
    assert.ok(report.tokens <= 4_000);
    stop.abort();
    assert.equal((await hanging).outcome.kind, "bounded");
    await check();
  });
});

describe("guarantee 9: one deadline covers all nested loops of a compaction", () => {
  it("ends a sweep whose model hangs and ignores the signal, keeping what was folded before", async () => {
    let calls = 0;
    const deadline = new AbortController();
    const { lcm, id, live, check } = await ground({
      model: model(() => {
        if (++calls <= 5) return "good";
        setTimeout(() => deadline.abort(new DOMException("the time is up", "TimeoutError")), 20);
        return "hangs";
      }),
      config: { summaryConcurrency: 1 },
    });
    await live(60);
    const report = await lcm.compact({ conversation: id, mode: "sweep", signal: deadline.signal });
    assert.deepEqual(report.outcome, { kind: "bounded", bound: "deadline" });
    assert.equal(report.passes.length, 5);
    assert.ok(report.compacted);
    await check();
  });

  it("is not reset by rounds, levels or waiting", async () => {
    const { lcm, id, live } = await ground({ model: model("hangs"), config: { contextTarget: 0 } });
    await live(60);
    const signal = AbortSignal.timeout(100);
    const reports = await Promise.all(
      (["sweep", "incremental", "due"] as const).map(
        async (mode) => await lcm.compact({ conversation: id, mode, signal }),
      ),
    );
    assert.ok(signal.aborted);
    assert.deepEqual(
      reports.map(({ outcome }) => outcome.kind),
      ["bounded", "bounded", "bounded"],
    );
  });

  it("applies while waiting for another compaction", async () => {
    const { lcm, id, live } = await ground({ model: model("hangs") });
    await live(60);
    const stop = new AbortController();
    const hanging = lcm.compact({ conversation: id, mode: "sweep", signal: stop.signal });
    const waiting = await lcm.compact({ conversation: id, mode: "sweep", signal: AbortSignal.timeout(30) });
    assert.deepEqual(waiting.outcome, { kind: "bounded", bound: "deadline" });
    stop.abort();
    await hanging;
    const after = await lcm.compact({ conversation: id, mode: "sweep", signal: AbortSignal.timeout(30) });
    assert.equal(after.outcome.kind, "bounded", "the next one has its turn");
  });

  it("makes no pass once it has expired", async () => {
    const scripted = model("good");
    const { lcm, id, live } = await ground({ model: scripted });
    await live(60);
    for (const mode of ["sweep", "until_under"] as const) {
      const report = await lcm.compact({ conversation: id, mode, signal: AbortSignal.abort(), targetTokens: 10 });
      assert.deepEqual([report.outcome.kind, report.compacted], ["bounded", false]);
    }
    assert.equal(scripted.calls.length, 0);
  });

  it("limits passes, and reports which bound ended it", async () => {
    const { lcm, id, live } = await ground({ model: model("good") });
    await live(60);
    for (const passesMax of [1, 2, 5]) {
      const report = await lcm.compact({ conversation: id, mode: "sweep", passesMax });
      assert.deepEqual(report.outcome, { kind: "bounded", bound: "passes" });
      assert.equal(report.passes.length, passesMax);
    }
  });
});

describe("guarantee 17: compact reports what really happened", () => {
  for (const behaviour of [
    "good",
    "refuses",
    "unauthorized",
    "garbage",
    "echo",
    "reasoning",
    "long",
    "empty",
    "throws",
  ] as const) {
    for (const mode of ["due", "incremental", "sweep", "until_under"] as const) {
      it(`${mode} with a model that is ${behaviour}: compacted only if tokens fell, else a reason, and no throw`, async () => {
        const { lcm, id, live, check } = await ground({ model: model(behaviour) });
        await live(30);
        const before = promptTokens((await lcm.store.conversation(id))?.totals ?? assert.fail());
        const report = await lcm.compact({ conversation: id, mode, targetTokens: 900 });
        const now = promptTokens((await lcm.store.conversation(id))?.totals ?? assert.fail());
        assert.deepEqual([report.tokensBefore, report.tokensAfter, report.compacted], [before, now, now < before]);
        assert.notEqual(report.message, "");
        await check();
      });
    }
  }

  it("reports the target as met only if it is, whatever others wrote meanwhile", async () => {
    const scripted = model("good");
    const { lcm, id, live } = await ground({
      model: {
        ...scripted,
        async complete(request) {
          if (scripted.calls.length < 12) await live(3);
          return await scripted.complete(request);
        },
      },
    });
    await live(60);
    const report = await lcm.compact({ conversation: id, mode: "until_under", targetTokens: 2_500 });
    assert.equal(report.outcome.kind === "under", report.tokensAfter <= 2_500, report.message);
  });

  it("does not report compacted when new messages outweigh the saving", async () => {
    const scripted = model("good");
    const { lcm, id, live } = await ground({
      config: { contextTarget: 0 },
      model: {
        ...scripted,
        async complete(request) {
          await live(40);
          return await scripted.complete(request);
        },
      },
    });
    await live(14);
    const report = await lcm.compact({ conversation: id, mode: "due" });
    assert.deepEqual(
      [report.passes.length, report.compacted, report.tokensAfter > report.tokensBefore],
      [1, false, true],
    );
  });

  it("does not report settled because every fold of a round was stale", async () => {
    const scripted = model("good");
    let late = 0;
    const { lcm, id, host, live } = await ground({
      model: {
        ...scripted,
        async complete(request) {
          // A redaction makes every fold of what was read before it stale.
          if (late++ < 20) {
            const plan = await lcm.store.planForget(null, { kind: "secret", text: `secret${100 + late}` });
            await lcm.store.forget(null, plan);
          }
          return await scripted.complete(request);
        },
      },
    });
    host.says(user(Array.from({ length: 20 }, (_, n) => `secret${101 + n}`).join(" ")));
    await live(40);
    const report = await lcm.compact({ conversation: id, mode: "sweep" });
    assert.ok(report.outcome.kind === "settled" && report.passes.length >= 8, report.message);
    const left = await lcm.planCompaction({ conversation: id, mode: "sweep" });
    assert.equal(left.passes.length, 0);
  });

  it("waits for a model that refuses, and reports the reason", async () => {
    const { lcm, id, live } = await ground({ model: model("unauthorized") });
    await live(30);
    const report = await lcm.compact({ conversation: id, mode: "sweep" });
    assert.equal(report.outcome.kind === "waiting" && report.outcome.refusal, "auth");
    assert.equal(report.compacted, false);
    assert.match(report.message, /nothing was folded; waiting for the model \(auth\)/);
  });

  it("waits for a model that reports a cancellation we did not request", async () => {
    const refused = { kind: "refused", refusal: "cancelled", message: "the connection was closed" } as const;
    const model: Model = { provider: "scripted", name: "one", complete: async () => refused };
    const { lcm, id, live } = await ground({ model });
    await live(20);
    const { outcome } = await lcm.compact({ conversation: id, mode: "sweep" });
    assert.deepEqual(outcome, { kind: "waiting", refusal: "cancelled", message: "the connection was closed" });
  });

  it("throws only if the conversation does not exist", async () => {
    const { lcm } = await ground();
    await assert.rejects(lcm.compact({ conversation: 999 as ConversationId, mode: "sweep" }), { code: "not_found" });
  });

  it("returns what was folded before when the store fails", async () => {
    const { lcm, id, live } = await ground({ config: { summaryConcurrency: 1 } });
    await live(60);
    const passes: number[] = [];
    const report = await lcm.compact({
      conversation: id,
      mode: "sweep",
      onPass: ({ depth }) => {
        passes.push(depth);
        if (passes.length === 3) void lcm.store.close();
      },
    });
    assert.equal(report.outcome.kind, "failed");
    assert.equal(report.passes.length, passes.length);
  });

  it("knows the context's size when the store cannot be read", async () => {
    const swept = async (passesMax: number, isCutOff: boolean) => {
      const { lcm, id, live } = await ground({ model: model("good"), config: { summaryConcurrency: 1 } });
      await live(60);
      let passes = 0;
      const onPass = (): void => {
        if (++passes === passesMax && isCutOff) void lcm.store.close();
      };
      return await lcm.compact({ conversation: id, mode: "sweep", passesMax, onPass });
    };
    const { passes } = await swept(100, false);
    const condensed = 1 + passes.findIndex(({ depth }) => depth > 0);
    assert.ok(condensed > 1);
    for (const passesMax of [1, condensed])
      assert.equal((await swept(passesMax, true)).tokensAfter, (await swept(passesMax, false)).tokensAfter);
  });

  it("returns an outcome when the store fails before anything was folded", async () => {
    const { lcm, id, live } = await ground();
    await live(2);
    await lcm.store.close();
    const report = await lcm.compact({ conversation: id, mode: "sweep" });
    assert.equal(report.outcome.kind, "failed");
    assert.deepEqual(report.passes, []);
    assert.deepEqual([report.mode, report.tokensBefore, report.tokensAfter], ["sweep", 0, 0]);
    assert.equal(report.compacted, false);
  });
});

describe("guarantee 20: overflow always has a way out without a model", () => {
  for (const behaviour of ["refuses", "unauthorized", "throws", "hangs"] as const) {
    it(`with a model that is ${behaviour}`, async () => {
      const { lcm, id, live, check } = await ground({ model: model(behaviour) });
      await live(60);
      const patience = AbortSignal.timeout(30);
      const report = await lcm.compact({ conversation: id, mode: "until_under", targetTokens: 1_500, patience });
      assert.deepEqual([report.outcome.kind, report.compacted], ["under", true]);
      assert.ok(report.tokensAfter <= 1_500);
      assert.ok(report.passes.every(({ level }) => level === "extractive"));
      await check();
    });
  }

  it("does no more than a sweep if that is enough", async () => {
    const config = { summaryConcurrency: 1 };
    const [swept, freed] = [await ground({ config }), await ground({ config })];
    for (const { live } of [swept, freed]) await live(40);
    const { passes, tokensAfter } = await swept.lcm.compact({ conversation: swept.id, mode: "sweep" });
    const way = { mode: "until_under", targetTokens: tokensAfter } as const;
    const report = await freed.lcm.compact({ conversation: freed.id, ...way });
    const shapes = (made: typeof passes): unknown => made.map(({ depth, sourceTokens }) => [depth, sourceTokens]);
    assert.deepEqual([report.outcome.kind, shapes(report.passes)], ["under", shapes(passes)]);
  });

  it("folds into the fresh tail only if everything else is not enough", async () => {
    const { lcm, id, live, check } = await ground({ config: { freshTailCount: 64 } });
    await live(40);
    const gentle = await lcm.compact({ conversation: id, mode: "until_under", targetTokens: 5_000 });
    assert.ok((await lcm.store.context(id, { kind: "message" })).length >= 64, gentle.message);
    const report = await lcm.compact({ conversation: id, mode: "until_under", targetTokens: 1_500 });
    assert.equal(report.outcome.kind, "under", report.message);
    assert.ok((await lcm.store.context(id, { kind: "message" })).length < 64);
    await check();
  });

  it("retries with other targets what could not be shortened at first", async () => {
    const { lcm, id, live } = await ground({ config: { leafTargetTokens: 1 } });
    await live(60);
    const tail = await lcm.store.context(id, { kind: "message", limit: 8, keep: "newest" });
    const report = await lcm.compact({ conversation: id, mode: "until_under", targetTokens: 5_000 });
    assert.equal(report.outcome.kind, "under", report.message);
    const left = new Set((await lcm.store.context(id, { kind: "message" })).map((item) => item.id));
    assert.ok(
      tail.every((item) => left.has(item.id)),
      "the fresh tail was not needed for it",
    );
  });

  it("works with any settings", async () => {
    for (const config of [
      { leafChunkTokens: 2, leafTargetTokens: 1, condensedTargetTokens: 1 },
      { leafChunkTokens: 100, leafTargetTokens: 10 },
      { freshTailCount: 1_000_000_000 },
      { freshTailCount: 0 },
      { summaryConcurrency: 64, spendCeilingCalls: 0 },
      { contextThreshold: 0 },
    ]) {
      const { lcm, id, live, check } = await ground({ config });
      await live(60);
      const report = await lcm.compact({ conversation: id, mode: "until_under", targetTokens: 1_500 });
      assert.equal(report.outcome.kind, "under", `${JSON.stringify(config)}: ${report.message}`);
      await check();
    }
  });

  it("does not wait for a sweep that hangs", async () => {
    const { lcm, id, live, check } = await ground({ model: model("hangs") });
    await live(60);
    const stop = new AbortController();
    const hanging = lcm.compact({ conversation: id, mode: "sweep", signal: stop.signal });
    const rescued = await lcm.compact({
      conversation: id,
      mode: "until_under",
      targetTokens: 1_500,
      patience: AbortSignal.abort(),
    });
    assert.equal(rescued.outcome.kind, "under");
    stop.abort();
    await hanging;
    await check();
  });

  it("stops calling the model at the ceiling, and waits", async () => {
    const scripted = model("good");
    const { lcm, id, live } = await ground({ model: scripted, config: { spendCeilingCalls: 4 } });
    await live(60);
    const report = await lcm.compact({ conversation: id, mode: "sweep" });
    assert.equal(report.outcome.kind === "waiting" && report.outcome.refusal, "ceiling");
    assert.equal(scripted.calls.length, 4);
    assert.equal((await lcm.spend()).usage.calls, 4);
  });
});

describe("a store that fails once, in one of several passes", () => {
  for (const method of ["fold", "messages"] as const) {
    it(`makes the compaction fail with its reason: ${method}`, async () => {
      const path = newPath();
      const store = await openSqlite({ path, now: () => clock.now(), housekeeping: false });
      let isDue = false;
      const failing: typeof store = {
        ...store,
        [method]: async (...args: never[]) => {
          if (isDue) {
            isDue = false;
            throw new LcmError("unavailable", "the disk is full");
          }
          return await (store[method] as (...given: never[]) => Promise<unknown>)(...args);
        },
      };
      const { lcm, id, live } = await ground({
        store: failing,
        model: createScriptedModel({ behaviour: () => "good" }),
      });
      assert.equal(id, (await store.open({ sessionId: "s", sessionKey: "agent:main:s" })).id);
      await live(40);
      isDue = true;
      const report = await lcm.compact({ conversation: id, mode: "sweep" });
      assert.deepEqual(report.outcome, { kind: "failed", message: "the disk is full" });
      await store.close();
    });
  }
});
