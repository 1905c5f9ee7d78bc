import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { messageFromStore, messageToStore, textOfParts } from "../../core/messages/codec.ts";
import { createRandom } from "../../../test/support/random.ts";
import type { Random } from "../../../test/support/random.ts";
import { convertMessage } from "./older-message.ts";
import type { OlderMessage, OlderPart } from "./older-message.ts";
import type { Json, JsonObject } from "../../core/base/json.ts";
import type { Timestamp } from "../../core/base/time.ts";

const at = "2026-02-17T07:37:00.000Z" as Timestamp;
const bare = { text: null, toolCallId: null, toolName: null, metadata: null, columns: {} } as const;
const message = (role: OlderMessage["role"], content: string, parts: readonly OlderPart[]): OlderMessage => ({
  role,
  content,
  key: "k",
  at,
  parts,
});
const textBlock = (text: string): OlderPart => ({
  ...bare,
  type: "text",
  text,
  metadata: JSON.stringify({ raw: { type: "text", text } }),
});

describe("converting a message of the older program", () => {
  it("uses the text of a message without parts", () => {
    const found = convertMessage(message("tool", "42", []));
    assert.deepEqual(found.parts, []);
    assert.equal(found.content, "42");
    assert.ok(found.tokens > 4);
    assert.equal(found.envelope, null);
  });

  it("stores it as the same message would be stored today", () => {
    const raw = {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "hm", thinkingSignature: "sig" },
        { type: "text", text: "let me see" },
        { type: "toolCall", id: "c1", name: "read", arguments: { path: "a.ts" } },
      ],
    };
    const parts: readonly OlderPart[] = raw.content.map((block) => ({
      ...bare,
      type: block.type === "thinking" ? "reasoning" : block.type === "text" ? "text" : "agent",
      text: block.text ?? null,
      metadata: JSON.stringify({ originalRole: "assistant", rawType: block.type, raw: block }),
    }));
    const today = messageToStore(raw, { key: "k", at });
    const found = convertMessage(message("assistant", "let me see", parts));
    assert.deepEqual(found, {
      content: textOfParts(today.parts),
      parts: today.parts,
      tokens: today.tokens,
      envelope: today.envelope,
    });
  });

  it("keeps the parts unchanged if the text differs", () => {
    const parts = [textBlock("one"), textBlock("two")];
    const found = convertMessage(message("user", "something else", parts));
    assert.equal(found.content, "something else");
    assert.deepEqual(
      found.parts.map(({ text, kept, metadata }) => [text, kept, metadata]),
      [
        ["something else", "one", parts[0]!.metadata],
        [null, "two", parts[1]!.metadata],
      ],
    );
    assert.deepEqual(messageFromStore({ ...found, role: "user", at })["content"], [
      { type: "text", text: "one" },
      { type: "text", text: "two" },
    ]);
  });

  it("keeps a part type that is more precise than ours", () => {
    const part: OlderPart = { ...textBlock("the story so far"), type: "compaction" };
    const found = convertMessage(message("user", "the story so far", [part]));
    assert.deepEqual(
      found.parts.map(({ type, text }) => [type, text]),
      [["compaction", "the story so far"]],
    );
  });

  it("keeps a text that contains more than the block", () => {
    const part = { ...textBlock("hello"), text: "hello there" };
    const found = convertMessage(message("user", "hello", [part]));
    assert.ok(JSON.stringify(found).includes("hello there"));
  });

  it("keeps metadata that is nested too deeply as text", () => {
    const metadata = `{"raw":{"type":"tree","root":${"[".repeat(9_000)}${"]".repeat(9_000)}}}`;
    const found = convertMessage(message("user", "a tree", [{ ...bare, type: "text", text: "a tree", metadata }]));
    assert.equal(found.content, "a tree");
    assert.equal(JSON.parse(found.parts[0]?.metadata ?? "{}").older, metadata);
  });

  it("keeps a column that differs from the block", () => {
    const part = { ...textBlock("hi"), toolCallId: "c9", toolName: "bash" };
    const call: OlderPart = {
      ...bare,
      type: "tool",
      toolCallId: "other",
      metadata: JSON.stringify({ raw: { type: "toolCall", id: "c1", name: "read", arguments: {} } }),
    };
    const found = convertMessage(message("assistant", "hi", [part, call]));
    assert.deepEqual(
      found.parts.map(({ toolCallId, toolName }) => [toolCallId, toolName]),
      [
        ["c9", "bash"],
        ["other", null],
      ],
    );
    assert.deepEqual((messageFromStore({ ...found, role: "assistant", at })["content"] as readonly Json[])[1], {
      type: "toolCall",
      id: "c1",
      name: "read",
      arguments: {},
    });
  });

  it("guarantee 4: decodes to what the host sent, however it was stored", () => {
    for (let seed = 1; seed <= 400; seed++) {
      const random = createRandom(seed);
      const raw = randomMessage(random);
      const filed = fileAway(random, raw);
      const found = convertMessage(filed);
      assert.equal(found.parts.length, filed.parts.length, `seed ${seed}`);
      assert.equal(found.content, textOfParts(found.parts), `seed ${seed}: the text is what the parts say`);
      assert.ok(found.content.includes(filed.content), `seed ${seed}: nothing of the text is gone`);
      assert.deepEqual(messageFromStore({ ...found, role: filed.role, at }), raw, `seed ${seed}`);
    }
  });
});

