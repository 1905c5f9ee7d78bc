import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { diffLines, unifiedDiff } from "./diff.ts";
import { createPaint } from "./paint.ts";
import { widthOf } from "./width.ts";

describe("a diff of two texts", () => {
  it("is like that of `diff -u`, without remarks on line ends", () => {
    assert.equal(
      unifiedDiff("kept\nold\nkept too", "kept\nnew\nmore\nkept too"),
      "--- old\n+++ new\n@@ -1,3 +1,4 @@\n kept\n-old\n+new\n+more\n kept too\n",
    );
  });

  it("is empty for equal texts, and complete if one is empty", () => {
    assert.equal(unifiedDiff("same", "same"), "");
    assert.match(unifiedDiff("", "now"), /^-$[^]*^\+now$/m);
  });
});

describe("a diff on a terminal", () => {
  const diff = unifiedDiff("kept\n- a list\nold", "kept\n- a list\nnew");

  it("is coloured by its signs", () => {
    const marked = {
      ...createPaint(false),
      good: mark("good"),
      bad: mark("bad"),
      soft: mark("soft"),
      strong: mark("strong"),
    };
    assert.deepEqual(diffLines(marked, diff, null), [
      "strong(--- old)",
      "strong(+++ new)",
      "soft(@@ -1,3 +1,3 @@)",
      " kept",
      " - a list",
      "bad(-old)",
      "good(+new)",
    ]);
  });

  it("is no wider than the terminal, with the sign on every piece of a paragraph", () => {
    const lines = diffLines(createPaint(false), unifiedDiff("word ".repeat(30), `\n${"other ".repeat(30)}`), 40);
    assert.ok(lines.every((line) => widthOf(line) <= 40));
    assert.ok(lines.filter((line) => line.startsWith("-word")).length > 3);
    assert.ok(lines.filter((line) => line.startsWith("+other")).length > 3);
    assert.ok(lines.includes("+"), "an empty line stays one");
  });

  it("shows control characters instead of sending them", () => {
    const lines = diffLines(createPaint(false), unifiedDiff("a", "\u001b[31mred"), 80);
    assert.equal(lines.at(-1), "+␛[31mred");
  });
});

const mark =
  (name: string) =>
  (text: string): string =>
    `${name}(${text})`;
