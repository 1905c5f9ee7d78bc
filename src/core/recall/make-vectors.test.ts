/** Making vectors: every message once, stoppable anywhere, and whatever the model does. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { freshLcms } from "../../../test/support/fresh-lcm.ts";
import { createHost, toAppendable, user } from "../../../test/support/scripted-host.ts";
import { createScriptedEmbedder, refusing, vectorOf } from "../../../test/support/scripted-embedder.ts";
import type { Embedding } from "../model/embedder.ts";
import type { Store } from "../model/store.ts";
import { makeVectors } from "./make-vectors.ts";

const onLcm = freshLcms("make-vectors");

async function tell(store: Store, count: number, sessionId = "s"): Promise<void> {
  const host = createHost(sessionId);
  for (let n = 0; n < count; n++) host.says(user(`message number ${n} of ${sessionId}`));
  await store.append((await store.open({ sessionId })).id, host.entries.map(toAppendable));
}

describe("making vectors", () => {
  it("embeds every message once, in batches of the embedder's size, and records it", async () => {
    await onLcm(async ({ store }) => {
      await tell(store, 150);
      await tell(store, 30, "t");
      const embedder = createScriptedEmbedder();
      const progress: number[] = [];
      const made = await makeVectors({ store, embedder }, { onProgress: ({ embedded }) => progress.push(embedded) });
      assert.deepEqual(made, {
        embedded: 180,
        skipped: 0,
        model: "test/scripted/256/1",
        dropped: 0,
        outcome: "complete",
        problem: null,
      });
      assert.deepEqual(progress, [30, 94, 158, 180]);
      const texts = embedder.asked.slice(1).flatMap((request) => request.texts);
      assert.deepEqual([texts.length, new Set(texts).size], [180, 180]);
      assert.ok(embedder.asked.every((request) => request.texts.length <= 8 && request.kind === "passage"));
      assert.equal((await store.status()).embedders[0]?.embedded, 180);
      const again = await makeVectors({ store, embedder });
      assert.deepEqual([again.outcome, again.embedded], ["complete", 0]);
    });
  });

  it("stopped anywhere, it continues where it was, and embeds nothing twice", async () => {
    await onLcm(async ({ store }) => {
      await tell(store, 200);
      const seen: string[] = [];
      const embedder = createScriptedEmbedder();
      for (let runs = 1; ; runs++) {
        assert.ok(runs < 10);
        const stopping = new AbortController();
        const made = await makeVectors(
          { store, embedder },
          { signal: stopping.signal, onProgress: () => stopping.abort() },
        );
        if (made.outcome === "complete") break;
        assert.equal(made.outcome, "stopped");
        assert.equal((await store.status()).embedders[0]?.failure, null);
      }
      seen.push(...embedder.asked.flatMap(({ texts }) => texts).filter((text) => text.startsWith("message")));
      assert.deepEqual([seen.length, new Set(seen).size], [200, 200]);
    });
  });

  it("with another model everything is made again, and the old vectors are dropped only then", async () => {
    await onLcm(async ({ store }) => {
      await tell(store, 100);
      await makeVectors({ store, embedder: createScriptedEmbedder([], { name: "old" }) });
      const stopping = new AbortController();
      const embedder = createScriptedEmbedder([], { name: "new" });
      await makeVectors({ store, embedder }, { signal: stopping.signal, onProgress: () => stopping.abort() });
      const models = async () => (await store.status()).vectors.map(({ model, made }) => [model, made]);
      assert.deepEqual(await models(), [
        ["test/old/256/1", 100],
        ["test/new/256/1", 64],
      ]);
      assert.equal((await makeVectors({ store, embedder })).dropped, 1);
      assert.deepEqual(await models(), [["test/new/256/1", 100]]);
    });
  });

  it("a model that refuses, breaks, or answers with wrong sizes ends it with a problem that the status shows", async () => {
    const wrong: readonly (readonly [(texts: readonly string[]) => Embedding, RegExp])[] = [
      [() => refusing("it is gone"), /^it is gone$/],
      [() => assert.fail("it broke"), /scripted failed: it broke/],
      [() => ({ kind: "vectors", model: "m", vectors: [] }), /returned 0 vectors for \d texts/],
      [
        (texts) => ({ kind: "vectors", model: "m", vectors: texts.map(() => Float32Array.of()) }),
        /vectors of 0 numbers/,
      ],
      [
        (texts) => ({ kind: "vectors", model: "m", vectors: texts.map((_, at) => new Float32Array(at + 4).fill(1)) }),
        /of different lengths/,
      ],
      [
        (texts) => ({ kind: "vectors", model: "m", vectors: texts.map(() => Float32Array.of(1, Number.NaN)) }),
        /without numbers/,
      ],
      [
        (texts) => ({ kind: "vectors", model: "m", vectors: texts.map(() => Float32Array.of(0, 0)) }),
        /without numbers/,
      ],
      [
        (texts) => ({ kind: "vectors", model: "another", vectors: texts.map((text) => vectorOf(text)) }),
        /was replaced/,
      ],
    ];
    for (const [answer, expected] of wrong) {
      await onLcm(async ({ store }) => {
        await tell(store, 100);
        const embedder = createScriptedEmbedder();
        let steps = 0;
        const made = await makeVectors(
          { store, embedder },
          {
            onProgress() {
              if (++steps === 1) embedder.play(({ texts }) => answer(texts));
            },
          },
        );
        assert.equal(made.outcome, "failed");
        assert.match(made.problem ?? "", expected);
        assert.equal(made.embedded, 64);
        const { embedders, vectors } = await store.status();
        assert.deepEqual([embedders[0]?.failure, embedders[0]?.embedded], [made.problem, 64]);
        assert.equal(vectors[0]?.made, 64, "what was made before stays");
        embedder.play(undefined);
        assert.equal((await makeVectors({ store, embedder })).embedded, 36);
        assert.equal((await store.status()).embedders[0]?.failure, null);
      });
    }
  });

  it("without an embedder it says what to set", async () => {
    await onLcm(async ({ lcm }) => {
      await assert.rejects(lcm.makeVectors(), { code: "invalid", message: "no embedding model is configured" });
    });
  });
});
