/** Contract: a fix makes rows what its plan says, completely or not at all, and can be undone. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { planFix } from "../../src/core/maintenance/plan-fix.ts";
import { inspect } from "../../src/core/maintenance/inspect.ts";
import { applyFixes, isNothing, planFixes } from "../../src/core/maintenance/apply-fix.ts";
import type { ConversationId, MessageId, Ref } from "../../src/core/model/types.ts";
import type { ConversationFix, PartOf, Store } from "../../src/core/model/store.ts";
import { assertSameRows } from "../support/dump.ts";
import { dumpOf, dumpOfContent } from "./dump.ts";
import { checkLossless, checkSound } from "../support/lossless.ts";
import { createHost } from "../support/scripted-host.ts";
import { findAll, ask, at, foldPlaces, further, itOn, nowhere, numbered, onTalk, refuses, say } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

/** A condensed summary of eight messages, and four raw ones; everything is in the search index. */
const onScene = further(onTalk, async ({ store, talk, host }) => {
  await say(store, talk, host, ...numbered(12, (said) => `number ${said} is said here`));
  /** Of the first four messages, of the next four, and of both. */
  const leaves = [
    await foldPlaces(store, talk.id, [0, 3], "first leaf"),
    await foldPlaces(store, talk.id, [1, 4], "second leaf"),
  ] as const;
  const condensed = await foldPlaces(store, talk.id, [0, 1], "condensed");
  while ((await store.index(1_000)) > 0);
  return { leaves, condensed };
});

