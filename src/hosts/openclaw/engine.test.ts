/**
 * The engine on a host that calls it as the real one does, over a real database. What the host has written is the oracle
 * of what must be stored; what it sent to the model is held against the guarantees.
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { HostMessage } from "../../core/messages/codec.ts";
import { createScriptedEmbedder } from "../../../test/support/scripted-embedder.ts";
import type { LlmRequest } from "./host-api.ts";
import {
  eager,
  createWorld,
  summaryOf,
  key,
  words,
  checkStored,
  checkRequest,
  sessionKeys,
  live,
  active,
  refuse,
  textOf,
  type World,
  type Step,
} from "../../../test/support/openclaw-world.ts";

/** What a segment shows a model, up to a moment. */
const saidBefore = (world: World, sessionKey: string, moment: unknown): readonly unknown[] =>
  (world.host.segments(sessionKey).at(-1) ?? []).flatMap((entry) => {
    if (entry.kind !== "message" || Number(entry.raw["timestamp"]) >= Number(moment)) return [];
    const { excludeFromContext, content, provider, timestamp } = entry.raw;
    const isUnsaid = excludeFromContext === true || provider === "openclaw";
    return isUnsaid || (Array.isArray(content) && content.length === 0) ? [] : [timestamp];
  });

const aTurn = fc.record({
  tools: fc.array(
    fc.integer({ min: 1, max: 120 }).map((length) => words(length, "result")),
    { maxLength: 3 },
  ),
  ends: fc.constantFrom("answered", "answered", "answered", "answered", "failed", "broken_off" as const),
  kind: fc.constantFrom("turn", "turn", "turn", "heartbeat" as const),
  overflows: fc.constantFrom(0, 0, 0, 0, 0, 1, 2),
});

const aStep = (...without: readonly Step["do"][]): fc.Arbitrary<Step> => {
  const weights: Readonly<Record<Step["do"], number>> = {
    turn: 14,
    dying_turn: 5,
    legacy: 2,
    announcement: 1,
    slash: 2,
    note: 1,
    new: 1,
    reset: 1,
    idle: 1,
    rewrite: 1,
    delete: 0.3,
    crash: 1,
    settle: 3,
    compact: 1,
    bootstrap: 1,
    commit_again: 1,
  };
  const choices = Object.entries(weights).flatMap(([name, weight]) =>
    without.includes(name as Step["do"]) ? [] : [{ weight: 10 * weight, arbitrary: fc.constant(name as Step["do"]) }],
  );
  return fc.record({
    do: fc.oneof(...choices),
    session: fc.constantFrom(0, 0, 1 as const),
    turn: aTurn,
    length: fc.integer({ min: 1, max: 160 }),
    dies: fc.record({ call: fc.integer({ min: 1, max: 30 }), when: fc.constantFrom("before", "after" as const) }),
  });
};

/** After reading the live turn, the host refuses to read what came before it within that turn. */
const isOfFence = (message: string): boolean => message.includes("fence");

describe("guarantee 1: every message the host sent is stored once", () => {
  it("holds after the next bootstrap, wherever a process died and whatever else happened to the session", async () => {
    const life = fc.asyncProperty(fc.array(aStep(), { minLength: 5, maxLength: 40 }), async (steps) => {
      const world = createWorld({ settings: eager, window: 6_000, reserve: 500, systemTokens: 100 });
      for (const step of steps) await live(world, step);
      world.start();
      for (const sessionKey of sessionKeys) await world.host.bootstrap(sessionKey);
      await checkStored(world, sessionKeys);
      world.host.requests.forEach(checkRequest);
      assert.deepEqual(world.warned.filter(isOfFence), []);
      await world.end();
    });
    await fc.assert(life, { numRuns: 40, seed: 5 });
  });

  it("also holds without a transcript: each message of the run once", async () => {
    const world = createWorld();
    await world.host.standalone("agent:main:hook:1", { says: "ping", tools: ["pong", "pong"] });
    await world.host.standalone("agent:main:hook:1", { says: "ping", tools: ["pong"] });
    await world.look(async (store) => {
      const [conversation] = await store.conversations({ sessionKey: "agent:main:hook:1" });
      const stored = await store.messages({ conversation: conversation?.id ?? assert.fail("it is stored") });
      const roles = ["user", "assistant", "tool", "assistant"];
      assert.deepEqual(
        stored.map(({ role }) => role),
        // One of two results has a row beside it that is not shown to models.
        ["user", "assistant", "tool", "assistant", "tool", "assistant", ...roles],
      );
    });
    await world.end();
  });

  it("counts what users said outside a committed turn", async () => {
    const world = createWorld();
    await world.host.turn(key);
    await world.host.turn(key, { ends: "failed" });
    await world.host.turn(key, { by: "legacy" });
    world.host.slash(key, "/status");
    await world.host.turn(key);
    assert.equal((await active(world))?.caughtUp, 3);
    await world.end();
  });

  it("reports a turn that could not be stored, and the host commits it again", async () => {
    const world = createWorld();
    await world.host.turn(key);
    world.start({ call: 1, when: "before" });
    const lost = await world.host.turn(key, { says: "not stored at first" });
    assert.equal(lost.commit, "queued");
    assert.ok(world.runtime().troubles.some(({ doing }) => doing === `storing a turn of ${key}`));
    world.start();
    assert.equal((await world.host.turn(key)).commit, "committed");
    assert.deepEqual(world.warned.filter(isOfFence), [], "and no further than its end");
    assert.equal((await active(world))?.caughtUp, 0, "it came as a turn after all");
    await checkStored(world);
    await world.end();
  });
});

