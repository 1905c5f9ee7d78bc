import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ConversationId } from "../../core/model/types.ts";
import type { ChangeInShort } from "../../format/changes.ts";
import { createPaint } from "../../format/paint.ts";
import type { Frame } from "../contract.ts";
import { advance, open } from "../layers.ts";
import { historyModule } from "./screen.ts";
import type { HistoryScreen } from "./screen.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { widthOf } from "../../format/width.ts";

const at = "2026-02-17T15:37:00.000Z" as Timestamp;
const frameOf = (columns: number, rows: number): Frame => ({
  paint: createPaint(false),
  columns,
  bounds: columns,
  rows,
  zone: "UTC",
  typed: (words) => words,
  now: at,
  readOnly: null,
  beat: 0,
});
const frame = frameOf(77, 21);

const rowsFrom = (newest: number, count: number): readonly ChangeInShort[] =>
  Array.from({ length: count }, (_, index) => ({
    change: newest - index,
    at,
    operation: "rewrite",
    conversations: [1 as ConversationId],
    what: `sum_${index}\u001b[2J`,
    state: index % 7 === 0 ? "undone" : "holds",
    undoneBy: index % 7 === 0 ? [newest] : [],
    undoes: null,
    wayBack: `lcm undo ${newest - index}`,
  }));

const result = (state: HistoryScreen, rows: readonly ChangeInShort[], isMore: boolean) =>
  advance(
    historyModule,
    state,
    {
      kind: "answer",
      answer: { kind: "changes", ask: { kind: "changes", conversation: null, limit: 100 }, result: { rows, isMore } },
    },
    frame,
  );

const opened = (): HistoryScreen => open({ kind: "history", conversation: null }).state;

describe("the history of changes", () => {
  it("reads older changes once, before the end is reached, and keeps its place", () => {
    let { state } = result(opened(), rowsFrom(500, 100), true);
    const asked: number[] = [];
    const press = (name: "down" | "G"): void => {
      const step = advance(historyModule, state, { kind: "pressed", name }, frame);
      ({ state } = step);
      for (const ask of step.asks ?? []) if (ask.kind === "changes") asked.push(ask.limit);
    };
    for (let times = 0; times < 79; times++) press("down");
    assert.deepEqual(asked, [], "the end is far");
    for (let times = 0; times < 10; times++) press("down");
    assert.deepEqual(asked, [200]);
    ({ state } = result(state, rowsFrom(500, 200), true));
    assert.equal(state.list.cursor, 89);
    press("G");
    assert.deepEqual(asked, [200, 300]);
  });

  it("keeps the cursor on its change when newer ones arrive", () => {
    let { state } = result(opened(), rowsFrom(10, 10), false);
    ({ state } = advance(historyModule, state, { kind: "pressed", name: "down" }, frame));
    ({ state } = result(state, rowsFrom(12, 12), false));
    assert.equal(state.rows?.[state.list.cursor]?.change, 9);
  });

  it("fits any room, and no text can move the terminal's cursor", () => {
    const { state } = result(opened(), rowsFrom(500, 100), true);
    for (const [columns, rows] of [
      [40, 7],
      [77, 21],
      [200, 57],
    ] as const) {
      const lines = historyModule.draw(state, frameOf(columns, rows));
      assert.ok(lines.length <= rows);
      for (const line of lines) assert.ok(widthOf(line) <= columns, line);
      assert.doesNotMatch(lines.join(""), /\u001b(?!\[0m)/);
    }
  });
});
