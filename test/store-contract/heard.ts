/** Contract: what the proxy heard between a host and its model is not stored again when the host's transcript brings it. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { entryToLine } from "../../src/core/messages/transcript-line.ts";
import { messageToStore, type HostMessage } from "../../src/core/messages/codec.ts";
import type { Appendable } from "../../src/core/model/store.ts";
import { heardPrefix, type Aside } from "../../src/core/model/types.ts";
import { at, itOn, onTalk, shownTexts, type StoreUnderTest } from "./ground.ts";

const time = at("2026-11-18T12:00:00.000Z");

const heard = (key: string, parent: string | null, message: HostMessage): Appendable => ({
  kind: "message",
  message: messageToStore(message, {
    key: heardPrefix + key,
    at: time,
    parentKey: parent === null ? null : heardPrefix + parent,
  }),
});

const row = (uuid: string, parentKey: string | null, message: HostMessage, aside?: Aside): Appendable => {
  const entry = { uuid, message };
  return {
    kind: "message",
    message: messageToStore(message, { key: uuid, at: time, parentKey, entry, ...(aside && { aside }) }),
  };
};

const call = { type: "tool_use", id: "c1", name: "read", input: { path: "x" } };
const said = (text: string): HostMessage => ({ role: "user", content: text });
const answer = (...content: object[]): HostMessage => ({ role: "assistant", content: content as never });
const text = (words: string) => ({ type: "text", text: words });

const talk: readonly Appendable[] = [
  heard("1", null, said("ping")),
  heard("2", "1", answer(text("reading"), call)),
  heard("3", "2", { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "lines" }] }),
  heard("4", "3", answer(text("done"))),
  heard("5", "4", said("ping")),
];

/** The same as a transcript has it: a row per block, a note in between. */
const rows: readonly Appendable[] = [
  row("u1", null, said("ping")),
  row("u2", "u1", answer(text("reading"))),
  row("u3", "u2", said("the host's own words"), "note"),
  row("u4", "u3", answer(call)),
  row("u5", "u4", { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "lines" }] }),
  row("u6", "u5", answer(text("done"))),
];

export function testHeard(subject: StoreUnderTest): void {
  const it = itOn(subject, onTalk);

  describe("what the proxy heard", () => {
    it("is recognised in a transcript, whole or in parts, and its lines are kept", async ({ store, id }) => {
      await store.append(id, talk);
      const before = await shownTexts(store, id);
      const appended = await store.append(id, rows);
      assert.deepEqual(await shownTexts(store, id), before);
      assert.equal(appended.messages.length, 1, "the note");
      const lines = (await store.entries(id, 0, 1_000)).map((entry) => JSON.parse(entryToLine(entry)).uuid);
      assert.deepEqual(lines, ["u1", "u2", "u4", "u5", "u6"]);
      const again = await store.append(id, rows);
      assert.deepEqual([again.messages.length, again.entries, again.duplicates], [0, 0, rows.length]);
    });

    it("is recognised once: an equal message that comes later is another one", async ({ store, id }) => {
      await store.append(id, talk);
      await store.append(id, rows);
      await store.append(id, [row("u7", "u6", said("ping")), row("u8", "u7", said("ping"))]);
      const pings = (await shownTexts(store, id)).filter((shown) => shown === "ping");
      assert.equal(pings.length, 3);
    });

    it("goes on behind what the transcript adds, and back to where a row of it branches off", async ({ store, id }) => {
      await store.append(id, talk.slice(0, 4));
      await store.append(id, rows);
      await store.append(id, [row("u7", "u6", said("without the proxy"))]);
      assert.deepEqual((await shownTexts(store, id)).slice(-2), ["done", "without the proxy"]);
      await store.append(id, [row("u8", "u1", said("from the first row"))]);
      assert.deepEqual(await shownTexts(store, id), ["ping", "from the first row"]);
    });

    it("is not looked for in conversations without it", async ({ store, id }) => {
      await store.append(id, [row("u1", null, said("ping"))]);
      await store.append(id, [row("u2", "u1", said("ping"))]);
      assert.equal((await shownTexts(store, id)).length, 2);
    });
  });

  describe("an append for a number of messages", () => {
    it("writes nothing if there are more by now", async ({ store, id }) => {
      await store.append(id, talk.slice(0, 1), { ifMessages: 0 });
      const stale = await store.append(id, talk.slice(1), { ifMessages: 0 });
      assert.equal(stale.turn, "stale");
      assert.equal((await store.conversation(id))?.totals.messages, 1);
      assert.equal((await store.append(id, talk.slice(1), { ifMessages: 1 })).messages.length, 4);
    });
  });
}
