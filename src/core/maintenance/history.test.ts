import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openSqlite } from "../../store/sqlite/store.ts";
import { summary } from "../../../test/store-contract/ground.ts";
import { makeDeepConversation } from "../../../test/support/deep-conversation.ts";
import type { DeepConversation } from "../../../test/support/deep-conversation.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { history, planUndo, undo } from "./history.ts";
import { messageIdOf } from "../model/types.ts";
import type { ConversationId, SummaryId } from "../model/types.ts";
import type { PartOf, Store } from "../model/store.ts";

const [d3, d2, d1, leaf] = [
  "sum_0000000100000014",
  "sum_000000010000001d",
  "sum_0000000100000021",
  "sum_0000000100000023",
] as const;

let databases = 0;
const scratch = makeScratch("history");

const onDeep = (test: (store: Store, deep: DeepConversation) => Promise<void>) => async (): Promise<void> => {
  const path = join(scratch, `${++databases}`, "lcm.db");
  const deep = await makeDeepConversation(path);
  const store = await openSqlite({ path });
  try {
    await test(store, deep);
  } finally {
    await store.close();
  }
};

async function rewrite(store: Store, id: SummaryId, tokens: number, partOf?: PartOf): Promise<number> {
  const [{ revision } = assert.fail(id)] = await store.summaries({ ids: [id] });
  const outcome = await store.rewrite({ summary: id, revision }, summary(`anew in ${tokens}`, { tokens }), partOf);
  return outcome.kind === "written" ? outcome.change : assert.fail(outcome.reason);
}

async function dissolve(store: Store, conversation: ConversationId, id: SummaryId, purge = false): Promise<number> {
  const { ordinal } = (await store.context(conversation)).find((item) => item.id === id) ?? assert.fail(id);
  const outcome = await store.dissolve({ conversation, summary: id, ordinal, purge });
  return outcome.kind === "written" ? outcome.change : assert.fail(outcome.reason);
}

const lines = async (store: Store): Promise<readonly string[]> =>
  (await history(store)).map(({ operation, what, state }) => `${operation}: ${what} (${state})`);

describe("history", () => {
  it(
    "is empty if nothing was changed",
    onDeep(async (store) => assert.deepEqual(await history(store), [])),
  );

  it(
    "describes each kind of change in one line, newest first",
    onDeep(async (store, { deep, older, young, marked, extractive }) => {
      await rewrite(store, d1, 20);
      const repair = await rewrite(store, marked, 12, { operation: "repair" });
      await rewrite(store, extractive, 12, { operation: "repair", change: repair });
      await dissolve(store, deep, leaf, true);
      await store.transplant({ source: older, target: young });
      const target = { kind: "message", id: messageIdOf(older, 1) } as const;
      await store.forget(null, await store.planForget(null, target));
      assert.deepEqual(await lines(store), [
        "forget: msg_2-1, 2 summaries to rewrite (for good)",
        "transplant: 2 → 3, 2 summaries, 8 messages (holds)",
        `dissolve: ${leaf} dissolved into 4 items, removed (holds)`,
        "repair: 2 summaries, text since forgotten (holds)",
        `rewrite: ${d1} d1 34 → 20 tokens (holds)`,
      ]);
    }),
  );

  it(
    "reports the purge of a summary that was no longer in the context",
    onDeep(async (store, { deep }) => {
      await dissolve(store, deep, leaf);
      const purged = await store.dissolve({ conversation: deep, summary: leaf, ordinal: null, purge: true });
      assert.ok(purged.kind === "written");
      assert.deepEqual([purged.items, purged.shifted], [0, 0]);
      assert.equal((await lines(store))[0], `dissolve: ${leaf} removed (holds)`);
    }),
  );

  it(
    "compares the first and last text of a summary, and adds up several",
    onDeep(async (store) => {
      const twice = await rewrite(store, d1, 20);
      await rewrite(store, d1, 18, { change: twice });
      const both = await rewrite(store, d2, 20);
      await rewrite(store, d3, 30, { change: both });
      assert.deepEqual(await lines(store), [
        "rewrite: 2 summaries, 110 → 50 tokens (holds)",
        `rewrite: ${d1} d1 34 → 18 tokens (holds)`,
      ]);
      const [change] = await history(store, { change: twice });
      assert.deepEqual(
        change?.steps.map(({ texts }) => texts?.after),
        ["anew in 20", "anew in 18"],
      );
      assert.equal((await history(store, { limit: 1 })).length, 1);
    }),
  );

  it(
    "reports what was undone, by which change, and how to redo it",
    onDeep(async (store, { deep }) => {
      const change = await rewrite(store, d1, 20);
      await rewrite(store, d3, 30, { change });
      const part = (await undo(store, change, d1)).change ?? 0;
      assert.deepEqual(await lines(store), [
        "undo: undid part of change 1 (rewrite) (holds)",
        "rewrite: 2 summaries, 103 → 50 tokens (partly undone)",
      ]);
      const rest = (await undo(store, change)).change ?? 0;
      const [, , first] = await history(store);
      assert.deepEqual([first?.state, first?.undoneBy, first?.wayBack], ["undone", [part, rest], `lcm undo ${rest}`]);
      await undo(store, rest);
      await dissolve(store, deep, leaf);
      assert.deepEqual(await lines(store), [
        `dissolve: ${leaf} dissolved into 4 items (holds)`,
        `undo: undid change ${rest} (undo) (holds)`,
        "undo: undid part of change 1 (rewrite) (undone)",
        "undo: undid part of change 1 (rewrite) (holds)",
        "rewrite: 2 summaries, 103 → 50 tokens (partly undone)",
      ]);
    }),
  );

  it(
    "of one conversation lists every change that touched it, in full",
    onDeep(async (store, { older, truncated, marked }) => {
      const change = await rewrite(store, truncated, 12, { operation: "repair" });
      await rewrite(store, marked, 12, { operation: "repair", change });
      await rewrite(store, d1, 20);
      const [only, ...others] = await history(store, { conversation: older });
      assert.deepEqual(others, []);
      assert.deepEqual([only?.change, only?.conversations, only?.what], [1, [1, 2], "2 summaries, 51 → 24 tokens"]);
    }),
  );
});

