/** What stands on a change: it is said, with what takes it away, and nothing happens until then. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { MessageId } from "../../core/model.ts";
import { foldPlaces, refuses } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { blockedBy, dissolve, found, of, onScene, rewrite, takeBack, tick, transplant } from "./undo-scene.ts";

export function testUndoObstacles(subject: StoreUnderTest): void {
  describe("what stands in the way", () => {
    it(
      "there is no such change",
      onScene(subject, async ({ store }) => {
        await refuses("not_found", () => store.planUndo(77));
        await refuses("not_found", () => store.undo(77));
      }),
    );

    it(
      "it was taken back already",
      onScene(subject, async (scene) => {
        const change = await rewrite(scene.store, of(scene.leaves, 5), "leaf anew");
        const undone = await takeBack(scene.store, change);
        const obstacles = await blockedBy(scene, change);
        assert.deepEqual(
          obstacles.map((each) => each.change),
          [undone],
        );
      }),
    );

    it(
      "the summary was rewritten again",
      onScene(subject, async (scene) => {
        const { store, leaves } = scene;
        const first = await rewrite(store, of(leaves, 5), "leaf anew");
        const second = await rewrite(store, of(leaves, 5), "leaf anew again");
        const obstacles = await blockedBy(scene, first);
        assert.deepEqual(
          obstacles.map(({ subject: what, change }) => [what, change]),
          [[of(leaves, 5), second]],
        );
        await takeBack(store, second);
        await takeBack(store, first);
      }),
    );

    it(
      "what was made from it was rewritten from its new text",
      onScene(subject, async (scene) => {
        const { store, leaves, condensed } = scene;
        const first = await rewrite(store, of(leaves, 0), "leaf anew");
        const second = await rewrite(store, of(condensed, 0), "condensed anew");
        const obstacles = await blockedBy(scene, first);
        assert.deepEqual(
          obstacles.map(({ subject: what, change }) => [what, change]),
          [[of(condensed, 0), second]],
        );
        await takeBack(store, second);
        await takeBack(store, first);
      }),
    );

    it(
      "in one change too: a part of it that another part was written from is taken back after that one",
      onScene(subject, async (scene) => {
        const { store, leaves, condensed } = scene;
        const change = await rewrite(store, of(leaves, 0), "leaf anew");
        await rewrite(store, of(condensed, 0), "condensed anew", { change });
        const obstacles = await blockedBy(scene, change, of(leaves, 0));
        assert.deepEqual(
          obstacles.map((each) => [each.subject, each.change]),
          [[of(condensed, 0), change]],
        );
        await takeBack(store, change, of(condensed, 0));
        await takeBack(store, change, of(leaves, 0));
      }),
    );

    it(
      "it was folded since: its text is in a deeper one",
      onScene(subject, async (scene) => {
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
      }),
    );

    it(
      "what a dissolve had returned was folded since",
      onScene(subject, async (scene) => {
        const { store, talk, condensed } = scene;
        const change = await dissolve(store, talk.id, of(condensed, 1));
        const above = await foldPlaces(store, talk.id, [1, 2], "folded again");
        const obstacles = await blockedBy(scene, change);
        assert.ok(obstacles.every((each) => each.cover === above && each.message.includes(above)));
        await dissolve(store, talk.id, above);
        await takeBack(store, change);
      }),
    );

    it(
      "what it returned was dissolved since",
      onScene(subject, async (scene) => {
        const { store, talk, leaves, condensed } = scene;
        const first = await dissolve(store, talk.id, of(condensed, 0));
        const second = await dissolve(store, talk.id, of(leaves, 1));
        const obstacles = await blockedBy(scene, first);
        assert.deepEqual(new Set(obstacles.map((each) => each.change)), new Set([second]));
        await takeBack(store, second);
        await takeBack(store, first);
      }),
    );

    it(
      "what it moved aside was moved again by another change, which is named",
      onScene(subject, async (scene) => {
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
      }),
    );

    it(
      "a copy was rewritten, folded, copied on or carried over",
      onScene(subject, async (scene) => {
        const { store, talk } = scene;
        const session = { sessionId: "target", sessionKey: "agent:main:target" };
        const target = await store.open(session);
        const planted = await transplant(store, talk.id, target.id);
        const copies = await store.context(target.id, { kind: "summary" });
        const [first, second] = copies.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
        assert.ok(first !== undefined && second !== undefined);
        const rewritten = await rewrite(store, first, "copy anew");
        assert.deepEqual(
          (await blockedBy(scene, planted)).map(({ change }) => change),
          [rewritten],
        );
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
          "a deep copy of a copy stands on its own; what is carried over does not",
        );
      }),
    );

    it(
      "something was forgotten since, and what was there before with it",
      onScene(subject, async (scene) => {
        const { store, leaves, talk } = scene;
        const change = await rewrite(store, of(leaves, 5), "leaf anew");
        const { messages } = (await store.sources([of(leaves, 5)])).get(of(leaves, 5)) ?? assert.fail();
        const target = { kind: "message", id: of<MessageId>(messages, 0) } as const;
        await store.forget(talk.id, await store.planForget(talk.id, target));
        const obstacles = await blockedBy(scene, change);
        assert.match(obstacles.map(({ message }) => message).join(), /forgotten/);
        const forgotten = (await store.journal({ limit: 1 }))[0]?.change ?? 0;
        assert.match(of(await blockedBy(scene, forgotten), 0).message, /cannot be taken back/);
        await rewrite(store, of(leaves, 5), "leaf without it");
      }),
    );

    it(
      "a secret in its new text was forgotten since",
      onScene(subject, async (scene) => {
        const { store, leaves } = scene;
        const change = await rewrite(store, of(leaves, 5), "leaf with hunter2-of-the-new-text");
        const target = { kind: "secret", text: "hunter2-of-the-new-text" } as const;
        await store.forget(null, await store.planForget(null, target));
        const [obstacle, ...others] = await blockedBy(scene, change);
        assert.deepEqual(others, []);
        assert.equal(obstacle?.change, null, "nobody can take that back");
        assert.match(obstacle?.message ?? "", new RegExp(`^${of(leaves, 5)} was changed since by change .* for good$`));
        await rewrite(store, of(leaves, 5), "leaf without it");
      }),
    );

    it(
      "a secret of the old text is not brought back, neither by taking back nor by doing it again",
      onScene(subject, async (scene) => {
        const { store, leaves } = scene;
        const secret = "hunter2-of-the-old-text";
        await rewrite(store, of(leaves, 5), `leaf with ${secret}`);
        const change = await rewrite(store, of(leaves, 5), "leaf anew");
        const undone = await takeBack(store, change);
        await takeBack(store, undone);
        const target = { kind: "secret", text: secret } as const;
        await store.forget(null, await store.planForget(null, target));
        const journal = JSON.stringify(await store.journal({}));
        assert.ok(!journal.includes(secret));
        for (const each of [change, undone]) {
          if ((await store.planUndo(each)).obstacles.length === 0) await store.undo(each);
          assert.deepEqual(await found(store, "hunter2"), []);
        }
      }),
    );
  });
}
