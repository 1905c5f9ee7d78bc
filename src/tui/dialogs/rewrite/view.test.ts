import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import fc from "fast-check";
import type { ConversationId, Summary, SummaryId } from "../../../core/model/types.ts";
import type { PlannedRewrite } from "../../../core/maintenance/rewrite.ts";
import { createPaint } from "../../../format/paint.ts";
import type { AskAnswer, Ask } from "../../asks.ts";
import type { Frame, LayerEvent } from "../../contract.ts";
import { advance, open } from "../../layers.ts";
import type { Drafting, PlannedWork } from "../../../operator/rewrite.ts";
import { rewriteModule } from "./dialog.ts";
import type { RewriteDialog } from "./view.ts";
import type { Timestamp } from "../../../core/base/time.ts";

const at = "2026-02-17T15:37:00.000Z" as Timestamp;
const id = "sum_f8ee4e7a5a7b7090" as SummaryId;

const frameOf = (columns: number, rows: number): Frame => ({
  paint: createPaint(false),
  columns,
  bounds: columns,
  zone: "UTC",
  typed: (words) => words,
  rows,
  now: at,
  readOnly: null,
  beat: 0,
});
const frame = frameOf(74, 19);
const conversation = 1 as ConversationId;
const select = { summary: id };

const target: PlannedRewrite = {
  conversation,
  summary: id,
  depth: 1,
  level: "normal",
  tokens: 1_523,
  earliestAt: at,
  latestAt: at,
  sources: 36,
  sourceTokens: 20_000,
  targetTokens: 2_000,
  template: "condensed-d1",
};

const previewOf = (source: string): PlannedWork => ({
  plan: {
    targets: [target],
    skipped: [],
    kept: [],
    current: [],
    model: { name: "scripted/one", from: "the test", problem: null },
    cost: { calls: 1, inputTokens: 22_000, outputTokens: 2_000 },
  },
  spend: {
    windowMinutes: 60,
    callsMax: 100,
    usage: { calls: 0, failures: 0, open: 0, inputTokens: 0, outputTokens: 0, embedCalls: 0, embedTokens: 0 },
    breakers: [],
  },
  timeoutSeconds: 120,
  findings: [],
  preview: { source, isWhole: false, above: 1 },
});

const draftOf = (old: string, now: string): Extract<Drafting, { readonly kind: "drafted" }> => {
  const text = { level: "normal", model: null, previousContext: null, fileIds: [] } as const;
  const summary: Summary = {
    ...text,
    id,
    text: old,
    tokens: 1_523,
    conversation: target.conversation,
    depth: 1,
    earliestAt: at,
    latestAt: at,
    descendants: 36,
    createdAt: at,
    revision: 1,
    carriedFrom: null,
    rewriteReason: null,
  };
  return {
    kind: "drafted",
    old: summary,
    summary: { ...text, text: now, tokens: 1_401 },
    isKept: false,
    forgets: 0,
    sources: [],
  };
};

type Event = LayerEvent;
const act = (name: string): Event => ({ kind: "pressed", name });
const answer = (result: AskAnswer): Event => ({ kind: "answer", answer: result });
const draftAsk: Ask<"rewriteDraft"> = { kind: "rewriteDraft", target, isFresh: false };
const previewed = (source = "a source"): Event =>
  answer({ kind: "rewritePlan", ask: { kind: "rewritePlan", conversation, select }, result: previewOf(source) });
const drafted = (old = "old", now = "new"): Event =>
  answer({ kind: "rewriteDraft", ask: draftAsk, result: draftOf(old, now) });

const play = (events: readonly Event[], in_: Frame = frame) =>
  events.reduce(
    (step, event) => advance(rewriteModule, step.state, event, in_),
    open({ kind: "rewrite", conversation, select }),
  );
const screen = (state: RewriteDialog, in_: Frame = frame): string => rewriteModule.draw(state, in_).join("\n");

/** The events that lead to each phase. */
const ways = (old: string, now: string): Readonly<Record<string, readonly Event[]>> => ({
  reading: [],
  preview: [previewed(now)],
  "in flight": [previewed(now), act("enter")],
  review: [previewed(now), act("enter"), drafted(old, now)],
  diff: [previewed(now), act("enter"), drafted(old, now), act("d")],
  applying: [previewed(now), act("enter"), drafted(old, now), act("y")],
  trouble: [
    previewed(now),
    act("enter"),
    answer({ kind: "rewriteDraft", ask: draftAsk, result: { kind: "unusable", reason: now } }),
  ],
});

