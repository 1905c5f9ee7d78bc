import assert from "node:assert/strict";
import { readFileSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { messageFromStore, messageToStore } from "../messages/codec.ts";
import type { HostMessage } from "../messages/codec.ts";
import { LcmError } from "../base/errors.ts";
import { inspect } from "../maintenance/inspect.ts";
import { fileIdsOf, findLarge, messageForPrompt, restoreMessage } from "./large-content.ts";
import { messageName } from "../model/types.ts";
import { createLcm } from "../lcm.ts";
import type { Completion, CompletionRequest, Model } from "../model/store.ts";
import { resolveSettings } from "../model/settings.ts";
import type { Json } from "../base/json.ts";
import type { Timestamp } from "../base/time.ts";
import {
  thresholdTokens,
  words,
  large,
  picture,
  toItem,
  onStore,
  stored,
  at,
  textAt,
  reference,
  type Ground,
} from "../../../test/support/large-content-ground.ts";

describe("what is moved out of a message", () => {
  it("is nothing if the message is small", async () => {
    await onStore(async ({ store, talk, send }) => {
      const raw = { role: "user", content: "hello" };
      assert.deepEqual(findLarge(raw, thresholdTokens), []);
      const [message] = await send(raw);
      assert.deepEqual([message?.text, message?.moved], ["hello", []]);
      assert.deepEqual(await store.files(talk.id), []);
    });
  });

  it("is the inside of a file block, while the text around it stays", async () => {
    await onStore(async (ground) => {
      const inside = `id,name\n1,Ada\n${words(90)}`;
      const content = `Look at\n<file path='a/report.csv' mime="text/csv">${inside}</file>\nplease <file name="b">small</file>`;
      const { message, shown } = await stored(ground, { role: "user", content });
      const [file] = await ground.store.files(ground.talk.id);
      assert.deepEqual([file?.name, file?.mimeType, file?.encoding], ["a/report.csv", "text/csv", "utf8"]);
      assert.equal(await ground.store.fileContent(file?.id ?? assert.fail()), inside);
      const said = textAt(shown, "content");
      assert.ok(
        said.startsWith(
          `Look at\n<file path='a/report.csv' mime="text/csv">[File ${file?.id} · a/report.csv · text/csv · `,
        ),
      );
      assert.ok(said.endsWith(`[End of ${file?.id}]</file>\nplease <file name="b">small</file>`));
      assert.deepEqual(fileIdsOf([message, message]), [file?.id]);
    });
  });

  it("is each of several files in one text, in order", async () => {
    await onStore(async (ground) => {
      const files = ["one", "two", "three"].map((name) => `<file name="${name}">${large(name)}</file>`);
      const { message } = await stored(ground, {
        role: "user",
        content: [{ type: "text", text: files.join(" and ") }],
      });
      const names = await Promise.all(message.moved.map(async ({ file }) => (await ground.store.file(file))?.name));
      assert.deepEqual(names, ["one", "two", "three"]);
    });
  });

  for (const [what, content] of Object.entries({
    "a file block without an end": `<file name="a">${large("a")}`,
    "a file block in a file block": `<file name="a">${large("a")}<file name="b">${large("b")}</file></file>`,
    "many small file blocks": Array.from({ length: 40 }, (_, n) => `<file name="${n}">few words</file>`).join(),
    "a text around a file block that is large itself": `${large("a")}<file name="b">${large("b")}</file>`,
    "a text with a NUL and a byte order mark": `\ufeff${large("a")}\0`,
  })) {
    it(`is the whole text of ${what}`, async () => {
      await onStore(async (ground) => {
        const { message, shown } = await stored(ground, { role: "user", content });
        assert.match(textAt(shown, "content"), reference);
        assert.deepEqual(
          message.moved.map(({ path, from }) => [path, from]),
          [[["content"], 0]],
        );
        assert.equal((await ground.store.files(ground.talk.id)).length, 1);
      });
    });
  }

  const places: Readonly<Record<string, readonly [raw: HostMessage, path: readonly (string | number)[]]>> = {
    "a tool result": [
      {
        role: "toolResult",
        toolCallId: "t",
        toolName: "read",
        content: [{ type: "text", text: large("a") }],
        isError: false,
      },
      ["content", 0, "text"],
    ],
    "a tool result inside a user message": [
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: large("a") }] }],
      },
      ["content", 0, "content", 0, "text"],
    ],
    "a tool result as a string": [
      { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: large("a") }] },
      ["content", 0, "content"],
    ],
    "a tool message": [{ role: "tool", tool_call_id: "t", content: large("a") }, ["content"]],
    "an argument of a call": [
      {
        role: "assistant",
        content: [
          { type: "toolCall", id: "t", name: "write", arguments: { path: "a.ts", edits: [{ to: large("a") }] } },
        ],
      },
      ["content", 0, "arguments", "edits", 0, "to"],
    ],
    "an input of a call": [
      {
        role: "assistant",
        content: [
          { type: "text", text: "so" },
          { type: "tool_use", id: "t", name: "write", input: { text: large("a") } },
        ],
      },
      ["content", 1, "input", "text"],
    ],
    "a block of an unknown kind": [
      { role: "assistant", content: [{ type: "hologram", rays: [{ of: large("a") }] }] },
      ["content", 0, "rays", 0, "of"],
    ],
    "a document of text": [
      {
        role: "user",
        content: [{ type: "document", source: { type: "text", media_type: "text/plain", data: large("a").repeat(8) } }],
      },
      ["content", 0, "source", "data"],
    ],
    "a message without a content": [{ role: "bashExecution", command: "ls", output: large("a") }, ["output"]],
    "a bare string among blocks": [{ role: "user", content: [large("a")] }, ["content", 0]],
    "a field with an odd name": [
      {
        role: "assistant",
        content: [{ type: "odd", ...(JSON.parse(`{"__proto__":${JSON.stringify(large("a"))}}`) as HostMessage) }],
      },
      ["content", 0, "__proto__"],
    ],
  };
  for (const [what, [raw, path]] of Object.entries(places)) {
    it(`is ${what}`, async () => {
      await onStore(async (ground) => {
        const { message, shown } = await stored(ground, raw);
        assert.deepEqual(
          message.moved.map((each) => each.path),
          [path],
        );
        assert.match(textAt(shown, ...path), reference);
        assert.ok(message.text.includes("[File file_") || raw["content"] !== undefined);
      });
    });
  }

  it("is the JSON text of a call's arguments, which stays valid JSON", async () => {
    await onStore(async (ground) => {
      const call = {
        id: "t",
        type: "function",
        function: { name: "write", arguments: JSON.stringify({ text: large("a") }) },
      };
      const { shown } = await stored(ground, { role: "assistant", content: null, tool_calls: [call] });
      const left: Json = JSON.parse(textAt(shown, "tool_calls", 0, "function", "arguments"));
      assert.match(textAt(left, "moved"), reference);
      assert.deepEqual(
        (await ground.store.files(ground.talk.id)).map(({ mimeType }) => mimeType),
        ["application/json"],
      );
    });
  });

  for (const [what, raw] of Object.entries<HostMessage>({
    reasoning: {
      role: "assistant",
      content: [{ type: "thinking", thinking: large("a"), thinkingSignature: large("b") }],
    },
    "hidden reasoning": { role: "assistant", content: [{ type: "redacted_thinking", data: picture(1) }] },
    "reasoning beside the content": { role: "assistant", content: null, reasoning_content: large("a"), said: "x" },
    "a file block with half a character": { role: "user", content: `<file name="a">${large("a")}\ud83d</file>` },
    "half a character": { role: "user", content: `${large("a")}\ud83d` },
    "ids and names": {
      role: "assistant",
      content: [{ type: "toolCall", id: large("a"), name: large("b"), arguments: {} }],
    },
    "details beside the content": { role: "toolResult", toolCallId: "t", content: [], details: { diff: large("a") } },
    "a text at the threshold": { role: "user", content: words(8) },
  })) {
    it(`is not: ${what}`, async () => {
      await onStore(async (ground) => {
        const { message, shown } = await stored(ground, raw);
        assert.deepEqual(message.moved, []);
        assert.deepEqual(shown, raw);
      });
    });
  }

  it("handles many unclosed file tags quickly", async () => {
    await onStore(async (ground) => {
      await stored(ground, { role: "user", content: `<file name="a">`.repeat(20_000) });
    });
  });
});

