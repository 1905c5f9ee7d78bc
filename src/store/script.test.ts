import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { createRunner } from "./sqlite/runner.ts";
import { all, atOnce, Apart, count, sql, whetherInTurn, type Asked, type Script } from "./script.ts";

const numbers = (upTo: number): Script<readonly unknown[]> =>
  all(
    sql`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${upTo}) SELECT i FROM n`,
    (row) => row["i"],
  );
const one = (value: number): Script<number> => count(sql`SELECT ${value} AS value`);

/** Asks so many times, one after the other. */
function* inTurn(times: number): Script<number> {
  let sum = 0;
  for (let at = 1; at <= times; at++) sum += yield* one(at);
  return sum;
}

function* asList(): Script<readonly unknown[]> {
  return (yield [sql`SELECT ${"a"} AS word`, sql`SELECT ${"b"} AS word`]).map(({ word }) => word);
}

/** How many steps a script takes, and what it returns; with a step that costs nothing, as in SQLite, or a round trip. */
function run<T>(script: Script<T>, isInTurn = false): { readonly value: T; readonly steps: number } {
  const runner = createRunner(new DatabaseSync(":memory:"));
  let steps = 0;
  const counted = function* (): Script<T> {
    let step = script.next();
    while (step.done !== true) {
      const asked: Asked = step.value;
      if (asked === whetherInTurn && !isInTurn) {
        step = script.next([]);
        continue;
      }
      if (asked !== whetherInTurn) steps += 1;
      step = script.next(yield asked);
    }
    return step.value;
  };
  return { value: runner.run(counted()), steps };
}

describe("scripts side by side", () => {
  it("each gets the rows of what it asked itself", () => {
    const { value } = run(atOnce([numbers(3), one(7), asList(), numbers(1)]));
    assert.deepEqual(value, [[1, 2, 3], 7, ["a", "b"], [1]]);
  });

  it("take as many steps as the longest", () => {
    assert.deepEqual(run(atOnce([inTurn(3), inTurn(5), inTurn(1)])), { value: [6, 15, 1], steps: 5 });
  });

  it("run one after another where a step costs nothing", () => {
    assert.deepEqual(run(atOnce([inTurn(3), atOnce([one(5), one(6)])]), true), { value: [6, [5, 6]], steps: 5 });
  });

  it("may run others side by side themselves", () => {
    const nested = (): Script<readonly unknown[]> => atOnce([inTurn(2), atOnce([numbers(2), one(4)])]);
    assert.deepEqual(run(atOnce([nested(), one(9)])), { value: [[3, [[1, 2], 4]], 9], steps: 2 });
  });

  it("one that asks for nothing in between does not wait for the others", () => {
    const idle = function* (): Script<number> {
      yield [];
      return yield* one(1);
    };
    assert.deepEqual(run(atOnce([idle(), inTurn(1)])), { value: [1, 1], steps: 1 });
  });

  it("none of them asks anything", () => {
    const done = function* (): Script<string> {
      yield [];
      return "done";
    };
    assert.deepEqual(run(atOnce([done(), done()])), { value: ["done", "done"], steps: 0 });
    assert.deepEqual(run(atOnce([])), { value: [], steps: 0 });
  });

  it("what one of them throws ends all", () => {
    const failing = function* (): Script<number> {
      yield* one(1);
      throw new Error("broken");
    };
    assert.throws(() => run(atOnce([failing(), inTurn(3)])), /broken/);
  });

  it("asks for its statements apart only if there are several scripts", () => {
    const asked = (scripts: readonly Script<number>[]): unknown => {
      const script = atOnce(scripts);
      assert.equal(script.next([]).value, whetherInTurn);
      return script.next([]).value;
    };
    assert.ok(asked([one(1), one(2)]) instanceof Apart);
    assert.ok(!(asked([one(1)]) instanceof Apart));
  });
});
