import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { after, describe, it } from "node:test";
import { hashOf, rowsOf, tamper } from "../../../test/support/older-database.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { identify, kindOf } from "./file-kind.ts";
import { createSchema, migrate } from "./migrate.ts";
import { inTransaction } from "./runner.ts";
import { tables } from "./schema.ts";

const scratch = makeScratch("migrate");
after(() => rmSync(scratch, { recursive: true, force: true }));
const made = (work: (db: DatabaseSync) => void): string =>
  tamper(join(mkdtempSync(join(scratch, "f-")), "lcm.db"), work);

describe("creating and migrating the schema", () => {
  it("creates the whole schema in an empty file and stamps its version", () => {
    const path = made((db) => migrate(db, "lcm.db"));
    assert.equal(identify(path), "current");
    const names = new Set(rowsOf(path, "SELECT name FROM sqlite_schema").map((row) => row["name"]));
    for (const table of Object.keys(tables)) assert.ok(names.has(table), table);
  });

  it("does nothing the second time, or if another process was first", () => {
    const path = made((db) => migrate(db, "lcm.db"));
    const before = hashOf(path);
    tamper(path, (db) => migrate(db, "lcm.db"));
    assert.equal(hashOf(path), before);
  });

  it("guarantee 11: changes nothing in a file of an unknown schema version", () => {
    const path = made((db) => {
      createSchema(db);
      db.exec("PRAGMA user_version = 0");
    });
    const before = hashOf(path);
    assert.equal(identify(path), "outdated");
    tamper(path, (db) => assert.throws(() => migrate(db, path), { code: "corrupt", message: /schema 0/ }));
    assert.equal(hashOf(path), before);
  });

  it("rolls everything back if a step fails", () => {
    const path = made((db) => {
      assert.throws(() =>
        inTransaction(db, () => {
          createSchema(db);
          throw new Error("in the middle");
        }),
      );
      assert.equal(kindOf(db, "lcm.db"), "empty");
      assert.equal(db.isTransaction, false);
    });
    assert.equal(identify(path), "empty");
  });
});
