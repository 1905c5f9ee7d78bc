import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { encode, encodeList, showText } from "./values.ts";

/** Any text, with much of what PostgreSQL cannot store. */
const text = fc.string({
  unit: fc.oneof(fc.string({ maxLength: 1 }), fc.constantFrom("\0", "\uffff", "\ud800", "\udc00", "😀", "0", "d")),
});

describe("texts for PostgreSQL", () => {
  it("come back as they were, NUL and halves of surrogate pairs included", () => {
    fc.assert(
      fc.property(text, (value) => {
        const stored = String(encode(value));
        assert.ok(stored.isWellFormed() && !stored.includes("\0"));
        assert.equal(showText(stored), value);
      }),
    );
  });

  it("are the same in a list of keys as alone, so that a key is found", () => {
    fc.assert(
      fc.property(fc.array(text), (list) => {
        const stored = JSON.parse(String(encodeList(JSON.stringify(list)))) as readonly string[];
        assert.deepEqual(stored, list.map(encode));
      }),
    );
  });
});
