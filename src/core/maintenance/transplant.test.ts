import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import fc from "fast-check";
import { at, deliver, foldPlaces, say, shownTexts, summary } from "../../../test/store-contract/ground.ts";
import { assertSameRows, dumpOf, dumpOfContent } from "../../../test/support/dump.ts";
import type { Dump } from "../../../test/support/dump.ts";
import { freshLcms, type FreshLcm } from "../../../test/support/fresh-lcm.ts";
import { growConversation } from "../../../test/support/grown-conversation.ts";
import { checkSound, flattened } from "../../../test/support/lossless.ts";
import { createRandom } from "../../../test/support/random.ts";
import { createHost, user } from "../../../test/support/scripted-host.ts";
import { messageFromStore, messageToStore } from "../messages/codec.ts";
import { LcmError } from "../base/errors.ts";
import { readGranted } from "../recall/grants.ts";
import type { Lcm } from "../lcm.ts";
import type { Conversation, ConversationId, FileId, MovedContent, StoredFile, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import type { Reach } from "../recall/scope.ts";
import type { Transplantation } from "./transplant.ts";
import { promptTokens } from "../model/prompt-cost.ts";

const onLcm = freshLcms("transplant");

/** A conversation of so many messages. */
async function talking(store: Store, name: string, messages: number): Promise<Conversation> {
  const conversation = await store.open({ sessionId: name, sessionKey: `agent:${name}:main` });
  const host = createHost(name);
  for (let n = 0; n < messages; n++) host.says(user(`${name} ${n} at some length`));
  await deliver(store, conversation, host);
  return conversation;
}

/** Six messages under three leaves, two of them condensed; and three messages elsewhere. */
async function scene(store: Store) {
  const source = await talking(store, "s", 8);
  for (const place of [0, 1, 2]) await foldPlaces(store, source.id, [place, place + 1], `leaf ${place}`);
  await foldPlaces(store, source.id, [0, 1], "condensed");
  return { source, target: await talking(store, "t", 3) };
}

const apply = async (lcm: Lcm, source: ConversationId, target: ConversationId): Promise<number> =>
  (await lcm.transplant(await lcm.planTransplant(source, target)))?.change ?? assert.fail("nothing to transplant");

const only = (...conversations: readonly ConversationId[]): Reach => ({ kind: "conversation", conversations });

const refuses = async (work: Promise<unknown>, code: string, message: RegExp, hint = /^/): Promise<void> =>
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof LcmError, String(error));
    const got = [error.code, message.test(error.message), hint.test(error.hint ?? "")];
    assert.deepEqual(got, [code, true, true], `${error.message} | ${error.hint}`);
    return true;
  });

const promptOf = async (store: Store, id: ConversationId): Promise<number> => {
  const { totals } = (await store.conversation(id)) ?? assert.fail(`there is no conversation ${id}`);
  return promptTokens(totals);
};

