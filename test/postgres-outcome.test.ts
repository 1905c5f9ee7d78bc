/** A connection that breaks during a commit: the caller gets the true answer, or learns that nobody knows it. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { LcmError } from "../src/core/base/errors.ts";
import type { Store } from "../src/core/model/store.ts";
import { readAddress } from "../src/store/postgres/address.ts";
import { numberStatement, settle, type Mark } from "../src/store/postgres/outcome.ts";
import { openPool } from "../src/store/postgres/pool.ts";
import { createRunner } from "../src/store/postgres/runner.ts";
import { openPostgres } from "../src/store/postgres/store.ts";
import { count, sql } from "../src/store/script.ts";
import { compaction, foldPlaces, itemOf, leafCall, numbered, summary, unbounded } from "./store-contract/ground.ts";
import { startCuttingProxy, type Cut, type CuttingProxy } from "./support/cutting-proxy.ts";
import { checkLossless } from "./support/lossless.ts";
import { startMachine, type PostgresMachine } from "./support/postgres-machine.ts";
import { makeScratch } from "./support/scratch.ts";
import { createHost, toAppendable, user } from "./support/scripted-host.ts";

const cuts: readonly Cut[] = ["before the server gets it", "after the server has answered", "at once"];

let machine: PostgresMachine;
let proxy: CuttingProxy;
let folder = "";

before(async () => {
  machine = await startMachine();
  proxy = await startCuttingProxy(machine.port);
  folder = makeScratch("outcome");
});
after(async () => {
  await proxy.close();
  await machine.stop();
});

const openThrough = async (schema: string): Promise<Store> =>
  await openPostgres({
    url: `postgres://postgres@127.0.0.1:${proxy.port}/postgres?schema=${schema}`,
    filesDir: join(folder, schema),
    connectionsMax: 2,
    housekeeping: false,
  });

const rowsOf = async (table: string): Promise<number> =>
  Number((await machine.query(`SELECT count(*) AS n FROM ${table}`))[0]?.["n"]);

describe("guarantee 37: what is not idempotent by key is done once, though its commit's answer is lost", () => {
  for (const [at, cut] of cuts.entries()) {
    it(`with the connection cut ${cut}`, async () => {
      const schema = `cut${at}`;
      const store = await openThrough(schema);
      const [talk, other] = [await store.open({ sessionId: "talk" }), await store.open({ sessionId: "other" })];
      const host = createHost("h");
      for (const text of numbered(12, (n) => `message ${n}`)) host.says(user(text));
      /** The table has so many rows more than before, and the answer is that of the one time. */
      const once = async <T>(table: string, more: number, call: () => Promise<T>): Promise<T> => {
        const [rows, before] = [await rowsOf(`${schema}.${table}`), proxy.cuts()];
        proxy.cutNext(cut);
        const answer = await call();
        assert.equal(proxy.cuts(), before + 1, `the commit was cut for ${table}`);
        assert.equal(await rowsOf(`${schema}.${table}`), rows + more, table);
        return answer;
      };
      const appended = await once(
        "messages",
        12,
        async () => await store.append(talk.id, host.entries.map(toAppendable), { turnKey: "first" }),
      );
      assert.deepEqual([appended.messages.length, appended.duplicates, appended.turn], [12, 0, "new"]);
      await once("compactions", 1, async () => await store.recordCompaction(compaction(talk.id)));
      const call = await once("model_usage", 1, async () => await store.beginCall(leafCall(talk.id), unbounded));
      assert.equal(call.kind, "granted");
      const folded = await once("summaries", 1, async () => await foldPlaces(store, talk.id, [0, 5], "folded"));
      const { revision } = (await store.summaries({ ids: [folded] }))[0] ?? assert.fail();
      const rewritten = await once(
        "journal",
        1,
        async () => await store.rewrite({ summary: folded, revision }, summary("rewritten")),
      );
      assert.ok(rewritten.kind === "written");
      const transplanted = await once(
        "summaries",
        1,
        async () => await store.transplant({ source: talk.id, target: other.id }),
      );
      assert.ok(transplanted.kind === "written");
      const { ordinal } = await itemOf(store, talk.id, folded);
      const dissolved = await once(
        "summaries",
        0,
        async () => await store.dissolve({ conversation: talk.id, summary: folded, ordinal }),
      );
      assert.ok(dissolved.kind === "written");
      const undone = await once("summaries", 0, async () => await store.undo(dissolved.change));
      assert.equal(undone.kind, "undone");
      assert.equal((await itemOf(store, talk.id, folded)).kind, "summary");
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }], { wholeFile: false });
      await store.close();
    });
  }

  it("and is unavailable, with what to do, while the server cannot say", async () => {
    await (await openThrough("silent")).close();
    const pool = await openPool(readAddress(`postgres://postgres@127.0.0.1:${proxy.port}/postgres?schema=silent`), 1);
    const { write, read } = createRunner({ pool, schema: "silent", lockTimeoutMs: 5_000, settleMs: 200 });
    const add = async (name: string): Promise<unknown> =>
      await write("ledger", function* () {
        yield sql`INSERT INTO embedders (name, embedded, at) VALUES (${name}, 1, 'now')`;
      });
    const cutAndDown = (async () => {
      const before = proxy.cuts();
      proxy.cutNext("after the server has answered");
      while (proxy.cuts() === before) await new Promise((done) => setImmediate(done));
      proxy.setDown(true);
    })();
    await assert.rejects(
      add("one"),
      (error) => error instanceof LcmError && error.code === "unavailable" && /same call again/.test(error.hint ?? ""),
    );
    await cutAndDown;
    proxy.setDown(false);
    await add("two");
    assert.ok((await read(() => count(sql`SELECT count(*) FROM embedders WHERE name = 'two'`))) === 1);
    await pool.end();
  });
});

