/** Budgets: what the host names, what it does not count, and what is learned from that. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { HostMessage } from "../../core/messages/codec.ts";
import { tokensOf } from "../../core/assembly/present-message.ts";
import { beginAttempt, budgetOf, isFirstCall, learnFromTurn } from "./prompt-budget.ts";
import { learnFromOverflow, recallAllowance } from "../shared/allowance.ts";
import type { AssembleCall, CommitCall } from "./host-api.ts";
import type { SessionMemory } from "../shared/runtime.ts";

const [window, reserve] = [64_000, 16_000];

const firstCall = (tokenBudget: number): AssembleCall => ({
  sessionId: "s",
  messages: [],
  tokenBudget,
  runtimeSettings: { limits: { maxOutputTokens: reserve } },
});
const loopCall = (tokenBudget: number): AssembleCall => ({
  sessionId: "s",
  messages: [],
  tokenBudget,
  runtimeSettings: { limits: { maxOutputTokens: null } },
});
const committed = (...messages: readonly HostMessage[]): CommitCall => ({
  sessionId: "s",
  advancementKey: "t",
  terminal: { entryId: "2" },
  messages,
  runtimeContext: { modelContextWindow: window },
});
const user: HostMessage = { role: "user", content: "hello" };
const answer = (input: number, cacheRead = 0): HostMessage => ({
  role: "assistant",
  content: [{ type: "text", text: "hi" }],
  usage: { input, cacheRead, cacheWrite: 0, output: 3 },
});
const fresh = (): SessionMemory => ({ allowance: null, promptBudget: null });
const known = (allowance: number): SessionMemory => ({ allowance, promptBudget: null });

describe("the budget of an attempt", () => {
  it("is the first that the host names, minus what the turn has grown since", () => {
    const attempt = beginAttempt(firstCall(36_000));
    const memory = known(0);
    assert.ok(isFirstCall(firstCall(1)) && !isFirstCall(loopCall(1)));
    assert.equal(budgetOf(attempt, firstCall(36_000), memory, 0), 36_000);
    assert.equal(budgetOf(attempt, loopCall(63_900), memory, 0), 36_000, "the loop's own figure is no gift");
    assert.equal(budgetOf(attempt, loopCall(60_900), memory, 0), 33_000);
    assert.equal(budgetOf(attempt, loopCall(20_000), memory, 0), -7_900);
  });

  it("leaves room for what is added to the system prompt", () => {
    const attempt = beginAttempt(firstCall(10_000));
    assert.equal(budgetOf(attempt, firstCall(10_000), known(0), 300), 9_700);
  });

  it("reserves a tenth while nothing is known, and then what is known", () => {
    const attempt = beginAttempt(firstCall(36_000));
    assert.equal(budgetOf(attempt, firstCall(36_000), fresh(), 0), 32_400);
    assert.equal(budgetOf(attempt, firstCall(36_000), known(12_288), 0), 23_712);
  });

  it("reserves after a restart what the stored budget lacks, if it can be from the same model", () => {
    const attempt = beginAttempt(firstCall(36_000));
    const recalled = (promptBudget: number | null, memory = fresh()): number => {
      recallAllowance(memory, attempt.named, promptBudget);
      return budgetOf(attempt, firstCall(36_000), memory, 0);
    };
    assert.equal(recalled(20_000), 36_000 - 16_384);
    assert.equal(recalled(20_000, known(512)), 36_000 - 512, "what is remembered is newer");
    for (const other of [null, 36_000, 90_000, 17_000]) assert.equal(recalled(other), 32_400);
  });

  it("does not reserve the growth of the previous turn if the provider counts nothing", () => {
    const memory = fresh();
    const before = beginAttempt(firstCall(36_000));
    for (const call of [firstCall(36_000), loopCall(63_900), loopCall(53_900)]) budgetOf(before, call, memory, 0);
    learnFromTurn(memory, before, committed(user, { role: "assistant", content: "hi" }));
    assert.equal(memory.promptBudget, 22_400);
    const attempt = beginAttempt(firstCall(36_000));
    recallAllowance(memory, attempt.named, memory.promptBudget);
    assert.equal(budgetOf(attempt, firstCall(36_000), memory, 0), 32_400);
  });

  it("never exceeds the first budget minus the growth, whatever the host names", () => {
    const figures = fc.array(fc.integer({ min: 0, max: 200_000 }), { minLength: 1, maxLength: 12 });
    const holds = fc.property(fc.integer({ min: 0, max: 200_000 }), figures, (named, loop) => {
      const attempt = beginAttempt(firstCall(named));
      const memory = fresh();
      assert.ok(budgetOf(attempt, firstCall(named), memory, 0) <= named);
      // A turn never shrinks, so the host's budgets only fall.
      for (const figure of loop.toSorted((a, b) => b - a))
        assert.ok(budgetOf(attempt, loopCall(figure), memory, 0) <= named - ((attempt.loop ?? figure) - figure));
      const last = loop.toSorted((a, b) => b - a).at(-1) ?? named;
      assert.equal(memory.promptBudget, budgetOf(attempt, loopCall(last), memory, 0), "the smallest is remembered");
    });
    fc.assert(holds);
  });

  it("has a default for hosts that name none", () => {
    const call: AssembleCall = { sessionId: "s", messages: [] };
    assert.ok(budgetOf(beginAttempt(call), call, known(0), 0) > 100_000);
  });
});

describe("the allowance", () => {
  /** The system prompt takes 2,000 tokens here, the prompt none. */
  const named = window - reserve - 2_000;
  const shown = (tokens: number) => ({ ...beginAttempt(firstCall(named)), shownTokens: tokens });

  it("is what the provider counted beyond what is known", () => {
    const memory = fresh();
    learnFromTurn(memory, shown(10_000), committed(user, answer(4_000, 20_000)));
    assert.equal(memory.allowance, 12_288);
  });

  it("does not count the growth of the turn as schemas", () => {
    const grown: HostMessage = { role: "toolResult", toolCallId: "c", content: "many words ".repeat(500) };
    const memory = fresh();
    const input = 10_000 + 2_000 + 5_000 + tokensOf(grown) + tokensOf(answer(0));
    learnFromTurn(memory, shown(10_000), committed(user, answer(1), grown, answer(input)));
    assert.equal(memory.allowance, 5_120);
  });

  it("grows at once and shrinks by halves", () => {
    const memory = known(5_120);
    learnFromTurn(memory, shown(10_000), committed(user, answer(24_000)));
    assert.equal(memory.allowance, 12_288);
    const steps = Array.from({ length: 12 }, () => {
      learnFromTurn(memory, shown(10_000), committed(user, answer(13_000)));
      return memory.allowance ?? 0;
    });
    assert.ok((steps[0] ?? 0) > 6_000 && (steps.at(-1) ?? 0) < 2_100, steps.join(" "));
  });

  it("ignores small differences, which would move the cut of every prompt", () => {
    const learned = [23_900, 23_870, 23_950, 24_001].map((input) => {
      const memory = fresh();
      learnFromTurn(memory, shown(10_000), committed(user, answer(input)));
      return memory.allowance;
    });
    assert.equal(new Set(learned).size, 1, learned.join(" "));
  });

  it("is never more than half, and a turn without counts changes nothing", () => {
    const memory = fresh();
    learnFromTurn(memory, shown(10), committed(user, answer(10_000_000)));
    assert.ok((memory.allowance ?? 0) <= named / 2 + 512);
    const silent = fresh();
    learnFromTurn(silent, shown(10), committed(user, { role: "assistant", content: [] }));
    learnFromTurn(silent, shown(0), committed(user, answer(99)));
    learnFromTurn(silent, shown(10), { ...committed(user, answer(99)), runtimeContext: {} });
    assert.equal(silent.allowance, null);
  });

  it("grows with every prompt that is too long, up to half", () => {
    const memory = fresh();
    let before = 0;
    for (let times = 0; times < 20; times++) {
      learnFromOverflow(memory, window, times === 0 ? window + 9_000 : undefined);
      const allowance = memory.allowance ?? 0;
      assert.ok(allowance > before || allowance === window / 2);
      before = allowance;
    }
    assert.equal(before, window / 2);
  });
});

