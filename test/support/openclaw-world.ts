/** A world with the plugin in a scripted host. */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { Conversation } from "../../src/core/model/types.ts";
import type { Embedder, Store } from "../../src/core/model/store.ts";
import { tokensOf } from "../../src/core/assembly/present-message.ts";
import { builtInTemplates } from "../../src/core/prompts/summary.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import { estimateTokens } from "../../src/core/base/tokens.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { dyingStore } from "./dying-store.ts";
import { checkLossless } from "./lossless.ts";
import { makeScratch } from "./scratch.ts";
import { createOpenClaw } from "./scripted-openclaw.ts";
import type { OpenClawOptions, Request, ScriptedOpenClaw, Turn } from "./scripted-openclaw.ts";
import { checkValid } from "./valid-prompt.ts";
import { createEngine } from "../../src/hosts/openclaw/engine.ts";
import type { Llm, LlmRequest } from "../../src/hosts/openclaw/host-api.ts";
import { runtimeOf } from "../../src/hosts/shared/runtime.ts";
import type { Runtime } from "../../src/hosts/shared/runtime.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

const scratch = makeScratch("engine-openclaw");

let files = 0;
let processes = 0;

/** Small enough that a short session is folded several times. */
export const eager = {
  freshTailCount: 4,
  leafChunkTokens: 500,
  leafTargetTokens: 60,
  condensedTargetTokens: 60,
  leafMinFanout: 2,
  spendCeilingCalls: 100_000,
};

export interface WorldOptions extends Omit<OpenClawOptions, "engine"> {
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly model?: (request: LlmRequest) => Promise<string>;
  readonly embedder?: Embedder;
  /** By default a turn waits as long as it takes, so that tests do not depend on the machine's speed. */
  readonly patienceMs?: number;
  /** Opening the database waits for this. */
  readonly opens?: Promise<void>;
}

export interface World {
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

export function createWorld(given: WorldOptions = {}): World {
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

export const summaryOf = ({ messages }: LlmRequest): string =>
  `In short, ${messages[0]?.content.length ?? 0} letters.\nExpand for details about: it`;

export const key = "agent:main:main";
export const words = (count: number, about: string): string =>
  `${about} ${"of many words ".repeat(Math.ceil(count / 3))}`;

/** Checks that everything the host has written is stored by segment and reads back. */
export async function checkStored(world: World, keys: readonly string[] = [key]): Promise<void> {
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
export function checkRequest({ assembled, live, addition, estimatedTokens, budget, grown, turn }: Request): void {
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

export const sessionKeys = [key, "agent:main:telegram:direct:7"] as const;

export interface Step {
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

let said = 0;

export async function live(world: World, step: Step): Promise<void> {
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

export const active = async (world: World, sessionKey: string = key): Promise<Conversation | undefined> =>
  await world.look(async (store) => (await store.conversations({ sessionKey, active: true })).at(0));

export const refuse = async (): Promise<never> => await Promise.reject(Object.assign(new Error("no"), { status: 529 }));

export const textOf = ({ assembled }: Request): readonly string[] =>
  assembled.map((message) => JSON.stringify(message));
