import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { openSqlite, systemNow } from "../store/sqlite.ts";
import { makeScratch } from "../testing/scratch.ts";
import { exportTranscript, importTranscript } from "./ingest.ts";
import type { ImportTarget, SourceLine } from "./ingest.ts";
import type { Json } from "./model.ts";
import type { Store } from "./ports.ts";

async function* linesOf(values: readonly Json[]): AsyncGenerator<SourceLine> {
  for (const [index, value] of values.entries()) yield { position: index + 1, text: JSON.stringify(value) };
}

const chat = (...texts: readonly string[]): readonly Json[] => texts.map((text) => ({ role: "user", content: text }));

async function onStore(
  test: (
    bring: (values: readonly Json[], target?: Partial<ImportTarget>) => ReturnType<typeof importTranscript>,
    store: Store,
  ) => Promise<void>,
): Promise<void> {
  const folder = makeScratch("ingest");
  const store = await openSqlite({ path: join(folder, "lcm.db") });
  try {
    const deps = { store, clock: { now: systemNow } };
    await test(
      async (values, target) => await importTranscript(deps, linesOf(values), { fallbackSessionId: "log", ...target }),
      store,
    );
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

describe("importing a chat that does not say what it is called", () => {
  it("continues the same chat when it has grown", async () => {
    await onStore(async (bring) => {
      const first = await bring(chat("a", "b"));
      const grown = await bring(chat("a", "b", "c"));
      assert.equal(grown.conversation?.id, first.conversation?.id);
      assert.deepEqual([grown.messages, grown.duplicates], [1, 2]);
    });
  });

  it("keeps another chat of the same name apart, and finds each again", async () => {
    await onStore(async (bring, store) => {
      const one = await bring(chat("be kind", "alpha", "x"));
      const two = await bring(chat("be kind", "beta", "x"));
      const three = await bring(chat("gamma"));
      const again = await bring(chat("be kind", "beta", "x", "y"));
      assert.deepEqual(
        [one, two, three, again].map(({ conversation }) => conversation?.sessionId),
        ["log", "log-2", "log-3", "log-2"],
      );
      assert.deepEqual([again.messages, again.duplicates, again.differing], [1, 3, []]);
      const lines = await Array.fromAsync(exportTranscript(store, two.conversation?.id ?? assert.fail()));
      assert.deepEqual(
        lines.map((line) => (JSON.parse(line) as { content: string }).content),
        ["be kind", "beta", "x", "y"],
      );
    });
  });
});

describe("importing the same chat twice at once", () => {
  it("makes one conversation of it", async () => {
    await onStore(async (bring, store) => {
      const words = Array.from({ length: 600 }, (_, n) => `message ${n}`);
      const reports = await Promise.all([bring(chat(...words)), bring(chat(...words))]);
      assert.equal((await store.conversations()).length, 1);
      assert.equal(
        reports.reduce((sum, { messages }) => sum + messages, 0),
        600,
      );
      assert.equal((await store.status()).messages, 600);
    });
  });
});

describe("importing a chat again after something in it was forgotten", () => {
  it("recognises it, and brings nothing back", async () => {
    await onStore(async (bring, store) => {
      const words = ["the password is hunter2x", "thanks", "hunter2x it is"];
      const { conversation } = await bring(chat(...words));
      const secret = { kind: "secret", text: "hunter2x" } as const;
      await store.forget(null, await store.planForget(null, secret));
      const again = await bring(chat(...words));
      assert.equal(again.conversation?.id, conversation?.id);
      assert.deepEqual([again.messages, again.duplicates, again.differing], [0, 3, []]);
      assert.equal((await store.planForget(null, secret)).messages.length, 0);
      assert.notEqual((await bring(chat("another chat", "of the same name"))).conversation?.id, conversation?.id);
    });
  });
});

describe("importing under a session key", () => {
  it("makes another session under the same key a further segment, and the newest the active one", async () => {
    await onStore(async (bring, store) => {
      const key = { sessionKey: "agent:main:main" };
      const one = await bring(chat("a"), { ...key, sessionId: "first" });
      const two = await bring(chat("b"), { ...key, sessionId: "second" });
      assert.notEqual(one.conversation?.id, two.conversation?.id);
      assert.equal((await store.conversation(one.conversation?.id ?? assert.fail()))?.active, false);
      assert.equal(two.conversation?.active, true);
      assert.equal((await bring(chat("a"), { ...key, sessionId: "first" })).duplicates, 1);
    });
  });
});
