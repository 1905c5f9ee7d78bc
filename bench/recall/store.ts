/** Stores the conversations of a data set as the product would: imported, compacted without a model, and indexed. */

import { rmSync } from "node:fs";
import { join } from "node:path";
import { createLcm, type Lcm } from "../../src/core/lcm.ts";
import { resolveSettings } from "../../src/core/model/settings.ts";
import type { ConversationId, Message, SummaryId } from "../../src/core/model/types.ts";
import { openSqlite, systemNow } from "../../src/store/sqlite/store.ts";
import { makeScratch } from "../../test/support/scratch.ts";
import type { Json } from "../../src/core/base/json.ts";
import type { DataSet, Sample } from "./data.ts";

/** A conversation in the store. */
export interface Stored {
  readonly lcm: Lcm;
  readonly sample: Sample;
  readonly conversation: ConversationId;
  readonly messages: readonly Message[];
  /** The keys of the messages below each leaf. */
  readonly leaves: ReadonlyMap<SummaryId, readonly string[]>;
}

export interface StoredSet {
  readonly name: string;
  readonly conversations: readonly Stored[];
  readonly close: () => Promise<void>;
}

/** Leaves small enough that a conversation of some 20,000 tokens has many, and nothing left unfolded. */
export const settings = { leafChunkTokens: 2_000, leafTargetTokens: 400, freshTailCount: 0 };

export async function storeDataSet({ name, samples }: DataSet): Promise<StoredSet> {
  const folder = makeScratch("recall");
  const store = await openSqlite({ path: join(folder, "lcm.db") });
  const { values } = resolveSettings({ env: {}, config: settings });
  const lcm = createLcm({ store, clock: { now: systemNow }, settings: values });
  const conversations: Stored[] = [];
  for (const sample of samples) conversations.push(await storeSample(lcm, sample));
  while ((await store.index(1_000)) > 0);
  return {
    name,
    conversations,
    async close() {
      await lcm.close();
      rmSync(folder, { recursive: true });
    },
  };
}

async function storeSample(lcm: Lcm, sample: Sample): Promise<Stored> {
  async function* source(): AsyncGenerator<{ readonly position: number; readonly value: Json }> {
    for (const [index, value] of sample.lines.entries()) yield { position: index + 1, value };
  }
  const { conversation } = await lcm.import(source(), { fallbackSessionId: sample.name });
  if (conversation === null) throw new Error(`nothing to import in ${sample.name}`);
  await lcm.compact({ conversation: conversation.id, mode: "sweep" });
  const messages = await lcm.store.messages({ conversation: conversation.id });
  const keys = new Map(messages.map(({ id, key }) => [id, key]));
  const summaries = await lcm.store.summaries({ conversation: conversation.id });
  const sources = await lcm.store.sources(summaries.filter(({ depth }) => depth === 0).map(({ id }) => id));
  const leaves = new Map([...sources].map(([id, below]) => [id, below.messages.map((each) => keys.get(each) ?? "")]));
  return { lcm, sample, conversation: conversation.id, messages, leaves };
}