describe("a plan to transplant", () => {
  it("lists the summaries of the context, all below them, and the resulting target", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { source, target } = await scene(store);
      const plan = await lcm.planTransplant(source.id, target.id);
      assert.deepEqual(
        plan.shown.map(({ depth, tokens, opening }) => [depth, tokens, opening]),
        [
          [1, 1, "condensed"],
          [0, 1, "leaf 2"],
        ],
      );
      assert.deepEqual(plan.depths, [
        { depth: 0, summaries: 3 },
        { depth: 1, summaries: 1 },
      ]);
      assert.deepEqual([plan.messages, plan.targetContext], [6, { items: 3, summaries: 0, messages: 3 }]);
      assert.equal(plan.tokensBefore, await promptOf(store, target.id));
      await lcm.transplant(plan);
      assert.equal(plan.tokensAfter, await promptOf(store, target.id));
    });
  });

  it("is empty for a context without summaries, and applies nothing", async () => {
    await onLcm(async ({ lcm, store, path }) => {
      const { source, target } = await scene(store);
      const plan = await lcm.planTransplant(target.id, source.id);
      assert.deepEqual([plan.summaries, plan.shown, plan.depths, plan.messages], [[], [], [], 0]);
      const before = dumpOf(path);
      assert.equal(await lcm.transplant(plan), null);
      assert.deepEqual(dumpOf(path), before);
    });
  });

  it("rejects the same conversation twice, and missing ones", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { source } = await scene(store);
      await refuses(lcm.planTransplant(source.id, source.id), "invalid", /into itself/);
      await refuses(lcm.planTransplant(source.id, 99 as ConversationId), "not_found", /no conversation 99/);
    });
  });

  it("rejects existing copies, names them, and says how to undo them", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { source, target } = await scene(store);
      const change = await apply(lcm, source.id, target.id);
      const [first] = await store.context(target.id);
      const again = () => lcm.planTransplant(source.id, target.id);
      await refuses(
        again(),
        "conflict",
        new RegExp(`already contains ${first?.id}, `),
        new RegExp(`lcm undo ${change}`),
      );
      await store.undo(change);
      await apply(lcm, source.id, target.id);
    });
  });

  it("accepts copies from several sources", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { source, target } = await scene(store);
      await apply(lcm, source.id, target.id);
      const third = await talking(store, "u", 4);
      await foldPlaces(store, third.id, [0, 1], "another leaf");
      const { messages } = await lcm.planTransplant(third.id, target.id);
      assert.equal(messages, 2);
      await apply(lcm, third.id, target.id);
    });
  });

  it("recognises copies and originals after folds, rewrites and purges", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { source, target } = await scene(store);
      await apply(lcm, source.id, target.id);
      for (const { id, revision } of await store.summaries({ conversation: target.id }))
        await store.rewrite({ summary: id, revision }, summary(`anew ${id}`));
      await refuses(lcm.planTransplant(source.id, target.id), "conflict", /already contains sum_/);
      await refuses(
        lcm.planTransplant(target.id, source.id),
        "conflict",
        /already contains/,
        /^transplant into another/,
      );
      for (let left = true; left;) {
        const [top] = await store.context(target.id, { kind: "summary", limit: 1 });
        left = top !== undefined;
        const asked = { conversation: target.id, summary: top?.id as SummaryId, purge: true };
        if (left) await lcm.dissolve(await lcm.planDissolve(asked));
      }
      await refuses(lcm.planTransplant(source.id, target.id), "conflict", /already contains copies of 6 messages/);
    });
  });

  it("rejects the same text of another origin, with a remedy", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { source, target } = await scene(store);
      const same = await foldPlaces(store, target.id, [0, 1], "condensed");
      const hint = new RegExp(`dissolve the earlier copy first: .lcm dissolve ${target.id} --summary ${same} --purge`);
      await refuses(lcm.planTransplant(source.id, target.id), "conflict", new RegExp(same), hint);
      const asked = { conversation: target.id, summary: same, purge: true };
      await lcm.dissolve(await lcm.planDissolve(asked));
      await apply(lcm, source.id, target.id);
    });
  });

  it("reports damaged links, and changes nothing", async () => {
    for (const [sql, where] of [
      ["DELETE FROM messages WHERE seq = 3 AND conversation_id = 1", /names msg_1-3/],
      [
        "UPDATE messages SET conversation_id = 2, message_id = (2 << 24) + 50 WHERE message_id = (1 << 24) + 3",
        /names msg_1-3/,
      ],
      ["DELETE FROM summaries WHERE content = 'leaf 1'", /names sum_/],
      ["DELETE FROM summaries WHERE content = 'leaf 2'", /its context names sum_/],
      ["UPDATE summaries SET depth = 1 WHERE content = 'leaf 0'", /names sum_/],
    ] as const) {
      await onLcm(async ({ lcm, store, path }) => {
        const { source, target } = await scene(store);
        const plan = await lcm.planTransplant(source.id, target.id);
        const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
        db.exec(sql);
        db.close();
        const before = dumpOf(path);
        await refuses(lcm.planTransplant(source.id, target.id), "corrupt", where, /lcm doctor 1/);
        await refuses(lcm.transplant(plan), "corrupt", where, /lcm doctor 1/);
        assert.deepEqual(dumpOf(path), before);
      });
    }
  });
});

