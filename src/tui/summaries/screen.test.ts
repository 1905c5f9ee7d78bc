import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import fc from "fast-check";
import type { Conversation, ConversationId, MessageId, Sources, Totals } from "../../core/model/types.ts";
import { createPaint } from "../../format/paint.ts";
import type { AskAnswer, Ask } from "../asks.ts";
import type { Frame, Step } from "../contract.ts";
import { advance, open } from "../layers.ts";
import type { ItemDetail, SummaryFacts } from "./asks.ts";
import { previousText } from "./summary-keys.ts";
import { stripOf } from "./strip.ts";
import { keyOf } from "./tree.ts";
import type { TreeEntry } from "./tree.ts";
import { summariesModule } from "./screen.ts";
import type { SummariesScreen } from "./view.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { oneLine } from "../../format/safe-text.ts";

const at = "2026-02-17T07:37:00.000Z" as Timestamp;
const frame: Frame = {
  columns: 120,
  bounds: 120,
  rows: 33,
  paint: createPaint(false),
  zone: "UTC",
  typed: (words) => words,
  now: at,
  readOnly: null,
  beat: 0,
};
const conversation = 1 as ConversationId;
const totals: Totals = {
  messages: 9,
  messageTokens: 90,
  summaries: 3,
  contextItems: 4,
  contextTokens: 40,
  contextMessages: 1,
  contextMessageTokens: 10,
};
const about = {
  id: conversation,
  title: "talk",
  sessionKey: null,
  active: true,
  hidden: false,
  totals,
} as Conversation;

const entries: readonly TreeEntry[] = [
  { kind: "summary", id: "sum_a" },
  { kind: "summary", id: "sum_b" },
  { kind: "run", first: 9 as MessageId, last: 9 as MessageId, count: 1, tokens: 10, place: "tail" },
];

const facts = (id: SummaryFacts["id"], opening = "what was said"): SummaryFacts => ({
  id,
  depth: 1,
  level: "truncated",
  tokens: 12_345,
  from: 2,
  earliestAt: at,
  latestAt: at,
  isCarried: false,
  isStale: true,
  opening,
});

/** The answer to an ask, always from the same data. */
function answerTo(ask: Ask, opening?: string): AskAnswer | null {
  const sources = new Map<SummaryFacts["id"], Sources>([["sum_a", { messages: [], summaries: ["sum_c", "sum_d"] }]]);
  switch (ask.kind) {
    case "summaryTree": {
      const strip = stripOf([{ depth: 1, from: at }], at);
      return { kind: ask.kind, ask, result: { conversation: about, entries, outside: [], strip, others: true } };
    }
    case "summarySources":
      return { kind: ask.kind, ask, result: sources };
    case "rowFacts":
      return {
        kind: ask.kind,
        ask,
        result: { summaries: ask.summaries.map((id) => facts(id, opening)), messages: [] },
      };
    default:
      return null;
  }
}

/** Answers all asks until there are none left. */
function after(step: Step<SummariesScreen>, room = frame, opening?: string): SummariesScreen {
  let { state } = step;
  const asks = [...(step.asks ?? [])];
  for (let ask = asks.shift(); ask !== undefined; ask = asks.shift()) {
    const answer = answerTo(ask, opening);
    if (answer === null) continue;
    const next = advance(summariesModule, state, { kind: "answer", answer }, room);
    ({ state } = next);
    asks.push(...(next.asks ?? []));
  }
  return state;
}

const press = (state: SummariesScreen, name: string, room = frame): Step<SummariesScreen> =>
  advance(summariesModule, state, { kind: "pressed", name }, room);
const selected = ({ rows, list }: SummariesScreen): string | null => {
  const row = rows[list.cursor];
  return row === undefined ? null : keyOf(row);
};
const opened = (): SummariesScreen => after(open({ kind: "summaries", conversation }));

