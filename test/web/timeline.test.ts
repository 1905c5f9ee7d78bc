/** The timeline: whatever its resolution, it tells the same as the rows, and reads no more the longer a conversation is. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, describe, it } from "node:test";
import { createLcm } from "../../src/core/lcm.ts";
import { messageIdOf, seqOf } from "../../src/core/model/types.ts";
import type { ConversationId, SummaryId } from "../../src/core/model/types.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import type { NodeState, Timeline } from "../../src/web/contract.ts";
import { makeDeepConversation, type DeepConversation } from "../support/deep-conversation.ts";
import { longDatabase } from "../support/long-conversation.ts";
import { makeRecordedTalk, type RecordedTalk } from "../support/recorded-prompts.ts";
import { makeScratch } from "../support/scratch.ts";
import { withExplorer } from "./ground.ts";

const folder = makeScratch("web-timeline");
const path = join(folder, "lcm.db");
const talkPath = join(folder, "talk.db");
let made: DeepConversation;
let talk: RecordedTalk;
before(async () => {
  made = await makeDeepConversation(path);
  talk = await makeRecordedTalk(talkPath);
});

const countOf = (states: readonly NodeState[]): Partial<Record<NodeState, number>> => {
  const counts: Partial<Record<NodeState, number>> = {};
  for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
};

/** What the rows say of every message: by its leaf, the context, and the prompt. */
async function statesByRows(file: string, id: ConversationId): Promise<readonly NodeState[]> {
  const lcm = createLcm({
    store: await openSqlite({ path: file, housekeeping: false, readOnly: true }),
    clock: { now: systemNow },
  });
  try {
    const { report } = await lcm.assemble(id);
    const shown = new Set<unknown>(report.origins.flatMap((origin) => (origin.kind === "note" ? [] : [origin.id])));
    const items = new Set<unknown>((await lcm.store.context(id)).map((item) => item.id));
    const messages = await lcm.store.messages({ conversation: id });
    return messages.map(({ id: message, aside }) => {
      if (aside !== null) return "outside";
      if (shown.has(message)) return "prompt";
      return items.has(message) ? "evicted" : "below";
    });
  } finally {
    await lcm.close();
  }
}

describe("the states of messages", () => {
  it("are those of the rows", async () => {
    for (const id of [made.deep, made.older, made.young]) {
      const expected = await statesByRows(path, id);
      await withExplorer(path, {}, async ({ read }) => {
        const { messages, extent } = await read("timeline", { conversation: id });
        assert.deepEqual(extent, { from: 1, to: expected.length });
        assert.deepEqual(
          messages?.map(({ state }) => state),
          expected,
        );
      });
    }
  });

  it("in a recorded prompt are those of then: later ones were not there", async () => {
    await withExplorer(talkPath, {}, async ({ read }) => {
      const { conversation, folds } = talk;
      const { messages, summaries } = await read("timeline", { conversation, prompt: 12 });
      const states = messages?.map(({ state }) => state) ?? [];
      assert.deepEqual(countOf(states.slice(0, 8)), { below: 8 });
      assert.deepEqual(countOf(states.slice(8, 23)), { prompt: 15 });
      assert.deepEqual(countOf(states.slice(23)), { outside: 17 });
      assert.deepEqual(
        summaries.map(({ id, state }) => [id, state]),
        [
          [folds[0], "prompt"],
          [folds[1], "outside"],
        ],
      );
    });
  });
});

