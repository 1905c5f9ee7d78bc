/** The runtime: one per database file, however often the plugin's modules are evaluated. */

import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { AsyncLocalStorage } from "node:async_hooks";
import { after, describe, it } from "node:test";
import * as errorsModule from "../../core/base/errors.ts";
import { messageToStore } from "../../core/messages/codec.ts";
import type { ConversationId } from "../../core/model/types.ts";
import type { Embedder, Store } from "../../core/model/store.ts";
import { builtInTemplates } from "../../core/prompts/summary.ts";
import { resolveSettings } from "../../core/model/settings.ts";
import { openSqlite } from "../../store/sqlite/store.ts";
import { collectGarbage } from "../../../test/support/garbage.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createScriptedEmbedder, refusing } from "../../../test/support/scripted-embedder.ts";
import { createScriptedModel } from "../../../test/support/scripted-model.ts";
import * as runtimeModule from "./runtime.ts";
import type { Runtime, RuntimeDeps } from "./runtime.ts";
import type { Timestamp } from "../../core/base/time.ts";

const { runtimeOf } = runtimeModule;
const { LcmError } = errorsModule;
const scratch = makeScratch("runtime");
after(() => rmSync(scratch, { recursive: true, force: true }));
const at = "2026-11-15T06:30:00.000Z" as Timestamp;
let files = 0;

function depsFor(changes: Partial<RuntimeDeps> & { readonly config?: Readonly<Record<string, unknown>> } = {}) {
  const path = join(scratch, `${++files}.db`);
  const warned: string[] = [];
  let opened = 0;
  const { config = {}, ...given } = changes;
  const deps: RuntimeDeps = {
    path,
    settings: resolveSettings({ env: {}, config }),
    clock: { now: () => at },
    logger: { info: () => undefined, warn: (message) => warned.push(message), error: () => undefined },
    async openStore() {
      opened += 1;
      return await openSqlite({ path, housekeeping: false, now: () => at });
    },
    templates: async () => await Promise.resolve(builtInTemplates),
    ...given,
  };
  return { deps, warned, opened: () => opened };
}

/** Another evaluation of the same module, as in the host. */
const copyOf = async <T>(_module: T, path: string): Promise<T> => (await import(`${path}?copy=2`)) as T;

describe("copies of the plugin in one process", () => {
  it("share one runtime, one store and the recorded problems", async () => {
    const other = await copyOf(runtimeModule, "./runtime.ts");
    assert.notEqual(other.runtimeOf, runtimeOf, "they are two");
    const { deps, opened } = depsFor();
    const [mine, theirs] = [runtimeOf(deps), other.runtimeOf({ ...deps, settings: structuredClone(deps.settings) })];
    assert.equal(mine, theirs);
    assert.equal(await mine.open(), await theirs.open());
    assert.equal(opened(), 1);
    theirs.note("something was done", new Error("it went wrong"));
    assert.equal(mine.troubles[0]?.message, "it went wrong");
    theirs.memoryOf({ agentId: "main", sessionKey: "a session" }).allowance = 512;
    assert.equal(mine.memoryOf({ agentId: "main", sessionKey: "a session" }).allowance, 512);
    await mine.close();
  });

  it("recognise each other's errors", async () => {
    const other = await copyOf(errorsModule, "../../core/base/errors.ts");
    assert.notEqual(other.LcmError, LcmError);
    const error = new other.LcmError("unavailable", "it is locked", { hint: "wait a little" });
    assert.ok(error instanceof LcmError);
    assert.ok(new LcmError("invalid", "no") instanceof other.LcmError);
    assert.ok(!(new Error("no") instanceof LcmError));
    const { deps, warned } = depsFor();
    runtimeOf(deps).note("it was tried", error);
    assert.deepEqual(warned, ["while it was tried: it is locked (wait a little)"]);
  });

  it("apply new settings to the same store", async () => {
    const { deps, opened } = depsFor();
    const runtime = runtimeOf(deps);
    const before = await runtime.open();
    const settings = resolveSettings({ env: {}, config: { freshTailCount: 7 } });
    assert.equal(runtimeOf({ ...deps, settings }), runtime);
    const now = await runtime.open();
    assert.deepEqual([now.settings.freshTailCount, now.store === before.store, opened()], [7, true, 1]);
    await runtime.close();
  });

  it("of another database have another runtime", () =>
    assert.notEqual(runtimeOf(depsFor().deps), runtimeOf(depsFor().deps)));
});

