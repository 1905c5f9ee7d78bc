/** Contract: drafts of rewrites are kept for the exact text they were written from, and removed once useless. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe } from "node:test";
import type { ConversationId, SummaryId } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { dumpOf } from "./dump.ts";
import { createHost } from "../support/scripted-host.ts";
import { foldPlaces, itOn, numbered, onFile, onStore, say, summary } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { removeAll } from "./old-conversation.ts";
import { dissolve, tick } from "./undo-scene.ts";

export function testDrafts(subject: StoreUnderTest): void {
  const it = itOn(subject, onStore);

  describe("drafts", () => {
    it("keeps a draft for exactly what it was written from, the newest few of a summary", async ({ store }) => {
      const { leaf, other } = await folded(store);
      assert.equal(await store.draft(leaf, "basis"), null);
      const draft = summary("better", { level: "aggressive", model: "m", fileIds: ["file_0123456789abcdef"] });
      await store.saveDraft(leaf, "basis", draft);
      assert.deepEqual(await store.draft(leaf, "basis"), draft);
      assert.equal(await store.draft(leaf, "basis "), null);
      assert.equal(await store.draft(other, "basis"), null);
      await store.saveDraft(leaf, "basis", summary("best"));
      assert.deepEqual(await store.draft(leaf, "basis"), summary("best"));
      await tick();
      for (let other = 0; other < 5; other++) await store.saveDraft(leaf, `basis ${other}`, summary(`${other}`));
      for (let other = 0; other < 5; other++)
        assert.deepEqual(await store.draft(leaf, `basis ${other}`), summary(`${other}`));
      assert.equal(await store.draft(leaf, "basis"), null);
    });

    it("a draft goes with its summary, whether purged or pruned with its conversation", async ({ folder }) => {
      const path = join(folder, "place", "lcm.db");
      await onFile(subject, path, async (store) => {
        const { leaf, other, id } = await folded(store);
        for (const each of [leaf, other]) await store.saveDraft(each, "basis", summary("better"));
        await dissolve(store, id, leaf, true);
        assert.equal(await store.draft(leaf, "basis"), null);
        assert.equal((await dumpOf(subject, path))["drafts"]?.length, 1);
        await removeAll(store, id);
        assert.deepEqual((await dumpOf(subject, path))["drafts"], []);
      });
    });

    it(
      "forgetting removes all drafts, and refuses new ones written from what was read before",
      async ({ store }) => {
        const { leaf, other, id } = await folded(store);
        for (const each of [leaf, other]) await store.saveDraft(each, "basis", summary("says this is m1"));
        const { forgets } = (await store.conversation(id)) ?? assert.fail();
        await store.forget(id, await store.planForget(id, { kind: "secret", text: "this is m1" }));
        for (const each of [leaf, other]) assert.equal(await store.draft(each, "basis"), null);
        await store.saveDraft(leaf, "basis", { ...summary("says this is m1"), forgets });
        assert.equal(await store.draft(leaf, "basis"), null);
        await store.saveDraft(leaf, "basis", { ...summary("says it no more"), forgets: forgets + 1 });
        assert.deepEqual(await store.draft(leaf, "basis"), summary("says it no more"));
      },
      ["summary_outdated"],
    );
  });
}

async function folded(
  store: Store,
): Promise<{ readonly leaf: SummaryId; readonly other: SummaryId; readonly id: ConversationId }> {
  const talk = await store.open({ sessionId: "s" });
  await say(store, talk, createHost("h"), ...numbered(6, (at) => `this is m${at}, said at some length`));
  const leaf = await foldPlaces(store, talk.id, [0, 1], "one");
  return { leaf, other: await foldPlaces(store, talk.id, [1, 2], "two"), id: talk.id };
}
