/** Contract: vectors of messages are made once, found by meaning, and gone with the text they were made from. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe } from "node:test";
import { toBits } from "../../src/core/model-calls/embedding.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import type { SearchRequest, Store } from "../../src/core/model/store.ts";
import { createHost } from "../support/scripted-host.ts";
import { vectorOf } from "../support/scripted-embedder.ts";
import { ask, isKept, itOn, numbered, onFile, onTalk, say } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { removeAll } from "./old-conversation.ts";

const model = "test/words/256/1";
const bits = (text: string): Uint8Array => (text === "" ? new Uint8Array(32) : toBits(vectorOf(text)));

/** Makes what is pending, in steps of so many messages; returns how many it made. */
async function makeAll(store: Store, rowsMax = 64, of = model): Promise<number> {
  let made = 0;
  for (;;) {
    const pending = await store.pendingVectors(of, rowsMax);
    if (pending === null) return made;
    const { texts, ...place } = pending;
    assert.ok(texts.length <= rowsMax);
    const saved = await store.saveVectors({ ...place, model: of, vectors: texts.map(bits) });
    assert.equal(saved.kind, "written");
    made += texts.length;
  }
}

const byMeaning = (text: string, more: Partial<SearchRequest> = {}): SearchRequest =>
  ask("nothing", { scope: "messages", sort: "relevance", meaning: { model, vectors: [bits(text)] }, ...more });

const closest = async (store: Store, text: string, more: Partial<SearchRequest> = {}): Promise<string | undefined> =>
  (await store.search(byMeaning(text, more))).hits[0]?.snippet;

