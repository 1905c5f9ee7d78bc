/** Contract: words that a model wrote for search find their message, count less than its own, and are never shown. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import type { MessageId } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { ask, foldPlaces, further, isKept, itOn, onTalk, say, summary } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

const said = ["we take the train at nine", "the capital is lovely", "tickets are on the fridge", "see you", "and more"];

/** The first three messages are folded, with words for the first two. */
const folded = further(onTalk, async ({ store, talk, host }) => {
  await say(store, talk, host, ...said);
  const run = (await store.context(talk.id)).slice(0, 3);
  const [first, second] = run.map(({ id }) => id as MessageId);
  assert.ok(first !== undefined && second !== undefined);
  const searchWords = [
    { message: first, words: "departure time railway; when do we leave? Zq7xKv93LmQw81" },
    { message: second, words: "Paris" },
  ];
  await store.fold(talk.id, run, summary("travel", { searchWords }));
  return { first, second };
});

const found = async (store: Store, pattern: string): Promise<readonly (readonly [unknown, string])[]> =>
  (await store.search(ask(pattern, { sort: "relevance" }))).hits.map(({ id, snippet }) => [id, snippet]);

export function testSearchWords(subject: StoreUnderTest): void {
  const it = itOn(subject, folded);

  describe("words for search", () => {
    it("find their message, and show what it says, before and after it is indexed", async ({
      store,
      first,
      second,
    }) => {
      for (let round = 0; round < 2; round++) {
        assert.deepEqual(await found(store, "railway departure"), [[first, said[0]]]);
        assert.deepEqual(await found(store, "Paris"), [[second, said[1]]]);
        while ((await store.index(1)) > 0);
      }
      const [message] = await store.messages({ ids: [first] });
      assert.equal(message?.text, said[0]);
    });

    it("find it where the message had been indexed before it was folded", async ({ store, talk }) => {
      while ((await store.index(100)) > 0);
      const run = (await store.context(talk.id)).slice(1, 3);
      const [last] = run.map(({ id }) => id as MessageId);
      await store.fold(
        talk.id,
        run,
        summary("x", { searchWords: [{ message: last ?? (0 as MessageId), words: "farewell" }] }),
      );
      assert.deepEqual(await found(store, "farewell"), [[last, said[3]]]);
    });

    it("count less than a message's own words", async ({ store, talk, host }) => {
      await say(store, talk, host, "Paris");
      const [best, other] = await found(store, "Paris");
      assert.deepEqual([best?.[1], other?.[1]], ["Paris", said[1]]);
    });

    it("stay when the summary is dissolved, and go with a copy of the message", async ({ store, talk, second }) => {
      const other = await store.open({ sessionId: "other" });
      const copied = await store.transplant({ source: talk.id, target: other.id });
      assert.ok(copied.kind === "written");
      while ((await store.index(100)) > 0);
      assert.equal((await found(store, "Paris")).length, 2);
      const [item] = await store.context(talk.id);
      assert.ok(item?.kind === "summary");
      await store.dissolve({ conversation: talk.id, summary: item.id, ordinal: item.ordinal });
      await foldPlaces(store, talk.id, [0, 2], "again, without a model");
      assert.equal((await found(store, "Paris")).length, 2);
      assert.equal((await store.undo(copied.change)).kind, "undone");
      assert.deepEqual(await found(store, "Paris"), [[second, said[1]]]);
    });

    it(
      "forget a secret, and everything of a forgotten message",
      async ({ store, folder, first, second }) => {
        const secret = "Zq7xKv93LmQw81";
        while ((await store.index(100)) > 0);
        await store.forget(null, await store.planForget(null, { kind: "secret", text: secret }));
        assert.deepEqual([await found(store, secret), await isKept(subject, folder, secret)], [[], false]);
        assert.deepEqual(await found(store, "railway departure"), [[first, said[0]]]);
        await store.forget(null, await store.planForget(null, { kind: "message", id: second }));
        assert.deepEqual([await found(store, "Paris"), await isKept(subject, folder, "Paris")], [[], false]);
      },
      ["summary_outdated"],
    );
  });
}