/** Everything that a replay could change. */
const pictureOf = async (world: World): Promise<unknown> =>
  await world.look(async (store) => {
    const conversations = await store.conversations({ includeHidden: true });
    return await Promise.all(
      conversations
        .toSorted((a, b) => a.id - b.id)
        .map(async ({ id, totals, active: isActive, sessionKey }) => ({
          id,
          totals,
          isActive,
          sessionKey,
          messages: await store.messages({ conversation: id }),
          entries: await store.entries(id, 0, Number.MAX_SAFE_INTEGER),
          context: await store.context(id),
        })),
    );
  });

describe("guarantee 2: replays are harmless", () => {
  it("holds for repeated commits, bootstraps and rewritten transcripts, in any order", async () => {
    const replays = fc.array(fc.tuple(fc.constantFrom("commit", "commit", "bootstrap", "rewrite"), fc.nat()), {
      minLength: 1,
      maxLength: 12,
    });
    const steps = fc.array(aStep("dying_turn", "delete"), { minLength: 5, maxLength: 25 });
    const life = fc.asyncProperty(steps, replays, async (lived, again) => {
      const world = createWorld({ settings: eager, window: 6_000, reserve: 500, systemTokens: 100 });
      const { host } = world;
      for (const step of lived) await live(world, step);
      for (const sessionKey of sessionKeys) await host.bootstrap(sessionKey);
      await world.runtime().settled();
      const before = await pictureOf(world);
      for (const [replay, nth] of again) {
        const sessionKey = sessionKeys[nth % 2 === 0 ? 0 : 1];
        if (replay === "rewrite") host.rewrite(sessionKey);
        if (replay !== "commit") assert.equal((await host.bootstrap(sessionKey)).importedMessages, 0);
        else if (host.commits() > 0) assert.equal(await host.commitAgain(nth % host.commits()), "duplicate");
      }
      assert.deepEqual(await pictureOf(world), before);
      await world.end();
    });
    await fc.assert(life, { numRuns: 15, seed: 5 });
  });

  it("keeps what is stored when the host shortens it in its own transcript", async () => {
    const world = createWorld();
    await world.host.turn(key, { tools: [words(300, "a long result")] });
    world.host.reset(key, "reset");
    await world.host.turn(key, { tools: [words(300, "another")] });
    const shorter = (message: HostMessage): HostMessage =>
      message["role"] === "toolResult" ? { ...message, content: [{ type: "text", text: "[cut]" }] } : message;
    world.host.rewrite(key, shorter);
    await world.host.turn(key);
    await checkStored(world);
    await world.end();
  });
});

describe("guarantee 3: repeats are kept", () => {
  it("stores as many rows as were said, and shows them all", async () => {
    const world = createWorld();
    for (let turn = 0; turn < 12; turn++) await world.host.turn(key, { says: "ping", tools: ['{"status":"ok"}'] });
    await checkStored(world);
    const shown = world.host.requests.at(-1)?.assembled ?? [];
    assert.equal(shown.filter(({ content }) => content === "ping").length, 11);
    assert.equal(shown.filter(({ role }) => role === "toolResult").length, 11);
    await world.end();
  });
});

