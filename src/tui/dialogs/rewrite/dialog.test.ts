import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { visibleWidth } from "@earendil-works/pi-tui";
import fc from "fast-check";
import type { ConversationId, Summary } from "../../../core/model/types.ts";
import type { PlannedRewrite } from "../../../core/maintenance/rewrite.ts";
import { createPaint } from "../../../format/paint.ts";
import type { AskAnswer } from "../../asks.ts";
import type { Asking, Frame, LayerEvent, Step } from "../../contract.ts";
import { advance, open } from "../../layers.ts";
import type { AppliedDraft, Drafting, PlannedWork, RewriteSelection } from "../../../operator/rewrite.ts";
import { rewriteModule } from "./dialog.ts";
import type { RewriteDialog } from "./view.ts";
import type { Timestamp } from "../../../core/base/time.ts";

const at = "2026-02-17T15:37:00.000Z" as Timestamp;
const conversation = 1 as ConversationId;

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

const targetOf = (depth: number, number: number): PlannedRewrite => ({
  conversation,
  summary: `sum_${String(number).padStart(16, "0")}`,
  depth,
  level: "normal",
  tokens: 1_000,
  earliestAt: at,
  latestAt: at,
  sources: 4,
  sourceTokens: 4_000,
  targetTokens: 1_000,
  template: "leaf",
});

/** A plan with these counts per depth. */
const plannedOf = (...counts: readonly number[]): PlannedWork => {
  const targets = counts.flatMap((count, depth) =>
    Array.from({ length: count }, (_, place) => targetOf(depth, 100 * depth + place)),
  );
  return {
    plan: {
      targets,
      skipped: [],
      kept: [],
      current: [],
      model: { name: "scripted/one", from: "the test", problem: null },
      cost: { calls: targets.length, inputTokens: 1, outputTokens: 1 },
    },
    spend: {
      windowMinutes: 60,
      callsMax: 100,
      usage: { calls: 0, failures: 0, open: 0, inputTokens: 0, outputTokens: 0, embedCalls: 0, embedTokens: 0 },
      breakers: [],
    },
    timeoutSeconds: 120,
    findings: [],
    preview: null,
  };
};

function draftOf(
  { summary: id, depth }: PlannedRewrite,
  text: string,
): Extract<Drafting, { readonly kind: "drafted" }> {
  const made = { level: "normal", model: null, previousContext: null, fileIds: [] } as const;
  const times = { earliestAt: at, latestAt: at, createdAt: at };
  const nothing = { descendants: 0, revision: 1, carriedFrom: null, rewriteReason: null };
  const old: Summary = { ...made, ...times, ...nothing, id, conversation, depth, text: `old ${text}`, tokens: 1_000 };
  return { kind: "drafted", old, summary: { ...made, text, tokens: 900 }, isKept: false, forgets: 0, sources: [] };
}

type Event = LayerEvent;
const act = (name: string): Event => ({ kind: "pressed", name });
const answer = (result: AskAnswer): Event => ({ kind: "answer", answer: result });

type Played = Step<RewriteDialog>;
const update = (step: Played, event: Event, room: Frame = frame): Played =>
  advance(rewriteModule, step.state, event, room);

function planned(result: PlannedWork, select: RewriteSelection = { subtree: targetOf(0, 0).summary }): Played {
  const opened = open({ kind: "rewrite", conversation, select });
  return update(opened, answer({ kind: "rewritePlan", ask: { kind: "rewritePlan", conversation, select }, result }));
}

/** Answers the last ask: a draft with this text, or the given result. */
function answered(step: Played, result: string | Drafting | AppliedDraft): Played {
  const ask: Asking | undefined = step.asks?.[0];
  if (
    ask?.kind === "rewriteDraft" &&
    (typeof result === "string" || (result.kind !== "written" && result.kind !== "stale"))
  )
    return update(
      step,
      answer({ kind: ask.kind, ask, result: typeof result === "string" ? draftOf(ask.target, result) : result }),
    );
  if (
    ask?.kind === "rewriteApply" &&
    typeof result !== "string" &&
    (result.kind === "written" || result.kind === "stale")
  )
    return update(step, answer({ kind: ask.kind, ask, result }));
  assert.fail(`${ask?.kind} is asked, and not answered so`);
}

const written = (change = 12): AppliedDraft => ({ kind: "written", change, above: [] });
const stale: AppliedDraft = { kind: "stale", reason: "it was rewritten in the meantime" };
const screen = (step: Played, room: Frame = frame): string => rewriteModule.draw(step.state, room).join("\n");