describe("how a transaction ended", () => {
  const markOn = async (end: "COMMIT" | "ROLLBACK"): Promise<Mark> => {
    const pool = await openPool(readAddress(machine.url), 1);
    const client = await pool.connect();
    await client.query("BEGIN");
    const { rows } = await client.query(numberStatement);
    await client.query(end);
    client.release();
    await pool.end();
    const { transaction, timeline, recovery } = rows[0] ?? {};
    return { transaction: String(transaction), timeline: String(timeline), recovery: String(recovery) };
  };

  it("is known on the server that ran it, after a restart too", async () => {
    const marks = [await markOn("COMMIT"), await markOn("ROLLBACK")];
    const pool = await openPool(readAddress(machine.url), 1);
    const ended = async (): Promise<unknown> =>
      await Promise.all(marks.map(async (mark) => await settle(pool, mark, 60_000)));
    assert.deepEqual(await ended(), ["committed", "aborted"]);
    await machine.stop();
    await machine.start();
    assert.deepEqual(await ended(), ["committed", "aborted"]);
    await pool.end();
  });

  it("is not taken from another transaction that got its number after a crash", async () => {
    const mark = await markOn("ROLLBACK");
    await machine.crash();
    await machine.start();
    const pool = await openPool(readAddress(machine.url), 1);
    assert.equal(await settle(pool, mark, 60_000), "aborted", "its number has not been given again");
    for (let last = 0n; last < BigInt(mark.transaction);)
      last = BigInt(String((await machine.query("SELECT pg_current_xact_id()::text AS t"))[0]?.["t"]));
    assert.equal(await settle(pool, mark, 60_000), "unknown", "another one has it, and was committed");
    await pool.end();
  });

  it("is not guessed on a server that took over, where its number may be another's", async () => {
    const mark = await markOn("COMMIT");
    const replica = await machine.replica("heir");
    replica.promote();
    while ((await replica.query("SELECT pg_is_in_recovery() AS is"))[0]?.["is"] !== 0);
    const pool = await openPool(readAddress(replica.url), 1);
    assert.equal(await settle(pool, mark, 60_000), "unknown");
    await pool.end();
    await replica.stop();
  });
});
