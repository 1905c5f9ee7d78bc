/** Contract: deep copies of a summary graph into another conversation. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { messageFromStore } from "../../src/core/messages/codec.ts";
import type { ConversationId } from "../../src/core/model/types.ts";
import { checkLossless, flattened } from "../support/lossless.ts";
import { createHost, turnWithTool } from "../support/scripted-host.ts";
import {
  dissolveAt,
  foldPlaces,
  further,
  itOn,
  itemOf,
  nowhere,
  numbered,
  onStore,
  refuses,
  say,
  shownTexts,
  summary,
} from "./ground.ts";
import type { SceneOf, StoreUnderTest } from "./ground.ts";

const planted = further(onStore, async ({ store }) => {
  const source = await store.open({ sessionId: "source" });
  const giver = createHost("g");
  for (let turn = 0; turn < 2; turn++)
    for (const raw of turnWithTool(`c${turn}`, `q${turn}`, `a${turn}`)) giver.says(raw);
  await say(store, source, giver, "g9", "g10", "g11", "g12");
  for (const place of [0, 1, 2, 3]) await foldPlaces(store, source.id, [place, place + 1], `leaf ${place}`);
  await foldPlaces(store, source.id, [0, 1], "condensed 0");
  await foldPlaces(store, source.id, [1, 2], "condensed 1");
  const rest = (await store.context(source.id)).slice(2, 4);
  await store.fold(source.id, rest, summary("leaf 4", { level: "truncated", model: "scripted/one" }));

  const target = await store.open({ sessionId: "target" });
  const taker = createHost("t");
  await say(store, target, taker, "t1", "t2", "t3");
  /** Source: two condensed summaries and a leaf over ten messages, and two messages that are not folded. */
  return { source, giver, target, taker };
});
type Scene = SceneOf<typeof planted>;

const inherited = ({ giver }: Scene) =>
  giver.entries.slice(0, 10).flatMap((entry) => (entry.kind === "message" ? [entry.raw] : []));

const check = async (scene: Scene, copied: ReturnType<typeof inherited>): Promise<void> =>
  await checkLossless(
    scene.store,
    [
      { conversation: scene.source.id, entries: scene.giver.entries },
      { conversation: scene.target.id, entries: scene.taker.entries, inherited: copied },
    ],
    { expected: ["summary_below_normal"] },
  );

