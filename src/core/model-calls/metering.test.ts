import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openSqlite, systemNow } from "../../store/sqlite/store.ts";
import { freshLcms } from "../../../test/support/fresh-lcm.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { createScriptedEmbedder } from "../../../test/support/scripted-embedder.ts";
import { createLcm } from "../lcm.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { behaviours, createScriptedModel } from "../../../test/support/scripted-model.ts";
import type { Behaviour } from "../../../test/support/scripted-model.ts";
import { LcmError } from "../base/errors.ts";
import type { ErrorCode } from "../base/errors.ts";
import { refusals } from "../model/types.ts";
import type { ConversationId } from "../model/types.ts";
import type { Clock, Completion, CompletionRequest, Model, Store } from "../model/store.ts";
import { builtInTemplates } from "../prompts/summary.ts";
import { resolveSettings } from "../model/settings.ts";
import type { Settings } from "../model/settings.ts";
import { meter, meterEmbedder, spendOf } from "./metering.ts";
import type { Spend } from "./metering.ts";
import { summarize } from "../summarize/summarize.ts";
import { msToTimestamp } from "../base/time.ts";
import type { Timestamp } from "../base/time.ts";

const onLcm = freshLcms("spend");

interface Ground {
  readonly store: Store;
  readonly conversation: ConversationId;
  /** The model under the meter, with these settings. */
  readonly metered: (model: Model, config?: Partial<Settings>, options?: Parameters<typeof meter>[2]) => Model;
  readonly spend: (config?: Partial<Settings>) => Promise<Spend>;
  readonly clock: Clock;
  readonly passMinutes: (minutes: number) => void;
  /** As a process that starts anew sees it. */
  readonly reopen: () => Promise<Ground>;
}

async function onGround(test: (ground: Ground) => Promise<void>): Promise<void> {
  const folder = makeScratch("spend");
  const path = join(folder, "lcm.db");
  let nowMs = Date.UTC(2026, 1, 17, 8, 0);
  const clock = { now: (): Timestamp => msToTimestamp(nowMs) };
  const opened: Store[] = [];
  const open = async (): Promise<Ground> => {
    const store = await openSqlite({ path, now: clock.now, housekeeping: false });
    opened.push(store);
    const deps = (config: Partial<Settings> = {}) => ({
      store,
      clock,
      settings: resolveSettings({ env: {}, config }).values,
    });
    return {
      store,
      clock,
      conversation: (await store.open({ sessionId: "s" })).id,
      metered: (model, config, options) => meter(deps(config), model, options),
      spend: (config) => spendOf(deps(config)),
      passMinutes: (minutes) => void (nowMs += minutes * 60_000),
      reopen: async () => {
        await opened.pop()?.close();
        return await open();
      },
    };
  };
  try {
    await test(await open());
  } finally {
    for (const store of opened) await store.close();
    await rm(folder, { recursive: true, force: true });
  }
}

const request = (more: Partial<CompletionRequest> = {}): CompletionRequest => ({
  purpose: "leaf",
  conversation: null,
  system: "Be brief.",
  prompt: "<conversation_segment>\nIt leaks.\n</conversation_segment>",
  temperature: 0.2,
  maxOutputTokens: 100,
  ...more,
});

const resultOf = (completion: Completion): string => (completion.kind === "text" ? "ok" : completion.refusal);

const behaving = (behaviour: Behaviour) => createScriptedModel({ behaviour: () => behaviour, delayMs: 1 });