describe("a picture moved out of a message", () => {
  const shapes: Readonly<Record<string, (data: string) => Json>> = {
    "as hosts write it": (data) => ({ type: "image", data, mimeType: "image/png" }),
    "as Anthropic writes it": (data) => ({ type: "image", source: { type: "base64", media_type: "image/png", data } }),
    "as OpenAI writes it": (data) => ({ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } }),
    "as a document": (data) => ({
      type: "document",
      title: "a.pdf",
      source: { type: "base64", media_type: "application/pdf", data },
    }),
    "as a file": (data) => ({
      type: "file",
      file: { filename: "a.pdf", file_data: `data:application/pdf;base64,${data}` },
    }),
    "as sound": (data) => ({ type: "input_audio", input_audio: { data, format: "wav" } }),
  };
  for (const [what, shape] of Object.entries(shapes)) {
    it(`${what} is stored as bytes, costs the same tokens, and is restored in a prompt`, async () => {
      await onStore(async (ground) => {
        const data = picture(1);
        const raw = { role: "user", content: [{ type: "text", text: "what is this?" }, shape(data)] };
        const { message, shown } = await stored(ground, raw);
        const [file] = await ground.store.files(ground.talk.id);
        assert.deepEqual([file?.encoding, file?.bytes, file?.exploration], ["base64", 3_072, null]);
        assert.deepEqual(readFileSync(join(ground.filesDir, file?.storageUri ?? "")), Buffer.from(data, "base64"));
        assert.ok(JSON.stringify(shown).length < 400);
        assert.equal(message.tokens, messageToStore(raw, { key: "k", at: message.at }).tokens);
        assert.equal(message.parts[1]?.type, "file");
        assert.deepEqual(await messageForPrompt(ground.store, message), raw);
      });
    });
  }

  it("counts inside a tool result, too", async () => {
    await onStore(async (ground) => {
      const content = [
        { type: "text", text: "done" },
        { type: "image", source: { type: "base64", media_type: "image/png", data: picture(1) } },
      ];
      const raw = { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content }] };
      const { message } = await stored(ground, raw);
      assert.equal(message.moved.length, 1);
      assert.ok(message.tokens > 1_600);
      assert.equal(message.tokens, messageToStore(raw, { key: "k", at: message.at }).tokens);
      assert.deepEqual(await messageForPrompt(ground.store, message), raw);
    });
  });

  it("stays a reference in a prompt if no model would see it as a picture, and costs its text", async () => {
    await onStore(async (ground) => {
      const held = { type: "image", data: picture(1), mimeType: "image/png" };
      const { message, shown } = await stored(ground, { role: "user", content: [{ type: "hologram", held }] });
      assert.equal(message.moved.length, 1);
      assert.ok(message.tokens < 200);
      assert.doesNotMatch(message.text, /lines?\b/, "bytes have none");
      assert.deepEqual(await messageForPrompt(ground.store, message), shown);
    });
  });

  it("is restored in a prompt while texts beside it stay references", async () => {
    await onStore(async (ground) => {
      const raw = {
        role: "user",
        content: [
          { type: "text", text: large("a") },
          { type: "image", data: picture(1), mimeType: "image/png" },
        ],
      };
      const { message, shown } = await stored(ground, raw);
      assert.deepEqual(await messageForPrompt(ground.store, message), {
        ...raw,
        content: [at(shown, "content", 0), raw.content[1]],
      });
    });
  });

  for (const [what, data] of Object.entries({
    "is small": picture(1, 3_000),
    "is not base64": "[not base64] ".repeat(400),
    "has line breaks": `${picture(1).slice(0, 76)}\n${picture(1).slice(76)}`,
    "has bits left over": `${picture(1, 3_073).slice(0, -3)}B==`,
    "lacks its padding": picture(1, 3_073).replace(/=+$/, ""),
    "is written for addresses": picture(1).replace(/.$/, "_"),
  })) {
    it(`stays in the message if it ${what}`, async () => {
      await onStore(async (ground) => {
        const { message } = await stored(ground, {
          role: "user",
          content: [{ type: "image", data, mimeType: "image/png" }],
        });
        assert.deepEqual(message.moved, []);
      });
    });
  }

  it("is treated as text in the arguments of a call", async () => {
    await onStore(async (ground) => {
      const input = { shot: { type: "image", data: picture(1), mimeType: "image/png" } };
      const { message } = await stored(ground, {
        role: "assistant",
        content: [{ type: "tool_use", id: "t", name: "x", input }],
      });
      assert.equal((await ground.store.file(message.moved[0]?.file ?? assert.fail()))?.encoding, "utf8");
      assert.deepEqual(await messageForPrompt(ground.store, message), messageFromStore(message));
    });
  });
});

