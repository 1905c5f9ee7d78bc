import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { harmless, harmlessLine, jsonText, oneLine } from "./safe-text.ts";

describe("stored text", () => {
  it("cannot move the cursor or change a colour", () => {
    const shown = harmless("a\u001b[31mred\u0007\u0000\u009b2J\r\nb\tc\rd");
    assert.equal(shown, "a␛[31mred␇␀�2J\nb\tc␍d");
  });

  it("keeps only our colours in a line of output, where there are colours", () => {
    const line = "\u001b[1mbold\u001b[22m \u001b[2Jcleared\u0007";
    assert.equal(harmlessLine(line, true), "\u001b[1mbold\u001b[22m ␛[2Jcleared␇");
    assert.equal(harmlessLine(line, false), "␛[1mbold␛[22m ␛[2Jcleared␇");
  });

  it("fits on one line", () => {
    assert.equal(oneLine("  one\r\n\ttwo\n\nthree "), "one two three");
  });
});

describe("JSON output", () => {
  it("is unchanged when parsed, and contains nothing that a terminal obeys", () => {
    const text = "a\u001b[31m\u009b\u202eb\u2066\u2028c\u007f";
    const shown = jsonText({ text });
    assert.match(shown, /^[\n -~]*$/);
    assert.deepEqual(JSON.parse(shown), { text });
  });
});
