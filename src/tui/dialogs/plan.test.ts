import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Dissolution } from "../../core/maintenance/dissolve.ts";
import type { ConversationId, MessageId, SummaryId } from "../../core/model/types.ts";
import { createPaint } from "../../format/paint.ts";
import type { Frame, LayerEvent, Step } from "../contract.ts";
import { advance, open } from "../layers.ts";
import type { ChangeRequest, PlannedChange } from "../../operator/changes.ts";
import type { Planning } from "./plan.ts";
import { dissolveModule } from "./changes.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { widthOf } from "../../format/width.ts";

const conversation = 1 as ConversationId;
const summary = "sum_0000000000000001" as SummaryId;
const at = "2026-02-17T15:37:00.000Z" as Timestamp;

const frameOf = (columns: number, rows: number, readOnly: string | null = null): Frame => ({
  paint: createPaint(false),
  columns,
  bounds: columns,
  rows,
  zone: "UTC",
  typed: (words) => words,
  now: at,
  readOnly,
  beat: 0,
});
const frame = frameOf(72, 20);

function dissolution(opening: string, ordinal = 5, purge = false, count = 2): PlannedChange {
  const short = { tokens: 10, opening };
  const plan: Dissolution = {
    conversation,
    summary,
    ordinal,
    purge,
    dissolved: { ...short, id: summary, depth: 0, earliestAt: at, latestAt: at },
    place: { item: 1, of: 3 },
    run: Array.from({ length: count }, (_, index) => ({
      ...short,
      kind: "message",
      id: (index + 1) as MessageId,
      role: "user",
      at,
    })),
    shifted: 0,
    tokensBefore: 10,
    tokensAfter: 20,
    derived: [],
    carriedBy: [],
  };
  return { kind: "dissolve", plan };
}

type Event = LayerEvent;
type DissolveDialog = Planning<"dissolve">;

const request: ChangeRequest = { kind: "dissolve", conversation, summary, purge: false };
const press = (name: string): Event => ({ kind: "pressed", name });
const result = (planned: PlannedChange): Event => ({
  kind: "answer",
  answer: { kind: "planChange", ask: { kind: "planChange", request }, result: planned },
});
const applied = (planned: PlannedChange | null): Event => ({
  kind: "answer",
  answer: {
    kind: "applyChange",
    ask: { kind: "applyChange", request, planned: dissolution("") },
    result:
      planned === null ? { kind: "applied", words: "dissolved", change: null } : { kind: "planned again", planned },
  },
});
const failed: Event = {
  kind: "failed",
  ask: { kind: "planChange", request },
  failure: { code: "conflict", message: "it is in no context", hint: "`lcm dag 1` shows it" },
};
const progress = (done: number): Event => ({
  kind: "progress",
  ask: { kind: "applyChange", request, planned: dissolution("") },
  progress: { done, of: null, words: done === 0 ? "making a backup" : "writing it" },
});

const opened = (): DissolveDialog => open({ kind: "dissolve", conversation, summary }).state;

function after(...events: readonly Event[]): Step<DissolveDialog> {
  let step: Step<DissolveDialog> = { state: opened() };
  for (const event of events) step = advance(dissolveModule, step.state, event, frame);
  return step;
}

const drawn = (state: DissolveDialog): string => dissolveModule.draw(state, frame).join("\n");
const apply = dissolveModule.keys.find(({ keys }) => keys.includes("y"));
const whyNotApply = (state: DissolveDialog): string | null => apply?.disabled?.(state, frame) ?? null;

