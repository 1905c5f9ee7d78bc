import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AssemblyReport, Origin } from "../../core/assembly/assemble.ts";
import type { ContextItem, Conversation, ConversationId, MessageId, SummaryId } from "../../core/model/types.ts";
import { createPaint } from "../../format/paint.ts";
import type { Frame, LayerEvent, Step } from "../contract.ts";
import { advance, open } from "../layers.ts";
import type { LeftRow, Prompt } from "./asks.ts";
import { contextModule } from "./screen.ts";
import type { ContextScreen } from "./view.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { widthOf } from "../../format/width.ts";

const conversation = 1 as ConversationId;
const at = "2026-02-17T07:37:00.000Z" as Timestamp;
const frame: Frame = {
  columns: 80,
  bounds: 80,
  rows: 21,
  paint: createPaint(false),
  zone: "UTC",
  typed: (words) => words,
  now: at,
  readOnly: null,
  beat: 0,
};

const sumId = (n: number): SummaryId => `sum_${String(n).padStart(16, "0")}`;
const summary = (n: number, tokens: number): Origin => ({ kind: "summary", id: sumId(n), depth: 0, tokens });
const said = (n: number, part: "older" | "tail", tokens = 100): Origin => ({
  kind: "message",
  id: n as MessageId,
  role: "user",
  part,
  tokens,
});

function prompt(origins: readonly Origin[], given: Partial<Prompt> = {}): Prompt {
  const tokens = origins.reduce((sum, origin) => sum + origin.tokens, 0);
  const none = { items: 0, tokens: 0 };
  const left = given.left?.count ?? 0;
  const report: AssemblyReport = {
    budget: 1_000,
    tokens,
    outcome: left === 0 ? "whole" : "evicted",
    summaries: none,
    finer: { items: 0, tokens: 0 },
    older: none,
    tail: { items: 1, tokens },
    notes: none,
    evicted: { items: left, tokens: left * 10 },
    leftOut: none,
    standIns: 0,
    loose: 0,
    shortened: 0,
    depths: [],
    standing: { items: 0, tokens: 0, left: 0 },
    origins,
  };
  let sum = 0;
  const entries = origins.map((origin) => {
    sum += origin.tokens;
    const words = origin.kind === "note" ? "a note" : `words of ${origin.id}`;
    const shown = { role: "user", content: `the whole ${words}\nin two lines` };
    return { origin, shown, range: [at, at] as const, words, sum, why: [] };
  });
  const totals = { contextItems: origins.length + left };
  return {
    conversation: { id: conversation, promptBudget: null, totals } as Conversation,
    report,
    thresholdTokens: 750,
    entries,
    left: { count: 0, boundary: 0, from: 0, rows: [] },
    smallest: null,
    ...given,
  };
}

const leftRow = (position: number): LeftRow => {
  const item: ContextItem = {
    kind: "message",
    id: (9_000 + position) as MessageId,
    ordinal: position,
    tokens: 10,
    depth: -1,
  };
  return { item, role: "user", range: [at, at], words: `old words ${position}` };
};
const leftRows = (from: number, to: number): readonly LeftRow[] =>
  Array.from({ length: to - from }, (_, n) => leftRow(from + n));

type Event = LayerEvent;
const after = (state: ContextScreen, ...events: readonly Event[]): Step<ContextScreen> =>
  events.reduce<Step<ContextScreen>>((step, event) => advance(contextModule, step.state, event, frame), { state });
const result = (given: Prompt): Event => ({
  kind: "answer",
  answer: { kind: "prompt", ask: { kind: "prompt", conversation, budget: null }, result: given },
});
const act = (name: string): Event => ({ kind: "pressed", name });
const typing = (text: string): readonly Event[] => [
  act("b"),
  ...[...text].map((letter): Event => ({ kind: "key", key: { name: letter, text: letter } })),
  { kind: "key", key: { name: "enter", text: "" } },
];
const reading = (given: Prompt): ContextScreen =>
  after(open({ kind: "context", conversation }).state, result(given)).state;
const lines = (state: ContextScreen): readonly string[] => contextModule.draw(state, frame);

const usual = prompt([summary(1, 300), said(1, "older", 400), said(2, "tail"), said(3, "tail")]);

describe("the prompt", () => {
  it("shows each item with its tokens and the total, the threshold and the fresh tail", () => {
    const shown = lines(reading(usual))
      .slice(-7)
      .map((line) => line.replace(/\s+/g, " ").trim());
    assert.match(shown[1] ?? "", /^▸ d0 300 .* 300 02-17 07:37 words of sum_/);
    assert.match(shown[2] ?? "", /^user 400 .* 700 /);
    assert.match(shown[3] ?? "", /^── compaction threshold, 750 tokens/);
    assert.match(shown[4] ?? "", /^── fresh tail/);
    assert.match(shown[5] ?? "", /^user 100 .* 800 /);
  });

  it("keeps the cursor on its item when the prompt changes", () => {
    const state = after(reading(usual), act("down"), act("down")).state;
    const next = after(state, result(prompt([said(2, "tail"), said(3, "tail"), said(4, "tail")]))).state;
    assert.equal(next.list.cursor, 0);
  });

  it("opens the summary or message, and offers summary keys only on summaries", () => {
    const state = reading(usual);
    assert.deepEqual(after(state, act("enter")).go, {
      kind: "open",
      place: { kind: "summaries", conversation, at: sumId(1) },
    });
    const below = after(state, act("down"));
    assert.deepEqual(after(below.state, act("enter")).go, {
      kind: "open",
      place: { kind: "messages", conversation, at: 1 },
    });
    const dissolve = contextModule.keys.find(({ keys }) => keys.includes("d"));
    assert.equal(dissolve?.changes, true);
    assert.equal(dissolve.disabled?.(state, frame), null);
    assert.match(dissolve.disabled?.(below.state, frame) ?? "", /not a summary/);
  });

  it("selects the clicked item, whatever lines are in between", () => {
    const state = reading(usual);
    const row = lines(state).findIndex((line) => line.includes("words of 3"));
    assert.equal(after(state, { kind: "click", column: 5, row, count: 1 }).state.list.cursor, 3);
    const rule = lines(state).findIndex((line) => line.includes("fresh tail ─"));
    assert.equal(after(state, { kind: "click", column: 5, row: rule, count: 1 }).state.list.cursor, 0);
    // Without those lines more items are visible; the last of them can be clicked, too.
    const long = reading(prompt([...Array.from({ length: 40 }, (_, n) => said(n, "older", 1)), said(99, "tail")]));
    const last = Number(/words of (\d+)/.exec(lines(long)[frame.rows - 1] ?? "")?.[1]);
    assert.equal(after(long, { kind: "click", column: 5, row: frame.rows - 1, count: 1 }).state.list.cursor, last);
  });
});