describe("guarantee 12: a provider that counts the schemas of tools", () => {
  it("never gets more than its window, and soon no more than the reserve leaves", () => {
    const turn = fc.record({ prompt: fc.integer({ min: 1, max: 4_000 }), growth: fc.integer({ min: 0, max: 6_000 }) });
    const lives = fc.record({
      schemas: fc.integer({ min: 0, max: 12_000 }),
      system: fc.integer({ min: 500, max: 9_000 }),
      /** How far our estimate is from the provider's count. */
      factor: fc.double({ min: 0.85, max: 1.15, noNaN: true }),
      turns: fc.array(turn, { minLength: 5, maxLength: 30 }),
    });
    const holds = fc.property(lives, ({ schemas, system, factor, turns }) => {
      const memory = fresh();
      turns.forEach(({ prompt, growth }, nth) => {
        const first = window - reserve - system - prompt;
        const attempt = beginAttempt(firstCall(first));
        // A long session: everything that may be shown is.
        let tokens = Math.max(0, budgetOf(attempt, firstCall(first), memory, 0));
        const counted = (grown: number): number => system + schemas + Math.ceil(factor * (tokens + prompt + grown));
        assert.ok(counted(0) <= window, `turn ${nth}: ${counted(0)}`);
        budgetOf(attempt, loopCall(window - prompt), memory, 0);
        tokens = Math.max(0, Math.min(tokens, budgetOf(attempt, loopCall(window - prompt - growth), memory, 0)));
        assert.ok(counted(growth) <= window, `turn ${nth}: ${counted(growth)}`);
        if (nth >= 3) {
          const slack = 2 * 512 + 0.15 * (prompt + growth) + 4_000 * 0.15;
          assert.ok(
            counted(growth) <= window - reserve + slack,
            `turn ${nth}: ${counted(growth)} reaches into the reserve`,
          );
        }
        attempt.shownTokens = tokens;
        // The provider counts the last request, which includes the growth.
        const grown: HostMessage = { role: "toolResult", toolCallId: "c", content: "" };
        const told = counted(growth) - Math.round(factor * growth) + tokensOf(grown);
        learnFromTurn(memory, attempt, committed(user, grown, answer(told)));
      });
    });
    fc.assert(holds, { numRuns: 300, seed: 5 });
  });
});
