import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bottomUp, closure, coverage, flatten } from "./summary-graph.ts";
import type { MessageId, Sources, SummaryId } from "./types.ts";

const m = (id: number) => ({ kind: "message", id: id as MessageId }) as const;
const s = (id: string) => ({ kind: "summary", id: `sum_${id}` }) as const;
const leaf = (...messages: number[]): Sources => ({ messages: messages as MessageId[], summaries: [] });
const condensed = (...ids: string[]): Sources => ({ messages: [], summaries: ids.map((id): SummaryId => `sum_${id}`) });

const sources = new Map<SummaryId, Sources>([
  ["sum_a", leaf(1, 2)],
  ["sum_b", leaf(3)],
  ["sum_c", leaf(4, 5)],
  ["sum_ab", condensed("a", "b")],
  ["sum_top", condensed("ab")],
]);
const sourcesOf = (id: SummaryId) => sources.get(id);

describe("the graph of summaries", () => {
  it("flattens to every message, oldest first", () => {
    const walked = flatten([s("top"), s("c"), m(6), m(7)], sourcesOf);
    assert.deepEqual(walked, { messages: [1, 2, 3, 4, 5, 6, 7], cyclic: [] });
  });

  it("continues after a summary without sources", () => {
    assert.deepEqual(flatten([s("gone"), m(1)], sourcesOf), { messages: [1], cyclic: [] });
  });

  it("ends the walk of a summary that is among its own sources", () => {
    const knot = new Map<SummaryId, Sources>([
      ["sum_x", condensed("y")],
      ["sum_y", condensed("x", "a")],
      ["sum_a", leaf(1)],
    ]);
    assert.deepEqual(
      flatten([s("x")], (id) => knot.get(id)),
      { messages: [1], cyclic: ["sum_x"] },
    );
    assert.deepEqual(
      closure(["sum_x"], (id) => knot.get(id)),
      ["sum_x", "sum_y", "sum_a"],
    );
  });

  it("collects everything below, each once, a summary before its sources", () => {
    assert.deepEqual(closure(["sum_top", "sum_a"], sourcesOf), ["sum_top", "sum_ab", "sum_a", "sum_b"]);
  });

  it("orders sources before the summaries made from them, and by time within a depth", () => {
    const of = (id: string, depth: number, earliestAt: string | null) => ({
      id: `sum_${id}` as const,
      depth,
      earliestAt,
    });
    const ordered = bottomUp([
      of("top", 2, "1"),
      of("b", 0, "2"),
      of("ab", 1, "1"),
      of("a", 0, "1"),
      of("new", 0, null),
    ]);
    assert.deepEqual(
      ordered.map(({ id }) => id),
      ["sum_new", "sum_a", "sum_b", "sum_ab", "sum_top"],
    );
  });

  it("compares the messages reached with those expected", () => {
    assert.deepEqual(coverage([1, 2, 2, 9], [1, 2, 3, 4], new Set([4])), { lost: [3], doubled: [2] });
    assert.deepEqual(coverage([1, 2], [1, 2], new Set()), { lost: [], doubled: [] });
  });
});