export function testTransplant(subject: StoreUnderTest): void {
  const it = itOn<Scene>(subject, (on, test) => planted(on, test, ["summary_below_normal"]));

  describe("transplanting", () => {
    it("copies the summaries of a context, with everything below them, before the target's own", async (scene) => {
      const { store, source, target } = scene;
      const before = {
        source: await store.context(source.id),
        target: (await store.conversation(target.id))?.totals,
      };
      assert.deepEqual(await store.transplant({ source: source.id, target: target.id }), {
        kind: "written",
        change: 1,
        contextItems: 3,
        summaries: 7,
        messages: 10,
        carried: 0,
      });
      assert.deepEqual(await shownTexts(store, target.id), ["condensed 0", "condensed 1", "leaf 4", "t1", "t2", "t3"]);
      assert.deepEqual(await store.context(source.id), before.source);
      const after = (await store.conversation(target.id))?.totals;
      assert.deepEqual([after?.messages, after?.summaries, after?.contextItems], [13, 7, 6]);
      assert.equal(after?.contextMessageTokens, before.target?.contextMessageTokens);
      const [journalled] = await store.journal({ conversation: target.id, limit: 1 });
      assert.equal(journalled?.operation, "transplant");
      await check(scene, inherited(scene));
    });

    it("nothing refers across; keys are new, and text, level, model, times and links are the original's", async (scene) => {
      const { store, source, target } = scene;
      await store.transplant({ source: source.id, target: target.id });
      const [originals, copies] = await Promise.all(
        [source, target].map(({ id }) => store.summaries({ conversation: id })),
      );
      assert.ok(originals !== undefined && copies !== undefined);
      const ids = new Set(originals.map(({ id }) => id));
      assert.ok(
        copies.every(({ id }) => !ids.has(id)),
        "every copy has its own id",
      );
      const described = (all: typeof originals) =>
        all.map(({ id: _, conversation: __, ...rest }) => rest).toSorted((a, b) => (a.text < b.text ? -1 : 1));
      assert.deepEqual(described(copies), described(originals));

      const graph = async (conversation: ConversationId): Promise<readonly string[]> => {
        const rows = await store.summaries({ conversation });
        const textOf = new Map<string | number, string>(rows.map(({ id, text }) => [id, text]));
        for (const { id, text } of await store.messages({ conversation })) textOf.set(id, text);
        const sources = await store.sources(rows.map(({ id }) => id));
        return rows
          .map(
            ({ id, text }) =>
              `${text} ← ${[...(sources.get(id)?.messages ?? []), ...(sources.get(id)?.summaries ?? [])].map((below) => textOf.get(below) ?? "foreign").join(" | ")}`,
          )
          .toSorted();
      };
      assert.deepEqual(await graph(target.id), await graph(source.id));
      const keys = (await store.messages({ conversation: target.id })).map(({ key }) => key);
      assert.equal(new Set(keys).size, keys.length);
      assert.ok(keys.every((key) => !key.startsWith("g-")));
      await store.rewrite({ summary: copies[0]?.id ?? "sum_0", revision: 0 }, summary("only here"));
      assert.equal((await store.summaries({ ids: [originals[0]?.id ?? "sum_0"] }))[0]?.text, originals[0]?.text);
    });

    it("a second transplant, or one whose text exists already, is a duplicate and changes nothing", async (scene) => {
      const { store, source, target } = scene;
      await store.transplant({ source: source.id, target: target.id });
      const before = await store.conversation(target.id);
      const again = await store.transplant({ source: source.id, target: target.id });
      assert.ok(again.kind === "duplicate");
      assert.deepEqual([again.existing.length, again.copied], [7, 10]);
      assert.deepEqual(await store.conversation(target.id), before);
    });

    it("a source without summaries gives nothing; a conversation is not transplanted into itself or from nowhere", async (scene) => {
      const { store, source, target } = scene;
      assert.deepEqual(await store.transplant({ source: target.id, target: source.id }), { kind: "empty" });
      await refuses("invalid", () => store.transplant({ source: source.id, target: source.id }));
      await refuses("not_found", () => store.transplant({ source: nowhere, target: target.id }));
      await refuses("not_found", () => store.transplant({ source: source.id, target: nowhere }));
      await check(scene, []);
    });

    it("into an empty conversation, which then continues after it", async (scene) => {
      const { store, source } = scene;
      const empty = await store.open({ sessionId: "empty" });
      await store.transplant({ source: source.id, target: empty.id });
      const host = createHost("e");
      await say(store, empty, host, "e1");
      assert.deepEqual(await shownTexts(store, empty.id), ["condensed 0", "condensed 1", "leaf 4", "e1"]);
      const lists = [{ conversation: empty.id, entries: host.entries, inherited: inherited(scene) }];
      await checkLossless(store, lists, { expected: ["summary_below_normal"] });
    });

    it("copies are ordinary messages: dissolved, folded with the target's own, transplanted on", async (scene) => {
      const { store, source, target } = scene;
      await store.transplant({ source: source.id, target: target.id });
      const [first, , last] = await store.context(target.id);
      assert.ok(first?.kind === "summary" && last?.kind === "summary");
      await dissolveAt(store, target.id, first.id);
      await check(scene, inherited(scene));
      await dissolveAt(store, target.id, last.id);
      await check(scene, inherited(scene));
      const texts = await shownTexts(store, target.id);
      assert.deepEqual(texts, ["leaf 0", "leaf 1", "condensed 1", "g9", "g10", "t1", "t2", "t3"]);
      await foldPlaces(store, target.id, [4, 6], "across the seam");
      await check(scene, inherited(scene));
      const further = await store.open({ sessionId: "further" });
      await store.transplant({ source: target.id, target: further.id });
      const passedOn = (await flattened(store, further.id)).map(messageFromStore);
      const folded = (await flattened(store, target.id)).filter(({ text }) => !["g9", "t3"].includes(text));
      assert.deepEqual(passedOn, folded.map(messageFromStore));
    });

    it("making room moves later items only up to the next gap that fits", async (scene) => {
      const { store, source, target, taker } = scene;
      await say(store, target, taker, "t4", "t5", "t6", "t7", "t8");
      await foldPlaces(store, target.id, [2, 5], "t3 to t6");
      await store.transplant({ source: source.id, target: target.id });
      const places = async () => (await store.context(target.id)).map(({ ordinal }) => ordinal);
      const last = (await places()).slice(-2);
      const [, second] = await store.context(target.id);
      assert.ok(second?.kind === "summary");
      const { ordinal } = await itemOf(store, target.id, second.id);
      const outcome = await store.dissolve({ conversation: target.id, summary: second.id, ordinal });
      assert.deepEqual(outcome, { kind: "written", change: 2, items: 2, shifted: 4 });
      assert.deepEqual((await places()).slice(-2), last, "what comes after the gap stays in place");
      await check(scene, inherited(scene));
    });

    it("and in a long context without a gap, all of them, in order", async (scene) => {
      const { store, source, target, taker } = scene;
      await say(store, target, taker, ...numbered(2_300, (said) => `long ${said}`));
      await store.transplant({ source: source.id, target: target.id });
      const [, , last] = await store.context(target.id, { limit: 3 });
      assert.ok(last?.kind === "summary");
      const outcome = await store.dissolve({ conversation: target.id, summary: last.id, ordinal: last.ordinal });
      assert.deepEqual(outcome, { kind: "written", change: 2, items: 2, shifted: 2_303 });
      await check(scene, inherited(scene));
    });

    it("a rewind in the target leaves what was transplanted", async (scene) => {
      const { store, source, target, taker } = scene;
      await store.transplant({ source: source.id, target: target.id });
      await foldPlaces(store, target.id, [3, 5], "t1 to t3");
      taker.goesBackTo("t-1");
      await say(store, target, taker, "t4");
      assert.deepEqual(await shownTexts(store, target.id), ["condensed 0", "condensed 1", "leaf 4", "t1", "t4"]);
      await check(scene, inherited(scene));
    });
  });
}
