/** Patterns of session keys. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { matchesPattern } from "./session-pattern.ts";

describe("a pattern", () => {
  it("matches the whole name; * is any characters, or none", () => {
    for (const [pattern, name, matches] of [
      ["agent:*:cron:*", "agent:main:cron:", true],
      ["agent:*:cron:*", "agent:main:cron", false],
      ["agent:*:cron:*", "an agent:main:cron:1", false],
      ["*", "", true],
      ["**", "any\nlines", true],
      ["", "", true],
      ["", "a", false],
      ["a*a", "a", false],
      ["a*a", "aa", true],
      ["*ab*ab", "abab", true],
      ["*ab*ab", "aab", false],
      ["a.c", "abc", false],
      ["*x", "x x", true],
    ] as const)
      assert.equal(matchesPattern(pattern, name), matches, `${pattern} ${name}`);
  });

  it("is decided at once, however many stars it has and however long the name is", () => {
    assert.equal(matchesPattern(`${"*a".repeat(40)}b`, "a".repeat(100_000)), false);
  });
});