describe("guarantee 8: assembly makes no model call, and a turn never waits for one", () => {
  it("stores and shows every turn while the summary model hangs", async () => {
    const world = createWorld({
      settings: eager,
      window: 6_000,
      reserve: 500,
      systemTokens: 100,
      model: async () => await new Promise<never>(() => undefined),
    });
    for (let turn = 0; turn < 30; turn++) {
      const end = await world.host.turn(key, { says: words(150, `turn ${turn}`), tools: ["one", "two"] });
      assert.deepEqual([end.kind, end.commit], ["answered", "committed"]);
    }
    assert.equal(world.asked.length, 1, "one compaction is under way, and no second one for the same conversation");
    world.host.requests.forEach(checkRequest);
    await checkStored(world);
    await world.end();
  });

  it("stores and shows every turn while the embedding model hangs, and embeds them once it answers", async () => {
    const embedder = createScriptedEmbedder();
    embedder.play(async () => await new Promise<never>(() => undefined));
    const world = createWorld({ settings: { embedder: "scripted" }, embedder });
    for (let turn = 0; turn < 10; turn++) {
      const end = await world.host.turn(key, { says: `turn ${turn}`, tools: ["one"] });
      assert.deepEqual([end.kind, end.commit], ["answered", "committed"]);
    }
    assert.equal(embedder.asked.length, 1, "one call hangs, and there is no second");
    world.host.requests.forEach(checkRequest);
    await checkStored(world);
    await world.end();
    embedder.play(undefined);
    world.start();
    await world.host.turn(key, { says: "the last turn" });
    await world.runtime().settled();
    await world.look(async (store) => {
      const { vectors, messages } = await store.status();
      assert.deepEqual([vectors[0]?.made, vectors[0]?.pending], [messages, 0]);
    });
    await world.end();
  });

  it("waits no longer than its patience for an unresponsive database, and everything is stored later", async () => {
    const gate = Promise.withResolvers<void>();
    const world = createWorld({ patienceMs: 1, opens: gate.promise });
    for (let turn = 0; turn < 4; turn++) {
      const end = await world.host.turn(key, { says: `turn ${turn}`, tools: ["ok"] });
      assert.deepEqual([end.kind, end.commit], ["answered", "committed"]);
      const shown = world.host.requests.at(-1)?.assembled.filter(({ role }) => role === "user") ?? [];
      assert.equal(shown.length, turn, "the host's own messages are shown");
    }
    gate.resolve();
    await world.runtime().inOrder(key, async () => await Promise.resolve());
    await checkStored(world);
    assert.equal((await active(world))?.caughtUp, 0, "as turns, not as what was missed");
    await world.end();
  });

  it("calls no model in anything that a turn waits for", async () => {
    const world = createWorld({ settings: eager, window: 6_000, reserve: 500, systemTokens: 100 });
    for (let turn = 0; turn < 8; turn++) {
      const before = world.asked.length;
      await world.host.turn(key, { says: words(150, `turn ${turn}`), ends: "failed" });
      await world.host.turn(key, { says: words(150, `turn ${turn}`), kind: "announcement" });
      assert.equal(world.asked.length, before, "only what follows a committed turn begins a compaction");
    }
    await world.host.turn(key);
    await world.runtime().settled();
    assert.ok(world.asked.length > 0);
    await world.end();
  });
});

describe("guarantee 12: never over budget; guarantee 13: always a valid array; guarantee 14: the live turn once", () => {
  it("holds in windows too small for anything, with any model", async () => {
    const models = { good: undefined, refuses: refuse, empty: async () => await Promise.resolve("") };
    const life = fc.asyncProperty(
      fc.array(aStep("delete"), { minLength: 5, maxLength: 30 }),
      fc.integer({ min: 300, max: 4_000 }),
      fc.constantFrom(...(Object.keys(models) as (keyof typeof models)[])),
      async (steps, window, name) => {
        const { [name]: model } = models;
        const settings = { ...eager, freshTailCount: 8 };
        const room = { window, reserve: Math.floor(window / 8), systemTokens: 50, schemaTokens: 20 };
        const world = createWorld({ settings, ...room, ...(model === undefined ? {} : { model }) });
        for (const step of steps) await live(world, step);
        world.host.requests.forEach(checkRequest);
        await world.end();
      },
    );
    await fc.assert(life, { numRuns: 20, seed: 5 });
  });

  it("shows all that came before the turn, in order, wherever it came from and whatever failed", async () => {
    const steps = fc.array(aStep("compact"), { minLength: 5, maxLength: 25 });
    const life = fc.asyncProperty(steps, async (lived) => {
      const world = createWorld({ window: 400_000 });
      for (const step of lived) {
        const seen = world.host.requests.length;
        await live(world, { ...step, turn: { ...step.turn, overflows: 0 } });
        if (step.do === "dying_turn") continue;
        for (const { assembled, live: turn, sessionKey } of world.host.requests.slice(seen)) {
          const before = saidBefore(world, sessionKey, turn[0]?.["timestamp"]);
          // The stand-in for the result of an interrupted call has the call's time and is an error.
          const shown = assembled.filter(({ isError }) => isError !== true).map(({ timestamp }) => timestamp);
          assert.deepEqual(shown, before);
        }
      }
      world.host.requests.forEach(checkRequest);
      await world.end();
    });
    await fc.assert(life, { numRuns: 20, seed: 5 });
  });
});

