/** Contract: an undo names what depends on the change and the remedy, and does nothing until it is free. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { sql } from "../../src/store/script.ts";
import { planUndo } from "../../src/core/maintenance/history.ts";
import { assertSameRows } from "../support/dump.ts";
import { dumpOfContent } from "./dump.ts";
import { each, foldPlaces, itOn, refuses, shownTexts } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { removeAll } from "./old-conversation.ts";
import {
  blockedBy,
  blockers,
  dissolve,
  followed,
  of,
  onlyBlocker,
  onScene,
  purge,
  rewrite,
  takeBack,
  tick,
  transplant,
} from "./undo-scene.ts";

export function testUndoObstacles(subject: StoreUnderTest): void {
  const it = itOn(subject, onScene);

  describe("what blocks an undo", () => {
    it("there is no such change", async ({ store }) => {
      await refuses("not_found", () => store.planUndo(77));
      await refuses("not_found", () => store.undo(77));
    });

    it("it was undone already", async (scene) => {
      const change = await rewrite(scene.store, of(scene.leaves, 5), "leaf anew");
      const undone = await takeBack(scene.store, change);
      assert.deepEqual(each(await blockedBy(scene, change), "change"), [undone]);
    });

    it("the summary was rewritten again", async (scene) => {
      const { store, leaves } = scene;
      const first = await rewrite(store, of(leaves, 5), "leaf anew");
      const second = await rewrite(store, of(leaves, 5), "leaf anew again");
      assert.deepEqual(await blockers(scene, first), [[of(leaves, 5), second]]);
      await takeBack(store, second);
      await takeBack(store, first);
    });

    it("what was made from it was rewritten from its new text", async (scene) => {
      const { store, leaves, condensed } = scene;
      const first = await rewrite(store, of(leaves, 0), "leaf anew");
      const second = await rewrite(store, of(condensed, 0), "condensed anew");
      assert.deepEqual(await blockers(scene, first), [[of(condensed, 0), second]]);
      await takeBack(store, second);
      await takeBack(store, first);
    });

    it("in one change too: a part that another part was written from is undone after that one", async (scene) => {
      const { store, leaves, condensed } = scene;
      const change = await rewrite(store, of(leaves, 0), "leaf anew");
      await rewrite(store, of(condensed, 0), "condensed anew", { change });
      assert.deepEqual(await blockers(scene, change, of(leaves, 0)), [[of(condensed, 0), change]]);
      await takeBack(store, change, of(condensed, 0));
      await takeBack(store, change, of(leaves, 0));
    });

    it("it was folded since: its text is in a deeper summary", async (scene) => {
      const { store, talk, leaves } = scene;
      const change = await rewrite(store, of(leaves, 5), "leaf anew");
      await tick();
      const above = await foldPlaces(store, talk.id, [2, 3], "condensed third");
      const obstacles = await blockedBy(scene, change);
      assert.deepEqual(
        obstacles.map((each) => [each.subject, each.change, each.cover]),
        [[above, null, above]],
      );
      await dissolve(store, talk.id, above, true);
      await takeBack(store, change);
    });

    it("what a dissolve had returned was folded since", async (scene) => {
      const { store, talk, condensed } = scene;
      const change = await dissolve(store, talk.id, of(condensed, 1));
      const above = await foldPlaces(store, talk.id, [1, 2], "folded again");
      const obstacles = await blockedBy(scene, change);
      assert.ok(obstacles.every((each) => each.cover === above && each.message.includes(above)));
      await dissolve(store, talk.id, above);
      await takeBack(store, change);
    });

    it("what it returned was dissolved since", async (scene) => {
      const { store, talk, leaves, condensed } = scene;
      const first = await dissolve(store, talk.id, of(condensed, 0));
      const second = await dissolve(store, talk.id, of(leaves, 1));
      const obstacles = await blockedBy(scene, first);
      assert.deepEqual(new Set(obstacles.map((each) => each.change)), new Set([second]));
      await takeBack(store, second);
      await takeBack(store, first);
    });

    it("what it moved aside was moved again by another change, which is named", async (scene) => {
      const { store, talk, other } = scene;
      const planted = await transplant(store, talk.id, other.id);
      const [first, second] = (await store.context(other.id)).flatMap((item) =>
        item.kind === "summary" ? [item.id] : [],
      );
      assert.ok(first !== undefined && second !== undefined);
      const opened = await dissolve(store, other.id, first);
      const obstacles = await blockedBy(scene, planted);
      assert.deepEqual(new Set(obstacles.map(({ change }) => change)), new Set([opened]));
      await takeBack(store, opened);
      await takeBack(store, planted);
    });

    it("a copy was rewritten, folded, copied on or carried over", async (scene) => {
      const { store, talk } = scene;
      const session = { sessionId: "target", sessionKey: "agent:main:target" };
      const target = await store.open(session);
      const planted = await transplant(store, talk.id, target.id);
      const copies = await store.context(target.id, { kind: "summary" });
      const [first, second] = copies.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
      assert.ok(first !== undefined && second !== undefined);
      const rewritten = await rewrite(store, first, "copy anew");
      assert.deepEqual(each(await blockedBy(scene, planted), "change"), [rewritten]);
      await takeBack(store, rewritten);
      const above = await foldPlaces(store, target.id, [0, 1], "over copies");
      assert.ok((await blockedBy(scene, planted)).some(({ cover }) => cover === above));
      await dissolve(store, target.id, above, true);
      const further = await store.open({ sessionId: "further" });
      await transplant(store, target.id, further.id);
      const next = await store.openSegment(session, { carryDepth: 1 });
      const carried = await store.context(next.id);
      assert.deepEqual(
        (await blockedBy(scene, planted)).map((each) => each.subject).toSorted(),
        carried.map(({ id }) => String(id)).toSorted(),
        "a deep copy of a copy is independent; a carried text is not",
      );
    });

    it("what it would put back was purged since, which is named, and the remedy works", async (scene) => {
      const { store, path, talk, leaves } = scene;
      const before = await dumpOfContent(subject, path);
      const opened = await dissolve(store, talk.id, of(leaves, 5));
      const purged = await purge(store, talk.id, of(leaves, 5));
      assert.deepEqual(await blockers(scene, opened), [[of(leaves, 5), purged]]);
      assert.deepEqual(await followed(store, opened), [`lcm undo ${purged}`]);
      assertSameRows(await dumpOfContent(subject, path), before);
    });

    it("its sources were purged since", async (scene) => {
      const { store, path, talk, leaves, condensed } = scene;
      const before = await dumpOfContent(subject, path);
      const upper = await dissolve(store, talk.id, of(condensed, 0), true);
      const lower = await dissolve(store, talk.id, of(leaves, 0), true);
      assert.deepEqual(new Set((await blockedBy(scene, upper)).map(({ change }) => change)), new Set([lower]));
      assert.deepEqual(await followed(store, upper), [`lcm undo ${lower}`]);
      assertSameRows(await dumpOfContent(subject, path), before);
    });

    it("purging it again is blocked while it is in the context again, and the remedy works", async (scene) => {
      const { store, talk, leaves } = scene;
      const leaf = of(leaves, 5);
      const opened = await dissolve(store, talk.id, leaf);
      const purged = await purge(store, talk.id, leaf);
      const back = await takeBack(store, purged);
      await takeBack(store, opened);
      const obstacle = await onlyBlocker(scene, back);
      assert.equal(obstacle.cover, leaf);
      assert.match(obstacle.message, new RegExp(`^${leaf} is in the context of conversation ${talk.id} now$`));
      assert.deepEqual(await followed(store, back), [`lcm dissolve ${talk.id} --summary ${leaf}`]);
      assert.deepEqual(await store.summaries({ ids: [leaf] }), []);
    });

    it("copies that a dissolved summary of the host is still tied to stay until it is purged", async (scene) => {
      const { store, talk, other } = scene;
      const planted = await transplant(store, talk.id, other.id);
      const shown = await store.context(other.id);
      const place = shown.findIndex(({ kind, depth }) => kind === "summary" && depth === 0);
      const copy = of(shown, place);
      assert.ok(copy.kind === "summary");
      const opened = await dissolve(store, other.id, copy.id);
      const own = await foldPlaces(store, other.id, [place, place + 1], "of the host's own");
      await dissolve(store, other.id, own);
      await takeBack(store, opened);
      const obstacle = await onlyBlocker(scene, planted);
      assert.equal(obstacle.subject, own);
      assert.deepEqual(await followed(store, planted), [`lcm dissolve ${other.id} --summary ${own} --purge`]);
      assert.deepEqual(await shownTexts(store, other.id), ["g0", "g1", "g2"]);
    });

    it("copies whose originals were deleted are the only ones left: they stay for good", async (scene) => {
      const { store, talk, other } = scene;
      const planted = await transplant(store, talk.id, other.id);
      const held = await store.messages({ conversation: other.id });
      await removeAll(store, talk.id);
      const obstacle = await onlyBlocker(scene, planted);
      assert.match(obstacle.message, /cannot be undone: the originals of 12 messages are gone/);
      assert.equal((await planUndo(store, planted)).obstacles[0]?.remedy, null);
      assert.deepEqual(await store.messages({ conversation: other.id }), held);
    });

    it("unless another copy of them is left", async ({ store, path, talk, other }) => {
      await transplant(store, talk.id, other.id);
      await removeAll(store, talk.id);
      const further = await store.open({ sessionId: "further" });
      const before = await dumpOfContent(subject, path);
      await takeBack(store, await transplant(store, other.id, further.id));
      assertSameRows(await dumpOfContent(subject, path), before);
    });

    it("copies of summaries alone are not brought back either: they are copied again", async (scene) => {
      const { store, other } = scene;
      const segment = await store.openSegment({ sessionId: "talk" }, { carryDepth: 1 });
      await foldPlaces(store, segment.id, [0, 1], "over what is carried over");
      const planted = await transplant(store, segment.id, other.id);
      const undone = await takeBack(store, planted);
      const obstacle = await onlyBlocker(scene, undone);
      assert.match(obstacle.message, new RegExp(`lcm transplant ${segment.id} ${other.id}`));
      assert.ok(!JSON.stringify(await store.journal({ change: undone })).includes("carried over"));
      await transplant(store, segment.id, other.id);
    });

    it("it only removed rows that belonged to nothing, which cannot be restored", async (scene) => {
      await subject.raw(scene.path, function* () {
        yield sql`INSERT INTO summary_messages (summary_id, message_id, ordinal, conversation_id)
                  VALUES ('sum_0000000000000000', 1, 0, 1)`;
      });
      const { change, removed } = await scene.store.sweepOrphans();
      assert.equal(removed, 1);
      const obstacle = await onlyBlocker(scene, change ?? 0);
      assert.match(obstacle.message, /cannot be undone: it only removed orphaned rows/);
    });
  });
}
