/** Changes in the explorer: every one is planned, applied as planned, seen in the history, and undone. */

import assert from "node:assert/strict";
import { copyFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { before, describe, it } from "node:test";
import { createLcm } from "../../src/core/lcm.ts";
import { messageIdOf } from "../../src/core/model/types.ts";
import type { SummaryId } from "../../src/core/model/types.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import type { ChangeRequest, Job } from "../../src/web/contract.ts";
import { makeDeepConversation, type DeepConversation } from "../support/deep-conversation.ts";
import { createScriptedModel, type Behaviour } from "../support/scripted-model.ts";
import { makeScratch } from "../support/scratch.ts";
import { withExplorer, type Explorer, type Options } from "./ground.ts";

const template = join(makeScratch("web-changes"), "template.db");
let made: DeepConversation;
before(async () => {
  made = await makeDeepConversation(template);
});

/** On a copy of its own. */
async function on(work: (explorer: Explorer, path: string) => Promise<void>, options: Options = {}): Promise<void> {
  const path = join(makeScratch("web-change"), "lcm.db");
  copyFileSync(template, path);
  await withExplorer(path, { write: true, ...options }, async (explorer) => await work(explorer, path));
}

async function applied(
  { write, ended }: Explorer,
  request: ChangeRequest,
): Promise<{ words: string; change: number | null }> {
  const plan = await write("plan", request);
  assert.equal(plan.refusal, null);
  assert.ok(plan.lines.length > 0);
  const { result, failure } = await ended(await write("apply", { plan: plan.id }));
  assert.equal(failure, null);
  assert.ok(result?.kind === "applied", JSON.stringify(result));
  return result;
}

const model = (behaviour: () => Behaviour = () => "good", delayMs = 5) => createScriptedModel({ behaviour, delayMs });

const topOf = async ({ read }: Explorer): Promise<SummaryId> => {
  const { summaries } = await read("timeline", { conversation: made.deep });
  return (
    summaries.find(({ above, depth }) => above === null && depth === 0)?.id ?? assert.fail("a leaf is in the context")
  );
};

describe("a change in the explorer", () => {
  it("is planned, applied after a backup, shown in the history and undone", async () => {
    await on(async (explorer, path) => {
      const { read } = explorer;
      const summary = await topOf(explorer);
      const context = async () =>
        (await read("timeline", { conversation: made.deep })).summaries.map(({ state }) => state);
      const untouched = await context();
      const { words, change } = await applied(explorer, {
        kind: "dissolve",
        conversation: made.deep,
        summary,
        purge: false,
      });
      assert.match(words, /^dissolved: 4 messages returned$/);
      assert.equal(change, 1);
      assert.notDeepEqual(await context(), untouched);
      assert.ok(readdirSync(dirname(path)).some((name) => name.includes("backup")));
      const { rows } = await read("history", { conversation: made.deep });
      assert.deepEqual(
        rows.map(({ operation, state }) => [operation, state]),
        [["dissolve", "holds"]],
      );
      assert.equal((await read("change", { change: 1 })).change.steps.length, 1);
      const undone = await applied(explorer, { kind: "undo", change: 1 });
      assert.deepEqual([undone.words, undone.change], ["undid change 1", 2]);
      assert.deepEqual(await context(), untouched);
    });
  });

  it("that is outdated is planned again, and nothing is changed", async () => {
    await on(async (explorer, path) => {
      const { write, ended, read } = explorer;
      const summary = await topOf(explorer);
      const request = { kind: "dissolve", conversation: made.deep, summary, purge: true } as const;
      const plan = await write("plan", request);
      // Somebody else dissolves it meanwhile.
      const lcm = createLcm({ store: await openSqlite({ path, housekeeping: false }), clock: { now: systemNow } });
      const dissolving = await lcm.planDissolve({ ...request, purge: false });
      await lcm.dissolve(dissolving);
      await lcm.close();
      const { result, failure } = await ended(await write("apply", { plan: plan.id }));
      if (result !== null) {
        assert.ok(result.kind === "planned again");
        assert.deepEqual([result.plan.isAgain, result.plan.id === plan.id], [true, false]);
      } else assert.match(failure?.message ?? "", /context/);
      assert.equal((await read("history", {})).rows.length, 1);
    });
  });

  it("can be a transplant, a pin, a fix or a compaction", async () => {
    await on(async (explorer) => {
      const { read, write } = explorer;
      const copied = await applied(explorer, { kind: "transplant", source: made.deep, target: made.older });
      assert.match(copied.words, /^Copied \d+ summaries/);
      const user = messageIdOf(made.deep, 97);
      const pinned = await applied(explorer, { kind: "pin", message: user });
      assert.match(pinned.words, /pinned$/);
      assert.equal((await read("message", { id: user })).pin?.message, user);
      const { marks } = await read("timeline", { conversation: made.deep });
      assert.ok(marks.some(({ kind, of }) => kind === "pin" && of === user));
      const fix = await write("plan", { kind: "fix", conversation: made.deep });
      assert.match(fix.refusal?.message ?? "", /nothing to fix/);
      const folded = await applied(explorer, {
        kind: "compact",
        conversation: made.deep,
        isForced: true,
        isLocal: true,
      });
      assert.equal(folded.change, null);
      assert.ok((await read("stats", { conversation: made.deep })).compactions.length > 0);
    });
  });

  it("that cannot be made says why, and is not applied", async () => {
    await on(async ({ write, refusedWrite, ended }) => {
      const same = await refusedWrite("plan", {
        kind: "dissolve",
        conversation: made.deep,
        summary: made.truncated,
        purge: false,
      });
      assert.deepEqual([same.status, same.code], [409, "conflict"]);
      assert.ok(same.hint !== null);
      for (const body of [
        {},
        { kind: "prune", conversation: 1 },
        { kind: "undo" },
        { kind: "pin", message: "msg_1-1" },
      ])
        assert.equal((await refusedWrite("plan", body)).status, 400);
      assert.equal((await refusedWrite("plan", { kind: "undo", change: 99 })).status, 404);
      assert.equal((await refusedWrite("apply", { plan: "none" })).status, 404);
      const nothing = await write("plan", { kind: "fix", conversation: made.deep });
      const { result, failure } = await ended(await write("apply", { plan: nothing.id }));
      assert.ok(failure !== null || result?.kind === "planned again");
    });
  });
});

describe("a rewrite in the explorer", () => {
  it("is drafted beside the old text, applied as drafted, and undone", async () => {
    await on(
      async (explorer) => {
        const { read, write, ended } = explorer;
        const summary = made.truncated;
        const old = await read("summary", { id: summary });
        const plan = await write("rewritePlan", { conversation: made.deep, select: { summary } });
        assert.deepEqual(
          plan.targets.map((each) => [each.summary, each.state]),
          [[summary, "to draft"]],
        );
        assert.deepEqual([plan.refusal, plan.above], [null, 1]);
        assert.match(plan.source ?? "", /\w/);
        const drafting = await ended(await write("draft", { plan: plan.id, summary, isFresh: false }));
        assert.ok(drafting.result?.kind === "draft" && drafting.result.drafted.kind === "drafted");
        const { drafted } = drafting.result;
        assert.equal(drafted.old.text, old.text);
        const side = (kinds: readonly string[]) =>
          drafted.diff.flatMap(({ kind, text }) => (kinds.includes(kind) ? [text] : [])).join("\n");
        assert.deepEqual([side(["same", "old"]), side(["same", "new"])], [drafted.old.text, drafted.new.text]);
        assert.equal((await read("summary", { id: summary })).text, old.text, "nothing is changed yet");
        const applying = await ended(await write("rewriteApply", { draft: drafted.draft }));
        assert.ok(applying.result?.kind === "applied" && applying.result.change === 1);
        const now = await read("summary", { id: summary });
        assert.deepEqual([now.text, now.level, now.revision], [drafted.new.text, "normal", old.revision + 1]);
        const again = await ended(await write("rewriteApply", { draft: drafted.draft }));
        assert.equal(again.result?.kind, "stale");
        await applied(explorer, { kind: "undo", change: 1 });
        assert.equal((await read("summary", { id: summary })).text, old.text);
      },
      { model: model() },
    );
  });

  it("of several is one change", async () => {
    await on(
      async ({ read, write, ended }) => {
        const plan = await write("rewritePlan", { conversation: made.older, select: { repair: true } });
        assert.deepEqual(
          plan.targets.map(({ summary }) => summary).toSorted(),
          [made.extractive, made.marked].toSorted(),
        );
        let change: number | undefined;
        for (const { summary } of plan.targets) {
          const { result } = await ended(await write("draft", { plan: plan.id, summary, isFresh: true }));
          assert.ok(result?.kind === "draft" && result.drafted.kind === "drafted");
          const body = { draft: result.drafted.draft, ...(change === undefined ? {} : { change }) };
          const job = await ended(await write("rewriteApply", body));
          assert.ok(job.result?.kind === "applied" && job.result.change !== null);
          change = job.result.change;
        }
        const { rows } = await read("history", {});
        assert.deepEqual(
          rows.map((row) => row.change),
          [1],
        );
      },
      { model: model() },
    );
  });

  it("says what is wrong with the model, and without one that there is none", async () => {
    await on(
      async ({ write, ended }) => {
        const plan = await write("rewritePlan", { conversation: made.deep, select: { summary: made.truncated } });
        const { failure } = await ended(
          await write("draft", { plan: plan.id, summary: made.truncated, isFresh: false }),
        );
        assert.equal(failure?.code, "unavailable");
        assert.ok(failure.hint !== null);
      },
      { model: model(() => "refuses") },
    );
    await on(async ({ write }) => {
      const plan = await write("rewritePlan", { conversation: made.deep, select: { summary: made.truncated } });
      assert.match(plan.refusal?.message ?? "", /needs a model/);
    });
  });
});

describe("work that takes a while", () => {
  it("tells its progress to every page, and can be stopped; what was done is kept", async () => {
    await on(
      async (explorer) => {
        const { write, events, ended } = explorer;
        const plan = await write("rewritePlan", { conversation: made.deep, select: { summary: made.truncated } });
        let job: Job | null = null;
        const seen = await events(
          "",
          (all) => all.some(({ event, data }) => event === "job" && (data as Job).failure !== null),
          async () => {
            job = await write("draft", { plan: plan.id, summary: made.truncated, isFresh: true });
            const { progress } = await write("jobStop", { id: job.id });
            assert.equal(typeof progress.words, "string");
          },
        );
        assert.ok(job !== null);
        const { failure } = await ended(job);
        assert.ok(
          failure?.code === "stopped" || failure?.code === "unavailable",
          failure?.message ?? "it did not fail",
        );
        assert.ok(seen.some(({ event, data }) => event === "job" && (data as Job).id === job?.id));
      },
      { model: model(() => "slow", 60_000) },
    );
  });

  it("ends with the server", async () => {
    const started = performance.now();
    await on(
      async ({ write }) => {
        const plan = await write("rewritePlan", { conversation: made.deep, select: { summary: made.truncated } });
        await write("draft", { plan: plan.id, summary: made.truncated, isFresh: true });
      },
      { model: model(() => "slow", 600_000) },
    );
    assert.ok(performance.now() - started < 300_000);
  });
});
