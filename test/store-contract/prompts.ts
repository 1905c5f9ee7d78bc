/** Contract: records of prompts are numbered, share their heads, are kept as long as asked, and belong to a conversation. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { describe } from "node:test";
import { at, each, foldPlaces, itOn, newPrompt, nowhere, numbered, onFile, onTalk, refuses, say } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import { removeAll } from "./old-conversation.ts";
import { rewrite, takeBack } from "./undo-scene.ts";

const minute = (n: number) => at(`2026-02-17T08:${String(n).padStart(2, "0")}:00.000Z`);

export function testPrompts(subject: StoreUnderTest): void {
  const it = itOn(subject, onTalk);

  describe("guarantee 35: records of prompts", () => {
    it("are numbered, and read back as they were recorded, with what came of them", async ({ store, talk, host }) => {
      await say(store, talk, host, "one", "two");
      const prompt = newPrompt({
        stored: 2,
        lastSeq: 2,
        tail: 1,
        tokens: 30,
        budget: 900,
        bytes: 77,
        live: 1,
        liveTokens: 9,
      });
      assert.equal(await store.recordPrompt(talk.id, prompt), 1);
      assert.equal(await store.recordPrompt(talk.id, { ...prompt, hash: "" }), 2);
      await store.endPrompt(talk.id, 1, { outcome: "answered", counted: 31, cached: 8, turn: "t1" });
      await store.endPrompt(talk.id, 1, { outcome: "answered", counted: null, cached: null, turn: null });
      await store.endPrompt(talk.id, 99, { outcome: "overflow", counted: 1, cached: 1, turn: null });
      const { rows, heads } = await store.prompts(talk.id);
      const { head, stored: _, keepSince: __, ...kept } = prompt;
      const told = { outcome: "answered", counted: 31, cached: 8, turn: "t1" };
      const untold = { outcome: null, counted: null, cached: null, turn: null };
      assert.deepEqual(rows, [
        { ...kept, conversation: talk.id, number: 1, newestSeq: 2, ...told },
        { ...kept, conversation: talk.id, number: 2, newestSeq: 2, hash: "", ...untold },
      ]);
      assert.deepEqual(heads, [{ since: 1, head }]);
      await refuses("not_found", () => store.recordPrompt(nowhere, prompt));
      await refuses("not_found", () => store.prompts(nowhere));
    });

    it("do not count what was stored after the prompt was built: it may be the answer", async ({
      store,
      talk,
      host,
    }) => {
      await say(store, talk, host, "one", "two", "three");
      await store.recordPrompt(talk.id, newPrompt({ stored: 2 }));
      assert.deepEqual(each((await store.prompts(talk.id)).rows, "newestSeq"), [2]);
      assert.equal((await store.prompts(talk.id, { beforeSeq: 3 })).rows.length, 1);
      assert.equal((await store.prompts(talk.id, { beforeSeq: 2 })).rows.length, 0);
    });

    it("store a head once for all prompts in a row that have it", async ({ store, talk }) => {
      for (const [n, head] of ["a", "a", "b", "a", "a"].entries())
        await store.recordPrompt(talk.id, newPrompt({ at: minute(n), head }));
      const sinces = (heads: readonly { readonly since: number }[]) => each(heads, "since");
      assert.deepEqual(sinces((await store.prompts(talk.id)).heads), [1, 3, 4]);
      const numbers = async (filter: Parameters<typeof store.prompts>[1]) => {
        const { rows, heads } = await store.prompts(talk.id, filter);
        return [each(rows, "number"), sinces(heads)];
      };
      assert.deepEqual(await numbers({ from: 2, to: 3 }), [
        [2, 3],
        [1, 3],
      ]);
      assert.deepEqual(await numbers({ until: minute(3), limit: 1, keep: "newest" }), [[4], [4]]);
      assert.deepEqual(await numbers({ since: minute(1), limit: 2 }), [
        [2, 3],
        [1, 3],
      ]);
      assert.deepEqual(await numbers({ turn: "none" }), [[], []]);
    });

    it("are dropped once they are too old, with heads that no prompt has", async ({ store, talk }) => {
      for (const n of [0, 1, 2, 3, 4, 5])
        await store.recordPrompt(talk.id, newPrompt({ at: minute(n), head: n < 2 ? "a" : "b" }));
      await store.recordPrompt(talk.id, newPrompt({ at: minute(6), head: "b", keepSince: minute(3) }));
      const { rows, heads } = await store.prompts(talk.id);
      assert.deepEqual([each(rows, "number"), each(heads, "since")], [[4, 5, 6, 7], [3]]);
    });

    it("leave the conversation's revision alone", async ({ store, talk }) => {
      const before = await store.conversation(talk.id);
      await store.recordPrompt(talk.id, newPrompt());
      assert.deepEqual(await store.conversation(talk.id), before);
    });

    it("go with their conversation", async ({ store, talk }) => {
      await store.recordPrompt(talk.id, newPrompt());
      await removeAll(store, talk.id);
      await refuses("not_found", () => store.prompts(talk.id));
    });

    itOn(subject, onTalk)("are archived and merged back", async ({ store, talk, host, folder }) => {
      await say(store, talk, host, "one");
      await store.recordPrompt(talk.id, newPrompt({ head: "h", lastSeq: 1, stored: 1 }));
      const recorded = await store.prompts(talk.id);
      const to = join(folder, "old.db");
      await store.archive([talk.id], to);
      await onFile(subject, to, async (archive) => assert.deepEqual(await archive.prompts(talk.id), recorded));
      await removeAll(store, talk.id);
      await store.merge(to);
      assert.deepEqual(await store.prompts(talk.id), recorded);
    });
  });

  describe("guarantee 35: texts of the past", () => {
    it("are read back from the journal: rewritten, undone, rewritten again", async ({ store, talk, host }) => {
      await say(store, talk, host, ...numbered(6, (n) => `message ${n} with some words`));
      const leaf = await foldPlaces(store, talk.id, [0, 3], "first text");
      const change = await rewrite(store, leaf, "second text");
      await takeBack(store, change);
      await rewrite(store, leaf, "third text");
      const { summaries } = await store.pastTexts(talk.id);
      assert.deepEqual(
        summaries.map(({ summary }) => [summary.id, summary.text]),
        [
          [leaf, "first text"],
          [leaf, "second text"],
          [leaf, "first text"],
        ],
      );
    });

    it("numbers of notes are told between two messages", async ({ store, talk, host }) => {
      await say(store, talk, host, ...numbered(4, (n) => `m${n}`));
      assert.deepEqual(await store.noteNumbers(talk.id, 1, 4), []);
    });
  });
}