describe("the summaries screen", () => {
  it("starts at the top, whatever the order of answers", () => {
    const { state } = open({ kind: "summaries", conversation });
    const early = advance(
      summariesModule,
      state,
      {
        kind: "answer",
        answer: { kind: "summarySources", ask: { kind: "summarySources", ids: [] }, result: new Map() },
      },
      frame,
    );
    assert.deepEqual(early.state.rows, []);
  });

  it("keeps the cursor on its row when a change moves it", () => {
    const before = after(press(after(press(after(press(opened(), "enter")), "down")), "down"));
    assert.equal(selected(before), "sum_d");
    const step = advance(summariesModule, before, { kind: "changed" }, frame);
    assert.deepEqual(step.asks, [
      { kind: "summaryTree", conversation },
      { kind: "summarySources", ids: ["sum_a"], slot: "open" },
      { kind: "rowFacts", summaries: ["sum_a", "sum_c", "sum_d", "sum_b"], messages: [9, 9] },
      { kind: "itemDetail", of: "sum_d" },
    ]);
    // Dissolved meanwhile: its sources take its place.
    const dissolved: readonly TreeEntry[] = [
      { kind: "summary", id: "sum_c" },
      { kind: "summary", id: "sum_d" },
      ...entries.slice(1),
    ];
    const ask = { kind: "summaryTree", conversation } as const;
    const result = { conversation: about, entries: dissolved, outside: ["sum_a"], strip: null, others: true } as const;
    const next = advance(
      summariesModule,
      step.state,
      { kind: "answer", answer: { kind: "summaryTree", ask, result } },
      frame,
    );
    assert.deepEqual([selected(next.state), next.state.list.cursor], ["sum_d", 1]);
  });

  it("reads the facts of rows once, then what is still missing", () => {
    const top = answerTo({ kind: "summaryTree", conversation });
    assert.ok(top !== null);
    const first = advance(
      summariesModule,
      open({ kind: "summaries", conversation }).state,
      { kind: "answer", answer: top },
      frame,
    );
    assert.equal(first.asks?.filter(({ kind }) => kind === "rowFacts").length, 1);
    const second = press(first.state, "down");
    assert.equal(second.asks?.filter(({ kind }) => kind === "rowFacts").length, 0);
    assert.ok(second.asks?.some(({ kind }) => kind === "itemDetail"));
  });

  it("does not ask again for what no longer exists", () => {
    const state = opened();
    const lost = { ...state, summaries: new Map(), messages: new Map(), isReading: true };
    const ask = { kind: "rowFacts", summaries: ["sum_a", "sum_b"], messages: [9 as MessageId] } as const;
    const answer: AskAnswer = { kind: "rowFacts", ask, result: { summaries: [], messages: [] } };
    const next = advance(summariesModule, lost, { kind: "answer", answer }, frame);
    assert.equal((next.asks ?? []).filter(({ kind }) => kind === "rowFacts").length, 0);
    assert.match(summariesModule.draw(next.state, frame).join("\n"), /sum_a +no longer exists/);
  });

  it("is not busy after a failed read", () => {
    const { state } = open({ kind: "summaries", conversation });
    assert.equal(summariesModule.isUnread?.(state), true);
    const failure = { code: "not_found", message: "conversation 1 no longer exists", hint: null };
    const ask = { kind: "summaryTree", conversation } as const;
    const failed = advance(summariesModule, state, { kind: "failed", ask, failure }, frame);
    assert.equal(summariesModule.isUnread?.(failed.state), false);
    assert.match(summariesModule.draw(failed.state, frame).join("\n"), /conversation 1 no longer exists/);
  });

  it("never shows the details of another row", () => {
    const state = after(press(opened(), "down"));
    assert.equal(selected(state), "sum_b");
    const result = {
      kind: "message",
      message: { id: 3 as MessageId, role: "user", tokens: 1, at, opening: "", seq: 3 },
    };
    const detail = { ...result, text: "late" } as ItemDetail;
    const answer: AskAnswer = { kind: "itemDetail", ask: { kind: "itemDetail", of: "sum_a" }, result: detail };
    assert.equal(advance(summariesModule, state, { kind: "answer", answer }, frame).state.detail?.result, null);
  });

  it("explains why a key has nothing to act on", () => {
    const state = after(press(opened(), "G"));
    const reasons = summariesModule.keys
      .filter(({ keys: [key = ""] }) => ["w", "d", "W", "p"].includes(key))
      .map((binding) => binding.disabled?.(state, frame));
    assert.deepEqual(
      reasons,
      Array.from({ length: 4 }, () => "these are messages, not a summary"),
    );
    assert.ok(summariesModule.keys.filter(({ changes }) => changes).length === 6);
  });

  it("opens the messages at the selected one, or at the first of a run", () => {
    const { go } = press(after(press(opened(), "G")), "enter");
    assert.deepEqual(go, { kind: "open", place: { kind: "messages", conversation, at: 9 } });
  });

  it("reports a summary that is not in the conversation, and shows the others", () => {
    const step = open({ kind: "summaries", conversation, at: "sum_z" });
    const ask = { kind: "summaryPath", conversation, summary: "sum_z" } as const;
    const next = advance(
      summariesModule,
      after(step),
      { kind: "answer", answer: { kind: "summaryPath", ask, result: null } },
      frame,
    );
    assert.match(next.notice?.text ?? "", /sum_z is no longer in conversation 1/);
    assert.equal(selected(next.state), "sum_a");
  });

  it("fits every room, and no text can move the terminal's cursor", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 10, max: 220 }),
        fc.integer({ min: 1, max: 60 }),
        fc.string({ unit: fc.constantFrom("a", " ", "\n", "\u001b", "\u009b", "\u202e", "漢", "👩‍🚀", "é") }),
        fc.boolean(),
        (columns, rows, text, isTurned) => {
          const room = { ...frame, columns, rows };
          const read = after(open({ kind: "summaries", conversation }), room, oneLine(text));
          const result: ItemDetail = {
            kind: "message",
            message: { id: 9 as MessageId, role: "user", tokens: 1, at, opening: "", seq: 9 },
            text: `a\u001b[2Jb\tc\r${text}`,
          };
          const state: SummariesScreen = { ...read, isTurned, detail: { key: "sum_a", result } };
          for (const line of summariesModule.draw(after(press(state, "enter", room), room), room)) {
            assert.ok(visibleWidth(line) <= columns, `${visibleWidth(line)} > ${columns}: ${line}`);
            assert.doesNotMatch(line.replaceAll("\u001b[0m", ""), /[\u0000-\u001f]/);
          }
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe("the previous context of a summary", () => {
  const words = (
    given: Partial<Parameters<typeof previousText>[0]>,
    depth = 0,
    level: "normal" | "truncated" = "normal",
  ) => {
    const summary = { id: "sum_a", depth, level, model: level === "normal" ? "some/model" : null } as const;
    const place = previousText({ summary, recorded: null, recomputed: null, ...given }, frame);
    assert.ok(place.kind === "text");
    return place.lines.join("\n");
  };

  it("is the recorded text", () => {
    assert.equal(words({ recorded: "what came before" }), "what came before");
  });

  it("explains why there is none, and what a rewrite would get", () => {
    assert.match(words({}, 2), /^None: only leaves and summaries of depth 1/);
    assert.match(words({}, 0, "truncated"), /^None: its text was made without a model/);
    assert.match(words({}), /^None is recorded[^]*A rewrite would get none/);
    assert.match(
      words({ recomputed: { id: "sum_b", text: "the day before" } }),
      /^None is recorded[^]*recomputed[^]*\(sum_b\)[^]*the day before$/,
    );
  });
});
