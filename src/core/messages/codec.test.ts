import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  entryFromStore,
  estimateMessageTokens,
  imageTokens,
  messageFromStore,
  messageToStore,
  textOfParts,
} from "./codec.ts";
import { isMedia } from "./dialects.ts";
import { LcmError } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { EntryHole } from "./codec.ts";
import { findStanding } from "./standing.ts";
import type { Timestamp } from "../base/time.ts";

const origin = { key: "k", at: "2026-02-17T07:37:00.000Z" as Timestamp };

/** Through the store and back, as the store does it: the text is kept once, the parts know how long theirs is. */
function roundTrip(raw: JsonObject): Json {
  const stored = messageToStore(raw, origin);
  for (const field of [
    stored.envelope,
    ...stored.parts.flatMap((part) => [part.text, part.kept, part.toolCallId, part.toolName, part.metadata]),
  ]) {
    if (field !== null)
      assert.ok(field.isWellFormed() && !field.includes("\0"), "everything stored is text a database can hold");
  }
  return messageFromStore(stored);
}

describe("guarantee 4: exact round trip of every kind of block", () => {
  const blocks: Record<string, Json> = {
    text: { type: "text", text: "hello" },
    "text with a signature": { type: "text", text: "hello", textSignature: "sig==" },
    "empty text": { type: "text", text: "" },
    "thinking with signature": { type: "thinking", thinking: "let me see", thinkingSignature: "abc=" },
    "plain thinking": { type: "thinking", thinking: "hm" },
    "tool call": {
      type: "toolCall",
      id: "toolu_1",
      name: "read",
      arguments: { path: "a b.ts", deep: { list: [1, null, "x"] } },
    },
    "tool call with more": { type: "toolCall", id: "1", name: "read file", arguments: {}, partialJson: "{" },
    "tool call with odd arguments": { type: "toolCall", id: "1", name: "x", arguments: "not an object" },
    "Anthropic tool use": { type: "tool_use", id: "t", name: "bash", input: { command: "ls\n-la" } },
    "Anthropic tool result": {
      type: "tool_result",
      tool_use_id: "t",
      content: [{ type: "text", text: "ok" }],
      is_error: false,
    },
    image: { type: "image", data: "aGVsbG8=", mimeType: "image/png" },
    "a kind that does not exist yet": { type: "hologram", depth: 3, text: 7 },
    "an unknown kind with text": { type: "whisper", text: "psst", volume: 0.1 },
    "a bare string among blocks": "just text",
    "a number among blocks": 42,
    "null among blocks": null,
    "half a surrogate pair": { type: "text", text: "broken \ud83d here" },
    "a NUL": { type: "text", text: "before\0after" },
    "NUL in arguments": { type: "toolCall", id: "n", name: "x", arguments: { a: "\0" } },
    "half a pair in thinking": { type: "thinking", thinking: "\udc00" },
  };
  for (const [name, block] of Object.entries(blocks)) {
    it(name, () => {
      const message = {
        role: "assistant",
        content: [block, { type: "text", text: "after" }, block],
        provider: "p",
        timestamp: 1,
      };
      assert.deepEqual(roundTrip(message), message);
    });
  }

  it("string, array, empty, absent and odd contents", () => {
    for (const content of ["hello", "", "two\nlines", [], null, 7, { odd: true }, "\ud800", "a\0b"]) {
      const message = { role: "user", content };
      assert.deepEqual(roundTrip(message), message);
    }
    assert.deepEqual(roundTrip({ role: "user" }), { role: "user" });
  });

  it("tool results with details, unknown roles and OpenAI's calls beside the content", () => {
    const messages: JsonObject[] = [
      {
        role: "toolResult",
        toolCallId: "t",
        toolName: "read",
        content: [{ type: "text", text: "x" }],
        details: { rows: [1, 2] },
        isError: true,
        timestamp: 5,
      },
      { role: "custom", customType: "openclaw.nested-tool.v1", excludeFromContext: true, content: "", details: {} },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: '{"a":1}' } }],
      },
      { role: "assistant", content: "ok", tool_calls: "odd" },
      { role: "tool", tool_call_id: "c1", content: "42" },
      { role: "developer", content: "be kind" },
      { content: "role comes last", role: "user" },
      { role: "user", content: [], timestamp: 1_771_313_820_000 },
      { role: "user", content: "x", timestamp: 0 },
      { role: "user", content: "x", timestamp: [0] },
      { role: "user", content: "x", timestamp: null },
      JSON.parse('{"role":"user","content":"x","__proto__":{"a":1},"constructor":2}') as JsonObject,
    ];
    for (const message of messages) assert.deepEqual(roundTrip(message), message);
  });

  it("any JSON, with fields in the same order", () => {
    const json = fc.jsonValue({ stringUnit: "binary" }) as fc.Arbitrary<Json>;
    const block = fc.oneof(
      json,
      fc.record(
        {
          type: fc.constantFrom("text", "thinking", "toolCall", "tool_use", "image", "new"),
          text: json,
          thinking: json,
          id: json,
          name: json,
          arguments: json,
          input: json,
        },
        { requiredKeys: ["type"] },
      ) as fc.Arbitrary<Json>,
    );
    const content = fc.oneof(fc.string({ unit: "binary" }), fc.array(block, { maxLength: 6 }), json);
    const message = fc.record(
      {
        role: fc.constantFrom("user", "assistant", "toolResult", "system", "bashExecution"),
        content,
        extra: json,
        timestamp: fc.oneof(json, fc.constantFrom<Json>(0, 1_771_313_820_000)),
        tool_calls: fc.option(fc.array(json), { nil: undefined }),
      },
      { requiredKeys: ["role"] },
    );
    fc.assert(
      fc.property(message, (given) => {
        const raw = JSON.parse(JSON.stringify(given)) as JsonObject;
        assert.equal(JSON.stringify(roundTrip(raw)), JSON.stringify(raw));
      }),
      { numRuns: 2_000 },
    );
  });

  it("the transcript line around a message, shortened if possible", () => {
    const message = { role: "user", content: "hi" };
    const lines: JsonObject[] = [
      { type: "message", id: "k", parentId: null, message, timestamp: "2026-01-01T00:00:00Z" },
      { type: "message", id: "k", parentId: "p", timestamp: "2026-02-17T07:36:59.993Z", message },
      { type: "message", id: "k", parentId: null, timestamp: "2026-02-17T07:37:00.000Z", message },
      { message, type: "message" },
      { type: "message", id: "other", timestamp: 5, extra: { a: [1] }, message },
      { type: "message", timestamp: "2026-02-17T07:37:00.000Z", message, id: "k" },
    ];
    for (const entry of lines) {
      const stored = messageToStore(entry["message"] ?? null, { ...origin, parentKey: "p", entry });
      assert.equal(JSON.stringify(entryFromStore({ parentKey: null, ...stored })), JSON.stringify(entry));
    }
    const broken = { type: "message", id: "\ud800", parentId: "\udc00", message };
    const stored = messageToStore(message, { ...origin, key: broken.id, parentKey: broken.parentId, entry: broken });
    assert.equal(JSON.stringify(entryFromStore({ parentKey: null, ...stored })), JSON.stringify(broken));
    assert.ok(stored.key.isWellFormed() && stored.key !== messageToStore(message, { ...origin, key: "\ud801" }).key);
    assert.equal(messageToStore(message, { ...origin, parentKey: "p", entry: lines[1] ?? {} }).entry, "yipt-7m");
  });
});

