import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { HostMessage } from "../../core/messages/codec.ts";
import { tokensOf } from "../../core/assembly/present-message.ts";
import type { CompactResult } from "./host-api.ts";
import { promptTokens } from "../../core/model/prompt-cost.ts";
import { connect } from "../../store/sqlite/connect.ts";
import {
  eager,
  createWorld,
  key,
  words,
  checkStored,
  checkRequest,
  active,
  refuse,
  textOf,
  type WorldOptions,
  type World,
} from "../../../test/support/openclaw-world.ts";

describe("guarantee 17: compact() tells the truth, and never throws", () => {
  /** What it reports matches the store. */
  async function checkTruth(world: World, compact: () => Promise<CompactResult>): Promise<CompactResult> {
    const before = await active(world);
    const result = await compact();
    const now = await active(world);
    const [tokensBefore, tokensAfter] = [before, now].map((each) =>
      each === undefined ? 0 : promptTokens(each.totals),
    );
    assert.equal(result.compacted, Number(tokensAfter) < Number(tokensBefore), JSON.stringify(result));
    if (result.compacted)
      assert.deepEqual([result.result?.tokensBefore, result.result?.tokensAfter], [tokensBefore, tokensAfter]);
    else assert.ok((result.reason ?? "").length > 0, "a reason is named");
    return result;
  }

  const room = { settings: { ...eager, leafChunkTokens: 100_000, contextThreshold: 1 }, window: 100_000 };
  const lived = async (options: WorldOptions): Promise<World> => {
    const world = createWorld({ ...room, ...options });
    for (let turn = 0; turn < 12; turn++) await world.host.turn(key, { says: words(150, `turn ${turn}`) });
    return world;
  };
  const overflow = { compactionTarget: "budget", currentTokenCount: 100_001 } as const;

  it("reports that nothing is stored of a session", async () => {
    const world = createWorld();
    const result = await checkTruth(world, async () => await world.host.compact(key));
    assert.deepEqual([result.ok, result.reason], [true, "nothing is stored for this session yet"]);
    await world.end();
  });

  it("reports it before a turn in the words that let the host continue the turn", async () => {
    const world = createWorld();
    const none = await checkTruth(world, async () => await world.host.compact(key, overflow));
    assert.deepEqual([none.ok, none.reason], [true, "nothing to compact: nothing is stored for this session yet"]);
    await world.host.turn(key, { says: "hello" });
    const { ok, reason = "" } = await checkTruth(world, async () => await world.host.compact(key, overflow));
    assert.equal(ok, true);
    assert.match(reason, /^nothing to compact: nothing was folded/);
    await world.end();
  });

  it("folds what can be folded, reports how much, and the second time that nothing is left", async () => {
    const world = await lived({});
    const first = await checkTruth(world, async () => await world.host.compact(key));
    assert.deepEqual([first.ok, first.compacted], [true, true]);
    for (let again = 0; again < 3; again++) await checkTruth(world, async () => await world.host.compact(key));
    const last = await checkTruth(world, async () => await world.host.compact(key));
    assert.deepEqual([last.ok, last.compacted], [true, false]);
    assert.match(last.reason ?? "", /^nothing was folded.*nothing is left to fold/);
    await checkStored(world);
    await world.end();
  });

  it("compacts a session that was never seen before, from the host's transcript", async () => {
    const world = createWorld(room);
    for (let turn = 0; turn < 12; turn++)
      await world.host.turn(key, { by: "legacy", says: words(150, `turn ${turn}`) });
    const result = await world.host.compact(key, { customInstructions: "keep every name" });
    assert.equal(result.compacted, true);
    assert.match(JSON.stringify(world.asked[0]), /keep every name/);
    await checkStored(world);
    await world.end();
  });

  it("waits for a model that refuses, and continues without it after an overflow", async () => {
    const world = await lived({ model: refuse });
    const waiting = await checkTruth(world, async () => await world.host.compact(key));
    assert.equal(waiting.compacted, false);
    assert.match(waiting.reason ?? "", /waiting for the model \(overloaded\)/);
    const rescued = await checkTruth(world, async () => await world.host.compact(key, overflow));
    assert.deepEqual([rescued.ok, rescued.compacted], [true, true]);
    await checkStored(world);
    await world.end();
  });

  it("ends before the host's deadline if the model hangs, and continues without it after an overflow", async () => {
    const configOf = (timeoutSeconds: number) => ({ agents: { defaults: { compaction: { timeoutSeconds } } } });
    const hangs = async (): Promise<never> => await new Promise<never>(() => undefined);
    // More than one pass is needed, and nothing runs in the background.
    const world = createWorld({ settings: eager, window: 100_000, config: configOf(5), model: hangs });
    for (let turn = 0; turn < 12; turn++)
      await world.host.turn(key, { by: "legacy", says: words(150, `turn ${turn}`) });
    await world.host.bootstrap(key);
    const rescued = await checkTruth(world, async () => await world.host.compact(key, overflow));
    assert.deepEqual([rescued.ok, rescued.compacted], [true, true]);
    assert.equal(rescued.result?.details?.["outcome"], "under", "and there was time for it");
    await world.end();

    const hung = await lived({ config: configOf(1), model: hangs });
    const result = await checkTruth(hung, async () => await hung.host.compact(key));
    assert.equal(result.compacted, false);
    await hung.end();
  });

  it("ends when the host gives up", async () => {
    const world = await lived({ model: async () => await new Promise<never>(() => undefined) });
    const abortSignal = AbortSignal.abort();
    const result = await checkTruth(world, async () => await world.host.compact(key, { abortSignal }));
    assert.deepEqual([result.compacted, world.asked.length], [false, 0]);
    await world.end();
  });

  it("names a database that is locked, closed or cannot be opened", async () => {
    const world = await lived({});
    const other = connect(world.path, false);
    other.exec("BEGIN IMMEDIATE");
    const locked = await checkTruth(world, async () => await world.host.compact(key));
    assert.equal(locked.compacted, false);
    assert.match(locked.reason ?? "", /locked by another process/);
    other.exec("ROLLBACK");
    other.close();
    assert.equal((await world.host.compact(key)).compacted, true, "and goes on when it is free");

    await (await world.runtime().open()).store.close();
    assert.deepEqual(await world.host.compact(key).then(({ ok, compacted }) => [ok, compacted]), [false, false]);

    const shut = createWorld();
    shut.lock(true);
    const result = await shut.host.compact(key);
    assert.deepEqual(result, { ok: false, compacted: false, reason: "the database is locked away" });
    await shut.end();
    await world.end();
  });

  it("rescues a turn that was too long, in the turn itself", async () => {
    const world = await lived({ model: refuse });
    const seen = world.host.requests.length;
    const end = await world.host.turn(key, { says: "go on", overflows: 1 });
    assert.deepEqual([end.kind, end.commit], ["answered", "committed"]);
    assert.deepEqual(
      end.compactions.map(({ compacted }) => compacted),
      [true],
    );
    const [first, second] = world.host.requests.slice(seen);
    assert.ok((second?.inputTokens ?? 0) < (first?.inputTokens ?? 0) / 1.5, "the prompt became much shorter");
    world.host.requests.forEach(checkRequest);
    await checkStored(world);
    await world.end();
  });
});