describe("transplanting", () => {
  it("copies the current text, and the copies are searchable", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { source, target } = await scene(store);
      const plan = await lcm.planTransplant(source.id, target.id);
      await store.rewrite({ summary: plan.summaries[0] ?? "sum_0", revision: 0 }, summary("repaired"));
      await lcm.transplant(plan);
      assert.deepEqual((await shownTexts(store, target.id)).slice(0, 3), ["repaired", "leaf 2", "t 0 at some length"]);
      const find = async (pattern: string): Promise<number> => {
        const { hits, summaries = [] } = await lcm.grep({ pattern, mode: "full_text", reach: only(target.id) });
        return hits.length + summaries.length;
      };
      assert.deepEqual([await find("repaired"), await find("s 3")], [1, 1]);
      while ((await store.index(1_000)) > 0);
      assert.deepEqual([await find("repaired"), await find("s 3")], [1, 1]);
      await checkSound(store);
    });
  });

  it("plans again if the source has changed, and reports that", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { source, target } = await scene(store);
      const plan = await lcm.planTransplant(source.id, target.id);
      await foldPlaces(store, source.id, [2, 3], "leaf 3");
      const replanned: Transplantation[] = [];
      const done = await lcm.transplant(plan, (each) => void replanned.push(each));
      assert.deepEqual([replanned.length, replanned[0], done?.contextItems], [1, done?.plan, 3]);
    });
  });

  it("is rejected if it was already done", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { source, target } = await scene(store);
      const plan = await lcm.planTransplant(source.id, target.id);
      const change = await apply(lcm, source.id, target.id);
      await refuses(lcm.transplant(plan), "conflict", /already contains/, new RegExp(`lcm undo ${change}`));
    });
  });

  it("forgetting reaches a copy of a copy, even if the one in between is gone", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { source, target } = await scene(store);
      const first = await apply(lcm, source.id, target.id);
      const third = await talking(store, "u", 1);
      await apply(lcm, target.id, third.id);
      assert.equal((await store.undo(first)).kind, "undone");
      const [original] = await store.messages({ conversation: source.id, limit: 1 });
      const plan = await store.planForget(null, { kind: "message", id: original?.id ?? assert.fail() });
      const held = await store.messages({ ids: plan.messages });
      assert.deepEqual(new Set(held.map(({ conversation }) => conversation)), new Set([source.id, third.id]));
    });
  });
});

// ── What was carried over ────────────────────────────────────────────────────────────────────────────────────────────

