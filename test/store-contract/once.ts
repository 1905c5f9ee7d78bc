/** Contract: a fold never shows a message twice, and never makes the context longer. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import { LcmError } from "../../src/core/base/errors.ts";
import type { ContextItem, Conversation } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { flattened } from "../support/lossless.ts";
import { createRandom } from "../support/random.ts";
import { toAppendable, user } from "../support/scripted-host.ts";
import {
  deliver,
  each,
  foldPlaces,
  further,
  itOn,
  nothingIsLost,
  numbered,
  onFile,
  onTalk,
  refuses,
  say,
  shownTexts,
  summary,
} from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";

/** A conversation of this many messages, of varying length; the test may lose none of them. */
const talking = (messages: number) =>
  further(
    onTalk,
    async ({ store, talk, host }) =>
      await say(
        store,
        talk,
        host,
        ...numbered(messages, (index) => `message ${index}${" and more".repeat(index % 5)}`),
      ),
    nothingIsLost,
  );

const tokensOf = (run: readonly ContextItem[]): number => run.reduce((sum, { tokens }) => sum + tokens, 0);

/**
 * Asserts that no message is reached twice (raw and through a summary, or through two) and that the totals match the
 * items.
 */
async function eachOnce(store: Store, { id }: Conversation): Promise<void> {
  const context = await store.context(id);
  const reached = (await flattened(store, id)).map((message) => message.id);
  assert.equal(new Set(reached).size, reached.length);
  assert.equal((await store.conversation(id))?.totals.contextTokens, tokensOf(context));
}

/** Null for what the store refused; anything else fails the test. */
function refusedAsNull(error: unknown): null {
  assert.ok(error instanceof LcmError && error.code === "invalid", String(error));
  return null;
}

export function testOnce(subject: StoreUnderTest): void {
  const it = itOn(subject, talking(8));

  describe("guarantee 5: a message is never both in the context and under a summary of it; every fold lowers its tokens", () => {
    it("of concurrent folds over overlapping runs, no two that share an item are written", async (scene) => {
      const { store, talk } = scene;
      const seen = await store.context(talk.id);
      const runs = [
        [0, 4],
        [2, 6],
        [3, 5],
        [4, 8],
        [0, 8],
      ] as const;
      const outcomes = await Promise.all(
        runs.map(([from, to]) => store.fold(talk.id, seen.slice(from, to), summary(`${from} to ${to}`))),
      );
      assert.deepEqual(each(outcomes, "kind"), ["written", "stale", "stale", "written", "stale"]);
      assert.deepEqual(await shownTexts(store, talk.id), ["0 to 4", "4 to 8"]);
      await eachOnce(store, talk);
    });

    it("the same run folded twice at once is folded once, even from another connection", async (scene) => {
      const { store, path, talk } = scene;
      await onFile(subject, path, async (rival) => {
        const run = (await store.context(talk.id)).slice(1, 5);
        const outcomes = await Promise.all(
          [store, rival, store, rival].map((each, index) => each.fold(talk.id, run, summary(`try ${index}`))),
        );
        assert.equal(outcomes.filter(({ kind }) => kind === "written").length, 1);
        assert.equal((await store.summaries({ conversation: talk.id })).length, 1);
        await eachOnce(store, talk);
      });
    });

    it("a fold that races an append takes exactly its run, and the appended messages come after it", async (scene) => {
      const { store, talk, host } = scene;
      for (let round = 0; round < 4; round++) {
        const seen = await store.context(talk.id);
        const run = seen.filter(({ kind }) => kind === "message").slice(-3);
        host.says(user(`said meanwhile, ${round}`));
        const newest = toAppendable(host.entries.at(-1) ?? assert.fail());
        const [folded] = await Promise.all([
          store.fold(talk.id, run, summary(`round ${round}`)),
          store.append(talk.id, [newest]),
        ]);
        assert.equal(folded.kind, "written");
        assert.deepEqual((await shownTexts(store, talk.id)).slice(-2), [`round ${round}`, `said meanwhile, ${round}`]);
        await eachOnce(store, talk);
        await say(store, talk, host, "more", "and more");
      }
    });

    it("a fold that races a rewind into its run leaves each message of the active branch once", async (scene) => {
      const { store, talk, host } = scene;
      const run = (await store.context(talk.id)).slice(2, 6);
      host.goesBackTo("h-4");
      host.says(user("another way"));
      await Promise.all([store.fold(talk.id, run, summary("the way that was left")), deliver(store, talk, host)]);
      await eachOnce(store, talk);
    });

    it("refuses a summary as long as its run, of any kind, and changes nothing", async (scene) => {
      const { store, talk } = scene;
      await foldPlaces(store, talk.id, [0, 1], "a leaf");
      await foldPlaces(store, talk.id, [1, 2], "a leaf");
      const before = await store.conversation(talk.id);
      for (const run of [(await store.context(talk.id)).slice(0, 2), (await store.context(talk.id)).slice(2)]) {
        const tokens = tokensOf(run);
        await refuses("invalid", () => store.fold(talk.id, run, summary("as long", { tokens })));
        await refuses("invalid", () => store.fold(talk.id, run, summary("longer", { tokens: tokens + 1 })));
      }
      assert.deepEqual(await store.conversation(talk.id), before);
    });

    itOn(subject, talking(40))(
      "any runs in any order, planned from what was seen just now or long ago",
      async ({ store, talk, host }) => {
        const random = createRandom(5);
        let seen = await store.context(talk.id);
        const met = { written: 0, stale: 0, refused: 0 };
        for (let step = 0; step < 60; step++) {
          if (random.chance(0.2)) seen = await store.context(talk.id);
          if (random.chance(0.1)) {
            await say(store, talk, host, `step ${step} says something`);
          }
          const from = random.below(seen.length);
          const piece = seen.slice(from, from + random.between(1, 6));
          const run = random.chance(0.2) ? piece : piece.filter(({ depth }) => depth === piece[0]?.depth);
          const tokens = random.between(0, tokensOf(run) + 1);
          const before = await store.conversation(talk.id);
          const outcome = await store.fold(talk.id, run, summary(`step ${step}`, { tokens })).catch(refusedAsNull);
          const after = await store.conversation(talk.id);
          assert.ok(before !== null && after !== null);
          met[outcome?.kind ?? "refused"] += 1;
          if (outcome?.kind === "written") {
            assert.equal(after.totals.contextTokens, before.totals.contextTokens - tokensOf(run) + tokens);
            assert.ok(after.totals.contextTokens < before.totals.contextTokens);
          } else assert.deepEqual(after, before);
          await eachOnce(store, talk);
        }
        assert.ok(Math.min(...Object.values(met)) >= 5, JSON.stringify(met));
      },
    );
  });
}
