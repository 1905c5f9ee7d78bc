/** Opening a database written by the commit before schema 6 loses nothing, and its sessions can be told their folder. */

import assert from "node:assert/strict";
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { columnsOf, contentsOf } from "../../../../test/support/older-database.ts";
import { makeScratch } from "../../../../test/support/scratch.ts";
import { openSqlite } from "../store.ts";

const fixture = fileURLToPath(new URL("../../../../test/fixtures/lcm-schema-5.db", import.meta.url));
const scratch = makeScratch("version-6");
after(() => rmSync(scratch, { recursive: true, force: true }));

const copied = (name: string): string => {
  const path = join(scratch, name);
  copyFileSync(fixture, path);
  return path;
};

describe("upgrading a database of schema 5", () => {
  it("touches no row", async () => {
    const path = copied("rows.db");
    const before = contentsOf(path);
    await (await openSqlite({ path, housekeeping: false })).close();
    assert.deepEqual(contentsOf(path, before), before);
  });

  it("gives conversations the columns that a new database has, in the same order", async () => {
    const [upgraded, fresh] = [copied("upgraded.db"), join(scratch, "fresh.db")];
    for (const path of [upgraded, fresh]) await (await openSqlite({ path, housekeeping: false })).close();
    assert.deepEqual(columnsOf(upgraded, "conversations"), columnsOf(fresh, "conversations"));
  });

  it("learns the folder when a session comes back", async () => {
    const store = await openSqlite({ path: copied("folder.db"), housekeeping: false });
    const session = { sessionId: "tuesday", sessionKey: "agent:main:cli" };
    const before = await store.open(session);
    const now = await store.open({ ...session, folder: "/home/ann/pier" });
    await store.close();
    assert.equal(before.folder, null);
    assert.deepEqual(now, { ...before, folder: "/home/ann/pier" });
  });
});