describe("guarantee 20: spend is bounded and visible", () => {
  it("every call is recorded with its tokens and its result, however it ends", async () => {
    await onGround(async ({ metered, spend, conversation }) => {
      let [calls, failures, inputTokens, outputTokens] = [0, 0, 0, 0];
      for (const behaviour of behaviours) {
        const aborting = new AbortController();
        if (behaviour === "hangs") setTimeout(() => aborting.abort(), 1);
        const asked = request({ conversation, signal: aborting.signal });
        const completion = await metered(behaving(behaviour)).complete(asked);
        calls++;
        if (completion.kind === "text") {
          inputTokens += completion.inputTokens;
          outputTokens += completion.outputTokens;
        } else failures++;
        assert.deepEqual(
          (await spend()).usage,
          { calls, failures, inputTokens, outputTokens, open: 0, embedCalls: 0, embedTokens: 0 },
          behaviour,
        );
        // So that the next is asked, whose credential is fine.
        if (behaviour === "unauthorized")
          await metered(behaving("good"), {}, { breaker: "ignored" }).complete(request());
        if (behaviour === "unauthorized") ({ calls, inputTokens, outputTokens } = (await spend()).usage);
      }
      assert.ok(failures >= 4);
    });
  });

  it("an adapter without token counts loses no answer and leaves no call open", async () => {
    await onGround(async ({ metered, spend }) => {
      const answering = (said: unknown): Model => ({
        provider: "p",
        name: "m",
        complete: async () => await Promise.resolve(said as Completion),
      });
      const text = { kind: "text", text: "The tent leaks.", finish: "stop" };
      let counted = 0;
      for (const [tokens, whole] of [
        [undefined, 0],
        [null, 0],
        [Number.NaN, 0],
        [-5, 0],
        [Infinity, 0],
        ["many", 0],
        [1.6, 2],
      ] as const) {
        const model = answering({ ...text, inputTokens: tokens, outputTokens: tokens });
        assert.deepEqual(await metered(model).complete(request()), {
          ...text,
          inputTokens: whole,
          outputTokens: whole,
        });
        counted += whole;
        const { usage } = await spend();
        assert.deepEqual([usage.inputTokens, usage.outputTokens, usage.open], [counted, counted, 0]);
      }
      for (const odd of [undefined, null, { kind: "refused" }, { kind: "refused", refusal: "tired", message: "" }])
        assert.equal((await metered(answering(odd)).complete(request())).kind, "refused");
      assert.deepEqual((await spend()).usage.open, 0);
    });
  });

  it("a call is recorded while it runs, and stays recorded if its process dies", async () => {
    await onGround(async (ground) => {
      const aborting = new AbortController();
      const hang = async (signal?: AbortSignal) => {
        const asked = Promise.withResolvers<void>();
        const model = createScriptedModel({ behaviour: () => (asked.resolve(), "hangs") });
        const completion = ground.metered(model).complete(request(signal === undefined ? {} : { signal }));
        await asked.promise;
        return { completion };
      };
      const { completion } = await hang(aborting.signal);
      assert.equal((await ground.spend()).usage.open, 1);
      aborting.abort();
      assert.equal(resultOf(await completion), "cancelled");
      assert.equal((await ground.spend()).usage.open, 0);
      await hang();
      const { spend } = await ground.reopen();
      assert.deepEqual([(await spend()).usage.calls, (await spend()).usage.open], [2, 1]);
    });
  });

  it("a window limits the calls of all models and processes together; more are refused without calling", async () => {
    await onGround(async (ground) => {
      const config = { spendCeilingCalls: 3, spendWindowMinutes: 30 };
      const [one, other] = [behaving("good"), { ...behaving("good"), provider: "other" }];
      const ask = async ({ metered }: Ground, model: Model) =>
        resultOf(await metered(model, config).complete(request()));
      assert.equal(await ask(ground, one), "ok");
      ground.passMinutes(10);
      assert.equal(await ask(ground, other), "ok");
      assert.equal(await ask(ground, one), "ok");
      assert.equal(await ask(ground, one), "ceiling");
      const again = await ground.reopen();
      assert.equal(await ask(again, other), "ceiling");
      assert.equal(one.calls.length, 2);
      const { usage, callsMax, windowMinutes } = await again.spend(config);
      assert.deepEqual([usage.calls, callsMax, windowMinutes], [3, 3, 30]);
      again.passMinutes(21);
      assert.equal(await ask(again, one), "ok", "the first call has left the window");
      assert.equal(await ask(again, one), "ceiling");
    });
  });

  it("calls dated by a clock that was ahead do not count: once it is right, models are called again", async () => {
    await onGround(async (ground) => {
      const config = { spendCeilingCalls: 2, spendWindowMinutes: 30 };
      const ask = async () => resultOf(await ground.metered(behaving("good"), config).complete(request()));
      const year = 365 * 24 * 60;
      ground.passMinutes(year);
      assert.deepEqual([await ask(), await ask(), await ask()], ["ok", "ok", "ceiling"]);
      ground.passMinutes(-year);
      assert.equal((await ground.spend(config)).usage.calls, 0);
      assert.deepEqual([await ask(), await ask(), await ask()], ["ok", "ok", "ceiling"]);
      assert.equal((await ground.spend(config)).usage.calls, 2);
    });
  });

  it("no call takes a negative time when the clock is set back", async () => {
    await onGround(async (ground) => {
      const model: Model = {
        ...behaving("good"),
        complete: async (asked) => {
          ground.passMinutes(-60);
          return await behaving("good").complete(asked);
        },
      };
      const ends: number[] = [];
      const store: Store = {
        ...ground.store,
        endCall: async (id, result) => {
          ends.push(result.durationMs);
          await ground.store.endCall(id, result);
        },
      };
      const { values: settings } = resolveSettings({ env: {}, config: {} });
      await meter({ store, clock: ground.clock, settings }, model).complete(request());
      assert.deepEqual(ends, [0]);
    });
  });

  it("concurrent calls do not exceed the ceiling", async () => {
    await onGround(async ({ metered }) => {
      const model = metered(behaving("slow"), { spendCeilingCalls: 5 });
      const results = await Promise.all(
        Array.from({ length: 12 }, async () => resultOf(await model.complete(request()))),
      );
      assert.equal(results.filter((result) => result === "ok").length, 5);
      assert.equal(results.filter((result) => result === "ceiling").length, 7);
    });
  });

  it("a ceiling of zero calls no model, and summaries are still written", async () => {
    await onGround(async ({ metered, conversation, spend }) => {
      const model = behaving("good");
      const { values: settings } = resolveSettings({ env: {}, config: { spendCeilingCalls: 0 } });
      const passages = Array.from({ length: 30 }, (_, at) => ({
        label: "[2026-02-17 08:00 UTC] [user]",
        text: `We decided that boat ${at} is painted green, since Jonas has ${at} litres of it left.`,
        kind: "user" as const,
      }));
      const source = {
        conversation,
        depth: 0,
        passages,
        tokens: 900,
        overheadTokens: 100,
        targetTokens: 450,
        previousContext: null,
        fileIds: [],
      };
      const deps = { model: metered(model, settings), settings, templates: builtInTemplates };
      const waiting = await summarize(deps, source, { onRefusal: "wait" });
      assert.equal(waiting.kind === "refused" && waiting.refusal, "ceiling");
      const rescued = await summarize(deps, source, { onRefusal: "extract" });
      assert.equal(rescued.kind === "drafted" && rescued.summary.level, "extractive");
      assert.deepEqual([model.calls.length, (await spend()).usage.calls], [0, 0]);
    });
  });

  it("a call cancelled before it began is not recorded", async () => {
    await onGround(async ({ metered, spend }) => {
      const model = behaving("good");
      const completion = await metered(model).complete(request({ signal: AbortSignal.abort() }));
      assert.deepEqual([resultOf(completion), model.calls.length], ["cancelled", 0]);
      assert.equal((await spend()).usage.calls, 0);
    });
  });

  it("leaves no listeners on a signal that outlives many calls", async () => {
    await onGround(async ({ metered }) => {
      const { signal } = new AbortController();
      for (const behaviour of ["good", "throws", "refuses"] as const) {
        await metered(behaving(behaviour)).complete(request({ signal }));
      }
      assert.equal(getEventListeners(signal, "abort").length, 0);
    });
  });
});

