/** Contract: every branch is stored, and the context contains the active one. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { messageToStore } from "../../src/core/messages/codec.ts";
import type { Conversation } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { checkLossless } from "../support/lossless.ts";
import { createHost, toAppendable, user } from "../support/scripted-host.ts";
import type { ScriptedHost } from "../support/scripted-host.ts";
import { at, deliver, foldPlaces, further, itOn, onTalk, shownTexts } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

/** Sends these words, one message each, and stores them. */
async function say(store: Store, conversation: Conversation, host: ScriptedHost, words: string): Promise<void> {
  for (const word of words.split(" ")) host.says(user(word));
  await deliver(store, conversation, host);
  await check(store, conversation, host);
}

const check = async (store: Store, { id }: Conversation, host: ScriptedHost): Promise<void> =>
  await checkLossless(store, [{ conversation: id, entries: host.entries }]);

const began = further(onTalk, async ({ store, talk, host }) => await say(store, talk, host, "a b c d"));

export function testBranches(subject: StoreUnderTest): void {
  describe("branches and rewinds", () => {
    const it = itOn(subject, began);

    it("a message that continues an earlier one sets aside everything after that one", async ({
      store,
      talk,
      host,
    }) => {
      host.goesBackTo("h-2");
      await say(store, talk, host, "e f");
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "e", "f"]);
      const stored = await store.messages({ conversation: talk.id });
      assert.deepEqual(
        stored.map(({ text, aside }) => [text, aside]),
        [
          ["a", null],
          ["b", null],
          ["c", "branch"],
          ["d", "branch"],
          ["e", null],
          ["f", null],
        ],
      );
      const { totals } = (await store.conversation(talk.id)) ?? talk;
      assert.deepEqual([totals.messages, totals.contextMessages], [6, 4]);
    });

    it("returning to an abandoned branch brings its messages back", async ({ store, talk, host }) => {
      host.goesBackTo("h-2");
      await say(store, talk, host, "e f");
      host.goesBackTo("h-4");
      await say(store, talk, host, "g");
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "c", "d", "g"]);
      host.goesBackTo("h-5");
      await say(store, talk, host, "h");
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "e", "h"]);
      host.goesBackTo("h-3");
      await say(store, talk, host, "i");
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "c", "i"]);
    });

    it("a cut inside a folded summary opens it and keeps what came before the cut", async ({ store, talk, host }) => {
      await foldPlaces(store, talk.id, [0, 3], "a to d");
      await say(store, talk, host, "e");
      host.goesBackTo("h-2");
      await say(store, talk, host, "f");
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "f"]);
      assert.equal((await store.conversation(talk.id))?.totals.summaries, 1);
    });

    it("a cut deep inside condensed summaries opens only those that span it", async ({ store, talk, host }) => {
      await say(store, talk, host, "e f g h");
      for (const [place, text] of ["ab", "cd", "ef", "gh"].entries())
        await foldPlaces(store, talk.id, [place, place + 1], text);
      await foldPlaces(store, talk.id, [0, 1], "abcd");
      await foldPlaces(store, talk.id, [1, 2], "efgh");
      await foldPlaces(store, talk.id, [0, 1], "all");
      host.goesBackTo("h-5");
      await say(store, talk, host, "i");
      assert.deepEqual(await shownTexts(store, talk.id), ["abcd", "e", "i"]);
      host.goesBackTo("h-8");
      await say(store, talk, host, "j");
      assert.deepEqual(await shownTexts(store, talk.id), ["abcd", "e", "f", "g", "h", "j"]);
    });

    it("a cut just after a summary leaves it whole", async ({ store, talk, host }) => {
      await foldPlaces(store, talk.id, [0, 1], "ab");
      host.goesBackTo("h-2");
      await say(store, talk, host, "e");
      assert.deepEqual(await shownTexts(store, talk.id), ["ab", "e"]);
    });

    it("messages that came back can be folded, and the fold covers what is shown", async ({ store, talk, host }) => {
      host.goesBackTo("h-1");
      await say(store, talk, host, "e");
      host.goesBackTo("h-4");
      await say(store, talk, host, "f");
      await foldPlaces(store, talk.id, [1, 4], "b to f");
      await check(store, talk, host);
      host.goesBackTo("h-5");
      await say(store, talk, host, "g");
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "e", "g"]);
    });

    it("lines that are not messages can be rewound to, and move the branch themselves", async (scene) => {
      const { store, talk, host } = scene;
      const mark = host.notes("label", { name: "here" });
      await say(store, talk, host, "e");
      host.goesBackTo(mark.key);
      await say(store, talk, host, "f");
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "c", "d", "f"]);
      host.goesBackTo("h-2");
      host.notes("branch_summary", { summary: "left c to f" });
      await deliver(store, talk, host);
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b"]);
      await say(store, talk, host, "g");
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "g"]);
    });

    it("a parent that was never sent is not a rewind", async ({ store, talk, host }) => {
      const stranger = createHost("x");
      stranger.goesBackTo("unheard-of");
      const said = stranger.says(user("e"));
      await store.append(talk.id, [toAppendable(said)]);
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "c", "d", "e"]);
      assert.equal(host.entries.length, 4);
    });
  });

  describe("branches whose messages arrive out of order, or without a tree", () => {
    const it = itOn(subject, onTalk);

    it("several branches in one append end at the last, and replaying them changes nothing", async (scene) => {
      const { store, talk, host } = scene;
      for (const word of ["a", "b", "c"]) host.says(user(word));
      host.goesBackTo("h-1");
      for (const word of ["d", "e"]) host.says(user(word));
      host.goesBackTo("h-3");
      await say(store, talk, host, "f");
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "c", "f"]);
      await deliver(store, talk, host);
      await store.append(talk.id, host.entries.slice(3, 5).map(toAppendable));
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "c", "f"]);
      await check(store, talk, host);
    });

    it("a host without a tree only ever continues", async ({ store, talk, host }) => {
      for (const word of ["a", "b", "c"]) {
        const item = toAppendable(host.says(user(word)));
        assert.ok(item.kind === "message");
        const { parentKey: _, ...treeless } = item.message;
        await store.append(talk.id, [{ kind: "message", message: treeless }]);
      }
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "c"]);
      await check(store, talk, host);
    });

    const chain = Array.from({ length: 10 }, (_, n) => ({ key: `m${n + 1}`, parentKey: n === 0 ? null : `m${n}` }));
    const holes: Record<string, readonly number[]> = {
      "a line in the middle that is fixed later": [1, 2, 4, 5, 6, 7, 8, 9, 10],
      "the end, then everything": [6, 7, 8, 9, 10],
      "one live message, then everything": [8],
      "two holes": [1, 3, 4, 6, 7, 8, 9, 10],
    };
    for (const [name, stored] of Object.entries(holes)) {
      it(`a message that arrives after its successors is placed before them: ${name}`, async (scene) => {
        const { store, talk } = scene;
        const put = async (numbers: readonly number[]): Promise<void> => {
          const items = numbers.map((n) => {
            const { key, parentKey } = chain[n - 1] ?? assert.fail();
            const origin = { key, parentKey, at: at("2026-01-01T00:00:00.000Z") };
            return { kind: "message", message: messageToStore(user(key), origin) } as const;
          });
          await store.append(talk.id, items);
        };
        await put(stored);
        for (const n of chain.keys()) await put([n + 1]);
        const wanted = chain.map(({ key }) => key);
        assert.deepEqual(await shownTexts(store, talk.id), wanted);
        await put(chain.map((_, n) => n + 1));
        assert.deepEqual(await shownTexts(store, talk.id), wanted);
        const edited = { key: "e", parentKey: "m4", at: at("2026-01-01T00:00:00.000Z") };
        await store.append(talk.id, [{ kind: "message", message: messageToStore(user("e"), edited) }]);
        assert.deepEqual(await shownTexts(store, talk.id), ["m1", "m2", "m3", "m4", "e"]);
      });
    }

    const moment = { at: at("2026-01-01T00:00:00.000Z") };
    /** Each message under its key, with its key as text, after the one it names. */
    const put = async (store: Store, { id }: Conversation, ...links: readonly (readonly [string, string])[]) => {
      for (const [key, parentKey] of links) {
        const message = messageToStore(user(key), { ...moment, key, parentKey });
        await store.append(id, [{ kind: "message", message }]);
      }
    };
    const shown = async (store: Store, { id }: Conversation): Promise<string> =>
      (await shownTexts(store, id)).join(" ");

    it("a branch returns after ancestors that were stored later, and is abandoned where they are", async (scene) => {
      const { store, talk } = scene;
      await put(store, talk, ["a", "unseen"], ["d", "c"], ["e", "d"], ["b", "a"], ["c", "b"], ["f", "e"]);
      assert.equal(await shown(store, talk), "a b c d e f");
      await put(store, talk, ["g", "b"]);
      assert.equal(await shown(store, talk), "a b g");
      await put(store, talk, ["h", "f"], ["i", "d"]);
      assert.equal(await shown(store, talk), "a b c d i");
    });

    it("the newest message is shown even if an abandoned branch had been missing it, and is abandoned like any other", async (scene) => {
      const { store, talk } = scene;
      await put(store, talk, ["a", "unseen"], ["d", "c"], ["b", "a"], ["c", "b"]);
      assert.equal(await shown(store, talk), "a b c");
      await put(store, talk, ["e", "b"]);
      assert.equal(await shown(store, talk), "a b e");
      await put(store, talk, ["f", "d"]);
      assert.equal(await shown(store, talk), "a b c d f");
      const again = await store.open({ sessionId: "t" });
      const links = Object.entries({ a: "unseen", d: "c", b: "a", c: "b" });
      const messages = links.map(([key, parentKey]) => messageToStore(user(key), { ...moment, key, parentKey }));
      await store.append(
        again.id,
        messages.map((message) => ({ kind: "message", message }) as const),
      );
      assert.equal(await shown(store, again), "a b c", "in one append as well");
    });

    it("a summary of such a branch stays whole when the cut is after its end, and is opened when it is before", async ({
      store,
      talk,
    }) => {
      await put(store, talk, ["a", "unseen"], ["d", "c"], ["e", "d"], ["b", "a"], ["c", "b"], ["f", "e"]);
      await foldPlaces(store, talk.id, [2, 4], "cde");
      await put(store, talk, ["g", "e"]);
      assert.equal(await shown(store, talk), "a b cde g");
      await put(store, talk, ["h", "b"]);
      assert.equal(await shown(store, talk), "a b h");
      await put(store, talk, ["i", "g"]);
      await foldPlaces(store, talk.id, [0, 5], "a to g");
      await put(store, talk, ["j", "d"]);
      assert.equal(await shown(store, talk), "a b c d j");
    });

    it("a host that names parents it never sends is read in order", async ({ store, talk }) => {
      const words = Array.from({ length: 30 }, (_, n) => `w${n}`);
      for (const [n, key] of words.entries()) {
        const origin = { key, parentKey: `unseen-${n}`, at: at("2026-01-01T00:00:00.000Z") };
        await store.append(talk.id, [{ kind: "message", message: messageToStore(user(key), origin) }]);
      }
      assert.deepEqual(await shownTexts(store, talk.id), words);
    });

    it("returning to a message without a parent keeps what came before it", async ({ store, talk }) => {
      const put = async (key: string, parentKey?: string): Promise<void> => {
        const origin = { key, at: at("2026-01-01T00:00:00.000Z"), ...(parentKey === undefined ? {} : { parentKey }) };
        await store.append(talk.id, [{ kind: "message", message: messageToStore(user(key), origin) }]);
      };
      for (const key of ["a", "b", "c"]) await put(key);
      await put("d", "b");
      await put("e", "c");
      assert.deepEqual(await shownTexts(store, talk.id), ["a", "b", "c", "e"]);
    });
  });
}
