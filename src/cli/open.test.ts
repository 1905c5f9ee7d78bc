/** The terminal UI reads a database of an earlier version, which it upgrades first. */

import assert from "node:assert/strict";
import { copyFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { makeScratch } from "../../test/support/scratch.ts";
import { schemaVersion as currentVersion } from "../store/sqlite/schema.ts";
import { createDatabase } from "./open.ts";

const fixture = fileURLToPath(new URL("../../test/fixtures/lcm-schema-1.db", import.meta.url));
const scratch = makeScratch("open");
after(() => rmSync(scratch, { recursive: true, force: true }));

describe("opening a database to look at it", () => {
  it("upgrades and indexes an outdated one first", async () => {
    const path = join(scratch, "lcm.db");
    copyFileSync(fixture, path);
    const lcm = await createDatabase(path).open("look");
    const { store } = lcm;
    const { schemaVersion, unindexed } = await store.status();
    assert.deepEqual([schemaVersion, unindexed], [currentVersion, 0]);
    const { hits } = await store.search({
      pattern: "quokka",
      mode: "full_text",
      scope: "both",
      sort: "recency",
      limit: 9,
    });
    assert.ok(hits.length > 0);
    await lcm.close();
  });
});
