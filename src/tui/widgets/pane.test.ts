import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { linesOf, percent, rowsFrom, scrolledBy, startOfText } from "./pane.ts";
import { widthOf } from "../../format/width.ts";

const everything = { columns: 20, rows: 10_000 };

describe("a text in a pane", () => {
  it("scrolls without skipping or repeating a row", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "grapheme", maxLength: 80 }), { minLength: 1, maxLength: 12 }),
        fc.integer({ min: 1, max: 7 }),
        (given, step) => {
          const lines = linesOf(given.join("\n"));
          const all = rowsFrom(lines, startOfText, everything);
          const room = { columns: 20, rows: 4 };
          let top = startOfText;
          for (let at = 0; at + room.rows <= all.length; at += step) {
            assert.deepEqual(rowsFrom(lines, top, room), all.slice(at, at + room.rows));
            assert.ok(scrolledBy(lines, scrolledBy(lines, top, 1, room), -1, room).line <= top.line);
            top = scrolledBy(lines, top, step, room);
          }
          const last = scrolledBy(lines, top, "last", room);
          assert.deepEqual(rowsFrom(lines, last, room), all.slice(-room.rows));
          assert.deepEqual(
            scrolledBy(lines, last, 100, room),
            last,
            "it ends where its last row is the last that is seen",
          );
          assert.deepEqual(scrolledBy(lines, last, -all.length, room), startOfText);
        },
      ),
    );
  });

  it("has no row wider than the pane, and splits no character", () => {
    const lines = linesOf("船🚢".repeat(3_000));
    assert.ok(lines.length > 8 && lines.every((line) => line.length <= 1_000 && line.isWellFormed()));
    for (const row of rowsFrom(lines, startOfText, { columns: 21, rows: 200 })) assert.ok(widthOf(row) <= 21);
  });

  it("is wrapped only where it is visible", () => {
    const lines = new Proxy(linesOf("x\n".repeat(100_000)), {
      get(target, name) {
        if (typeof name === "string" && /^\d+$/.test(name)) looked.add(name);
        return Reflect.get(target, name);
      },
    });
    const looked = new Set<string>();
    const room = { columns: 80, rows: 20 };
    rowsFrom(lines, scrolledBy(lines, { line: 50_000, row: 0 }, 1, room), room);
    assert.ok(looked.size < 100, `${looked.size} lines were looked at`);
  });

  it("cannot move the terminal's cursor", () => {
    assert.deepEqual(linesOf("a\u001b[2Jb\tc\r\nd"), ["a␛[2Jb    c", "d"]);
  });

  it("shows the position if not everything is visible", () => {
    const room = { columns: 80, rows: 10 };
    assert.equal(percent(10, startOfText, room), "");
    assert.equal(percent(100, { line: 40, row: 0 }, room), "50%");
    assert.equal(percent(100, { line: 95, row: 0 }, room), "100%");
  });
});
