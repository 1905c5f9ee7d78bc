/** One can go back from an upgrade to the database as it was. */

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { contentsOf } from "../../../../test/support/older-database.ts";
import { makeScratch } from "../../../../test/support/scratch.ts";
import { identify } from "../file-kind.ts";
import { openSqlite } from "../store.ts";
import { restore } from "./restore.ts";

const fixtures = fileURLToPath(new URL("../../../../test/fixtures/", import.meta.url));
const scratch = makeScratch("before-upgrade");
after(() => rmSync(scratch, { recursive: true, force: true }));

function placeOf(name: string, schema: number): { readonly folder: string; readonly path: string } {
  const folder = join(scratch, name);
  mkdirSync(folder);
  const path = join(folder, "lcm.db");
  copyFileSync(join(fixtures, `lcm-schema-${schema}.db`), path);
  return { folder, path };
}

const copiesIn = (folder: string): readonly string[] =>
  readdirSync(folder).filter((name) => name.startsWith("lcm.db.backup-"));
const open = async (path: string): Promise<void> => {
  await (await openSqlite({ path, housekeeping: false })).close();
};

describe("an upgrade of the schema", () => {
  for (const schema of [1, 2, 3, 4, 5, 6]) {
    it(`leaves a private copy of a database of schema ${schema}, which can be restored and upgraded again`, async () => {
      const { folder, path } = placeOf(`schema-${schema}`, schema);
      const before = contentsOf(path);
      await open(path);
      const [copy = "", ...others] = copiesIn(folder);
      assert.deepEqual(others, []);
      assert.match(copy, new RegExp(`-schema${schema}$`));
      const from = join(folder, copy);
      assert.equal(statSync(from).mode & 0o077, 0);
      assert.deepEqual(contentsOf(from, before), before);
      assert.equal(identify(from), "outdated");
      await restore(
        from,
        { path, filesDir: join(folder, "lcm-files") },
        {
          now: "2026-11-18T12:00:00.000Z",
          isPartialAllowed: true, // The fixtures come without stored files.
        },
      );
      assert.deepEqual(contentsOf(path, before), before);
      assert.equal(identify(path), "outdated");
      await open(path);
      assert.equal(identify(path), "current");
    });
  }

  it("keeps the copy of one upgrade only, and makes none where there is nothing to upgrade", async () => {
    const { folder, path } = placeOf("again", 5);
    await open(path);
    await open(path);
    assert.equal(copiesIn(folder).length, 1);
    copyFileSync(join(fixtures, "lcm-schema-6.db"), path);
    for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
    await open(path);
    assert.match(copiesIn(folder).join(), /^lcm\.db\.backup-\d{8}T\d{6}Z-schema6$/);
  });

  it("leaves the database as it is if no copy can be made", async () => {
    const { folder } = placeOf("denied", 6);
    const path = join(folder, `${"long".repeat(58)}.db`); // The name of its copy would be too long.
    renameSync(join(folder, "lcm.db"), path);
    await assert.rejects(open(path), /name too long/);
    assert.equal(identify(path), "outdated");
  });
});
