/** A terminal of 50 columns: no command prints a line that the terminal would break inside a word. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { widthOf } from "../../src/format/width.ts";
import { makeDemoDatabase } from "../support/demo-database.ts";
import { createFolder, lcm } from "./program.ts";

const columns = 50;
const state = createFolder();
const place = { state, env: { COLUMNS: String(columns), LCM_DATABASE_PATH: join(state, "demo.db") } };

before(async () => {
  await makeDemoDatabase(join(state, "demo.db"));
});

describe("at 50 columns", () => {
  for (const words of [
    "status",
    "conversations",
    "dag 1",
    "context 1",
    "messages 1 --limit 5",
    "describe msg_1-20",
    "grep passport --limit 2",
    "compact 1 --force",
    "prune 1",
    "restore",
    "history",
  ]) {
    it(`no line of \`lcm ${words}\` is wider, unless it is one word`, () => {
      const { stdout, stderr, status } = lcm(place, ...words.split(" "));
      assert.equal(status, 0, stderr);
      const wide = `${stdout}${stderr}`.split("\n").filter((line) => widthOf(line) > columns && /\S\s+\S/.test(line));
      assert.deepEqual(wide, []);
    });
  }
});