describe("a conversation of 100,000 messages", () => {
  it("tells the same from afar and from near, and never sends much", async () => {
    const file = await longDatabase();
    await withExplorer(file, {}, async ({ ask, cookie, read }) => {
      const conversation = 1 as ConversationId;
      const bytes: number[] = [];
      const get = async (query: string): Promise<Timeline> => {
        const { text } = await ask({ path: `/api/timeline?conversation=1&${query}`, headers: { cookie } });
        bytes.push(text.length);
        return JSON.parse(text);
      };
      const far = await get("cells=400");
      assert.deepEqual([far.extent, far.messages], [{ from: 1, to: 100_000 }, null]);
      assert.deepEqual([far.buckets[0]?.from, far.buckets.at(-1)?.to], [1, 100_000]);
      for (const [at, { from }] of far.buckets.entries())
        if (at > 0) assert.equal(from, (far.buckets[at - 1]?.to ?? 0) + 1, "buckets follow each other");
      // Of a stretch, and of each message in it.
      const bucket = far.buckets[200];
      assert.ok(bucket !== undefined);
      const near = await get(`from=${bucket.from}&to=${bucket.to}`);
      assert.equal(near.messages?.length, bucket.to - bucket.from + 1);
      assert.deepEqual(countOf(near.messages?.map(({ state }) => state) ?? []), bucket.states);
      assert.deepEqual([near.messages?.[0]?.at, near.messages?.[0]?.seq], [bucket.earliestAt, bucket.from]);
      const end = await get("from=99900&to=100000");
      assert.equal(end.messages?.at(-1)?.state, "prompt");
      // Summaries as single nodes where they are wide enough, else together, none twice.
      const all = [far, await get("from=1&to=50000"), await get("from=1&to=3000")];
      for (const { summaries, summaryBuckets } of all) assert.ok(summaries.length + summaryBuckets.length < 2_000);
      const counted = far.summaries.length + far.summaryBuckets.reduce((sum, { count }) => sum + count, 0);
      const { rows } = await read("conversations", {});
      assert.equal(counted, rows.find((row) => row.conversation.id === conversation)?.conversation.totals.summaries);
      assert.ok(Math.max(...bytes) < 500_000, `${Math.max(...bytes)} bytes at once`);
    });
  });

  it("is weighed bit by bit, until the tokens of all buckets are known", async () => {
    await withExplorer(await longDatabase(), {}, async ({ read }) => {
      const conversation = 1 as ConversationId;
      const first = await read("timeline", { conversation });
      assert.ok(first.buckets.some(({ tokens }) => tokens === null));
      let last = first;
      for (let calls = 0; calls < 20 && last.buckets.some(({ tokens }) => tokens === null); calls++)
        last = await read("timeline", { conversation });
      const sum = last.buckets.reduce((total, { tokens }) => total + (tokens ?? NaN), 0);
      const { messageTokens } = last.conversation.totals;
      assert.ok(Math.abs(sum - messageTokens) < messageTokens / 100, `${sum} of ${messageTokens}`);
    });
  });
});

describe("what the timeline marks", () => {
  it("are folds, resets and changes; near ones of a kind together", async () => {
    await withExplorer(path, {}, async ({ read }) => {
      const deep = await read("timeline", { conversation: made.deep });
      assert.deepEqual([deep.before, deep.after], [null, made.young]);
      const resets = deep.marks.filter(({ kind }) => kind === "reset");
      assert.deepEqual(
        resets.map(({ seq, words }) => [seq, words]),
        [[98, `reset: conversation ${made.young} continues it`]],
      );
      const folds = deep.marks.filter(({ kind }) => kind === "fold");
      assert.equal(
        folds.reduce((sum, { count }) => sum + count, 0),
        deep.conversation.totals.summaries,
      );
      const young = await read("timeline", { conversation: made.young });
      assert.deepEqual([young.before, young.after], [made.deep, null]);
    });
  });

  it("an empty conversation has no timeline, and no fault", async () => {
    const empty = join(folder, "empty.db");
    const store = await openSqlite({ path: empty, housekeeping: false });
    const { id } = await store.open({ sessionId: "empty" });
    await store.close();
    await withExplorer(empty, {}, async ({ read }) => {
      const { extent, messages, buckets, summaries, marks } = await read("timeline", { conversation: id });
      assert.deepEqual([extent, messages, buckets, summaries, marks], [null, null, [], [], []]);
      assert.deepEqual(await read("activity", { conversations: [id] }), [{ conversation: id, pace: [], recent: null }]);
    });
  });
});

describe("a summary on the timeline", () => {
  it("spans exactly the messages below it, and names the one above", async () => {
    await withExplorer(path, {}, async ({ read }) => {
      const { summaries, messages } = await read("timeline", { conversation: made.deep });
      const byId = new Map(summaries.map((each) => [each.id, each]));
      for (const { id, depth, from, to, above } of summaries) {
        const below = await messagesBelow(read, id);
        assert.deepEqual([below[0], below.at(-1), below.length], [from, to, to - from + 1]);
        if (above !== null) assert.equal(byId.get(above)?.depth, depth + 1);
      }
      for (const { seq, leaf } of messages ?? []) {
        const span = leaf === null ? null : byId.get(leaf);
        assert.ok(span === null || (span !== undefined && span.from <= seq && seq <= span.to));
      }
      assert.equal(messages?.at(-1)?.id, messageIdOf(made.deep, 98));
    });
  });
});

type Read = Parameters<Parameters<typeof withExplorer>[2]>[0]["read"];

async function messagesBelow(read: Read, summary: SummaryId): Promise<readonly number[]> {
  const { sources } = await read("sources", { summary });
  const below = await Promise.all(
    sources.map(async (each) =>
      each.kind === "message" ? [seqOf(each.message.id)] : await messagesBelow(read, each.summary.id),
    ),
  );
  return below.flat();
}