const isLonger = (now: readonly string[], before: readonly string[]): boolean =>
  before.every((text, at) => text === now[at]);

describe("guarantee 15: between compactions the prefix is byte-identical and append-only", () => {
  const lives = { "between turns": [0, 60_000], "in sweeps down to a target": [0.5, 18_000] } as const;
  for (const [folded, [contextTarget, window]] of Object.entries(lives)) {
    it(`changes with a fold, and never without one, if folded ${folded}`, async () => {
      const settings = { ...eager, leafChunkTokens: 2_000, leafTargetTokens: 200, freshTailCount: 8, contextTarget };
      const world = createWorld({ settings, window, reserve: 4_000, schemaTokens: 3_000 });
      const foldsOf = async (): Promise<number> => (await active(world))?.totals.summaries ?? 0;
      let [folds, seen, changes, folding] = [0, 0, 0, 0];
      let before: readonly string[] = [];
      for (let turn = 0; turn < 250; turn++) {
        if (turn % 10 === 3) world.host.slash(key, "/status");
        if (turn % 25 === 7) world.host.note(key, "model_change");
        if (turn % 40 === 9) world.host.reset(key, "idle");
        if (turn % 60 === 11) world.start();
        await world.host.turn(key, {
          says: words(40 + (turn % 7) * 10, `turn ${turn}`),
          tools: turn % 3 === 0 ? [words(60, "result"), "ok"] : [],
          ends: turn % 13 === 5 ? "failed" : "answered",
        });
        for (const request of world.host.requests.slice(seen)) {
          const now = textOf(request);
          if (!isLonger(now, before)) {
            changes += 1;
            assert.ok(folding > 0, `turn ${turn}: the prefix changed, and nothing was folded`);
            folding = 0;
          }
          before = now;
        }
        seen = world.host.requests.length;
        await world.runtime().settled();
        const foldsNow = await foldsOf();
        if (foldsNow > folds) folding += 1;
        folds = foldsNow;
      }
      assert.ok(changes > 3 && changes <= folds, `${changes} changes, ${folds} folds`);
      await checkStored(world);
      await world.end();
    });
  }

  it("stays unchanged within a turn, whatever is folded meanwhile", async () => {
    const gate = Promise.withResolvers<void>();
    const model = async (request: LlmRequest): Promise<string> => {
      await gate.promise;
      return summaryOf(request);
    };
    const whileTool = async (): Promise<void> => {
      gate.resolve();
      await world.runtime().settled();
    };
    const world: World = createWorld({
      settings: { ...eager, contextTarget: 0 },
      window: 60_000,
      reserve: 4_000,
      model,
      whileTool,
    });
    for (let turn = 0; turn < 8; turn++) await world.host.turn(key, { says: words(150, `turn ${turn}`) });
    const seen = world.host.requests.length;
    await world.host.turn(key, { tools: ["one", "two"] });
    const [first, ...later] = world.host.requests.slice(seen).map(textOf);
    assert.ok(((await active(world))?.totals.summaries ?? 0) > 0, "it was folded while a tool ran");
    for (const each of later) assert.deepEqual(each, first);
    await world.host.turn(key);
    assert.match(textOf(world.host.requests.at(-1) ?? assert.fail("it was asked"))[0] ?? "", /<summary/);
    await world.end();
  });

  it("moves its cut in large steps when nothing can be folded", async () => {
    const world = createWorld({ settings: eager, window: 8_000, reserve: 1_000, systemTokens: 100, model: refuse });
    let before: readonly string[] = [];
    let changes = 0;
    const turns = 200;
    for (let turn = 0; turn < turns; turn++) {
      await world.host.turn(key, { says: words(20 + (turn % 5) * 8, `turn ${turn}`) });
      const now = textOf(world.host.requests.at(-1) ?? assert.fail("it was asked"));
      if (!isLonger(now, before)) changes += 1;
      before = now;
    }
    assert.ok(changes >= 2 && changes < turns / 6, `${changes} changes in ${turns} turns`);
    await world.end();
  });
});
