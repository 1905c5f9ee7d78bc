/**
 * Runs the whole engine in a simulated world with an unreliable model, and checks every prompt. The model is slow,
 * refuses, hangs, or returns garbage, its input or its reasoning, while the world goes on; prompts must be valid and
 * within their budget each time.
 */

import assert from "node:assert/strict";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import type { CompactRequest } from "../../src/core/compaction/compact.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import type { Model, Store } from "../../src/core/model/store.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import type { Random } from "../support/random.ts";
import { createScriptedModel } from "../support/scripted-model.ts";
import type { Behaviour } from "../support/scripted-model.ts";
import { checkValid } from "../support/valid-prompt.ts";
import { promptTokens } from "../../src/core/model/prompt-cost.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

/** Small limits: a life of sixty steps sees every layer. */
const settings = resolveSettings({
  env: {},
  config: {
    freshTailCount: 6,
    leafChunkTokens: 240,
    leafTargetTokens: 60,
    condensedTargetTokens: 80,
    leafMinFanout: 3,
    condensedMinFanout: 2,
    condensedMinFanoutHard: 2,
    incrementalMaxDepth: -1,
    summaryConcurrency: 3,
    largeFileTokenThreshold: 40,
    spendCeilingCalls: 400,
  },
}).values;

const behaviours: Readonly<Record<Behaviour, number>> = {
  good: 10,
  slow: 3,
  refuses: 2,
  unauthorized: 1,
  garbage: 2,
  echo: 2,
  reasoning: 2,
  hangs: 2,
  long: 2,
  empty: 1,
  throws: 1,
};

export interface Engine {
  readonly lcm: Lcm;
  /** A compaction of any kind; `meanwhile` happens while the model thinks. Returns the outcome. */
  compact(conversation: ConversationId, meanwhile: () => Promise<void>): Promise<string>;
  /** A prompt within any budget; returns its contents. */
  assemble(conversation: ConversationId): Promise<string>;
}

export function createEngine(
  store: Store,
  random: Random,
  now: () => Timestamp,
  count: (name: string) => void,
): Engine {
  let stop = new AbortController();
  let whileThinking: () => Promise<void> = async () => undefined;
  let happening: Promise<void> = Promise.resolve();
  const scripted = createScriptedModel({
    behaviour: () => {
      const behaviour = random.weighted(behaviours);
      count(`model ${behaviour}`);
      // Nothing waits for a model that hangs: the deadline ends it, once the world has done what it was doing.
      if (behaviour === "hangs") setImmediate(() => void happening.finally(() => stop.abort()));
      return behaviour;
    },
  });
  const model: Model = {
    ...scripted,
    async complete(request) {
      await whileThinking();
      return await scripted.complete(request);
    },
  };
  const lcm = createLcm({ store, clock: { now }, settings, model, breaker: "ignored" });
  const tokensOf = async (id: ConversationId): Promise<number> =>
    promptTokens((await store.conversation(id))?.totals ?? assert.fail("the conversation exists"));

  return {
    lcm,
    async compact(conversation, meanwhile) {
      stop = new AbortController();
      let hasHappened = random.chance(0.5);
      whileThinking = async () => {
        if (hasHappened) return;
        hasHappened = true;
        await (happening = meanwhile());
      };
      const mode = random.weighted({ due: 3, incremental: 3, sweep: 4, until_under: 2 } as const);
      const request: CompactRequest = {
        conversation,
        mode,
        budget: random.between(200, 4_000),
        force: random.chance(0.3),
        signal: stop.signal,
        ...(mode === "until_under" ? { targetTokens: random.between(50, 1_500) } : {}),
        ...(random.chance(0.2) ? { passesMax: random.between(1, 3) } : {}),
      };
      const report = await lcm.compact(request);
      whileThinking = async () => undefined;
      assert.equal(report.compacted, report.tokensAfter < report.tokensBefore, report.message);
      assert.equal(report.tokensAfter, await tokensOf(conversation), "what compaction reports is what is stored");
      for (const pass of report.passes)
        assert.ok(pass.tokens < pass.sourceTokens, "a summary is shorter than its source");
      const name = report.outcome.kind === "bounded" ? `bounded by ${report.outcome.bound}` : report.outcome.kind;
      count(`compaction ${name}`);
      assert.notEqual(report.outcome.kind, "failed", report.message);
      for (const { level } of report.passes) count(`level ${level}`);
      return `${mode} of ${conversation}: ${report.message}`;
    },
    async assemble(conversation) {
      const budget = random.pick([random.between(20, 200), random.between(200, 2_000), 100_000]);
      const { messages, report } = await lcm.assemble(conversation, { budget });
      checkValid(messages);
      assert.ok(report.tokens <= budget, `${report.tokens} tokens for a budget of ${budget}`);
      const again = await lcm.assemble(conversation, { budget });
      assert.deepEqual(again.messages, messages, "the same context gives the same prompt");
      if (report.evicted.items > 0) count("prompt with evictions");
      if (report.shortened > 0) count("prompt with shortened messages");
      if (report.standIns > 0) count("prompt with stand-ins");
      if (report.loose > 0) count("prompt with loose results");
      if (report.summaries.items > 0) count("prompt with summaries");
      return `${messages.length} messages, ${report.tokens} of ${budget} tokens`;
    },
  };
}
