/** Opening a database written by the commit before schema 7 loses nothing, and its prompts are recorded from then on. */

import assert from "node:assert/strict";
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { columnsOf, contentsOf } from "../../../../test/support/older-database.ts";
import { makeScratch } from "../../../../test/support/scratch.ts";
import { createLcm } from "../../../core/lcm.ts";
import { openSqlite, systemNow } from "../store.ts";

const fixture = fileURLToPath(new URL("../../../../test/fixtures/lcm-schema-6.db", import.meta.url));
const scratch = makeScratch("version-7");
after(() => rmSync(scratch, { recursive: true, force: true }));

const copied = (name: string): string => {
  const path = join(scratch, name);
  copyFileSync(fixture, path);
  return path;
};

describe("upgrading a database of schema 6", () => {
  it("touches no row", async () => {
    const path = copied("rows.db");
    const before = contentsOf(path);
    await (await openSqlite({ path, housekeeping: false })).close();
    assert.deepEqual(contentsOf(path, before), before);
  });

  it("adds the tables that a new database has", async () => {
    const [upgraded, fresh] = [copied("upgraded.db"), join(scratch, "fresh.db")];
    for (const path of [upgraded, fresh]) await (await openSqlite({ path, housekeeping: false })).close();
    for (const table of ["prompts", "prompt_heads"])
      assert.deepEqual(columnsOf(upgraded, table), columnsOf(fresh, table));
  });

  it("records its prompts and rebuilds them", async () => {
    const store = await openSqlite({ path: copied("prompts.db"), housekeeping: false });
    const lcm = createLcm({ store, clock: { now: systemNow } });
    const conversation = await lcm.find("thursday");
    await lcm.recordPrompt(await lcm.assemble(conversation.id));
    const [record] = await lcm.prompts(conversation.id);
    assert.ok(record !== undefined);
    assert.equal((await lcm.rebuild(record)).isExact, true);
    await lcm.close();
  });
});
