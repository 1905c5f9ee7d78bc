/**
 * The engine on a host that calls it as the real one does, over a real database. What the host has written is the oracle
 * of what must be stored; what it sent to the model is held against the guarantees.
 */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import fc from "fast-check";
import type { HostMessage } from "../../core/messages/codec.ts";
import type { Conversation } from "../../core/model/types.ts";
import type { Embedder, Store } from "../../core/model/store.ts";
import { tokensOf } from "../../core/assembly/present-message.ts";
import { builtInTemplates } from "../../core/prompts/summary.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import { estimateTokens } from "../../core/base/tokens.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import { dyingStore } from "../../../test/support/dying-store.ts";
import { checkLossless } from "../../../test/support/lossless.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createScriptedEmbedder } from "../../../test/support/scripted-embedder.ts";
import { createOpenClaw } from "../../../test/support/scripted-openclaw.ts";
import type { OpenClawOptions, Request, ScriptedOpenClaw, Turn } from "../../../test/support/scripted-openclaw.ts";
import { checkValid } from "../../../test/support/valid-prompt.ts";
import { createEngine } from "./engine.ts";
import type { CompactResult, Llm, LlmRequest } from "./host-api.ts";
import { runtimeOf } from "./runtime.ts";
import type { Runtime } from "./runtime.ts";
import { promptTokens } from "../../core/model/prompt-cost.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { connect } from "../../store/sqlite/connect.ts";

const scratch = makeScratch("engine-openclaw");
after(() => rmSync(scratch, { recursive: true, force: true }));

let files = 0;
let processes = 0;

/** Small enough that a short session is folded several times. */
const eager = {
  freshTailCount: 4,
  leafChunkTokens: 500,
  leafTargetTokens: 60,
  condensedTargetTokens: 60,
  leafMinFanout: 2,
  spendCeilingCalls: 100_000,
};

interface WorldOptions extends Omit<OpenClawOptions, "engine"> {
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly model?: (request: LlmRequest) => Promise<string>;
  readonly embedder?: Embedder;
  /** By default a turn waits as long as it takes, so that tests do not depend on the machine's speed. */
  readonly patienceMs?: number;
  /** Opening the database waits for this. */
  readonly opens?: Promise<void>;
}

interface World {
  readonly host: ScriptedOpenClaw;
  readonly path: string;
  /** What was logged. */
  readonly warned: string[];
  /** What the model was asked. */
  readonly asked: LlmRequest[];
  runtime(): Runtime;
  /** Starts a process that may die at a call of its store. The one before is not closed. */
  start(dies?: { readonly call: number; readonly when: "before" | "after" }): void;
  /** Makes the database impossible to open, or possible again. */
  lock(isLocked: boolean): void;
  /** Makes the host's transcripts unreadable, or readable again. */
  hide(isHidden: boolean): void;
  /** The store over its own connection. */
  look<T>(work: (store: Store) => Promise<T>): Promise<T>;
  end(): Promise<void>;
}

function createWorld(given: WorldOptions = {}): World {
  const { settings = {}, model, embedder, patienceMs = 1_000_000_000, opens = Promise.resolve(), ...options } = given;
  const path = join(scratch, `${++files}.db`);
  const warned: string[] = [];
  const asked: LlmRequest[] = [];
  const started: Runtime[] = [];
  let isLocked = false;
  let isHidden = false;
  const llm: Llm = {
    async complete(request) {
      asked.push(request);
      const text = model === undefined ? summaryOf(request) : await model(request);
      return { text, stopReason: "stop", usage: { inputTokens: 100, outputTokens: estimateTokens(text) } };
    },
  };
  const runtime = (): Runtime => started.at(-1) ?? assert.fail("a process runs");
  const world: World = {
    path,
    warned,
    asked,
    runtime,
    start(dies) {
      const made = runtimeOf({
        path: `${path}#${++processes}`,
        settings: resolveSettings({ env: {}, config: settings }),
        clock,
        patienceMs,
        logger: {
          info: () => undefined,
          warn: (message) => warned.push(message),
          error: (message) => warned.push(message),
        },
        async openStore() {
          if (isLocked) throw new Error("the database is locked away");
          await opens;
          const store = await openSqlite({ path, housekeeping: false, busyTimeoutMs: 20 });
          return dies === undefined ? store : dyingStore(store, dies.call, dies.when);
        },
        templates: async () => await Promise.resolve(builtInTemplates),
        embedder: async () => await Promise.resolve(embedder ?? null),
      });
      started.push(made);
    },
    lock(isSo) {
      isLocked = isSo;
    },
    hide(isSo) {
      isHidden = isSo;
    },
    async look(work) {
      const store = await openSqlite({ path, housekeeping: false });
      try {
        return await work(store);
      } finally {
        await store.close();
      }
    },
    async end() {
      for (const each of started) await each.close().catch(() => undefined);
    },
    host: createOpenClaw({
      ...options,
      llm,
      engine: (readTranscript) =>
        createEngine({
          id: "lossless-claw",
          version: "0",
          runtime: runtime(),
          async readTranscript(request) {
            if (isHidden) throw new Error("the transcript is being repaired");
            return await readTranscript(request);
          },
          delegateCompaction: async () =>
            await Promise.resolve({ ok: true, compacted: false, reason: "the host's own" }),
        }),
    }),
  };
  world.start();
  return world;
}

let ms = Date.UTC(2026, 10, 15, 9);
const clock = { now: (): Timestamp => new Date((ms += 7)).toISOString() as Timestamp };

