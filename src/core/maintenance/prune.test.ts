import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openSqlite } from "../../store/sqlite/store.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { createLcm } from "../lcm.ts";
import type { Lcm } from "../lcm.ts";
import type { Conversation, ConversationId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { choose } from "./prune.ts";
import type { Timestamp } from "../base/time.ts";

const at = (text: string): Timestamp => text as Timestamp;
const day = (number: number): Timestamp => at(`2026-01-${String(number).padStart(2, "0")}T12:00:00.000Z`);

const talk = (id: number, more: Partial<Conversation> = {}): Conversation => ({
  id: id as ConversationId,
  sessionId: `session-${id}`,
  sessionKey: `agent:main:${id}`,
  agentId: "main",
  folder: null,
  parentSessionId: null,
  active: false,
  hidden: false,
  title: null,
  createdAt: day(1),
  updatedAt: day(20),
  lastMessageAt: day(id),
  totals: {
    messages: 1,
    messageTokens: 1,
    summaries: 0,
    contextItems: 1,
    contextTokens: 1,
    contextMessages: 1,
    contextMessageTokens: 1,
  },
  revision: 1,
  hostCursor: null,
  fileCursor: null,
  forgets: 0,
  caughtUp: 0,
  promptBudget: null,
  ...more,
});

const idsOf = (chosen: readonly Conversation[]): readonly number[] => chosen.map(({ id }) => id);

describe("choosing conversations", () => {
  const cron = talk(3, { sessionKey: "agent:main:cron:daily", hidden: true });
  const nameless = talk(5, { sessionKey: null, sessionId: "cron-import" });
  const empty = talk(7, { lastMessageAt: null, updatedAt: day(2) });
  const all = [talk(9), nameless, cron, empty];

  it("selects by last activity, oldest first; empty conversations by their last write", () => {
    assert.deepEqual(idsOf(choose(all, { olderThan: day(5) })), [7, 3]);
    assert.deepEqual(idsOf(choose(all, { olderThan: at("2026-01-05T12:00:00.001Z") })), [7, 3, 5]);
  });

  it("orders by last activity, not by number", () => {
    const [heardLast, heardFirst] = [talk(1, { lastMessageAt: day(9) }), talk(2)];
    assert.deepEqual(idsOf(choose([heardLast, heardFirst], { pattern: "*" })), [2, 1]);
    assert.deepEqual(idsOf(choose([heardFirst, heardLast], { pattern: "*" })), [2, 1]);
    const together = [talk(4, { lastMessageAt: day(1) }), talk(1)];
    assert.deepEqual(idsOf(choose(together, { pattern: "*" })), [1, 4]);
  });

  it("selects by a pattern of session key or id", () => {
    assert.deepEqual(idsOf(choose(all, { pattern: "agent:*:cron:*" })), [3]);
    assert.deepEqual(idsOf(choose(all, { pattern: "cron-*" })), [5]);
    assert.deepEqual(idsOf(choose(all, { pattern: "session-9" })), [9]);
    assert.deepEqual(idsOf(choose(all, { pattern: "agent" })), []);
    assert.deepEqual(idsOf(choose(all, { pattern: "agent.main.9" })), [], "only * stands for something else");
  });

  it("selects by id, and hidden ones", () => {
    assert.deepEqual(idsOf(choose(all, { conversations: [9 as ConversationId] })), [9]);
    assert.deepEqual(idsOf(choose(all, { hidden: true })), [3]);
  });

  it("combines conditions", () => {
    assert.deepEqual(idsOf(choose(all, { olderThan: day(8), pattern: "agent:*", hidden: true })), [3]);
    assert.deepEqual(idsOf(choose(all, { olderThan: day(3), hidden: true })), []);
  });

  it("rejects a request without conditions", () => {
    assert.throws(() => choose(all, {}), { code: "invalid" });
    assert.throws(() => choose(all, { hidden: false }), { code: "invalid" });
  });
});

// ── On a real store ──────────────────────────────────────────────────────────────────────────────────────────────────

interface World {
  readonly lcm: Lcm;
  readonly store: Store;
  readonly folder: string;
  readonly ids: readonly ConversationId[];
}

/** Three conversations; the second is the host's, and the third carries nothing. */
const onWorld =
  (test: (world: World) => Promise<void>, meddle: (store: Store) => Store = (store) => store) =>
  async () => {
    const folder = makeScratch("prune");
    const store = meddle(await openSqlite({ path: join(folder, "lcm.db") }));
    const lcm = createLcm({ store, clock: { now: () => day(28) } });
    const ids: ConversationId[] = [];
    for (const name of ["one", "two", "three"]) {
      const { id } = await store.open({ sessionId: name, sessionKey: `agent:main:${name}` });
      ids.push(id);
      const cursor = name === "two" ? { hostCursor: "1" } : {};
      await store.append(id, [toAppendable(createHost(name).says(user(`hello from ${name}`)))], cursor);
    }
    try {
      await test({ lcm, store, folder, ids });
    } finally {
      await lcm.close();
    }
  };

const everything = { pattern: "agent:*" } as const;

describe("a plan to prune", () => {
  it(
    "shows the size of each conversation and the total",
    onWorld(async ({ lcm, ids }) => {
      const { conversations, totals } = await lcm.planPrune(everything);
      assert.deepEqual(
        conversations.map(({ conversation, messages, active }) => [conversation, messages, active]),
        ids.map((id) => [id, 1, true]),
      );
      assert.ok(conversations.every(({ bytes }) => bytes > 0));
      assert.deepEqual([totals.conversations, totals.messages], [3, 3]);
      assert.equal(
        totals.bytes,
        conversations.reduce((sum, { bytes }) => sum + bytes, 0),
      );
    }),
  );

  it(
    "warns if the host would store a session again, or a carried summary would lose its origin",
    onWorld(async ({ lcm, store, ids }) => {
      const [one, two] = ids;
      assert.ok(one !== undefined && two !== undefined);
      const session = { sessionId: "one", sessionKey: "agent:main:one" };
      await store.append(one, [toAppendable(createHost("more").says(user("and a longer word with it")))]);
      const made = { text: "s", tokens: 1, level: "normal", model: null, previousContext: null, fileIds: [] } as const;
      assert.equal((await store.fold(one, await store.context(one), made)).kind, "written");
      const next = await store.openSegment(session, { carryDepth: 0 });
      const { conversations } = await lcm.planPrune({ conversations: [one, two] });
      assert.deepEqual(
        conversations.map(({ conversation, warnings }) => [conversation, warnings]),
        [
          [one, [`conversation ${next.id} carries summaries from it: they stay, but can no longer be expanded`]],
          [two, ["the host still has this session and will store it again from the start when it next opens it"]],
        ],
      );
      const both = await lcm.planPrune({ conversations: [one, next.id] });
      assert.ok(
        both.conversations.every(({ warnings }) => warnings.length === 0),
        "a carrier that is also deleted needs no warning",
      );
    }),
  );
});

describe("pruning", () => {
  it(
    "archives conversations, then deletes them, and a merge restores them",
    onWorld(async ({ lcm, store, folder, ids }) => {
      const [one] = ids;
      assert.ok(one !== undefined);
      const request = { conversations: [one] };
      const told: string[] = [];
      const result = await lcm.prune(request, await lcm.planPrune(request), {
        archive: join(folder, "old.db"),
        beforeDeleting: async () => {
          assert.notEqual(await store.conversation(one), null);
          told.push("before");
        },
      });
      assert.deepEqual(told, ["before"]);
      assert.equal(result?.archive?.path, join(folder, "old.db"));
      assert.equal(await store.conversation(one), null);
      await store.merge(join(folder, "old.db"));
      assert.equal((await store.messages({ conversation: one }))[0]?.text, "hello from one");
    }),
  );

  it(
    "deletes nothing if the archive cannot be written",
    onWorld(async ({ lcm, store, folder }) => {
      const options = {
        archive: join(folder, "lcm.db"),
        beforeDeleting: () => assert.fail("nothing is to be deleted"),
      };
      await assert.rejects(lcm.prune(everything, await lcm.planPrune(everything), options), { code: "conflict" });
      assert.equal((await store.conversations()).length, 3);
    }),
  );
});

describe("guarantee 28, prune part: it can run while the host is writing", () => {
  /** Adds a message to a conversation whenever it is about to be archived or deleted. */
  const meddling =
    (method: "archive" | "remove", times: number, say: string) =>
    (store: Store): Store => {
      let left = times;
      const host = createHost("meddler");
      const meddle = async (): Promise<void> => {
        const [conversation] = await store.conversations({ sessionId: say });
        if (left-- > 0 && conversation !== undefined)
          await store.append(conversation.id, [toAppendable(host.says(user(`meanwhile ${left}`)))]);
      };
      const archive: Store["archive"] = async (...args) => (await meddle(), await store.archive(...args));
      const remove: Store["remove"] = async (plan) => (await meddle(), await store.remove(plan));
      return { ...store, ...(method === "remove" ? { remove } : { archive }) };
    };

  for (const method of ["archive", "remove"] as const) {
    it(
      `what is written before ${method} is planned again, and is in the archive that stays`,
      onWorld(
        async ({ lcm, store, folder }) => {
          const plans: number[] = [];
          let begun = 0;
          const result = await lcm.prune(everything, await lcm.planPrune(everything), {
            archive: join(folder, "old.db"),
            beforeDeleting: async () => void (begun += 1),
            onReplan: ({ totals }) => plans.push(totals.messages),
          });
          assert.equal(begun, 1, "one backup is enough");
          assert.deepEqual(plans, [4, 5]);
          assert.equal(result?.plan.totals.messages, 5);
          assert.equal((await store.status()).conversations, 0);
          assert.equal((await store.merge(join(folder, "old.db"))).messages, 5);
        },
        meddling(method, 2, "two"),
      ),
    );
  }

  it(
    "fails with a conflict if a conversation keeps changing, and deletes nothing",
    onWorld(
      async ({ lcm, store }) => {
        await assert.rejects(lcm.prune(everything, await lcm.planPrune(everything)), { code: "conflict" });
        assert.equal((await store.conversations()).length, 3);
      },
      meddling("remove", 100, "two"),
    ),
  );

  it(
    "keeps a conversation that became active again",
    onWorld(
      async ({ lcm, store }) => {
        const request = { olderThan: at("2026-02-17T07:37:00.500Z"), pattern: "*:two" };
        const plan = await lcm.planPrune(request);
        assert.equal(plan.conversations.length, 1);
        assert.equal(await lcm.prune(request, plan), null);
        assert.equal((await store.conversations()).length, 3);
      },
      (store) => {
        const host = createHost("late");
        return {
          ...store,
          remove: async (plan) => {
            host.says(user("earlier"));
            for (const { conversation } of plan)
              await store.append(conversation, [toAppendable(host.says(user("a second later")))]);
            return await store.remove(plan);
          },
        };
      },
    ),
  );
});
