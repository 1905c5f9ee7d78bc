import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { openSqlite } from "../../store/sqlite/store.ts";
import { createRandom } from "../../../test/support/random.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { LcmError } from "../base/errors.ts";
import type { Conversation, ConversationId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { isWithin, reachOf } from "./scope.ts";
import type { ReachRequest, Reach, Reader } from "./scope.ts";

const folder = makeScratch("scope");
let databases = 0;
const opened: Store[] = [];
after(async () => {
  for (const store of opened) await store.close();
  rmSync(folder, { recursive: true, force: true });
});

async function open(): Promise<Store> {
  const store = await openSqlite({ path: join(folder, `${++databases}.db`), housekeeping: false });
  opened.push(store);
  return store;
}

/** One conversation of every kind, relative to `own`, the newest segment of agent one's session. */
const people = ["own", "segment", "hidden segment", "same agent", "hidden same agent", "another agent"] as const;
const nobodys = ["no agent", "no agent, same key", "another agent, same key", "hidden of another agent"] as const;
type Whose = (typeof people)[number] | (typeof nobodys)[number];
const everyone: readonly Whose[] = [...people, ...nobodys];

async function ground(): Promise<{ readonly store: Store; readonly ids: Readonly<Record<Whose, ConversationId>> }> {
  const store = await open();
  const one = { sessionKey: "main", agentId: "one" };
  const hidden = async ({ id }: Conversation): Promise<Conversation> => {
    await store.setHidden(id, true);
    return (await store.conversation(id)) ?? assert.fail("it is there");
  };
  const made: Record<Whose, Conversation> = {
    // Opened first: later it would count as a segment of another session.
    "no agent, same key": await store.openSession({ sessionId: "s10", sessionKey: "main" }),
    "hidden segment": await hidden(await store.openSegment({ sessionId: "s1", ...one })),
    segment: await store.openSegment({ sessionId: "s2", ...one }),
    own: await store.openSegment({ sessionId: "s3", ...one }),
    "same agent": await store.openSegment({ sessionId: "s4", sessionKey: "side", agentId: "one" }),
    "hidden same agent": await hidden(await store.openSegment({ sessionId: "s5", sessionKey: "old", agentId: "one" })),
    "another agent": await store.openSegment({ sessionId: "s6", sessionKey: "work", agentId: "two" }),
    "another agent, same key": await store.openSegment({ sessionId: "s7", sessionKey: "main", agentId: "two" }),
    "hidden of another agent": await hidden(await store.openSegment({ sessionId: "s8", agentId: "two" })),
    "no agent": await store.openSession({ sessionId: "s9" }),
  };
  const idOf = (whose: Whose): ConversationId => made[whose].id;
  return {
    store,
    ids: Object.fromEntries(everyone.map((whose) => [whose, idOf(whose)])) as Record<Whose, ConversationId>,
  };
}

const isRefused = async (work: Promise<unknown>): Promise<LcmError> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof LcmError) return error;
    throw error;
  }
  return assert.fail("it is refused");
};

