import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { toIncoming, user } from "../../../test/support/scripted-host.ts";
import type { Behaviour } from "../../../test/support/scripted-model.ts";
import type { Model } from "../model/store.ts";
import { contextBefore, targetTokensOf } from "../summarize/source.ts";
import type { PlannedPass } from "./plan-compaction.ts";
import { promptTokens, summaryOverheadTokens } from "../model/prompt-cost.ts";
import { small, ground, words, model } from "../../../test/support/compaction-ground.ts";

describe("compaction", () => {
  it("counts the standing instructions that a prompt repeats, where they decide", async () => {
    const { lcm, id, host, live } = await ground();
    host.says(user(`Always answer in German. ${"Never push to main on a Friday without asking me. ".repeat(4)}`));
    await live(12);
    while ((await lcm.store.index(100)) > 0);
    const { totals } = (await lcm.store.conversation(id)) ?? assert.fail();
    await lcm.store.setPromptBudget(id, Math.ceil((promptTokens(totals) + 20) / 0.75));
    const { kind, promptTokens: counted } = await lcm.due(id);
    assert.deepEqual([kind, counted > promptTokens(totals)], ["sweep", true]);
    await lcm.store.setPromptBudget(id, 2 * promptTokens(totals));
    assert.equal((await lcm.due(id)).promptTokens, promptTokens(totals), "far from the threshold they are not read");
  });

  it("does nothing and reports so while nothing is due", async () => {
    const { lcm, id, live } = await ground({ model: model("good") });
    await live(3);
    assert.equal((await lcm.due(id)).kind, "nothing");
    const report = await lcm.compact({ conversation: id, mode: "due" });
    assert.deepEqual([report.outcome.kind, report.compacted, report.passes.length], ["idle", false, 0]);
  });

  it("between turns folds one leaf when raw messages outside the tail exceed a chunk", async () => {
    const { lcm, id, live, check } = await ground({ model: model("good"), config: { contextTarget: 0 } });
    await live(14);
    assert.equal((await lcm.due(id)).kind, "incremental");
    const report = await lcm.compact({ conversation: id, mode: "due" });
    assert.equal(report.passes.length, 1);
    assert.equal(report.passes[0]?.depth, 0);
    assert.ok(report.compacted && report.tokensAfter < report.tokensBefore);
    await check();
  });

  it("condenses between turns only as deep as the settings allow", async () => {
    for (const [incrementalMaxDepth, deepest] of [
      [0, 0],
      [1, 1],
      [-1, 3],
    ] as const) {
      const { lcm, id, live, check } = await ground({
        model: model("good"),
        config: { contextTarget: 0, incrementalMaxDepth },
      });
      const depths: number[] = [];
      for (let round = 0; round < 40; round++) {
        await live(4);
        const { passes } = await lcm.compact({ conversation: id, mode: "due" });
        depths.push(...passes.map(({ depth }) => depth));
      }
      assert.equal(Math.max(...depths), deepest, `incrementalMaxDepth ${incrementalMaxDepth}`);
      await check();
    }
  });

  it("sweeps until nothing is left to fold, in layers, and leaves the fresh tail raw", async () => {
    const { lcm, id, live, check } = await ground({
      model: model("good"),
      config: { leafChunkTokens: 300, spendCeilingCalls: 1_000 },
    });
    await live(300);
    const report = await lcm.compact({ conversation: id, mode: "sweep" });
    assert.equal(report.outcome.kind, "settled");
    const depths = new Set(report.passes.map(({ depth }) => depth));
    assert.ok(depths.has(0) && depths.has(1) && depths.has(2), [...depths].join());
    const context = await lcm.store.context(id);
    assert.ok(context.slice(-8).every(({ kind }) => kind === "message"));
    assert.equal((await lcm.compact({ conversation: id, mode: "sweep" })).outcome.kind, "settled");
    await check();
  });

  it("fills a pass with short messages up to its token limit, from either end", async () => {
    for (const budget of [1_000, 1_000_000]) {
      const config = { leafChunkTokens: 4_000, freshTailCount: 4 };
      const { lcm, id, host, live } = await ground({ model: model("good"), config });
      for (let said = 0; said < 400; said++) host.says(user(`Point ${said}.`));
      await live(0);
      const { passes } = await lcm.compact({ conversation: id, mode: "sweep", budget });
      assert.equal(passes[0]?.sources, 396, `of ${budget}`);
    }
  });

  it("never separates a tool call from its result", async () => {
    const { lcm, id, live } = await ground({ model: model("good") });
    await live(60);
    for (const mode of ["due", "sweep"] as const) {
      await lcm.compact({ conversation: id, mode });
      const context = await lcm.store.context(id);
      const messages = await lcm.store.messages({
        ids: context.flatMap((item) => (item.kind === "message" ? [item.id] : [])),
      });
      const calls = messages.flatMap(({ parts }) =>
        parts.filter(({ type }) => type === "tool").map((part) => part.toolCallId),
      );
      assert.equal(messages.filter(({ role }) => role === "tool").length, calls.length);
    }
  });

  it("gives the preceding summary to leaves and depth 1, and nothing to deeper summaries", async () => {
    const scripted = model("good");
    const { lcm, id, live } = await ground({ model: scripted, config: { summaryConcurrency: 1 } });
    await live(120);
    await lcm.compact({ conversation: id, mode: "sweep" });
    const summaries = await lcm.store.summaries({ conversation: id });
    const given = (depth: number): readonly boolean[] =>
      summaries.filter((summary) => summary.depth === depth).map(({ previousContext }) => previousContext !== null);
    assert.deepEqual([given(0)[0], given(0).slice(1).every(Boolean)], [false, true]);
    assert.ok(given(1).slice(1).every(Boolean));
    assert.ok(given(2).every((each) => !each));
  });

  it("folds from the newest end when a prompt that must shrink exceeds its budget", async () => {
    const { lcm, id, live, check } = await ground({ model: model("good") });
    await live(120);
    await lcm.compact({ conversation: id, mode: "until_under", budget: 2_000, passesMax: 4 });
    const context = await lcm.store.context(id);
    assert.equal(context[0]?.kind, "message");
    assert.ok(context.slice(-40).some(({ kind }) => kind === "summary"));
    await check();
  });

  it("passes custom instructions to the model", async () => {
    const scripted = model("good");
    const { lcm, id, live } = await ground({
      model: scripted,
      config: { customInstructions: "Keep invoice numbers." },
    });
    await live(20);
    await lcm.compact({ conversation: id, mode: "sweep", customInstructions: "Mention the harbour." });
    assert.ok(scripted.calls.length > 0);
    assert.ok(
      scripted.calls.every(
        ({ prompt }) => prompt.includes("Keep invoice numbers.") && prompt.includes("Mention the harbour."),
      ),
    );
  });

  it("uses the model given in the request instead of its own", async () => {
    const [own, brought] = [model("good"), model("good")];
    const { lcm, id, live } = await ground({ model: own, config: { contextTarget: 0 } });
    await live(14);
    const report = await lcm.compact({ conversation: id, mode: "due", model: brought });
    assert.deepEqual([report.passes.length, own.calls.length, brought.calls.length], [1, 0, 1]);
  });

  it("makes several model calls at a time, up to the limit", async () => {
    for (const summaryConcurrency of [1, 3]) {
      let inFlight = 0;
      let most = 0;
      const scripted = model("slow", 2);
      const counting: Model = {
        ...scripted,
        async complete(request) {
          most = Math.max(most, ++inFlight);
          try {
            return await scripted.complete(request);
          } finally {
            inFlight -= 1;
          }
        },
      };
      const { lcm, id, live, check } = await ground({ model: counting, config: { summaryConcurrency } });
      await live(60);
      await lcm.compact({ conversation: id, mode: "sweep" });
      assert.equal(most, summaryConcurrency);
      await check();
    }
  });

  it("runs one compaction at a time per conversation", async () => {
    const scripted = model("slow", 1);
    const { lcm, id, live, check } = await ground({ model: scripted });
    await live(60);
    const reports = await Promise.all(
      [1, 2, 3].map(async () => await lcm.compact({ conversation: id, mode: "sweep" })),
    );
    assert.equal(scripted.calls.length, reports[0]?.passes.length, "nothing was drafted twice");
    assert.deepEqual(
      reports.map(({ passes }) => passes.length > 0),
      [true, false, false],
    );
    await check();
  });

  it("continues after a fold that is stale because of another writer", async () => {
    const scripted = model("good");
    let dissolved = 0;
    const { lcm, id, live, check } = await ground({
      config: { summaryConcurrency: 1 },
      model: {
        ...scripted,
        async complete(request) {
          // Another process folds the messages this one is summarising.
          const [first, second] = await lcm.store.context(id, { kind: "message", limit: 2 });
          if (dissolved++ < 2 && first !== undefined && second !== undefined) {
            const summary = {
              text: "x",
              tokens: 1,
              level: "normal",
              model: null,
              previousContext: null,
              fileIds: [],
            } as const;
            await lcm.store.fold(id, [first, second], summary);
          }
          return await scripted.complete(request);
        },
      },
    });
    await live(40);
    const report = await lcm.compact({ conversation: id, mode: "sweep" });
    assert.equal(report.outcome.kind, "settled");
    assert.ok(report.passes.length > 2);
    await check();
  });

  it("records what it did, for status", async () => {
    const { lcm, id, live } = await ground({ model: model("good") });
    await live(60);
    const report = await lcm.compact({ conversation: id, mode: "sweep" });
    const [last] = await lcm.store.compactions(id, 1);
    assert.deepEqual(
      [last?.outcome, last?.passes, last?.tokensBefore, last?.tokensAfter],
      ["settled", report.passes.length, report.tokensBefore, report.tokensAfter],
    );
  });

  it("records nothing for a sweep that had nothing to do", async () => {
    const { lcm, id, live } = await ground({ model: model("good") });
    await live(2);
    assert.equal((await lcm.compact({ conversation: id, mode: "sweep" })).outcome.kind, "settled");
    assert.deepEqual(await lcm.store.compactions(id, 5), []);
  });

  for (const concurrency of [1, 2, 4, 8]) {
    it(`stops folding as soon as the context is under the target, with ${concurrency} passes at a time`, async () => {
      const { lcm, id, live } = await ground({ model: model("slow"), config: { summaryConcurrency: concurrency } });
      await live(30);
      const before = promptTokens((await lcm.store.conversation(id))?.totals ?? assert.fail());
      const report = await lcm.compact({ conversation: id, mode: "until_under", targetTokens: before - 1 });
      assert.deepEqual([report.outcome.kind, report.passes.length], ["under", 1]);
    });
  }

  it("folds on the way to a target what its plan lists, and no more, with and without a model, at any concurrency", async () => {
    const leafTargetTokens = 100; // The least that stricter passes take.
    const leavesOf = (passes: readonly Pick<PlannedPass, "depth" | "sources" | "sourceTokens">[]) =>
      passes.filter(({ depth }) => depth === 0).map(({ sources, sourceTokens }) => `${sources} of ${sourceTokens}`);
    let whole = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 20, max: 80 }),
        fc.double({ min: 0.25, max: 1, noNaN: true }),
        fc.integer({ min: 1, max: 8 }),
        fc.constantFrom<Behaviour | null>("good", "slow", null),
        async (turns, share, summaryConcurrency, behaviour) => {
          const { lcm, id, live } = await ground({
            model: behaviour === null ? null : model(behaviour),
            config: { summaryConcurrency, leafTargetTokens },
          });
          await live(turns);
          const before = promptTokens((await lcm.store.conversation(id))?.totals ?? assert.fail());
          const request = { conversation: id, mode: "until_under", targetTokens: Math.ceil(before * share) } as const;
          const plan = await lcm.planCompaction(request);
          const report = await lcm.compact(request);
          await lcm.close();
          const targets = { leafTargetTokens, condensedTargetTokens: small.condensedTargetTokens };
          const isLong = report.passes.some(
            (made) => made.tokens > targetTokensOf(targets, made.depth, made.sourceTokens),
          );
          // If a summary is longer than its target, or the target is out of reach, more is folded than planned.
          if (isLong || plan.tokensAfter > request.targetTokens) return;
          whole += 1;
          assert.ok(report.passes.length <= plan.passes.length, `${report.passes.length} of ${plan.passes.length}`);
          assert.equal(report.outcome.kind, "under");
          const planned = leavesOf(plan.passes);
          for (const leaf of leavesOf(report.passes)) assert.ok(planned.includes(leaf), `${leaf} is not in the plan`);
        },
      ),
      { numRuns: 40 },
    );
    assert.ok(whole >= 20, `${whole} compactions had only summaries within their target`);
  });

  it("plans a sweep without calling a model or writing anything", async () => {
    const scripted = model("good");
    const { lcm, id, live } = await ground({ model: scripted });
    await live(120);
    const before = await lcm.store.conversation(id);
    const plan = await lcm.planCompaction({ conversation: id, mode: "sweep" });
    assert.deepEqual(await lcm.store.conversation(id), before);
    assert.equal(scripted.calls.length, 0);
    const report = await lcm.compact({ conversation: id, mode: "sweep" });
    const leaves = (passes: readonly { readonly depth: number }[]): number =>
      passes.filter(({ depth }) => depth === 0).length;
    assert.equal(leaves(plan.passes), leaves(report.passes));
    assert.ok(plan.passes.some(({ depth, sources }) => depth === 1 && sources >= 4));
    const saved = plan.passes.reduce((sum, { depth, sources, sourceTokens, targetTokens }) => {
      const headers = summaryOverheadTokens * (depth === 0 ? 1 : 1 - sources);
      return sum + sourceTokens - targetTokens - headers;
    }, 0);
    assert.equal(plan.tokensAfter, plan.tokensBefore - saved);
  });

  it("plans where bounds would stop it", async () => {
    const { lcm, id, live } = await ground({ config: { contextTarget: 0 } });
    await live(120);
    const sweep = await lcm.planCompaction({ conversation: id, mode: "sweep" });
    const two = await lcm.planCompaction({ conversation: id, mode: "sweep", passesMax: 2 });
    assert.deepEqual([two.passes.length, two.passes[0]], [2, sweep.passes[0]]);
    const targetTokens = Math.floor(sweep.tokensBefore * 0.7);
    const until = await lcm.planCompaction({ conversation: id, mode: "until_under", targetTokens });
    assert.ok(until.tokensAfter <= targetTokens && until.passes.length < sweep.passes.length);
    const met = await lcm.planCompaction({ conversation: id, mode: "until_under", targetTokens: sweep.tokensBefore });
    assert.deepEqual([met.passes.length, met.tokensAfter], [0, sweep.tokensBefore]);
    const due = await lcm.planCompaction({ conversation: id, mode: "due" });
    assert.equal(due.passes.length, 1);
  });
});

