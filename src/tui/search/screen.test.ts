import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ConversationId, MessageId } from "../../core/model/types.ts";
import { createPaint } from "../../format/paint.ts";
import type { Frame, Step } from "../contract.ts";
import { advance, open } from "../layers.ts";
import { grepModule } from "./screen.ts";
import type { GrepScreen } from "./screen.ts";
import type { Found, Hit } from "./asks.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { widthOf } from "../../format/width.ts";

const conversation = 1 as ConversationId;
const at = "2026-02-17T07:37:00.000Z" as Timestamp;
const frame: Frame = {
  columns: 60,
  bounds: 60,
  rows: 13,
  paint: createPaint(false),
  zone: "UTC",
  typed: (words) => words,
  now: at,
  readOnly: null,
  beat: 0,
};

const hit = (id: number, snippet = `words of ${id}`, matches: Hit["matches"] = []): Hit => ({
  hit: { kind: "message", id: id as MessageId, role: "user", seq: id, conversation, snippet, at, score: 0 },
  where: "The ferry",
  snippet,
  matches,
});

const key = (state: GrepScreen, name: string): Step<GrepScreen> =>
  advance(grepModule, state, { kind: "key", key: { name, text: name.length === 1 ? name : "" } }, frame);
const type = (state: GrepScreen, text: string): Step<GrepScreen> =>
  [...text].reduce<Step<GrepScreen>>((step, each) => key(step.state, each), { state });
const told = (state: GrepScreen, found: Found): GrepScreen => {
  const ask = { kind: "grep", pattern: "", mode: "full_text", scope: "both", where: "all", conversation } as const;
  return advance(grepModule, state, { kind: "answer", answer: { kind: "grep", ask, told: found } }, frame).state;
};
const found = (...hits: readonly Hit[]): Found => ({ kind: "found", hits, caveats: [] });

const fresh = open({ kind: "grep", conversation }).state;
const drawn = (state: GrepScreen): string => grepModule.draw(state, frame).join("\n");

describe("the search", () => {
  it("asks with every letter, each in place of the one before", () => {
    const step = type(fresh, "dog");
    const { mode, scope, where } = fresh;
    assert.deepEqual(step.asks, [{ kind: "grep", pattern: "dog", mode, scope, where, conversation, slot: "grep" }]);
    const empty = key(type(fresh, "d").state, "backspace");
    assert.deepEqual(empty.go, { kind: "stop", slot: "grep" });
    assert.equal(empty.state.isSearching, false);
  });

  it("shows what was found before until there is an answer", () => {
    const state = told(type(fresh, "dog").state, found(hit(1)));
    assert.match(drawn(type(state, "s").state), /words of 1/);
  });

  it("keeps the cursor on the same hit when it looks again", () => {
    const state = key(key(told(type(fresh, "dog").state, found(hit(1), hit(2), hit(3))), "down").state, "down").state;
    const again = advance(grepModule, { ...state, isSearching: false }, { kind: "changed" }, frame);
    assert.equal(again.asks?.length, 1);
    assert.equal(told(again.state, found(hit(9), hit(1), hit(2), hit(3))).list.cursor, 3);
  });

  it("does not begin an expression anew with everything that is written", () => {
    const state = told(type({ ...fresh, mode: "regex" }, "d.g").state, found(hit(1)));
    assert.equal(advance(grepModule, state, { kind: "changed" }, frame).asks, undefined);
  });

  it("shows the match of a long line, whatever stands before it", () => {
    const snippet = `${"before ".repeat(20)}the dogs are here`;
    const from = snippet.indexOf("dogs");
    const lines = drawn(told(type(fresh, "dogs").state, found(hit(1, snippet, [[from, from + 4]]))));
    assert.match(lines, /…before .*the dogs are here/);
  });

  it("says what stopped it, and never that nothing matches then", () => {
    const stopped: Found = {
      kind: "found",
      hits: [],
      caveats: [{ kind: "time", timeoutMs: 10_000, scanned: 5, of: 9_000 }],
    };
    const lines = drawn(told(type(fresh, "dog").state, stopped));
    assert.match(lines, /stopped at the time limit of 10 s after 5 of 9,000 rows/);
    assert.doesNotMatch(lines, /no matches/);
    assert.match(drawn(told(type(fresh, "dog").state, found())), /no matches/);
  });

  it("leaves no trace of being under way where it failed", () => {
    const { state } = type(fresh, "dog");
    const failure = { code: "unavailable", message: "locked", hint: null };
    const ask = { kind: "grep", pattern: "dog", mode: "full_text", scope: "both", where: "all", conversation } as const;
    assert.equal(advance(grepModule, state, { kind: "failed", ask, failure }, frame).state.isSearching, false);
  });

  it("has a click on a hit select it, and two open it", () => {
    const state = told(type(fresh, "dog").state, found(hit(1), hit(2)));
    const click = (count: number) => advance(grepModule, state, { kind: "click", column: 3, row: 6, count }, frame);
    assert.equal(click(1).state.list.cursor, 1);
    assert.deepEqual(click(2).go, { kind: "open", place: { kind: "messages", conversation, at: 2 } });
  });

  it("fits in every room", () => {
    const state = told(
      type(fresh, "dog").state,
      found(...[1, 2, 3, 4, 5, 6, 7].map((each) => hit(each, "船".repeat(90)))),
    );
    for (const [columns, rows] of [
      [40, 7],
      [80, 21],
      [200, 57],
    ] as const)
      for (const shown of [fresh, state, { ...state, where: "all" as const }]) {
        const lines = grepModule.draw(shown, { ...frame, columns, rows });
        assert.ok(lines.length <= rows && lines.every((line) => widthOf(line) <= columns), lines.join("\n"));
      }
  });
});
