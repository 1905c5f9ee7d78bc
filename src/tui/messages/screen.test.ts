import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { ConversationId, MessageId } from "../../core/model/types.ts";
import { createPaint } from "../../format/paint.ts";
import type { Frame, Step } from "../contract.ts";
import { advance, open } from "../layers.ts";
import type { AskAnswer } from "../asks.ts";
import type { MessagesPage, ShownMessage } from "./asks.ts";
import { messagesModule } from "./screen.ts";
import type { MessagesScreen } from "./screen.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { widthOf } from "../../format/width.ts";

const conversation = 1 as ConversationId;
const frame: Frame = {
  columns: 60,
  bounds: 60,
  rows: 14,
  paint: createPaint(false),
  zone: "UTC",
  typed: (words) => words,
  now: "2026-02-17T07:37:00.000Z" as Timestamp,
  readOnly: null,
  beat: 0,
};

const message = (seq: number, ...lines: readonly string[]): ShownMessage => ({
  id: (1_000 + seq) as MessageId,
  seq,
  role: seq % 2 === 0 ? "assistant" : "user",
  at: "2026-02-17T07:37:00.000Z" as Timestamp,
  tokens: 7,
  aside: null,
  pieces: [{ kind: "said", lines: lines.length === 0 ? [`words of ${seq}`] : lines, count: Math.max(1, lines.length) }],
  isWhole: true,
  files: [],
  marks: [],
});

const stretch = (from: number, to: number): readonly ShownMessage[] =>
  Array.from({ length: to - from + 1 }, (_, at) => message(from + at));

const page = (from: number, to: number, of: number): MessagesPage => ({
  conversation: { name: "The ferry", messages: of },
  messages: stretch(from, to),
  isFirst: from === 1,
  isLast: to === of,
});

const press = (state: MessagesScreen, ...names: readonly string[]): Step<MessagesScreen> =>
  names.reduce<Step<MessagesScreen>>(
    (step, name) => advance(messagesModule, step.state, { kind: "pressed", name }, frame),
    { state },
  );

const answer = (state: MessagesScreen, result: AskAnswer): Step<MessagesScreen> =>
  advance(messagesModule, state, { kind: "answer", answer: result }, frame);

/** The state after it was opened at the newest message, or at a place. */
const opened = (held: MessagesPage, cursor = held.messages.at(-1)?.seq ?? 0): MessagesScreen => {
  const { state } = open({ kind: "messages", conversation });
  const ask = { kind: "messagesAt", conversation, place: { kind: "newest" } } as const;
  return answer(state, { kind: "messagesAt", ask, result: { kind: "found", page: held, cursor } }).state;
};

const drawn = (state: MessagesScreen): string => messagesModule.draw(state, frame).join("\n");

