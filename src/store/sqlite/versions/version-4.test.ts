/** Opening a database written by the commit before schema 4 loses nothing, and prompts get back what was folded too far. */

import assert from "node:assert/strict";
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { contentsOf } from "../../../../test/support/older-database.ts";
import { makeScratch } from "../../../../test/support/scratch.ts";
import { createLcm } from "../../../core/lcm.ts";
import type { Timestamp } from "../../../core/base/time.ts";
import type { ConversationId } from "../../../core/model/types.ts";
import { openSqlite } from "../store.ts";

const fixture = fileURLToPath(new URL("../../../../test/fixtures/lcm-schema-3.db", import.meta.url));
const scratch = makeScratch("version-4");
after(() => rmSync(scratch, { recursive: true, force: true }));

const clock = { now: (): Timestamp => "2026-11-18T00:00:00.000Z" as Timestamp };
const id = 1 as ConversationId;

describe("upgrading a database of schema 3", () => {
  it("touches no row; its compactions were asked for by nobody", async () => {
    const path = join(scratch, "rows.db");
    copyFileSync(fixture, path);
    const before = contentsOf(path);
    const store = await openSqlite({ path, housekeeping: false });
    const compactions = await store.compactions(id, 10);
    await store.close();
    assert.deepEqual(
      compactions.map(({ mode, outcome, asked }) => [mode, outcome, asked]),
      [["sweep", "settled", false]],
    );
    assert.deepEqual(contentsOf(path, before), before);
  });

  it("shows by its messages what a sweep folded although there is room", async () => {
    const path = join(scratch, "room.db");
    copyFileSync(fixture, path);
    const lcm = createLcm({ store: await openSqlite({ path, housekeeping: false }), clock });
    const { report } = await lcm.assemble(id, { budget: 128_000 });
    const totals = (await lcm.store.conversation(id))?.totals;
    await lcm.close();
    assert.ok(totals !== undefined && totals.contextMessages < totals.messages / 4);
    assert.equal(report.older.items + report.tail.items, totals.messages);
  });
});
