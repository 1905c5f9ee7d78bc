/** Kills writers to one database file, and lets two of them write at once. */

import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe } from "node:test";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeScratch } from "../support/scratch.ts";
import { testKills, testTwoWriters, type KilledStore } from "./kills.ts";

const files: KilledStore = {
  withinMs: 120,
  async withDatabase(test) {
    const folder = makeScratch("kill");
    try {
      await test(join(folder, "lcm.db"));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
  open: async (path) => await openSqlite({ path, housekeeping: false }),
  bytes: async (path) => await Promise.resolve(statSync(path).size),
};

describe("guarantee 1: what was acknowledged survives kill -9", () => testKills(files));
describe("guarantee 1: two processes write the same file", () => testTwoWriters(files));