describe("the messages", () => {
  it("load a few pages of a million, and read more before it is reached", () => {
    let state = opened(page(999_961, 1_000_000, 1_000_000));
    let asked = 0;
    for (let step = 0; step < 2_000; step++) {
      const moved = press(state, "up");
      ({ state } = moved);
      for (const ask of moved.asks ?? []) {
        assert.ok(ask.kind === "messagesAround");
        asked += 1;
        const result = page(ask.seq - 80, Math.min(1_000_000, ask.seq + 79), 1_000_000);
        ({ state } = answer(state, { kind: "messagesAround", ask, result }));
      }
      assert.ok((state.page?.messages.length ?? 0) <= 240);
      assert.equal(state.cursor, 999_999 - step);
    }
    assert.equal(state.page?.isLast, false);
    assert.equal(asked, 36);
    assert.match(drawn(state), /message 998,000 of 1,000,000/);
  });

  it("read the next page once, however often a key is pressed", () => {
    const first = press(opened(page(961, 1_000, 2_000), 970), "up");
    assert.deepEqual(
      first.asks?.map(({ kind }) => kind),
      ["messagesAround"],
    );
    assert.equal(press(first.state, "up").asks, undefined);
    const again = advance(
      messagesModule,
      first.state,
      {
        kind: "failed",
        ask: { kind: "messagesAround", conversation, seq: 969 },
        failure: { code: "unavailable", message: "locked", hint: null },
      },
      frame,
    );
    assert.notEqual(press(again.state, "up").asks, undefined, "what failed is asked for again");
  });

  it("ignore an answer for a place that was left", () => {
    const { state } = press(opened(page(961, 1_000, 2_000), 970), "up");
    const elsewhere = opened(page(1, 40, 2_000), 20);
    const ask = { kind: "messagesAround", conversation, seq: 969 } as const;
    const { isReading } = state;
    const late = answer({ ...elsewhere, isReading }, { kind: "messagesAround", ask, result: page(889, 1_048, 2_000) });
    assert.deepEqual(late.state.page, elsewhere.page);
  });

  it("open at the requested message, whatever is written meanwhile", () => {
    const changed = (state: MessagesScreen) => advance(messagesModule, state, { kind: "changed" }, frame).asks;
    const wanted = { kind: "message", id: 7 as MessageId } as const;
    const opening = open({ kind: "messages", conversation, at: wanted.id });
    assert.deepEqual(changed(opening.state), [{ kind: "messagesAt", conversation, place: wanted }]);
    const first = press(opened(page(1_961, 2_000, 2_000)), "g");
    assert.deepEqual(changed(first.state), first.asks, "from the end, which is otherwise followed");

    const ask = { kind: "messagesAt", conversation, place: { kind: "newest" } } as const;
    const result = { kind: "found", page: page(1, 43, 43), cursor: 43 } as const;
    const left = answer(press(opened(page(1, 40, 40)), "up").state, { kind: "messagesAt", ask, result });
    assert.equal(left.state.cursor, 39, "who goes up while the end is read is not called back");
    assert.deepEqual(
      left.asks?.map(({ kind }) => kind),
      ["messagesAround"],
    );
  });

  it("follow the end only if the cursor is on it", () => {
    const end = opened(page(1, 40, 40));
    const changed = (state: MessagesScreen) => advance(messagesModule, state, { kind: "changed" }, frame).asks;
    assert.deepEqual(changed(end), [{ kind: "messagesAt", conversation, place: { kind: "newest" } }]);
    const above = press(end, "up").state;
    const [ask] = changed(above) ?? [];
    assert.ok(ask?.kind === "messagesAround");
    const { state } = answer(above, { kind: "messagesAround", ask, result: page(1, 43, 43) });
    assert.equal(state.cursor, 39);
    assert.equal(state.page?.messages.length, 43);
    assert.match(drawn(state), /message 39 of 43/);
  });

  it("keep the cursor near a message that was deleted", () => {
    const state = opened(page(1, 40, 40), 20);
    const ask = { kind: "messagesAround", conversation, seq: 20 } as const;
    const result = { ...page(1, 40, 40), messages: stretch(1, 40).filter(({ seq }) => seq !== 20) };
    assert.equal(answer(state, { kind: "messagesAround", ask, result }).state.cursor, 21);
  });

  it("report that the conversation, or everything in it, no longer exists", () => {
    const none: MessagesPage = { conversation: null, messages: [], isFirst: true, isLast: true };
    assert.match(drawn(opened(none)), /conversation 1 no longer exists/);
    assert.match(drawn(opened({ ...none, conversation: { name: "x", messages: 0 } })), /no messages yet/);
  });

  it("always show the selected message, in rows no wider than the room", () => {
    const moves = ["up", "down", "pageUp", "pageDown", "K", "J", "space", "g", "G"] as const;
    const lengths = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(lengths, fc.array(fc.constantFrom(...moves), { maxLength: 20 }), (sizes, keys) => {
        const messages = sizes.map((size, at) =>
          message(at + 1, ...Array.from({ length: size }, (_, line) => `船 line ${line} of ${at + 1}`)),
        );
        const held: MessagesPage = {
          conversation: { name: "n", messages: sizes.length },
          messages,
          isFirst: true,
          isLast: true,
        };
        const { state } = press(opened(held), ...keys);
        const lines = messagesModule.draw(state, frame);
        assert.ok(lines.length <= frame.rows);
        assert.ok(lines.every((line) => widthOf(line) <= frame.columns));
        assert.ok(
          lines.some((line) => line.startsWith("▸") || line.startsWith("┃")),
          lines.join("\n"),
        );
      }),
    );
  });

  it("collapse long texts, tool calls and results, and thinking", () => {
    const long = Array.from({ length: 40 }, (_, line) => `line ${line + 1}`);
    const piece = (kind: ShownMessage["pieces"][number]["kind"], lines: readonly string[]) => ({
      kind,
      lines,
      count: lines.length,
    });
    const talk = {
      ...message(2),
      pieces: [piece("thinking", ["hm", "so"]), piece("said", long), piece("call", ["→ read {}"])],
    };
    const result = {
      ...message(1),
      role: "tool" as const,
      pieces: [piece("source", ["← read"]), piece("returned", long)],
    };
    const tall = { ...frame, rows: 60 };
    const held = { ...page(1, 2, 2), messages: [result, talk] };
    const resized = (state: MessagesScreen) => advance(messagesModule, state, { kind: "resized" }, tall).state;
    const folded = messagesModule.draw(resized(opened(held)), tall).map((line) => line.trim());
    assert.ok(folded.includes("← read  line 1                                  40 lines"), folded.join("\n"));
    assert.ok(folded.some((line) => /^┃ {3}thinking {2}hm +2 lines$/.test(line)));
    assert.ok(folded.some((line) => line.includes("40 lines in all; press space to expand")));
    assert.ok(folded.includes("┃   → read {}") && !folded.some((line) => line.includes("line 30")));
    const expanded = messagesModule.draw(resized(press(opened(held), "space").state), tall);
    assert.ok(expanded.some((line) => line.includes("line 30")) && expanded.some((line) => line.trim().endsWith("so")));
  });
});
