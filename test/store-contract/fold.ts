/** Contract: folding, dissolving and rewriting keep the invariant, or change nothing. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { isSummaryId } from "../../src/core/model/types.ts";
import type { SummaryId } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { createHost, toAppendable, user } from "../support/scripted-host.ts";
import {
  findAll,
  at,
  deliver,
  dissolveAt,
  each,
  foldPlaces,
  further,
  itOn,
  itemOf,
  nothingIsLost,
  numbered,
  onTalk,
  refuses,
  say,
  shownTexts,
  summary,
} from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

/** A conversation of eight messages, m0 to m7, a second apart. */
const eight = further(
  onTalk,
  async (scene) => {
    await say(scene.store, scene.talk, scene.host, ...numbered(8, (index) => `m${index}`));
    return { check: () => nothingIsLost(scene) };
  },
  nothingIsLost,
);

export function testFold(subject: StoreUnderTest): void {
  const it = itOn(subject, eight);

  describe("folding", () => {
    it("replaces exactly the run by one summary that represents it", async ({ store, talk }) => {
      const before = (await store.conversation(talk.id))?.totals;
      const context = await store.context(talk.id);
      const run = context.slice(2, 5);
      const fileIds = ["file_0123456789abcdef"] as const;
      const draft = summary("m2 to m4", {
        tokens: 3,
        level: "aggressive",
        model: "scripted/one",
        previousContext: "before",
        fileIds,
      });
      const outcome = await store.fold(talk.id, run, draft);
      assert.ok(outcome.kind === "written");
      assert.ok(isSummaryId(outcome.summary));
      assert.deepEqual(await shownTexts(store, talk.id), ["m0", "m1", "m2 to m4", "m5", "m6", "m7"]);
      const [made = assert.fail()] = await store.summaries({ ids: [outcome.summary] });
      const { createdAt, ...rest } = made;
      assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.deepEqual(rest, {
        ...draft,
        id: outcome.summary,
        conversation: talk.id,
        depth: 0,
        earliestAt: at("2026-02-17T07:37:02.000Z"),
        latestAt: at("2026-02-17T07:37:04.000Z"),
        descendants: 0,
        revision: 0,
        carriedFrom: null,
        rewriteReason: null,
      });
      const saved = run.reduce((sum, item) => sum + item.tokens, 0);
      assert.ok(before !== undefined);
      assert.deepEqual((await store.conversation(talk.id))?.totals, {
        ...before,
        summaries: 1,
        contextItems: 6,
        contextTokens: before.contextTokens - saved + 3,
        contextMessages: 5,
        contextMessageTokens: before.contextMessageTokens - saved,
      });
      assert.deepEqual(each(await store.context(talk.id), "depth"), [-1, -1, 0, -1, -1, -1]);
    });

    itOn(subject, onTalk)(
      "keeps a garbled text, and says that it is",
      async ({ store, talk, host }) => {
        const texts = ["nul\0", "\u001b[1m", "4\ufffd0", "\ufffd7", "lost \ufffd word", "two\tcells\r\nof words"];
        for (const text of texts) host.says(user(`${text}, and more of it`.repeat(9)));
        await deliver(store, talk, host);
        for (const [place, text] of texts.entries()) await foldPlaces(store, talk.id, [place, place], text);
        const { summaries } = await store.skeleton(talk.id);
        assert.deepEqual(each(summaries, "garbled"), [true, true, true, true, false, false]);
      },
      ["summary_below_normal"],
    );

    it("of summaries records its range, its depth, its sources and how many are below", async ({ store, talk }) => {
      const leaves: SummaryId[] = [];
      for (let place = 0; place < 4; place++)
        leaves.push(await foldPlaces(store, talk.id, [place, place + 1], `leaf ${place}`));
      const left = await foldPlaces(store, talk.id, [0, 1], "left");
      const right = await foldPlaces(store, talk.id, [1, 2], "right");
      const top = await foldPlaces(store, talk.id, [0, 1], "top");
      const [made] = await store.summaries({ ids: [top] });
      assert.deepEqual(
        [made?.depth, made?.descendants, made?.earliestAt, made?.latestAt],
        [2, 6, "2026-02-17T07:37:00.000Z", "2026-02-17T07:37:07.000Z"],
      );
      assert.deepEqual(
        await store.sources([top, left]),
        new Map([
          [top, { messages: [], summaries: [left, right] }],
          [left, { messages: [], summaries: leaves.slice(0, 2) }],
        ]),
      );
      const [first = top] = leaves;
      const shown = await store.sourceItems([top, left, first]);
      const idsAndDepths = (id: SummaryId) => shown.get(id)?.map((item) => [item.id, item.depth]);
      const messages = (await store.sources([first])).get(first)?.messages ?? [];
      assert.deepEqual([top, left, first].map(idsAndDepths), [
        [left, right].map((id) => [id, 1]),
        leaves.slice(0, 2).map((id) => [id, 0]),
        messages.map((id) => [id, -1]),
      ]);
      for (const items of shown.values()) assert.ok(items.every(({ tokens }) => tokens > 0));
      assert.deepEqual(
        await store.derived([leaves[0] ?? top, left, top]),
        new Map([
          [leaves[0], [left]],
          [left, [top]],
          [top, []],
        ]),
      );
      const closure = await store.closure([top]);
      assert.deepEqual(closure.toSorted(), [top, left, right, ...leaves].toSorted());
      assert.equal(closure[0], top);
      assert.deepEqual(new Set(closure.slice(-4)), new Set(leaves));
      const [message = assert.fail()] = await store.messages({ conversation: talk.id, limit: 1 });
      assert.deepEqual(await store.coveredBy(message.id), [leaves[0], left, top]);
      const byDepth = await store.summaries({ conversation: talk.id });
      assert.deepEqual(each(byDepth, "depth"), [0, 0, 0, 0, 1, 1, 2]);
      assert.deepEqual(each(await store.summaries({ conversation: talk.id, depth: 1 }), "id"), [left, right]);
      assert.deepEqual(
        await store.summaries({ ids: [right, "sum_0000000000000000", left] }).then((all) => all.map(({ id }) => id)),
        [right, left],
      );
    });

    it("appending continues after it", async ({ store, talk, host }) => {
      await foldPlaces(store, talk.id, [0, 7], "all");
      await say(store, talk, host, "m8");
      assert.deepEqual(await shownTexts(store, talk.id), ["all", "m8"]);
    });

    it("a competing fold of the same or an overlapping run is stale, and changes nothing", async ({ store, talk }) => {
      const seen = await store.context(talk.id);
      const first = await store.fold(talk.id, seen.slice(2, 5), summary("first"));
      assert.equal(first.kind, "written");
      const after = await store.context(talk.id);
      for (const [from, to] of [
        [2, 5],
        [0, 3],
        [4, 8],
        [0, 8],
        [3, 4],
      ] as const) {
        const rival = await store.fold(talk.id, seen.slice(from, to), summary("rival"));
        assert.equal(rival.kind, "stale", `${from} to ${to}`);
      }
      assert.deepEqual(await store.context(talk.id), after);
      assert.equal((await store.fold(talk.id, seen.slice(0, 2), summary("beside"))).kind, "written");
    });

    it("a run with a gap, or of another conversation, is stale", async ({ store, talk }) => {
      const seen = await store.context(talk.id);
      const holed = seen.filter((_, place) => place === 1 || place === 3);
      assert.equal((await store.fold(talk.id, holed, summary("holed"))).kind, "stale");
      const elsewhere = await store.open({ sessionId: "elsewhere" });
      assert.equal((await store.fold(elsewhere.id, seen.slice(0, 2), summary("astray"))).kind, "stale");
    });

    it("a run with something rewritten or forgotten meanwhile is stale: its summary describes the old text", async (scene) => {
      const { store, talk, host } = scene;
      await say(store, talk, host, "the code is correcthorsebattery", "noted");
      const leaf = await foldPlaces(store, talk.id, [0, 3], "leaf");
      const seen = await store.context(talk.id);
      await store.rewrite({ summary: leaf, revision: 0 }, summary("a longer leaf", { tokens: 4 }));
      assert.equal(
        (await store.fold(talk.id, seen.slice(0, 1), summary("of the old text", { tokens: 0 }))).kind,
        "stale",
      );
      const other = await store.open({ sessionId: "other" });
      await deliver(store, other, host);
      const run = (await store.context(other.id)).slice(-2);
      await store.forget(other.id, await store.planForget(other.id, { kind: "secret", text: "correcthorsebattery" }));
      assert.equal((await store.fold(other.id, run, summary("was told correcthorsebattery"))).kind, "stale");
    });

    it("a run that a rewind has removed is stale", async ({ store, talk, host }) => {
      const seen = await store.context(talk.id);
      host.goesBackTo("h-4");
      await say(store, talk, host, "another way");
      assert.equal((await store.fold(talk.id, seen.slice(3, 6), summary("gone"))).kind, "stale");
      assert.equal((await store.fold(talk.id, seen.slice(0, 4), summary("still there"))).kind, "written");
    });

    it("refuses a summary that is not shorter than its run, an empty run and a mixed one", async (scene) => {
      const { store, talk } = scene;
      const seen = await store.context(talk.id);
      const pair = seen.slice(0, 2);
      const tokens = pair.reduce((sum, item) => sum + item.tokens, 0);
      await refuses("invalid", () => store.fold(talk.id, pair, summary("as long", { tokens })));
      await refuses("invalid", () => store.fold(talk.id, pair, summary("longer", { tokens: tokens + 9 })));
      await refuses("invalid", () => store.fold(talk.id, [], summary("of nothing")));
      assert.deepEqual(await store.context(talk.id), seen);
      await foldPlaces(store, talk.id, [0, 1], "leaf");
      const mixed = (await store.context(talk.id)).slice(0, 3);
      await refuses("invalid", () => store.fold(talk.id, mixed, summary("of unequals")));
      assert.equal((await store.fold(talk.id, pair, summary("just", { tokens: tokens - 1 }))).kind, "stale");
    });
  });

  describe("dissolving", () => {
    it("puts a leaf's messages back in its place, and keeps its row", async ({ store, talk }) => {
      const before = await store.conversation(talk.id);
      const leaf = await foldPlaces(store, talk.id, [2, 5], "leaf");
      const { ordinal } = await itemOf(store, talk.id, leaf);
      const outcome = await store.dissolve({ conversation: talk.id, summary: leaf, ordinal });
      assert.deepEqual(outcome, { kind: "written", change: 1, items: 4, shifted: 0 });
      assert.deepEqual(await shownTexts(store, talk.id), ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"]);
      assert.deepEqual((await store.conversation(talk.id))?.totals, { ...before?.totals, summaries: 1 });
      assert.equal((await store.summaries({ ids: [leaf] })).length, 1);
      const [journalled] = await store.journal({ conversation: talk.id, limit: 1 });
      assert.deepEqual([journalled?.operation, journalled?.subject], ["dissolve", leaf]);
    });

    it("puts a condensed summary's sources back, and those can be dissolved in turn", async ({ store, talk }) => {
      const leaves: SummaryId[] = [];
      for (let place = 0; place < 4; place++)
        leaves.push(await foldPlaces(store, talk.id, [place, place + 1], `leaf ${place}`));
      const top = await foldPlaces(store, talk.id, [0, 3], "top");
      await dissolveAt(store, talk.id, top);
      assert.deepEqual(each(await store.context(talk.id), "id"), leaves);
      for (const leaf of leaves.toReversed()) await dissolveAt(store, talk.id, leaf);
      assert.deepEqual(await shownTexts(store, talk.id), ["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"]);
    });

    it("leaves unused summaries on top of what it released, and no others", async ({ store, talk }) => {
      for (let place = 0; place < 4; place++) await foldPlaces(store, talk.id, [place, place + 1], `leaf ${place}`);
      const last = (await store.context(talk.id)).at(-1)?.id;
      const top = await foldPlaces(store, talk.id, [0, 2], "top");
      assert.deepEqual(await store.unused(talk.id, 10), []);
      await dissolveAt(store, talk.id, top);
      assert.deepEqual(await store.unused(talk.id, 10), [top]);
      for (const { id } of (await store.context(talk.id, { kind: "summary" })).toReversed())
        await dissolveAt(store, talk.id, id as SummaryId);
      assert.deepEqual(await store.unused(talk.id, 10), [top, last]);
      assert.deepEqual(await store.unused(talk.id, 1), [top]);
    });

    it("is stale when the summary is no longer there, or has moved", async ({ store, talk }) => {
      const leaf = await foldPlaces(store, talk.id, [2, 3], "leaf");
      const { ordinal } = await itemOf(store, talk.id, leaf);
      const plan = { conversation: talk.id, summary: leaf, ordinal };
      assert.equal((await store.dissolve({ ...plan, ordinal: ordinal + 1 })).kind, "stale");
      assert.equal((await store.dissolve(plan)).kind, "written");
      assert.equal((await store.dissolve(plan)).kind, "stale");
      assert.equal((await store.journal({ conversation: talk.id, limit: 10 })).length, 1);
    });

    it("folding, dissolving and folding again makes another summary of the same messages", async ({ store, talk }) => {
      const once = await foldPlaces(store, talk.id, [1, 4], "once");
      await dissolveAt(store, talk.id, once);
      const twice = await foldPlaces(store, talk.id, [1, 4], "twice");
      assert.notEqual(once, twice);
      const sources = await store.sources([once, twice]);
      assert.deepEqual(sources.get(once), sources.get(twice));
      const [message = assert.fail()] = sources.get(twice)?.messages ?? [];
      assert.deepEqual(new Set(await store.coveredBy(message)), new Set([once, twice]));
    });
  });

  describe("rewriting", () => {
    it("gives a summary a new text, and keeps its id, its sources and its position", async ({ store, talk }) => {
      const leaf = await foldPlaces(store, talk.id, [0, 3], "badly put, quokka");
      const [old] = await store.summaries({ ids: [leaf] });
      const place = await itemOf(store, talk.id, leaf);
      const before = (await store.conversation(talk.id))?.totals;
      const draft = summary("well put, wombat", { tokens: 5, level: "extractive", model: "scripted/two" });
      assert.deepEqual(await store.rewrite({ summary: leaf, revision: 0 }, draft), {
        kind: "written",
        change: 1,
        revision: 1,
      });
      const [now] = await store.summaries({ ids: [leaf] });
      assert.deepEqual(now, { ...old, ...draft, revision: 1 });
      assert.deepEqual(await itemOf(store, talk.id, leaf), { ...place, tokens: 5 });
      assert.equal((await store.conversation(talk.id))?.totals.contextTokens, (before?.contextTokens ?? 0) + 4);
      const [journalled] = await store.journal({ conversation: talk.id, limit: 1 });
      assert.equal(journalled?.operation, "rewrite");
      assert.match(journalled.before.summaries[0]?.text ?? "", /badly put/);
      assert.match(journalled.after.summaries[0]?.text ?? "", /well put/);
    });

    it("is found by its new words and not by its old ones, indexed before or not", async ({ store, talk }) => {
      const words = { mode: "full_text", scope: "summaries", sort: "relevance", limit: 5 } as const;
      const found = async (pattern: string) => (await findAll(store, { ...words, pattern })).map(({ id }) => id);
      const indexed = await foldPlaces(store, talk.id, [0, 1], "quokka");
      await store.index(1_000);
      const fresh = await foldPlaces(store, talk.id, [1, 2], "numbat");
      for (const id of [indexed, fresh]) await store.rewrite({ summary: id, revision: 0 }, summary("wombat"));
      assert.deepEqual(await found("quokka"), []);
      assert.deepEqual(await found("numbat"), []);
      assert.deepEqual(new Set(await found("wombat")), new Set([indexed, fresh]));
      await store.index(1_000);
      assert.deepEqual(new Set(await found("wombat")), new Set([indexed, fresh]));
    });

    it("does not touch the context's tokens when the summary is below another", async ({ store, talk }) => {
      const low = await foldPlaces(store, talk.id, [0, 1], "low");
      await store.fold(talk.id, [await itemOf(store, talk.id, low)], summary("high", { tokens: 0 }));
      const before = (await store.conversation(talk.id))?.totals;
      await store.rewrite({ summary: low, revision: 0 }, summary("lower", { tokens: 8 }));
      assert.deepEqual((await store.conversation(talk.id))?.totals, before);
    });

    itOn(subject, onTalk)("drafted from what has been forgotten since is stale", forgetBetween, ["summary_outdated"]);

    it("from an outdated text is stale; of an unknown summary, not found", async ({ store, talk }) => {
      const leaf = await foldPlaces(store, talk.id, [0, 3], "one");
      await store.rewrite({ summary: leaf, revision: 0 }, summary("two"));
      assert.equal((await store.rewrite({ summary: leaf, revision: 0 }, summary("three"))).kind, "stale");
      assert.equal((await store.summaries({ ids: [leaf] }))[0]?.text, "two");
      await refuses("not_found", () => store.rewrite({ summary: "sum_0000000000000000", revision: 0 }, summary("x")));
      assert.equal(
        (await store.fold(talk.id, [await itemOf(store, talk.id, leaf)], summary("up", { tokens: 0 }))).kind,
        "written",
      );
      await store.append(talk.id, [toAppendable(createHost("h").says(user("m0")))]);
    });
  });
}

async function forgetBetween({ store }: { readonly store: Store }): Promise<void> {
  const talk = await store.open({ sessionId: "s" });
  await say(store, talk, createHost("h"), ...numbered(4, (index) => `m${index}`));
  const leaf = await foldPlaces(store, talk.id, [0, 3], "one");
  const { forgets } = (await store.conversation(talk.id)) ?? { forgets: -1 };
  const [first = assert.fail()] = await store.messages({ conversation: talk.id, limit: 1 });
  await store.forget(null, await store.planForget(null, { kind: "message", id: first.id }));
  const [now] = await store.summaries({ ids: [leaf] });
  const plan = { summary: leaf, revision: now?.revision ?? 0 };
  assert.equal((await store.rewrite({ ...plan, forgets }, summary("two"))).kind, "stale");
  assert.equal((await store.rewrite({ ...plan, forgets: forgets + 1 }, summary("two"))).kind, "written");
}
