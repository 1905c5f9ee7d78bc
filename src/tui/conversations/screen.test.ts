import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Conversation, ConversationId } from "../../core/model/types.ts";
import { ago, useBar, useShare } from "../../format/conversations.ts";
import { createPaint } from "../../format/paint.ts";
import type { Frame, LayerEvent, Step } from "../contract.ts";
import { advance, open } from "../layers.ts";
import type { ConversationRow } from "../../operator/conversations.ts";
import { conversationsModule } from "./screen.ts";
import type { ConversationsScreen } from "./screen.ts";
import { msToTimestamp, timestampToMs } from "../../core/base/time.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { widthOf } from "../../format/width.ts";

const now = "2026-02-17T07:37:00.000Z" as Timestamp;
const frame: Frame = {
  columns: 80,
  bounds: 80,
  rows: 21,
  paint: createPaint(false),
  zone: "UTC",
  typed: (words) => words,
  now,
  readOnly: null,
  beat: 0,
};

const minutesAgo = (minutes: number): Timestamp => msToTimestamp(timestampToMs(now) - minutes * 60_000);

function row(id: number, given: Partial<Conversation> = {}, use: Partial<ConversationRow> = {}): ConversationRow {
  const totals = {
    messages: id,
    messageTokens: 10 * id,
    summaries: 0,
    contextItems: id,
    contextTokens: 10 * id,
    contextMessages: id,
    contextMessageTokens: 10 * id,
  };
  const conversation: Conversation = {
    id: id as ConversationId,
    sessionId: `session-${id}`,
    sessionKey: `agent:main:${id}`,
    agentId: "main",
    folder: null,
    parentSessionId: null,
    active: true,
    hidden: false,
    title: null,
    createdAt: minutesAgo(100 + id),
    updatedAt: minutesAgo(id),
    lastMessageAt: minutesAgo(id),
    totals,
    revision: 1,
    hostCursor: null,
    fileCursor: null,
    forgets: 0,
    caughtUp: 0,
    promptBudget: null,
    ...given,
  };
  return { conversation, promptTokens: 10 * id, budget: 1_000, thresholdTokens: 750, stalled: null, ...use };
}

type Event = LayerEvent;

const after = (state: ConversationsScreen, ...events: readonly Event[]): Step<ConversationsScreen> =>
  events.reduce<Step<ConversationsScreen>>((step, event) => advance(conversationsModule, step.state, event, frame), {
    state,
  });

const result = (rows: readonly ConversationRow[]): Event => ({
  kind: "answer",
  answer: { kind: "conversations", ask: { kind: "conversations" }, result: rows },
});
const key = (name: string, text = name.length === 1 ? name : ""): Event => ({ kind: "key", key: { name, text } });
const act = (name: string): Event => ({ kind: "pressed", name });

const listing = (rows: readonly ConversationRow[], ...events: readonly Event[]): ConversationsScreen =>
  after(open({ kind: "conversations" }).state, result(rows), ...events).state;
const ids = ({ listing: { placed } }: ConversationsScreen): readonly number[] =>
  placed.map(({ conversation }) => conversation.id);
const screen = (state: ConversationsScreen, room: Frame = frame): string =>
  conversationsModule.draw(state, room).join("\n");

