/** Contract: answers about single messages are kept for exactly what was asked, and removed once useless. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe } from "node:test";
import { mapMimeType, messageName, type ConversationId, type MessageId } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { dumpOf } from "./dump.ts";
import { createHost } from "../support/scripted-host.ts";
import { isKept, itOn, itOnFile, newFile, numbered, onFile, onStore, onTalk, say } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { removeAll } from "./old-conversation.ts";
import { tick } from "./undo-scene.ts";

export function testMapAnswers(subject: StoreUnderTest): void {
  const it = itOn(subject, onTalk);

  describe("answers about messages", () => {
    it("are kept for exactly what was asked, and the newest few of each message", async ({ store, talk, host }) => {
      await say(store, talk, host, ...numbered(3, (n) => `m${n}`));
      const [one, two, three] = await idsOf(store, talk.id);
      await store.saveMapAnswers("basis", [answer(one, { facts: ["ö", null] }), answer(two, "no")]);
      const kept = await store.mapAnswers("basis", [one, two, three]);
      assert.deepEqual(
        kept,
        new Map<MessageId, unknown>([
          [one, { facts: ["ö", null] }],
          [two, "no"],
        ]),
      );
      assert.deepEqual([...(await store.mapAnswers("basis ", [one, two]))], []);
      assert.deepEqual([...(await store.mapAnswers("basis", []))], []);
      await store.saveMapAnswers("basis", [answer(one, "again")]);
      assert.equal((await store.mapAnswers("basis", [one])).get(one), "again");
      await tick();
      for (const n of [1, 2, 3, 4, 5]) await store.saveMapAnswers(`basis ${n}`, [answer(one, n)]);
      for (const n of [1, 2, 3, 4, 5]) assert.equal((await store.mapAnswers(`basis ${n}`, [one])).get(one), n);
      assert.deepEqual([...(await store.mapAnswers("basis", [one, two])).keys()], [two]);
    });

    it("are kept for messages of several conversations, and not for missing ones", async ({ store, talk, host }) => {
      await say(store, talk, host, "here");
      const other = await store.open({ sessionId: "other" });
      await say(store, other, host, "there");
      const ids = [...(await idsOf(store, talk.id)), ...(await idsOf(store, other.id))];
      const missing = (Math.max(...ids) + 9) as MessageId;
      await store.saveMapAnswers(
        "basis",
        [...ids, missing].map((id) => answer(id, id)),
      );
      const kept = await store.mapAnswers("basis", [...ids, missing]);
      assert.deepEqual(kept, new Map(ids.map((id) => [id, id])));
    });

    it("go when anything is forgotten, and none that was read before it is saved after it", async ({
      store,
      talk,
      host,
      folder,
    }) => {
      await say(store, talk, host, "the code is sesame-4711", "thanks");
      const [one, two] = await idsOf(store, talk.id);
      const line = (id: MessageId) => JSON.stringify({ id: messageName(id), result: "opens with sesame-4711" });
      const about = newFile(talk.id, `${line(one)}\n`, { mimeType: mapMimeType });
      const file = await store.saveFile(about);
      const other = await store.saveFile({ ...about, content: line(two).replace("sesame-4711", "?") });
      await store.saveMapAnswers("basis", [answer(one, "sesame-4711"), answer(two, "no")]);
      const plan = await store.planForget(null, { kind: "message", id: one });
      assert.deepEqual(plan.files, [file.id], "a file with an answer about the message");
      assert.equal((await store.forget(null, plan)).kind, "written");
      assert.deepEqual([...(await store.mapAnswers("basis", [one, two]))], []);
      assert.equal(await isKept(subject, folder, "sesame-4711"), false);
      assert.match(await store.fileContent(other.id), /"opens with \?"/);
      await store.saveMapAnswers("basis", [answer(one, "sesame-4711")]);
      assert.deepEqual([...(await store.mapAnswers("basis", [one]))], []);
      await store.saveMapAnswers("basis", [{ ...answer(two, "no"), forgets: 1 }]);
      assert.equal((await store.mapAnswers("basis", [two])).get(two), "no");
    });
  });

  itOnFile(subject, onStore)("answers about messages go with their conversation", async ({ folder }) => {
    const path = join(folder, "place", "lcm.db");
    await onFile(subject, path, async (store) => {
      const host = createHost("h");
      const talk = await store.open({ sessionId: "s" });
      await say(store, talk, host, "m0");
      const [one] = await idsOf(store, talk.id);
      await store.saveMapAnswers("basis", [answer(one, "yes")]);
      assert.equal((await dumpOf(subject, path))["map_answers"]?.length, 1);
      await removeAll(store, talk.id);
      assert.deepEqual((await dumpOf(subject, path))["map_answers"], []);
    });
  });
}

const answer = (message: MessageId, value: string | number | { readonly facts: readonly (string | null)[] }) => ({
  message,
  answer: value,
  forgets: 0,
});

type Three = readonly [MessageId, MessageId, MessageId];

const idsOf = async (store: Store, conversation: ConversationId): Promise<Three> =>
  (await store.messages({ conversation })).map(({ id }) => id) as unknown as Three;