describe("planning an undo", () => {
  it(
    "names the command that removes each obstacle",
    onDeep(async (store, { deep, truncated }) => {
      const first = await rewrite(store, truncated, 12);
      const second = await rewrite(store, d1, 20);
      const remedies = async (change: number, only?: SummaryId): Promise<readonly (string | null)[]> =>
        (await planUndo(store, change, only)).obstacles.map(({ remedy }) => remedy);
      assert.deepEqual(await remedies(first), [`lcm undo ${second}`]);
      assert.deepEqual(await undo(store, first), { plan: await planUndo(store, first), change: null });
      await undo(store, second);
      assert.deepEqual(await remedies(first), []);

      const both = await rewrite(store, truncated, 14);
      await rewrite(store, d1, 20, { change: both });
      assert.deepEqual(await remedies(both, truncated), [`lcm undo ${both} --summary ${d1}`]);
      assert.deepEqual([(await planUndo(store, both, d1)).summary, (await planUndo(store, both)).summary], [d1, null]);

      const opened = await dissolve(store, deep, leaf);
      const run = (await store.context(deep)).slice(4, 8);
      const folded = await store.fold(deep, run, summary("folded again"));
      assert.ok(folded.kind === "written");
      assert.deepEqual(new Set(await remedies(opened)), new Set([`lcm dissolve 1 --summary ${folded.summary}`]));
      await dissolve(store, deep, folded.summary);
      assert.deepEqual(await remedies(opened), []);
    }),
  );

  it(
    "requires purging what was written from a new text before that text is undone",
    onDeep(async (store, { deep }) => {
      const [, , , fourth, fifth] = await store.context(deep);
      assert.ok(fourth?.kind === "summary" && fifth?.kind === "summary");
      const change = await rewrite(store, fifth.id, 12);
      await new Promise((resolve) => setTimeout(resolve, 2));
      const run = (await store.context(deep)).slice(3, 5);
      const folded = await store.fold(deep, run, summary("over both"));
      assert.ok(folded.kind === "written");
      const { obstacles } = await planUndo(store, change);
      assert.deepEqual(
        obstacles.map(({ remedy }) => remedy),
        [`lcm dissolve 1 --summary ${folded.summary} --purge`],
      );
      await dissolve(store, deep, folded.summary, true);
      assert.deepEqual((await planUndo(store, change)).obstacles, []);
    }),
  );

  it(
    "of a transplant names the command that copies again",
    onDeep(async (store, { deep, young }) => {
      const outcome = await store.transplant({ source: deep, target: young });
      assert.ok(outcome.kind === "written");
      assert.equal((await planUndo(store, outcome.change)).again, "lcm transplant 1 3");
      const undone = (await undo(store, outcome.change)).change ?? 0;
      const [taken, planted] = await history(store);
      assert.deepEqual([taken?.wayBack, planted?.wayBack], ["lcm transplant 1 3", "lcm transplant 1 3"]);
      assert.match(taken?.steps[0]?.what ?? "", /^1 → 3, \d+ summaries, \d+ messages: copies removed$/);
      assert.equal((await undo(store, undone)).change, null);
    }),
  );
});
