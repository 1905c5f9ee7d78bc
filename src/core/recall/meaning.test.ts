/** Searching by meaning: what words do not find is found, and whatever the model does, words are searched. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { freshLcms } from "../../../test/support/fresh-lcm.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { createScriptedEmbedder, refusing, type ScriptedEmbedder } from "../../../test/support/scripted-embedder.ts";
import { systemNow } from "../../store/sqlite/store.ts";
import { createLcm, type Lcm } from "../lcm.ts";
import type { Store } from "../model/store.ts";
import { caveatSentence } from "./grep.ts";

const onLcm = freshLcms("meaning");
const everywhere = { kind: "all", conversations: null } as const;

const same = [["car", "automobile", "vehicle"]];

/** A conversation about cars and other things, embedded. */
async function withCars(store: Store, embedder = createScriptedEmbedder(same)) {
  const host = createHost("h");
  const others = ["the boat sank", "a tree grew", "rain fell all night", "we ate soup", "bread was cheap", "he slept"];
  for (const text of [...others, "my automobile needs oil", ...others]) host.says(user(text));
  await store.append((await store.open({ sessionId: "s" })).id, host.entries.map(toAppendable));
  const lcm = createLcm({ store, clock: { now: systemNow }, embedder });
  await lcm.makeVectors();
  return { lcm, embedder };
}

const found = async (lcm: Lcm, pattern: string, more = {}): Promise<readonly string[]> =>
  (await lcm.grep({ pattern, reach: everywhere, ...more })).hits.map(({ snippet }) => snippet);

describe("searching by meaning", () => {
  it("finds what no word of the question is in", async () => {
    await onLcm(async ({ lcm: plain, store }) => {
      const { lcm } = await withCars(store);
      assert.deepEqual(await found(plain, "car"), []);
      assert.equal((await found(lcm, "car"))[0], "my automobile needs oil");
    });
  });

  it("leaves regular expressions, orders by time, phrases, summaries and files to words", async () => {
    await onLcm(async ({ store }) => {
      const { lcm, embedder } = await withCars(store);
      const asked = embedder.asked.length;
      assert.deepEqual(await found(lcm, "ca.", { mode: "regex" }), []);
      for (const more of [{ sort: "recency" }, { sort: "oldest" }, { scope: "summaries" }, { scope: "files" }])
        assert.deepEqual(await found(lcm, "car", more), [], JSON.stringify(more));
      assert.equal(embedder.asked.length, asked, "and does not embed for them");
      assert.deepEqual(await found(lcm, '"car"'), []);
    });
  });

  it("changes nothing without an embedder, nor costs a call", async () => {
    await onLcm(async ({ lcm, store }) => {
      await withCars(store);
      const { hits, caveats } = await lcm.grep({ pattern: "automobile", reach: everywhere });
      assert.deepEqual([hits.length, caveats], [1, []]);
    });
  });
});

describe("guarantee 22, by meaning: what was not searched is said, and words are searched in any case", () => {
  const cases: readonly (readonly [string, (embedder: ScriptedEmbedder) => void, RegExp])[] = [
    ["refuses", (embedder) => embedder.play(() => refusing("the server is down")), /the server is down/],
    ["breaks", (embedder) => embedder.play(() => assert.fail("out of memory")), /scripted failed: out of memory/],
    ["hangs", (embedder) => embedder.play(async () => await new Promise(() => undefined)), /did not answer within 2 s/],
    [
      "answers with the wrong number of vectors",
      (embedder) => embedder.play(() => ({ kind: "vectors", model: "m", vectors: [] })),
      /returned 0 vectors for 1 texts/,
    ],
  ];
  for (const [what, break_, expected] of cases) {
    it(`if the model ${what}`, async () => {
      await onLcm(async ({ store }) => {
        const { lcm, embedder } = await withCars(store);
        break_(embedder);
        const { hits, caveats } = await lcm.grep({ pattern: "automobile", reach: everywhere }, { timeoutMs: 4_000 });
        assert.deepEqual(
          hits.map(({ snippet }) => snippet),
          ["my automobile needs oil"],
        );
        assert.equal(caveats.length, 1);
        assert.match(caveats.map((caveat) => caveatSentence(caveat, "arguments")).join(), expected);
      });
    });
  }

  it("if the vectors are of another model, or of another size", async () => {
    await onLcm(async ({ store }) => {
      const { embedder } = await withCars(store);
      const other = createLcm({
        store,
        clock: { now: systemNow },
        embedder: createScriptedEmbedder([], { name: "new" }),
      });
      for (const break_ of [
        other,
        createLcm({
          store,
          clock: { now: systemNow },
          embedder: { ...embedder, embed: async () => await Promise.resolve(tiny) },
        }),
      ]) {
        const { hits, caveats } = await break_.grep({ pattern: "automobile", reach: everywhere });
        assert.deepEqual([hits.length, caveats], [1, [{ kind: "unembedded", messages: 13, of: 13 }]]);
      }
    });
  });
  const tiny = { kind: "vectors", model: "test/scripted", vectors: [Float32Array.of(1, 2, 3)] } as const;

  it("closing closes the embedder", async () => {
    await onLcm(async ({ store }) => {
      const { lcm, embedder } = await withCars({ ...store, close: async () => await Promise.resolve() });
      await lcm.close();
      assert.ok(embedder.isClosed());
    });
  });
});