describe("guarantee 21: provider trouble is classified by kind, never by its text", () => {
  it("a rejected credential opens a breaker: no call for ten minutes, even after a restart", async () => {
    await onGround(async (ground) => {
      const model = behaving("unauthorized");
      const ask = async ({ metered }: Ground) => await metered(model).complete(request());
      assert.equal(resultOf(await ask(ground)), "auth");
      ground.passMinutes(5);
      const refused = await ask(ground);
      assert.ok(refused.kind === "refused" && refused.refusal === "breaker" && /scripted/.test(refused.message));
      const again = await ground.reopen();
      again.passMinutes(4.9);
      assert.equal(resultOf(await ask(again)), "breaker");
      assert.equal(model.calls.length, 1);
      again.passMinutes(0.2);
      assert.equal(resultOf(await ask(again)), "auth");
      assert.equal(model.calls.length, 2);
    });
  });

  it("a breaker opened by a clock that was ahead is closed once the clock is right", async () => {
    await onGround(async (ground) => {
      const ask = async (model: Model) => resultOf(await ground.metered(model).complete(request()));
      assert.equal(await ask(behaving("unauthorized")), "auth");
      ground.passMinutes(24 * 60);
      assert.equal(await ask(behaving("unauthorized")), "auth");
      assert.equal(await ask(behaving("good")), "breaker");
      ground.passMinutes(-24 * 60);
      assert.deepEqual((await ground.spend()).breakers, []);
      assert.equal(await ask(behaving("good")), "ok");
    });
  });

  it("status shows which provider is paused, since when and until when", async () => {
    await onGround(async (ground) => {
      assert.deepEqual((await ground.spend()).breakers, []);
      await ground.metered(behaving("unauthorized")).complete(request());
      const [at, until] = ["2026-02-17T08:00:00.000Z", "2026-02-17T08:10:00.000Z"];
      const open = [{ provider: "scripted", model: "one", at, until }];
      assert.deepEqual((await ground.spend()).breakers, open);
      const again = await ground.reopen();
      assert.deepEqual((await again.spend()).breakers, open);
      again.passMinutes(11);
      assert.deepEqual((await again.spend()).breakers, []);
    });
  });

  it("other providers are unaffected, and an operator can try a corrected credential at once", async () => {
    await onGround(async ({ metered, spend }) => {
      await metered(behaving("unauthorized")).complete(request());
      assert.equal(resultOf(await metered({ ...behaving("good"), provider: "other" }).complete(request())), "ok");
      assert.equal(resultOf(await metered(behaving("good")).complete(request())), "breaker");
      assert.equal(resultOf(await metered(behaving("good"), {}, { breaker: "ignored" }).complete(request())), "ok");
      assert.deepEqual((await spend()).breakers, []);
      assert.equal(resultOf(await metered(behaving("good")).complete(request())), "ok");
    });
  });

  it("only the kind decides, whatever the message says", async () => {
    await onGround(async ({ metered, spend }) => {
      for (const refusal of refusals) {
        if (refusal === "auth") continue;
        const model = refusing({ kind: "refused", refusal, message: "401 unauthorized: invalid api key" });
        assert.equal(resultOf(await metered(model).complete(request())), refusal);
        assert.deepEqual((await spend()).breakers, [], refusal);
      }
      await metered(refusing({ kind: "refused", refusal: "auth", message: "200 OK" })).complete(request());
      assert.equal((await spend()).breakers.length, 1);
    });
  });

  it("a provider without a credential is never called: no record, no breaker, and it works once there is one", async () => {
    await onGround(async (ground) => {
      const good = behaving("good");
      let hasKey = false;
      const missing = { kind: "refused", refusal: "no_credential", message: "set THE_KEY" } as const;
      const model: Model = { ...good, check: async () => await Promise.resolve(hasKey ? null : missing) };
      const ask = async ({ metered }: Ground) => await metered(model, { spendCeilingCalls: 1 }).complete(request());
      assert.deepEqual(await ask(ground), missing);
      const again = await ground.reopen();
      assert.deepEqual(await ask(again), missing, "the same every time, by whomever");
      assert.deepEqual([good.calls.length, (await again.spend()).usage.calls], [0, 0]);
      assert.deepEqual((await again.spend()).breakers, []);
      hasKey = true;
      assert.equal(resultOf(await ask(again)), "ok", "at once, and with nothing of the ceiling used up");
      assert.equal((await again.spend()).usage.calls, 1);
    });
  });

  it("a missing credential is reported before a breaker or the ceiling; a check that throws or hangs is a refusal", async () => {
    await onGround(async ({ metered, spend }) => {
      await metered(behaving("unauthorized")).complete(request());
      const checking = (check: NonNullable<Model["check"]>): Model => ({ ...behaving("good"), check });
      const missing = { kind: "refused", refusal: "no_credential", message: "set THE_KEY" } as const;
      const without = metered(
        checking(() => Promise.resolve(missing)),
        { spendCeilingCalls: 1 },
      );
      assert.deepEqual(await without.complete(request()), missing);
      const throwing = metered(checking(() => Promise.reject(new Error("no such disk"))));
      assert.equal(resultOf(await throwing.complete(request())), "unreachable");
      const aborting = new AbortController();
      setTimeout(() => aborting.abort(), 1);
      const hanging = metered(checking(() => new Promise(() => undefined)));
      assert.equal(resultOf(await hanging.complete(request({ signal: aborting.signal }))), "cancelled");
      assert.equal((await spend()).usage.calls, 1);
    });
  });

  it("what an adapter throws is a refusal with its message: by its code if it is an LcmError, otherwise unreachable", async () => {
    const expected: Readonly<Record<ErrorCode, string>> = {
      denied: "auth",
      unavailable: "unreachable",
      invalid: "rejected",
      not_found: "rejected",
      conflict: "rejected",
      corrupt: "rejected",
    };
    await onGround(async ({ metered }) => {
      const thrown = async (error: Error) =>
        await metered(throwing(error), {}, { breaker: "ignored" }).complete(request());
      for (const code of Object.keys(expected) as ErrorCode[]) {
        const completion = await thrown(new LcmError(code, "the door is shut"));
        assert.deepEqual(completion, { kind: "refused", refusal: expected[code], message: "the door is shut" });
      }
      assert.equal(resultOf(await thrown(new TypeError("401 unauthorized"))), "unreachable");
    });
  });

  const refusing = (completion: Completion): Model => ({
    provider: "scripted",
    name: "one",
    complete: () => Promise.resolve(completion),
  });
  const throwing = (problem: Error): Model => ({
    provider: "scripted",
    name: "one",
    complete: async () => await Promise.reject<Completion>(problem),
  });
});

