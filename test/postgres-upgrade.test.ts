/** Two versions of the program beside each other, and an address with several servers. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LcmError } from "../src/core/base/errors.ts";
import type { Store } from "../src/core/model/store.ts";
import { readAddress } from "../src/store/postgres/address.ts";
import { migrate, type Versions } from "../src/store/postgres/migrate.ts";
import { openPool } from "../src/store/postgres/pool.ts";
import { schemaVersion } from "../src/store/postgres/schema.ts";
import { openPostgres } from "../src/store/postgres/store.ts";
import { numbered, refuses } from "./store-contract/ground.ts";
import { freePort } from "./support/free-port.ts";
import { startMachine, type PostgresMachine } from "./support/postgres-machine.ts";
import { makeScratch } from "./support/scratch.ts";
import { createHost, toAppendable, user } from "./support/scripted-host.ts";

let machine: PostgresMachine;
let folder = "";
before(async () => {
  machine = await startMachine();
  folder = makeScratch("upgrade");
});
after(async () => await machine.stop());

const openOn = async (schema: string, url = machine.url): Promise<Store> =>
  await openPostgres({ url: `${url}?schema=${schema}`, filesDir: join(folder, schema), connectionsMax: 2 });

/** A later program: it needs one more column, in a table that every turn reads. */
const later: Versions = {
  current: schemaVersion + 1,
  upgrades: [{ to: schemaVersion + 1, statements: ["ALTER TABLE messages ADD COLUMN mood lcm_text"] }],
};

async function upgradeAs(role: string, schema: string): Promise<void> {
  const address = readAddress(`${machine.url.replace("postgres@", `${role}@`)}?schema=${schema}`);
  const pool = await openPool(address, 1);
  try {
    await migrate(pool, address, { versions: later });
  } finally {
    await pool.end();
  }
}

const versionIn = async (schema: string): Promise<unknown> =>
  (await machine.query(`SELECT version FROM ${schema}.lcm_schema`))[0]?.["version"];

describe("a database that a newer program has upgraded", () => {
  it("is refused by an older one that opens it, and by one that has it open", async () => {
    const open = await openOn("newer");
    const { id } = await open.open({ sessionId: "s" });
    await Promise.all([upgradeAs("postgres", "newer"), upgradeAs("postgres", "newer")]);
    assert.equal(await versionIn("newer"), schemaVersion + 1);
    await refuses("conflict", async () => await openOn("newer"));
    const said = [toAppendable(createHost("h").says(user("said to the older program")))];
    await refuses("conflict", async () => await open.append(id, said));
    await refuses("conflict", async () => await open.messages({ conversation: id }));
    assert.deepEqual(await machine.query("SELECT * FROM newer.messages"), [], "the older program has written nothing");
    await open.close();
  });

  it("answers readers while it is upgraded, even behind one that reads for long", async () => {
    const store = await openOn("read");
    const { id } = await store.open({ sessionId: "s" });
    const host = createHost("h");
    for (const text of numbered(20, (n) => `message ${n}`)) host.says(user(text));
    await store.append(id, host.entries.map(toAppendable));

    const pool = await openPool(readAddress(machine.url), 1);
    const long = await pool.connect();
    await long.query("BEGIN; SELECT count(*) FROM read.messages");
    let isUpgraded = false;
    const upgrading = upgradeAs("postgres", "read").then(() => (isUpgraded = true));
    for (let reads = 0; reads < 20; reads++) {
      assert.equal((await store.messages({ conversation: id })).length, 20);
      await sleep(20);
    }
    assert.equal(isUpgraded, false, "the upgrade waits for the long reader");
    await long.query("COMMIT");
    long.release();
    await upgrading;
    assert.equal((await store.messages({ conversation: id })).length, 20);
    assert.equal(await versionIn("read"), schemaVersion + 1);
    for (const each of [store, { close: async () => await pool.end() }]) await each.close();
  });

  it("is upgraded by the owner of its tables alone; another role learns what to do", async () => {
    await (await openOn("owned")).close();
    await machine.query(`CREATE ROLE clerk LOGIN; SET search_path = owned; SELECT admit_agent('clerk', 'main')`);
    await assert.rejects(
      upgradeAs("clerk", "owned"),
      (error) => error instanceof LcmError && error.code === "denied" && /role that owns/.test(error.hint ?? ""),
    );
    assert.equal(await versionIn("owned"), schemaVersion);
    await upgradeAs("postgres", "owned");
    assert.equal(await versionIn("owned"), schemaVersion + 1);
  });

  it("keeps its rows and its version if a step fails", async () => {
    await (await openOn("broken")).close();
    const address = readAddress(`${machine.url}?schema=broken`);
    const pool = await openPool(address, 1);
    const failing: Versions = {
      current: schemaVersion + 1,
      upgrades: [
        { to: schemaVersion + 1, statements: ["CREATE TABLE half (one int)", "ALTER TABLE nothing ADD two int"] },
      ],
    };
    await assert.rejects(migrate(pool, address, { versions: failing }), /"nothing" does not exist/);
    assert.equal(await versionIn("broken"), schemaVersion);
    assert.deepEqual(await machine.query("SELECT 1 AS n FROM pg_tables WHERE tablename = 'half'"), []);
    await pool.end();
    await (await openOn("broken")).close();
  });
});

describe("an address with several hosts", () => {
  it("is that of the one that is the primary, now and after another has taken over", async () => {
    await (await openOn("several")).close();
    const replica = await machine.replica("second");
    const ports = [await freePort(), replica.port, machine.port];
    const url = `postgres://postgres@${ports.map((port) => `127.0.0.1:${port}`).join()}/postgres`;
    const store = await openOn("several", url);
    const { id } = await store.open({ sessionId: "s" });
    while ((await replica.query("SELECT count(*) AS n FROM several.conversations"))[0]?.["n"] !== 1) await sleep(20);
    await machine.crash();
    await refuses("unavailable", async () => await store.open({ sessionId: "meanwhile" }));
    replica.promote();
    for (;;) {
      const opened = await store.open({ sessionId: "s" }).catch((error: unknown) => {
        assert.ok(error instanceof LcmError && error.code === "unavailable", String(error));
      });
      if (opened !== undefined) {
        assert.equal(opened.id, id);
        break;
      }
    }
    assert.equal((await store.status()).path, `${url}?schema=several`);
    await store.close();
    await replica.stop();
  });

  it("shows all hosts and no password, and says which one of them cannot be read", () => {
    const { connections, shown, schema } = readAddress(
      "postgres://me:quokka@a:1,b:2/db?schema=x&target_session_attrs=read-write&sslmode=require",
    );
    assert.deepEqual(connections, [
      "postgres://me:quokka@a:1/db?sslmode=require",
      "postgres://me:quokka@b:2/db?sslmode=require",
    ]);
    assert.deepEqual([shown, schema], ["postgres://me@a:1,b:2/db?sslmode=require&schema=x", "x"]);
    for (const url of ["postgres://a:1,b:x/db", "postgres://a/db?partitions=none", "postgres://a/db?schema=A-b"])
      assert.throws(
        () => readAddress(url),
        (error) => error instanceof LcmError && error.code === "invalid",
      );
  });
});