describe("a trial budget", () => {
  it("accepts common notations", () => {
    for (const [text, budget] of [
      ["32000", 32_000],
      ["32k", 32_000],
      ["1.5k", 1_500],
      ["1m", 1_000_000],
    ] as const)
      assert.deepEqual(after(reading(usual), ...typing(text)).asks, [{ kind: "prompt", conversation, budget }]);
  });

  it("is refused with a hint if it is invalid", () => {
    for (const text of ["many", "0", "3000000", "-5"]) {
      const step = after(reading(usual), ...typing(text));
      assert.equal(step.asks, undefined);
      assert.match(step.notice?.text ?? "", /up to 2,000,000, such as 32000 or 32k/);
    }
  });

  it("goes up and down in steps, and back to the host's budget", () => {
    const more = after(reading(usual), act("+"));
    assert.deepEqual(more.asks, [{ kind: "prompt", conversation, budget: 2_000 }]);
    assert.deepEqual(after(more.state, act("+")).asks, [{ kind: "prompt", conversation, budget: 4_000 }]);
    assert.deepEqual(after(more.state, act("-")).asks, [{ kind: "prompt", conversation, budget: 1_000 }]);
    assert.deepEqual(after(more.state, act("B")).asks, [{ kind: "prompt", conversation, budget: null }]);
  });
});

describe("items left out", () => {
  const million = prompt([said(1, "tail"), said(2, "tail")], {
    left: { count: 1_000_000, boundary: 1_000_000, from: 999_700, rows: leftRows(999_700, 1_000_000) },
  });

  it("are listed above, with a line that gives their count and tokens", () => {
    const shown = lines(reading(million)).join("\n");
    assert.match(shown, /old words 999999/);
    assert.match(shown, /── ↑ left out at 1,000 tokens: 1,000,000 items, 10,000,000 tokens/);
    assert.match(shown, /▸ user .*words of 1/);
  });

  it("are read in windows, ahead of the cursor, each once", () => {
    let step: Step<ContextScreen> = { state: reading(million) };
    const asked: unknown[] = [];
    for (let page = 0; page < 30; page++) {
      step = after(step.state, act("pageUp"));
      for (const ask of step.asks ?? []) {
        assert.equal(ask.kind, "leftOut");
        asked.push(ask);
      }
    }
    assert.equal(asked.length, 1);
  });

  it("have every row, scrolled up from the prompt or down from the oldest", () => {
    let state = reading(million);
    const perform = (step: Step<ContextScreen>): ContextScreen =>
      (step.asks ?? []).reduce((next, ask) => {
        if (ask.kind !== "leftOut") return next;
        const { side, position } = ask.anchor;
        const from = side === "before" ? Math.max(0, position - 300) : position + 1;
        const rows = leftRows(from, side === "before" ? position : Math.min(1_000_000, from + 300));
        return after(next, { kind: "answer", answer: { kind: "leftOut", ask, result: { from, rows } } }).state;
      }, step.state);
    for (const name of [...Array(100).fill("pageUp"), "g", ...Array(100).fill("pageDown"), "G", "up"] as const) {
      state = perform(after(state, act(name)));
      const shown = lines(state);
      assert.ok(!shown.some((line) => line.trim() === "…" || line.trim() === "▸ …"), shown.join("\n"));
      for (const line of shown) assert.ok(widthOf(line) <= frame.columns);
    }
  });

  it("are drawn as dots until they are read", () => {
    const state = after(reading(million), act("g")).state;
    assert.match(lines(state).join("\n"), /▸ …/);
  });
});

describe("the preview", () => {
  it("shows the selected item as the model gets it, and scrolls", () => {
    const state = after(reading(usual), act("down"), act("v")).state;
    assert.match(
      lines(state).join("\n"),
      /text in the prompt[^]*── user msg_0-1, as user, 400 tokens[^]*the whole words of 1/,
    );
    assert.doesNotMatch(lines(after(state, act("v")).state).join("\n"), /text in the prompt/);
  });

  it("shows the whole prompt in order", () => {
    const { go } = after(reading(usual), act("V"));
    assert.ok(go?.kind === "open" && go.place.kind === "text");
    const text = go.place.lines.join("\n");
    assert.ok(text.indexOf("the whole words of sum_") < text.indexOf("the whole words of 3\nin two lines"));
  });
});
