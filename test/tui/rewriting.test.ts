/**
 * Rewriting at the terminal: one summary, a subtree, or whatever needs repair. Nothing is changed before a yes, waiting
 * can be cancelled, and the result is the library's.
 */

import assert from "node:assert/strict";
import { copyFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { before, describe, it } from "node:test";
import { setTimeout } from "node:timers/promises";
import { assert as must } from "../../src/core/base/errors.ts";
import { createLcm } from "../../src/core/lcm.ts";
import type { Lcm } from "../../src/core/lcm.ts";
import type { Summary, SummaryId } from "../../src/core/model/types.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { makeDeepConversation } from "../support/deep-conversation.ts";
import type { DeepConversation } from "../support/deep-conversation.ts";
import { dumpOf, tablesChanged } from "../support/dump.ts";
import { portOver, startRobot } from "../support/robot.ts";
import type { Ground, Robot, RobotOptions } from "../support/robot.ts";
import { makeScratch } from "../support/scratch.ts";
import { createScriptedModel } from "../support/scripted-model.ts";
import type { Behaviour } from "../support/scripted-model.ts";
import { rewriteAsks } from "../../src/operator/rewrite.ts";

const folder = makeScratch("tui-rewriting");
const template = join(folder, "template.db");
let made: DeepConversation;
/** The first summary of each depth in the deep conversation; the d2 has six leaves and two d1 below it. */
let firsts: readonly SummaryId[];
const first = (depth: number): SummaryId => {
  const id = firsts[depth];
  must(id !== undefined, "there is one of each depth");
  return id;
};

before(async () => {
  made = await makeDeepConversation(template);
  const all = await summariesIn(template);
  firsts = [0, 1, 2].flatMap((depth) => all.find((each) => each.depth === depth)?.id ?? []);
});

let copies = 0;
function copyOfIt(): string {
  const path = join(folder, `copy-${++copies}.db`);
  copyFileSync(template, path);
  return path;
}

const backupsOf = (path: string): number =>
  readdirSync(folder).filter((name) => name.startsWith(`${basename(path)}.backup-`) && /\dZ$/.test(name)).length;

/** Works on the file like another process. */
async function onFile<T>(path: string, work: (lcm: Lcm) => Promise<T>): Promise<T> {
  const store = await openSqlite({ path, housekeeping: false });
  const lcm = createLcm({ store, clock: { now: systemNow }, model: createScriptedModel({ behaviour: () => "good" }) });
  try {
    return await work(lcm);
  } finally {
    await lcm.close();
  }
}

/** The summaries of the deep conversation, by depth and time. */
const summariesIn = async (path: string): Promise<readonly Summary[]> =>
  await onFile(path, async ({ store }) => {
    const shown = await store.context(made.deep, { kind: "summary" });
    const ids = await store.closure(shown.flatMap((item) => (item.kind === "summary" ? [item.id] : [])));
    return await store.summaries({ ids });
  });

const textsIn = async (path: string) =>
  (await summariesIn(path)).map(({ id, text, tokens, level, model, previousContext }) => ({
    id,
    text,
    tokens,
    level,
    model,
    previousContext,
  }));

const changesIn = async (path: string) =>
  await onFile(path, async (lcm) =>
    (await lcm.history()).map(({ change, operation, steps }) => ({ change, operation, steps: steps.length })),
  );

/** Only drafts and usage may differ. */
function assertNothingChanged(path: string, words: string): void {
  const changed = tablesChanged(dumpOf(template), dumpOf(path));
  assert.deepEqual(
    changed.filter((table) => !["drafts", "model_usage", "search_progress"].includes(table)),
    [],
    words,
  );
  assert.equal(backupsOf(path), 0, `${words}: no needless backup`);
}

interface Sitting extends Ground, Pick<RobotOptions, "columns" | "rows"> {
  readonly at?: SummaryId;
}

interface Seat {
  readonly robot: Robot;
  /** Sets how the model answers. */
  readonly behave: (next: Behaviour) => void;
  readonly calls: () => number;
  /** Whether the last call was aborted. */
  readonly isWithdrawn: () => boolean;
}

/** Opens the summaries of the deep conversation, with the cursor on one. */
async function sit(
  path: string,
  { at, columns = 100, rows = 30, ...ground }: Sitting,
  act: (seat: Seat) => Promise<void>,
) {
  let behaviour: Behaviour = "good";
  const model = createScriptedModel({ behaviour: () => behaviour });
  const port = portOver(path, { model, ...ground });
  const place = { kind: "summaries", conversation: made.deep, at: at ?? first(1) } as const;
  const robot = startRobot(port, { columns, rows, place });
  try {
    await robot.sees("▸");
    await act({
      robot,
      behave: (next) => (behaviour = next),
      calls: () => model.calls.length,
      isWithdrawn: () => model.calls.at(-1)?.signal?.aborted === true,
    });
  } finally {
    if (!robot.isOver()) await robot.end();
    await port.close();
  }
}

/** Waits until the model was called this often; the screen shows it slightly earlier. */
async function asked(calls: Seat["calls"], times: number): Promise<void> {
  while (calls() < times) await setTimeout(5);
}

describe("guarantee 28: a rewrite at the terminal", () => {
  it("shows the cost, compares both texts, and applies what was shown after a backup", async () => {
    const [path, other] = [copyOfIt(), copyOfIt()];
    await onFile(other, async (lcm) => {
      const plan = await lcm.planRewrite({ conversation: made.deep, select: { summary: first(1) } });
      await lcm.rewriteAll(plan, { mode: "apply" });
    });
    await sit(path, { columns: 120, rows: 36 }, async ({ robot }) => {
      await robot.press("w");
      await robot.sees("Send it to the model?");
      const preview = robot.screen();
      for (const words of [
        `━━━ Rewrite: ${first(1)} (d1, 3 children) ━━━`,
        "Time range: 2025-11-03 08:00–21:06 UTC",
        "3 summaries of d0, 160 tokens",
        "condensed-d1; 48 tokens now, about 80 wanted",
        "scripted/one (the test)",
        "1 call, about 830 tokens in, 80 out",
        "1 summary was written from this text",
        "[2025-11-03 08:00 – 08:06 UTC] Asked: Do we draw a map of the seats?",
      ])
        assert.ok(preview.includes(words), `${words}\n${preview}`);
      await robot.press("enter");
      await robot.sees("Replace the old text?");
      assert.match(robot.screen(), /OLD \(48 tokens\) +│ NEW \(34 tokens\)/);
      assert.match(robot.screen(), /This day: +│ 2025-11-03 08:00: 746 characters/);
      assert.match(robot.screen(), /Δ tokens: -14 \(48 → 34\)/);
      await robot.press("d");
      await robot.sees("-- dogs stay on the lower deck");
      await robot.press("d");
      await robot.sees("OLD (48 tokens)");
      await robot.press("y");
      await robot.sees(
        `Rewrote ${first(1)}: 48t → 34t (-14) · u undoes change 1 · 1 summary above was written from the old text`,
      );
      assert.doesNotMatch(robot.screen(), /OLD/, "the dialog is closed");
    });
    assert.deepEqual(await textsIn(path), await textsIn(other));
    assert.deepEqual(await changesIn(path), [{ change: 1, operation: "rewrite", steps: 1 }]);
    assert.equal(backupsOf(path), 1);
  });

  it("plans one summary as the library does", async () => {
    const port = portOver(template);
    const doing = { port, signal: new AbortController().signal, onProgress: () => undefined };
    try {
      for (const depth of [0, 1, 2]) {
        const { plan } = await rewriteAsks.rewritePlan(
          { conversation: made.deep, select: { summary: first(depth) } },
          doing,
        );
        const planned = await onFile(
          template,
          async (lcm) => await lcm.planRewrite({ conversation: made.deep, select: { summary: first(depth) } }),
        );
        assert.deepEqual(plan.targets, planned.targets);
      }
    } finally {
      await port.close();
    }
  });

  it("changes nothing before a yes: cancelled at the plan, during the call, and at the review", async () => {
    const path = copyOfIt();
    await sit(path, {}, async ({ robot, behave, calls, isWithdrawn }) => {
      await robot.press("w");
      await robot.sees("Send it to the model?");
      await robot.press("escape");
      await robot.sees("cancelled: nothing was changed");
      assert.deepEqual(
        [calls(), tablesChanged(dumpOf(template), dumpOf(path))],
        [0, []],
        "reading writes nothing at all",
      );

      behave("hangs");
      await robot.press("r");
      await robot.sees("Send it to the model?");
      await robot.press("enter");
      await robot.sees(/asking scripted\/one for sum_\w+ \(d1 prompt\), \d s of 120 s/);
      await asked(calls, 1);
      await robot.press("escape");
      await robot.sees("cancelled: nothing was changed");
      assert.ok(isWithdrawn());
      assertNothingChanged(path, "after a call that was withdrawn");

      behave("good");
      await robot.press("w");
      await robot.sees("Send it to the model?");
      await robot.press("enter");
      await robot.sees("Replace the old text?");
      await robot.press("n");
      await robot.sees("nothing was changed; the draft is kept");
      assertNothingChanged(path, "after a draft that was not wanted");
    });
  });

  it("uses a stored draft without another call, and asks again on request", async () => {
    await sit(copyOfIt(), {}, async ({ robot, calls }) => {
      await robot.press("w");
      await robot.sees("Send it");
      await robot.press("enter");
      await robot.sees("Replace the old text?");
      await robot.press("escape");
      await robot.press("w");
      await robot.sees("stored by an earlier run");
      await robot.press("enter");
      await robot.sees("stored draft");
      assert.equal(calls(), 1);
      await robot.press("f");
      await robot.misses("stored draft");
      await robot.sees("Replace the old text?");
      assert.equal(calls(), 2);
      await robot.press("enter");
      await robot.sees("u undoes change");
      await robot.press("w");
      await robot.sees("its text is already this model's summary");
      await robot.press("enter");
      await robot.sees("✗ ↵: its text is already this model's summary");
      assert.equal(calls(), 2);
    });
  });

  it("explains why there is no draft and what to do, and tries again", async () => {
    const path = copyOfIt();
    await sit(path, {}, async ({ robot, behave }) => {
      behave("refuses");
      await robot.press("w");
      await robot.sees("Send it");
      await robot.press("enter");
      await robot.sees("✗ 529: upstream said");
      await robot.sees("run it again later; what is applied is kept");
      for (const [behaviour, words] of [
        ["unauthorized", "log in with openclaw, set"],
        ["empty", "unusable answer: the answer was empty"],
        ["echo", "unusable answer: the answer"],
        ["long", "unusable answer: the answer was too long"],
        ["throws", "cannot read properties of undefined"],
      ] as const) {
        behave(behaviour);
        await robot.press("enter");
        await robot.sees(words);
        await robot.sees("Try again?");
      }
      assertNothingChanged(path, "after answers of no use");
      behave("good");
      await robot.press("enter");
      await robot.sees("Replace the old text?");
    });
  });

  it("says before it opens that there is no model, and how to name one", async () => {
    await sit(copyOfIt(), { model: null }, async ({ robot }) => {
      for (const key of ["w", "W", "R"]) {
        await robot.press(key);
        await robot.sees(`✗ ${key}: no model is configured; set LCM_SUMMARY_MODEL, or start with --model`);
        assert.doesNotMatch(robot.screen(), /╭/, "no dialog opens");
      }
      await robot.press("?");
      await robot.sees(/w r +rewrite the summary with a model[^]*?\(no model is configured/);
    });
  });

  it("does not apply a draft to a summary rewritten meanwhile, and drafts it again", async () => {
    const path = copyOfIt();
    await sit(path, {}, async ({ robot }) => {
      await robot.press("w");
      await robot.sees("Send it");
      await robot.press("enter");
      await robot.sees("Replace the old text?");
      await onFile(path, async (lcm) => {
        const plan = await lcm.planRewrite({ conversation: made.deep, select: { summary: first(0) } });
        await lcm.rewriteAll(plan, { mode: "apply" });
      });
      await robot.press("y");
      await robot.sees(/which it was written from, was rewritten in the meantime: nothing was/);
      assert.equal((await changesIn(path)).length, 1, "only the other process's");
      await robot.press("enter");
      await robot.sees("Replace the old text?");
      await robot.press("y");
      await robot.sees("u undoes change 2");
    });
  });

  it("survives that the summary no longer exists", async () => {
    const path = copyOfIt();
    const newest = (await summariesIn(path)).at(-1)?.id ?? first(0);
    await sit(path, { at: newest }, async ({ robot }) => {
      await robot.press("w");
      await robot.sees("Send it");
      await robot.press("enter");
      await robot.sees("Replace the old text?");
      await onFile(path, async (lcm) => {
        await lcm.dissolve(await lcm.planDissolve({ conversation: made.deep, summary: newest, purge: true }));
      });
      const others = dumpOf(path);
      await robot.press("y");
      await robot.sees(`there is no summary ${newest}`);
      assert.deepEqual(tablesChanged(others, dumpOf(path)), []);
      await robot.press("n");
      await robot.misses("OLD");
    });
  });

  it("is refused on a read-only database", async () => {
    await sit(template, { readOnly: true }, async ({ robot }) => {
      for (const key of ["w", "W", "R"]) {
        await robot.press(key);
        await robot.sees(`✗ ${key}: it was opened with --read-only`);
      }
    });
  });

  it("can be read at any size, and while it changes", async () => {
    await sit(copyOfIt(), { at: first(0), columns: 120, rows: 36 }, async ({ robot }) => {
      await robot.press("w");
      await robot.sees("Send it");
      await robot.press("enter");
      await robot.sees(/OLD \(56 tokens\) +│ NEW/);
      await robot.resize(80, 24);
      await robot.sees("Replace the old text?");
      assert.doesNotMatch(robot.screen(), /OLD.*NEW/, "one below the other on a narrow screen");
      assert.match(robot.screen(), /OLD \(56 tokens\)[^]+NEW \(32 tokens\)[^]+Δ tokens/);
      await robot.resize(40, 10);
      await robot.sees("OLD");
      await robot.press("G");
      await robot.sees("wording");
      await robot.resize(200, 60);
      await robot.sees(/OLD \(56 tokens\) +│ NEW/);
    });
  });
});

describe("guarantee 28: a rewrite of a summary and all below it", () => {
  it("rewrites sources first, as one change, with the result of the library", async () => {
    const [path, other] = [copyOfIt(), copyOfIt()];
    await onFile(other, async (lcm) => {
      const plan = await lcm.planRewrite({ conversation: made.deep, select: { subtree: first(2) } });
      await lcm.rewriteAll(plan, { mode: "apply" });
    });
    await sit(path, { at: first(2), columns: 80, rows: 24 }, async ({ robot, calls }) => {
      await robot.press("W");
      await robot.sees("Rewrite 9 summaries (6 leaves, 2 d1, 1 d2)?");
      await robot.sees("9 calls, about 10,514 tokens in, 3,001 out");
      await robot.press("y");
      await robot.sees("1/9  Replace the old text?");
      await robot.sees(`Rewrite: ${first(0)} (d0, 4 messages)`);
      await robot.press("y");
      await robot.sees("2/9  Replace the old text?");
      await robot.press("A");
      await robot.sees(/✓ Rewrote 9 summaries\. Total: 449t → \d+t \(-\d+\) · u undoes change 1/);
      assert.equal(calls(), 9);
    });
    assert.deepEqual(await textsIn(path), await textsIn(other));
    assert.deepEqual(await changesIn(path), [{ change: 1, operation: "rewrite", steps: 9 }]);
    assert.equal(backupsOf(path), 1);
  });

  it("changes nothing before a yes, or if it is stopped before the first", async () => {
    const path = copyOfIt();
    await sit(path, { at: first(2) }, async ({ robot, behave, calls, isWithdrawn }) => {
      await robot.press("W");
      await robot.sees("Rewrite 9 summaries");
      await robot.press("n");
      await robot.sees("nothing was changed");
      assert.deepEqual(tablesChanged(dumpOf(template), dumpOf(path)), [], "a plan writes nothing at all");
      behave("hangs");
      await robot.press("W");
      await robot.sees("Rewrite 9 summaries");
      await robot.press("y");
      await robot.sees("asking scripted/one (leaf prompt)");
      await asked(calls, 1);
      await robot.press("escape");
      await robot.sees("nothing was changed");
      assert.ok(isWithdrawn());
      assertNothingChanged(path, "after a call that was withdrawn");
    });
  });

  it("keeps skipped texts, stops on request, and continues there the next time", async () => {
    const path = copyOfIt();
    await sit(path, { at: first(2) }, async ({ robot, behave, calls }) => {
      await robot.press("W");
      await robot.sees("Rewrite 9 summaries");
      await robot.press("y");
      await robot.sees("1/9  Replace the old text?");
      await robot.press("n");
      await robot.sees("2/9  Replace the old text?");
      behave("hangs");
      await robot.press("y");
      await robot.sees("so far 1 summary: 53 → 34 tokens (-19), 1 skipped");
      await robot.press("escape");
      await robot.sees("7 summaries were not reached; run it again to continue there");
      await robot.sees("1 summary was skipped; the draft is kept");
      await robot.sees("change 1: press u to undo");
      await robot.press("enter");
      await robot.sees("✓ Rewrote 1 summary. Total: 53t → 34t (-19) · u undoes change 1");
      assert.deepEqual(await changesIn(path), [{ change: 1, operation: "rewrite", steps: 1 }]);

      behave("good");
      const before = calls();
      await robot.press("W");
      await robot.sees("1 draft from an earlier run will be used");
      await robot.sees("1 summary already has the model's text");
      await robot.sees("7 calls");
      await robot.press("A");
      await robot.sees("✓ Rewrote 8 summaries.");
      assert.equal(calls() - before, 7);
    });
  });

  it("stops if the model is unavailable, keeps what is applied, and goes on when it is back", async () => {
    const path = copyOfIt();
    await sit(path, { at: first(1) }, async ({ robot, behave }) => {
      await robot.press("W");
      await robot.sees("Rewrite 4 summaries (3 leaves, 1 d1)?");
      await robot.press("y");
      await robot.sees("1/4  Replace the old text?");
      behave("unauthorized");
      await robot.press("A");
      await robot.sees("log in with openclaw, set");
      await robot.sees("so far 1 summary");
      behave("good");
      await robot.press("enter");
      await robot.sees("✓ Rewrote 4 summaries.");
    });
    assert.deepEqual(await changesIn(path), [{ change: 1, operation: "rewrite", steps: 4 }]);
  });

  it("drafts a summary again that was rewritten since it was shown", async () => {
    const path = copyOfIt();
    await sit(path, { at: first(1) }, async ({ robot }) => {
      await robot.press("W");
      await robot.sees("Rewrite 4 summaries");
      await robot.press("y");
      await robot.sees("1/4  Replace the old text?");
      await onFile(path, async (lcm) => {
        const draft = await lcm.draftRewrite(first(0));
        must(draft.kind === "drafted", "the model is good");
        await lcm.applyRewrite({ ...draft, summary: { ...draft.summary, text: "what others wrote of it" } });
      });
      await robot.press("y");
      await robot.sees("was rewritten in the meantime: drafting it again");
      await robot.sees("what others wrote of it");
      await robot.press("y");
      await robot.sees("2/4  Replace the old text?");
    });
    assert.deepEqual(
      (await changesIn(path)).map(({ change, steps }) => [change, steps]),
      [
        [2, 1],
        [1, 1],
      ],
    );
  });
});

describe("guarantee 18: a repair at the terminal", () => {
  it("shows the findings, rewrites the summaries, and lists unusable answers", async () => {
    const path = copyOfIt();
    await sit(path, {}, async ({ robot, behave }) => {
      await robot.press("R");
      await robot.sees("Repair 1 summary (1 leaf)?");
      await robot.sees(`${made.truncated} was cut short, because the model gave no usable answer`);
      await robot.sees("1 call, about 1,414 tokens in, 479 out (up to 2 if answers are unusable)");
      behave("empty");
      await robot.press("y");
      await robot.sees("1 summary keeps its text, because no answer was usable:");
      await robot.sees(`${made.truncated}: the answer was empty`);
      await robot.press("escape");
      await robot.sees("nothing was changed");
      assertNothingChanged(path, "after answers of no use");
      behave("good");
      await robot.press("R");
      await robot.sees("Repair 1 summary");
      await robot.press("enter");
      await robot.sees("level truncated → normal");
      await robot.press("enter");
      await robot.sees("✓ Repaired 1 summary.");
      await robot.press("R");
      await robot.sees("nothing to repair");
    });
    assert.deepEqual(await changesIn(path), [{ change: 1, operation: "repair", steps: 1 }]);
  });
});
