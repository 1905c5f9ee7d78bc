import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ConversationId, MessageId } from "../../core/model/types.ts";
import { createPaint } from "../../format/paint.ts";
import type { Frame, Step } from "../contract.ts";
import { advance, open } from "../layers.ts";
import { searchModule } from "./screen.ts";
import type { SearchScreen } from "./screen.ts";
import type { Found, Hit } from "../../operator/search.ts";
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
  hit: {
    kind: "message",
    id: id as MessageId,
    role: "user",
    seq: id,
    conversation,
    snippet,
    focus: { from: 0, to: 0 },
    at,
    score: 0,
  },
  where: "The ferry",
  snippet,
  matches,
});

const key = (state: SearchScreen, name: string): Step<SearchScreen> =>
  advance(searchModule, state, { kind: "key", key: { name, text: name.length === 1 ? name : "" } }, frame);
const type = (state: SearchScreen, text: string): Step<SearchScreen> =>
  [...text].reduce<Step<SearchScreen>>((step, each) => key(step.state, each), { state });
const result = (state: SearchScreen, found: Found): SearchScreen => {
  const ask = { kind: "search", pattern: "", mode: "full_text", scope: "both", where: "all", conversation } as const;
  return advance(searchModule, state, { kind: "answer", answer: { kind: "search", ask, result: found } }, frame).state;
};
const found = (...hits: readonly Hit[]): Found => ({ kind: "found", hits, caveats: [] });

const fresh = open({ kind: "search", conversation }).state;
const drawn = (state: SearchScreen): string => searchModule.draw(state, frame).join("\n");

describe("the search", () => {
  it("searches with every letter, and aborts the search before", () => {
    const step = type(fresh, "dog");
    const { mode, scope, where } = fresh;
    assert.deepEqual(step.asks, [{ kind: "search", pattern: "dog", mode, scope, where, conversation, slot: "search" }]);
    const empty = key(type(fresh, "d").state, "backspace");
    assert.deepEqual(empty.go, { kind: "stop", slot: "search" });
    assert.equal(empty.state.isSearching, false);
  });

  it("keeps the old hits until there is an answer", () => {
    const state = result(type(fresh, "dog").state, found(hit(1)));
    assert.match(drawn(type(state, "s").state), /words of 1/);
  });

  it("keeps the cursor on its hit when it searches again", () => {
    const state = key(key(result(type(fresh, "dog").state, found(hit(1), hit(2), hit(3))), "down").state, "down").state;
    const again = advance(searchModule, { ...state, isSearching: false }, { kind: "changed" }, frame);
    assert.equal(again.asks?.length, 1);
    assert.equal(result(again.state, found(hit(9), hit(1), hit(2), hit(3))).list.cursor, 3);
  });

  it("does not repeat a regular expression after every write", () => {
    const state = result(type({ ...fresh, mode: "regex" }, "d.g").state, found(hit(1)));
    assert.equal(advance(searchModule, state, { kind: "changed" }, frame).asks, undefined);
  });

  it("shows the match in a long line", () => {
    const snippet = `${"before ".repeat(20)}the dogs are here`;
    const from = snippet.indexOf("dogs");
    const lines = drawn(result(type(fresh, "dogs").state, found(hit(1, snippet, [[from, from + 4]]))));
    assert.match(lines, /…before .*the dogs are here/);
  });

  it("shows what stopped it, and then never claims that nothing matches", () => {
    const stopped: Found = {
      kind: "found",
      hits: [],
      caveats: [{ kind: "time", timeoutMs: 10_000, scanned: 5, of: 9_000 }],
    };
    const lines = drawn(result(type(fresh, "dog").state, stopped));
    assert.match(lines, /stopped at the time limit of 10 s after 5 of 9,000 rows/);
    assert.doesNotMatch(lines, /no matches/);
    assert.match(drawn(result(type(fresh, "dog").state, found())), /no matches/);
  });

  it("is not busy after a failure", () => {
    const { state } = type(fresh, "dog");
    const failure = { code: "unavailable", message: "locked", hint: null };
    const ask = {
      kind: "search",
      pattern: "dog",
      mode: "full_text",
      scope: "both",
      where: "all",
      conversation,
    } as const;
    assert.equal(advance(searchModule, state, { kind: "failed", ask, failure }, frame).state.isSearching, false);
  });

  it("selects a hit with a click, and opens it with a double click", () => {
    const state = result(type(fresh, "dog").state, found(hit(1), hit(2)));
    const click = (count: number) => advance(searchModule, state, { kind: "click", column: 3, row: 6, count }, frame);
    assert.equal(click(1).state.list.cursor, 1);
    assert.deepEqual(click(2).go, { kind: "open", place: { kind: "messages", conversation, at: 2 } });
  });

  it("fits in every room", () => {
    const state = result(
      type(fresh, "dog").state,
      found(...[1, 2, 3, 4, 5, 6, 7].map((each) => hit(each, "船".repeat(90)))),
    );
    for (const [columns, rows] of [
      [40, 7],
      [80, 21],
      [200, 57],
    ] as const)
      for (const shown of [fresh, state, { ...state, where: "all" as const }]) {
        const lines = searchModule.draw(shown, { ...frame, columns, rows });
        assert.ok(lines.length <= rows && lines.every((line) => widthOf(line) <= columns), lines.join("\n"));
      }
  });
});