const summaryOf = ({ messages }: LlmRequest): string =>
  `In short, ${messages[0]?.content.length ?? 0} letters.\nExpand for details about: it`;

const key = "agent:main:main";
const words = (count: number, about: string): string => `${about} ${"of many words ".repeat(Math.ceil(count / 3))}`;

/** Checks that everything the host has written is stored by segment and reads back. */
async function checkStored(world: World, keys: readonly string[] = [key]): Promise<void> {
  await world.look(async (store) => {
    for (const sessionKey of keys) {
      const segments = world.host.segments(sessionKey);
      const family = (await store.conversations({ sessionKey, includeHidden: true })).toSorted((a, b) => a.id - b.id);
      assert.equal(family.length, segments.length, `${sessionKey}: a conversation for every segment`);
      assert.deepEqual(
        family.map(({ active }) => active),
        family.map((_, at) => at === family.length - 1),
      );
      await checkLossless(
        store,
        segments.map((entries, at) => ({ entries, conversation: family[at]?.id ?? assert.fail("it is there") })),
        { expected: ["summary_below_normal"] },
      );
    }
  });
}

/** Valid for a provider, within the budget, and with the live turn once, at its end. */
function checkRequest({ assembled, live, addition, estimatedTokens, budget, grown, turn }: Request): void {
  checkValid([...assembled, ...live]);
  const tokens = assembled.reduce((sum, message) => sum + tokensOf(message), 0);
  assert.ok(tokens <= estimatedTokens, `turn ${turn}: ${tokens} tokens are shown, and ${estimatedTokens} told`);
  const added = addition === undefined ? 0 : estimateTokens(addition);
  assert.ok(tokens + added <= Math.max(0, budget - grown), `turn ${turn}: ${tokens} + ${added} > ${budget} - ${grown}`);
  const times = new Set(live.map(({ timestamp }) => timestamp));
  assert.ok(!assembled.some(({ timestamp }) => times.has(timestamp)), `turn ${turn}: the live turn is shown twice`);
  const said = JSON.stringify(assembled);
  for (const { role, content } of live) {
    if (role === "user")
      assert.ok(!said.includes(JSON.stringify(content)), `turn ${turn}: the live turn is shown twice`);
  }
}

/** What a segment shows a model, up to a moment. */
const saidBefore = (world: World, sessionKey: string, moment: unknown): readonly unknown[] =>
  (world.host.segments(sessionKey).at(-1) ?? []).flatMap((entry) => {
    if (entry.kind !== "message" || Number(entry.raw["timestamp"]) >= Number(moment)) return [];
    const { excludeFromContext, content, provider, timestamp } = entry.raw;
    const isUnsaid = excludeFromContext === true || provider === "openclaw";
    return isUnsaid || (Array.isArray(content) && content.length === 0) ? [] : [timestamp];
  });

// ── Lives ────────────────────────────────────────────────────────────────────────────────────────────────────────────

const sessionKeys = [key, "agent:main:telegram:direct:7"] as const;

interface Step {
  readonly do:
    | "turn"
    | "dying_turn"
    | "legacy"
    | "announcement"
    | "slash"
    | "note"
    | "new"
    | "reset"
    | "idle"
    | "rewrite"
    | "delete"
    | "crash"
    | "settle"
    | "compact"
    | "bootstrap"
    | "commit_again";
  readonly session: 0 | 1;
  readonly turn: Omit<Turn, "says">;
  readonly length: number;
  readonly dies: { readonly call: number; readonly when: "before" | "after" };
}

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

let said = 0;

async function live(world: World, step: Step): Promise<void> {
  const { host } = world;
  const sessionKey = sessionKeys[step.session];
  const says = words(step.length, `saying ${++said}`);
  switch (step.do) {
    case "turn":
      return void (await host.turn(sessionKey, { ...step.turn, says }));
    case "dying_turn":
      world.start(step.dies);
      await host.turn(sessionKey, { ...step.turn, says });
      return world.start();
    case "legacy":
      return void (await host.turn(sessionKey, { ...step.turn, says, by: "legacy" }));
    case "announcement":
      return void (await host.turn(sessionKey, { says, kind: "announcement" }));
    case "slash":
      return host.slash(sessionKey, `/status ${said}`);
    case "note":
      return host.note(sessionKey, "model_change");
    case "new":
    case "reset":
    case "idle":
      return host.reset(sessionKey, step.do);
    case "rewrite":
      return host.rewrite(sessionKey);
    case "delete":
      // What was not read before its session was deleted is lost with it.
      await host.bootstrap(sessionKey);
      return host.delete(sessionKey);
    case "crash":
      return world.start();
    case "settle":
      return await world.runtime().settled();
    case "compact":
      return void (await host.compact(sessionKey));
    case "bootstrap":
      return void (await host.bootstrap(sessionKey));
    case "commit_again":
      return host.commits() === 0 ? undefined : void (await host.commitAgain(step.length % host.commits()));
  }
}

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

const active = async (world: World, sessionKey: string = key): Promise<Conversation | undefined> =>
  await world.look(async (store) => (await store.conversations({ sessionKey, active: true })).at(0));

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

const refuse = async (): Promise<never> => await Promise.reject(Object.assign(new Error("no"), { status: 529 }));

const textOf = ({ assembled }: Request): readonly string[] => assembled.map((message) => JSON.stringify(message));

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

// ── When the store cannot help ───────────────────────────────────────────────────────────────────────────────────────

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
