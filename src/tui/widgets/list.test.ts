import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { listKeys, moved, scrolled, seen, wheeled } from "./list.ts";

const isSound = ({ cursor, top }: ReturnType<typeof seen>, count: number, rows: number): void => {
  assert.ok(cursor >= 0 && cursor <= Math.max(0, count - 1), `the cursor ${cursor} is on one of ${count} rows`);
  assert.ok(top >= 0 && top <= cursor && cursor < top + rows, `${cursor} is seen from ${top} in ${rows} rows`);
};

describe("a list", () => {
  it("always keeps its cursor on an existing, visible row", () => {
    const step = fc.oneof(
      fc.constantFrom(...listKeys.map(({ action }) => ({ kind: "key" as const, action }))),
      fc.integer({ min: -9, max: 9 }).map((lines) => ({ kind: "wheel" as const, lines })),
      fc.record({ kind: fc.constant("resized" as const), count: fc.nat(50), rows: fc.integer({ min: 1, max: 12 }) }),
    );
    fc.assert(
      fc.property(fc.nat(50), fc.integer({ min: 1, max: 12 }), fc.array(step), (firstCount, firstRows, steps) => {
        let [count, rows, list] = [firstCount, firstRows, seen({ cursor: 0, top: 0 }, firstCount, firstRows)];
        for (const each of steps) {
          if (each.kind === "resized") [count, rows] = [each.count, each.rows];
          list =
            each.kind === "key"
              ? moved(list, each.action, count, rows)
              : each.kind === "wheel"
                ? wheeled(list, each.lines, count, rows)
                : seen(list, count, rows);
          isSound(list, count, rows);
        }
      }),
    );
  });

  it("fills the room if there are enough rows", () => {
    fc.assert(
      fc.property(fc.nat(50), fc.nat(60), fc.nat(60), fc.integer({ min: 1, max: 12 }), (count, cursor, top, rows) => {
        const list = seen({ cursor, top }, count, rows);
        assert.ok(list.top + rows <= count || list.top === 0, `${list.top} of ${count} in ${rows}`);
      }),
    );
  });

  it("moves by a row, by a page less one row, and to both ends", () => {
    const at = seen({ cursor: 20, top: 15 }, 100, 10);
    assert.equal(moved(at, "down", 100, 10).cursor, 21);
    assert.equal(moved(at, "up", 100, 10).cursor, 19);
    assert.equal(moved(at, "pageDown", 100, 10).cursor, 29);
    assert.equal(moved(at, "pageUp", 100, 10).cursor, 11);
    assert.deepEqual(moved(at, "first", 100, 10), { cursor: 0, top: 0 });
    assert.deepEqual(moved(at, "last", 100, 10), { cursor: 99, top: 90 });
  });
});

describe("a text", () => {
  it("scrolls between its first and its last line", () => {
    assert.equal(scrolled(0, -3, 100, 10), 0);
    assert.equal(scrolled(5, 3, 100, 10), 8);
    assert.equal(scrolled(88, 30, 100, 10), 90);
    assert.equal(scrolled(0, 3, 5, 10), 0);
  });
});
