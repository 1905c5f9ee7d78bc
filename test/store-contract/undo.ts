/** Contract: an undo restores every table, whatever was sent since, and in whatever order. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { history } from "../../src/core/maintenance/history.ts";
import type { Store } from "../../src/core/model/store.ts";
import { assertSameRows } from "../support/dump.ts";
import { dumpOfContent, journalIn } from "./dump.ts";
import { checkLossless } from "../support/lossless.ts";
import { user } from "../support/scripted-host.ts";
import { deliver, each, foldPlaces, itOn, refuses, shownTexts } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { removeAll } from "./old-conversation.ts";
import { blockedBy, dissolve, found, of, onScene, rewrite, sound, takeBack, tick, transplant } from "./undo-scene.ts";
import type { Scene } from "./undo-scene.ts";

const words = ["leaf", "condensed", "anew", "said", "g1"];
const foundByAll = async (store: Store): Promise<unknown> => await Promise.all(words.map((word) => found(store, word)));

/** Does something, undoes it, redoes it and undoes it again: rows and search results are as before. */
async function thereAndBack(
  { subject, store, path }: Scene,
  work: () => Promise<number>,
  { canRedo = true }: { readonly canRedo?: boolean } = {},
): Promise<void> {
  const [before, foundBefore] = [await dumpOfContent(subject, path), await foundByAll(store)];
  const change = await work();
  await sound(store);
  const [after, foundAfter] = [await dumpOfContent(subject, path), await foundByAll(store)];
  assert.notDeepEqual(after, before);
  const undone = await takeBack(store, change);
  await sound(store);
  assertSameRows(await dumpOfContent(subject, path), before);
  assert.deepEqual(await foundByAll(store), foundBefore);
  assert.ok((await store.journal({ change })).every(({ undoneBy }) => undoneBy === undone));
  if (!canRedo) return;
  const redone = await takeBack(store, undone);
  await sound(store);
  assertSameRows(await dumpOfContent(subject, path), after);
  assert.deepEqual(await foundByAll(store), foundAfter);
  assert.ok(
    (await store.journal({ change })).every(({ undoneBy }) => undoneBy === null),
    "it is in effect again",
  );
  await takeBack(store, redone);
  assertSameRows(await dumpOfContent(subject, path), before);
}

