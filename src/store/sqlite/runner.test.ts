import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { count, int, sql } from "../script.ts";
import type { Script } from "../script.ts";
import { createQueue, createRunner } from "./runner.ts";

describe("a script that yields a list of statements", () => {
  const db = new DatabaseSync(":memory:");
  db.exec("CREATE TABLE t (n UNIQUE)");
  const runner = createRunner(db);
  const insert = (n: number) => sql`INSERT INTO t VALUES (${n})`;

  it("has them run in order and receives all their rows", () => {
    function* script(): Script<readonly number[]> {
      const rows = yield [insert(1), sql`SELECT n FROM t`, insert(2), sql`SELECT n FROM t ORDER BY n`];
      return rows.map((row) => int(row, "n"));
    }
    assert.deepEqual(runner.atomically("BEGIN", script()), [1, 1, 2]);
  });

  it("is rolled back as a whole if one of them fails", () => {
    function* script(): Script<void> {
      yield [insert(3), insert(1)];
    }
    assert.throws(() => runner.atomically("BEGIN IMMEDIATE", script()), /UNIQUE/);
    assert.equal(db.prepare("SELECT count(*) AS rows FROM t").get()?.["rows"], 2);
  });
});

describe("a long loop of calls", () => {
  it("lets timers and signals through", async () => {
    const queue = createQueue(createRunner(new DatabaseSync(":memory:")), 1_000, () => undefined);
    const fired = AbortSignal.timeout(1);
    let calls = 0;
    while (!fired.aborted && calls < 1_000_000) calls += await queue.read(() => count(sql`SELECT 1`));
    assert.ok(fired.aborted, `${calls} calls, and no timer had its turn`);
  });
});
