import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import fc from "fast-check";
import { deliver, foldPlaces, itemOf, shownTexts, summary } from "../../../test/store-contract/ground.ts";
import { dumpOfContent } from "../../../test/support/dump.ts";
import { freshLcms } from "../../../test/support/fresh-lcm.ts";
import { growConversation, pickRun } from "../../../test/support/grown-conversation.ts";
import { checkLossless } from "../../../test/support/lossless.ts";
import { createRandom } from "../../../test/support/random.ts";
import { createHost, turnWithTool, user } from "../../../test/support/scripted-host.ts";
import { movesFor } from "./dissolve.ts";
import type { Dissolution } from "./dissolve.ts";
import { LcmError } from "../base/errors.ts";
import type { Lcm } from "../lcm.ts";
import type { ContextItem, Conversation, ConversationId, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { promptTokens } from "../model/prompt-cost.ts";

const onLcm = freshLcms("dissolve");

/** Eight messages; m0 to m5 under three leaves, the first two of them condensed. */
async function eight(store: Store) {
  const talk = await store.open({ sessionId: "s", sessionKey: "agent:one:main" });
  const host = createHost("h");
  for (const raw of turnWithTool("c1", "m0, a question", "the answer")) host.says(raw);
  for (const text of ["m4", "m5", "m6", "m7"]) host.says(user(`${text}, said at some length`));
  await deliver(store, talk, host);
  const leaves: SummaryId[] = [];
  for (const place of [0, 1, 2]) leaves.push(await foldPlaces(store, talk.id, [place, place + 1], `leaf ${place}`));
  const condensed = await foldPlaces(store, talk.id, [0, 1], "[2026] condensed\nits second line");
  return { talk, host, leaves: leaves as [SummaryId, SummaryId, SummaryId], condensed };
}

const refuses = async (work: Promise<unknown>, code: string, message: RegExp, hint: RegExp): Promise<void> =>
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof LcmError, String(error));
    assert.deepEqual(
      [error.code, message.test(error.message), hint.test(error.hint ?? "")],
      [code, true, true],
      `${error.message} | ${error.hint}`,
    );
    return true;
  });

const apply = async (lcm: Lcm, conversation: ConversationId, id: SummaryId, purge = false): Promise<number> =>
  (await lcm.dissolve(await lcm.planDissolve({ conversation, summary: id, purge }))).change;

const mustHave = async (store: Store, id: ConversationId): Promise<Conversation> =>
  (await store.conversation(id)) ?? assert.fail(`there is no conversation ${id}`);

describe("making room", () => {
  it("moves items in the way, in order and no further than needed", () => {
    assert.deepEqual(movesFor([], 5), []);
    assert.deepEqual(movesFor([5, 6], 5), []);
    assert.deepEqual(movesFor([4, 6], 5), [{ from: 4, to: 5 }]);
    assert.deepEqual(movesFor([2, 3, 9], 5), [
      { from: 2, to: 5 },
      { from: 3, to: 6 },
    ]);
  });

  it("never puts two items in one place, and stops at the first that need not move", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(60), { maxLength: 20 }), fc.nat(30), (places, free) => {
        const later = places.toSorted((a, b) => a - b);
        const moves = movesFor(later, free);
        const after = later.map((from, at) => moves[at]?.to ?? from);
        assert.deepEqual(
          moves.map(({ from }) => from),
          later.slice(0, moves.length),
        );
        assert.ok(moves.every(({ from, to }) => to > from));
        assert.ok(after.every((place, at) => place >= free && (at === 0 || place > (after[at - 1] ?? 0))));
      }),
    );
  });
});

