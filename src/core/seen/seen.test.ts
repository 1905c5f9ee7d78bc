/** The prompt behind an answer, what changed between two, when something was in view, and why bytes may be lost. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { join } from "node:path";
import { makeRecordedTalk, recordTalk, talkSettings } from "../../../test/support/recorded-prompts.ts";
import { freshLcms, type FreshLcm } from "../../../test/support/fresh-lcm.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { forget, rewrite, transplant, takeBack } from "../../../test/store-contract/undo-scene.ts";
import { deliver, summary } from "../../../test/store-contract/ground.ts";
import { createHost, turnWithTool, user } from "../../../test/support/scripted-host.ts";
import { openSqlite, systemNow } from "../../store/sqlite/store.ts";
import { shortDigest } from "../base/digest.ts";
import { createLcm, type Lcm } from "../lcm.ts";
import { recallGuidance } from "../prompts/guidance.ts";
import { resolveSettings } from "../model/settings.ts";
import { renderingVersion } from "../model/prompts.ts";
import { messageIdOf, type ConversationId, type MessageId } from "../model/types.ts";

const onLcm = freshLcms("seen-verbs");

type Talk = FreshLcm & Awaited<ReturnType<typeof recordTalk>> & { readonly message: (seq: number) => MessageId };

const onTalk = (test: (talk: Talk) => Promise<void>) => async (): Promise<void> =>
  await onLcm(async (ground) => {
    const {
      store,
      lcm: { clock },
    } = ground;
    const lcm = createLcm({ store, clock, settings: talkSettings });
    const made = await recordTalk(lcm, { now: 0 });
    await test({ ...ground, ...made, lcm, message: (seq) => messageIdOf(made.conversation, seq) });
  });

const promptAt = async (lcm: Lcm, conversation: ConversationId, number: number) =>
  (await lcm.findPrompt({ conversation, number })).record;

describe("guarantee 35: the prompt behind an answer", () => {
  it(
    "is the last one before it was stored; behind a question, that of its answer",
    onTalk(async ({ lcm, conversation, message }) => {
      for (const turn of [1, 9, 20]) {
        const { record, answer } = await lcm.findPrompt({ message: message(2 * turn) });
        assert.deepEqual([record.number, answer], [turn, message(2 * turn)]);
        assert.equal((await lcm.findPrompt({ message: message(2 * turn - 1) })).record.number, turn);
      }
      assert.equal((await lcm.findPrompt({ conversation, turn: "turn-7" })).record.number, 7);
      assert.equal((await lcm.findPrompt({ conversation })).record.number, 20);
      const { at } = await promptAt(lcm, conversation, 12);
      assert.equal((await lcm.findPrompt({ conversation, at })).record.at, at);
      await assert.rejects(lcm.findPrompt({ message: message(99) }), /there is no msg_/);
      await assert.rejects(
        lcm.findPrompt({ conversation, number: 21 }),
        /no prompt 21 of conversation \d+ is recorded/,
      );
      await assert.rejects(lcm.findPrompt({ conversation, turn: "x" }), /no prompt of turn x/);
    }),
  );

  it(
    "is not an earlier one of ours if the host sent its own",
    onTalk(async ({ lcm, conversation }) => {
      await lcm.recordHostsPrompt(conversation, "our prompt could not be built in time");
      const text = { role: "assistant", content: [{ type: "text", text: "An answer." }] };
      await lcm.ingest(conversation, [{ kind: "message", key: "own", at: systemNow(), message: text }]);
      const { record } = await lcm.findPrompt({ message: messageIdOf(conversation, 41) });
      const { isExact, reasons } = await lcm.rebuild(record);
      assert.deepEqual(
        [isExact, reasons],
        [false, ["the host sent its own messages: our prompt could not be built in time"]],
      );
    }),
  );

  it("is not recorded if the settings say so, and only for as long as they say", async () => {
    await onLcm(async ({ store, lcm: { clock } }) => {
      const config = (promptDays: number) => resolveSettings({ env: {}, config: { promptDays } }).values;
      const { id } = await store.open({ sessionId: "s" });
      const none = createLcm({ store, clock, settings: config(0) });
      assert.equal(await none.recordPrompt(await none.assemble(id)), null);
      assert.equal(await none.recordHostsPrompt(id, "why"), null);
      const year = { now: () => "2025-01-01T00:00:00.000Z" as ReturnType<typeof clock.now> };
      for (const past of [year, year]) {
        const then = createLcm({ store, clock: past });
        await then.recordPrompt(await then.assemble(id));
      }
      const days = createLcm({ store, clock, settings: config(30) });
      assert.equal(await days.recordPrompt(await days.assemble(id)), 3);
      assert.deepEqual(
        (await days.prompts(id)).map(({ number }) => number),
        [3],
      );
    });
  });
});

describe("guarantee 35: what changed between two prompts", () => {
  it(
    "says what was folded into what, and what arrived",
    onTalk(async ({ lcm, conversation, folds, message }) => {
      const [eight, ten] = [await promptAt(lcm, conversation, 8), await promptAt(lcm, conversation, 10)];
      const { changes, sharedBytes } = await lcm.comparePrompts(eight, ten);
      assert.deepEqual(changes, [
        { kind: "arrived", of: null, items: [16, 17, 18, 19].map(message) },
        { kind: "folded", of: folds[0], items: [1, 2, 3, 4, 5, 6, 7, 8].map(message) },
      ]);
      assert.equal(sharedBytes, 0);
      const nine = await promptAt(lcm, conversation, 9);
      assert.equal((await lcm.comparePrompts(nine, ten)).sharedBytes, nine.bytes, "only its end grew");
      assert.deepEqual((await lcm.comparePrompts(ten, ten)).changes, []);
    }),
  );

  it(
    "says that a question is no longer repeated, and not that it was folded again",
    onTalk(async ({ lcm, conversation, folds, message }) => {
      const ten = await promptAt(lcm, conversation, 10);
      const { head } = ten;
      const again = { from: 7, to: 7, bytes: 40, again: true } as const;
      const repeating = { ...ten, head: { ...head, items: head.items.toSpliced(1, 0, again) } };
      const items = [message(7)];
      assert.deepEqual((await lcm.comparePrompts(repeating, ten)).changes, [
        { kind: "not repeated", of: folds[0], items },
      ]);
      assert.deepEqual((await lcm.comparePrompts(ten, repeating)).changes, [{ kind: "repeated", of: folds[0], items }]);
    }),
  );

  it(
    "says what was rewritten, dissolved, evicted, pinned and left",
    onTalk(async ({ lcm, store, conversation, folds, message }) => {
      const compared = async (work: () => Promise<unknown>, budget = 2_000) => {
        const number = async () => (await lcm.recordPrompt(await lcm.assemble(conversation, { budget }))) ?? 0;
        const older = await promptAt(lcm, conversation, await number());
        await work();
        const newer = await promptAt(lcm, conversation, await number());
        return (await lcm.comparePrompts(older, newer)).changes;
      };
      const [first, second] = folds;
      assert.ok(first !== undefined && second !== undefined);
      assert.deepEqual(await compared(async () => await rewrite(store, first, "Anew.")), [
        { kind: "rewritten", of: null, items: [first] },
      ]);
      const plan = await lcm.planPin({ message: message(3), by: "person" });
      assert.deepEqual(await compared(async () => await lcm.pin(plan)), [
        { kind: "pinned", of: null, items: [message(3)] },
      ]);
      const item = (await store.context(conversation)).find(({ id }) => id === second);
      const dissolved = await compared(
        async () => await store.dissolve({ conversation, summary: second, ordinal: item?.ordinal ?? 0 }),
      );
      assert.deepEqual(dissolved, [
        { kind: "unfolded", of: second, items: [9, 10, 11, 12, 13, 14, 15, 16].map(message) },
      ]);
      const smaller = await promptAt(
        lcm,
        conversation,
        (await lcm.recordPrompt(await lcm.assemble(conversation, { budget: 500 }))) ?? 0,
      );
      const whole = await promptAt(lcm, conversation, smaller.number - 1);
      const [evicted] = (await lcm.comparePrompts(whole, smaller)).changes;
      assert.deepEqual([evicted?.kind, evicted?.items[0]], ["evicted", first]);
      const [back] = (await lcm.comparePrompts(smaller, whole)).changes;
      assert.equal(back?.kind, "returned");
    }),
  );
});

describe("guarantee 35: when something was in view", () => {
  it(
    "says in which prompts, how, and from when on no longer",
    onTalk(async ({ lcm, conversation, folds, message }) => {
      const spans = async (id: Parameters<Lcm["findInPrompts"]>[1]) =>
        (await lcm.findInPrompts(conversation, id)).map(({ view, by, from, to }) => [view, by, from.number, to.number]);
      assert.deepEqual(await spans(message(3)), [
        ["whole", null, 2, 8],
        ["summary", folds[0], 9, 20],
      ]);
      assert.deepEqual(await spans(message(38)), [["whole", null, 20, 20]]);
      assert.deepEqual(await spans(message(40)), []);
      assert.deepEqual(await spans(folds[1] ?? "sum_"), [["whole", null, 15, 20]], "not before it was made");
    }),
  );
});

describe("guarantee 35: bytes that cannot be rebuilt", () => {
  const last = async (lcm: Lcm, conversation: ConversationId) => {
    const { record } = await lcm.findPrompt({ conversation });
    return await lcm.rebuild(record);
  };

  it(
    "are named if a message, or one below a summary, was forgotten",
    onTalk(async ({ lcm, store, conversation, folds, message }) => {
      await forget(store, { kind: "message", id: message(38) });
      const { isExact, reasons, assembly } = await last(lcm, conversation);
      assert.equal(isExact, false);
      assert.deepEqual(reasons, ["msg_1-38 was forgotten, in whole or in part"]);
      assert.match(JSON.stringify(assembly.messages), /\[forgotten\]/);
      await forget(store, { kind: "secret", text: "Piles before turn 8" });
      const { reasons: more } = await last(lcm, conversation);
      assert.deepEqual(more.slice(0, 1), [`the text of ${folds[0]} then is no longer known: a secret was forgotten`]);
    }),
  );

  it(
    "are named if a transplant in it was undone",
    onTalk(async ({ lcm, store, conversation }) => {
      const other = await store.open({ sessionId: "other" });
      const host = createHost("o");
      for (const n of [1, 2, 3]) host.says(user(`something quite different, number ${n}`));
      await deliver(store, other, host);
      await store.fold(other.id, await store.context(other.id), summary("different"));
      const change = await transplant(store, other.id, conversation);
      await lcm.recordPrompt(await lcm.assemble(conversation, { budget: 2_000 }));
      assert.equal((await last(lcm, conversation)).isExact, true);
      await takeBack(store, change);
      const { isExact, reasons } = await last(lcm, conversation);
      assert.equal(isExact, false);
      assert.match(reasons.join(), /the text of sum_\w+ then is no longer known: it was deleted|no longer exist/);
    }),
  );

  it(
    "are named if the host edited a message",
    onTalk(async ({ lcm, conversation }) => {
      const edits = new Map([["a20", [{ type: "text", text: "cleared" }]]]);
      await lcm.recordPrompt(await lcm.assemble(conversation, { budget: 2_000, edits }));
      const { isExact, reasons } = await last(lcm, conversation);
      assert.deepEqual([isExact, reasons], [false, ["the host showed something else in the place of msg_1-40"]]);
    }),
  );
});

describe("guarantee 35: the version of the rendering", () => {
  it("is raised whenever the same items give other bytes: then change the digest here, too", async () => {
    const path = join(makeScratch("seen-version"), "talk.db");
    const { conversation } = await makeRecordedTalk(path);
    const store = await openSqlite({ path, housekeeping: false });
    const lcm = createLcm({ store, clock: { now: systemNow }, settings: talkSettings });
    const at = "2026-03-02T08:00:00.000Z" as ReturnType<typeof systemNow>;
    const [, call] = turnWithTool("call", "Where is it?", "here");
    await lcm.ingest(conversation, [{ kind: "message", key: "call", at, message: call ?? {} }]);
    await lcm.pin(await lcm.planPin({ message: messageIdOf(conversation, 3), by: "person" }));
    for (const budget of [2_000, 500, 60]) {
      const guidance = recallGuidance({ isFolded: true, isRestarted: budget < 500 });
      await lcm.recordPrompt(await lcm.assemble(conversation, { budget }), { guidance });
    }
    const hashes = (await lcm.prompts(conversation)).map(({ hash }) => hash);
    await lcm.close();
    assert.deepEqual([renderingVersion, hashes.length, shortDigest(hashes.join())], [1, 23, "cvt5ai6oym"]);
  });
});
