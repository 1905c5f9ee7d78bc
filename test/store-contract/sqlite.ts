/** SQLite as a store under test: how its files are read past the port, and restored. */

import { restore } from "../../src/store/sqlite/backups/restore.ts";
import { connect } from "../../src/store/sqlite/connect.ts";
import { retryWhileBusy } from "../../src/store/sqlite/errors.ts";
import { locationOf } from "../../src/store/sqlite/location.ts";
import { createRunner } from "../../src/store/sqlite/runner.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { isOnDisk, type StoreUnderTest } from "./ground.ts";

export const sqlite: StoreUnderTest = {
  open: async (path) => await openSqlite({ path }),
  async raw(path, script) {
    const db = connect(path, false);
    const runner = createRunner(db);
    try {
      db.exec("PRAGMA foreign_keys = OFF");
      // The store may be indexing just now, in its own thread.
      return await retryWhileBusy(60_000, () => runner.atomically("BEGIN IMMEDIATE", script()));
    } finally {
      runner.forgetStatements();
      db.close();
    }
  },
  isKept: async (folder, word) => isOnDisk(folder, word),
  shownPath: (path) => path,
  databaseFile: {
    async restore(from, path) {
      await restore(from, locationOf(path), { now: "2026-02-17T07:37:00.000Z" });
    },
  },
};
