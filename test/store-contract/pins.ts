/** Contract: what users say for good is pinned with their message, stays as people decide, and goes where the message goes. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import type { ConversationId, MessageId, NewPin } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { createHost, toAppendable, user } from "../support/scripted-host.ts";
import * as ground from "./ground.ts";
import { each, foldPlaces, isKept, itOn, nowhere, onTalk, refuses, summary } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

const rule = "Always answer in German.";

/** As soon as the rows are indexed, what they say for good is pinned. */
const deliver: typeof ground.deliver = async (store, ...rest) => await indexed(store, ground.deliver(store, ...rest));
const say: typeof ground.say = async (store, ...rest) => await indexed(store, ground.say(store, ...rest));

async function indexed<T>(store: Store, done: Promise<T>): Promise<T> {
  const result = await done;
  while ((await store.index(100)) > 0);
  return result;
}

const wordsIn = async (store: Store, id: ConversationId, inForce = true): Promise<readonly string[]> =>
  each(await store.pins(id, { inForce }), "words");

async function pinOf(store: Store, id: ConversationId, more: Partial<NewPin> = {}) {
  const [said] = await store.messages({ conversation: id, role: "user", limit: 1 });
  const { forgets } = (await store.conversation(id)) ?? assert.fail();
  assert.ok(said !== undefined);
  const about = { state: "pinned", origin: "person", reason: "because", saidAt: said.at, words: said.text } as const;
  return { conversation: id, pin: { ...about, message: said.id, ...more }, forgets };
}