describe("which conversations are listed", () => {
  it("sorts by activity, cycles the order with o, and shows it", () => {
    const rows = [row(2), row(1), row(3)];
    assert.deepEqual(ids(listing(rows)), [1, 2, 3]);
    const byMessages = listing(rows, act("o"));
    assert.deepEqual(ids(byMessages), [3, 2, 1]);
    assert.match(screen(byMessages), /most messages first/);
    const byName = listing([row(1, { title: "b" }), row(2, { title: "A" })], ...Array(4).fill(act("o")));
    assert.deepEqual(ids(byName), [2, 1]);
  });

  it("filters by title, key, number and agent with every letter; esc clears the filter", () => {
    const rows = [row(1, { title: "The Ferry" }), row(2, { agentId: "scout" }), row(3)];
    const typing = listing(rows, act("/"), key("f"), key("E"), key("r"));
    assert.deepEqual(ids(typing), [1]);
    assert.match(screen(typing), /filter: fEr.*1 of 3 conversations/);
    assert.deepEqual(ids(after(typing, key("escape")).state), [1, 2, 3]);
    const kept = after(typing, key("enter")).state;
    assert.equal(conversationsModule.isTyping?.(kept), false);
    assert.deepEqual(ids(kept), [1]);
    assert.match(screen(kept), /matching "fEr"/);
    assert.deepEqual(ids(after(kept, act("escape")).state), [1, 2, 3]);
    assert.deepEqual(ids(listing(rows, act("/"), key("scout", "scout"))), [2]);
    assert.deepEqual(ids(listing(rows, act("/"), key("main:3", "main:3"))), [3]);
  });

  it("groups the segments of a session below the newest", () => {
    const key1 = { sessionKey: "agent:main:ferry", title: "The ferry" };
    const rows = [row(1, { ...key1, active: false }), row(2), row(3, key1), row(4, { ...key1, agentId: "other" })];
    const grouped = listing(rows, act("f"));
    assert.deepEqual(ids(grouped), [3, 1, 2, 4]);
    assert.match(screen(grouped), /1  └ The ferry/);
  });

  it("lists hidden conversations only on request, and shows how many there are", () => {
    const rows = [row(1), row(2, { hidden: true })];
    assert.deepEqual(ids(listing(rows)), [1]);
    assert.match(screen(listing(rows)), /1 hidden/);
    assert.deepEqual(ids(listing(rows, act("."))), [1, 2]);
    assert.match(screen(listing(rows, act("."))), /\(hidden\)/);
  });

  it("cycles through the agents and back to all", () => {
    const rows = [row(1), row(2, { agentId: "scout" }), row(3, { agentId: null })];
    assert.deepEqual(
      [1, 2, 3, 4].map((times) => ids(listing(rows, ...Array(times).fill(act("a"))))),
      [[3], [1], [2], [1, 2, 3]],
    );
  });

  it("keeps the cursor on its conversation when the order changes", () => {
    const state = listing([row(1), row(2), row(3)], act("down"));
    const next = after(state, result([row(1), row(2), row(3, { lastMessageAt: now })])).state;
    assert.deepEqual(ids(next), [3, 1, 2]);
    assert.equal(next.list.cursor, 2);
  });
});