describe("guarantee 20, for embedding models", () => {
  const far = { provider: "openai", model: "text-embedding-3-small" };
  const asked = { texts: ["one two three", "four"], kind: "passage" } as const;

  it("a call of a remote one is a row, and there is a ceiling, of which a tenth is left for questions", async () => {
    await onLcm(async ({ store }) => {
      const settings = resolveSettings({ env: {}, config: { embedCeilingCalls: 10 } }).values;
      const scripted = createScriptedEmbedder([]);
      const embedder = meterEmbedder({ store, clock: { now: systemNow }, settings }, { ...scripted, remote: far });
      for (let call = 0; call < 9; call++) assert.equal((await embedder.embed(asked)).kind, "vectors");
      const tenth = await embedder.embed(asked);
      assert.deepEqual([tenth.kind, "refusal" in tenth && tenth.refusal], ["refused", "ceiling"]);
      assert.equal((await embedder.embed({ ...asked, kind: "query" })).kind, "vectors");
      assert.equal((await embedder.embed({ ...asked, kind: "query" })).kind, "refused");
      assert.equal(scripted.asked.length, 10, "a refused call is not made");
      const { calls, embedCalls, embedTokens } = await store.usageSince("2026-01-01T00:00:00.000Z" as Timestamp);
      assert.deepEqual([calls, embedCalls, embedTokens > 10], [0, 10, true]);
    });
  });

  it("one on this machine costs nothing, and search goes on by words where the ceiling is reached", async () => {
    await onLcm(async ({ store }) => {
      const settings = resolveSettings({ env: {}, config: { embedCeilingCalls: 0 } }).values;
      const { id } = await store.open({ sessionId: "s" });
      const host = createHost("h");
      host.says(user("the boat sank"));
      await store.append(id, host.entries.map(toAppendable));
      const local = createLcm({ store, clock: { now: systemNow }, settings, embedder: createScriptedEmbedder([]) });
      assert.equal((await local.makeVectors()).outcome, "complete");
      const embedder = { ...createScriptedEmbedder([]), remote: far };
      const paid = createLcm({ store, clock: { now: systemNow }, settings, embedder });
      const { outcome, problem } = await paid.makeVectors();
      assert.equal(outcome, "failed");
      assert.match(problem ?? "", /0 calls of embedding models since .* of 0 allowed/);
      const { hits, caveats } = await paid.grep({ pattern: "boat", reach: { kind: "all", conversations: null } });
      assert.deepEqual([hits.length, caveats.map(({ kind }) => kind)], [1, ["no_meaning"]]);
      assert.equal((await store.usageSince("2026-01-01T00:00:00.000Z" as Timestamp)).embedCalls, 0);
    });
  });
});