describe("a line that holds its message in another field", () => {
  const item = { type: "function_call", call_id: "c", name: "ls", arguments: "{}" };
  const parts = [{ type: "text", text: "the heron", id: "p" }];
  const said = { role: "user", content: parts };
  const lines: readonly (readonly [JsonObject, JsonObject, EntryHole | null])[] = [
    [{ at: 1, payload: said, more: [] }, said, { field: "payload", holds: "message" }],
    [
      { payload: item, ordinal: 3 },
      { role: "assistant", content: [item] },
      { field: "payload", holds: "block" },
    ],
    [{ info: { role: "user" }, parts }, said, { field: "parts", holds: "content" }],
    [{ text: "the heron", sender: "human" }, said, null],
  ];

  it("is written back equal, with its fields in their order", () => {
    for (const [entry, message, hole] of lines) {
      const stored = messageToStore(message, { ...origin, entry, hole });
      assert.equal(JSON.stringify(entryFromStore({ parentKey: null, ...stored })), JSON.stringify(entry));
    }
  });

  it("has no words of the message in its stored form", () => {
    for (const [entry, message, hole] of lines.slice(0, 3)) {
      const stored = messageToStore(message, { ...origin, entry, hole });
      assert.doesNotMatch(stored.entry ?? "", /heron|"ls"/);
    }
  });
});