describe("a sweep that is due by itself", () => {
  const budget = 8_000;
  const targetTokens = 4_000;
  const living = async (config: Readonly<Record<string, unknown>> = {}, summaryModel: Model | null = model("good")) => {
    const given = await ground({ model: summaryModel, config: { leafChunkTokens: 1_000, ...config } });
    await given.lcm.store.setPromptBudget(given.id, budget);
    return given;
  };

  it("stops at the target, the oldest folded first and the newest raw", async () => {
    const { lcm, id, live, check } = await living();
    await live(80);
    const report = await lcm.compact({ conversation: id, mode: "due" });
    assert.deepEqual(report.outcome, { kind: "under", targetTokens });
    assert.ok(report.tokensAfter > targetTokens - 0.1 * budget, report.message);
    const context = await lcm.store.context(id);
    const firstRaw = context.findIndex(({ kind }) => kind === "message");
    assert.ok(firstRaw > 0 && context.slice(firstRaw).every(({ kind }) => kind === "message"));
    assert.equal((await lcm.compact({ conversation: id, mode: "due" })).outcome.kind, "idle");
    await check();
  });

  it("over a long life keeps the context between target and threshold, and condenses only what it must", async () => {
    const { lcm, id, live, check } = await living({ spendCeilingCalls: 10_000 });
    const deepestAt: number[] = [];
    for (let turn = 0; turn < 240; turn++) {
      await live(2);
      const report = await lcm.compact({ conversation: id, mode: "due" });
      if (report.passes.length === 0) continue;
      assert.equal(report.outcome.kind, "under", report.message);
      assert.ok(report.tokensAfter > targetTokens - 0.15 * budget, JSON.stringify(report));
      const depths = report.passes.map(({ depth }) => depth);
      assert.deepEqual(
        depths,
        depths.toSorted((a, b) => a - b),
        "raw before leaves, leaves before deeper ones",
      );
      const condensed = report.passes.filter(({ depth }) => depth > 0);
      for (const { sources, depth } of condensed) assert.equal(sources, depth === 1 ? 4 : 3);
      // Without its last pass the target would have been missed.
      const { sourceTokens = 0, sources = 0 } = report.passes.at(-1) ?? {};
      assert.ok(report.tokensAfter + sourceTokens + sources * summaryOverheadTokens > targetTokens, report.message);
      deepestAt.push(Math.max(...depths));
    }
    assert.ok(deepestAt.length > 10 && deepestAt.includes(0) && deepestAt.includes(1), deepestAt.join());
    await check();
  });

  it("writes one summary after the other, each with the one before it", async () => {
    const scripted = model("slow", 1);
    const { lcm, id, live } = await living({ summaryConcurrency: 4 }, scripted);
    await live(80);
    const { passes } = await lcm.compact({ conversation: id, mode: "due" });
    const summaries = await lcm.store.summaries({ ids: passes.map(({ summary }) => summary) });
    assert.ok(passes.length > 2);
    for (const [at, { previousContext }] of summaries.entries())
      assert.equal(previousContext, at === 0 ? null : summaries[at - 1]?.text);
  });

  it("with a backlog of many budgets folds what is nearest to the prompts first, and keeps the newest raw", async () => {
    const { lcm, id, live } = await living({ spendCeilingCalls: 10_000 });
    await live(400);
    await lcm.compact({ conversation: id, mode: "due", budget: 2_000, passesMax: 6 });
    const context = await lcm.store.context(id);
    const lastSummary = context.findLastIndex(({ kind }) => kind === "summary");
    const keptRaw = context.slice(lastSummary + 1).reduce((sum, { tokens }) => sum + tokens, 0);
    assert.equal(context[0]?.kind, "message");
    assert.ok(keptRaw > 300 && keptRaw < 700, String(keptRaw));
  });

  it("never separates a call from its results, and makes no leaf below its minimum, with small chunks", async () => {
    const config = { leafChunkTokens: 2_500, leafTargetTokens: 1_200, leafMinFanout: 100, spendCeilingCalls: 1_000 };
    const { lcm, id, host, live } = await living(config);
    for (let turn = 0; turn < 300; turn++) {
      const ids = Array.from({ length: 6 }, (_, n) => `t${turn}-${n}`);
      host.says(user(`Look at part ${turn}.`));
      host.says({
        role: "assistant",
        content: ids.map((each) => ({ type: "toolCall", id: each, name: "read", arguments: { path: each } })),
      });
      for (const each of ids) host.says({ role: "toolResult", toolCallId: each, toolName: "read", content: "short" });
      await live(0);
      await lcm.compact({ conversation: id, mode: "due", budget: 20_000 });
    }
    const leaves = await lcm.store.summaries({ conversation: id, depth: 0 });
    assert.ok(leaves.length > 5);
    for (const [, { messages }] of await lcm.store.sources(leaves.map((leaf) => leaf.id))) {
      const sources = await lcm.store.messages({ ids: messages });
      const calls = sources.flatMap(({ parts }) => parts.filter(({ type }) => type === "tool"));
      assert.equal(sources.filter(({ role }) => role === "tool").length, calls.length);
      assert.ok(sources.reduce((sum, { tokens }) => sum + tokens, 0) >= 2_400);
    }
  });

  it("is not over while messages arrive that keep the context above the target", async () => {
    const scripted = model("good");
    let arrivals = 0;
    const given = await living(
      {},
      {
        ...scripted,
        async complete(request) {
          if (arrivals++ < 6) await given.live(6);
          return await scripted.complete(request);
        },
      },
    );
    await given.live(80);
    const { outcome, message } = await given.lcm.compact({ conversation: given.id, mode: "due" });
    assert.equal(outcome.kind, "under", message);
    assert.equal((await given.lcm.due(given.id)).kind, "nothing");
  });

  it("with a target of 0 folds until nothing is left, as the older program does", async () => {
    const { lcm, id, live } = await living({ contextTarget: 0 });
    await live(80);
    assert.deepEqual((await lcm.compact({ conversation: id, mode: "due" })).outcome, { kind: "settled" });
  });

  it("stops well below a threshold that is set lower than the target", async () => {
    const { lcm, id, live } = await living({ contextThreshold: 0.3 });
    await live(80);
    assert.deepEqual((await lcm.compact({ conversation: id, mode: "due" })).outcome, {
      kind: "under",
      targetTokens: 0.24 * budget,
    });
  });
});

