/** Contract: the manifest lists what is below a summary, and what reading it would cost. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import type { ConversationId, SummaryId } from "../../src/core/model/types.ts";
import type { Manifest, Store } from "../../src/core/model/store.ts";
import { createHost } from "../support/scripted-host.ts";
import { foldPlaces, further, itOn, numbered, onTalk, refuses, say } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { sql } from "../../src/store/script.ts";

/** Folds the last leaves first, so that the order of creation differs from the order of the messages. */
const grown = further(onTalk, async ({ store, talk, host }) => {
  await say(store, talk, host, ...numbered(8, (index) => `message ${index} ${"word ".repeat(index * 10)}`));
  for (const [name, from] of [
    ["d", 6],
    ["c", 4],
    ["b", 2],
    ["a", 0],
  ] as const)
    await foldPlaces(store, talk.id, [from, from + 1], name);
  await foldPlaces(store, talk.id, [2, 3], "second");
  await foldPlaces(store, talk.id, [0, 1], "first");
  /** Depth 2, over "first" and "second", over leaves "a" to "d", each of two messages. */
  return { root: await foldPlaces(store, talk.id, [0, 1], "root") };
});

const told = ({ rows }: Manifest) =>
  rows.map(({ opening, level, depth, messages }) => [opening, level, depth, messages?.count ?? null]);

const idOf = async (store: Store, conversation: ConversationId, text: string): Promise<SummaryId> =>
  (await store.summaries({ conversation })).find((summary) => summary.text === text)?.id ?? assert.fail(text);

export function testManifest(subject: StoreUnderTest): void {
  const it = itOn(subject, grown);

  describe("the manifest of a summary", () => {
    it("lists everything below, each summary before its sources, in the order of the messages", async (scene) => {
      const { store, root } = scene;
      assert.deepEqual(told(await store.manifest(root, 6)), [
        ["first", 1, 1, 4],
        ["a", 2, 0, 2],
        ["b", 2, 0, 2],
        ["second", 1, 1, 4],
        ["c", 2, 0, 2],
        ["d", 2, 0, 2],
      ]);
    });

    it("reports the cost of reading, and what each item is", async ({ store, id, root }) => {
      const { rows, messages, isBounded } = await store.manifest(root, 6);
      const tokens = (await store.messages({ conversation: id })).map((message) => message.tokens);
      const taken = (from: number, to: number) => ({
        count: to - from,
        tokens: tokens.slice(from, to).reduce((sum, each) => sum + each, 0),
      });
      assert.deepEqual(
        rows.map((row) => row.messages),
        [taken(0, 4), taken(0, 2), taken(2, 4), taken(4, 8), taken(4, 6), taken(6, 8)],
      );
      assert.deepEqual([messages, isBounded], [taken(0, 8), false]);
      const stored = await store.summaries({ ids: rows.map((row) => row.id) });
      assert.deepEqual(
        rows.map((row) => [row.tokens, row.earliestAt, row.latestAt]),
        stored.map((summary) => [summary.tokens, summary.earliestAt, summary.latestAt]),
      );
    });

    it("of a leaf has no rows, and counts its messages", async ({ store, id }) => {
      const { rows, messages, isBounded } = await store.manifest(await idOf(store, id, "c"), 10);
      assert.deepEqual([rows, messages?.count, isBounded], [[], 2, false]);
    });

    it("ends at its limit, and gives no total for what was not fully read", async ({ store, root }) => {
      const bounded = async (most: number) => {
        const { isBounded, messages, ...rest } = await store.manifest(root, most);
        assert.deepEqual([isBounded, messages], [true, null], `at most ${most}`);
        return told({ ...rest, isBounded, messages });
      };
      assert.deepEqual(await bounded(0), []);
      assert.deepEqual(await bounded(1), [["first", 1, 1, null]]);
      assert.deepEqual(await bounded(2), [
        ["first", 1, 1, null],
        ["second", 1, 1, null],
      ]);
      assert.deepEqual(await bounded(3), [
        ["first", 1, 1, null],
        ["a", 2, 0, 2],
        ["second", 1, 1, null],
      ]);
      assert.deepEqual(await bounded(5), [
        ["first", 1, 1, 4],
        ["a", 2, 0, 2],
        ["b", 2, 0, 2],
        ["second", 1, 1, null],
        ["c", 2, 0, 2],
      ]);
    });

    it("shows how each begins in one line, however long it is", async ({ store }) => {
      const talk = await store.open({ sessionId: "long" });
      await say(store, talk, createHost("l"), ...numbered(4, (index) => `message ${index} ${"word ".repeat(20)}`));
      await foldPlaces(store, talk.id, [0, 1], `\n\nDecided:\n- the port\tis 8080\n${"and so on ".repeat(500)}`);
      await foldPlaces(store, talk.id, [1, 2], "東京".repeat(300));
      const { rows } = await store.manifest(await foldPlaces(store, talk.id, [0, 1], "root"), 9);
      const [first = "", second = ""] = rows.map((row) => row.opening);
      assert.match(first, /^the port is 8080 and so on .*…$/, "below a bare heading");
      assert.match(second, /^(?:東京)+東?…$/);
      for (const opening of [first, second]) assert.ok(opening.length > 70 && opening.length <= 100, opening);
    });

    it("of a damaged graph terminates, and lists each item once", async ({ store, id, path, root }) => {
      const [first, second] = [await idOf(store, id, "first"), await idOf(store, id, "second")];
      await subject.raw(path, function* () {
        for (const source of [root, first])
          yield sql`INSERT INTO summary_parents (conversation_id, summary_id, parent_summary_id, ordinal)
                    VALUES (${id}, ${second}, ${source}, 9)`;
      });
      assert.deepEqual((await store.manifest(root, 100)).rows.length, 6);
    });

    it("guarantee 25: of a damaged graph reveals nothing of another conversation, not even an amount", async (scene) => {
      const { store, id, path, root } = scene;
      const other = await store.open({ sessionId: "other" });
      await say(store, other, createHost("o"), ...numbered(4, (index) => `secret ${index} ${"word ".repeat(20)}`));
      const [said] = await store.messages({ conversation: other.id });
      const foreign = await foldPlaces(store, other.id, [0, 1], "foreign leaf");
      const [sound, leaf] = [await store.manifest(root, 100), await idOf(store, id, "d")];
      const first = await idOf(store, id, "a");
      await subject.raw(path, function* () {
        yield sql`UPDATE summary_parents SET parent_summary_id = ${foreign} WHERE parent_summary_id = ${leaf}`;
        yield sql`INSERT INTO summary_messages (conversation_id, summary_id, message_id, ordinal)
                  VALUES (${id}, ${first}, ${said?.id ?? assert.fail()}, 9)`;
      });
      assert.deepEqual(told(await store.manifest(root, 100)), [
        ...told(sound).slice(0, 3),
        ["second", 1, 1, 2],
        ["c", 2, 0, 2],
      ]);
      const { rows, messages, isBounded } = await store.manifest(root, 5);
      assert.deepEqual([rows.length, messages?.count, isBounded], [5, 6, false]);
      assert.deepEqual(rows[1]?.messages, sound.rows[1]?.messages);
    });

    it("of an unknown summary is not found", async ({ store }) => {
      await refuses("not_found", () => store.manifest("sum_0000000000000000", 10));
    });
  });
}
