/** Forgetting next to copies, and to files of other messages. The contract tests the rest. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { at, foldPlaces, isOnDisk, itOn, newFile, onTalk, say } from "../../../test/store-contract/ground.ts";
import { sqlite } from "../../../test/store-contract/sqlite.ts";
import { openSqlite } from "../sqlite/store.ts";

const it = itOn({ ...sqlite, open: async (path) => await openSqlite({ path, housekeeping: false }) }, onTalk);

describe("forgetting a message", () => {
  it(
    "deletes a title that was made from it, even if the message was copied elsewhere",
    async ({ store, talk, host }) => {
      const { messages } = await say(store, talk, host, "the heron came at dawn to the pond", "thank you for that");
      await store.setTitle(talk.id, "the heron came at dawn to the pond");
      await foldPlaces(store, talk.id, [0, 1], "birds");
      const other = await store.open({ sessionId: "other" });
      assert.equal((await store.transplant({ source: talk.id, target: other.id })).kind, "written");
      const plan = await store.planForget(null, { kind: "message", id: messages[0] ?? assert.fail() });
      assert.equal(plan.messages.length, 2);
      assert.equal((await store.forget(null, plan)).kind, "written");
      assert.equal((await store.conversation(talk.id))?.title, null);
    },
    ["summary_outdated"],
  );

  it("keeps the origin of another message's file, even if that message's text does not name the file", async (scene) => {
    const { store, talk, host } = scene;
    const { messages } = await say(store, talk, host, "a letter came", "and another one");
    for (const { key } of await store.messages({ conversation: talk.id }))
      await store.saveFile(newFile(talk.id, `with ${key}`, { message: { key, at: at("2026-02-17T07:37:00.000Z") } }));
    const plan = await store.planForget(null, { kind: "message", id: messages[0] ?? assert.fail() });
    assert.equal((await store.forget(null, plan)).kind, "written");
    const origins = (await store.files(talk.id)).map(({ messageKey }) => messageKey);
    assert.deepEqual(new Set(origins), new Set([null, "h-2"]));
  });

  it("finds a secret that is only in the id of a call", async ({ store, folder, talk, host }) => {
    const call = { type: "toolCall", id: "call-quokka-4711", name: "read", arguments: { path: "a.ts" } };
    host.says({ role: "assistant", content: [call] });
    const { messages } = await say(store, talk, host, "thank you");
    const plan = await store.planForget(null, { kind: "secret", text: "quokka-4711" });
    assert.deepEqual(plan.messages, messages.slice(0, 1));
    assert.equal((await store.forget(null, plan)).kind, "written");
    assert.ok(!isOnDisk(folder, "quokka-4711"));
  });

  it(
    "invalidates rewrites planned before it",
    async ({ store, talk, host, id }) => {
      const { messages } = await say(store, talk, host, "the heron came at dawn to the pond", "thank you for that");
      const summary = await foldPlaces(store, id, [0, 1], "birds");
      const revision = async (): Promise<number> => (await store.summaries({ ids: [summary] }))[0]?.revision ?? 0;
      const before = await revision();
      const plan = await store.planForget(null, { kind: "message", id: messages[0] ?? assert.fail() });
      await store.forget(null, plan);
      assert.ok((await revision()) > before);
    },
    ["summary_outdated"],
  );
});
