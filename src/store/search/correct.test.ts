import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { distance } from "./correct.ts";

describe("how far a word is from what was meant", () => {
  it("counts letters that were added, dropped or swapped, and a wrong letter twice", () => {
    assert.equal(distance("pasport", "passport", 2), 1);
    assert.equal(distance("passsport", "passport", 2), 1);
    assert.equal(distance("databsae", "database", 2), 1);
    assert.equal(distance("coding", "coming", 2), 2);
    assert.equal(distance("same", "same", 1), 0);
  });

  it("stops counting beyond the most that is asked for", () => {
    assert.equal(distance("coding", "coming", 1), 2);
    assert.equal(distance("short", "a much longer word", 2), 3);
  });
});
