/** The timeline's numbers: places on both axes, what is at a point, cameras and ticks. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { messageIdOf, type ConversationId, type SummaryId } from "../../../core/model/types.ts";
import { msToTimestamp } from "../../../core/base/time.ts";
import type { MessageNode, Pace, SummaryNode, Timeline } from "../../contract.ts";
import { between, pan, reaching, showing, toAxis, toPixel, wholeOf, zoom } from "./camera.ts";
import { barAt, barOfSeq, firstAbove, placeOfSeq, refined, seqAtPlace, toLayer, toScale } from "./layer.ts";
import { orderTicks, timeTicks } from "./ticks.ts";

const start = Date.UTC(2026, 1, 17, 8);
const hour = 3_600_000;
const conversation = 1 as ConversationId;

const message = (seq: number, role: MessageNode["role"] = "user", tokens = 10): MessageNode => ({
  id: messageIdOf(conversation, seq),
  seq,
  role,
  tokens,
  at: msToTimestamp(start + seq * hour),
  state: seq < 5 ? "below" : "prompt",
  aside: null,
  leaf: null,
});

const summary = (id: SummaryId, depth: number, from: number, to: number): SummaryNode => ({
  id,
  depth,
  from,
  to,
  earliestAt: msToTimestamp(start + from * hour),
  latestAt: msToTimestamp(start + to * hour),
  tokens: 100,
  level: "normal",
  state: "prompt",
  isCarried: false,
  isStale: false,
  createdAt: msToTimestamp(start + to * hour),
  above: null,
});

const pace: Pace = Array.from({ length: 10 }, (_, at) => [at + 1, start + (at + 1) * hour]);

const timeline = (given: Partial<Timeline>): Timeline => ({
  conversation: { id: conversation, totals: { messages: 10, messageTokens: 120 } } as Timeline["conversation"],
  name: "test",
  extent: { from: 1, to: 10 },
  window: { from: 1, to: 10 },
  pace,
  prompt: null,
  depthMax: 1,
  messages: Array.from({ length: 10 }, (_, at) => message(at + 1)),
  buckets: [],
  summaries: [summary("sum_0000000100000001", 0, 1, 4)],
  summaryBuckets: [],
  marks: [],
  before: null,
  after: null,
  ...given,
});

describe("places on the axes", () => {
  it("shows at the beginning what was carried over, although it tells of what was before", () => {
    const early = { earliestAt: msToTimestamp(start - 9 * hour), latestAt: msToTimestamp(start - 8 * hour) };
    const carried = { ...summary("sum_0000000100000002", 0, 1, 1), ...early, isCarried: true };
    for (const axis of ["time", "messages"] as const) {
      const given = timeline({ summaries: [carried] });
      const [row] = toLayer(given, toScale(axis, given, "UTC")).summaries;
      assert.equal(row?.from[0], 0);
      assert.ok((row.to[0] ?? 0) > 0, axis);
    }
  });

  it("go from a message to its place and back, on both axes", () => {
    for (const axis of ["time", "messages"] as const) {
      const scale = toScale(axis, timeline({}), "UTC");
      for (let seq = 1; seq <= 10; seq++)
        assert.ok(Math.abs(seqAtPlace(scale, placeOfSeq(scale, seq)) - seq) < 1e-6, `${axis} ${seq}`);
    }
  });

  it("become finer with the times of a part", () => {
    const coarse = toScale(
      "time",
      timeline({
        pace: [
          [1, start],
          [10, start + 100 * hour],
        ],
      }),
      "UTC",
    );
    const fine = refined(coarse, {
      window: { from: 3, to: 5 },
      pace: [
        [3, start + hour],
        [5, start + 2 * hour],
      ],
    });
    assert.equal(placeOfSeq(fine, 4), 1.5 * hour);
    assert.equal(placeOfSeq(fine, 10), 100 * hour);
  });

  it("never fall, even if a clock was set back", () => {
    const messages = [message(1), { ...message(2), at: message(9).at }, message(3)];
    const layer = toLayer(timeline({ messages }), toScale("time", timeline({}), "UTC"));
    const { from } = layer.messages;
    assert.ok((from[0] ?? 0) <= (from[1] ?? 0) && (from[1] ?? 0) <= (from[2] ?? 0));
  });

  it("give roles lanes, states numbers and summaries rows", () => {
    const messages = [message(1, "user"), message(2, "assistant"), message(3, "tool"), message(6, "user")];
    const layer = toLayer(timeline({ messages }), toScale("messages", timeline({}), "UTC"));
    assert.deepEqual([...layer.messages.lane], [0, 1, 2, 0]);
    assert.deepEqual([...layer.messages.state], [2, 2, 2, 0]);
    assert.equal(layer.summaries.length, 2);
    assert.deepEqual(layer.summaries[0]?.ids, ["sum_0000000100000001"]);
  });

  it("keep every message of buckets", () => {
    const buckets = [
      { from: 1, to: 4, earliestAt: message(1).at, latestAt: message(4).at, tokens: 40, states: { below: 4 } },
      {
        from: 5,
        to: 10,
        earliestAt: message(5).at,
        latestAt: message(10).at,
        tokens: null,
        states: { prompt: 5, below: 1 },
      },
    ];
    const { messages } = toLayer(timeline({ messages: null, buckets }), toScale("messages", timeline({}), "UTC"));
    assert.equal(messages.ids, null);
    assert.deepEqual([...messages.state], [2, 0]);
    assert.deepEqual([...messages.tokens], [40, 6 * 12], "those not known are average");
    assert.equal(
      messages.shares.reduce((sum, share) => sum + share, 0),
      10,
    );
  });
});

describe("what is at a point", () => {
  const layer = toLayer(timeline({}), toScale("messages", timeline({}), "UTC"));

  it("is the bar there, or the nearest within reach", () => {
    assert.equal(barAt(layer.messages, 3.5, 0.5), 3);
    assert.equal(barAt(layer.messages, 3.1, 0.5), 3);
    assert.equal(barAt(layer.summaries[0]!, 9, 1), -1);
    assert.equal(barAt(layer.summaries[0]!, 4.5, 1), 0);
  });

  it("is found by the number of a message", () => {
    assert.equal(barOfSeq(layer.messages, 7), 6);
    assert.equal(barOfSeq(layer.summaries[0]!, 3), 0);
    assert.equal(barOfSeq(layer.summaries[0]!, 5), -1);
  });

  it("is found by halving as by looking at each", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 50 })), fc.integer({ min: -1, max: 51 }), (numbers, limit) => {
        const sorted = Float64Array.from(numbers).sort();
        const first = sorted.findIndex((value) => value > limit);
        assert.equal(firstAbove(sorted, limit), first < 0 ? sorted.length : first);
      }),
    );
  });
});

describe("a camera", () => {
  const room = { length: 1_000, width: 100, least: 10 };
  const camera = fc.record({
    left: fc.double({ min: 0, max: 900, noNaN: true }),
    unit: fc.double({ min: 0.1, max: 10, noNaN: true }),
  });

  it("keeps the point under the pointer when it zooms, and stays inside", () => {
    fc.assert(
      fc.property(
        camera,
        fc.double({ min: 0.1, max: 10, noNaN: true }),
        fc.integer({ min: 0, max: 100 }),
        (given, factor, pixel) => {
          const inside = pan(room, given, 0);
          const next = zoom(room, inside, factor, pixel);
          assert.ok(next.left >= 0 && toAxis(next, room.width) <= room.length + 1e-6);
          assert.ok(next.unit * room.width >= room.least - 1e-9);
          const isFree = next.left > 0 && toAxis(next, room.width) < room.length - 1e-6;
          if (isFree) assert.ok(Math.abs(toPixel(next, toAxis(inside, pixel)) - pixel) < 1e-6);
        },
      ),
    );
  });

  it("shows all, a part, and reaches what is outside without zooming", () => {
    assert.deepEqual(wholeOf(room), { left: 0, unit: 10 });
    const part = showing(room, 200, 300);
    assert.ok(part.left < 200 && toAxis(part, 100) > 300);
    const reached = reaching(room, part, 800, 810);
    assert.equal(reached.unit, part.unit);
    assert.ok(reached.left < 800 && toAxis(reached, 100) > 810);
    assert.equal(reaching(room, part, 210, 220), part);
  });

  it("goes from one place to another", () => {
    const [a, b] = [wholeOf(room), showing(room, 200, 300)];
    assert.deepEqual(between(a, b, 0), a);
    assert.ok(Math.abs(between(a, b, 1).left - b.left) < 1e-9);
  });
});

describe("ticks", () => {
  const zoned = (zone: string) => ({ originMs: Date.UTC(2026, 2, 28), zone });

  it("are at midnight where the reader is, also across summer time", () => {
    // Clocks went forward in Vienna on 29 March 2026.
    const ticks = timeTicks({ left: 0, unit: (5 * 86_400_000) / 600 }, 600, zoned("Europe/Vienna"));
    const hours = ticks.map(({ x }) => new Date(zoned("").originMs + x).getUTCHours());
    assert.deepEqual(hours, [23, 22, 22, 22, 22]);
    assert.deepEqual(ticks[0]?.label, "Sun 29 Mar");
  });

  it("go from years to seconds, never crowded", () => {
    for (const span of [20_000, 3_600_000, 86_400_000, 30 * 86_400_000, 800 * 86_400_000]) {
      const unit = span / 1_200;
      const ticks = timeTicks({ left: 0, unit }, 1_200, zoned("UTC"));
      assert.ok(ticks.length >= 1 && ticks.length <= 14, `${span}: ${ticks.length}`);
      for (const [at, tick] of ticks.entries()) if (at > 0) assert.ok((tick.x - (ticks[at - 1]?.x ?? 0)) / unit > 60);
    }
  });

  it("count messages in round numbers", () => {
    const labels = orderTicks({ left: 0, unit: 100 }, 1_000, 1).map(({ label }) => label);
    assert.deepEqual(labels.slice(0, 2), ["#20,000", "#40,000"]);
  });
});
