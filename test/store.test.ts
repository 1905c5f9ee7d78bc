import { dirname, join } from "node:path";
import { restore } from "../src/store/backup.ts";
import { openSqliteWorker } from "../src/store/sqlite-worker.ts";
import { openSqlite } from "../src/store/sqlite.ts";
import { testStore } from "../src/testing/store-contract.ts";

const sqlite = {
  restore: async (from: string, path: string): Promise<void> => {
    await restore(from, path, join(dirname(path), "lcm-files"), "2026-02-17T07:37:00.000Z");
  },
};

testStore("SQLite in this thread", async (path) => await openSqlite({ path }), sqlite);
testStore("SQLite in a thread of its own", async (path) => await openSqliteWorker({ path }), sqlite);
