/**
 * Runs the store contract on tables that are partitioned by conversation. The server then demands the conversation in
 * every unique key, as a distributed database does.
 */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openPostgres } from "../src/store/postgres/store.ts";
import { postgres } from "./store-contract/postgres.ts";
import { testStore } from "./store-contract/suite.ts";
import { startMachine, type PostgresMachine } from "./support/postgres-machine.ts";
import { makeScratch } from "./support/scratch.ts";

let machine: PostgresMachine;
before(async () => {
  machine = await startMachine({ max_locks_per_transaction: "512" });
});
after(async () => {
  await subject.close();
  await machine.stop();
});

const subject = postgres(() => machine.url, "&partitions=2");

describe("tables partitioned by conversation", () => {
  it("are all of those with a conversation's rows, and its rows are in one partition each", async () => {
    const url = `${machine.url}?schema=divided&partitions=4`;
    const store = await openPostgres({ url, filesDir: makeScratch("divided") });
    for (let n = 0; n < 20; n++) await store.open({ sessionId: `s${n}` });
    const kinds = await machine.query(`SELECT c.relname AS name, c.relkind AS kind,
      EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'conversation_id') AS has
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'divided' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`);
    const plain = kinds.filter(({ kind, has }) => kind === "r" && has === 1).map(({ name }) => name);
    assert.deepEqual(plain, ["journal", "model_usage"], "which may belong to no conversation");
    assert.ok(kinds.filter(({ kind }) => kind === "p").length > 15);
    const [used] = await machine.query("SELECT count(DISTINCT tableoid) AS n FROM divided.conversations");
    assert.equal(used?.["n"], 4);
    assert.ok((await store.status()).bytes > 0);
    await store.close();
  });
});

testStore("PostgreSQL with partitions", subject);