export function testPins(subject: StoreUnderTest): void {
  const it = itOn(subject, onTalk);

  describe("pins", () => {
    it("are stored with their message, once, whatever is replayed", async ({ store, talk, host }) => {
      host.says(user("good morning"));
      host.says(user(rule));
      host.says({ role: "assistant", content: "Always happy to." });
      await deliver(store, talk, host);
      await deliver(store, talk, host);
      const [pin, ...more] = await store.pins(talk.id);
      assert.deepEqual(more, []);
      const { words, origin, state, reason } = pin ?? assert.fail();
      assert.deepEqual(
        { words, origin, state, reason },
        { words: rule, origin: "cue", state: "pinned", reason: "Always answer" },
      );
    });

    it("are found in messages that are not indexed yet when a new segment carries them over", async ({
      store,
      host,
    }) => {
      const session = { sessionId: "n", sessionKey: "agent:main:n" };
      const first = await store.open(session);
      await ground.say(store, first, host, rule);
      const second = await store.openSegment(session, { carryDepth: 2 });
      assert.deepEqual(await wordsIn(store, second.id), [rule]);
    });

    it("are not made of what a host says in the user's name", async ({ store, talk, host }) => {
      host.says(user(rule));
      const noted = host.entries
        .map(toAppendable)
        .map((item) =>
          item.kind === "entry" ? item : { ...item, message: { ...item.message, aside: "note" as const } },
        );
      await indexed(store, store.append(talk.id, noted));
      assert.deepEqual(await store.pins(talk.id), []);
    });

    it("are not made where a program writes the user's messages", async ({ store }) => {
      for (const key of ["agent:main:subagent:x", "agent:main:cron:daily", "agent:a:hook:gmail:1"]) {
        const child = await store.open({ sessionId: key, sessionKey: key });
        const host = createHost("c");
        host.says(user(rule));
        await deliver(store, child, host);
        assert.deepEqual(await store.pins(child.id), [], key);
      }
      const child = await store.open({ sessionId: "a", sessionKey: "codex:a", parentSessionId: "b" });
      const host = createHost("d");
      host.says(user(rule));
      await deliver(store, child, host);
      assert.deepEqual(await store.pins(child.id), [], "an agent speaks to its sub-agent");
    });

    it("come newest first, within a limit, and from a fold too", async ({ store, talk, host }) => {
      await say(
        store,
        talk,
        host,
        "Never push to main.",
        "hello there my friend",
        "Always use tabs please.",
        "one more",
      );
      assert.deepEqual(await wordsIn(store, talk.id), ["Always use tabs please.", "Never push to main."]);
      assert.deepEqual(each(await store.pins(talk.id, { limit: 1 }), "words"), ["Always use tabs please."]);
      const [, second] = await store.messages({ conversation: talk.id });
      const found = {
        ...(await pinOf(store, talk.id)).pin,
        message: second?.id ?? assert.fail(),
        words: "hello there",
      };
      const run = (await store.context(talk.id)).slice(0, 2);
      await store.fold(talk.id, run, summary("x", { tokens: 1, pins: [found, { ...found, words: "again" }] }));
      assert.deepEqual((await wordsIn(store, talk.id)).toSorted(), [
        "Always use tabs please.",
        "Never push to main.",
        "hello there",
      ]);
    });

    it("stay as a person decided, and an undo takes that back", async ({ store, talk, host }) => {
      await say(store, talk, host, rule, "and more words to fold");
      const before = await store.pins(talk.id);
      const written = await store.pin(await pinOf(store, talk.id, { state: "unpinned" }));
      assert.ok(written.kind === "written");
      assert.deepEqual(await wordsIn(store, talk.id), []);
      const { pin } = await pinOf(store, talk.id, { origin: "cue" });
      const run = (await store.context(talk.id)).slice(0, 2);
      await store.fold(talk.id, run, summary("x", { tokens: 1, pins: [pin] }));
      assert.deepEqual(each(await store.pins(talk.id), "state"), ["unpinned"]);
      assert.equal((await store.undo(written.change)).kind, "undone");
      assert.deepEqual(await store.pins(talk.id), before);
      assert.deepEqual(each(await store.journal({}), "operation"), ["undo", "unpin"]);
    });

    it("are not changed from what was read before something was forgotten", async ({ store, talk, host }) => {
      await say(store, talk, host, rule, "a secret word: Zq7xKv93LmQw81");
      const plan = await pinOf(store, talk.id);
      await store.forget(null, await store.planForget(null, { kind: "secret", text: "Zq7xKv93LmQw81" }));
      assert.equal((await store.pin(plan)).kind, "stale");
      await refuses("not_found", async () => await store.pins(nowhere));
    });

    it("are out of force while their branch is left", async ({ store, talk, host }) => {
      host.says(user("good morning"));
      host.says(user(rule));
      await deliver(store, talk, host);
      const [first] = host.entries;
      host.goesBackTo(first?.key ?? assert.fail());
      host.says(user("in English, on second thoughts"));
      await deliver(store, talk, host);
      assert.deepEqual([await wordsIn(store, talk.id), await wordsIn(store, talk.id, false)], [[], [rule]]);
    });

    it("are carried into a new segment, not into one after a reset", async ({ store, host }) => {
      const session = { sessionId: "s", sessionKey: "agent:main:s" };
      const first = await store.open(session);
      await say(store, first, host, rule);
      const second = await store.openSegment(session, { carryDepth: 2 });
      const third = await store.openSegment(session, { carryDepth: 2 });
      assert.deepEqual(
        await store.pins(third.id),
        (await store.pins(first.id)).map((pin) => ({ ...pin, conversation: third.id })),
      );
      assert.deepEqual(await store.pins((await store.openSegment(session)).id), []);
      const { revision } = (await store.conversation(first.id)) ?? assert.fail();
      await store.remove([{ conversation: first.id, revision }]);
      assert.deepEqual(await wordsIn(store, second.id), [rule], "even if the first segment is deleted");
    });

    it("go with a transplanted message, and away with its copy", async ({ store, talk, host }) => {
      await say(store, talk, host, rule, "and more words to fold");
      await foldPlaces(store, talk.id, [0, 1], "x");
      const other = await store.open({ sessionId: "other" });
      const copied = await store.transplant({ source: talk.id, target: other.id });
      assert.ok(copied.kind === "written");
      const [pin] = await store.pins(other.id, { inForce: true });
      const [copy] = await store.messages({ conversation: other.id });
      assert.deepEqual([pin?.words, pin?.message], [rule, copy?.id]);
      assert.equal((await store.undo(copied.change)).kind, "undone");
      assert.deepEqual(await store.pins(other.id), []);
    });

    it("forget a secret and a message, in every segment and in the journal", async ({ store, talk, host, folder }) => {
      const secret = "Zq7xKv93LmQw81";
      await say(store, talk, host, `Never tell anybody ${secret} again.`, "Always use tabs please.");
      const plan = await pinOf(store, talk.id, { reason: secret });
      await store.pin(plan);
      await store.forget(null, await store.planForget(null, { kind: "secret", text: secret }));
      const pins = await store.pins(talk.id);
      assert.equal(JSON.stringify([pins, await store.journal({})]).includes(secret), false);
      assert.equal(pins.length, 2);
      const tabs = pins.find(({ words }) => words.includes("tabs"))?.message ?? (0 as MessageId);
      await store.forget(null, await store.planForget(null, { kind: "message", id: tabs }));
      assert.equal((await store.pins(talk.id)).length, 1);
      assert.equal(await isKept(subject, folder, "tabs please"), false);
    });
  });
}
