/** Opening a database written by the commit before schema 5 loses nothing. */

import assert from "node:assert/strict";
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { contentsOf } from "../../../../test/support/older-database.ts";
import { makeScratch } from "../../../../test/support/scratch.ts";
import { openSqlite } from "../store.ts";

const fixture = fileURLToPath(new URL("../../../../test/fixtures/lcm-schema-4.db", import.meta.url));
const scratch = makeScratch("version-5");
after(() => rmSync(scratch, { recursive: true, force: true }));

describe("upgrading a database of schema 4", () => {
  it("touches no row", async () => {
    const path = join(scratch, "rows.db");
    copyFileSync(fixture, path);
    const before = contentsOf(path);
    const store = await openSqlite({ path, housekeeping: false });
    await store.close();
    assert.deepEqual(contentsOf(path, before), before);
  });

  it("makes the tables and indexes that a new database has", async () => {
    const [upgraded, fresh] = [join(scratch, "upgraded.db"), join(scratch, "fresh.db")];
    copyFileSync(fixture, upgraded);
    for (const path of [upgraded, fresh]) await (await openSqlite({ path, housekeeping: false })).close();
    const namesIn = (path: string): readonly unknown[] => {
      using db = new DatabaseSync(path, { readOnly: true });
      const rows = db
        .prepare("SELECT type, name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2")
        .all();
      return rows.map(({ type, name }) => `${String(type)} ${String(name)}`);
    };
    assert.deepEqual(namesIn(upgraded), namesIn(fresh));
  });
});
