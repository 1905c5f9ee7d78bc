import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { CompactionPlan } from "../core/foresee.ts";
import type { ConversationId } from "../core/model.ts";
import { builtInTemplates } from "../core/prompts.ts";
import { summaryOverheadTokens } from "../core/render-summary.ts";
import { costOf, within } from "./cost.ts";

const conversation = 1 as ConversationId;
const due = { kind: "sweep", budget: 100, thresholdTokens: 75, contextTokens: 90_000, rawTokens: 80_000 } as const;
const leaf = { depth: 0, sources: 100, sourceTokens: 20_000, targetTokens: 1_200 };
const condensed = { depth: 1, sources: 4, sourceTokens: 4_800, targetTokens: 2_000 };
const saved = 4 * (20_000 - 1_200 - summaryOverheadTokens) + 4_800 - 2_000 + 3 * summaryOverheadTokens;
const plan: CompactionPlan = {
  conversation,
  due,
  tokensBefore: 90_000,
  tokensAfter: 90_000 - saved,
  passes: [leaf, leaf, leaf, leaf, condensed],
};
const request = { conversation, mode: "sweep" } as const;

describe("a plan within the bounds of its request", () => {
  it("is the whole plan where there are none", () => {
    assert.deepEqual(within(plan, request), plan);
  });

  it("ends after so many passes, or with the one that reaches the target", () => {
    assert.equal(within(plan, { ...request, passesMax: 2 }).passes.length, 2);
    const until = within(plan, { ...request, mode: "until_under", targetTokens: 60_000 });
    assert.equal(until.passes.length, 2);
    assert.ok(until.tokensAfter <= 60_000 && until.tokensAfter + 18_000 > 60_000);
  });

  it("is empty if the target is met already", () => {
    const met = within(plan, { ...request, mode: "until_under", targetTokens: 90_000 });
    assert.deepEqual([met.passes.length, met.tokensAfter], [0, 90_000]);
  });
});

describe("what a model is asked for", () => {
  it("is a call for each pass, with its sources and what stands around them", () => {
    const { calls, inputTokens, outputTokens } = costOf(plan, builtInTemplates, null);
    assert.deepEqual([calls, outputTokens], [5, 6_800]);
    assert.ok(inputTokens > 84_800 && inputTokens < 1.25 * 84_800, String(inputTokens));
  });
});