describe("the facts of a conversation", () => {
  it("shows how long ago it was active, or the day if that is long ago", () => {
    const times = [0, 3, 59, 61, 60 * 26, 60 * 24 * 30].map((minutes) => ago(minutesAgo(minutes), now, "UTC"));
    assert.deepEqual(times, ["just now", "3 min ago", "59 min ago", "1 h ago", "1 d ago", "2026-01-18"]);
  });

  it("names the folder of its session and the session that started it, and is found by the folder", () => {
    const rows = [row(1, { folder: "/home/ann/pier", parentSessionId: "session-9" }), row(2)];
    const wide = { ...frame, columns: 140, bounds: 140 };
    const drawn = (state: ReturnType<typeof listing>) => conversationsModule.draw(state, wide).join("\n");
    assert.match(drawn(listing(rows)), /folder +\/home\/ann\/pier[^]*started by +session-9/);
    assert.doesNotMatch(drawn(listing(rows, act("down"))), /started by/);
    assert.deepEqual(ids(listing(rows, act("/"), key("pier", "pier"))), [1]);
  });

  it("draws the use of the context with its threshold", () => {
    const bars = [0, 1, 500, 800, 5_000].map((promptTokens) => {
      const use = { promptTokens, budget: 1_000, thresholdTokens: 750 };
      return `${useBar(use, 8, createPaint(false))} ${useShare(use)}`;
    });
    assert.deepEqual(bars, ["──────┼─ 0%", "━─────┼─ <1%", "━━━━──┼─ 50%", "━━━━━━┼─ 80%", "━━━━━━╋━ 500%"]);
  });

  it("is unchecked until it is checked, and again after a write", () => {
    const checked = { conversations: 1, messages: 1, summaries: 0 };
    const checkup = { revision: 1, groups: [], checked, count: 0 };
    const asked = after(listing([row(1)]), act("h"));
    assert.deepEqual(asked.asks, [{ kind: "checkup", conversation: 1 }]);
    assert.match(screen(asked.state), /checking …/);
    const ask = { kind: "checkup", conversation: 1 as ConversationId } as const;
    const known = after(asked.state, { kind: "answer", answer: { kind: "checkup", ask, result: checkup } });
    assert.equal(known.notice?.tone, "good");
    assert.match(screen(known.state), / healthy/);
    assert.match(screen(after(known.state, result([row(1, { revision: 2 })])).state), /unchecked/);
  });

  it("shows what needs no check: a due sweep, a context over budget, a failed compaction", () => {
    const health = (use: Partial<ConversationRow>): string => screen(listing([row(1, {}, use)]));
    assert.match(health({ promptTokens: 800 }), /sweep due/);
    assert.match(health({ promptTokens: 1_001 }), /too full/);
    assert.match(screen(listing([row(1, { active: false }, { promptTokens: 1_001 })])), /unchecked/);
    assert.match(health({ stalled: "the model refused" }), /stalled[^]*compaction failed: the model refused/);
  });
});

describe("the list of conversations", () => {
  const pieces = fc.constantFrom("a", "ferry", " ", "船の予約", "🚢", "é", "\u001b[31m", "\r\n", "\t", "\u202e");
  const names = fc.array(pieces, { maxLength: 20 }).map((each) => each.join(""));

  it("fits every room, whatever the titles contain", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ title: names, sessionKey: names, agentId: names }), { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 40, max: 200 }),
        fc.integer({ min: 7, max: 50 }),
        fc.boolean(),
        (given, columns, rows, isGrouped) => {
          const room = { ...frame, columns, bounds: columns, rows };
          const state = listing(
            given.map((each, at) => row(at + 1, each)),
            ...(isGrouped ? [act("f")] : []),
          );
          const lines = conversationsModule.draw(state, room);
          assert.ok(lines.length <= rows, `${lines.length} lines in ${rows}`);
          for (const line of lines) {
            assert.ok(widthOf(line) <= columns, JSON.stringify(line));
            assert.doesNotMatch(line.replaceAll("\u001b[0m", ""), /\p{Cc}/u);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it("draws only visible rows", () => {
    const state = listing(
      Array.from({ length: 5_000 }, (_, at) => row(at + 1)),
      act("G"),
    );
    assert.equal(conversationsModule.draw(state, frame).length, frame.rows);
    assert.match(screen(state), /▸ 5000/);
  });

  it("names the missing database, and how to create one", () => {
    const failure = { code: "not_found", message: "there is no database at ~/lcm.db", hint: null };
    const failed = after(open({ kind: "conversations" }).state, {
      kind: "failed",
      ask: { kind: "conversations" },
      failure,
    }).state;
    assert.match(screen(failed), /there is no database at ~\/lcm\.db\.[^]*Press i to import/);
    assert.equal(conversationsModule.isBusy?.(failed), false);
    const check = (state: typeof failed) =>
      conversationsModule.keys.find(({ keys }) => keys.includes("h"))?.disabled?.(state, frame);
    assert.equal(check(open({ kind: "conversations" }).state), "still reading");
    assert.equal(check(failed), "no conversation is selected");
    assert.equal(check({ ...failed, trouble: { ...failure, code: "corrupt" } }), "the database cannot be read");
    assert.match(screen(after(failed, result([row(1)])).state), /1 conversation /);
  });
});