describe("a summary that was carried over at a reset", () => {
  /** Two segments of one session, the second with the first one's summary in front; and a third with nothing. */
  async function reset(store: Store, sessionKey: string) {
    const first = await talking(store, "s", 4);
    const origin = await foldPlaces(store, first.id, [0, 3], "the heron and the crane");
    const session = { sessionId: "s2", sessionKey: "agent:s:main" };
    const second = await store.openSegment(session, { carryDepth: 0 });
    const target = await store.openSegment({ sessionId: "s3", sessionKey });
    return { origin, second, target };
  }
  const family = async (store: Store, id: ConversationId): Promise<Reach> => ({
    kind: "family",
    conversations: (await store.conversations({ familyOf: id })).map((each) => each.id),
  });
  const look = async (lcm: Lcm, id: ConversationId) => {
    const [copy] = await lcm.store.context(id);
    assert.ok(copy?.kind === "summary");
    const reach = await family(lcm.store, id);
    const described = await lcm.describe({ id: copy.id, reach, tokenCap: 1_000 });
    assert.ok(described.kind === "summary");
    const ask = { summaryIds: [copy.id], reach, tokenCap: 1_000, includeMessages: true };
    const { hits } = await lcm.grep({ pattern: "heron", mode: "full_text", scope: "summaries", reach });
    return { copy: copy.id, described, expanded: await lcm.expand(ask), found: hits.map(({ id: hit }) => hit) };
  };

  it("is copied unchanged, leads to its origin within the family, and is found once", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { origin, second, target } = await reset(store, "agent:s:main");
      assert.equal((await lcm.planTransplant(second.id, target.id)).messages, 0);
      await apply(lcm, second.id, target.id);
      const { described, expanded, found } = await look(lcm, target.id);
      assert.deepEqual([described.summary.carriedFrom, described.origin?.id], [origin, origin]);
      assert.equal(expanded.items.length, 4);
      assert.deepEqual(found, [origin]);
      await checkSound(store);
    });
  });

  it("guarantee 25: in another family, is searchable but leads nowhere", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { origin, second, target } = await reset(store, "agent:s:other");
      await apply(lcm, second.id, target.id);
      const { copy, described, expanded, found } = await look(lcm, target.id);
      assert.deepEqual([described.text, described.origin], ["the heron and the crane", null]);
      assert.deepEqual([described.sources, described.manifest.rows], [{ messages: [], summaries: [] }, []]);
      assert.deepEqual(expanded.items, []);
      assert.deepEqual(found, [copy]);
      const reach = await family(store, target.id);
      await refuses(lcm.describe({ id: origin, reach, tokenCap: 9 }), "not_found", /there is no summary/);
      await checkSound(store);
    });
  });

  /** After `/new`, which carried two condensed summaries over; a leaf and two messages stayed behind. */
  async function afterNew(store: Store) {
    const first = await talking(store, "s", 12);
    for (const place of [0, 1, 2, 3, 4]) await foldPlaces(store, first.id, [place, place + 1], `leaf ${place}`);
    for (const [place, text] of ["the heron", "the crane"].entries())
      await foldPlaces(store, first.id, [place, place + 1], text);
    const second = await store.openSegment({ sessionId: "s2", sessionKey: "agent:s:main" }, { carryDepth: 1 });
    await say(store, second, createHost("n"), "n1", "n2");
    const carried = (await store.context(second.id, { kind: "summary" })).map(({ id }) => id as SummaryId);
    assert.equal(carried.length, 2);
    return { first, second, carried };
  }
  const saidIn = async (store: Store, { id }: Conversation) => (await flattened(store, id)).map(({ text }) => text);
  /** Transplants, and checks that the result is what the plan said, that nothing is lost, and that it can be undone. */
  async function transplanted({ lcm, store, path }: FreshLcm, from: Conversation, to: Conversation) {
    const [before, own] = [dumpOfContent(path), (await saidIn(store, to)).length];
    const plan = await lcm.planTransplant(from.id, to.id);
    const done = (await lcm.transplant(plan)) ?? assert.fail();
    const copied = plan.depths.reduce((sum, { summaries }) => sum + summaries, 0);
    assert.deepEqual(
      [done.carried, done.contextItems, done.summaries, done.messages],
      [plan.carried.length, plan.prepended.length, copied, plan.messages],
    );
    assert.equal(await promptOf(store, to.id), plan.tokensAfter);
    const folded = (await saidIn(store, from)).slice(0, 10);
    assert.deepEqual((await saidIn(store, to)).toSorted(), [...folded, "n1", "n2"].toSorted());
    assert.equal(own, 2);
    await checkSound(store);
    const shown = await shownTexts(store, to.id);
    await refuses(lcm.planTransplant(from.id, to.id), "conflict", /already contains/);
    assert.equal((await store.undo(done.change)).kind, "undone");
    assertSameRows(dumpOfContent(path), before);
    await checkSound(store);
    assert.equal(await apply(lcm, from.id, to.id), done.change + 2, "and then transplanted again");
    assert.deepEqual(await shownTexts(store, to.id), shown);
    return { plan, shown };
  }

  it("gets its sources when its conversation is transplanted, and keeps its id and place", async () => {
    await onLcm(async (ground) => {
      const { lcm, store } = ground;
      const { first, second, carried } = await afterNew(store);
      const { plan, shown } = await transplanted(ground, first, second);
      assert.deepEqual([plan.carried.toSorted(), plan.prepended.length], [carried.toSorted(), 1]);
      assert.deepEqual(plan.depths, [{ depth: 0, summaries: 5 }]);
      assert.deepEqual(shown, ["the heron", "the crane", "leaf 4", "n1", "n2"]);
      const [heron = assert.fail()] = carried;
      assert.equal((await store.context(second.id))[0]?.id, heron);
      const { items } = await lcm.expand({ summaryIds: [heron], reach: only(second.id), tokenCap: 1_000 });
      assert.equal(items.length, 2);
    });
  });

  it("gets them too where it was folded since, and is not shown twice", async () => {
    await onLcm(async (ground) => {
      const { first, second } = await afterNew(ground.store);
      await foldPlaces(ground.store, second.id, [0, 1], "both");
      const { shown } = await transplanted(ground, first, second);
      assert.deepEqual(shown, ["both", "leaf 4", "n1", "n2"]);
    });
  });

  it("goes below the copy of a summary that its original was folded into since", async () => {
    await onLcm(async (ground) => {
      const { first, second, carried } = await afterNew(ground.store);
      await foldPlaces(ground.store, first.id, [0, 1], "deeper");
      const { shown } = await transplanted(ground, first, second);
      assert.deepEqual(shown, ["deeper", "leaf 4", "n1", "n2"]);
      const [deeper] = await ground.store.context(second.id);
      assert.ok(deeper?.kind === "summary");
      assert.deepEqual((await ground.store.sources([deeper.id])).get(deeper.id)?.summaries, carried);
    });
  });

  it("was folded since, like its original: then nothing is copied", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { first, second, carried } = await afterNew(store);
      await foldPlaces(store, first.id, [0, 1], "deeper");
      await foldPlaces(store, second.id, [0, 1], "both");
      const asked = lcm.planTransplant(first.id, second.id);
      await refuses(asked, "conflict", new RegExp(carried[0] ?? "?"), /carried over at a reset; run .lcm expand/);
    });
  });

  it("has nothing to gain from another segment that only carries it too", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { second } = await afterNew(store);
      const third = await store.openSegment({ sessionId: "s3", sessionKey: "agent:s:main" }, { carryDepth: 1 });
      const [carried] = await store.context(third.id);
      await refuses(
        lcm.planTransplant(second.id, third.id),
        "conflict",
        new RegExp(`${carried?.id}`),
        /carried over at a reset; run .lcm expand/,
      );
    });
  });
});