describe("the rewrite dialog for one summary", () => {
  it("shows the summary, its time range, both texts and the difference", () => {
    const shown = screen(play(ways("Goals & Context", "Timeline:")["review"] ?? []).state);
    assert.match(shown, /^━━━ Rewrite: sum_f8ee4e7a5a7b7090 \(d1, 36 children\) ━━━/);
    assert.match(shown, /Time range: 2026-02-17 15:37 UTC/);
    assert.match(shown, /OLD \(1,523 tokens\) *\n {2}Goals & Context/);
    assert.match(shown, /NEW \(1,401 tokens\) *\n {2}Timeline:/);
    assert.match(shown, /Δ tokens: -122 \(1,523 → 1,401\)/);
  });

  it("reports the result and the way to undo it in one line of a narrow terminal", () => {
    const applying = [...(ways("old", "new")["applying"] ?? [])];
    const result = { kind: "written", change: 12, above: ["sum_0000000000000001"] } as const;
    const ask: Ask<"rewriteApply"> = { kind: "rewriteApply", draft: draftOf("old", "new"), partOf: {} };
    const notice = (columns: number): string =>
      play([...applying, answer({ kind: "rewriteApply", ask, result })], frameOf(columns, 19)).notice?.text ?? "";
    assert.equal(notice(74), "Rewrote sum_f8ee4e7a5a7b7090: 1523t → 1401t (-122) · u undoes change 12");
    assert.equal(
      notice(194),
      "Rewrote sum_f8ee4e7a5a7b7090: 1523t → 1401t (-122) · u undoes change 12 · 1 summary above was written from the old text",
    );
  });

  it("scrolls both texts together, each to its end", () => {
    const long = (word: string): string => Array.from({ length: 60 }, (_, line) => `${word} ${line}`).join("\n");
    const events = ways(long("old"), `${long("new")}\n${long("more")}`)["review"] ?? [];
    for (const columns of [74, 114]) {
      const end = screen(play([...events, act("G")], frameOf(columns, 19)).state, frameOf(columns, 19));
      assert.match(end, /old 59/);
      assert.match(end, /more 59/);
      const down = screen(play([...events, act("J")], frameOf(columns, 19)).state, frameOf(columns, 19));
      assert.match(down, /old 1\b/);
      assert.match(down, /new 1\b/);
      assert.doesNotMatch(down, /(old|new) 0\b/);
    }
  });

  it("is not busy after a failure, and can always be closed", () => {
    for (const [phase, events] of Object.entries(ways("old", "new"))) {
      const failure = { code: "unavailable", message: "the database is locked", hint: null };
      const { state } = play([...events, { kind: "failed", ask: draftAsk, failure }]);
      assert.equal(rewriteModule.isBusy?.(state), false, phase);
      const ways_ = rewriteModule.keys.filter(({ keys, when }) => keys.includes("escape") && when?.(state));
      assert.equal(ways_.length, 1, phase);
      assert.deepEqual(play([...events, act("escape")]).go, { kind: "back" }, phase);
    }
  });

  it("cannot be cancelled while it is being written", () => {
    const progress = { done: 1, of: null, words: "writing" };
    const step = play([
      ...(ways("a", "b")["applying"] ?? []),
      { kind: "progress", ask: draftAsk, progress },
      act("escape"),
    ]);
    assert.equal(step.go, undefined);
    assert.match(step.notice?.text ?? "", /too late/);
  });

  it("fits every room, whatever the texts contain, and sends no control character", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constant("宿題は\u001b[31m赤\u001b[0m👩‍👩‍👧‍👦\r\n\t\u202eend"),
      fc.lorem({ maxCount: 200 }),
    );
    const size = fc.record({ columns: fc.integer({ min: 60, max: 220 }), rows: fc.integer({ min: 3, max: 70 }) });
    fc.assert(
      fc.property(text, text, size, (old, now, { columns, rows }) => {
        const room = frameOf(columns, rows);
        for (const [phase, events] of Object.entries(ways(old, now))) {
          const lines = rewriteModule.draw(play(events, room).state, room);
          for (const line of lines) {
            assert.ok(visibleWidth(line) <= columns || phase === "trouble", `${phase}: ${line}`);
            assert.doesNotMatch(line.replaceAll("\u001b[0m", ""), /[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/, phase);
          }
          if (phase === "review") assert.ok(lines.length <= rows, `${phase} has ${lines.length} of ${rows} rows`);
        }
      }),
      { numRuns: 60 },
    );
  });
});