describe("the host's own messages", () => {
  it("are shown within the budget, calls with their results, while the database cannot be opened", async () => {
    for (let turns = 1; turns < 30; turns += 4) {
      const world = createWorld({ window: 3_000, reserve: 300, systemTokens: 50 });
      for (let turn = 0; turn < turns; turn++)
        await world.host.turn(key, {
          by: "legacy",
          says: words(20, `turn ${turn}`),
          tools: [words(40, "result"), "ok"],
        });
      world.lock(true);
      await world.host.turn(key, { tools: [words(400, "result"), words(400, "result"), "ok"] });
      const [first] = world.host.requests;
      assert.match(
        JSON.stringify(first?.assembled),
        new RegExp(`turn ${turns - 1} of`),
        "the newest of them are shown",
      );
      world.host.requests.forEach(checkRequest);
      const written = new Set(
        world.host
          .segments(key)
          .flat()
          .map(({ raw }) => JSON.stringify(raw)),
      );
      for (const request of world.host.requests)
        assert.ok(
          textOf(request).every((text) => written.has(text)),
          "no call is torn from its result",
        );
      assert.ok(world.runtime().troubles.length > 0);
      world.lock(false);
      assert.equal((await world.host.turn(key)).commit, "committed");
      await checkStored(world);
      await world.end();
    }
  });

  it("are shown if the store is behind, so that the model does not answer an old state", async () => {
    const world = createWorld();
    await world.host.turn(key);
    await world.host.turn(key, { says: "another engine has seen this", by: "legacy" });
    world.hide(true);
    await world.host.turn(key);
    assert.match(JSON.stringify(world.host.requests.at(-1)?.assembled), /another engine has seen this/);
    assert.equal(world.runtime().troubles[0]?.doing, `catching up ${key}`);
    world.hide(false);
    await world.host.turn(key);
    await checkStored(world);
    await world.end();
  });
});

