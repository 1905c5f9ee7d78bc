import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { JsonObject } from "../../core/base/json.ts";
import { fillOpenCode } from "../../../test/support/opencode-database.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { openSqlite } from "../sqlite/store.ts";
import { openOpenCode } from "./opencode.ts";

const scratch = makeScratch("opencode");
const document = (name: string) =>
  JSON.parse(
    readFileSync(new URL(`../../../test/fixtures/hosts/opencode/${name}.json`, import.meta.url), "utf8"),
  ) as JsonObject;

describe("OpenCode's database", () => {
  it("gives each session in the form in which the host exports it", () => {
    const path = join(scratch, "opencode.db");
    const documents = [document("before"), document("child")];
    fillOpenCode(path, ...documents);
    const db = openOpenCode(path) ?? assert.fail();
    const read = db.sessions().map(({ id }) => {
      const [header, ...messages] = db.rows(id);
      return { ...header, messages };
    });
    assert.deepEqual(read, documents);
    db.close();
  });

  it("has a stamp for each session that changes with it", () => {
    const path = join(scratch, "stamps.db");
    const stamps = (): readonly string[] => {
      const db = openOpenCode(path) ?? assert.fail();
      const found = db.sessions().map(({ stamp }) => stamp);
      db.close();
      return found;
    };
    fillOpenCode(path, document("before"), document("child"));
    const [before, child] = stamps();
    fillOpenCode(path, document("after"));
    const after = stamps();
    assert.ok(after.includes(child ?? "") && !after.includes(before ?? ""));
  });

  it("is told from any other", async () => {
    const path = join(scratch, "ours.db");
    await (await openSqlite({ path })).close();
    assert.equal(openOpenCode(path), null);
    const damaged = join(scratch, "damaged.db");
    writeFileSync(damaged, "SQLite format 3\0 and then nothing");
    assert.equal(openOpenCode(damaged), null);
  });
});