describe("a message whose file is lost", () => {
  it("cannot be restored, and the error names the file", async () => {
    await onStore(async ({ store, send, filesDir }) => {
      const [message] = await send({ role: "user", content: large("a") });
      rmSync(filesDir, { recursive: true });
      await assert.rejects(restoreMessage(store, message ?? assert.fail()), (error) => {
        assert.ok(error instanceof LcmError);
        assert.equal(error.code, "unavailable");
        assert.ok(error.message.includes(message?.moved[0]?.file ?? "?"));
        return true;
      });
    });
  });

  it("or cut cannot be restored; the doctor names the file, and storing the same content again repairs it", async () => {
    await onStore(async ({ store, send, filesDir }) => {
      const raw = { role: "user", content: large("a") };
      const [message = assert.fail()] = await send(raw);
      const [moved = assert.fail()] = message.moved;
      const file = (await store.file(moved.file)) ?? assert.fail();
      truncateSync(join(filesDir, file.storageUri), 100);
      await assert.rejects(restoreMessage(store, message), {
        code: "unavailable",
        message: /file_\w+ was changed/,
      });
      const found = await inspect(store, null);
      assert.deepEqual(
        found.map(({ code, subject }) => [code, subject]),
        [
          ["altered_file", moved.file],
          ["unreadable_message", messageName(message.id)],
        ],
      );
      const { conversation, name, mimeType, encoding, exploration } = file;
      await store.saveFile({ conversation, name, mimeType, encoding, exploration, content: raw.content });
      assert.deepEqual(await restoreMessage(store, message), raw);
    });
  });

  it("can still be shown in a prompt, with text in place of a picture", async () => {
    await onStore(async ({ store, send, filesDir }) => {
      const image = { type: "image", source: { type: "base64", media_type: "image/png", data: picture(1) } };
      const result = { type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "done" }, image] };
      const messages = await send({ role: "user", content: [image] }, { role: "user", content: [result] });
      rmSync(filesDir, { recursive: true });
      const [own, nested] = await Promise.all(messages.map(async (message) => await messageForPrompt(store, message)));
      const text = textAt(own ?? null, "content", 0, "text");
      assert.match(text, reference);
      assert.deepEqual(own, { role: "user", content: [{ type: "text", text }] });
      assert.deepEqual(at(nested ?? null, "content", 0), {
        ...result,
        content: [result.content[0], { type: "text", text }],
      });
    });
  });

  it("can still be shown in a prompt if the row of the file is lost", async () => {
    await onStore(async ({ store, filesDir, send }) => {
      const image = { type: "image", data: picture(1), mimeType: "image/png" };
      const [message = assert.fail("it is stored")] = await send({ role: "user", content: [image] });
      assert.equal(message.moved.length, 1);
      const db = new DatabaseSync(join(filesDir, "..", "lcm.db"), { enableForeignKeyConstraints: false });
      db.exec("DELETE FROM large_files");
      db.close();
      const shown = await messageForPrompt(store, message);
      const text = textAt(shown, "content", 0, "text");
      assert.match(text, reference);
      assert.deepEqual(shown, { role: "user", content: [{ type: "text", text }] });
    });
  });

  it("or whose reference is missing, is reported as corrupt", async () => {
    await onStore(async ({ store, send }) => {
      const [message] = await send({ role: "user", content: large("a") });
      assert.ok(message !== undefined);
      const [moved] = message.moved;
      for (const wrong of [{ from: 40 }, { path: ["content", 0] }, { path: ["elsewhere"] }]) {
        const damaged = { ...message, moved: [{ ...(moved ?? assert.fail()), ...wrong }] };
        await assert.rejects(
          restoreMessage(store, damaged),
          (error) => error instanceof LcmError && error.code === "corrupt",
        );
      }
    });
  });
});

