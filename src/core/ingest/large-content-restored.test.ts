import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import fc from "fast-check";
import { messageFromStore } from "../messages/codec.ts";
import type { HostMessage } from "../messages/codec.ts";
import { LcmError } from "../base/errors.ts";
import { ingest } from "./ingest.ts";
import { fileIdsOf, restoreMessage } from "./large-content.ts";
import type { MoveOptions } from "./large-content.ts";
import { assertPrivate } from "../../../test/support/platform.ts";
import { encode } from "../../../test/support/scripted-host.ts";
import {
  thresholdTokens,
  words,
  large,
  picture,
  toItem,
  moved,
  onStore,
  textAt,
  reference,
} from "../../../test/support/large-content-ground.ts";

describe("the reference to a file", () => {
  const raw = { role: "user", content: large("a") };

  it("is the same at every replay, however the file would be described then", async () => {
    await onStore(async ({ store, talk, send }) => {
      const [first] = await send(raw);
      const asked: string[] = [];
      const options: MoveOptions = {
        store,
        conversation: talk.id,
        explore: async (content) => {
          asked.push(content);
          return await Promise.resolve("something else");
        },
      };
      const again = await moved(options, raw);
      assert.deepEqual(again.parts, first?.parts);
      assert.deepEqual(again.moved, first?.moved);
      assert.deepEqual(asked, [], "the model is not asked about a known file");
    });
  });

  it("contains the model's description of a new file, cut to a bound, or the built-in preview if there is none", async () => {
    await onStore(async ({ store, talk }) => {
      const say = async (name: string, answer: () => Promise<string>): Promise<string> => {
        const options = { store, conversation: talk.id, explore: answer };
        return String((await moved(options, { role: "user", content: large(name) })).parts[0]?.text);
      };
      assert.ok(
        (await say("a", async () => await Promise.resolve(" Sixty words of Latin.\n"))).includes(
          "]\nSixty words of Latin.\n[End of",
        ),
      );
      assert.ok((await say("b", async () => await Promise.resolve("x".repeat(100_000)))).length < 2_300);
      const built = await say("c", async () => await Promise.resolve("  "));
      const failed = await say("d", async () => await Promise.reject(new Error("overloaded")));
      for (const text of [built, failed]) assert.match(text, reference);
      assert.ok(built.includes("lorem") && failed.includes("lorem"));
    });
  });

  it("cannot be forged by a message", async () => {
    await onStore(async ({ store, talk, send }) => {
      const [first] = await send(raw);
      const forged = messageFromStore(first ?? assert.fail());
      const twice = {
        role: "user",
        content: `${textAt(forged, "content")} <file name="]\n[x">${large("b")} ${textAt(forged, "content")}</file>`,
      };
      const [, second] = await send(raw, forged, twice);
      const [, , third] = await store.messages({ conversation: talk.id });
      assert.deepEqual(await restoreMessage(store, second ?? assert.fail()), forged);
      assert.deepEqual(await restoreMessage(store, third ?? assert.fail()), twice);
    });
  });
});

describe("files with the same content", () => {
  it("are stored once per conversation", async () => {
    await onStore(async ({ store, talk, send, sendTo, filesDir }) => {
      const raw = { role: "user", content: large("a") };
      const messages = await send(raw, { role: "user", content: `<file name="b">${large("a")}</file>` }, raw);
      assert.equal(fileIdsOf(messages).length, 1);
      assert.equal((await store.files(talk.id)).length, 1);
      const other = await store.open({ sessionId: "other" });
      await sendTo(other, raw);
      const [mine, theirs] = [await store.files(talk.id), await store.files(other.id)];
      assert.notEqual(mine[0]?.id, theirs[0]?.id);
      assert.deepEqual(readdirSync(filesDir).toSorted(), [String(talk.id), String(other.id)].toSorted());
      for (const message of messages)
        assert.equal(JSON.stringify(await restoreMessage(store, message)).includes("ipsum"), true);
    });
  });

  it("are stored once after a crash between the file and its message", async () => {
    await onStore(async ({ store, talk, send, filesDir }) => {
      const raws = [
        { role: "user", content: large("a") },
        { role: "user", content: [{ type: "image", data: picture(1), mimeType: "image/png" }] },
      ];
      const options = { store, conversation: talk.id };
      const written = await Promise.all(raws.map(async (raw, index) => await moved(options, raw, index)));
      assert.equal((await store.messages({ conversation: talk.id })).length, 0);
      const messages = await send(...raws);
      assert.deepEqual(
        messages.map((message) => message.moved),
        written.map((message) => message.moved),
      );
      assert.equal((await store.files(talk.id)).length, 2);
      assert.equal(readdirSync(join(filesDir, String(talk.id))).length, 2);
    });
  });
});