// ── Files ────────────────────────────────────────────────────────────────────────────────────────────────────────────

describe("guarantee 25: files of copied messages", () => {
  const save = async (store: Store, { id }: Conversation, content: string): Promise<StoredFile> => {
    const about = { name: null, mimeType: null, encoding: "utf8", exploration: null } as const;
    return await store.saveFile({ conversation: id, content, ...about });
  };
  const said = (key: string, text: string, moved: readonly MovedContent[] = []) => {
    const message = messageToStore(
      { role: "user", content: [{ type: "text", text }] },
      { key, at: at("2026-02-17T07:37:00.000Z") },
    );
    return { kind: "message" as const, message: { ...message, moved } };
  };
  const holding = (key: string, { id }: StoredFile) =>
    said(key, `[${id}]`, [{ file: id, path: ["content", 0, "text"], from: 0, length: id.length + 2 }]);

  /** A folded message with a file, one that is not folded with another, and a target that only mentions that. */
  async function withFiles({ lcm, store }: { lcm: Lcm; store: Store }) {
    const source = await store.open({ sessionId: "source" });
    const target = await store.open({ sessionId: "target" });
    const [copied, kept] = [await save(store, source, "a badger\nasleep"), await save(store, source, "a badger awake")];
    await store.append(source.id, [holding("k1", copied), holding("k2", kept)]);
    await foldPlaces(store, source.id, [0, 0], "leaf");
    await store.append(target.id, [said("t1", `show me ${kept.id} and ${copied.id}`)]);
    return { lcm, store, source, target, copied, kept };
  }
  const read = (lcm: Lcm, id: FileId, reach: Reach) => lcm.describe({ id, reach, tokenCap: 500 });
  const search = async (lcm: Lcm, reach: Reach) =>
    (await lcm.grep({ pattern: "badger", scope: "files", reach })).hits.map(({ id, conversation }) => [
      id,
      conversation,
    ]);

  it("are read and searched through the target; other files of the source are not", async () => {
    await onLcm(async (ground) => {
      const { lcm, store, source, target, copied, kept } = await withFiles(ground);
      const within = only(target.id);
      await refuses(read(lcm, copied.id, within), "not_found", /there is no file/);
      assert.deepEqual(await search(lcm, within), []);
      const change = await apply(lcm, source.id, target.id);
      const described = await read(lcm, copied.id, within);
      assert.ok(described.kind === "file");
      assert.deepEqual([described.content?.text, described.file.conversation], ["a badger\nasleep", target.id]);
      const [message] = await store.messages({ ids: [described.message ?? assert.fail("it names its message")] });
      assert.equal(message?.conversation, target.id);
      assert.deepEqual(await search(lcm, within), [[copied.id, target.id]]);
      const { caveats } = await lcm.grep({ pattern: "nothing like it", reach: within });
      assert.deepEqual(caveats, [{ kind: "files", files: 1 }]);
      await refuses(read(lcm, kept.id, within), "not_found", /there is no file/);
      assert.deepEqual(
        new Set(await search(lcm, only(source.id))),
        new Set([
          [copied.id, source.id],
          [kept.id, source.id],
        ]),
      );
      await store.undo(change);
      await refuses(read(lcm, copied.id, within), "not_found", /there is no file/);
      assert.deepEqual(await search(lcm, within), []);
    });
  });

  it("are read under policy all even if the source is hidden, and charged to a grant for the target", async () => {
    await onLcm(async (ground) => {
      const { lcm, store, source, target, copied, kept } = await withFiles(ground);
      await apply(lcm, source.id, target.id);
      await store.setHidden(source.id, true);
      const all: Reach = { kind: "all", conversations: null };
      assert.equal((await read(lcm, copied.id, all)).kind, "file");
      assert.deepEqual(await search(lcm, all), [[copied.id, target.id]]);
      await refuses(read(lcm, kept.id, all), "not_found", /there is no file/);
      const expiresAt = at("2999-01-01T00:00:00.000Z");
      const grant = await store.issueGrant({ conversations: [target.id], tokenCap: 500, expiresAt, parent: null });
      const spent = await readGranted(store, grant.id, 100, async (reach) => {
        const value = await read(lcm, copied.id, reach);
        assert.ok(value.kind === "file");
        return { value, charges: new Map([[value.file.conversation, value.tokens]]) };
      });
      assert.equal((await store.grant(grant.id))?.tokensUsed, spent.tokens);
    });
  });

  it("of the older program are read through a copy, not through a mention", async () => {
    await onLcm(async ({ lcm, store }) => {
      const source = await store.open({ sessionId: "source" });
      const [target, other] = [await store.open({ sessionId: "target" }), await store.open({ sessionId: "other" })];
      const [copied, kept] = [await save(store, source, "a badger"), await save(store, source, "another badger")];
      await store.append(source.id, [said("k1", `[LCM File: ${copied.id}]`), said("k2", `[LCM File: ${kept.id}]`)]);
      const fold = async ({ id }: Conversation, fileIds: readonly FileId[]) =>
        await store.fold(id, (await store.context(id)).slice(0, 1), summary(`leaf ${id}`, { fileIds }));
      await fold(source, [copied.id]);
      for (const each of [target, other])
        await store.append(each.id, [said("t1", `what is in ${copied.id} and ${kept.id}?`)]);
      // Its summaries name any id that somebody typed.
      for (const each of [target, other]) await fold(each, [copied.id, kept.id]);
      await apply(lcm, source.id, target.id);
      assert.equal((await read(lcm, copied.id, only(target.id))).kind, "file");
      assert.deepEqual(await search(lcm, only(target.id)), [[copied.id, target.id]]);
      await refuses(read(lcm, kept.id, only(target.id)), "not_found", /there is no file/);
      for (const { id } of [copied, kept])
        await refuses(read(lcm, id, only(other.id)), "not_found", /there is no file/);
      assert.deepEqual(await search(lcm, only(other.id)), []);
    });
  });
});

