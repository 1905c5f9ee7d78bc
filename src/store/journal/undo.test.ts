/** Undoing with several obstacles. The contract tests the rest. */

import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { history } from "../../core/maintenance/history.ts";
import { applyFixes, planFixes } from "../../core/maintenance/apply-fix.ts";
import { dissolve, followed, of, onScene, rewrite } from "../../../test/store-contract/undo-scene.ts";
import { sqlite } from "../../../test/store-contract/sqlite.ts";
import { openSqlite } from "../sqlite/store.ts";

const subject = { ...sqlite, open: async (path: string) => await openSqlite({ path, housekeeping: false }) };

describe("purging a summary", () => {
  it(
    "is refused if the plan says that no context shows it, and one does",
    onScene(subject, async ({ store, talk, leaves }) => {
      const summary = of(leaves, 4);
      const outcome = await store.dissolve({ conversation: talk.id, summary, ordinal: null, purge: true });
      assert.deepEqual(outcome, { kind: "stale", reason: `${summary} is in the context` });
    }),
  );
});

describe("purging a summary of another conversation", () => {
  it(
    "is refused, and the summary stays",
    onScene(subject, async ({ store, talk, other, leaves }) => {
      const summary = of(leaves, 4);
      await dissolve(store, talk.id, summary);
      const outcome = await store.dissolve({ conversation: other.id, summary, ordinal: null, purge: true });
      const reason = `there is no ${summary} in conversation ${other.id}`;
      assert.deepEqual(outcome, { kind: "stale", reason });
      assert.equal((await store.summaries({ ids: [summary] })).length, 1);
    }),
  );
});

describe("undoing a part of a change", () => {
  it(
    "that was undone as a whole restores only that part",
    onScene(subject, async ({ store, leaves }) => {
      const [one, other] = [of(leaves, 4), of(leaves, 5)];
      const change = await rewrite(store, one, "one again");
      await rewrite(store, other, "other anew", { change });
      const back = await store.undo(change);
      assert.ok(back.kind === "undone");
      assert.equal((await store.undo(back.change, one)).kind, "undone");
      const texts = (await store.summaries({ ids: [one, other] })).map(({ text }) => text);
      assert.deepEqual(texts, ["one again", "leaf number 5"]);
      const [{ steps } = assert.fail("the change is told")] = await history(store, { change });
      assert.deepEqual(
        steps.map(({ subject, undoneBy }) => [subject, undoneBy]),
        [
          [one, null],
          [other, back.change],
        ],
      );
    }),
  );

  it(
    "is refused if the change did not touch the summary, or does not exist",
    onScene(subject, async ({ store, leaves }) => {
      const change = await rewrite(store, of(leaves, 4), "one again");
      const strange = of(leaves, 5);
      const message = `change ${change} did nothing to ${strange}`;
      await assert.rejects(store.undo(change, strange), { code: "not_found", message });
      await assert.rejects(store.undo(99), { code: "not_found", message: "there is no change 99" });
    }),
  );
});

describe("an obstacle to an undo", () => {
  it(
    "is not a later summary over one whose text the change did not touch",
    onScene(subject, async ({ store, path, leaves, condensed, talk }) => {
      const db = new DatabaseSync(path);
      db.prepare("UPDATE summaries SET descendant_count = 7 WHERE summary_id = ?").run(of(leaves, 0));
      db.close();
      const { change } = await applyFixes(store, await planFixes(store, talk.id));
      const { updatedAt } = (await store.conversation(talk.id)) ?? assert.fail("it exists");
      while (new Date().toISOString() <= updatedAt);
      await rewrite(store, of(condensed, 0), "condensed again");
      assert.deepEqual((await store.planUndo(change ?? assert.fail("something was fixed"))).obstacles, []);
    }),
  );

  it(
    "is the newest later change; undoing each in turn makes the undo possible",
    onScene(subject, async ({ store, leaves }) => {
      const [first, second, third] = [
        await rewrite(store, of(leaves, 5), "leaf again"),
        await rewrite(store, of(leaves, 5), "leaf a second time"),
        await rewrite(store, of(leaves, 5), "leaf a third time"),
      ];
      const { obstacles } = await store.planUndo(first);
      assert.deepEqual(
        obstacles.map(({ change }) => change),
        [third],
      );
      assert.deepEqual(
        (await followed(store, first)).map((remedy) => Number(/\d+/.exec(remedy)?.[0])),
        [third, second],
      );
    }),
  );
});