describe("a model that describes large files", () => {
  const describing = async (
    ground: Ground,
    answer: Completion | null,
  ): Promise<{ readonly text: string; readonly asked: readonly CompletionRequest[] }> => {
    const asked: CompletionRequest[] = [];
    const deadline = new AbortController();
    const model: Model = {
      provider: "scripted",
      name: "one",
      async complete(request) {
        asked.push(request);
        if (answer !== null) return answer;
        setTimeout(() => deadline.abort(new DOMException("too late", "TimeoutError")), 20);
        return await new Promise<never>(() => undefined);
      },
    };
    const clock = { now: () => "2026-11-15T00:00:00.000Z" as Timestamp };
    const settings = resolveSettings({ env: {}, config: { largeFileTokenThreshold: 80 } }).values;
    const lcm = createLcm({
      store: ground.store,
      clock,
      settings,
      model,
      describeFilesUntil: () => deadline.signal,
    });
    for (let replay = 0; replay < 2; replay++)
      await lcm.ingest(ground.talk.id, [toItem({ role: "user", content: large("a") }, 1)]);
    const [message] = await ground.store.messages({ conversation: ground.talk.id });
    return { text: message?.text ?? "", asked };
  };

  it("is called once for a new file, and its description is in the reference; the call is recorded", async () => {
    await onStore(async (ground) => {
      const told = {
        kind: "text",
        text: "<think>hm</think>A list of Latin words.",
        finish: "stop",
        inputTokens: 5,
        outputTokens: 6,
      } as const;
      const { text, asked } = await describing(ground, told);
      assert.equal(asked.length, 1);
      assert.ok(asked[0]?.purpose === "file" && asked[0].prompt.includes("lorem lorem"));
      assert.match(text, /\nA list of Latin words\.\n/);
      assert.match(text, /^\[File file_\w{16} · .* · 2 lines\. Moved out of this message/m);
      assert.equal((await ground.store.usageSince("2026-01-01T00:00:00.000Z" as Timestamp)).calls, 1);
    });
  });

  it("may hang and ignore its signal: the message is still stored in time", async () => {
    await onStore(async (ground) => {
      const { text, asked } = await describing(ground, null);
      assert.equal(asked.length, 1);
      assert.match(text, /Text, 2 lines/);
    });
  });

  it("may refuse: the built-in preview is used", async () => {
    await onStore(async (ground) => {
      const { text } = await describing(ground, { kind: "refused", refusal: "overloaded", message: "later" });
      assert.match(text, /Text, 2 lines/);
    });
  });
});

describe("what a user writes around a paste", () => {
  const paste = Array.from(
    { length: 900 },
    (_, line) => `2026-11-15 10:00:${line % 60} INFO worker ${line} is well`,
  ).join("\n");
  const [before, behind] = ["Please tell me why the PAPAYA box is slow:", "But never restart it!"];

  it("stays in the message; the paste alone is moved", async () => {
    const text = `${before}\n${paste}\n${behind}`;
    for (const content of [text, [{ type: "text", text }]]) {
      await onStore(async (ground) => {
        const { message } = await stored(ground, { role: "user", content });
        assert.equal(message.moved.length, 1);
        assert.ok(message.text.startsWith(before) && message.text.endsWith(behind), message.text);
        assert.ok(message.tokens < 1_200, String(message.tokens));
      }, 2_000);
    }
  });
});