describe("guarantee 25: scope holds", () => {
  const family = ["own", "segment"] as const;
  const agent = [...family, "same agent"] as const;
  const visible = everyone.filter((whose) => !whose.startsWith("hidden"));
  const mayRead: Readonly<Record<Reader["policy"], readonly Whose[]>> = { own: family, agent, all: visible };

  for (const policy of ["own", "agent", "all"] as const) {
    it(`reads only the reader's own segments by default (${policy})`, async () => {
      const { store, ids } = await ground();
      const reach = await reachOf(store, { conversation: ids.own, policy }, {});
      assert.equal(reach.kind, "family");
      await readsExactly(
        store,
        reach,
        family.map((whose) => ids[whose]),
        Object.values(ids),
      );
    });

    for (const whose of everyone) {
      const isAllowed = mayRead[policy].includes(whose);
      it(`${isAllowed ? "reads" : "does not know"} "${whose}" when requested (${policy})`, async () => {
        const { store, ids } = await ground();
        const reader = { conversation: ids.own, policy };
        const asking = reachOf(store, reader, { conversationId: ids[whose] });
        if (isAllowed) {
          assert.equal((await asking).kind, "conversation");
          await readsExactly(store, await asking, [ids[whose]], Object.values(ids));
        } else {
          const refusal = await isRefused(asking);
          const absent = await isRefused(reachOf(store, reader, { conversationId: 987_654 }));
          assert.equal(refusal.code, "not_found");
          assert.equal(refusal.message.replace(String(ids[whose]), "987654"), absent.message);
          assert.equal(refusal.hint, absent.hint);
        }
      });
    }

    it(`widens to what ${policy} allows when all conversations are requested`, async () => {
      const { store, ids } = await ground();
      const asking = reachOf(store, { conversation: ids.own, policy }, { allConversations: true });
      if (policy === "own") {
        const refusal = await isRefused(asking);
        assert.equal(refusal.code, "denied");
        assert.match(refusal.hint ?? "", /leave out allConversations/);
      } else {
        assert.equal((await asking).kind, policy);
        await readsExactly(
          store,
          await asking,
          mayRead[policy].map((whose) => ids[whose]),
          Object.values(ids),
        );
      }
    });
  }

  it("counts a conversation without a known agent into no agent's reach", async () => {
    const { store, ids } = await ground();
    for (const whose of ["no agent", "no agent, same key"] as const) {
      const reader = { conversation: ids[whose], policy: "agent" } as const;
      for (const asked of [{}, { allConversations: true }]) {
        await readsExactly(store, await reachOf(store, reader, asked), [ids[whose]], Object.values(ids));
      }
      for (const other of Object.values(ids).filter((id) => id !== ids[whose])) {
        assert.equal((await isRefused(reachOf(store, reader, { conversationId: other }))).code, "not_found");
      }
    }
  });

  it("lets a reader outside any session read everything not hidden under policy all", async () => {
    const { store, ids } = await ground();
    const reader = { conversation: null, policy: "all" } as const;
    for (const asked of [{}, { allConversations: true }]) {
      const reach = await reachOf(store, reader, asked);
      await readsExactly(
        store,
        reach,
        visible.map((whose) => ids[whose]),
        Object.values(ids),
      );
    }
    const one = await reachOf(store, reader, { conversationId: ids["another agent"] });
    assert.deepEqual(one, { kind: "conversation", conversations: [ids["another agent"]] });
    const hidden = await isRefused(reachOf(store, reader, { conversationId: ids["hidden segment"] }));
    assert.equal(hidden.code, "not_found");
  });

  it("denies a reader outside any session under other policies", async () => {
    const { store, ids } = await ground();
    for (const policy of ["own", "agent"] as const) {
      for (const asked of [{}, { conversationId: ids.own }, { allConversations: true }]) {
        const refusal = await isRefused(reachOf(store, { conversation: null, policy }, asked));
        assert.equal(refusal.code, "denied");
        assert.match(refusal.hint ?? "", /set scopePolicy to all/);
      }
    }
  });

  it("lets a reader outside any session, but with a known agent, read that agent's conversations", async () => {
    const { store, ids } = await ground();
    const reader = { conversation: null, agentId: "one", policy: "agent" } as const;
    for (const whose of everyone) {
      const asking = reachOf(store, reader, { conversationId: ids[whose] });
      if (agent.some((each) => each === whose)) assert.deepEqual((await asking).conversations, [ids[whose]]);
      else assert.equal((await isRefused(asking)).code, "not_found");
    }
  });

  describe("of a reader in a project", () => {
    const folder = "/w/app";
    async function projects() {
      const store = await open();
      const made = async (sessionId: string, agentId: string | null, place: string | null) =>
        (await store.open({ sessionId, sessionKey: `key of ${sessionId}`, agentId, folder: place })).id;
      const ids = {
        elsewhere: await made("elsewhere", "one", "/w/other"),
        here: await made("here", "one", folder),
        inside: await made("inside", "two", `${folder}/docs`),
        beside: await made("beside", "one", `${folder}le`),
        hidden: await made("hidden", "one", folder),
        nobodys: await made("nobodys", null, folder),
        nowhere: await made("nowhere", "one", null),
      };
      await store.setHidden(ids.hidden, true);
      const reads = async (reader: Reader, expected: readonly (keyof typeof ids)[], asked: ReachRequest = {}) => {
        const reach = await reachOf(store, reader, asked);
        await readsExactly(
          store,
          reach,
          expected.map((whose) => ids[whose]),
          Object.values(ids),
        );
        return reach.kind;
      };
      return { ids, reads, store };
    }

    it("reads its sessions by default, as far as the policy allows, and its own wherever that is", async () => {
      const { ids, reads } = await projects();
      const inProject = { conversation: null, folder } as const;
      assert.equal(await reads({ ...inProject, policy: "all" }, ["here", "inside", "nobodys"]), "project");
      await reads({ ...inProject, policy: "agent", agentId: "one" }, ["here"]);
      await reads({ ...inProject, policy: "agent", agentId: "two" }, ["inside"]);
      assert.equal(await reads({ ...inProject, policy: "own", agentId: "one" }, []), "family");
      const own = { conversation: ids.elsewhere, folder } as const;
      await reads({ ...own, policy: "all" }, ["elsewhere", "here", "inside", "nobodys"]);
      await reads({ ...own, policy: "agent" }, ["elsewhere", "here"]);
      await reads({ ...own, policy: "own" }, ["elsewhere"]);
    });

    it("reads further on request, as it would without a project", async () => {
      const { ids, reads, store } = await projects();
      const reader = { conversation: ids.here, folder, policy: "agent" } as const;
      await reads(reader, ["here", "elsewhere", "beside", "nowhere"], { allConversations: true });
      await reads(reader, ["nowhere"], { conversationId: ids.nowhere });
      for (const whose of ["inside", "hidden", "nobodys"] as const)
        assert.equal(
          (await isRefused(reachOf(store, reader, { conversationId: ids[whose] }))).code,
          "not_found",
          whose,
        );
      const outside = { conversation: null, folder, policy: "agent" } as const;
      assert.equal((await isRefused(reachOf(store, outside, {}))).code, "denied");
    });
  });

  it("shows a hidden conversation only to readers in it", async () => {
    const { store, ids } = await ground();
    const reach = await reachOf(store, { conversation: ids["hidden segment"], policy: "own" }, {});
    const expected = [...family, "hidden segment"] as const;
    await readsExactly(
      store,
      reach,
      expected.map((whose) => ids[whose]),
      Object.values(ids),
    );
  });

  it("rejects one conversation together with all of them", async () => {
    const { store, ids } = await ground();
    const both = { conversationId: ids.own, allConversations: true };
    const refusal = await isRefused(reachOf(store, { conversation: ids.own, policy: "all" }, both));
    assert.equal(refusal.code, "invalid");
    const one = { conversationId: ids.own, allConversations: false };
    assert.equal((await reachOf(store, { conversation: ids.own, policy: "own" }, one)).kind, "conversation");
  });

  it("rejects ids that are not a conversation", async () => {
    const { store, ids } = await ground();
    for (const conversationId of [0, -1, 1.5, NaN, Infinity, 987_654]) {
      const asking = reachOf(store, { conversation: ids.own, policy: "all" }, { conversationId });
      assert.equal((await isRefused(asking)).code, "not_found");
    }
    const all: Reach = { kind: "all", conversations: null };
    assert.equal(await isWithin(store, all, 987_654 as ConversationId), false);
  });

  it("never widens unless requested and allowed, whoever shares the database", async () => {
    const random = createRandom(25);
    for (let round = 0; round < 12; round++) {
      const store = await open();
      const made: Conversation[] = [];
      for (let session = 0; session < 12; session++) {
        const agentId = random.pick(["one", "two", null]);
        const sessionKey = random.pick(["main", "side", null]);
        const { id } = await store.openSegment({
          sessionId: random.pick(["s", "t", `u${session}`]),
          sessionKey,
          agentId,
        });
        if (random.chance(0.2)) await store.setHidden(id, true);
        made.push((await store.conversation(id)) ?? assert.fail("it is there"));
      }
      for (const own of made) {
        const policy = random.pick(["own", "agent", "all"] as const);
        const asked: ReachRequest = random.pick([
          {},
          { allConversations: true },
          { conversationId: random.pick(made).id },
        ]);
        const reach = await reachOf(store, { conversation: own.id, policy }, asked).catch((error: unknown) => {
          assert.ok(error instanceof LcmError);
          return { kind: "family", conversations: [] } as const;
        });
        for (const other of made) {
          if (!(await isWithin(store, reach, other.id)) || other.id === own.id) continue;
          const isRelative =
            other.agentId === own.agentId &&
            other.sessionKey === own.sessionKey &&
            (own.sessionKey !== null || other.sessionId === own.sessionId);
          const isWider = asked.allConversations === true || asked.conversationId === other.id;
          const isAllowed =
            policy === "all" || (policy === "agent" && own.agentId !== null && other.agentId === own.agentId);
          assert.ok(!other.hidden, `${own.id} sees ${other.id}, which is hidden`);
          assert.ok(isRelative || (isWider && isAllowed), JSON.stringify({ own, other, policy, asked }));
        }
      }
    }
  });
});

async function readsExactly(
  store: Store,
  reach: Reach,
  expected: readonly ConversationId[],
  all: readonly ConversationId[],
): Promise<void> {
  const read: ConversationId[] = [];
  for (const id of all) if (await isWithin(store, reach, id)) read.push(id);
  assert.deepEqual(new Set(read), new Set(expected));
}
