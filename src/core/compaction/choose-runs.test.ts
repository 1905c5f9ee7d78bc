import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { ContextItem, MessageId, SummaryId } from "../model/types.ts";
import type { Ties } from "../messages/tool-calls.ts";
import { condensedRuns, leafRun, rulesOf, strictRules } from "./choose-runs.ts";
import { targetTokensOf } from "../summarize/source.ts";
import type { Candidate, Rules } from "./choose-runs.ts";
import { resolveSettings } from "../model/settings.ts";
import { tailStart } from "../messages/fresh-tail.ts";

const settings = resolveSettings({ env: {}, config: {} }).values;
const rules: Rules = { ...rulesOf(settings, false), chunkTokens: 100, leafMinTokens: 0 };
const none: Ties = { calls: [], answers: [] };
const raw = (...tokens: readonly number[]): readonly Candidate[] =>
  tokens.map((each) => ({ tokens: each, ties: none }));
const calls = (...ids: readonly string[]): Ties => ({ calls: ids.map((id) => ({ id, name: "read" })), answers: [] });
const answers = (...ids: readonly string[]): Ties => ({ calls: [], answers: ids });

describe("a leaf run", () => {
  const oldest = { from: "oldest", isMore: false } as const;
  const newest = { from: "newest", isMore: false } as const;

  it("is the longest at its end that fits the chunk", () => {
    assert.deepEqual(leafRun(raw(40, 40, 40, 40), oldest, rules), [0, 2]);
    assert.deepEqual(leafRun(raw(40, 40, 40, 40), newest, rules), [2, 4]);
    assert.deepEqual(leafRun(raw(10, 10), oldest, rules), [0, 2]);
  });

  it("takes a message longer than the chunk on its own", () => {
    assert.deepEqual(leafRun(raw(500, 10), oldest, rules), [0, 1]);
    assert.deepEqual(leafRun(raw(10, 500), newest, rules), [1, 2]);
  });

  it("never separates a call from its results, even if that exceeds the chunk", () => {
    const group = [none, calls("a", "b"), answers("a"), answers("b"), none].map((ties) => ({ tokens: 60, ties }));
    assert.deepEqual(leafRun(group, oldest, rules), [0, 1]);
    assert.deepEqual(leafRun(group.slice(1), oldest, rules), [0, 3]);
    assert.deepEqual(leafRun(group, newest, rules), [4, 5]);
    assert.deepEqual(leafRun(group.slice(0, 4), newest, rules), [1, 4]);
  });

  it("needs enough tokens, and does not wait once it has them", () => {
    const strict = { ...rules, leafMinTokens: 50 };
    assert.equal(leafRun(raw(10, 10), oldest, strict), null);
    assert.deepEqual(leafRun(raw(10, 10, 200), oldest, strict), [0, 3]);
    assert.deepEqual(leafRun(raw(30, 30, 200), oldest, strict), [0, 2]);
    assert.equal(leafRun([], oldest, strict), null);
  });

  it("does not end where reading stopped if there is a better cut", () => {
    const open = [none, none, calls("a")].map((ties) => ({ tokens: 20, ties }));
    assert.deepEqual(leafRun(open, { from: "oldest", isMore: true }, rules), [0, 2]);
    assert.deepEqual(leafRun(open, oldest, rules), [0, 3]);
  });

  it("takes everything read when no cut is safe, so that compaction makes progress", () => {
    const tangled = [calls("a"), calls("b"), answers("b")].map((ties) => ({ tokens: 90, ties }));
    assert.deepEqual(leafRun(tangled, { from: "oldest", isMore: true }, rules), [0, 1]);
    const bound = [calls("a"), answers("x"), answers("a")].map((ties) => ({ tokens: 90, ties }));
    assert.deepEqual(leafRun(bound, { from: "oldest", isMore: true }, rules), [0, 3]);
  });

  it("starts at its end, separates nothing and exceeds the chunk only where it must, for any messages", () => {
    const message = fc.record({
      tokens: fc.integer({ min: 1, max: 120 }),
      ties: fc.constantFrom(none, calls("a"), answers("a"), calls("b", "c"), answers("b"), answers("c")),
    });
    fc.assert(
      fc.property(
        fc.array(message, { minLength: 1, maxLength: 30 }),
        fc.constantFrom("oldest" as const, "newest" as const),
        (messages, from) => {
          const run = leafRun(messages, { from, isMore: false }, rules);
          assert.ok(run !== null && run[0] < run[1]);
          assert.equal(from === "oldest" ? run[0] : run[1], from === "oldest" ? 0 : messages.length);
          const inside = messages.slice(...run);
          const beyond = from === "oldest" ? messages.slice(run[1]) : messages.slice(0, run[0]);
          if (from === "oldest") {
            const answeredBeyond = new Set(beyond.flatMap(({ ties }) => ties.answers));
            const open = new Set<string>();
            for (const { ties } of inside) {
              for (const { id } of ties.calls) open.add(id);
              for (const id of ties.answers) open.delete(id);
            }
            assert.deepEqual(
              [...open].filter((id) => answeredBeyond.has(id) && !reopened(beyond, id)),
              [],
            );
          }
        },
      ),
    );
  });
  const reopened = (messages: readonly Candidate[], id: string): boolean => {
    const call = messages.findIndex(({ ties }) => ties.calls.some((each) => each.id === id));
    const answer = messages.findIndex(({ ties }) => ties.answers.includes(id));
    return call !== -1 && call < answer;
  };
});

