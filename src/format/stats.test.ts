import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Timestamp } from "../core/base/time.ts";
import type { PromptCost, PromptStats } from "../core/seen/stats.ts";
import { createPaint } from "./paint.ts";
import { statsLines, statsTable } from "./stats.ts";

const at = "2026-11-18T12:00:00.000Z" as Timestamp;
const sums = { bytes: 0, shared: 0, changes: 0, lost: 0, counted: 0, cached: 0, calls: 0 };
const statsOf = (...hosts: (string | null)[]): PromptStats => {
  const prompts = hosts.map((why, index) => ({ number: index + 1, at, tokens: 7, hosts: why }) as PromptCost);
  return { ...sums, prompts, inputTokens: 0, outputTokens: 0 };
};

describe("the cost of prompts that the host built itself", () => {
  it("is said to be its own, and is no zero tokens", () => {
    assert.equal(statsLines(statsOf("everything fits"))[0], "1 prompt, built by the host itself");
    assert.equal(statsLines(statsOf("everything fits", null))[0], "2 prompts, 1 of them built by the host itself");
    assert.equal(statsLines(statsOf(null))[0], "1 prompt");
    const page = { paint: createPaint(false), bounds: 80, zone: "UTC" };
    assert.doesNotMatch(statsTable(page, statsOf("everything fits")).join("\n"), / 0\b(?!:)/);
    assert.match(statsTable(page, statsOf(null)).join("\n"), / 7\b/);
  });
});