describe("opening", () => {
  it("happens on first use, once for all concurrent callers", async () => {
    const { deps, opened } = depsFor();
    const runtime = runtimeOf(deps);
    assert.deepEqual([runtime.isOpen(), opened()], [false, 0]);
    const [one, two] = await Promise.all([runtime.open(), runtime.open()]);
    assert.deepEqual([one === two, opened(), runtime.isOpen()], [true, 1, true]);
    await runtime.close();
  });

  it("that fails is tried again by the next caller", async () => {
    let fails = 2;
    const { deps } = depsFor();
    const runtime = runtimeOf({
      ...deps,
      async openStore() {
        if (--fails >= 0) throw new LcmError("unavailable", "the disk is not there yet");
        return await deps.openStore();
      },
    });
    await assert.rejects(runtime.open(), /not there yet/);
    await assert.rejects(runtime.open(), /not there yet/);
    assert.equal((await (await runtime.open()).store.conversations()).length, 0);
    await runtime.close();
  });

  it("can be repeated after closing, and closing twice is harmless", async () => {
    const { deps, opened } = depsFor();
    const runtime = runtimeOf(deps);
    await (await runtime.open()).store.open({ sessionId: "s" });
    await runtime.close();
    await runtime.close();
    assert.equal(runtime.isOpen(), false);
    assert.equal((await (await runtime.open()).store.conversations()).length, 1);
    assert.equal(opened(), 2);
    await runtime.close();
  });
});

describe("work of one session", () => {
  it("runs in order, even after a failure, and no session waits for another", async () => {
    const runtime = runtimeOf(depsFor().deps);
    const done: string[] = [];
    const gate = Promise.withResolvers<void>();
    const first = runtime.inOrder("a", async () => {
      await gate.promise;
      done.push("first");
      throw new Error("it failed");
    });
    const second = runtime.inOrder("a", async () => {
      await Promise.resolve();
      return done.push("second");
    });
    await runtime.inOrder("b", async () => await Promise.resolve(done.push("other")));
    assert.deepEqual(done, ["other"]);
    gate.resolve();
    await assert.rejects(first, /it failed/);
    await second;
    assert.deepEqual(done, ["other", "first", "second"]);
  });

  it("continues without the turn if it takes long", async () => {
    const { deps, warned } = depsFor({ patienceMs: 1 });
    const runtime = runtimeOf(deps);
    const gate = Promise.withResolvers<string>();
    const slow = async (): Promise<string> => await gate.promise;
    assert.equal(await runtime.inTurn("a", "it was read", slow), null);
    assert.equal(await runtime.inTurn("a", "it was read", slow), null);
    assert.equal(warned.length, 1, "and is told of once");
    gate.resolve("done");
    await runtime.inOrder("a", async () => await Promise.resolve());
    const { deps: patient } = depsFor({ patienceMs: 60_000 });
    const next = await runtimeOf(patient).inTurn("a", "it was read", slow);
    assert.deepEqual(next, { value: "done" });
  });
});

describe("compaction in the background", () => {
  const config = { contextTarget: 0, freshTailCount: 2, leafChunkTokens: 400, leafTargetTokens: 40 };

  async function filled(runtime: Runtime): Promise<ConversationId> {
    const { store } = await runtime.open();
    const { id } = await store.open({ sessionId: "s" });
    const messages = Array.from({ length: 12 }, (_, nth) =>
      messageToStore({ role: "user", content: `${nth}: ${"many words ".repeat(60)}` }, { key: `k${nth}`, at }),
    );
    await store.append(
      id,
      messages.map((message) => ({ kind: "message", message })),
    );
    return id;
  }

  it("runs once at a time per conversation, and no caller waits for it", async () => {
    const { deps } = depsFor({ config });
    const runtime = runtimeOf(deps);
    const id = await filled(runtime);
    const model = createScriptedModel({ behaviour: () => "good" });
    for (let times = 0; times < 5; times++) runtime.compactSoon(id, model);
    assert.equal(model.calls.length, 0, "nothing was waited for");
    await runtime.settled();
    assert.equal(model.calls.length, 1);
    assert.equal((await (await runtime.open()).store.usageSince(at)).calls, 1, "and counted");
    await runtime.close();
  });

  it("ends when the runtime is closed, even if the model ignores it", async () => {
    const { deps } = depsFor({ config });
    const runtime = runtimeOf(deps);
    const id = await filled(runtime);
    const asked = Promise.withResolvers<void>();
    const deaf = {
      ...createScriptedModel({ behaviour: () => "hangs" }),
      async complete(): Promise<never> {
        asked.resolve();
        return await new Promise<never>(() => undefined);
      },
    };
    runtime.compactSoon(id, deaf);
    await asked.promise;
    await runtime.close();
    assert.equal(runtime.isOpen(), false);
  });

  it("is not part of the turn that started it", async () => {
    const turn = new AsyncLocalStorage<string>();
    const { deps } = depsFor({ config });
    const seen: (string | undefined)[] = [];
    const openStore = async (): Promise<Store> => {
      seen.push(turn.getStore());
      return await deps.openStore();
    };
    const runtime = runtimeOf({ ...deps, openStore });
    await turn.run("a turn", async () => {
      const id = await filled(runtime);
      const model = createScriptedModel({
        behaviour: () => {
          seen.push(turn.getStore());
          return "good";
        },
      });
      runtime.compactSoon(id, model);
      await runtime.settled();
    });
    assert.deepEqual(seen, [undefined, undefined]);
    await runtime.close();
  });

  it("keeps nothing of the turn that started it once it is done", async () => {
    const { deps } = depsFor({ config });
    const runtime = runtimeOf(deps);
    const id = await filled(runtime);
    const model = createScriptedModel({ behaviour: () => "good" });
    const turns = new AsyncLocalStorage<object>();
    const turn = async (): Promise<WeakRef<object>> => {
      const held = { prompt: "long" };
      await turns.run(held, async () => {
        await runtime.inTurn("s", "it was read", async () => runtime.compactSoon(id, model));
      });
      return new WeakRef(held);
    };
    const ref = await turn();
    await runtime.settled();
    assert.equal((await (await runtime.open()).store.usageSince(at)).calls, 1);
    await collectGarbage();
    assert.equal(ref.deref(), undefined);
    await runtime.close();
  });

  it("that fails is recorded, and can be started again", async () => {
    const { deps } = depsFor({ config });
    const runtime = runtimeOf(deps);
    const id = await filled(runtime);
    await (await runtime.open()).store.close();
    for (let times = 1; times <= 2; times++) {
      runtime.compactSoon(id, null);
      await runtime.settled();
      assert.equal(runtime.troubles.length, times);
    }
    await runtime.close().catch(() => undefined);
  });
});