describe("a plan to dissolve", () => {
  it("lists the summary, its place, the run that returns, and the cost of a prompt", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { talk, leaves, condensed } = await eight(store);
      const plan = await lcm.planDissolve({ conversation: talk.id, summary: condensed });
      assert.deepEqual(plan.dissolved, {
        id: condensed,
        depth: 1,
        tokens: 1,
        earliestAt: "2026-02-17T07:37:00.000Z",
        latestAt: "2026-02-17T07:37:03.000Z",
        opening: "[2026] condensed",
      });
      assert.deepEqual(plan.place, { item: 1, of: 4 });
      assert.deepEqual(
        plan.run.map((item) => [item.kind, item.id, item.tokens, item.opening]),
        [
          ["summary", leaves[0], 1, "leaf 0"],
          ["summary", leaves[1], 1, "leaf 1"],
        ],
      );
      assert.deepEqual([plan.shifted, plan.derived, plan.carriedBy], [0, [], []]);
      const { totals } = await mustHave(store, talk.id);
      // One more summary, of one token, and the element around it.
      assert.deepEqual([plan.tokensBefore, plan.tokensAfter], [promptTokens(totals), promptTokens(totals) + 1 + 130]);
    });
  });

  it("shows the role and opening of each message of a leaf, tool calls included", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { talk, leaves, condensed } = await eight(store);
      await apply(lcm, talk.id, condensed);
      const { run } = await lcm.planDissolve({ conversation: talk.id, summary: leaves[0] });
      assert.deepEqual(
        run.map((item) => [item.kind === "message" ? item.role : item.depth, item.opening]),
        [
          ["user", "m0, a question"],
          ["assistant", 'read {"path":"notes/c1.md"}'],
        ],
      );
    });
  });

  it("names the summary that covers one outside the context", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { talk, leaves, condensed } = await eight(store);
      const asked = lcm.planDissolve({ conversation: talk.id, summary: leaves[1] });
      const hint = new RegExp(`lcm dissolve ${talk.id} --summary ${condensed}`);
      await refuses(asked, "conflict", new RegExp(`${condensed} covers it`), hint);
      const again = await foldPlaces(store, talk.id, [0, 0], "").catch(() => null);
      assert.equal(again, null, "one token cannot be shortened");
      const purging = lcm.planDissolve({ conversation: talk.id, summary: leaves[1], purge: true });
      await refuses(purging, "conflict", new RegExp(`${condensed} covers it`), hint);
    });
  });

  it("only purges a summary that is not in the context", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { talk, condensed } = await eight(store);
      await apply(lcm, talk.id, condensed);
      const asked = { conversation: talk.id, summary: condensed };
      await refuses(lcm.planDissolve(asked), "conflict", /not in the context/, /--purge/);
      const plan = await lcm.planDissolve({ ...asked, purge: true });
      assert.deepEqual([plan.ordinal, plan.place, plan.run, plan.shifted], [null, null, [], 0]);
      assert.equal(plan.tokensBefore, plan.tokensAfter);
      await lcm.dissolve(plan);
      assert.deepEqual(await store.summaries({ ids: [condensed] }), []);
      await refuses(lcm.planDissolve(asked), "not_found", /there is no summary/, /lcm dag/);
    });
  });

  it("refuses to purge a summary that others were made from or carry, and names them", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { talk, leaves, condensed } = await eight(store);
      await apply(lcm, talk.id, condensed);
      const purge = (id: SummaryId) => lcm.planDissolve({ conversation: talk.id, summary: id, purge: true });
      await refuses(
        purge(leaves[0]),
        "conflict",
        new RegExp(`it is a source of ${condensed}`),
        /--summary sum_\w+ --purge/,
      );
      const without = await lcm.planDissolve({ conversation: talk.id, summary: leaves[0] });
      assert.deepEqual(without.derived, [condensed]);
      await store.openSegment({ sessionId: "s2", sessionKey: "agent:one:main" }, { carryDepth: 0 });
      const [carried] = await store.carriedBy(leaves[2]);
      await refuses(purge(leaves[2]), "conflict", new RegExp(`its text is carried by ${carried}`), /leave out --purge/);
      const before = await mustHave(store, talk.id);
      const inStore = await store.dissolve({ conversation: talk.id, summary: leaves[0], ordinal: 1, purge: true });
      assert.equal(inStore.kind, "stale", "and the store itself does not either");
      assert.deepEqual(await mustHave(store, talk.id), before);
    });
  });

  it("rejects summaries that are carried, foreign or missing", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { talk, condensed } = await eight(store);
      const next = await store.openSegment({ sessionId: "s2", sessionKey: "agent:one:main" }, { carryDepth: 1 });
      const [carried] = await store.carriedBy(condensed);
      assert.ok(carried !== undefined);
      const plan = (conversation: ConversationId, id: SummaryId) => lcm.planDissolve({ conversation, summary: id });
      await refuses(plan(next.id, carried), "invalid", new RegExp(`carried over from ${condensed}`), /lcm expand/);
      await refuses(
        plan(next.id, condensed),
        "invalid",
        /belongs to conversation 1, not 2/,
        /lcm dissolve 1 --summary/,
      );
      await refuses(plan(talk.id, "sum_0123456789abcdef"), "not_found", /there is no summary/, /lcm dag 1/);
      await refuses(plan(99 as ConversationId, condensed), "not_found", /there is no conversation 99/, /^/);
    });
  });

  it("rejects damaged links, and changes nothing", async () => {
    await onLcm(async ({ lcm, store, path }) => {
      const { talk, leaves } = await eight(store);
      const plan = await lcm.planDissolve({ conversation: talk.id, summary: leaves[2] });
      damage(path, "DELETE FROM messages WHERE seq = 6");
      const before = dumpOfContent(path);
      const asked = { conversation: talk.id, summary: leaves[2] };
      await refuses(lcm.planDissolve(asked), "corrupt", /1 of the sources/, /lcm doctor/);
      await refuses(lcm.dissolve(plan), "corrupt", / has 1 missing source$/, /lcm doctor/);
      damage(path, `DELETE FROM summary_messages WHERE summary_id = '${leaves[2]}'`);
      await refuses(lcm.planDissolve(asked), "invalid", /has no sources/, /lcm doctor/);
      await refuses(lcm.dissolve(plan), "invalid", /has no sources/, /lcm doctor/);
      assert.deepEqual(dumpOfContent(path)["context_items"], before["context_items"]);
    });
  });
});

