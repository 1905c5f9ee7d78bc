/** Contract: opening sessions, their segments and families. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { messageToStore } from "../../src/core/messages/codec.ts";
import { createHost, toAppendable, user } from "../support/scripted-host.ts";
import { at, deliver, each, foldPlaces, itOn, nowhere, onStore, refuses, say, shownTexts } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

export function testConversations(subject: StoreUnderTest): void {
  const it = itOn(subject, onStore);

  describe("conversations", () => {
    it("opening a session twice returns the same conversation", async ({ store }) => {
      const session = { sessionId: "s1", sessionKey: "agent:main:telegram:7" };
      const first = await store.open(session);
      assert.deepEqual(await store.open(session), first);
      assert.equal((await store.conversations()).length, 1);
      assert.deepEqual(first.totals, {
        messages: 0,
        messageTokens: 0,
        summaries: 0,
        contextItems: 0,
        contextTokens: 0,
        contextMessages: 0,
        contextMessageTokens: 0,
      });
    });

    it("a session key continues under another session id", async ({ store }) => {
      const before = await store.open({ sessionId: "monday", sessionKey: "agent:main:cli" });
      assert.equal((await store.open({ sessionId: "tuesday", sessionKey: "agent:main:cli" })).id, before.id);
    });

    it("a session without a key is identified by its id, and differs from one with a key", async ({ store }) => {
      const keyed = await store.open({ sessionId: "s", sessionKey: "k" });
      const bare = await store.open({ sessionId: "s" });
      assert.notEqual(bare.id, keyed.id);
      assert.equal((await store.open({ sessionId: "s" })).id, bare.id);
      assert.equal(bare.sessionKey, null);
    });

    it("what was stored under a session id alone continues under its key once that is known", async ({ store }) => {
      const nameless = await store.open({ sessionId: "s" });
      await say(store, nameless, createHost("h"), "before there were keys");
      const other = await store.open({ sessionId: "other", sessionKey: "agent:main:cli" });
      assert.notEqual(other.id, nameless.id);

      const named = await store.open({ sessionId: "s", sessionKey: "agent:ops:cli" });
      assert.deepEqual([named.id, named.sessionKey, named.agentId], [nameless.id, "agent:ops:cli", "ops"]);
      assert.deepEqual(await shownTexts(store, named.id), ["before there were keys"]);
      assert.ok(named.revision > nameless.revision);
      assert.deepEqual(await store.open({ sessionId: "s", sessionKey: "agent:ops:cli" }), named);
      // A session with its own conversation takes no other; nor does one with another id.
      const bare = await store.open({ sessionId: "s" });
      assert.equal((await store.open({ sessionId: "s", sessionKey: "agent:ops:cli" })).id, named.id);
      assert.equal((await store.conversation(bare.id))?.sessionKey, null);
    });

    it("a conversation that no host has written to takes the id of the session that continues it; any other keeps its own", async (scene) => {
      const { store } = scene;
      const session = { sessionId: "old", sessionKey: "agent:main:cli" };
      const { id } = await store.open(session);
      const renamed = await store.open({ ...session, sessionId: "new" });
      assert.deepEqual([renamed.id, renamed.sessionId], [id, "new"]);
      await store.append(id, [], { hostCursor: "5" });
      const kept = await store.open({ ...session, sessionId: "newer" });
      assert.deepEqual([kept.id, kept.sessionId], [id, "new"]);
    });

    it("a segment that starts with a line is created once, and what follows the line leaves no gap", async ({
      store,
    }) => {
      const session = { sessionId: "a", sessionKey: "agent:main:cli" };
      const host = createHost("h");
      host.says(user("before"));
      const first = await store.open(session);
      await deliver(store, first, host);
      const reset = toAppendable(host.notes("reset", { reason: "new" }));
      assert.ok(reset.kind === "entry");
      const options = { begins: reset.entry, hostCursor: "2" };
      const second = await store.openSegment(session, options);
      assert.notEqual(second.id, first.id);
      assert.deepEqual(await store.openSegment(session, options), second);
      assert.equal((await store.conversations()).length, 2);

      const after = [host.says(user("after")), host.says(user("and after that"))].map(toAppendable);
      await store.append(second.id, after, { hostCursor: "4" });
      assert.deepEqual(await store.entries(second.id, 0, 9), [{ ...reset.entry, afterSeq: 0 }]);
      assert.deepEqual(await shownTexts(store, second.id), ["after", "and after that"]);
      assert.deepEqual(await shownTexts(store, first.id), ["before"]);
      // Opening it again finds it as it is now; the line belongs to this segment alone.
      assert.equal((await store.openSegment(session, options)).hostCursor, "4");
      assert.deepEqual(await store.entries(first.id, 0, 9), []);
      // An entry without a parent would count as missing, if anything were missing.
      const root = messageToStore(user("out of nowhere"), {
        key: "root",
        at: at("2026-02-17T09:00:00.000Z"),
        parentKey: null,
      });
      await store.append(second.id, [{ kind: "message", message: root }]);
      assert.deepEqual(await shownTexts(store, second.id), ["after", "and after that", "out of nowhere"]);

      const another = await store.openSegment({ ...session, sessionKey: "agent:main:other" }, options);
      assert.notEqual(another.id, second.id);
    });

    it("the agent is the one given, or the one in the session key", async ({ store }) => {
      assert.equal((await store.open({ sessionId: "a", sessionKey: "agent:ops:cron" })).agentId, "ops");
      assert.equal((await store.open({ sessionId: "b", sessionKey: "plain", agentId: "main" })).agentId, "main");
      assert.equal((await store.open({ sessionId: "c" })).agentId, null);
    });

    it("a session needs an id", async ({ store }) => {
      await refuses("invalid", () => store.open({ sessionId: "" }));
      assert.deepEqual(await store.conversations(), []);
    });

    for (const [how, session] of [
      ["by key", { sessionId: "s", sessionKey: "agent:main:cli" }],
      ["by id", { sessionId: "s" }],
    ] as const) {
      it(`a new segment makes the previous one inactive, and keeps it (${how})`, async ({ store }) => {
        const first = await store.open(session);
        await say(store, first, createHost("h"), "before the reset");
        const second = await store.openSegment(session);
        const third = await store.openSegment(session);
        assert.equal(new Set([first.id, second.id, third.id]).size, 3);
        assert.equal((await store.open(session)).id, third.id);
        assert.deepEqual(
          await Promise.all([first, second, third].map(async ({ id }) => (await store.conversation(id))?.active)),
          [false, false, true],
        );
        assert.deepEqual(await store.context(third.id), []);
        assert.equal((await store.context(first.id)).length, 1);
        const family = await store.conversations({ familyOf: first.id });
        assert.deepEqual(new Set(family.map(({ id }) => id)), new Set([first.id, second.id, third.id]));
      });
    }

    it("a new segment carries over the given summaries, as texts that name their originals, and starts at its cursor", async (scene) => {
      const { store } = scene;
      const session = { sessionId: "a", sessionKey: "k" };
      const before = await store.open(session);
      const host = createHost("h");
      for (let n = 1; n <= 9; n++) host.says(user(`the harbour, part ${n}`));
      await deliver(store, before, host);
      for (const place of [0, 1, 2, 3]) await foldPlaces(store, before.id, [place, place + 1], `leaf ${place}`);
      const deep = await foldPlaces(store, before.id, [0, 1], "of the cranes");
      const told = await store.context(before.id);

      const after = await store.openSegment(session, { hostCursor: "17", carryDepth: 1 });
      assert.deepEqual([after.hostCursor, after.active, after.totals.messages], ["17", true, 0]);
      const [item, ...more] = await store.context(after.id);
      assert.deepEqual([item?.kind, more], ["summary", []]);
      const [copy] = await store.summaries({ conversation: after.id });
      assert.deepEqual([copy?.id, copy?.text, copy?.carriedFrom, copy?.depth], [item?.id, "of the cranes", deep, 1]);
      assert.equal(after.totals.contextTokens, copy?.tokens);
      assert.deepEqual(await store.context(before.id), told);
      const plan = { conversation: after.id, summary: copy?.id ?? deep, ordinal: item?.ordinal ?? 0 };
      await refuses("invalid", () => store.dissolve(plan));
      const grep = { pattern: "cranes", mode: "full_text", scope: "summaries", sort: "recency", limit: 9 } as const;
      assert.deepEqual(each((await store.search(grep)).hits, "id"), [deep]);

      // Carried twice, it still names the first original; and new messages come after it.
      const last = await store.openSegment(session, { carryDepth: 0 });
      const again = await store.summaries({ conversation: last.id });
      assert.deepEqual(each(again, "carriedFrom"), [deep]);
      await say(store, last, createHost("later"), "and now");
      assert.deepEqual(each(await store.context(last.id), "kind"), ["summary", "message"]);
      const empty = await store.openSegment(session);
      assert.deepEqual([await store.context(empty.id), empty.hostCursor], [[], null]);
    });

    it("two agents with the same session key have two conversations, and two families", async ({ store }) => {
      const hers = await store.open({ sessionId: "a", sessionKey: "main", agentId: "alice" });
      const his = await store.open({ sessionId: "b", sessionKey: "main", agentId: "bob" });
      assert.notEqual(his.id, hers.id);
      assert.equal((await store.open({ sessionId: "a", sessionKey: "main", agentId: "alice" })).id, hers.id);
      const family = await store.conversations({ familyOf: hers.id });
      assert.deepEqual(each(family, "id"), [hers.id]);
    });

    it("a session is found by its own id, active or not, and created once", async ({ store }) => {
      const first = await store.openSession({ sessionId: "one", sessionKey: "k" });
      const second = await store.openSession({ sessionId: "two", sessionKey: "k" });
      assert.notEqual(second.id, first.id);
      assert.equal((await store.openSession({ sessionId: "one", sessionKey: "k" })).id, first.id);
      assert.equal((await store.openSession({ sessionId: "one" })).id, first.id);
    });

    it("remembers the prompt budget of a conversation, which changes nothing else", async ({ store }) => {
      const talk = await store.open({ sessionId: "s" });
      assert.equal(talk.promptBudget, null);
      for (const tokens of [128_000, 128_000, 8_000]) {
        await store.setPromptBudget(talk.id, tokens);
        assert.deepEqual(await store.conversation(talk.id), { ...talk, promptBudget: tokens });
      }
      await refuses("not_found", () => store.setPromptBudget(nowhere, 1));
      for (const tokens of [0, -5, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
        await refuses("invalid", () => store.setPromptBudget(talk.id, tokens));
      assert.equal((await store.conversation(talk.id))?.promptBudget, 8_000);
    });

    it("guarantee 7: a new segment takes nothing from the one before it", async ({ store }) => {
      const session = { sessionId: "a", sessionKey: "k" };
      const before = await store.open(session);
      await store.append(before.id, [], { hostCursor: "17" });
      await store.setTitle(before.id, "what it was about");
      await store.openSegment(session);
      const after = await store.conversation(before.id);
      assert.deepEqual([after?.title, after?.hostCursor, after?.active], ["what it was about", "17", false]);
    });

    it("a family belongs to one session key", async ({ store }) => {
      const mine = await store.open({ sessionId: "s", sessionKey: "agent:main:a" });
      await store.open({ sessionId: "s", sessionKey: "agent:main:b" });
      await store.open({ sessionId: "s" });
      const newer = await store.openSegment({ sessionId: "s2", sessionKey: "agent:main:a" });
      const family = await store.conversations({ familyOf: mine.id });
      assert.deepEqual(new Set(family.map(({ id }) => id)), new Set([mine.id, newer.id]));
      await refuses("not_found", () => store.conversations({ familyOf: nowhere }));
    });

    it("a hidden conversation is left out unless requested, and shown again", async ({ store }) => {
      const { id } = await store.open({ sessionId: "s" });
      await store.setHidden(id, true);
      assert.deepEqual(await store.conversations(), []);
      assert.equal((await store.conversations({ includeHidden: true }))[0]?.hidden, true);
      assert.equal((await store.conversation(id))?.id, id);
      await store.setHidden(id, false);
      assert.equal((await store.conversations())[0]?.id, id);
    });

    it("lists by newest activity, filtered and limited", async ({ store }) => {
      const ids = [];
      for (const [index, name] of ["a", "b", "c"].entries()) {
        const conversation = await store.open({
          sessionId: name,
          sessionKey: `key-${name}`,
          agentId: index === 1 ? "ops" : "main",
        });
        const host = createHost(name);
        for (let said = 0; said <= index; said++) host.says(user(`${name} ${said}`));
        await deliver(store, conversation, host);
        ids.push(conversation.id);
      }
      const listed = async (filter?: Parameters<typeof store.conversations>[0]) =>
        (await store.conversations(filter)).map(({ sessionId }) => sessionId);
      assert.deepEqual(await listed(), ["c", "b", "a"]);
      assert.deepEqual(await listed({ limit: 2 }), ["c", "b"]);
      assert.deepEqual(await listed({ agentId: "main" }), ["c", "a"]);
      assert.deepEqual(await listed({ sessionKey: "key-b" }), ["b"]);
      assert.deepEqual(await listed({ sessionId: "a" }), ["a"]);
      await store.openSegment({ sessionId: "c2", sessionKey: "key-c" });
      assert.deepEqual(await listed({ sessionKey: "key-c", active: true }), ["c2"]);
      assert.deepEqual(await listed({ sessionKey: "key-c", active: false }), ["c"]);
    });

    it("keeps the folder and the parent that a session named first, also if it was created without them", async ({
      store,
    }) => {
      const session = { sessionId: "s", sessionKey: "k" };
      const started = { folder: "/home/ann/pier", parentSessionId: "parent" };
      const unknown = await store.open(session);
      assert.deepEqual([unknown.folder, unknown.parentSessionId], [null, null]);
      // What a session says about itself is no change of what it holds.
      assert.deepEqual(await store.open({ ...session, folder: started.folder }), {
        ...unknown,
        folder: started.folder,
      });
      const known = { ...unknown, ...started };
      for (const later of [started, { folder: "/elsewhere", parentSessionId: "another" }, {}])
        for (const open of ["open", "openSession"] as const)
          assert.deepEqual(await store[open]({ ...session, ...later }), known);
      assert.deepEqual(await store.conversation(unknown.id), known);

      const segment = await store.openSegment(session);
      assert.deepEqual([segment.folder, segment.parentSessionId], [started.folder, "parent"]);
      const moved = await store.openSegment({ ...session, folder: "/elsewhere" });
      assert.deepEqual([moved.folder, moved.parentSessionId], ["/elsewhere", "parent"]);
      const named = await store.openSession({ sessionId: "new", ...started });
      assert.deepEqual([named.folder, named.parentSessionId], [started.folder, "parent"]);
    });

    it("a segment that was begun without a folder learns it when it is begun again", async ({ store }) => {
      const session = { sessionId: "s", sessionKey: "k" };
      const reset = toAppendable(createHost("h").notes("reset"));
      assert.ok(reset.kind === "entry");
      const begun = await store.openSegment(session, { begins: reset.entry });
      const again = await store.openSegment({ ...session, folder: "/work" }, { begins: reset.entry });
      assert.deepEqual(again, { ...begun, folder: "/work" });
    });

    it("lists the sessions of a folder and of folders inside it, and those that a session started", async ({
      store,
    }) => {
      const folders = ["/w/app", "/w/app/docs", "/w/apple", "/w", "C:\\w\\app\\docs", "/W/app", "/w/a%p", null];
      for (const [at, folder] of folders.entries())
        await store.open({ sessionId: `${at}`, folder, ...(at < 2 ? { parentSessionId: "p" } : {}) });
      const listed = async (filter: Parameters<typeof store.conversations>[0]) =>
        (await store.conversations(filter)).map(({ sessionId }) => Number(sessionId)).toSorted((a, b) => a - b);
      assert.deepEqual(await listed({ folder: "/w/app" }), [0, 1]);
      assert.deepEqual(await listed({ folder: "/w/app/" }), [0, 1]);
      assert.deepEqual(await listed({ folder: "/w" }), [0, 1, 2, 3, 6]);
      assert.deepEqual(await listed({ folder: "/" }), [0, 1, 2, 3, 5, 6]);
      assert.deepEqual(await listed({ folder: "C:\\w\\app" }), [4]);
      assert.deepEqual(await listed({ folder: "/w/a_p" }), []);
      assert.deepEqual(await listed({ parentSessionId: "p" }), [0, 1]);
      assert.deepEqual(await listed({ parentSessionId: "p", folder: "/w/app/docs" }), [1]);
    });

    it("titles are set and removed; every write increases the revision", async ({ store }) => {
      const { id, revision } = await store.open({ sessionId: "s" });
      await store.setTitle(id, "Moving house");
      const titled = await store.conversation(id);
      assert.equal(titled?.title, "Moving house");
      assert.ok((titled?.revision ?? 0) > revision);
      await store.setTitle(id, null);
      assert.equal((await store.conversation(id))?.title, null);
    });

    it("an unknown id is not found, and creates nothing", async ({ store }) => {
      assert.equal(await store.conversation(nowhere), null);
      await refuses("not_found", () => store.setTitle(nowhere, "x"));
      await refuses("not_found", () => store.setHidden(nowhere, true));
      await refuses("not_found", () => store.append(nowhere, []));
      await refuses("not_found", () => store.context(nowhere));
      await refuses("not_found", () => store.skeleton(nowhere));
      await refuses("not_found", () =>
        store.transplant({ source: nowhere, target: nowhere === 1 ? nowhere : (1 as typeof nowhere) }),
      );
      assert.deepEqual(await store.messages({ conversation: nowhere }), []);
      assert.deepEqual(await store.summaries({ conversation: nowhere }), []);
      assert.deepEqual(await store.conversations({ includeHidden: true }), []);
    });
  });
}