describe("the fresh tail", () => {
  it("is the last N messages, and more where a result would lose its call", () => {
    assert.equal(tailStart([none, none, none, none], 2), 2);
    assert.equal(tailStart([none, calls("a"), answers("a"), none], 2), 1);
    assert.equal(tailStart([none, none], 5), 0);
  });
});

describe("condensed runs", () => {
  let ordinal = 0;
  const item = (depth: number, tokens = 10): ContextItem =>
    depth === -1
      ? { kind: "message", id: ++ordinal as MessageId, ordinal, tokens, depth }
      : { kind: "summary", id: `sum_${++ordinal}` as SummaryId, ordinal, tokens, depth };
  const context = (...depths: readonly number[]): readonly ContextItem[] => depths.map((depth) => item(depth));
  const fanouts = { ...rules, leafFanout: 3, condensedFanout: 2, condensedChunkTokens: 1_000 };
  const shape = (items: readonly ContextItem[], given = fanouts): readonly (readonly number[])[] =>
    condensedRuns(items, given).map((run) => run.map((each) => items.indexOf(each)));

  it("are of the shallowest depth that has enough adjacent summaries", () => {
    assert.deepEqual(shape(context(1, 1, 0, 0, 0)), [[2, 3, 4]]);
    assert.deepEqual(shape(context(1, 1, 0, 0)), [[0, 1]]);
    assert.deepEqual(shape(context(2, 1, 0, 0)), []);
  });

  it("do not span a raw message or another depth", () => {
    assert.deepEqual(shape(context(0, 0, -1, 0)), []);
    assert.deepEqual(shape(context(0, 0, 1, 0)), []);
  });

  it("are cut at the chunk but never below the fanout, leaving the rest for later", () => {
    const leaves = Array.from({ length: 8 }, () => item(0, 400));
    assert.deepEqual(shape(leaves), [
      [0, 1, 2],
      [3, 4, 5],
    ]);
  });

  it("stay within the maximum depth", () => {
    assert.deepEqual(shape(context(0, 0, 0), { ...fanouts, depthMax: 0 }), []);
    assert.deepEqual(shape(context(1, 1), { ...fanouts, depthMax: 1 }), []);
  });

  it("skip what cannot be shortened, and continue at the next depth", () => {
    const items = context(1, 1, 0, 0, 0);
    const runs = condensedRuns(items, fanouts, (run) => run[0] === items[2]);
    assert.deepEqual(runs, [items.slice(0, 2)]);
  });
});

describe("the rules", () => {
  it("set the target length per depth, at most half of the source", () => {
    const ordinary = rulesOf(settings, false);
    assert.equal(targetTokensOf(ordinary, 0, 20_000), 1_200);
    assert.equal(targetTokensOf(ordinary, 1, 20_000), 2_000);
    assert.equal(targetTokensOf(ordinary, 2, 3_001), 1_500);
  });

  it("set shorter targets for a small budget, so that several summaries fit", () => {
    assert.equal(targetTokensOf(rulesOf(settings, false, 4_000), 0, 20_000), 400);
    assert.equal(targetTokensOf(rulesOf(settings, false, 16_000), 1, 20_000), 1_600);
    assert.equal(targetTokensOf(rulesOf(settings, false, 200_000), 1, 20_000), 2_000);
    assert.equal(targetTokensOf(rulesOf(settings, false, 1), 0, 20_000), 100);
  });

  it("for an overflow can shorten something with any settings", () => {
    const { values } = resolveSettings({
      env: {},
      config: { leafChunkTokens: 2, leafTargetTokens: 1, condensedTargetTokens: 1 },
    });
    const strict = strictRules(values, 100_000);
    assert.deepEqual([strict.chunkTokens, strict.leafTargetTokens, strict.condensedTargetTokens], [1_000, 100, 100]);
  });

  it("lower both fanouts and allow short runs only when forced", () => {
    const [ordinary, forced] = [rulesOf(settings, false), rulesOf(settings, true)];
    assert.deepEqual([ordinary.leafFanout, ordinary.condensedFanout, ordinary.leafMinTokens], [8, 4, 2_400]);
    assert.deepEqual([forced.leafFanout, forced.condensedFanout, forced.leafMinTokens], [2, 2, 0]);
  });
});
