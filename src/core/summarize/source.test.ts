import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { openSqlite } from "../../store/sqlite/store.ts";
import { dissolveAt, foldPlaces } from "../../../test/store-contract/ground.ts";
import { makeScratch } from "../../../test/support/scratch.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { createScriptedModel } from "../../../test/support/scripted-model.ts";
import { createLcm } from "../lcm.ts";
import type { ConversationId, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { builtInTemplates } from "../prompts/summary.ts";
import { rewriteRules } from "../maintenance/rewrite.ts";
import { resolveSettings } from "../model/settings.ts";
import type { Source } from "./summarize.ts";
import { promptFor } from "./summarize.ts";
import { sourceOfSummary } from "./source.ts";
import type { Overlay } from "./source.ts";
import type { Timestamp } from "../base/time.ts";

const folder = makeScratch("summary-source");
after(() => rmSync(folder, { recursive: true, force: true }));

let databases = 0;
const clock = { now: (): Timestamp => "2026-11-15T08:00:00.000Z" as Timestamp };
const settings = resolveSettings({
  env: {},
  config: {
    freshTailCount: 2,
    leafChunkTokens: 600,
    leafTargetTokens: 80,
    condensedTargetTokens: 120,
    leafMinFanout: 4,
    summaryConcurrency: 1,
  },
}).values;

async function talkOf(messages: number): Promise<{ readonly store: Store; readonly id: ConversationId }> {
  const store = await openSqlite({ path: join(folder, `${++databases}.db`), housekeeping: false });
  const { id } = await store.open({ sessionId: "s", sessionKey: "agent:main:s" });
  const host = createHost("h");
  for (let at = 0; at < messages; at++) host.says(user(`m${at}: ${`the lamp of room ${at} is out. `.repeat(12)}`));
  await store.append(id, host.entries.map(toAppendable));
  return { store, id };
}

async function sourceOf(store: Store, id: SummaryId, overlay: Overlay = new Map()): Promise<Source> {
  const [summary] = await store.summaries({ ids: [id] });
  assert.ok(summary !== undefined);
  const conversation = await store.conversation(summary.conversation);
  assert.ok(conversation !== null);
  const source = await sourceOfSummary(store, summary, {
    targets: rewriteRules(settings, conversation),
    zone: "UTC",
    overlay,
  });
  assert.ok(source !== null);
  return source;
}

const before = async (...args: Parameters<typeof sourceOf>): Promise<string | null> =>
  (await sourceOf(...args)).previousContext;

describe("the source of a stored summary", () => {
  it("is what compaction sent to the model", async () => {
    const { store, id } = await talkOf(60);
    const model = createScriptedModel({ behaviour: () => "good" });
    const lcm = createLcm({ store, clock, settings, model });
    const { passes } = await lcm.compact({ conversation: id, mode: "sweep" });
    assert.deepEqual(new Set(passes.map(({ depth }) => depth)), new Set([0, 1]));
    for (const [at, { summary }] of passes.entries()) {
      const source = await sourceOf(store, summary);
      const { prompt } = promptFor({ settings, templates: builtInTemplates }, source, {}, "normal");
      assert.equal(prompt, model.calls[at]?.prompt);
    }
    await store.close();
  });

  it("is its sources as they are now, or as drafted", async () => {
    const { store, id } = await talkOf(8);
    const first = await foldPlaces(store, id, [0, 1], "the first leaf");
    const second = await foldPlaces(store, id, [1, 2], "the second leaf");
    const top = await foldPlaces(store, id, [0, 1], "both");
    const textsOf = (source: Source): readonly string[] => source.passages.map(({ text }) => text);
    assert.deepEqual(textsOf(await sourceOf(store, top)), ["the first leaf", "the second leaf"]);
    const draft = { text: "a draft of it", tokens: 40, fileIds: ["file_0123456789abcdef"] } as const;
    const drafted = await sourceOf(store, top, new Map([[second, draft]]));
    assert.deepEqual(textsOf(drafted), ["the first leaf", "a draft of it"]);
    assert.deepEqual([drafted.tokens, drafted.fileIds], [1 + 40, ["file_0123456789abcdef"]]);
    assert.equal(await before(store, second, new Map([[first, draft]])), "a draft of it");
    await store.close();
  });

  it("is null for a carried summary", async () => {
    const { store, id } = await talkOf(8);
    await foldPlaces(store, id, [0, 1], "leaf");
    const { id: next } = await store.openSegment({ sessionId: "t", sessionKey: "agent:main:s" }, { carryDepth: 0 });
    const [carried] = await store.summaries({ conversation: next });
    const conversation = await store.conversation(next);
    assert.ok(carried !== undefined && conversation !== null);
    const rules = rewriteRules(settings, conversation);
    assert.equal(await sourceOfSummary(store, carried, { targets: rules, zone: "UTC" }), null);
    await store.close();
  });
});

describe("the text before a summary", () => {
  it("is that of the preceding summary of its depth, however deep either was folded", async () => {
    const { store, id } = await talkOf(12);
    const leaves: SummaryId[] = [];
    for (let at = 0; at < 5; at++) leaves.push(await foldPlaces(store, id, [at, at + 1], `leaf ${at}`));
    const [zero, one, two, three, four] = leaves;
    assert.ok(zero && one && two && three && four);
    const left = await foldPlaces(store, id, [0, 1], "d1 of 0 and 1");
    const right = await foldPlaces(store, id, [1, 2], "d1 of 2 and 3");
    assert.equal(await before(store, two), "leaf 1", "up to a summary with one before it, and down again");
    assert.equal(await before(store, right), "d1 of 0 and 1");
    const top = await foldPlaces(store, id, [0, 1], "d2");
    assert.equal(await before(store, four), "leaf 3", "down two depths");
    assert.equal(await before(store, two), "leaf 1");
    assert.equal(await before(store, right), "d1 of 0 and 1");
    for (const first of [zero, left, top]) assert.equal(await before(store, first), null);
    await store.close();
  });

  it("is not given above depth 1", async () => {
    const { store, id } = await talkOf(18);
    for (let at = 0; at < 8; at++) await foldPlaces(store, id, [at, at + 1], `leaf ${at}`);
    for (let at = 0; at < 4; at++) await foldPlaces(store, id, [at, at + 1], `d1 ${at}`);
    await foldPlaces(store, id, [0, 1], "d2 a");
    const top = await foldPlaces(store, id, [1, 2], "d2 b");
    assert.equal(await before(store, top), null);
    await store.close();
  });

  it("is that of the nearest depth if there is none of its own", async () => {
    const { store, id } = await talkOf(12);
    for (let at = 0; at < 3; at++) await foldPlaces(store, id, [at, at + 1], `leaf ${at}`);
    const condensed = await foldPlaces(store, id, [1, 2], "d1 of 1 and 2");
    assert.equal(await before(store, condensed), "leaf 0");
    await store.close();
  });

  it("is found past a summary that was dissolved", async () => {
    const { store, id } = await talkOf(12);
    await foldPlaces(store, id, [0, 1], "leaf 0");
    const one = await foldPlaces(store, id, [1, 2], "leaf 1");
    await foldPlaces(store, id, [2, 3], "leaf 2");
    const dissolved = await foldPlaces(store, id, [1, 2], "was here");
    await dissolveAt(store, id, dissolved);
    await foldPlaces(store, id, [0, 2], "stands now");
    assert.equal(await before(store, one), "leaf 0");
    assert.match((await before(store, dissolved)) ?? "", /^\(Earlier messages exist/, "it is not in the context");
    await store.close();
  });
});