export function testVectors(subject: StoreUnderTest): void {
  const it = itOn(subject, onTalk);

  describe("vectors", () => {
    it("every message is given out once, across blocks and however small the steps", async ({ store, talk, host }) => {
      await say(store, talk, host, ...numbered(1_500, (index) => `word${index}`));
      const seen = new Set<number>();
      for (let pending = await store.pendingVectors(model, 400); pending !== null;) {
        const { texts, conversation, firstSeq, forgets } = pending;
        for (const [at, text] of texts.entries()) {
          assert.equal(text, `word${firstSeq + at - 1}`);
          seen.add(firstSeq + at);
        }
        await store.saveVectors({ conversation, firstSeq, forgets, model, vectors: texts.map(bits) });
        pending = await store.pendingVectors(model, 400);
      }
      assert.equal(seen.size, 1_500);
      assert.deepEqual((await store.status()).vectors, [{ model, made: 1_500, pending: 0, bytes: 1_500 * 32 }]);
      for (const wanted of [0, 1_023, 1_024, 1_499])
        assert.equal(await closest(store, `word${wanted}`), `word${wanted}`);
    });

    it("what is stored later continues the block", async ({ store, talk, host }) => {
      await say(store, talk, host, "otter", "badger");
      assert.equal(await makeAll(store), 2);
      await say(store, talk, host, "heron");
      assert.equal((await store.status()).vectors[0]?.pending, 1);
      assert.equal(await makeAll(store), 1);
      assert.equal(await closest(store, "heron"), "heron");
    });

    it("vectors that another process stored meanwhile are not stored twice", async ({ store, talk, host }) => {
      await say(store, talk, host, "otter", "badger");
      const { texts, ...place } = (await store.pendingVectors(model, 64)) ?? assert.fail();
      await makeAll(store);
      const saved = await store.saveVectors({ ...place, model, vectors: texts.map(bits) });
      assert.equal(saved.kind, "stale");
      assert.equal((await store.status()).vectors[0]?.made, 2);
    });

    it("refuses vectors of different lengths, or of no whole words", async ({ store, talk, host }) => {
      await say(store, talk, host, "otter", "badger");
      const { conversation, firstSeq, forgets } = (await store.pendingVectors(model, 64)) ?? assert.fail();
      for (const lengths of [
        [4, 8],
        [3, 3],
        [0, 0],
      ]) {
        const vectors = lengths.map((length) => new Uint8Array(length));
        await assert.rejects(store.saveVectors({ conversation, firstSeq, forgets, model, vectors }), {
          code: "invalid",
        });
      }
    });

    it("each model has its own, and the others are dropped when asked", async ({ store, talk, host }) => {
      await say(store, talk, host, "otter", "badger");
      await makeAll(store);
      await makeAll(store, 64, "test/other");
      assert.equal((await store.status()).vectors.length, 2);
      assert.equal(await store.dropVectors("test/other"), 1);
      assert.deepEqual(
        (await store.status()).vectors.map((each) => each.model),
        ["test/other"],
      );
      const { hits, caveats } = await store.search(byMeaning("otter"));
      assert.deepEqual([hits, caveats.at(-1)], [[], { kind: "unembedded", messages: 2, of: 2 }]);
      assert.equal(await store.dropVectors(null), 1);
      assert.deepEqual((await store.status()).vectors, []);
    });

    it("a message without a vector is found by its words, and the search says how many there are", async (scene) => {
      const { store, talk, host } = scene;
      await say(store, talk, host, "the otter swam");
      const { hits, caveats } = await store.search(byMeaning("otter", { pattern: "otter" }));
      assert.equal(hits.length, 1);
      assert.deepEqual(caveats, [{ kind: "unembedded", messages: 1, of: 1 }]);
      await makeAll(store);
      assert.deepEqual((await store.search(byMeaning("otter", { pattern: "otter" }))).caveats, []);
    });

    it("an embedder's work and its last failure are remembered", async ({ store }) => {
      await store.recordEmbedder({ name: "a", embedded: 3, failure: null });
      await store.recordEmbedder({ name: "a", embedded: 2, failure: "it is gone" });
      const [found] = (await store.status()).embedders;
      assert.deepEqual([found?.name, found?.embedded, found?.failure], ["a", 5, "it is gone"]);
      await store.recordEmbedder({ name: "a", embedded: 0, failure: null });
      assert.equal((await store.status()).embedders[0]?.failure, null);
    });
  });

  describe("guarantee 25, by meaning: scope holds", () => {
    it("a search by meaning finds nothing outside the named conversations, of other times, or hidden", async (scene) => {
      const { store, talk, host } = scene;
      await say(store, talk, host, "otter", "badger");
      const other = await store.open({ sessionId: "other" });
      await say(store, other, createHost("other"), "otter otter", "heron");
      await makeAll(store);
      const found = async (more: Partial<SearchRequest>): Promise<readonly ConversationId[]> => [
        ...new Set((await store.search(byMeaning("otter", more))).hits.map(({ conversation }) => conversation)),
      ];
      assert.deepEqual(new Set(await found({})), new Set([talk.id, other.id]));
      assert.deepEqual(await found({ conversations: [talk.id] }), [talk.id]);
      assert.deepEqual(await found({ conversations: [] }), []);
      const [first] = await store.messages({ conversation: talk.id, limit: 1 });
      assert.deepEqual(await found({ before: first?.at ?? assert.fail() }), []);
      await store.setHidden(other.id, true);
      assert.deepEqual(await found({}), [talk.id]);
      assert.equal(await closest(store, "otter", { pattern: '"badger"', conversations: [talk.id] }), "badger");
    });
  });

  describe("forgetting forgets vectors", () => {
    it("at once, and the others of the block are made again", async ({ store, talk, host, folder }) => {
      await say(store, talk, host, "otter", "badger", "heron");
      await makeAll(store);
      const second = (await store.messages({ conversation: talk.id }))[1]?.id ?? assert.fail();
      assert.ok(await isKept(subject, folder, Buffer.from(bits("badger"))));
      await store.forget(null, await store.planForget(null, { kind: "message", id: second }));
      assert.ok(!(await isKept(subject, folder, Buffer.from(bits("badger")))));
      assert.equal(await closest(store, "otter"), "otter");
      assert.equal((await store.status()).vectors[0]?.pending, 2);
      await makeAll(store);
      assert.equal(await closest(store, "heron"), "heron");
    });

    it("vectors of texts that were read before something was forgotten are not stored", async (scene) => {
      const { store, talk, host } = scene;
      await say(store, talk, host, "otter shibboleth", "badger");
      const { texts, ...place } = (await store.pendingVectors(model, 64)) ?? assert.fail();
      await store.forget(null, await store.planForget(null, { kind: "secret", text: "shibboleth" }));
      const saved = await store.saveVectors({ ...place, model, vectors: texts.map(bits) });
      assert.equal(saved.kind, "stale");
      assert.deepEqual((await store.status()).vectors, []);
    });

    it("deleting a conversation deletes its vectors", async ({ folder }) => {
      // Not watched: here rows are meant to go.
      await onFile(subject, join(folder, "place", "lcm.db"), async (store) => {
        const talk = await store.open({ sessionId: "s" });
        await say(store, talk, createHost("h"), "otter");
        await makeAll(store);
        await removeAll(store, talk.id);
        assert.deepEqual((await store.status()).vectors, []);
      });
    });
  });

  describe("vectors go where their messages go", () => {
    const itFile = itOn(subject, onTalk);
    itFile("into an archive, and back", async ({ store, talk, host, folder }) => {
      await say(store, talk, host, "otter", "badger");
      await makeAll(store);
      const archive = join(folder, "archive.db");
      await store.archive([talk.id], archive);
      await onFile(subject, archive, async (copy) => {
        assert.equal(await copy.pendingVectors(model, 1), null);
        assert.equal(await closest(copy, "badger"), "badger");
      });
      const elsewhere = join(folder, "else", "lcm.db");
      await onFile(subject, elsewhere, async (target) => {
        await say(target, await target.open({ sessionId: "another" }), createHost("another"), "heron");
        await target.merge(archive);
        assert.equal((await target.pendingVectors(model, 9))?.texts.join(), "heron");
        assert.equal(await closest(target, "badger"), "badger");
      });
    });
  });
}