export function testFix(subject: StoreUnderTest): void {
  const it = itOn(subject, onScene);

  describe("fixing", () => {
    it("makes every row what the plan says, and an undo restores it", async (scene) => {
      const { store, path, talk, leaves, condensed } = scene;
      const before = await dumpOfContent(subject, path);
      const [first, second] = leaves;
      const { messages } = (await store.sources([first])).get(first) ?? assert.fail();
      const context = await store.context(talk.id);
      const [, one, two, three] = context.map(({ kind, id }): Ref => ({ kind, id }) as Ref);
      assert.ok(one !== undefined && two !== undefined && three !== undefined);
      const items: readonly Ref[] = [
        { kind: "summary", id: first },
        two,
        one,
        { kind: "message", id: idOf(messages, 3) },
      ];
      const change = await fix(store, talk.id, {
        times: [{ message: idOf(messages, 0), at: at("2020-01-01T00:00:00.000Z") }],
        summaries: [{ summary: condensed, kind: "leaf", depth: 7, earliestAt: null, latestAt: "x", descendants: 9 }],
        sources: [
          { summary: first, messages: [idOf(messages, 2), idOf(messages, 0)], summaries: [] },
          { summary: condensed, messages: [], summaries: [second, first] },
        ],
        context: { items, added: 0, dropped: 0, reordered: true },
      });
      assert.deepEqual(await refsOf(store, talk.id), items);
      const sources = await store.sources([first, condensed]);
      assert.deepEqual(sources.get(first)?.messages, [messages[2], messages[0]]);
      assert.deepEqual(sources.get(condensed)?.summaries, [second, first]);
      const [made] = await store.summaries({ ids: [condensed] });
      assert.deepEqual([made?.depth, made?.earliestAt, made?.latestAt, made?.descendants], [7, null, "x", 9]);
      assert.equal((await store.messages({ ids: messages.slice(0, 1) }))[0]?.at, "2020-01-01T00:00:00.000Z");
      const { conversation, recounted } = await store.skeleton(talk.id);
      assert.deepEqual(conversation.totals, recounted, "the totals follow");

      assert.equal((await store.undo(change)).kind, "undone");
      assertSameRows(await dumpOfContent(subject, path), before);
      await checkSound(store);
    });

    it("moves only what must move", async ({ store, talk }) => {
      const before = await store.context(talk.id);
      const [summary = assert.fail(), ...raw] = before;
      const last = raw.at(-1) ?? assert.fail();
      const placed = async (items: readonly Ref[]): Promise<readonly number[]> => {
        await fix(store, talk.id, { context: { items, added: 0, dropped: 0, reordered: true } });
        return (await store.context(talk.id)).map(({ ordinal }) => ordinal);
      };
      const [a = 0, b = 0, c = 0, d = 0, e = 0] = before.map(({ ordinal }) => ordinal);
      assert.deepEqual(
        await placed([last, summary, ...raw.slice(0, -1)]),
        [a - 1, a, b, c, e],
        "what comes first goes before the first, and the highest position stays taken",
      );
      assert.deepEqual(await placed([summary, ...raw]), [a, b, c, e, e + 1], "what comes last goes after the last");
      assert.ok(d < e);
    });

    it("is stale once the conversation was written to, and then changes nothing", async (scene) => {
      const { store, path, talk, host } = scene;
      const plan = { ...empty, conversation: talk.id, revision: await revisionOf(store, talk.id), recount: true };
      await say(store, talk, host, "meanwhile");
      const before = await dumpOf(subject, path);
      const outcome = await store.fix({ ...plan, context: { items: [], added: 0, dropped: 5, reordered: false } });
      assert.equal(outcome.kind, "stale");
      assertSameRows(await dumpOf(subject, path), before);
      await refuses("not_found", () => store.fix({ ...plan, conversation: nowhere }));
    });

    it(
      "can be undone after the host has continued, even where the last item had gone",
      async ({ store, talk, host }) => {
        const items = (await refsOf(store, talk.id)).slice(0, -1);
        const change = await fix(store, talk.id, { context: { items, added: 0, dropped: 1, reordered: false } });
        await say(store, talk, host, "said meanwhile");
        assert.equal((await store.undo(change)).kind, "undone");
        await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
      },
      ["lost_message"],
    );

    it(
      "cannot be undone where a fold has consumed what it inserted",
      async ({ store, talk }) => {
        const [summary, one, two, ...rest] = await refsOf(store, talk.id);
        assert.ok(summary !== undefined && one !== undefined && two !== undefined);
        const items = [summary, two, one, ...rest];
        const change = await fix(store, talk.id, { context: { items, added: 0, dropped: 0, reordered: true } });
        const above = await foldPlaces(store, talk.id, [1, 2], "over what was moved");
        const outcome = await store.undo(change);
        assert.ok(outcome.kind === "blocked" && outcome.obstacles.some(({ cover }) => cover === above));
      },
      ["out_of_order"],
    );

    it("of several conversations is one change", async ({ store, path, talk }) => {
      const other = await store.open({ sessionId: "other" });
      await say(store, other, createHost("g"), "hello");
      const before = await dumpOfContent(subject, path);
      const nothing = { context: { items: [], added: 0, dropped: 1, reordered: false } };
      const change = await fix(store, talk.id, nothing);
      assert.equal(await fix(store, other.id, nothing, { change }), change);
      const steps = await store.journal({ change });
      assert.ok(steps.every(({ operation }) => operation === "fix"));
      assert.equal((await store.undo(change)).kind, "undone");
      assertSameRows(await dumpOfContent(subject, path), before);
    });

    it("brings rows back into the search index, once each", async ({ store, talk, condensed }) => {
      const [message = assert.fail()] = await store.messages({ conversation: talk.id, limit: 1 });
      await fix(store, talk.id, { unindexed: [message.id, condensed] });
      const find = async (pattern: string): Promise<number> => (await findAll(store, ask(pattern))).length;
      assert.equal(await find("condensed"), 1);
      assert.equal(await find("0"), 1);
      await checkSound(store);
    });

    it("fixes everything that a plan can damage", async ({ store, talk, host, leaves, condensed }) => {
      const facts = { kind: "condensed", earliestAt: null, latestAt: null, descendants: 5 } as const;
      await fix(store, talk.id, {
        summaries: [{ summary: condensed, depth: 4, ...facts }],
        sources: [{ summary: condensed, messages: [], summaries: leaves.toReversed() }],
        context: {
          items: (await refsOf(store, talk.id)).toReversed().slice(1),
          added: 0,
          dropped: 1,
          reordered: true,
        },
      });
      assert.ok((await inspect(store, talk.id)).some(({ severity }) => severity === "error"));
      const { change, conversations } = await applyFixes(store, await planFixes(store, talk.id));
      assert.ok(change !== null);
      assert.deepEqual(conversations, [talk.id]);
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
      assert.equal(planFix(await store.skeleton(talk.id)), null);
      assert.deepEqual(await refsOf(store, talk.id).then(([first]) => first), { kind: "summary", id: condensed });
    });

    it(
      "is planned again when the host writes meanwhile, and gives up when it never stops",
      async ({ store, talk, host }) => {
        const breaking = async (): Promise<void> => {
          const items = (await refsOf(store, talk.id)).slice(1);
          await fix(store, talk.id, { context: { items, added: 0, dropped: 1, reordered: false } });
        };
        await breaking();
        const speaks = async (): Promise<void> => {
          await say(store, talk, host, "and another thing");
        };
        /** The host writes this many times between plan and fix. */
        const busy = (times: number): Store => {
          let left = times;
          return new Proxy(store, {
            get: (target, name) =>
              name === "fix"
                ? async (plan: ConversationFix, partOf?: PartOf) => {
                    if (left-- > 0) await speaks();
                    return await target.fix(plan, partOf);
                  }
                : Reflect.get(target, name),
          });
        };
        let replanned = 0;
        const onReplan = (): void => void replanned++;
        await applyFixes(busy(2), await planFixes(store, talk.id), { onReplan });
        assert.equal(replanned, 2);
        await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
        await breaking();
        await refuses("conflict", async () => await applyFixes(busy(99), await planFixes(store, talk.id)));
        await applyFixes(store, await planFixes(store, talk.id));
        await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
      },
      ["lost_message"],
    );

    it("finds nothing to sweep or to fix in a healthy database", async ({ store, path }) => {
      const before = await dumpOf(subject, path);
      assert.deepEqual(await store.sweepOrphans(), { change: null, removed: 0 });
      const plan = await planFixes(store, null);
      assert.ok(isNothing(plan));
      assert.deepEqual(await applyFixes(store, plan), { change: null, conversations: [], removed: 0 });
      assertSameRows(await dumpOf(subject, path), before);
    });
  });
}

const empty = { times: [], summaries: [], sources: [], context: null, recount: false, unindexed: [] } as const;

const revisionOf = async (store: Store, id: ConversationId): Promise<number> =>
  (await store.conversation(id))?.revision ?? assert.fail();

const refsOf = async (store: Store, id: ConversationId): Promise<readonly Ref[]> =>
  (await store.context(id)).map((item) => ({ kind: item.kind, id: item.id }) as Ref);

const idOf = (ids: readonly MessageId[], place: number): MessageId => ids[place] ?? assert.fail();

async function fix(
  store: Store,
  conversation: ConversationId,
  plan: Partial<ConversationFix>,
  partOf?: PartOf,
): Promise<number> {
  const revision = await revisionOf(store, conversation);
  const outcome = await store.fix({ ...empty, ...plan, conversation, revision }, partOf);
  assert.ok(outcome.kind === "written");
  return outcome.change;
}
