import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import fc from "fast-check";
import type { Conversation, ConversationId, MessageId, Sources, Totals } from "../../core/model/types.ts";
import { createPaint } from "../../format/paint.ts";
import type { Answer, Ask } from "../asks.ts";
import type { Frame, Step } from "../contract.ts";
import { advance, open } from "../layers.ts";
import type { DagDetail, SummaryFacts } from "./asks.ts";
import { previousText } from "./summary-keys.ts";
import { stripOf } from "./strip.ts";
import { keyOf } from "./tree.ts";
import type { Entry } from "./tree.ts";
import { dagModule } from "./screen.ts";
import type { DagScreen } from "./view.ts";
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

const entries: readonly Entry[] = [
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

/** What would be answered, from the same data each time. */
function answerTo(ask: Ask, opening?: string): Answer | null {
  const sources = new Map<SummaryFacts["id"], Sources>([["sum_a", { messages: [], summaries: ["sum_c", "sum_d"] }]]);
  switch (ask.kind) {
    case "dagTop": {
      const strip = stripOf([{ depth: 1, from: at }], at);
      return { kind: ask.kind, ask, told: { conversation: about, entries, outside: [], strip } };
    }
    case "dagSources":
      return { kind: ask.kind, ask, told: sources };
    case "dagFacts":
      return {
        kind: ask.kind,
        ask,
        told: { summaries: ask.summaries.map((id) => facts(id, opening)), messages: [] },
      };
    default:
      return null;
  }
}

/** With everything answered that is asked. */
function after(step: Step<DagScreen>, room = frame, opening?: string): DagScreen {
  let { state } = step;
  const asks = [...(step.asks ?? [])];
  for (let ask = asks.shift(); ask !== undefined; ask = asks.shift()) {
    const answer = answerTo(ask, opening);
    if (answer === null) continue;
    const next = advance(dagModule, state, { kind: "answer", answer }, room);
    ({ state } = next);
    asks.push(...(next.asks ?? []));
  }
  return state;
}

const press = (state: DagScreen, name: string, room = frame): Step<DagScreen> =>
  advance(dagModule, state, { kind: "pressed", name }, room);
const selected = ({ rows, list }: DagScreen): string | null => {
  const row = rows[list.cursor];
  return row === undefined ? null : keyOf(row);
};
const opened = (): DagScreen => after(open({ kind: "dag", conversation }));

describe("the screen of summaries", () => {
  it("begins at the top, whatever is answered before the top is known", () => {
    const { state } = open({ kind: "dag", conversation });
    const early = advance(
      dagModule,
      state,
      { kind: "answer", answer: { kind: "dagSources", ask: { kind: "dagSources", ids: [] }, told: new Map() } },
      frame,
    );
    assert.deepEqual(early.state.rows, []);
  });

  it("stays on what is selected when it stands elsewhere after a change", () => {
    const before = after(press(after(press(after(press(opened(), "enter")), "down")), "down"));
    assert.equal(selected(before), "sum_d");
    const step = advance(dagModule, before, { kind: "changed" }, frame);
    assert.deepEqual(step.asks, [
      { kind: "dagTop", conversation },
      { kind: "dagSources", ids: ["sum_a"], slot: "open" },
      { kind: "dagFacts", summaries: ["sum_a", "sum_c", "sum_d", "sum_b"], messages: [9, 9] },
      { kind: "dagDetail", of: "sum_d" },
    ]);
    // Dissolved meanwhile: what it was made from stands in its place.
    const dissolved: readonly Entry[] = [
      { kind: "summary", id: "sum_c" },
      { kind: "summary", id: "sum_d" },
      ...entries.slice(1),
    ];
    const ask = { kind: "dagTop", conversation } as const;
    const told = { conversation: about, entries: dissolved, outside: ["sum_a"], strip: null } as const;
    const next = advance(dagModule, step.state, { kind: "answer", answer: { kind: "dagTop", ask, told } }, frame);
    assert.deepEqual([selected(next.state), next.state.list.cursor], ["sum_d", 1]);
  });

  it("asks for what rows say once, and for what is missing when that has come", () => {
    const top = answerTo({ kind: "dagTop", conversation });
    assert.ok(top !== null);
    const first = advance(dagModule, open({ kind: "dag", conversation }).state, { kind: "answer", answer: top }, frame);
    assert.equal(first.asks?.filter(({ kind }) => kind === "dagFacts").length, 1);
    const second = press(first.state, "down");
    assert.equal(second.asks?.filter(({ kind }) => kind === "dagFacts").length, 0);
    assert.ok(second.asks?.some(({ kind }) => kind === "dagDetail"));
  });

  it("does not ask for ever for what is gone", () => {
    const state = opened();
    const lost = { ...state, summaries: new Map(), messages: new Map(), isReading: true };
    const ask = { kind: "dagFacts", summaries: ["sum_a", "sum_b"], messages: [9 as MessageId] } as const;
    const answer: Answer = { kind: "dagFacts", ask, told: { summaries: [], messages: [] } };
    const next = advance(dagModule, lost, { kind: "answer", answer }, frame);
    assert.equal((next.asks ?? []).filter(({ kind }) => kind === "dagFacts").length, 0);
    assert.match(dagModule.draw(next.state, frame).join("\n"), /sum_a +is not there any more/);
  });

  it("is not busy for ever when it cannot be read", () => {
    const { state } = open({ kind: "dag", conversation });
    assert.equal(dagModule.isUnread?.(state), true);
    const failure = { code: "not_found", message: "there is no conversation 1 any more", hint: null };
    const ask = { kind: "dagTop", conversation } as const;
    const failed = advance(dagModule, state, { kind: "failed", ask, failure }, frame);
    assert.equal(dagModule.isUnread?.(failed.state), false);
    assert.match(dagModule.draw(failed.state, frame).join("\n"), /there is no conversation 1 any more/);
  });

  it("keeps the detail of another row out of sight", () => {
    const state = after(press(opened(), "down"));
    assert.equal(selected(state), "sum_b");
    const told = { kind: "message", message: { id: 3 as MessageId, role: "user", tokens: 1, at, opening: "", seq: 3 } };
    const detail = { ...told, text: "late" } as DagDetail;
    const answer: Answer = { kind: "dagDetail", ask: { kind: "dagDetail", of: "sum_a" }, told: detail };
    assert.equal(advance(dagModule, state, { kind: "answer", answer }, frame).state.detail?.told, null);
  });

  it("says why a key has nothing to act on", () => {
    const state = after(press(opened(), "G"));
    const reasons = dagModule.keys
      .filter(({ keys: [key = ""] }) => ["w", "d", "W", "p"].includes(key))
      .map((binding) => binding.disabled?.(state, frame));
    assert.deepEqual(
      reasons,
      Array.from({ length: 4 }, () => "these are messages, not a summary"),
    );
    assert.ok(dagModule.keys.filter(({ changes }) => changes).length === 4);
  });

  it("goes to the messages at a message, and at the first of a run", () => {
    const { go } = press(after(press(opened(), "G")), "enter");
    assert.deepEqual(go, { kind: "open", place: { kind: "messages", conversation, at: 9 } });
  });

  it("says of a summary that is not in this conversation, and shows the others", () => {
    const step = open({ kind: "dag", conversation, at: "sum_z" });
    const ask = { kind: "dagPath", conversation, summary: "sum_z" } as const;
    const next = advance(
      dagModule,
      after(step),
      { kind: "answer", answer: { kind: "dagPath", ask, told: null } },
      frame,
    );
    assert.match(next.notice?.text ?? "", /sum_z is not in conversation 1/);
    assert.equal(selected(next.state), "sum_a");
  });

  it("fits every room, with text of strangers in it that moves no cursor", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 10, max: 220 }),
        fc.integer({ min: 1, max: 60 }),
        fc.string({ unit: fc.constantFrom("a", " ", "\n", "\u001b", "\u009b", "\u202e", "漢", "👩‍🚀", "é") }),
        fc.boolean(),
        (columns, rows, text, isTurned) => {
          const room = { ...frame, columns, rows };
          const read = after(open({ kind: "dag", conversation }), room, oneLine(text));
          const told: DagDetail = {
            kind: "message",
            message: { id: 9 as MessageId, role: "user", tokens: 1, at, opening: "", seq: 9 },
            text: `a\u001b[2Jb\tc\r${text}`,
          };
          const state: DagScreen = { ...read, isTurned, detail: { key: "sum_a", told } };
          for (const line of dagModule.draw(after(press(state, "enter", room), room), room)) {
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

  it("is the text that was recorded", () => {
    assert.equal(words({ recorded: "what came before" }), "what came before");
  });

  it("says honestly why there is none, and what a rewrite would be given", () => {
    assert.match(words({}, 2), /^None was given: only leaves and summaries of depth 1/);
    assert.match(words({}, 0, "truncated"), /^None was given: its text was made without a model/);
    assert.match(words({}), /^None is recorded[^]*A rewrite would be given none/);
    assert.match(
      words({ recomputed: { id: "sum_b", text: "the day before" } }),
      /^None is recorded[^]*recomputed[^]*\(sum_b\)[^]*the day before$/,
    );
  });
});
