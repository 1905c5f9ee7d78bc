import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { breakLines, cut, widthOf, wrap } from "./width.ts";

describe("the width of text on a terminal", () => {
  it("is two columns for wide scripts and emoji, none for invisible characters", () => {
    const widths: readonly (readonly [string, number])[] = [
      ["", 0],
      ["abc", 3],
      ["naïve", 5],
      ["e\u0301", 1],
      ["日本語", 6],
      ["한국어", 6],
      ["ｆｕｌｌ", 8],
      ["👍", 2],
      ["👩‍👩‍👧", 2],
      ["🇯🇵", 2],
      ["❤️", 2],
      ["\u200b", 0],
      ["\u001b[31mred\u001b[39m", 3],
    ];
    for (const [text, width] of widths) assert.equal(widthOf(text), width, JSON.stringify(text));
  });

  it("is never exceeded by a cut, and a cut is marked", () => {
    for (const text of [
      "a short text",
      "日本語のとても長い文章",
      "mixed 日本語 and 👍👍👍 emoji",
      "e\u0301".repeat(30),
    ]) {
      for (let columns = 0; columns <= 30; columns++) {
        const shown = cut(text, columns);
        assert.ok(widthOf(shown) <= columns, `${JSON.stringify(shown)} in ${columns}`);
        if (widthOf(text) <= columns) assert.equal(shown, text);
        else if (columns > 0) assert.ok(shown.endsWith("…"), shown);
      }
    }
  });

  it("is measured quickly in a script without spaces too", () => {
    const text = "港".repeat(50_000);
    assert.equal(wrap(text, 80).length, 1_250);
  });

  it("is at least one column when wrapping, however little room there is", () => {
    for (const room of [1, 0, -1, -40]) assert.deepEqual(wrap("a bc", room), ["a", "b", "c"]);
  });

  it("is never exceeded by wrapping, which loses no word", () => {
    const text = "one two three 日本語の文章 four averyveryverylongwordwithoutspaces 👍 five";
    for (let columns = 4; columns < 40; columns++) {
      const lines = wrap(text, columns);
      for (const line of lines) assert.ok(widthOf(line) <= columns, `${line} in ${columns}`);
      assert.equal(lines.join("").replaceAll(" ", ""), text.replaceAll(" ", ""));
    }
  });
});

describe("a command in a sentence", () => {
  it("is broken only if it does not fit on one line", () => {
    const words = "take it back: `lcm undo 1 --apply`, or not";
    assert.deepEqual(breakLines(words, 24), ["take it back:", "`lcm undo 1 --apply`, or", "not"]);
    assert.deepEqual(breakLines(words, 12), ["take it", "back: `lcm", "undo 1", "--apply`, or", "not"]);
    assert.deepEqual(breakLines("one ` of a kind", 8), ["one ` of", "a kind"]);
  });
});