describe("the plan dialog", () => {
  it("asks only for the plan when it opens", () => {
    const { asks } = open({ kind: "dissolve", conversation, summary });
    assert.deepEqual(
      asks?.map(({ kind }) => kind),
      ["planChange"],
    );
  });

  it("cannot apply a plan before it is shown, or while another is made", () => {
    assert.equal(whyNotApply(opened()), "still planning");
    assert.equal(whyNotApply(after(result(dissolution("a"))).state), null);
    const { state, asks } = after(result(dissolution("a")), press("x"));
    assert.equal(whyNotApply(state), "still planning");
    assert.match(drawn(state), /"a"[^]*planning …/, "what was shown stays until then");
    assert.deepEqual(
      asks?.map((ask) => ("request" in ask ? ask.request : null)),
      [{ ...request, purge: true }],
    );
    assert.deepEqual(after(press("y")).asks, undefined);
  });

  it("applies what is shown", () => {
    const plan = dissolution("a");
    const { asks } = after(result(plan), press("y"));
    assert.deepEqual(asks, [{ kind: "applyChange", slot: "change", request, planned: plan }]);
  });

  it("warns when the plan differs from the one shown before, and only then", () => {
    const [plan, other] = [dissolution("a"), dissolution("a", 7)];
    assert.doesNotMatch(drawn(after(result(plan), result(plan)).state), /planned again/);
    assert.match(drawn(after(result(plan), result(other)).state), /the plan has changed/);
    assert.match(drawn(after(result(plan), press("y"), applied(other)).state), /the plan has changed/);
    assert.doesNotMatch(
      drawn(after(result(plan), press("x"), result(other)).state),
      /planned again/,
      "it was asked for",
    );
  });

  it("plans again when the database changed, but not while it is being applied", () => {
    const plan = dissolution("a");
    assert.deepEqual(
      after(result(plan), { kind: "changed" }).asks?.map(({ kind }) => kind),
      ["planChange"],
    );
    assert.deepEqual(
      after(failed, { kind: "returned" }).asks?.map(({ kind }) => kind),
      ["planChange"],
    );
    assert.equal(after(result(plan), press("y"), { kind: "changed" }).asks, undefined);
  });

  it("shows why it cannot be done, and then can only go back", () => {
    const { state } = after(failed);
    assert.match(drawn(state), /it is in no context\s+`lcm dag 1` shows it[^]*press esc to go back/);
    assert.equal(apply?.when?.(state), false);
    assert.equal(after(failed, press("y")).asks, undefined);
    assert.deepEqual(after(failed, press("n")).go, { kind: "back" });
  });

  it("can be cancelled until it is written, and then reports that it is too late", () => {
    const begun = [result(dissolution("a")), press("y")];
    assert.deepEqual(after(...begun, progress(0), press("n")).go, { kind: "back" });
    const late = after(...begun, progress(1), press("n"));
    assert.equal(late.go, undefined);
    assert.match(late.notice?.text ?? "", /too late to cancel/);
    const done = after(...begun, progress(1), applied(null));
    assert.deepEqual(done.go, { kind: "back" });
    assert.deepEqual(done.notice, { tone: "good", text: "dissolved" });
  });

  it("scrolls a long plan to its end, and always shows the question", () => {
    const low = frameOf(60, 6);
    let { state } = after(result(dissolution("a", 5, false, 12)));
    assert.match(dissolveModule.draw(state, low).join("\n"), /Dissolve it\?/);
    ({ state } = advance(dissolveModule, state, press("G"), low));
    const end = dissolveModule.draw(state, low).join("\n");
    assert.match(end, /\+100%[^]*100%[^]*Dissolve it\?/);
    ({ state } = advance(dissolveModule, state, { kind: "wheel", lines: -100, column: 0, row: 0 }, low));
    assert.equal(state.top, 0);
  });

  it("only ever applies the plan on screen, whatever the order of events", () => {
    const plans = ["a", "b", "c"].map((opening) => dissolution(opening));
    const event = fc.oneof(
      fc.constantFrom(...plans.map(result), ...plans.map(applied), applied(null), failed, progress(0), progress(1)),
      fc.constantFrom<Event>(press("y"), press("x"), press("n"), press("down")),
      fc.constantFrom<Event>({ kind: "changed" }, { kind: "returned" }, { kind: "resized" }),
    );
    fc.assert(
      fc.property(fc.array(event, { maxLength: 30 }), (events) => {
        let state = opened();
        for (const each of events) {
          const before = state;
          const step = advance(dissolveModule, before, each, frame);
          state = step.state;
          for (const ask of step.asks ?? []) {
            if (ask.kind !== "applyChange") continue;
            assert.equal(each.kind === "pressed" && each.name, "y");
            assert.ok(before.phase.kind === "asking" && ask.planned === before.phase.planned);
          }
        }
      }),
    );
  });

  it("fits any room, whatever the text", () => {
    const text = fc.oneof(fc.string(), fc.constantFrom("漢字".repeat(40), "a\u001b[2Jb\u009b1m", "👩‍👩‍👧 ".repeat(30)));
    fc.assert(
      fc.property(
        text,
        fc.integer({ min: 30, max: 130 }),
        fc.integer({ min: 4, max: 40 }),
        (opening, columns, rows) => {
          const { state } = after(result(dissolution(opening, 5, false, 20)));
          const lines = dissolveModule.draw(state, frameOf(columns, rows));
          assert.ok(lines.length <= rows, `${lines.length} of ${rows}`);
          for (const line of lines) assert.ok(widthOf(line) <= columns, `${widthOf(line)} of ${columns}: ${line}`);
          assert.doesNotMatch(lines.join(""), /\u001b(?!\[0m)|[\u0000-\u001a\u007f-\u009f]/);
        },
      ),
      { numRuns: 30 },
    );
  });
});