describe("a standing instruction", () => {
  it("is the user's own, not one that a host or a tool's output gives in the user's name", () => {
    const text = "Always answer in German.";
    const standing = (content: Json) => findStanding(messageToStore({ role: "user", content }, origin));
    assert.notEqual(standing(text), null);
    assert.notEqual(standing([{ type: "input_text", text }]), null);
    assert.equal(standing([{ type: "text", text, synthetic: true }]), null);
    assert.equal(standing([{ type: "tool_result", tool_use_id: "t", content: text }]), null);
  });
});

describe("the text of a message", () => {
  it("is found even in a message without content, or with unknown blocks", () => {
    const textOf = (raw: JsonObject) => textOfParts(messageToStore(raw, origin).parts);
    const messages: JsonObject[] = [
      { role: "bashExecution", command: "grep needle", output: "found the needle", exitCode: 0 },
      { role: "model", parts: [{ text: "a needle" }] },
      { role: "user", content: { text: "the needle" } },
      { role: "assistant", content: [{ type: "custom", data: { deep: ["needle"] } }] },
    ];
    for (const message of messages) {
      assert.match(textOf(message), /needle/);
      assert.deepEqual(roundTrip(message), message);
    }
    assert.equal(textOf({ role: "assistant", provider: "p", model: "m", content: null }), "");
  });

  it("is its texts and calls, without its reasoning", () => {
    const { parts } = messageToStore(
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "secret plan" },
          { type: "text", text: "Reading." },
          { type: "toolCall", id: "1", name: "read", arguments: { path: "src/a.ts" } },
        ],
      },
      origin,
    );
    assert.equal(textOfParts(parts), 'Reading.\nread {"path":"src/a.ts"}');
  });

  it("has no reminder of the host that is sent beside the user's words", () => {
    const reminder = (text: string): Json => ({
      type: "text",
      text: `<system-reminder>\n${text}\n</system-reminder>\n`,
    });
    const cached = { ...(reminder("two\0 or more") as JsonObject), cache_control: { type: "ephemeral" } };
    const said = { type: "text", text: "Always answer in German." };
    const result = { type: "tool_result", tool_use_id: "t", content: "14:32" };
    const textFor = (content: Json, role = "user"): string => {
      const raw = { role, content };
      assert.deepEqual(roundTrip(raw), raw);
      return textOfParts(messageToStore(raw, origin).parts);
    };
    assert.equal(textFor([reminder("one"), cached, said, reminder("three")]), "Always answer in German.");
    assert.equal(textFor([result, reminder("one")]), "14:32");
    assert.match(textFor([reminder("only"), reminder("reminders")]), /only[^]*reminders/);
    assert.match(textFor([reminder("said"), said], "assistant"), /said/);
    assert.match(textFor([{ type: "text", text: "<system-reminder> is a tag" }, said]), /is a tag/);
    assert.match(textFor("<system-reminder>typed</system-reminder>"), /typed/);
    const withReminder = messageToStore({ role: "user", content: [reminder("Never use tabs."), said] }, origin);
    assert.equal(findStanding(withReminder)?.words, "Always answer in German.");
    const bare = messageToStore({ role: "user", content: [said] }, origin);
    assert.ok(withReminder.tokens > bare.tokens, "what it costs in a prompt is counted");
  });

  it("maps the host's roles onto the four that are stored", () => {
    const roleOf = (role: string) => messageToStore({ role, content: "" }, origin).role;
    assert.deepEqual(["user", "assistant", "toolResult", "tool", "function", "system", "custom"].map(roleOf), [
      "user",
      "assistant",
      "tool",
      "tool",
      "tool",
      "system",
      "system",
    ]);
  });

  it("is rejected if it is not a message", () => {
    for (const raw of [null, 3, "text", [], { content: "no role" }, { role: 5 }] as Json[]) {
      assert.throws(
        () => messageToStore(raw, origin),
        (error) => error instanceof LcmError && error.code === "invalid",
      );
    }
  });

  it("costs more tokens the longer it is, while a picture always costs the same", () => {
    const tokens = (content: Json) => estimateMessageTokens(messageToStore({ role: "user", content }, origin).parts);
    assert.ok(tokens("a longer sentence than the other one") > tokens("short"));
    assert.equal(
      tokens([{ type: "image", data: "x".repeat(10) }]),
      tokens([{ type: "image", data: "x".repeat(100_000) }]),
    );
  });

  it("costs as much for a picture inside a tool result as for one in the message", () => {
    const tokens = (content: Json) => estimateMessageTokens(messageToStore({ role: "user", content }, origin).parts);
    const picture = (data: string): Json => ({ type: "image", source: { type: "base64", data } });
    const result = (...content: readonly Json[]): Json => [{ type: "tool_result", tool_use_id: "t", content }];
    const text = { type: "text", text: 'it says "type":"image"' };
    assert.equal(tokens(result(text, picture("AAAA"), picture("A\nB"))), tokens(result(text)) + 2 * imageTokens);
    assert.equal(tokens(result({ type: "tool_result", content: [picture("A")] })), tokens(result()) + imageTokens);
    assert.equal(tokens(result(text)), tokens([text]), "words about a picture are words");
  });
});

