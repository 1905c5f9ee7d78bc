/** Contract: model calls and compactions are recorded, within their limits. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { sql } from "../../src/store/script.ts";
import type { CallResult } from "../../src/core/model/types.ts";
import type { CallBounds, Store } from "../../src/core/model/store.ts";
import { at, compaction, each, itOn, leafCall, nowhere, onFile, onTalk, refuses, unbounded } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

const later = at("2999-01-01T00:00:00.000Z");
const ever = unbounded.windowSince;
const good: CallResult = { inputTokens: 100, outputTokens: 10, result: "ok", durationMs: 5 };

const begin = async (store: Store, more: Parameters<typeof leafCall>[1] = {}, bounds = unbounded): Promise<number> => {
  const begun = await store.beginCall(leafCall(null, more), bounds);
  assert.ok(begun.kind === "granted", begun.kind === "refused" ? begun.message : "");
  return begun.id;
};

const call = async (store: Store, result: CallResult["result"], more: Parameters<typeof leafCall>[1] = {}) =>
  await store.endCall(await begin(store, more), { ...good, result });

/** Why a call is refused; null if it is granted. */
const refusalOf = async (store: Store, bounds: Partial<CallBounds>, provider = "scripted"): Promise<string | null> => {
  const begun = await store.beginCall(leafCall(null, { provider }), { ...unbounded, ...bounds });
  return begun.kind === "refused" ? begun.refusal : null;
};

const noEmbeds = { embedCalls: 0, embedTokens: 0 };

