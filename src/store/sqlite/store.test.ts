/** Writes that wait for another process, and conversations that are full; the store contract covers the rest. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { eventually } from "../../../test/support/eventually.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { foldPlaces, refuses, say } from "../../../test/store-contract/ground.ts";
import { inspect } from "../../core/maintenance/inspect.ts";
import { numbersPerConversation } from "../../core/model/types.ts";
import { openSqlite } from "./store.ts";

describe("a write while another process writes", () => {
  it("is completed before the store closes", async () => {
    const path = join(makeScratch("sqlite"), "lcm.db");
    const store = await openSqlite({ path, housekeeping: false });
    const { id } = await store.open({ sessionId: "s" });
    const host = createHost("h");
    host.says(user("the heron"));
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    const writing = store.append(id, host.entries.map(toAppendable));
    const closing = store.close();
    setTimeout(() => other.exec("COMMIT"), 20);
    const { messages } = await writing;
    await closing;
    assert.deepEqual(
      other
        .prepare("SELECT message_id AS id FROM messages")
        .all()
        .map(({ id }) => id),
      messages,
    );
    other.close();
  });
});

describe("a store that nobody writes to for a while", () => {
  it("has indexed even a few rows, so that a search reads none of them anew", async () => {
    const path = join(makeScratch("sqlite"), "lcm.db");
    const store = await openSqlite({ path });
    const conversation = await store.open({ sessionId: "s" });
    const host = createHost("h");
    await say(store, conversation, host, "the heron stood still", "the otter swam away");
    assert.equal((await store.status()).unindexed, 2);
    await eventually(async () => (await store.status()).unindexed === 0);
    await say(store, conversation, host, "and the kingfisher dived");
    await eventually(async () => (await store.status()).unindexed === 0);
    const found = await store.search({
      pattern: "kingfisher",
      mode: "full_text",
      scope: "messages",
      sort: "recency",
      limit: 5,
    });
    assert.equal(found.hits.length, 1);
    await store.close();
  });
});

describe("a conversation that has used all its numbers", () => {
  it("refuses messages, copies and summaries, and keeps what it has", async () => {
    const path = join(makeScratch("sqlite"), "lcm.db");
    const store = await openSqlite({ path, housekeeping: false });
    const [full, other] = [await store.open({ sessionId: "full" }), await store.open({ sessionId: "other" })];
    const [host, guest] = [createHost("h"), createHost("g")];
    await say(store, other, guest, "the heron stood still for a long time", "the otter swam away at once");
    await foldPlaces(store, other.id, [0, 1], "two animals");
    const db = new DatabaseSync(path);
    const last = numbersPerConversation - 1;
    db.exec(`UPDATE conversations SET next_seq = ${last - 1}, indexed_seq = ${last - 2}, last_summary = ${last - 1},
               indexed_summary = ${last - 1} WHERE conversation_id = ${full.id}`);
    db.close();
    await say(store, full, host, "the last message but one", "the last message that there is room for");
    await foldPlaces(store, full.id, [0, 0], "last");
    await refuses("unavailable", () => say(store, full, host, "one too many"));
    await refuses("unavailable", () => store.transplant({ source: other.id, target: full.id }));
    await refuses("unavailable", () => foldPlaces(store, full.id, [1, 1], "one too many"));
    assert.deepEqual(
      (await store.messages({ conversation: full.id })).map(({ seq, text }) => [seq, text]),
      [
        [last - 1, "the last message but one"],
        [last, "the last message that there is room for"],
      ],
    );
    assert.deepEqual(await inspect(store, null), []);
    await store.close();
  });
});