// ── A host, and how the older program stored its messages ────────────────────────────────────────────────────────────

function randomMessage(random: Random): JsonObject {
  const role = random.pick(["user", "assistant", "toolResult", "custom"]);
  const blocks = Array.from({ length: random.between(1, 4) }, () => randomBlock(random));
  return {
    role,
    ...(role === "toolResult" ? { toolCallId: `call_${random.below(9)}`, toolName: "read" } : {}),
    content: blocks,
    ...(role === "toolResult" && random.chance(0.5) ? { isError: random.chance(0.5) } : {}),
  };
}

const words = ["", "plain", "two\nlines", "naïve 漢字 🙂", '"quoted" \\ text', "half \ud800 pair", "nul \0 byte"];

function randomBlock(random: Random): Json {
  const text = random.pick(words);
  return random.pick<Json>([
    { type: "text", text },
    { type: "text", text, textSignature: "s" },
    { type: "thinking", thinking: text },
    { type: "thinking", thinking: text, thinkingSignature: "s" },
    { type: "toolCall", id: "c", name: "read", arguments: { path: text } },
    { type: "tool_use", id: "c", name: "read", input: { path: text } },
    { type: "tool_result", tool_use_id: "c", content: text },
    { type: "image", data: "aGk=", mimeType: "image/png" },
    { type: "hologram", depth: 3, text: null },
    { nothing: "known" },
  ]);
}

function fileAway(random: Random, raw: JsonObject): OlderMessage {
  const role =
    raw["role"] === "toolResult"
      ? "tool"
      : raw["role"] === "custom"
        ? random.pick(["system", "assistant"] as const)
        : raw["role"];
  const isWellFiled = random.chance(0.7);
  const parts = (raw["content"] as readonly JsonObject[]).map((block): OlderPart => {
    const said = block["text"] ?? (random.chance(0.3) ? block["thinking"] : undefined);
    const text = typeof said === "string" ? said.toWellFormed().replaceAll("\0", "") : null;
    const isCall = block["type"] === "toolCall";
    return {
      type: random.pick(
        isCall ? ["tool", "agent"] : block["thinking"] === undefined ? ["text", "agent"] : ["reasoning", "text"],
      ),
      text,
      toolCallId: isCall && random.chance(0.5) ? "c" : typeof raw["toolCallId"] === "string" ? raw["toolCallId"] : null,
      toolName: isCall && random.chance(0.5) ? "read" : null,
      metadata: JSON.stringify(
        {
          originalRole: raw["role"],
          ...(random.chance(0.5) ? { rawType: block["type"] } : {}),
          toolCallId: raw["toolCallId"],
          toolName: raw["toolName"],
          isError: raw["isError"],
          raw: block,
          ...(random.chance(0.2) ? { unknown: [1, { a: null }] } : {}),
        },
        null,
        random.chance(0.1) ? 1 : 0,
      ),
      columns: isCall ? { tool_input: JSON.stringify(block["arguments"]) } : {},
    };
  });
  const texts = parts.map(({ text }) => text).filter((text) => text !== null);
  return message(role as OlderMessage["role"], isWellFiled ? texts.join("\n") : random.pick(["", "elsewhere"]), parts);
}
