import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { mostQuoted, quotable } from "./find-session.ts";

describe("the session that a request quotes", () => {
  const [one, other] = ["one ".repeat(60), "other ".repeat(60)];

  it("is the one of which it quotes the most, whatever the host wrote around it", () => {
    const texts = new Map([
      ["a", [one]],
      ["b", [other, one]],
      ["c", []],
    ]);
    assert.equal(mostQuoted(`<summary>${other}</summary> and ${one}`, texts), "b");
  });

  it("is none if nothing is quoted, or the same of two", () => {
    const texts = new Map([
      ["a", [one]],
      ["b", [one, other]],
    ]);
    assert.equal(mostQuoted(`so far: ${one}`, texts), null);
    assert.equal(mostQuoted("so far: nothing", texts), null);
  });

  it("is not known by words that anybody may say", () => {
    assert.equal(quotable("Done."), null);
    assert.equal(quotable(` ${one}\n`), one.trim());
  });
});