function damage(path: string, sql: string): void {
  const db = new DatabaseSync(path, { enableForeignKeyConstraints: false });
  db.exec(sql);
  db.close();
}

describe("dissolving", () => {
  it("keeps the summary searchable unless it is purged", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { talk, leaves, condensed, host } = await eight(store);
      const found = async () =>
        (await lcm.grep({ pattern: "condensed", reach: { kind: "all", conversations: null } })).summaries?.map(
          ({ id }) => id,
        );
      await apply(lcm, talk.id, condensed);
      assert.deepEqual(await found(), [condensed]);
      await apply(lcm, talk.id, condensed, true);
      assert.equal(await found(), undefined);
      await apply(lcm, talk.id, leaves[1], true);
      assert.deepEqual((await shownTexts(store, talk.id)).slice(0, 2), ["leaf 0", "the answer"]);
      await checkLossless(store, [{ conversation: talk.id, entries: host.entries }]);
    });
  });

  it("plans again if its place has moved, and reports that", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { first, second, target } = await crowded(lcm, store);
      const plan = await lcm.planDissolve({ conversation: target.id, summary: second });
      await apply(lcm, target.id, first);
      const replanned: Dissolution[] = [];
      const { plan: applied } = await lcm.dissolve(plan, (each) => void replanned.push(each));
      assert.deepEqual(replanned, [applied]);
      assert.notEqual(applied.ordinal, plan.ordinal);
      assert.deepEqual(
        (await store.context(target.id)).map(({ depth }) => depth),
        [0, 0, -1, -1, -1, -1, -1],
      );
    });
  });

  it("gives up after five attempts, and changes nothing", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { first, second, target } = await crowded(lcm, store);
      const plan = await lcm.planDissolve({ conversation: target.id, summary: second });
      const { ordinal } = await itemOf(store, target.id, first);
      let change = await apply(lcm, target.id, first);
      // Another writer keeps moving it just before it is applied.
      const pending: Promise<unknown>[] = [];
      const move = async (): Promise<void> => {
        if (pending.length % 2 === 0) assert.equal((await store.undo(change)).kind, "undone");
        else {
          const moved = await store.dissolve({ conversation: target.id, summary: first, ordinal });
          change = moved.kind === "written" ? moved.change : assert.fail(moved.reason);
        }
      };
      const asked = lcm.dissolve(plan, () => void pending.push(move()));
      await refuses(asked, "conflict", /nothing was changed: .*, 5 times in a row/, /run it again/);
      await Promise.all(pending);
      assert.equal(pending.length, 4, "it was planned again four times");
      await itemOf(store, target.id, second);
    });
  });

  it("fails at once if it was already dissolved", async () => {
    await onLcm(async ({ lcm, store }) => {
      const { talk, condensed } = await eight(store);
      const plan = await lcm.planDissolve({ conversation: talk.id, summary: condensed });
      await apply(lcm, talk.id, condensed);
      await refuses(lcm.dissolve(plan), "conflict", /not in the context/, /--purge/);
    });
  });
});

/** A context without a gap: opening up its first summary moves all the others. */
async function crowded(lcm: Lcm, store: Store) {
  const { talk } = await eight(store);
  const target = await store.open({ sessionId: "target" });
  const host = createHost("t");
  for (const text of ["t1", "t2", "t3"]) host.says(user(text));
  await deliver(store, target, host);
  await lcm.transplant(await lcm.planTransplant(talk.id, target.id));
  const [first, second] = await store.context(target.id);
  assert.ok(first?.kind === "summary" && second?.kind === "summary");
  return { target, first: first.id, second: second.id };
}

// ── Whatever the conversation ────────────────────────────────────────────────────────────────────────────────────────

const shape = (context: readonly ContextItem[]) => context.map(({ ordinal: _, ...item }) => item);