describe("previous_context", () => {
  const begins = "(nothing: the record begins here)";

  it("says that the record begins only for its first stretch, in any order and number of passes", async () => {
    for (const mode of ["due", "sweep", "until_under"] as const) {
      for (const summaryConcurrency of [1, 4]) {
        const scripted = model("slow", 1);
        const { lcm, id, live } = await ground({ model: scripted, config: { summaryConcurrency } });
        await live(120);
        await lcm.compact({ conversation: id, mode, budget: 2_000, targetTokens: 1_000 });
        const first = scripted.calls.filter(({ prompt }) => prompt.includes(begins));
        if (mode === "sweep") assert.ok(first.length >= 1, "the first stretch was written");
        for (const { prompt, purpose } of first)
          assert.ok(purpose !== "leaf" || prompt.includes("day 1?"), `${mode} in the middle of the record`);
      }
    }
  });

  it("names messages that lie between it and the stretch", async () => {
    const { lcm, id, live } = await ground({ config: { summaryConcurrency: 1 } });
    await live(60);
    const [, , ...rest] = await lcm.store.context(id);
    const summary = { text: "x", tokens: 1, level: "normal", model: null, previousContext: null, fileIds: [] } as const;
    await lcm.store.fold(id, rest.slice(20, 24), summary);
    await lcm.compact({ conversation: id, mode: "sweep", passesMax: 1 });
    const { ordinal } = (await lcm.store.context(id)).at(-1) ?? assert.fail();
    assert.match((await contextBefore(lcm.store, id, ordinal)) ?? "", /^x\n\n\(Between this summary and the record/);
  });
});

describe("what is due", () => {
  it("does not count the fresh tail", async () => {
    const { lcm, id, host } = await ground({ model: model("good") });
    for (let n = 0; n < 8; n++) host.says(user("a long word about the orchard and the quarry ".repeat(30)));
    await lcm.ingest(id, host.entries.map(toIncoming));
    const { kind, rawTokens, promptTokens } = await lcm.due(id);
    assert.deepEqual([kind, rawTokens, promptTokens > 2_000], ["nothing", 0, true]);
  });

  it("accepts a budget of zero and rejects what is not a budget", async () => {
    const { lcm, id } = await ground({ model: model("good") });
    const asked = async (budget: number) => await lcm.compact({ conversation: id, mode: "due", budget });
    assert.equal((await asked(0)).outcome.kind, "idle");
    for (const budget of [-1, NaN]) await assert.rejects(asked(budget), { code: "invalid" });
  });

  it("uses the host's budget if none is given, as assembling does", async () => {
    const { lcm, id, live } = await ground({ model: model("good") });
    await live(14);
    await lcm.store.setPromptBudget(id, 700);
    assert.equal((await lcm.due(id)).budget, 700);
    const { tokens } = (await lcm.assemble(id)).report;
    assert.ok(tokens <= 700 && tokens === (await lcm.assemble(id, { budget: 700 })).report.tokens, String(tokens));
    assert.ok((await lcm.assemble(id, { budget: 10_000 })).report.tokens > 700);
  });

  it("follows the host's budget", async () => {
    const { lcm, id, live } = await ground({ model: model("good") });
    await live(20);
    assert.equal((await lcm.due(id)).kind, "nothing");
    await lcm.store.setPromptBudget(id, 1_000);
    assert.equal((await lcm.due(id)).kind, "sweep");
    await assert.rejects(lcm.compact({ conversation: id, mode: "due", budget: Number.NaN }), { code: "invalid" });
    await assert.rejects(lcm.assemble(id, { budget: -5 }), { code: "invalid" });
  });
});

describe("a run that no summary can shorten", () => {
  it("is skipped, does not block later runs, and costs no second model call", async () => {
    const scripted = model("good");
    const { lcm, id, host, live, check } = await ground({ model: scripted, config: { contextTarget: 0 } });
    // Symbols and pictures take tokens but have no words to summarise.
    for (let n = 0; n < 60; n++) host.says(user("— ".repeat(20)));
    await live(20);
    for (let turn = 0; turn < 4; turn++) {
      await live(4);
      await lcm.compact({ conversation: id, mode: "due" });
    }
    const summaries = await lcm.store.summaries({ conversation: id });
    assert.ok(summaries.length >= 3, "what says something was folded");
    const aboutSigns = scripted.calls.filter(({ prompt }) => !prompt.includes("says that the"));
    assert.equal(aboutSigns.length, 0, "no model was asked about signs alone");
    await check();
  });
});

describe("a run hardly longer than a summary's wrapper", () => {
  it("costs model calls once, not every turn", async () => {
    const scripted = model("long");
    const { lcm, id, host } = await ground({ model: scripted });
    for (let n = 0; n < 2; n++) host.says(user(`${words.join(" and the ")} `.repeat(3) + words.slice(0, 5).join(" ")));
    for (let n = 0; n < 8; n++) host.says(user("ok"));
    await lcm.ingest(id, host.entries.map(toIncoming));
    await lcm.compact({ conversation: id, mode: "sweep", force: true });
    const asked = scripted.calls.length;
    assert.ok(asked > 0 && (await lcm.store.summaries({ conversation: id })).length === 0, "it could not be shortened");
    for (let turn = 0; turn < 3; turn++) await lcm.compact({ conversation: id, mode: "sweep", force: true });
    assert.equal(scripted.calls.length, asked);
  });
});

describe("text redacted during a model call", () => {
  for (const secret of ["zq63z", "a much longer secret than its blot"]) {
    it(`does not come back with the draft: ${secret}`, async () => {
      const scripted = model("echo");
      const { lcm, id, host, live } = await ground({
        config: { summaryConcurrency: 1 },
        model: {
          ...scripted,
          async complete() {
            const plan = await lcm.store.planForget(null, { kind: "secret", text: secret });
            if (plan.messages.length > 0) await lcm.store.forget(null, plan);
            const text = `Noor keeps ${secret} in the ledger of the harbour, as was agreed.`;
            return { kind: "text", text, finish: "stop", inputTokens: 1, outputTokens: 1 };
          },
        },
      });
      host.says(user(`the word is ${secret}, keep it`));
      await live(20);
      const report = await lcm.compact({ conversation: id, mode: "sweep", passesMax: 1 });
      assert.equal(report.passes.length, 1, "the run was read again");
      const texts = (await lcm.store.summaries({ conversation: id })).filter(({ text }) => text.includes(secret));
      // The scripted model repeats the secret either way; only a draft made after the redaction was folded.
      assert.equal(texts.length, 1);
      assert.equal((await lcm.store.conversation(id))?.forgets, 1);
    });
  }
});
