/** Contract: every message reads back unchanged through the store, not only through our own codec. */

import assert from "node:assert/strict";
import { describe } from "node:test";
import fc from "fast-check";
import { messageFromStore, messageToStore } from "../../src/core/messages/codec.ts";
import type { HostMessage } from "../../src/core/messages/codec.ts";
import type { Store } from "../../src/core/model/store.ts";
import { at, itOn, onStore } from "./ground.ts";
import type { StoreUnderTest } from "./ground.ts";
import type { Json, JsonObject } from "../../src/core/base/json.ts";

const blocks: Readonly<Record<string, Json>> = {
  text: { type: "text", text: "hello\nworld" },
  "text that is signed": { type: "text", text: "hello", textSignature: "c2ln" },
  "text that is empty": { type: "text", text: "" },
  "thinking with its signature": { type: "thinking", thinking: "hm\n\nso", thinkingSignature: "c2ln" },
  "thinking without one": { type: "thinking", thinking: "hm" },
  "thinking that is redacted": { type: "redacted_thinking", data: "b3BhcXVl" },
  "a tool call": {
    type: "toolCall",
    id: "call_1|fc_2",
    name: "read file",
    arguments: { path: "ä/b.ts", lines: [1, 2], deep: { x: null } },
  },
  "a tool call with no arguments": { type: "toolCall", id: "c", name: "now", arguments: {} },
  "a tool call with odd arguments": { type: "toolCall", id: "c", name: "now", arguments: ["not", "an", "object"] },
  "a tool call with more to it": { type: "toolCall", id: "c", name: "now", arguments: {}, thoughtSignature: "dGg=" },
  "a tool use": {
    type: "tool_use",
    id: "toolu_1",
    name: "bash",
    input: { command: "ls -la" },
    cache_control: { type: "ephemeral" },
  },
  "a tool result in a block": {
    type: "tool_result",
    tool_use_id: "toolu_1",
    content: [
      { type: "text", text: "ok" },
      { type: "image", data: "AA" },
    ],
    is_error: true,
  },
  "an image": { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" },
  "an image by address": { type: "image_url", image_url: { url: "data:image/png;base64,AA==", detail: "low" } },
  "a kind that does not exist yet": { type: "hologram", depth: 3, layers: [{ text: "not said" }] },
  "a kind that does not exist yet, and says something": { type: "whisper", text: "psst", volume: 0.1 },
  "no kind at all": { text: "typeless" },
  "a bare string": "loose words",
  "a bare number": 7.25,
  nothing: null,
  "a list": ["nested", ["deeper"]],
  "half a surrogate pair": { type: "text", text: "broken \ud83d here" },
  "half a pair in thinking": { type: "thinking", thinking: "\udc00" },
  "half a pair in a call": { type: "toolCall", id: "\ud800", name: "x", arguments: { "\udfff": "\ud800" } },
  "a NUL": { type: "text", text: "before\0after" },
  "a NUL in a call": { type: "toolCall", id: "a\0b", name: "n\0m", arguments: { a: "\0" } },
  "emoji, CJK and right-to-left": { type: "text", text: "👩‍👩‍👧 数据库 שלום \u202e" },
};

const messages: Readonly<Record<string, HostMessage>> = {
  "string content": { role: "user", content: "hello" },
  "empty string content": { role: "user", content: "" },
  "string content with more around it": { content: "hello", role: "user", timestamp: 1_763_681_581_544 },
  "string content a database cannot store": { role: "user", content: "\ud800 and \0" },
  "no blocks": { role: "assistant", content: [], stopReason: "aborted" },
  "no content": { role: "assistant", errorMessage: "overloaded" },
  "null content beside calls": {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
  },
  "text beside calls": { role: "assistant", content: "so", tool_calls: [{ id: "c" }, "odd"] },
  "calls that are not a list": { role: "assistant", content: "so", tool_calls: "calls" },
  "content that is a number": { role: "user", content: 5 },
  "content that is an object": { role: "user", content: { parts: ["x"] } },
  "content that is false": { role: "user", content: false },
  "a tool result with details": {
    role: "toolResult",
    toolCallId: "c",
    toolName: "read",
    content: [{ type: "text", text: "x" }],
    details: { diff: "+1" },
    isError: false,
  },
  "an unknown role": { role: "bashExecution", command: "ls", output: "a b", exitCode: 0 },
  "an empty role": { role: "", content: "whose?" },
  "a role a database cannot store": { role: "\udc00", content: "whose?" },
  "fields named like parts of an object": JSON.parse(
    '{"role":"user","content":"x","__proto__":{"a":1},"constructor":2}',
  ) as HostMessage,
};

export function testContent(subject: StoreUnderTest): void {
  const it = itOn(subject, onStore);

  describe("guarantee 4: exact round trip", () => {
    it("every kind of block, alone and among others", async ({ store }) => {
      const sent = Object.values(blocks).flatMap((block): readonly HostMessage[] => [
        { role: "assistant", content: [block] },
        { role: "assistant", content: [{ type: "text", text: "around" }, block, block, "and after"], model: "m" },
      ]);
      await comesBack(store, [...sent, { role: "user", content: Object.values(blocks) }]);
    });

    it("string, array, absent and unusual contents, and every role", async ({ store }) => {
      await comesBack(store, Object.values(messages));
    });

    it("text of five million characters", async ({ store }) => {
      const huge = "Wie ein Buch, nur länger. 🎈\n".repeat(180_000);
      await comesBack(store, [
        { role: "user", content: huge },
        {
          role: "assistant",
          content: [
            { type: "text", text: "short" },
            { type: "text", text: huge },
            { type: "thinking", thinking: huge },
          ],
        },
      ]);
    });

    it("any JSON at all, as block, as content, as a field of a known block or around the message", async (scene) => {
      const { store } = scene;
      const text = fc.oneof(fc.string({ unit: "binary", maxLength: 12 }), fc.string({ maxLength: 12 }), halves);
      const json = fc
        .jsonValue({ maxDepth: 2, stringUnit: "binary" })
        .map((value) => JSON.parse(JSON.stringify(value)) as Json);
      const field = fc.dictionary(text, json, { maxKeys: 3, noNullPrototype: true }) as fc.Arbitrary<JsonObject>;
      const block = fc.oneof(
        json,
        fc.tuple(field, text).map(([more, said]): Json => ({ ...more, type: "text", text: said })),
        fc.tuple(field, text).map(([more, said]): Json => ({ ...more, type: "thinking", thinking: said })),
        fc
          .tuple(field, text, text, field)
          .map(([more, id, name, input]): Json => ({ ...more, type: "toolCall", id, name, arguments: input })),
        fc
          .tuple(field, text, text, json)
          .map(([more, id, name, input]): Json => ({ ...more, type: "tool_use", id, name, input })),
        fc
          .tuple(field, text, json)
          .map(([more, id, content]): Json => ({ ...more, type: "tool_result", tool_use_id: id, content })),
      );
      const content = fc.oneof(
        { weight: 4, arbitrary: fc.array(block, { maxLength: 5 }) },
        text,
        json,
      ) as fc.Arbitrary<Json>;
      const role = fc.oneof(fc.constantFrom("user", "assistant", "toolResult", "tool", "system"), text);
      const message = fc
        .tuple(field, role, fc.option(content, { nil: undefined }), fc.option(json, { nil: undefined }))
        .map(([more, spoken, said, calls]): HostMessage => ({
          ...more,
          role: spoken,
          ...(said === undefined ? {} : { content: said }),
          ...(calls === undefined ? {} : { tool_calls: calls }),
        }));
      const session = fc.asyncProperty(fc.array(message, { minLength: 8, maxLength: 40 }), (sent) =>
        comesBack(store, sent),
      );
      await fc.assert(session, { numRuns: 12, seed: 4 });
    });
  });
}

const halves = fc.constantFrom("\ud800", "\udfff x", "\0", "a\0\ud83d");

let sessions = 0;

async function comesBack(store: Store, sent: readonly HostMessage[]): Promise<void> {
  const { id } = await store.open({ sessionId: `round trip ${++sessions}` });
  const origin = { at: at("2026-02-17T07:37:00.000Z") };
  const items = sent.map(
    (raw, index) => ({ kind: "message", message: messageToStore(raw, { ...origin, key: String(index) }) }) as const,
  );
  await store.append(id, items);
  const read = await store.messages({ conversation: id });
  assert.equal(read.length, sent.length);
  for (const [index, message] of read.entries()) {
    const came = messageFromStore(message);
    assert.deepEqual(came, sent[index]);
    assert.equal(Object.keys(came).join(), Object.keys(sent[index] ?? {}).join(), "fields keep their order");
  }
}
