import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { MessageId, Sources, SummaryId } from "../../core/model/types.ts";
import { keyOf, outsideKey, parentOf, placeOf, rowsOf } from "./tree.ts";
import type { Row, Tree } from "./tree.ts";

const ofSummaries = (...summaries: SummaryId[]): Sources => ({ messages: [], summaries });
const ofMessages = (count: number): Sources => ({
  messages: Array.from({ length: count }, (_, at) => (at + 1) as MessageId),
  summaries: [],
});

const tree: Tree = {
  entries: [
    { kind: "summary", id: "sum_top" },
    { kind: "run", first: 7 as MessageId, last: 9 as MessageId, count: 3, tokens: 30, place: "tail" },
  ],
  outside: ["sum_gone"],
  sources: new Map([
    ["sum_top", ofSummaries("sum_a", "sum_b")],
    ["sum_b", ofMessages(2)],
  ]),
  open: new Set(["sum_top", "sum_b"]),
};

const shape = (rows: readonly Row[]): readonly string[] =>
  rows.map((row) => `${"  ".repeat(row.indent)}${row.kind === "note" ? row.words : keyOf(row)}`);

describe("the tree of summaries", () => {
  it("lists open rows in the order of the conversation, then summaries outside the context", () => {
    assert.deepEqual(shape(rowsOf(tree)), [
      "sum_top",
      "  sum_a",
      "  sum_b",
      "    msg_0-1",
      "    msg_0-2",
      "tail",
      "outside",
    ]);
    assert.deepEqual(shape(rowsOf({ ...tree, open: new Set([outsideKey]) })), [
      "sum_top",
      "tail",
      "outside",
      "  sum_gone",
    ]);
  });

  it("shows that something is being read, or that there is nothing", () => {
    const open = new Set(["sum_top", "sum_a", outsideKey]);
    const sources = new Map([...tree.sources, ["sum_gone", ofSummaries()] as const]);
    assert.deepEqual(shape(rowsOf({ ...tree, open, sources, outside: null })).slice(1), [
      "  sum_a",
      "    reading …",
      "  sum_b",
      "tail",
      "outside",
      "  looking for them …",
    ]);
    assert.deepEqual(shape(rowsOf({ ...tree, open: new Set(["sum_gone", outsideKey]), sources })).slice(-1), [
      "    no sources: only its text exists",
    ]);
    assert.deepEqual(shape(rowsOf({ ...tree, open: new Set(), outside: [] })), ["sum_top", "tail"]);
  });

  it("ends even if a damaged graph contains a cycle", () => {
    const sources = new Map([
      ["sum_top", ofSummaries("sum_a")],
      ["sum_a", ofSummaries("sum_top")],
    ] as const);
    const rows = rowsOf({ ...tree, sources, open: new Set(["sum_top", "sum_a"]) });
    assert.deepEqual(shape(rows), ["sum_top", "  sum_a", "    sum_top", "tail", "outside"]);
  });

  it("shows how many sources are left out", () => {
    const sources = new Map([["sum_top", ofMessages(2_180)] as const]);
    const rows = rowsOf({ ...tree, sources });
    assert.equal(shape(rows)[2_001], "  … 180 more");
    assert.equal(rows.length, 2_004);
  });

  it("knows each row's parent, and finds a row again nearest to where it was", () => {
    const rows = rowsOf(tree);
    assert.deepEqual(
      rows.map((_, at) => parentOf(rows, at)),
      [null, 0, 0, 2, 2, null, null],
    );
    assert.equal(placeOf(rows, "tail", 0), 5);
    assert.equal(placeOf(rows, "sum_none", 0), null);
    const twice = rowsOf({ ...tree, outside: ["sum_b"], open: new Set(["sum_top", outsideKey]) });
    assert.equal(placeOf(twice, "sum_b", 0), 2);
    assert.equal(placeOf(twice, "sum_b", 5), 5);
  });
});