describe("a media block", () => {
  it("is a block with a media type and without text", () => {
    for (const block of [{ type: "image" }, { type: "input_file", data: "" }, { type: "document" }] as const)
      assert.ok(isMedia(block), block.type);
    for (const block of [
      null,
      "image",
      ["image"],
      { type: "document", text: "in words" },
      { type: 7 },
      { type: "text" },
    ])
      assert.ok(!isMedia(block), JSON.stringify(block));
  });
});

describe("a call whose name a database cannot store", () => {
  it("is restored unchanged, and stored as text that a database accepts", () => {
    for (const name of ["re\0ad", "re\ud800ad"]) {
      const raw = { role: "assistant", content: [{ type: "toolCall", id: "c1", name, arguments: { path: "a" } }] };
      const stored = messageToStore(raw, { key: "k", at: "2026-02-17T07:37:00.000Z" as Timestamp });
      for (const words of [stored.parts[0]?.text, stored.parts[0]?.toolName])
        assert.ok(!/[\0\ud800]/.test(words ?? ""), JSON.stringify(words));
      assert.deepEqual(messageFromStore({ ...stored, at: stored.at }), raw);
    }
  });
});

describe("an empty part", () => {
  it("costs nothing; the older program stored some", () => {
    const nothing = {
      type: "agent",
      text: null,
      kept: null,
      toolCallId: null,
      toolName: null,
      metadata: null,
    } as const;
    assert.equal(estimateMessageTokens([nothing]), estimateMessageTokens([]));
  });
});