export function testUndo(subject: StoreUnderTest): void {
  const it = itOn(subject, onScene);

  describe("undo restores every table", () => {
    it("a rewrite", async (scene) => {
      await thereAndBack(scene, () => rewrite(scene.store, of(scene.leaves, 5), "leaf anew"));
    });

    it("several rewrites from the bottom up, as one change", async (scene) => {
      const { store, leaves, condensed } = scene;
      await thereAndBack(scene, async () => {
        const change = await rewrite(store, of(leaves, 0), "leaf 0 anew");
        await rewrite(store, of(leaves, 1), "leaf 1 anew", { change });
        assert.equal(await rewrite(store, of(condensed, 0), "condensed 0 anew", { change }), change);
        // Twice in one change: the text from before the change is what comes back.
        await rewrite(store, of(condensed, 0), "condensed 0 anew again", { change });
        return change;
      });
    });

    it("what a change did to one summary; the rest of it stays and can be undone later", async (scene) => {
      const { store, path, leaves } = scene;
      const before = await dumpOfContent(subject, path);
      const change = await rewrite(store, of(leaves, 4), "leaf 4 anew", { operation: "repair" });
      await rewrite(store, of(leaves, 5), "leaf 5 anew", { operation: "repair", change });
      const part = await takeBack(store, change, of(leaves, 4));
      const texts = (await store.summaries({ ids: leaves.slice(4) })).map(({ text }) => text);
      assert.deepEqual(texts, ["leaf number 4", "leaf 5 anew"]);
      const steps = await store.journal({ change });
      assert.deepEqual(
        steps.map(({ subject: id, operation, undoneBy }) => [id, operation, undoneBy]),
        [
          [of(leaves, 5), "repair", null],
          [of(leaves, 4), "repair", part],
        ],
      );
      await refuses("not_found", () => store.undo(change, of(leaves, 0)));
      assert.equal((await store.planUndo(change)).entries.length, 1);
      await takeBack(store, change);
      // The first undo was a write like any other, and the conversation records when.
      const { conversations: _, ...rest } = await dumpOfContent(subject, path);
      const { conversations: __, ...restBefore } = before;
      assertSameRows(rest, restBefore);
    });

    it("a dissolve, even one that moved what comes after it", async (scene) => {
      const { store, talk, other, condensed } = scene;
      await thereAndBack(scene, () => dissolve(store, talk.id, of(condensed, 1)));
      await transplant(store, talk.id, other.id);
      const [first] = await store.context(other.id);
      assert.ok(first?.kind === "summary");
      await thereAndBack(scene, async () => {
        const places = (await store.context(other.id)).map(({ ordinal }) => ordinal);
        const change = await dissolve(store, other.id, first.id);
        const now = (await store.context(other.id)).map(({ ordinal }) => ordinal);
        assert.notDeepEqual(now.slice(2), places.slice(1), "others had to make room");
        return change;
      });
    });

    it("a dissolve that purged, of a leaf and of a condensed one, and purging alone", async (scene) => {
      const { store, talk, leaves, condensed } = scene;
      await thereAndBack(scene, () => dissolve(store, talk.id, of(leaves, 5), true));
      await thereAndBack(scene, () => dissolve(store, talk.id, of(condensed, 0), true));
      await dissolve(store, talk.id, of(condensed, 0));
      await thereAndBack(scene, async () => {
        const plan = { conversation: talk.id, summary: of(condensed, 0), ordinal: null, purge: true };
        const outcome = await store.dissolve(plan);
        return outcome.kind === "written" ? outcome.change : assert.fail(outcome.reason);
      });
    });

    it("a purged summary comes back under another search number if its own was reused", async (scene) => {
      const { store, talk, condensed } = scene;
      const change = await dissolve(store, talk.id, of(condensed, 1), true);
      const newer = await foldPlaces(store, talk.id, [3, 4], "taken meanwhile");
      while ((await store.index(100)) > 0);
      await takeBack(store, change);
      assert.deepEqual(await found(store, "second"), [of(condensed, 1)]);
      assert.deepEqual(await found(store, "taken"), [newer]);
    });

    it("a transplant; what was copied is copied again, not brought back", async (scene) => {
      const { store, talk, other } = scene;
      let change = 0;
      await thereAndBack(scene, async () => (change = await transplant(store, talk.id, other.id)), {
        canRedo: false,
      });
      const [{ undoneBy } = assert.fail()] = await store.journal({ change });
      const [obstacle] = await blockedBy(scene, undoneBy ?? 0);
      assert.match(obstacle?.message ?? "", new RegExp(`lcm transplant ${talk.id} ${other.id}`));
      const steps = (await journalIn(subject, scene.path)).filter((step) => step.change === undoneBy);
      assert.ok(steps.length > 0);
      assert.ok(!JSON.stringify(steps).includes("leaf number"), "no text is stored that cannot be restored");
      await thereAndBack(scene, () => transplant(store, talk.id, other.id), { canRedo: false });
    });

    it("into an empty conversation, which is empty again", async (scene) => {
      const empty = await scene.store.open({ sessionId: "empty" });
      await thereAndBack(scene, () => transplant(scene.store, scene.talk.id, empty.id), { canRedo: false });
      assert.equal((await scene.store.conversation(empty.id))?.lastMessageAt, null);
    });

    it("one change after the other, newest first, back to the beginning", async (scene) => {
      const { store, path, talk, other, leaves, condensed } = scene;
      const before = await dumpOfContent(subject, path);
      const changes = [
        await rewrite(store, of(leaves, 0), "leaf 0 anew"),
        await rewrite(store, of(condensed, 0), "condensed 0 anew"),
        await dissolve(store, talk.id, of(condensed, 0)),
        await rewrite(store, of(leaves, 0), "leaf 0 once more"),
        await transplant(store, talk.id, other.id),
        await dissolve(store, talk.id, of(leaves, 0), false),
      ];
      for (const change of changes.toReversed()) await takeBack(store, change);
      assertSameRows(await dumpOfContent(subject, path), before);
    });
  });

  describe("the host continues meanwhile", () => {
    const goesOn = async ({ store, talk, host, other, guest }: Scene): Promise<void> => {
      for (const text of ["later 1", "later 2"]) {
        host.says(user(text));
        guest.says(user(text));
      }
      await deliver(store, talk, host);
      await deliver(store, other, guest);
    };

    /** Undoing after the host has continued leaves exactly what the host alone would have left. */
    const besides = async (scene: Scene, work: () => Promise<number>): Promise<void> => {
      const { store, talk, host, other, guest } = scene;
      const change = await work();
      await tick();
      await goesOn(scene);
      const written = new Map((await store.conversations()).map(({ id, updatedAt }) => [id, updatedAt]));
      await takeBack(store, change);
      await checkLossless(store, [
        { conversation: talk.id, entries: host.entries },
        { conversation: other.id, entries: guest.entries },
      ]);
      const newest = { [talk.id]: host.entries.at(-1)?.at, [other.id]: guest.entries.at(-1)?.at };
      for (const { id, lastMessageAt, updatedAt } of await store.conversations()) {
        assert.equal(lastMessageAt, newest[id]);
        assert.ok(updatedAt >= (written.get(id) ?? ""), "its last write is the host's, or later");
      }
    };

    it("a rewrite is undone", async (scene) => {
      await besides(scene, () => rewrite(scene.store, of(scene.leaves, 5), "leaf anew"));
      assert.deepEqual((await shownTexts(scene.store, scene.talk.id)).slice(-2), ["later 1", "later 2"]);
    });

    it("so is a dissolve", async (scene) => {
      const { store, talk, condensed } = scene;
      const texts = await shownTexts(store, talk.id);
      await besides(scene, () => dissolve(store, talk.id, of(condensed, 0), true));
      assert.deepEqual(await shownTexts(store, talk.id), [...texts, "later 1", "later 2"]);
    });

    it("and a transplant, even where the copies are newer than everything here", async (scene) => {
      const { store, talk, other } = scene;
      await besides(scene, () => transplant(store, talk.id, other.id));
      assert.deepEqual(await shownTexts(store, other.id), ["g0", "g1", "g2", "later 1", "later 2"]);
    });
  });

  describe("changes", () => {
    it("undone, redone and undone again: each reports at every step whether it is in effect", async (scene) => {
      const { store, leaves } = scene;
      const states = async (): Promise<readonly string[]> =>
        (await history(store)).map(({ state, undoneBy }) => [state, ...undoneBy].join(" ")).toReversed();
      const first = await rewrite(store, of(leaves, 5), "leaf anew");
      assert.deepEqual(await states(), ["holds"]);
      const second = await takeBack(store, first);
      assert.deepEqual(await states(), ["undone 2", "holds"]);
      const third = await takeBack(store, second);
      assert.deepEqual(await states(), ["holds", "undone 3", "holds"]);
      const fourth = await takeBack(store, third);
      assert.deepEqual(await states(), ["undone 2", "holds", "undone 4", "holds"]);
      assert.equal((await store.summaries({ ids: [of(leaves, 5)] }))[0]?.text, "leaf number 5");
      await takeBack(store, fourth);
      assert.deepEqual(await states(), ["holds", "undone 3", "holds", "undone 5", "holds"]);
      assert.equal((await store.summaries({ ids: [of(leaves, 5)] }))[0]?.text, "leaf anew");
    });

    it("are numbered 1, 2, 3 however many steps they have, and no number is reused", async (scene) => {
      const { store, talk, other, leaves } = scene;
      const first = await rewrite(store, of(leaves, 4), "leaf 4 anew");
      await rewrite(store, of(leaves, 5), "leaf 5 anew", { change: first });
      const second = await transplant(store, talk.id, other.id);
      const third = await rewrite(store, of(leaves, 5), "leaf 5 once more");
      assert.deepEqual([first, second, third], [1, 2, 3]);
      const { change: fourth } = await removeAll(store, talk.id);
      assert.equal(fourth, 4);
      const [shown] = await store.context(other.id);
      assert.ok(shown?.kind === "summary");
      assert.equal(await dissolve(store, other.id, shown.id), 5);
      assert.deepEqual(each(await store.journal({}), "change"), [5, 4, 2]);
    });
  });
}
