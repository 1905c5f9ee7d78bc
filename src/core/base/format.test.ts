import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { listed, plural } from "./format.ts";

describe("formatting for people", () => {
  it("counts things", () => {
    assert.equal(plural(1, "message"), "1 message");
    assert.equal(plural(0, "summary", "summaries"), "0 summaries");
    assert.equal(plural(1_234_567, "row"), "1,234,567 rows");
  });

  it("lists things", () => {
    assert.equal(listed([]), "");
    assert.equal(listed(["a"]), "a");
    assert.equal(listed(["a", "b", "c"]), "a, b and c");
  });
});
