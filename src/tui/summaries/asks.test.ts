import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ConversationId, SummaryId } from "../../core/model/types.ts";
import type { Store } from "../../core/model/store.ts";
import { dissolveAt, foldPlaces } from "../../../test/store-contract/ground.ts";
import { freshLcms } from "../../../test/support/fresh-lcm.ts";
import { portOver } from "../../../test/support/robot.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import type { Doing } from "../../operator/port.ts";
import { summariesAsks } from "./asks.ts";
import type { SummaryTree } from "./asks.ts";

const onDatabase = freshLcms("summaries-asks");

async function talk(store: Store, count: number): Promise<ConversationId> {
  const { id } = await store.open({ sessionId: "talk" });
  const host = createHost("talk");
  for (let each = 0; each < count; each++) host.says(user(`message ${each}, and enough words to be worth a summary`));
  await store.append(id, host.entries.map(toAppendable));
  return id;
}

/** Makes a conversation with this many messages, and returns how to ask about it. */
const onTalk = async (
  count: number,
  test: (store: Store, conversation: ConversationId, doing: Doing) => Promise<void>,
): Promise<void> =>
  await onDatabase(async ({ store, path }) => {
    const conversation = await talk(store, count);
    const port = portOver(path);
    try {
      await test(store, conversation, { port, signal: new AbortController().signal, onProgress: () => undefined });
    } finally {
      await port.close();
    }
  });

const topOf = async (conversation: ConversationId, doing: Doing): Promise<SummaryTree> =>
  await summariesAsks.summaryTree({ conversation }, doing);

const inShort = ({ entries }: SummaryTree): readonly string[] =>
  entries.map((entry) => (entry.kind === "summary" ? "summary" : `${entry.count} ${entry.place}`));

describe("the asks of the summaries screen", () => {
  it("groups raw messages into runs, and separates the fresh tail", async () =>
    await onTalk(60, async (store, id, doing) => {
      await foldPlaces(store, id, [0, 4], "first");
      await foldPlaces(store, id, [6, 10], "second");
      const top = await topOf(id, doing);
      assert.deepEqual(inShort(top), ["summary", "5 older", "summary", "13 older", "32 tail"]);
      assert.deepEqual(top.outside, []);
      assert.equal(top.strip?.rows.length, 1);
    }));

  it("counts raw messages without reading each", async () =>
    await onTalk(2_500, async (store, id, doing) => {
      assert.deepEqual(inShort(await topOf(id, doing)), ["2468 older", "32 tail"]);
      await foldPlaces(store, id, [100, 104], "first");
      const top = await topOf(id, doing);
      assert.deepEqual(inShort(top), ["495 anywhere", "summary", "1968 older", "32 tail"]);
    }));

  it("finds the path to a summary, inside or outside the context", async () =>
    await onTalk(8, async (store, conversation, doing) => {
      const leaves: SummaryId[] = [];
      for (let place = 0; place < 4; place++)
        leaves.push(await foldPlaces(store, conversation, [place, place + 1], `leaf ${place}`));
      const [first, , third] = leaves;
      assert.ok(first !== undefined && third !== undefined);
      const d1 = await foldPlaces(store, conversation, [0, 1], "d1");
      const other = await foldPlaces(store, conversation, [1, 2], "other d1");
      const d2 = await foldPlaces(store, conversation, [0, 1], "d2");
      const pathTo = async (summary: SummaryId) => await summariesAsks.summaryPath({ conversation, summary }, doing);
      assert.deepEqual((await pathTo(first))?.path, [d2, d1, first]);
      await dissolveAt(store, conversation, d2);
      await dissolveAt(store, conversation, d1);
      const reached = await pathTo(third);
      assert.deepEqual([reached?.path, reached?.isOutside], [[other, third], false]);
      const unreached = await pathTo(d1);
      assert.deepEqual([unreached?.path, unreached?.isOutside], [[d2, d1], true]);
      assert.deepEqual([...(unreached?.sources.keys() ?? [])], [d2]);
      assert.equal(await pathTo("sum_0000000000000bad"), null);
    }));
});
