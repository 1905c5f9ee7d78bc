/** What a program without types gets wrong is refused in words, before anything is stored. */

import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { createLcm, openSqlite, openStore, systemClock } from "../../src/index.ts";
import { freshLcms } from "../support/fresh-lcm.ts";
import { makeScratch } from "../support/scratch.ts";

const withFreshLcm = freshLcms("plain-javascript");
const scratch = makeScratch("plain-javascript-places");
const said = { role: "user", content: "hello" };
const at = systemClock.now();

/** What types forbid. */
const wrong = (value: unknown) => value as never;

describe("what is ingested", () => {
  const refused: readonly (readonly [name: string, given: unknown, message: RegExp])[] = [
    ["one item alone", { kind: "message", key: "k", at, message: said }, /not a list/],
    ["a bare message", [said], /item 0 .* neither the kind "message" nor "entry"/],
    ["nothing in the list", [{ kind: "message", key: "k", at, message: said }, null], /item 1 /],
    ["a message without a key", [{ kind: "message", at, message: said }], /the key of item 0 is null/],
    ["a key that is a number", [{ kind: "message", key: 5, at, message: said }], /the key of item 0 is 5/],
    ["a Date", [{ kind: "message", key: "k", at: new Date(at), message: said }], /of the type object, not a text/],
    ["another notation of a time", [{ kind: "message", key: "k", at: "now", message: said }], /is "now", not a text/],
  ];
  for (const [name, given, message] of refused) {
    it(`is refused if it is ${name}`, async () => {
      await withFreshLcm(async ({ lcm, store }) => {
        const { id } = await store.open({ sessionId: "s" });
        await assert.rejects(lcm.ingest(id, wrong(given)), { code: "invalid", message, hint: /for example/ });
        assert.deepEqual(await store.messages({ conversation: id }), []);
      });
    });
  }
});

describe("a request", () => {
  it("names the modes of a compaction if it has another", async () => {
    await withFreshLcm(async ({ lcm, store }) => {
      const { id } = await store.open({ sessionId: "s" });
      const request = { conversation: id, mode: wrong("auto") };
      const refusal = { code: "invalid", message: /"auto", but must be one of due, incremental, sweep, until_under/ };
      await assert.rejects(lcm.compact(request), refusal);
      await assert.rejects(lcm.planCompaction(request), refusal);
    });
  });

  it("has a budget that is a number", async () => {
    await withFreshLcm(async ({ lcm, store }) => {
      const { id } = await store.open({ sessionId: "s" });
      for (const [budget, given] of [
        [wrong("4000"), '"4000"'],
        [Number.NaN, "NaN"],
        [-1, "-1"],
      ] as const)
        await assert.rejects(lcm.assemble(id, { budget }), {
          code: "invalid",
          message: `the budget is ${given}, but must be a number of tokens`,
        });
    });
  });
});

describe("a verb that needs a model", () => {
  it("names the way in which code gives it one", async () => {
    await withFreshLcm(async ({ lcm }) => {
      const reach = { kind: "all", conversations: null } as const;
      const refusal = { code: "unavailable", hint: /createLcm\(\)/ };
      await assert.rejects(lcm.map({ prompt: "Which?", schema: { type: "string" }, reach }), refusal);
    });
  });
});

describe("the place of a database", () => {
  it("is a path or a URL of PostgreSQL, and nothing is created for any other", async () => {
    const before = readdirSync(scratch);
    const ways = [openStore, (path: string) => openSqlite({ path })];
    for (const given of ["mysql://me:secret@db.example.org/x", "file:///lcm.db", ":memory:", "", " "])
      for (const open of ways)
        await assert.rejects(open(given), (error: Error) => {
          assert.match(error.message, /is not the path of a database file$/);
          assert.doesNotMatch(error.message, /secret/);
          return true;
        });
    await assert.rejects(openStore(wrong(undefined)), { code: "invalid", hint: /postgres:\/\// });
    assert.deepEqual(readdirSync(scratch), before);
    assert.ok(!existsSync("mysql:"));
  });
});

describe("an engine", () => {
  it("can be closed twice, and closes its embedder once", async () => {
    let closed = 0;
    const embed = async () => await Promise.resolve({ kind: "refused", refusal: "overloaded", message: "" } as const);
    const close = async () => await Promise.resolve().then(() => void closed++);
    const store = await openSqlite({ path: join(scratch, "twice.db") });
    const lcm = createLcm({ store, clock: systemClock, embedder: { name: "none", batch: 1, embed, close } });
    await Promise.all([lcm.close(), lcm.close()]);
    await lcm.close();
    assert.equal(closed, 1);
    await assert.rejects(store.status(), { code: "unavailable", message: "the store is closed" });
  });
});