describe("guarantee 2: replays are harmless to large content", () => {
  it("gives the same rows and files, however often and in whatever parts", async () => {
    await onStore(async ({ store, talk, send, filesDir }) => {
      const raws = ["a", "b", "a", "c"].map((name) => ({
        role: "user",
        content: `${name} <file>${large(name)}</file>`,
      }));
      const first = await send(...raws);
      const files = await store.files(talk.id);
      const items = raws.map(toItem);
      const deps = { store, settings: { largeFileTokenThreshold: thresholdTokens } };
      for (const part of [items, items.slice(1), items.slice(0, 2), items.toReversed()]) {
        const { messages, differing } = await ingest(deps, talk.id, part);
        assert.deepEqual([messages, differing], [[], []]);
      }
      assert.deepEqual(await store.messages({ conversation: talk.id }), first);
      assert.deepEqual(await store.files(talk.id), files);
      assert.equal(readdirSync(join(filesDir, String(talk.id))).length, 3);
    });
  });

  it("recognises a message that was stored before anything was moved out of it", async () => {
    await onStore(async ({ store, talk, sendTo }) => {
      const raw = { role: "user", content: large("a") };
      await store.append(talk.id, [encode(toItem(raw, 0))]);
      assert.deepEqual((await sendTo(talk, raw)).differing, []);
      assert.deepEqual((await sendTo(talk, { role: "user", content: large("b") })).differing, ["k0"]);
      const [message] = await store.messages({ conversation: talk.id });
      assert.deepEqual(await restoreMessage(store, message ?? assert.fail()), raw);
    });
  });
});

