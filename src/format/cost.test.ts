import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CompactionPlan } from "../core/compaction/plan-compaction.ts";
import type { ConversationId } from "../core/model/types.ts";
import { builtInTemplates, notesTokens } from "../core/prompts/summary.ts";
import { costOf } from "./cost.ts";

const conversation = 1 as ConversationId;
const due = {
  kind: "sweep",
  budget: 100,
  thresholdTokens: 75,
  targetTokens: 50,
  promptTokens: 90_000,
  rawTokens: 80_000,
} as const;
const leaf = { depth: 0, sources: 100, sourceTokens: 20_000, targetTokens: 1_200 };
const condensed = { depth: 1, sources: 4, sourceTokens: 4_800, targetTokens: 2_000 };
const plan: CompactionPlan = {
  conversation,
  due,
  tokensBefore: 90_000,
  tokensAfter: 12_000,
  passes: [leaf, leaf, leaf, leaf, condensed],
};
describe("the cost of a plan", () => {
  it("is one call per pass, with its sources and the prompt around them", () => {
    const { calls, inputTokens, outputTokens } = costOf(plan, builtInTemplates, null);
    assert.deepEqual([calls, outputTokens], [5, 6_800 + 4 * notesTokens]);
    assert.ok(inputTokens > 84_800 && inputTokens < 1.25 * 84_800, String(inputTokens));
  });
});
