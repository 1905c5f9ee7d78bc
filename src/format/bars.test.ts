import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AssemblyReport } from "../core/assembly/assemble.ts";
import { bar, cellsOf, comparison, legend, promptBar } from "./bars.ts";
import { createPaint } from "./paint.ts";
import { widthOf } from "./width.ts";

const paint = createPaint(false);
const none = { items: 0, tokens: 0 };

const report: AssemblyReport = {
  budget: 10_000,
  tokens: 7_500,
  outcome: "whole",
  summaries: { items: 4, tokens: 3_500 },
  finer: { items: 0, tokens: 0 },
  older: { items: 9, tokens: 1_000 },
  tail: { items: 32, tokens: 3_000 },
  notes: none,
  evicted: none,
  leftOut: none,
  standIns: 0,
  loose: 0,
  shortened: 0,
  depths: [
    { depth: 0, items: 3, tokens: 2_500 },
    { depth: 2, items: 1, tokens: 1_000 },
  ],
  standing: { items: 0, tokens: 0, left: 0 },
  origins: [],
};

describe("the bar of a prompt", () => {
  it("has the given width, with the deepest summaries first and free space last", () => {
    assert.equal(bar(promptBar(report, paint), 40), "▓▓▓▓░░░░░░░░░░────━━━━━━━━━━━━··········");
  });

  it("uses different shapes, so that it works without colours", () => {
    const shapes = promptBar(report, paint).map(({ cell }) => cell);
    assert.equal(new Set(shapes).size, shapes.length);
  });

  it("has a legend that fits", () => {
    const lines = legend(promptBar(report, paint), 50);
    for (const line of lines) assert.ok(widthOf(line) <= 50, line);
    assert.equal(
      lines.join("   "),
      "▓ d2 1,000 (1)   ░ leaves 2,500 (3)   ─ older messages 1,000 (9)   ━ fresh tail 3,000 (32)   · free 2,500",
    );
  });
});

describe("cells", () => {
  it("add up to the width, with at least one for every amount", () => {
    assert.deepEqual(cellsOf([1, 1_000_000, 1], 10), [1, 8, 1]);
    assert.deepEqual(cellsOf([1, 1, 1], 10), [4, 3, 3]);
    assert.deepEqual(cellsOf([0, 5, 0], 4), [0, 4, 0]);
    assert.deepEqual(cellsOf([0, 0], 4), [0, 0]);
  });

  it("are one each if there are more kinds than room", () => {
    assert.deepEqual(cellsOf([5, 5, 5], 2), [1, 1, 1]);
  });
});

describe("before and after", () => {
  it("are bars on one scale, with the percentage", () => {
    assert.deepEqual(comparison(1_000, 250, 26, paint), ["█████████████  1,000", "███              250  −75%"]);
  });

  it("fit the width if the amount grows", () => {
    assert.deepEqual(comparison(250, 1_000, 27, paint), ["███              250", "█████████████  1,000  +300%"]);
  });

  it("show no percentage if nothing changed", () => {
    assert.deepEqual(comparison(100, 100, 20, paint), ["███████████████  100", "███████████████  100"]);
    assert.deepEqual(
      comparison(0, 0, 20, paint).map((line) => line.trim()),
      ["0", "0"],
    );
  });
});