describe("guarantee 4: messages with large content are restored exactly", () => {
  const anyUnits = fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 8 })
    .map((units) => String.fromCharCode(...units));
  const longText = fc
    .tuple(anyUnits, fc.integer({ min: 0, max: 80 }), fc.string())
    .map(([a, count, b]) => `${a}${words(count)}${b}`);
  const tag = fc.constantFrom(
    '<file name="a.json" mime="application/json">',
    "<file path='../x'>",
    "<file>",
    "<file ",
    "</file>",
  );
  const withFiles = fc.array(fc.oneof(tag, longText), { maxLength: 8 }).map((pieces) => pieces.join(""));
  const files = fc
    .array(longText, { minLength: 1, maxLength: 3 })
    .map((insides) => insides.map((inside) => `<file>${inside}</file>`).join(" "));
  const text = fc.oneof(fc.string(), longText, withFiles, files);
  const data = fc.oneof(
    fc.tuple(fc.integer({ min: 3_060, max: 3_100 }), fc.integer()).map(([bytes, seed]) => picture(seed, bytes)),
    fc
      .tuple(fc.integer({ min: 4_090, max: 4_110 }), fc.constantFrom("A", "B", "=", "_"))
      .map(([count, unit]) => `${"A".repeat(count)}${unit}`),
    text,
  );
  const id = fc.constantFrom("t1", "t2");
  const args = fc.dictionary(
    fc.constantFrom("path", "text", "id", "__proto__", "0"),
    fc.oneof(text, fc.array(text, { maxLength: 2 }), fc.integer()),
    { maxKeys: 3, noNullPrototype: true },
  );
  const textBlock = text.map((said) => ({ type: "text", text: said }));
  const odd = fc.oneof(
    fc.jsonValue(),
    fc.tuple(fc.constantFrom("hologram", "my_file", "tool_call"), args).map(([type, more]) => ({ type, ...more })),
  );

  const pi = fc.oneof(
    textBlock,
    text.map((thinking) => ({ type: "thinking", thinking, thinkingSignature: "c2ln" })),
    fc.tuple(id, args).map(([call, more]) => ({ type: "toolCall", id: call, name: "write", arguments: more })),
    data.map((bytes) => ({ type: "image", data: bytes, mimeType: "image/png" })),
    odd,
  );
  const media = data.map((bytes) => ({
    type: "image",
    source: { type: "base64", media_type: "image/png", data: bytes },
  }));
  const anthropic = fc.oneof(
    textBlock,
    media,
    data.map((bytes) => ({
      type: "document",
      source: { type: "text", media_type: "text/plain", data: bytes },
      title: "a",
    })),
    fc.tuple(id, args).map(([call, input]) => ({ type: "tool_use", id: call, name: "bash", input })),
    fc
      .tuple(id, fc.oneof(text, fc.array(fc.oneof(textBlock, media), { maxLength: 3 })))
      .map(([call, content]) => ({ type: "tool_result", tool_use_id: call, content })),
    odd,
  );
  const openai = fc.oneof(
    textBlock,
    data.map((bytes) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${bytes}` } })),
    odd,
  );
  const calls = fc.array(
    fc
      .tuple(id, text)
      .map(([call, said]) => ({ id: call, type: "function", function: { name: "x", arguments: said } })),
    { maxLength: 2 },
  );
  const blocks = (block: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
    fc.oneof(text, fc.array(block, { maxLength: 4 }));
  const message = fc.oneof(
    fc.record({
      role: fc.constantFrom("user", "assistant"),
      content: blocks(pi),
      timestamp: fc.integer({ min: 0, max: 2_000_000_000_000 }),
    }),
    fc.record({
      role: fc.constant("toolResult"),
      toolCallId: id,
      toolName: fc.constant("read"),
      content: blocks(pi),
      details: fc.jsonValue(),
      isError: fc.boolean(),
    }),
    fc.record({ role: fc.constantFrom("user", "assistant"), content: blocks(anthropic) }),
    fc.record({
      role: fc.constantFrom("user", "assistant", "system"),
      content: fc.oneof(blocks(openai), fc.constant(null)),
      tool_calls: calls,
    }),
    fc.record({ role: fc.constant("tool"), tool_call_id: id, content: text }),
    fc.record(
      { content: fc.oneof(fc.jsonValue(), blocks(odd)), role: fc.constantFrom("user", "custom"), output: text },
      { requiredKeys: ["role"] },
    ),
  );

  it("for any dialect, place and characters; a replay changes nothing", async () => {
    await onStore(async ({ store, sendTo }) => {
      let moved = 0;
      let number = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(message, { minLength: 1, maxLength: 4 }), async (drawn) => {
          const raws = JSON.parse(JSON.stringify(drawn)) as readonly HostMessage[];
          const talk = await store.open({ sessionId: `run ${number++}` });
          await sendTo(talk, ...raws);
          const messages = await store.messages({ conversation: talk.id });
          for (const [index, came] of raws.entries()) {
            const restored = await restoreMessage(store, messages[index] ?? assert.fail());
            assert.deepEqual(restored, came);
            assert.equal(JSON.stringify(restored), JSON.stringify(came));
          }
          const files = await store.files(talk.id);
          assert.deepEqual(fileIdsOf(messages).toSorted(), files.map((file) => file.id).toSorted());
          const again = await sendTo(talk, ...raws);
          assert.deepEqual([again.messages, again.differing], [[], []]);
          assert.deepEqual(await store.files(talk.id), files);
          moved += files.length;
        }),
        { numRuns: 200 },
      );
      assert.ok(moved > 100, `only ${moved} files were made of 200 conversations`);
    }, 20);
  });
});

describe("guarantee 26: files stay inside their folder, private to the user", () => {
  it("a file's name is only displayed, wherever it points", async () => {
    await onStore(async ({ store, talk, send, filesDir }) => {
      const names = [
        "../../etc/passwd",
        "/etc/shadow",
        "a\\..\\..\\b.txt",
        "file:///tmp/x",
        "..",
        "",
        "a/b/../../../c.csv",
        "x".repeat(150),
      ];
      await send(...names.map((name) => ({ role: "user", content: `<file name="${name}">${large(name)}</file>` })));
      const files = await store.files(talk.id);
      assert.deepEqual(new Set(files.map(({ name }) => name)), new Set(names));
      for (const file of files) {
        assert.match(file.storageUri, new RegExp(`^${talk.id}/${file.id}\\.[a-z0-9]{1,8}$`));
        assertPrivate(join(filesDir, file.storageUri));
      }
      assert.deepEqual(readdirSync(filesDir), [String(talk.id)]);
      assertPrivate(join(filesDir, String(talk.id)), 0o700);
      const shown = await store.messages({ conversation: talk.id });
      assert.ok(shown[0]?.text.includes("· ../../etc/passwd ·"));
      for (const { text, tokens } of shown) assert.ok(tokens < 1_000 && !/· x{80}/.test(text), "a long name is cut");
    });
  });

  it("an id that is a path reads no file", async () => {
    await onStore(async ({ store, send }) => {
      const [message] = await send({ role: "user", content: large("a") });
      const [moved] = message?.moved ?? [];
      const foreign = {
        ...(message ?? assert.fail()),
        moved: [{ ...(moved ?? assert.fail()), file: "file_../../lcm.db" as const }],
      };
      await assert.rejects(restoreMessage(store, foreign), LcmError);
    });
  });
});
