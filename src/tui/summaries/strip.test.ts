import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createPaint } from "../../format/paint.ts";
import { drawAxis, drawStrip, stripHeight, stripOf } from "./strip.ts";
import type { StripCursor, StripItem } from "./strip.ts";
import { msToTimestamp } from "../../core/base/time.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { widthOf } from "../../format/width.ts";

const hour = (hours: number): Timestamp => msToTimestamp(Date.UTC(2026, 0, 1) + hours * 3_600_000);
const paint = createPaint(false);

const drawn = (stretches: readonly StripItem[], lastAt: number, spot: StripCursor | null = null): readonly string[] => {
  const strip = stripOf(stretches, hour(lastAt));
  assert.ok(strip !== null);
  return drawStrip(strip, spot, 25, paint);
};

describe("the strip of depth over time", () => {
  it("shows each item at its depth, its sources below, and the fresh tail", () => {
    const context: readonly StripItem[] = [
      { depth: 2, from: hour(0) },
      { depth: 1, from: hour(10) },
      { depth: 0, from: hour(15) },
      { depth: -1, from: hour(18) },
      { depth: -1, from: hour(19), isTail: true },
    ];
    assert.deepEqual(drawn(context, 20), [
      " d2 ██████████          ",
      " d1 ░░░░░░░░░░█████     ",
      " d0 ░░░░░░░░░░░░░░░███─━",
    ]);
  });

  it("shows the edges between summaries that are wide enough", () => {
    const wide = [0, 10].map((from): StripItem => ({ depth: 0, from: hour(from) }));
    assert.deepEqual(drawn(wide, 20), [" d0 ██████████▐█████████"]);
    const narrow = Array.from({ length: 20 }, (_, from): StripItem => ({ depth: 0, from: hour(from) }));
    assert.deepEqual(drawn(narrow, 20), [" d0 ████████████████████"]);
  });

  it("shows nothing below a carried summary", () => {
    assert.deepEqual(
      drawn(
        [
          { depth: 1, from: hour(0), isHollow: true },
          { depth: 0, from: hour(10) },
        ],
        20,
      ),
      [" d1 ██████████          ", " d0           ██████████"],
    );
  });

  it("marks the selected item by shape", () => {
    assert.deepEqual(drawn([{ depth: 1, from: hour(0) }], 20, { depth: 0, from: hour(5), to: hour(8) }), [
      " d1 ████████████████████",
      " d0 ░░░░░▓▓▓░░░░░░░░░░░░",
    ]);
  });

  it("keeps the fresh tail visible beside the selected item", () => {
    const context: readonly StripItem[] = [
      { depth: 0, from: hour(0) },
      { depth: -1, from: hour(19.9), isTail: true },
    ];
    assert.deepEqual(drawn(context, 20, { depth: 0, from: hour(10), to: hour(19.9) }), [" d0 ██████████▓▓▓▓▓▓▓▓▓━"]);
  });

  it("shows depths beyond the limit in one row", () => {
    const lines = drawn(
      Array.from({ length: 8 }, (_, place): StripItem => ({ depth: 7 - place, from: hour(place) })),
      8,
      { depth: 6, from: hour(1), to: hour(2) },
    );
    assert.equal(lines.length, 5);
    assert.match(lines[0] ?? "", /^ d4\+ *█+▓+/);
  });

  it("exists as soon as there is a message", () => {
    assert.equal(stripOf([], null), null);
    assert.deepEqual(drawn([{ depth: -1, from: hour(0), isTail: true }], 0), [" d0 ━━━━━━━━━━━━━━━━━━━━"]);
  });

  it("is always as wide as its room", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ depth: fc.integer({ min: -1, max: 9 }), at: fc.nat(5_000) }), { minLength: 1 }),
        fc.integer({ min: 6, max: 250 }),
        fc.nat(5_000),
        (items, columns, lastAt) => {
          const stretches = items
            .toSorted((one, other) => one.at - other.at)
            .map(({ depth, at }): StripItem => ({ depth, from: hour(at) }));
          const strip = stripOf(stretches, hour(lastAt));
          assert.ok(strip !== null);
          const lines = drawStrip(strip, { depth: 0, from: hour(lastAt), to: hour(5_000) }, columns, paint);
          assert.equal(lines.length, stripHeight(strip));
          for (const line of lines) assert.equal(widthOf(line), columns - 1);
          assert.ok(widthOf(drawAxis(strip, columns, "UTC", paint)) <= columns);
        },
      ),
    );
  });
});