/** A conversation that chance has made, some with another one's summaries in front, where there are no gaps. */
const onGrown = (
  test: (grown: {
    lcm: Lcm;
    store: Store;
    path: string;
    id: ConversationId;
    random: ReturnType<typeof createRandom>;
  }) => Promise<void>,
) =>
  fc.assert(
    fc.asyncProperty(fc.nat(), async (seed) => {
      await onLcm(async ({ lcm, store, path }) => {
        const random = createRandom(seed);
        const { conversation } = await growConversation(store, "a", random);
        const { id } = conversation;
        if (random.chance(0.5)) {
          const other = await growConversation(store, "b", random);
          await lcm.transplant(await lcm.planTransplant(other.conversation.id, id));
        }
        while ((await store.index(1_000)) > 0);
        await test({ lcm, store, path, id, random });
      });
    }),
    { numRuns: 40 },
  );

describe("folding and dissolving undo each other, anywhere in any conversation", () => {
  it("dissolving a fold restores the context and its totals", async () => {
    await onGrown(async ({ lcm, store, id, random }) => {
      const [before, context] = [await mustHave(store, id), await store.context(id)];
      const run = pickRun(context, random);
      fc.pre(run.length > 0);
      const folded = await store.fold(id, run, summary("for a moment"));
      assert.ok(folded.kind === "written");
      const plan = await lcm.planDissolve({ conversation: id, summary: folded.summary, purge: true });
      const { items, shifted } = await lcm.dissolve(plan);
      assert.deepEqual([items, shifted], [run.length, plan.shifted]);
      assert.deepEqual(shape(await store.context(id)), shape(context));
      assert.deepEqual((await mustHave(store, id)).totals, before.totals);
      assert.deepEqual(await lcm.inspect(id), []);
    });
  });

  it("folding again restores the same sources in the same place, and the plan predicts the state in between", async () => {
    await onGrown(async ({ lcm, store, id, random }) => {
      const context = await store.context(id);
      const summaries = context.filter((item) => item.kind === "summary");
      fc.pre(summaries.length > 0);
      const chosen = random.pick(summaries);
      const plan = await lcm.planDissolve({ conversation: id, summary: chosen.id });
      const { shifted } = await lcm.dissolve(plan);
      const [between, opened] = [await mustHave(store, id), await store.context(id)];
      const at = context.indexOf(chosen);
      assert.equal(promptTokens(between.totals), plan.tokensAfter);
      assert.equal(shifted, plan.shifted);
      assert.deepEqual(
        opened.slice(at, at + plan.run.length).map((item) => item.id),
        plan.run.map((item) => item.id),
      );
      const moved = opened
        .slice(at + plan.run.length)
        .filter(({ ordinal }, place) => ordinal !== context[at + 1 + place]?.ordinal);
      assert.equal(moved.length, plan.shifted, "the shift is what the plan said");
      assert.deepEqual(await lcm.inspect(id), []);
      const again = await store.fold(id, opened.slice(at, at + plan.run.length), summary("again"));
      assert.ok(again.kind === "written");
      const same = (items: readonly ContextItem[], old: unknown, put: unknown) =>
        shape(items).map((item) =>
          item.id === old ? { ...item, id: put, tokens: 0 } : item.id === put ? { ...item, tokens: 0 } : item,
        );
      assert.deepEqual(same(await store.context(id), again.summary, chosen.id), same(context, null, chosen.id));
      const sources = await store.sources([chosen.id, again.summary]);
      assert.deepEqual(sources.get(again.summary), sources.get(chosen.id));
    });
  });

  it("undo restores every table, purged or not, with or without a shift", async () => {
    await onGrown(async ({ lcm, store, path, id, random }) => {
      const summaries = (await store.context(id)).filter((item) => item.kind === "summary");
      fc.pre(summaries.length > 0);
      const { id: chosen } = random.pick(summaries);
      const before = dumpOfContent(path);
      const change = await apply(lcm, id, chosen, random.chance(0.5));
      assert.equal((await store.undo(change)).kind, "undone");
      assert.deepEqual(dumpOfContent(path), before);
      assert.deepEqual(await lcm.inspect(id), []);
    });
  });

  it("undo also works after the host went on, and restores what was touched", async () => {
    await onGrown(async ({ lcm, store, id, random }) => {
      const context = await store.context(id);
      const summaries = context.filter((item) => item.kind === "summary");
      fc.pre(summaries.length > 0);
      const change = await apply(lcm, id, random.pick(summaries).id, random.chance(0.5));
      const host = createHost("later");
      for (const text of ["later 1", "later 2"]) host.says(user(text));
      await deliver(store, { id } as Conversation, {
        ...host,
        entries: host.entries.map((entry) => ({ ...entry, parentKey: null })),
      });
      assert.equal((await store.undo(change)).kind, "undone");
      assert.deepEqual((await store.context(id)).slice(0, context.length), context);
      assert.deepEqual((await shownTexts(store, id)).slice(context.length), ["later 1", "later 2"]);
      assert.deepEqual(await lcm.inspect(id), []);
    });
  });
});