describe("the rewrite dialog for many summaries", () => {
  it("asks with counts per depth, and reports the total at the end", () => {
    const step = planned(plannedOf(25, 10, 2, 1));
    assert.match(screen(step), /Rewrite 38 summaries \(25 leaves, 10 d1, 2 d2, 1 d3\)\?/);
    let next = update(step, act("A"));
    for (let left = 38; left > 0; left--) next = answered(answered(next, "new"), written());
    assert.deepEqual(next.go, { kind: "back" });
    assert.equal(next.notice?.text, "Rewrote 38 summaries. Total: 38,000t → 34,200t (-3,800) · u undoes change 12");
  });

  it("records everything applied as one change, and a repair as a repair", () => {
    const first = answered(update(planned(plannedOf(2), { repair: true }), act("y")), "new");
    const applying = update(first, act("y"));
    const [ask] = applying.asks ?? [];
    assert.deepEqual(ask?.kind === "rewriteApply" && ask.partOf, { operation: "repair" });
    const second = update(answered(answered(applying, written(7)), "new"), act("y"));
    const [later] = second.asks ?? [];
    assert.deepEqual(later?.kind === "rewriteApply" && later.partOf, { operation: "repair", change: 7 });
  });

  it("shows the progress, each outcome and the total so far", () => {
    let step = update(planned(plannedOf(7, 1)), act("y"));
    step = answered(update(answered(step, "new"), act("y")), written());
    step = update(answered(step, "new"), act("n"));
    step = answered(step, { kind: "unusable", reason: "the answer was empty" });
    step = answered(step, { kind: "current" });
    const shown = screen(step);
    assert.match(shown, /^5\/8 {2}sum_0000000000000004 \(d0\)/);
    assert.match(shown, /asking scripted\/one \(leaf prompt\), 0 s of 120 s/);
    assert.match(shown, /so far 1 summary: 1,000 → 900 tokens \(-100\), 1 skipped, 1 unusable/);
    assert.match(shown, /d0 sum_0000000000000002 {2}unusable: the answer was empty/);
    assert.match(shown, /d0 sum_0000000000000003 {2}already up to date/);
  });

  it("gives up on a summary that other processes keep changing, and goes on", () => {
    let step = update(planned(plannedOf(2)), act("A"));
    for (let times = 0; times < 5; times++) step = answered(answered(step, "new"), stale);
    assert.match(screen(step), /2\/2/);
    step = answered(answered(step, "new"), written());
    assert.match(screen(step), /sum_0000000000000000: it kept changing/);
  });

  it("shows a draft again that could not be applied, and stops applying all", () => {
    const applying = answered(update(planned(plannedOf(2)), act("A")), "the new text");
    const [ask] = applying.asks ?? [];
    assert.ok(ask !== undefined);
    const failure = { code: "unavailable", message: "the database is locked", hint: null };
    const failed = update(applying, { kind: "failed", ask, failure });
    assert.match(screen(failed), /the new text[^]*1\/2 {2}Replace the old text\?/);
    const after = answered(answered(update(failed, act("y")), written()), "another");
    assert.match(screen(after), /2\/2 {2}Replace the old text\?/);
  });

  it("can be stopped before something is written, but not during it", () => {
    const applying = update(answered(update(planned(plannedOf(2)), act("y")), "new"), act("y"));
    assert.deepEqual(update(applying, act("escape")).go, { kind: "back" });
    const [ask] = applying.asks ?? [];
    assert.ok(ask !== undefined);
    const writing = update(applying, { kind: "progress", ask, progress: { done: 1, of: null, words: "writing" } });
    assert.equal(update(writing, act("escape")).go, undefined);
  });

  it("plans again after a change, one plan at a time, and keeps the old one visible", () => {
    const step = planned(plannedOf(3));
    const again = update(step, { kind: "changed" });
    assert.equal(again.asks?.length, 1);
    assert.match(screen(again), /Rewrite 3 summaries/);
    assert.equal(update(again, { kind: "changed" }).asks, undefined);
  });

  it("fits every room, whatever was drafted", () => {
    const size = fc.record({ columns: fc.integer({ min: 60, max: 220 }), rows: fc.integer({ min: 6, max: 60 }) });
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 300 }), size, (text, { columns, rows }) => {
        const room = frameOf(columns, rows);
        const plan = planned(plannedOf(2, 1));
        const asking = update(plan, act("y"));
        const useless = answered(asking, { kind: "unusable", reason: text });
        const steps = [plan, asking, answered(asking, text), useless];
        for (const step of steps)
          for (const line of rewriteModule.draw(step.state, room)) assert.ok(visibleWidth(line) <= columns, line);
      }),
      { numRuns: 60 },
    );
  });
});
