/** Contract: overviews of a conversation, without texts. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { messagesPerWeight } from "../../src/core/model/outlines.ts";
import { forgottenMark, messageIdOf, seqOf } from "../../src/core/model/types.ts";
import { createHost } from "../support/scripted-host.ts";
import { foldPlaces, further, itOn, nowhere, numbered, onTalk, refuses, say } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

const count = 600;

/** Two leaves of two messages each, a summary of both, and many messages after them. */
const grown = further(onTalk, async ({ store, talk, host }) => {
  await say(store, talk, host, ...numbered(count, (index) => `message ${index} ${"word ".repeat(index % 7)}`));
  const later = await foldPlaces(store, talk.id, [2, 3], "later");
  const earlier = await foldPlaces(store, talk.id, [0, 1], "earlier");
  return { earlier, later, above: await foldPlaces(store, talk.id, [0, 1], "above") };
});

export function testOutlines(subject: StoreUnderTest): void {
  const it = itOn(subject, grown);

  describe("the pace of a conversation", () => {
    it("has the time of evenly spaced messages, and of both ends", async ({ store, talk }) => {
      const marks = await store.pace(talk.id, 5);
      assert.deepEqual(
        marks.map(({ id }) => seqOf(id)),
        [1, 151, 301, 450, 600],
      );
      const stored = await store.messages({ ids: marks.map(({ id }) => id) });
      assert.deepEqual(
        marks.map(({ at }) => at),
        stored.map(({ at }) => at),
      );
    });

    it("of a range begins and ends there, and never has more marks than messages", async ({ store, talk }) => {
      const of = async (from: number, to: number, marks: number) =>
        (await store.pace(talk.id, marks, { from, to })).map(({ id }) => seqOf(id));
      assert.deepEqual(await of(10, 30, 3), [10, 20, 30]);
      assert.deepEqual(await of(10, 12, 100), [10, 11, 12]);
      assert.deepEqual(await of(590, 10_000, 2), [590, 600]);
      assert.deepEqual(await of(7, 7, 4), [7]);
      assert.deepEqual([await of(700, 800, 4), await of(30, 10, 4), await of(1, 9, 0)], [[], [], []]);
    });

    it("is empty in an empty conversation", async ({ store }) => {
      const { id } = await store.open({ sessionId: "empty" });
      assert.deepEqual(await store.pace(id, 10), []);
      assert.deepEqual(await store.summaryOutlines(id), []);
    });

    it("stays within its conversation", async ({ store, talk }) => {
      const other = await store.open({ sessionId: "other" });
      await say(store, other, createHost("other"), ...numbered(3, String));
      assert.deepEqual(
        (await store.pace(other.id, 9)).map(({ id }) => id),
        [1, 2, 3].map((seq) => messageIdOf(other.id, seq)),
      );
      assert.equal((await store.pace(talk.id, 9)).length, 9);
      assert.equal((await store.messageOutlines(talk.id, { from: 1, to: 1e9 })).length, count);
    });
  });

  describe("the weights of messages", () => {
    it("are their tokens in blocks, as far as the range goes", async ({ store, talk }) => {
      const messages = await store.messages({ conversation: talk.id });
      const sum = (from: number, to: number): number =>
        messages.filter(({ seq }) => seq >= from && seq <= to).reduce((total, { tokens }) => total + tokens, 0);
      const [a, b] = [messagesPerWeight, 2 * messagesPerWeight];
      assert.deepEqual(await store.weights(talk.id, { from: 1, to: 1e9 }), [
        { block: 0, tokens: sum(1, a - 1) },
        { block: 1, tokens: sum(a, b - 1) },
        { block: 2, tokens: sum(b, count) },
      ]);
      assert.deepEqual(await store.weights(talk.id, { from: a + 4, to: a + 9 }), [
        { block: 1, tokens: sum(a + 4, a + 9) },
      ]);
    });
  });

  describe("outlines", () => {
    it("of messages are what is stored of them, without texts", async ({ store, talk, earlier, later }) => {
      const outlined = await store.messageOutlines(talk.id, { from: 2, to: 5 });
      const stored = await store.messages({ conversation: talk.id, afterSeq: 1, beforeSeq: 6 });
      assert.deepEqual(
        outlined,
        stored.map(({ id, role, tokens, at, aside }, index) => ({
          id,
          role,
          tokens,
          at,
          aside,
          isForgotten: false,
          leaves: [[earlier], [later], [later], []][index],
        })),
      );
    });

    it("say of messages that they were forgotten", async ({ store, talk }) => {
      const target = { kind: "message", id: messageIdOf(talk.id, 9) } as const;
      const plan = await store.planForget(null, target);
      assert.equal((await store.forget(null, plan)).kind, "written");
      const [forgotten, kept] = await store.messageOutlines(talk.id, { from: 9, to: 10 });
      assert.deepEqual([forgotten?.isForgotten, kept?.isForgotten], [true, false]);
      const [message] = await store.messages({ ids: [target.id] });
      assert.match(message?.text ?? "", new RegExp(RegExp.escape(forgottenMark)));
    });

    it("of summaries name their messages and what was made from them", async ({ store, talk, ...made }) => {
      const { earlier, later, above } = made;
      const outlined = await store.summaryOutlines(talk.id);
      assert.deepEqual(
        outlined.map(({ id, messages, derived }) => [id, messages?.map(seqOf), derived]),
        [
          [later, [3, 4], [above]],
          [earlier, [1, 2], [above]],
          [above, undefined, []],
        ],
      );
      const stored = await store.summaries({ ids: outlined.map(({ id }) => id) });
      assert.deepEqual(
        outlined.map(({ messages: _, derived: __, ...rest }) => rest),
        stored.map(({ id, depth, tokens, level, earliestAt, latestAt, createdAt, carriedFrom, rewriteReason }) => ({
          id,
          depth,
          tokens,
          level,
          earliestAt,
          latestAt,
          createdAt,
          carriedFrom,
          rewriteReason,
        })),
      );
    });

    it("need a conversation", async ({ store }) => {
      await refuses("not_found", async () => await store.pace(nowhere, 3));
      await refuses("not_found", async () => await store.weights(nowhere, { from: 1, to: 2 }));
      await refuses("not_found", async () => await store.messageOutlines(nowhere, { from: 1, to: 2 }));
      await refuses("not_found", async () => await store.summaryOutlines(nowhere));
    });
  });
}