export function testSpending(subject: StoreUnderTest): void {
  const it = itOn(subject, onTalk);

  describe("guarantee 20, store part: every model call is a row, within a ceiling", () => {
    it("of an embedding model apart from the others, so that neither uses up the calls of the other", async ({
      store,
    }) => {
      const few = { ...unbounded, callsMax: 2 };
      const embed = async (): Promise<string> =>
        (await store.beginCall(leafCall(null, { purpose: "embed" }), few)).kind;
      const leaf = async (): Promise<string> => (await store.beginCall(leafCall(null), few)).kind;
      assert.deepEqual([await embed(), await embed(), await embed()], ["granted", "granted", "refused"]);
      assert.deepEqual([await leaf(), await leaf(), await leaf()], ["granted", "granted", "refused"]);
      const { calls, embedCalls } = await store.usageSince(ever);
      assert.deepEqual([calls, embedCalls], [2, 2]);
    });

    it("recorded before it is made: one that never ends counts as open", async ({ store, id }) => {
      const first = await begin(store, { conversation: id });
      await begin(store, { purpose: "file" });
      assert.deepEqual(await store.usageSince(ever), {
        calls: 2,
        inputTokens: 0,
        outputTokens: 0,
        failures: 0,
        open: 2,
        ...noEmbeds,
      });
      await store.endCall(first, good);
      await call(store, "timeout");
      assert.deepEqual(await store.usageSince(ever), {
        calls: 3,
        inputTokens: 200,
        outputTokens: 20,
        failures: 1,
        open: 1,
        ...noEmbeds,
      });
      assert.deepEqual(await store.usageSince(later), {
        calls: 0,
        inputTokens: 0,
        outputTokens: 0,
        failures: 0,
        open: 0,
        ...noEmbeds,
      });
      await refuses("not_found", () => store.endCall(987_654, good));
    });

    it("a call beyond the ceiling of its window is refused with the figures, and is not recorded", async ({
      store,
    }) => {
      for (const _ of [1, 2, 3]) await call(store, "ok");
      const bounds = { ...unbounded, callsMax: 3 };
      const refused = await store.beginCall(leafCall(null), bounds);
      assert.ok(refused.kind === "refused");
      assert.equal(refused.refusal, "ceiling");
      assert.match(refused.message, /^3 model calls since 0000-01-01T00:00:00\.000Z, of 3 allowed$/);
      assert.equal((await store.usageSince(ever)).calls, 3);
      assert.equal(await refusalOf(store, { callsMax: 3, windowSince: later }), null, "earlier calls do not count");
      assert.equal(await refusalOf(store, { callsMax: 5 }), null);
      assert.equal(await refusalOf(store, { callsMax: 0, windowSince: later }), "ceiling");
    });

    it("concurrent calls from several connections never exceed the ceiling together", async (scene) => {
      const { store, path } = scene;
      await onFile(subject, path, async (other) => {
        const begun = await Promise.all(
          Array.from({ length: 20 }, (_, index) => refusalOf(index % 2 === 0 ? store : other, { callsMax: 7 })),
        );
        assert.equal(begun.filter((refusal) => refusal === null).length, 7);
        assert.equal((await store.usageSince(ever)).calls, 7);
      });
    });

    it("calls count that another machine, whose clock is a little ahead, has just made", async ({ store, path }) => {
      const dateCalls = (minutesAhead: number): Promise<unknown> =>
        subject.raw(path, function* () {
          const date = at(new Date(Date.now() + minutesAhead * 60_000).toISOString());
          yield sql`UPDATE model_usage SET at = ${date}`;
        });
      const since = at(new Date(Date.now() - 60_000).toISOString());
      const bounds = { callsMax: 2, windowSince: since, breakerSince: since };
      await call(store, "auth");
      await call(store, "timeout");
      await dateCalls(1);
      assert.equal(await refusalOf(store, bounds, "another"), "ceiling");
      assert.equal(await refusalOf(store, bounds), "breaker");
      await dateCalls(24 * 60);
      assert.equal(await refusalOf(store, bounds), null, "a clock that is a day ahead is wrong");
    });
  });

  describe("guarantee 21, store part: a refused credential opens a breaker", () => {
    it("for its provider, until a call to it is answered, or long enough has passed", async ({ store }) => {
      await call(store, "ok");
      assert.deepEqual(await store.openBreakers(ever), []);
      await call(store, "auth", { model: "two" });
      const [breaker = assert.fail(), ...more] = await store.openBreakers(ever);
      assert.deepEqual([breaker.provider, breaker.model, more.length], ["scripted", "two", 0]);
      const refused = await store.beginCall(leafCall(null), { ...unbounded, breakerSince: breaker.at });
      assert.ok(refused.kind === "refused" && refused.refusal === "breaker");
      assert.ok(refused.message.includes("scripted") && refused.message.includes(breaker.at), refused.message);
      assert.equal((await store.usageSince(ever)).calls, 2, "a refused call is not recorded");
      assert.deepEqual(await store.openBreakers(later), []);
      assert.equal(await refusalOf(store, { breakerSince: later }), null, "long enough ago");
      assert.equal(await refusalOf(store, { breakerSince: ever }, "another"), null, "another provider");
      assert.equal(await refusalOf(store, { breakerSince: null }), null, "tried all the same");
      assert.equal(await refusalOf(store, { breakerSince: ever }), "breaker", "running calls do not decide yet");
      for (const result of ["timeout", "cancelled", "rate_limit"] as const) await call(store, result);
      assert.equal(await refusalOf(store, { breakerSince: ever }), "breaker", "nor do unanswered calls");
      await call(store, "ok");
      assert.equal(await refusalOf(store, { breakerSince: ever }), null);
      assert.deepEqual(await store.openBreakers(ever), []);
    });

    it("other trouble opens none; each provider has its own; the breaker is reported before the ceiling", async (scene) => {
      const { store } = scene;
      for (const result of ["rate_limit", "overloaded", "timeout", "filtered", "no_credential"] as const) {
        await call(store, result, { provider: result });
      }
      for (const provider of ["b", "a"]) await call(store, "auth", { provider });
      assert.deepEqual(each(await store.openBreakers(ever), "provider"), ["a", "b"]);
      assert.equal(await refusalOf(store, { breakerSince: ever, callsMax: 1 }, "a"), "breaker");
      assert.equal(await refusalOf(store, { breakerSince: ever, callsMax: 1 }, "timeout"), "ceiling");
    });
  });

  describe("compactions", () => {
    it("are listed newest first, of one conversation or of all", async ({ store }) => {
      const [a, b] = [await store.open({ sessionId: "a" }), await store.open({ sessionId: "b" })];
      const records = [
        compaction(a.id),
        compaction(b.id, { mode: "until_under", outcome: "stalled", passes: 0, tokensAfter: 900 }),
        compaction(a.id, { mode: "incremental", at: at("2026-02-17T09:00:00.000Z") }),
      ] as const;
      for (const record of records) await store.recordCompaction(record);
      assert.deepEqual(await store.compactions(null, 10), records.toReversed());
      assert.deepEqual(await store.compactions(a.id, 10), [records[2], records[0]]);
      assert.deepEqual(await store.compactions(a.id, 1), [records[2]]);
      assert.deepEqual(await store.compactions(nowhere, 10), []);
      await refuses("not_found", () => store.recordCompaction(compaction(nowhere)));
    });
  });
}
