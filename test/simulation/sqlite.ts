/** A database file as the store of a simulated life. */

import assert from "node:assert/strict";
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { connect } from "../../src/store/sqlite/connect.ts";
import { leftovers } from "../../src/store/sqlite/leftovers.ts";
import { createRunner } from "../../src/store/sqlite/runner.ts";
import { createSearchIndex } from "../../src/store/sqlite/search-index.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import type { LifeDatabase, LifeDeps, SimulatedStore } from "./database.ts";
import { pictureOf } from "./interruption.ts";

export const sqlite: SimulatedStore = {
  testFile: "test/simulation/simulation.test.ts",
  begin: async (folder, deps) => await Promise.resolve(lifeOf(folder, deps)),
};

function lifeOf(folder: string, deps: LifeDeps): LifeDatabase {
  let path = join(folder, "0.db");
  let lives = 0;
  const connected = <T>(work: (db: ReturnType<typeof connect>) => T): T => {
    const db = connect(path, false);
    try {
      return work(db);
    } finally {
      db.close();
    }
  };
  return {
    leftovers,
    searchIndex: createSearchIndex(),
    open: async () => await openSqlite({ path, ...deps, housekeeping: false, filesDir: join(folder, "files") }),
    /** Copies the files as they are; nothing closes cleanly. */
    async crash() {
      const left = join(folder, `${++lives}.db`);
      for (const suffix of ["", "-wal"]) if (existsSync(path + suffix)) copyFileSync(path + suffix, left + suffix);
      path = left;
      return await Promise.resolve(`left ${lives}.db`);
    },
    picture: async () => await Promise.resolve(connected(pictureOf)),
    async breakOff(script) {
      await Promise.resolve();
      connected((db) => assert.throws(() => createRunner(db).atomically("BEGIN IMMEDIATE", script()), /broken off/));
    },
    end: async () => await Promise.resolve(),
  };
}
