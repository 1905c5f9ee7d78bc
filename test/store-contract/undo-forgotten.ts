/** Contract: forgotten content is also gone from the journal, and no undo brings it back. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { history } from "../../src/core/maintenance/history.ts";
import { inspect } from "../../src/core/maintenance/inspect.ts";
import type { Conversation, SummaryId } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { dumpOf, journalIn } from "./dump.ts";
import { createHost } from "../support/scripted-host.ts";
import { foldPlaces, itOn, numbered, say, shownTexts, summary } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import {
  blockedBy,
  dissolve,
  forget,
  found,
  messageUnder,
  of,
  onlyBlocker,
  onScene,
  rewrite,
  takeBack,
  tick,
} from "./undo-scene.ts";
import type { Scene } from "./undo-scene.ts";

export function testUndoForgotten(subject: StoreUnderTest): void {
  const it = itOn(subject, onScene);

  describe("changes to what was forgotten", () => {
    it("something was forgotten since, along with its earlier text", async (scene) => {
      const { store, leaves, talk } = scene;
      const change = await rewrite(store, of(leaves, 5), "leaf anew");
      await forget(store, { kind: "message", id: await messageUnder(store, of(leaves, 5)) }, talk.id);
      const obstacles = await blockedBy(scene, change);
      assert.match(obstacles.map(({ message }) => message).join(), /forgotten/);
      const forgotten = (await store.journal({ limit: 1 }))[0]?.change ?? 0;
      assert.match(of(await blockedBy(scene, forgotten), 0).message, /cannot be undone/);
      await rewrite(store, of(leaves, 5), "leaf without it");
    });

    it("a secret in its new text was forgotten since", async (scene) => {
      const { store, leaves } = scene;
      const change = await rewrite(store, of(leaves, 5), "leaf with hunter2-of-the-new-text");
      await forget(store, { kind: "secret", text: "hunter2-of-the-new-text" });
      const obstacle = await onlyBlocker(scene, change);
      assert.equal(obstacle.change, null, "there is no change to undo first");
      assert.match(obstacle.message, new RegExp(`^${of(leaves, 5)} was changed since by change .* cannot be undone$`));
      await rewrite(store, of(leaves, 5), "leaf without it");
    });

    it("a secret of the old text is not brought back, neither by undo nor by redo", async (scene) => {
      const { store, leaves } = scene;
      const secret = "hunter2-of-the-old-text";
      await rewrite(store, of(leaves, 5), `leaf with ${secret}`);
      const change = await rewrite(store, of(leaves, 5), "leaf anew");
      const undone = await takeBack(store, change);
      await takeBack(store, undone);
      await forget(store, { kind: "secret", text: secret });
      assert.ok(!JSON.stringify(await journalIn(subject, scene.path)).includes(secret));
      for (const each of [change, undone]) {
        if ((await store.planUndo(each)).obstacles.length === 0) await store.undo(each);
        assert.deepEqual(await found(store, "hunter2"), []);
      }
    });

    for (const [what, secret] of [
      ["a count", "4821"],
      ["a time", "-17T07:37"],
      ["part of an id", "8800"],
      ["a name in the journal", "columns"],
      ["the name of a column", "token_count"],
      ["a level of summaries", "normal"],
    ] as const) {
      it(`a secret that is ${what} as well: redacted text is not put back, and everything still reads`, async (scene) => {
        const { store, talk, leaves } = scene;
        const long = summary("leaf of many tokens", { tokens: 4821, fileIds: ["file_0123456789ab8800"] });
        await store.rewrite({ summary: of(leaves, 5), revision: 0 }, long);
        await rewrite(store, of(leaves, 5), "leaf anew");
        await dissolve(store, talk.id, of(leaves, 5), true);
        const held = (await journalIn(subject, scene.path)).filter(({ text }) => text.includes(secret));
        assert.ok(held.length > 0);
        await forget(store, { kind: "secret", text: secret });
        for (const { change } of held) {
          const obstacles = await blockedBy(scene, change);
          assert.match(obstacles.map(({ message }) => message).join(), /the previous text has been forgotten/);
        }
        assert.ok((await journalIn(subject, scene.path)).every(({ text }) => !text.includes(secret)));
        assert.equal((await store.context(talk.id)).length, 9);
        assert.ok((await history(store)).length >= 4);
        await inspect(store, null);
      });
    }

    it(
      "a secret in a text alone is redacted there, and the change can still be undone",
      async ({ store, talk, leaves }) => {
        await rewrite(store, of(leaves, 5), "leaf with hunter2-zzz inside");
        const purged = await dissolve(store, talk.id, of(leaves, 5), true);
        await forget(store, { kind: "secret", text: "hunter2-zzz" });
        await takeBack(store, purged);
        assert.equal((await store.summaries({ ids: [of(leaves, 5)] }))[0]?.text, "leaf with [forgotten] inside");
      },
      ["summary_outdated"],
    );

    it("the text of a summary that was purged since goes with a message that was below it", async (scene) => {
      const { store, talk, leaves } = scene;
      const message = await messageUnder(store, of(leaves, 5));
      await rewrite(store, of(leaves, 5), "leaf with confidential words");
      await rewrite(store, of(leaves, 5), "leaf with other words");
      const purged = await dissolve(store, talk.id, of(leaves, 5), true);
      await forget(store, { kind: "message", id: message });
      assert.deepEqual(await traces(scene, "leaf with", "leaf number 5"), []);
      await blockedBy(scene, purged);
    });

    it("a marked summary gets a new text, and the old one is nowhere and does not come back", async (scene) => {
      const { store, talk, leaves } = scene;
      await rewrite(store, of(leaves, 5), "leaf with confidential words");
      await forget(store, { kind: "message", id: await messageUnder(store, of(leaves, 5)) });
      const change = await rewrite(store, of(leaves, 5), "leaf without them");
      assert.deepEqual(await traces(scene, "confidential"), []);
      assert.match(of(await blockedBy(scene, change), 0).message, /forgotten/);
      assert.equal((await shownTexts(store, talk.id))[3], "leaf without them");
    });

    it("a marked summary that is purged instead takes its text along", async (scene) => {
      const { store, talk, leaves } = scene;
      await rewrite(store, of(leaves, 5), "leaf with confidential words");
      await forget(store, { kind: "message", id: await messageUnder(store, of(leaves, 5)) });
      const change = await dissolve(store, talk.id, of(leaves, 5), true);
      assert.deepEqual(await traces(scene, "confidential"), []);
      assert.match(of(await blockedBy(scene, change), 0).message, /forgotten/);
    });

    it("what carries the text over is marked too, and gets the new text with the original", async (scene) => {
      const { store } = scene;
      const { leaf, segments } = await carrying(store);
      await forget(store, { kind: "message", id: await messageUnder(store, leaf) });
      const carried = await Promise.all(segments.map(async ({ id }) => await firstShown(store, { id })));
      for (const { rewriteReason } of await store.summaries({ ids: [leaf, ...carried] }))
        assert.match(rewriteReason ?? "", /forgotten/);
      const change = await rewrite(store, leaf, "harmless");
      for (const { id } of segments) {
        assert.equal((await shownTexts(store, id))[0], "harmless");
        const { conversation, recounted } = await store.skeleton(id);
        assert.deepEqual(conversation.totals, recounted);
      }
      for (const { rewriteReason } of await store.summaries({ ids: [leaf, ...carried] }))
        assert.equal(rewriteReason, null);
      assert.deepEqual(await traces(scene, "confidential"), []);
      assert.deepEqual(await found(store, "harmless"), [leaf], "a carried text is not found twice");
      await blockedBy(scene, change);
    });

    it(
      "what was made from a carried text is marked as well, and a purged one's text is gone",
      async (scene) => {
        const { store } = scene;
        const { leaf, segments } = await carrying(store);
        const { id } = of(segments, 1);
        const own = await foldPlaces(store, id, [1, 2], "words of its own");
        const purged = await foldPlaces(store, id, [0, 1], "confidential, in a deeper one");
        await dissolve(store, id, purged, true);
        const above = await foldPlaces(store, id, [0, 1], "another deeper one");
        await forget(store, { kind: "message", id: await messageUnder(store, leaf) });
        const [marked, unmarked] = await Promise.all(
          [above, own].map(async (one) => await store.summaries({ ids: [one] })),
        );
        assert.match(marked?.[0]?.rewriteReason ?? "", /forgotten/);
        assert.equal(unmarked?.[0]?.rewriteReason, null);
        assert.ok(!JSON.stringify(await journalIn(subject, scene.path)).includes("confidential"));
      },
      ["summary_outdated"],
    );

    it(
      "forgetting elsewhere in the parent does not prevent a rewrite from being undone",
      async ({ store, leaves, condensed }) => {
        await rewrite(store, of(condensed, 0), "condensed with hunter2-xyz");
        await tick();
        const change = await rewrite(store, of(leaves, 0), "leaf anew");
        await tick();
        await forget(store, { kind: "secret", text: "hunter2-xyz" });
        await takeBack(store, change);
        assert.equal((await store.summaries({ ids: [of(leaves, 0)] }))[0]?.text, "leaf number 0");
      },
      ["summary_outdated"],
    );
  });
}

/** The rows of every table that still contain one of these. */
const traces = async ({ subject, path }: Scene, ...words: readonly string[]): Promise<readonly string[]> =>
  Object.values(await dumpOf(subject, path))
    .flat()
    .filter((row) => words.some((word) => row.includes(word)));

const firstShown = async (store: Store, { id }: Pick<Conversation, "id">): Promise<SummaryId> => {
  const [first] = await store.context(id);
  return first?.kind === "summary" ? first.id : assert.fail("a summary comes first");
};

/** A leaf whose text was carried over into a second segment, and on into a third. */
async function carrying(
  store: Store,
): Promise<{ readonly leaf: SummaryId; readonly segments: readonly Conversation[] }> {
  const session = { sessionId: "carrying", sessionKey: "agent:main:carrying" };
  const first = await store.open(session);
  await say(store, first, createHost("k"), ...numbered(4, (n) => `k${n} is what was said`));
  const leaf = await foldPlaces(store, first.id, [0, 1], "confidential words");
  const segments = [
    await store.openSegment({ ...session, sessionId: "second" }, { carryDepth: 0 }),
    await store.openSegment({ ...session, sessionId: "third" }, { carryDepth: 0 }),
  ];
  await say(store, of(segments, 1), createHost("l"), ...numbered(4, (n) => `l${n} is what was said later`));
  while ((await store.index(100)) > 0);
  return { leaf, segments };
}
