import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { createPaint } from "../../format/paint.ts";
import { drawField, field, pasted, textOf, typed } from "./field.ts";
import type { Field } from "./field.ts";
import { widthOf } from "../../format/width.ts";

const type = (start: Field, ...keys: readonly string[]): Field =>
  keys.reduce((now, name) => typed(now, { name, text: Array.from(name).length === 1 ? name : "" }), start);

describe("a text field", () => {
  it("inserts typed text at the cursor", () => {
    const text = type(field(), "a", "c", "left", "b", "end", "d");
    assert.equal(textOf(text), "abcd");
    assert.equal(textOf(type(text, "home", "x")), "xabcd");
  });

  it("deletes whole characters, words, and everything before the cursor", () => {
    assert.equal(textOf(type(field("naïve 👩‍💻"), "backspace")), "naïve ");
    assert.equal(textOf(type(field("日本"), "left", "backspace")), "本");
    assert.equal(textOf(type(field("日本"), "left", "delete")), "日");
    assert.equal(textOf(type(field("one two"), "ctrl+w")), "one ");
    assert.equal(textOf(type(field("one two"), "left", "ctrl+u")), "o");
  });

  it("stays one line, whatever is pasted", () => {
    assert.equal(textOf(pasted(field("a "), "b\nc\t\td")), "a b c d");
  });

  it("ignores keys that do not edit", () => {
    const before = field("abc");
    assert.equal(type(before, "pageDown", "f5"), before);
  });

  it("always shows the cursor, however long the text", () => {
    const shown = stripVTControlCharacters(drawField("find", field(`${"日".repeat(50)}end`), 20, createPaint(true)));
    assert.match(shown, /^find …日+end +$/);
    assert.ok(widthOf(shown) <= 20, shown);
    assert.equal(textOf(pasted(field(), "x".repeat(1_000_000))).length, 4_000);
  });

  it("shows the cursor at the end, too", () => {
    const drawn = drawField("find", field("ab"), 12, createPaint(true));
    assert.equal(stripVTControlCharacters(drawn), "find ab     ");
    assert.match(drawn, /ab\u001b\[7m \u001b\[27m/);
  });
});
