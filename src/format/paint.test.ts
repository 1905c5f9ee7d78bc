import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createPaint } from "./paint.ts";

const plain = createPaint(false);

describe("paint", () => {
  it("is applied only on request", () => {
    assert.equal(plain.bad("x"), "x");
    assert.equal(plain.role("user", "x"), "x");
    assert.notEqual(createPaint(true).bad("x"), "x");
  });
});