describe("what the runtime remembers", () => {
  it("is bounded: the newest problems and the recent sessions", () => {
    const runtime = runtimeOf(depsFor().deps);
    for (let nth = 0; nth < 50; nth++) runtime.note(`taking step ${nth}`, "no");
    assert.deepEqual([runtime.troubles.length, runtime.troubles.at(-1)?.doing], [20, "taking step 49"]);
    runtime.memoryOf({ agentId: "main", sessionKey: "in use" }).allowance = 1;
    for (let nth = 0; nth < 1_500; nth++) {
      runtime.memoryOf({ agentId: "main", sessionKey: `session ${nth}` }).allowance = nth;
      runtime.memoryOf({ agentId: "main", sessionKey: "in use" });
    }
    assert.equal(runtime.memoryOf({ agentId: "main", sessionKey: "in use" }).allowance, 1);
    assert.equal(runtime.memoryOf({ agentId: "main", sessionKey: "session 3" }).allowance, null);
  });

  it("is logged once, for warnings", () => {
    const { deps, warned } = depsFor();
    const runtime = runtimeOf(deps);
    for (let times = 0; times < 3; times++) runtime.warnOnce("summaryModel is not used");
    assert.deepEqual(warned, ["summaryModel is not used"]);
  });
});

describe("embedding in the background", () => {
  const told = async (runtime: Runtime, count: number): Promise<void> => {
    const { store } = await runtime.open();
    const talk = await store.open({ sessionId: "s" });
    const messages = Array.from({ length: count }, (_, n) => ({
      kind: "message" as const,
      message: messageToStore({ role: "user", content: `words ${n}` }, { key: `k${n}`, at }),
    }));
    await store.append(talk.id, messages);
  };
  const withEmbedder = (embedder: Embedder) =>
    depsFor({ config: { embedder: "scripted" }, embedder: async () => await Promise.resolve(embedder) });

  it("embeds what is new when asked, one run at a time", async () => {
    const embedder = createScriptedEmbedder();
    const { deps } = withEmbedder(embedder);
    const runtime = runtimeOf(deps);
    await told(runtime, 20);
    for (let asks = 0; asks < 3; asks++) runtime.embedSoon();
    await runtime.settled();
    const { vectors } = await (await runtime.open()).store.status();
    assert.deepEqual([vectors[0]?.made, embedder.asked.length], [20, 4]);
    await runtime.close();
    assert.ok(embedder.isClosed());
  });

  it("a model that fails is a recorded problem, and is left alone for a while", async () => {
    const embedder = createScriptedEmbedder();
    embedder.play(() => refusing("the server is down"));
    const { deps } = withEmbedder(embedder);
    const runtime = runtimeOf(deps);
    await told(runtime, 2);
    for (let asks = 0; asks < 3; asks++) {
      runtime.embedSoon();
      await runtime.settled();
    }
    assert.deepEqual(
      runtime.troubles.map(({ doing, message }) => [doing, message]),
      [["embedding messages for search", "the server is down"]],
    );
    assert.equal(embedder.asked.length, 1);
    await runtime.close();
  });

  it("a model that hangs does not keep the host from closing", async () => {
    const embedder = createScriptedEmbedder();
    embedder.play(async () => await new Promise(() => undefined));
    const { deps } = withEmbedder(embedder);
    const runtime = runtimeOf(deps);
    await told(runtime, 2);
    runtime.embedSoon();
    await runtime.close();
    assert.deepEqual(runtime.troubles, []);
  });

  it("without an embedder nothing is started", async () => {
    const { deps, opened } = depsFor();
    const runtime = runtimeOf(deps);
    runtime.embedSoon();
    await runtime.settled();
    assert.equal(opened(), 0);
  });
});
