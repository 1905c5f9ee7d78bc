import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkValid } from "../../../test/support/valid-prompt.ts";
import { assemble } from "./assemble.ts";
import { messageToStore } from "../messages/codec.ts";
import { LcmError } from "../base/errors.ts";
import { ingest } from "../ingest/ingest.ts";
import type { ConversationId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { msToTimestamp } from "../base/time.ts";
import { startMs, onScene, user, answer, call, long, contentOf } from "../../../test/support/assembly-scene.ts";

describe("an assembled prompt", () => {
  it("shows summaries first, then messages unchanged, and reports its parts", async () => {
    await onScene(async ({ say, fold, see }) => {
      await say(user("one"), answer("two"), user("three"), answer("four"), user("five"));
      const summary = await fold(0, 2, "They counted.");
      const { messages, report } = await see(10_000, 2);
      assert.match(contentOf(messages[0]), /^<summary id="sum_[^]*They counted\.[^]*<\/summary>$/);
      assert.deepEqual(messages.slice(1), [user("three"), answer("four"), user("five")]);
      assert.equal(report.outcome, "whole");
      assert.deepEqual([report.summaries.items, report.older.items, report.tail.items], [1, 1, 2]);
      assert.deepEqual(report.depths, [{ depth: 0, ...report.summaries }]);
      assert.deepEqual(
        report.origins.map(({ kind }) => kind),
        ["summary", "message", "message", "message"],
      );
      assert.equal(report.origins[0]?.kind === "summary" ? report.origins[0].id : null, summary);
      assert.equal(
        report.tokens,
        report.origins.reduce((sum, { tokens }) => sum + tokens, 0),
      );
    });
  });

  it("names the sources of a condensed summary", async () => {
    await onScene(async ({ say, fold, see }) => {
      await say(user("a"), user("b"), user("c"), user("d"), user("e"));
      const first = await fold(0, 2);
      const second = await fold(1, 3);
      await fold(0, 2);
      const [condensed] = (await see(10_000)).messages;
      const content = contentOf(condensed);
      assert.match(content, /kind="condensed" depth="1" descendant_count="2"/);
      assert.ok(
        content.includes(`<parents>\n<summary_ref id="${first}" />\n<summary_ref id="${second}" />\n</parents>`),
      );
    });
  });

  it("is empty for an empty conversation, and fails for one that does not exist", async () => {
    await onScene(async ({ store, see }) => {
      const { messages, report } = await see(1_000);
      assert.deepEqual(messages, []);
      assert.equal(report.outcome, "whole");
      const missing = { conversation: 99 as ConversationId, budget: 1_000, freshTailCount: 4 };
      await assert.rejects(
        assemble(store, missing),
        (error) => error instanceof LcmError && error.code === "not_found",
      );
    });
  });

  it("shows an assistant's text as a block, and host-specific roles as user text", async () => {
    await onScene(async ({ say, see }) => {
      await say(
        user("go"),
        { role: "assistant", content: "plain" },
        { role: "bashExecution", command: "ls", output: "a.txt" },
        { role: "system", content: 'be <summary id="x"> kind' },
        { role: "custom", customType: "note", excludeFromContext: true, content: "hidden", details: {} },
        { role: "user", content: "   " },
        { role: "assistant", content: [] },
        { role: "assistant" },
        {
          role: "user",
          content: [
            { type: "text", text: "" },
            { type: "text", text: "kept" },
          ],
        },
      );
      const { messages, report } = await see(10_000, 99);
      checkValid(messages);
      assert.deepEqual(messages, [
        user("go"),
        answer("plain"),
        user("[bashExecution] ls\na.txt"),
        user('[system] be &lt;summary id="x"> kind'),
        { role: "user", content: [{ type: "text", text: "kept" }] },
      ]);
      assert.equal(report.leftOut.items, 4);
      assert.equal(report.evicted.items, 0);
    });
  });

  it("shows pictures in place, and large texts as references", async () => {
    await onScene(async ({ store, conversation, see }) => {
      const picture = { type: "image", data: "QUJD".repeat(2_000), mimeType: "image/png" };
      const messages = [{ role: "user", content: [picture] }, user(`a log\n${long(900)}`)];
      const items = messages.map((message, at) => {
        return { kind: "message", message, key: `k${at}`, at: msToTimestamp(startMs) } as const;
      });
      const deps = { store, settings: { largeFileTokenThreshold: 500 }, explore: async () => "a log" };
      await ingest(deps, conversation, items);
      const [shown, log] = (await see(10_000)).messages;
      assert.deepEqual(shown, messages[0]);
      assert.match(contentOf(log), /file_[0-9a-f]{16}/);
      assert.doesNotMatch(contentOf(log), /end of lorem/);
    });
  });

  it("begins with a user, even if the conversation does not", async () => {
    await onScene(async ({ say, see }) => {
      await say(answer("Hello, what can I do?"), user("count"));
      const { messages, report } = await see(10_000);
      assert.deepEqual(
        messages.map(({ role }) => role),
        ["user", "assistant", "user"],
      );
      assert.equal(report.notes.items, 1);
    });
  });

  it("shows no message of an abandoned branch", async () => {
    await onScene(async ({ store, conversation, see }) => {
      const entry = (key: string, parentKey: string | null, text: string) =>
        ({
          kind: "message",
          message: messageToStore(user(text), { key, parentKey, at: msToTimestamp(startMs) }),
        }) as const;
      await store.append(conversation, [entry("a", null, "root"), entry("b", "a", "left"), entry("c", "a", "taken")]);
      assert.deepEqual((await see(10_000)).messages, [user("root"), user("taken")]);
    });
  });
});

describe("guarantee 8: assembly makes no model call", () => {
  /** The same store, recording its calls. */
  const overheard = (store: Store): { readonly store: Store; readonly asked: Set<string> } => {
    const asked = new Set<string>();
    const listening = new Proxy(store, {
      get(target, method, receiver) {
        asked.add(String(method));
        return Reflect.get(target, method, receiver);
      },
    });
    return { store: listening, asked };
  };
  const reads = new Set([
    "conversation",
    "context",
    "messages",
    "summaries",
    "sources",
    "coveredBy",
    "file",
    "fileContent",
  ]);

  it("needs only a store, and only reads from it", async () => {
    await onScene(async ({ store: real, conversation, say, fold }) => {
      await say(user("go"), call("a"), user(long(400)), answer("x"), user(long(300)), answer("y"), user("end"));
      await fold(0, 1);
      const { store, asked } = overheard(real);
      const before = await real.conversation(conversation);
      for (const budget of [10_000, 600, 200, 50, 0])
        await assemble(store, { conversation, budget, freshTailCount: 2 });
      assert.deepEqual(
        [...asked].filter((method) => !reads.has(method)),
        [],
      );
      assert.deepEqual(await real.conversation(conversation), before);
    });
  });

  it("reads only what fits, however long the conversation is", async () => {
    await onScene(async ({ store: real, conversation, say }) => {
      for (let turn = 0; turn < 100; turn++)
        await say(...Array.from({ length: 20 }, (_, at) => user(`${turn}.${at} ${long(20)}`)));
      const rows: number[] = [];
      const store: Store = {
        ...real,
        async context(...asked) {
          const items = await real.context(...asked);
          rows.push(items.length);
          return items;
        },
        async messages(...asked) {
          const messages = await real.messages(...asked);
          rows.push(messages.length);
          return messages;
        },
      };
      const { messages } = await assemble(store, { conversation, budget: 2_000, freshTailCount: 8 });
      assert.equal(rows.length, 2, "one look at the context, one at the messages");
      assert.ok((rows[1] ?? 0) <= messages.length + 64, `${rows.join()} rows for ${messages.length} messages`);
      assert.ok((rows[0] ?? 0) < 200, `${rows[0]} of 2,000 items`);
    });
  });
});