// ── Whatever the conversations ───────────────────────────────────────────────────────────────────────────────────────

/** Rows of one conversation: those that name it, and those that hang on its summaries and messages. */
function rowsOf(dump: Dump, id: ConversationId): readonly string[] {
  const rows = Object.entries(dump).flatMap(([table, all]) =>
    all.map((row) => ({ table, row, of: JSON.parse(row) as Record<string, unknown> })),
  );
  const own = rows.filter(({ table, of }) => of["conversation_id"] === id && table !== "journal");
  const names = new Set<unknown>(own.flatMap(({ of }) => [of["summary_id"] ?? "", of["message_id"] ?? ""]));
  const hanging = rows.filter(
    ({ of }) => of["conversation_id"] === undefined && (names.has(of["summary_id"]) || names.has(of["message_id"])),
  );
  return [...own, ...hanging].map(({ table, row }) => `${table} ${row}`);
}

describe("a transplant between any two conversations", () => {
  const onPair = (
    test: (pair: {
      lcm: Lcm;
      store: Store;
      path: string;
      source: ConversationId;
      target: ConversationId;
      random: ReturnType<typeof createRandom>;
    }) => Promise<void>,
  ) =>
    fc.assert(
      fc.asyncProperty(fc.nat(), async (seed) => {
        await onLcm(async ({ lcm, store, path }) => {
          const random = createRandom(seed);
          const [{ conversation: source }, { conversation: target }] = [
            await growConversation(store, "a", random),
            await growConversation(store, "b", random),
          ];
          if (random.chance(0.3)) {
            // What is copied on was copied itself.
            const { conversation: earlier } = await growConversation(store, "c", random);
            await lcm.transplant(await lcm.planTransplant(earlier.id, source.id));
          }
          if (random.chance(0.5)) while ((await store.index(1_000)) > 0);
          fc.pre((await lcm.planTransplant(source.id, target.id)).summaries.length > 0);
          await test({ lcm, store, path, source: source.id, target: target.id, random });
        });
      }),
      { numRuns: 40 },
    );

  it("keeps the source, prepends it to the target, and leaves no references across", async () => {
    await onPair(async ({ lcm, store, path, source, target }) => {
      const under = async (id: ConversationId) => (await flattened(store, id)).map(messageFromStore);
      const shown = (await store.context(source)).filter((item) => item.kind === "summary");
      const sources = await store.sources(await store.closure(shown.map(({ id }) => id)));
      const messages = new Set([...sources.values()].flatMap((each) => each.messages));
      const inherited = (await flattened(store, source)).filter(({ id }) => messages.has(id)).map(messageFromStore);
      const [before, own] = [dumpOf(path), await under(target)];
      const plan = await lcm.planTransplant(source, target);
      const done = await lcm.transplant(plan);
      assert.deepEqual(rowsOf(dumpOf(path), source), rowsOf(before, source));
      assert.deepEqual(await under(target), [...inherited, ...own]);
      const planned = [plan.shown.length, plan.depths.reduce((sum, each) => sum + each.summaries, 0), plan.messages];
      assert.deepEqual([done?.contextItems, done?.summaries, done?.messages], planned);
      await checkSound(store);
      await refuses(lcm.planTransplant(source, target), "conflict", /already contains/, /lcm undo/);
      while ((await store.index(1_000)) > 0);
      await checkSound(store);
    });
  });

  it("undo restores every table and the search, indexed or not", async () => {
    await onPair(async ({ lcm, store, path, source, target, random }) => {
      const found = async () => {
        const { hits } = await lcm.grep({
          pattern: "says",
          mode: "full_text",
          sort: "recency",
          limit: 200,
          reach: only(source, target),
        });
        return hits.map(({ id }) => id);
      };
      const [before, foundBefore] = [dumpOfContent(path), await found()];
      const change = await apply(lcm, source, target);
      if (random.chance(0.5)) while ((await store.index(1_000)) > 0);
      assert.equal((await store.undo(change)).kind, "undone");
      assert.deepEqual(dumpOfContent(path), before);
      assert.deepEqual(await found(), foundBefore);
      await checkSound(store);
    });
  });

  it("undo also works after the host went on in the target", async () => {
    await onPair(async ({ lcm, store, path, source, target }) => {
      const [before, context] = [dumpOfContent(path), await store.context(target)];
      const change = await apply(lcm, source, target);
      const late = messageToStore(user("later"), { key: "later", at: at("2026-02-17T07:37:30.000Z") });
      await store.append(target, [{ kind: "message", message: late }]);
      assert.equal((await store.undo(change)).kind, "undone");
      const now = dumpOfContent(path);
      assert.deepEqual((await store.context(target)).slice(0, -1), context);
      for (const table of ["summaries", "summary_messages", "summary_parents"])
        assert.deepEqual(now[table], before[table]);
      assert.equal(now["messages"]?.length, (before["messages"]?.length ?? 0) + 1);
      await checkSound(store);
    });
  });
});
