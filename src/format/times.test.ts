import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createSpans } from "./times.ts";
import type { Timestamp } from "../core/base/time.ts";

describe("times in a list", () => {
  const at = (text: string): Timestamp => `${text}.000Z` as Timestamp;
  const [newYear, february, march] = [at("2026-01-01T00:30:00"), at("2026-02-17T07:37:00"), at("2026-03-01T10:00:00")];

  it("omit the year if all share it, and show it once", () => {
    const spans = createSpans([february, march], "UTC");
    assert.equal(spans.of(february, march), "02-17…03-01");
    assert.equal(spans.of(february, february), "02-17 07:37");
    for (const [latest, words] of [
      ["2026-02-17T23:02:00.000Z", "02-17 07:37…23:02"],
      ["2026-02-18T01:02:00.000Z", "02-17…02-18"],
    ] as const)
      assert.equal(spans.of(february, latest as Timestamp), words);
    assert.equal(spans.words, "times in 2026, UTC");
  });

  it("never run backwards: a night is shown by its days", () => {
    const [evening, night] = [at("2026-02-17T22:41:00"), at("2026-02-18T00:38:00")];
    assert.equal(createSpans([evening, night], "UTC").of(evening, night), "02-17…02-18");
    assert.equal(createSpans([evening, night], "America/St_Johns").of(evening, night), "02-17 19:11…21:08");
  });

  it("keep the year if it differs in the reader's zone", () => {
    const spans = createSpans([newYear, february], "America/St_Johns");
    assert.equal(spans.of(newYear, february), "2025-12-31…2026-02-17");
    assert.equal(spans.words, "times in America/St_Johns");
  });
});