describe("sessions that are not served", () => {
  const cases: readonly [string, Readonly<Record<string, unknown>>, string][] = [
    ["ignored", { ignoreSessionPatterns: ["agent:main:cron:*"] }, "agent:main:cron:nightly"],
    ["stateless", { statelessSessionPatterns: ["agent:*:hook:*"] }, "agent:main:hook:7"],
    ["those of a plugin that is not enabled", { enabled: false }, key],
    ["those that answer a question", {}, "agent:main:subagent:lcm-question-1"],
  ];
  for (const [name, settings, sessionKey] of cases) {
    it(`${name}: nothing is stored, messages pass through, and compaction is the host's`, async () => {
      const world = createWorld({ settings });
      for (let turn = 0; turn < 4; turn++) await world.host.turn(sessionKey, { says: `turn ${turn}`, tools: ["ok"] });
      const said = world.host.requests.at(-1)?.assembled.filter(({ role }) => role === "user");
      assert.deepEqual(
        said?.map(({ content }) => content),
        ["turn 0", "turn 1", "turn 2"],
      );
      assert.equal((await world.host.compact(sessionKey)).reason, "the host's own");
      await world.host.standalone(sessionKey);
      assert.equal((await world.host.bootstrap(sessionKey)).bootstrapped, false);
      assert.equal(world.runtime().isOpen(), false, "the database was not even opened");
      await world.end();
    });
  }
});

describe("what the schemas of tools take", () => {
  it("is learned from the provider's counts, so that the window is never exceeded and the reserve stays free", async () => {
    const [window, reserve, schemaTokens] = [64_000, 16_000, 12_000];
    const counts = (message: HostMessage): number => Math.ceil(1.1 * tokensOf(message));
    const world = createWorld({ window, reserve, schemaTokens, counts, model: refuse });
    for (let turn = 0; turn < 60; turn++) {
      const end = await world.host.turn(key, { says: words(300, `turn ${turn}`), tools: [words(900, "result"), "ok"] });
      assert.equal(end.compactions.length, 0, "no prompt was refused as too long");
    }
    world.host.requests.forEach(checkRequest);
    const counted = world.host.requests.map(({ inputTokens }) => inputTokens);
    assert.ok(Math.max(...counted) <= window);
    const full = counted.findIndex((tokens) => tokens > window - reserve);
    const over = counted.slice(full + 3).filter((tokens) => tokens > window - reserve);
    assert.ok(over.length <= 3, `${over.length} of ${counted.length} requests reached into the reserve`);
    assert.ok(Math.max(...counted.slice(-30)) > 0.75 * (window - reserve), "and no room is wasted");
    await world.end();
  });
});

it("starts over with /new and /reset, and tells the agent that there was something before", async () => {
  const world = createWorld();
  await world.host.turn(key, { says: "the first thing" });
  assert.equal(world.host.requests.at(-1)?.addition, undefined);
  for (const reason of ["new", "reset"] as const) {
    world.host.reset(key, reason);
    await world.host.turn(key, { says: "something else" });
    const request = world.host.requests.at(-1);
    assert.deepEqual(request?.assembled, []);
    assert.match(request.addition ?? "", /was restarted/);
  }
  await checkStored(world);
  await world.end();
});

describe("guarantee 35: what the model saw on the host", () => {
  it("is recorded for every attempt, rebuilt to the byte, and found behind its answers", async () => {
    const settings = { ...eager, leafChunkTokens: 1_000, leafTargetTokens: 100, freshTailCount: 4, contextTarget: 0 };
    const world = createWorld({ settings, window: 30_000, reserve: 4_000, schemaTokens: 1_000 });
    for (let turn = 0; turn < 40; turn++) {
      const tools = turn % 3 === 0 ? [words(30, "result")] : [];
      await world.host.turn(key, { says: words(60, `turn ${turn}`), tools });
      await world.runtime().settled();
    }
    const lcm = await world.runtime().open();
    const { id } = (await active(world)) ?? assert.fail("it is stored");
    const records = await lcm.prompts(id);
    // Of the first prompt nothing was stored yet.
    assert.equal(records.length, 39);
    const requests = world.host.requests.map((request) => textOf(request).join("\n"));
    for (const record of records) {
      const { isExact, reasons, assembly } = await lcm.rebuild(record);
      assert.ok(isExact, `prompt ${record.number}: ${reasons.join("; ")}`);
      assert.deepEqual([record.outcome, record.turn !== null], ["answered", true]);
      const shown = assembly.messages.map((message) => JSON.stringify(message));
      assert.ok(
        requests.some((request) => shown.every((message) => request.includes(message))),
        `prompt ${record.number} was sent`,
      );
    }
    assert.ok(new Set(records.map(({ head }) => JSON.stringify(head.items))).size > 2, "there were folds");
    const answers = await lcm.store.messages({ conversation: id, role: "assistant" });
    const last = answers.at(-1) ?? assert.fail("it has answered");
    const { record } = await lcm.findPrompt({ message: last.id });
    assert.equal(record.number, records.at(-1)?.number);
    await world.end();
  });
});
