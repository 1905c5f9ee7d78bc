import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkValid } from "../../../test/support/valid-prompt.ts";
import type { HostMessage } from "../messages/codec.ts";
import { presentMessage, tokensOf } from "./present-message.ts";
import { shortenMessage as shortenIfLeft } from "./shorten-message.ts";
import type { Json } from "../base/json.ts";

const text = (words: string): Json => ({ type: "text", text: words });
const presented = (raw: HostMessage, words = ""): HostMessage | null => presentMessage(raw, words);
const textOf = ({ content }: HostMessage): string => (typeof content === "string" ? content : JSON.stringify(content));
const shortenMessage = (raw: HostMessage, tokensMax: number, owner: string): HostMessage =>
  shortenIfLeft(raw, tokensMax, owner) ?? assert.fail("something is left");
const opening = { role: "user", content: "go" };

describe("a message in a prompt", () => {
  it("is the unchanged object wherever a provider accepts it", () => {
    const sent: readonly HostMessage[] = [
      { role: "user", content: "hello", timestamp: 7 },
      { role: "user", content: [text("hello"), { type: "image", data: "AAAA", mimeType: "image/png" }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "" }] },
      { role: "assistant", content: [{ type: "thinking", thinking: "hm", thinkingSignature: "s" }, text("yes")] },
      { role: "assistant", content: [{ type: "a kind of the future", data: 1 }] },
      { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: { name: "f" } }] },
      { role: "assistant", tool_calls: [{ id: "c", type: "function", function: { name: "f" } }] },
      { role: "toolResult", toolCallId: "a", content: [] },
      { role: "tool", tool_call_id: "a", content: "" },
    ];
    for (const raw of sent) assert.equal(presented(raw), raw);
  });

  it("has an assistant's text in blocks, also next to calls", () => {
    assert.deepEqual(presented({ role: "assistant", content: "yes", model: "m" }), {
      role: "assistant",
      content: [text("yes")],
      model: "m",
    });
    const calls = [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }];
    assert.deepEqual(presented({ role: "assistant", content: "look", tool_calls: calls }, "look f {}"), {
      role: "assistant",
      content: [text("look")],
      tool_calls: calls,
    });
    assert.equal(presented({ role: "assistant", content: "", tool_calls: calls })?.["content"], null);
  });

  it("is not shown if it has no content", () => {
    const empty: readonly HostMessage[] = [
      { role: "user", content: " \n" },
      { role: "user", content: [] },
      { role: "user", content: [text("  "), null, 7] },
      { role: "user", content: { odd: true } },
      { role: "assistant" },
      { role: "assistant", content: "", tool_calls: [] },
      { role: "custom", content: "" },
      { role: "custom", content: "secret", excludeFromContext: true },
    ];
    for (const raw of empty) assert.equal(presented(raw), null, JSON.stringify(raw));
  });

  it("shows as text what no provider accepts", () => {
    const odd: readonly HostMessage[] = [
      { role: "user", content: ["loose", null, { type: "toolCall", id: "a", name: "f", arguments: {} }] },
      { role: "user", content: [{ type: "tool_result", content: "whose?" }, { no: "type" }] },
      { role: "user", content: { odd: "words" } },
      { role: "assistant", content: [{ type: "toolCall", name: "f", arguments: {} }] },
      { role: "assistant", content: [{ type: "tool_result", tool_use_id: "a", content: "mine" }] },
      { role: "assistant", content: null, tool_calls: [{ function: { name: "no id" } }] },
      { role: "assistant", content: "there", tool_calls: null },
      { role: "assistant", content: [text("there")], tool_calls: {} },
      { role: "developer", content: "be kind" },
      { role: "branchSummary", summary: "left", timestamp: 3 },
      { role: "custom", content: [text("look"), { type: "image", data: "AAAA", mimeType: "image/png" }] },
    ];
    for (const raw of odd) {
      const message = presented(raw, "words");
      assert.ok(message !== null, JSON.stringify(raw));
      checkValid([opening, message]);
    }
    assert.deepEqual(presented({ role: "branchSummary", summary: "left", timestamp: 3 }, "left"), {
      role: "user",
      content: "[branchSummary] left",
      timestamp: 3,
    });
  });
});

describe("calls with the same id in one message", () => {
  const call = (id: string, path: string): Json => ({ type: "tool_use", id, name: "read", input: { path } });
  const beside = (id: string, path: string): Json => ({
    id,
    type: "function",
    function: { name: "f", arguments: path },
  });

  it("become one call, and text for each of the others", () => {
    const message = presented({
      role: "assistant",
      content: [call("x", "/one"), call("x", "/two"), call("y", "/three")],
      tool_calls: [beside("y", "/four"), beside("z", "/five"), beside("z", "/six")],
    });
    const { content, tool_calls: calls } = message ?? assert.fail();
    assert.ok(Array.isArray(content));
    assert.deepEqual([content[0], content[2]], [call("x", "/one"), call("y", "/three")]);
    assert.deepEqual(calls, [beside("z", "/five")]);
    assert.deepEqual(
      [content[1], content[3], content[4]].map(
        (block) => /^\[tool call, shown as text\].*"(\/\w+)"/.exec(block.text)?.[1],
      ),
      ["/two", "/four", "/six"],
    );
  });

  it("are left unchanged if the ids differ", () => {
    const raw = { role: "assistant", content: [call("x", "/")], tool_calls: [beside("y", "/")] };
    assert.deepEqual(presented(raw), raw);
  });
});

describe("a shortened message", () => {
  const long = (name: string): string => `start of ${name} ${"word ".repeat(2_000)}end of ${name}`;

  it("keeps its beginning and end, and reports how much is missing from what", () => {
    const shorter = shortenMessage({ role: "user", content: long("it") }, 100, "message 12");
    assert.ok(tokensOf(shorter) <= 100);
    assert.match(textOf(shorter), /^start of it[^]*\[… [\d,]+ characters of message 12 left out …\][^]*end of it$/);
  });

  it("keeps its calls callable", () => {
    const calls: HostMessage = {
      role: "assistant",
      content: [{ type: "toolCall", id: "i".repeat(90), name: "write", arguments: { text: long("a"), mode: 6 } }],
      tool_calls: [
        { id: "o".repeat(90), type: "function", function: { name: "f", arguments: JSON.stringify({ t: long("b") }) } },
      ],
    };
    const shorter = shortenMessage(calls, 200, "message 1");
    assert.ok(tokensOf(shorter) <= 200);
    const [block] = shorter["content"] as readonly { id: string; arguments: { mode: number } }[];
    assert.deepEqual([block?.id, block?.arguments.mode], ["i".repeat(90), 6]);
    const [beside] = shorter["tool_calls"] as readonly { id: string; function: { arguments: string } }[];
    assert.equal(beside?.id, "o".repeat(90));
    assert.ok(JSON.parse(beside?.function.arguments ?? ""));
  });

  it("drops reasoning, and replaces pictures by a note", () => {
    const picture = { type: "image", data: "AAAA", mimeType: "image/png" };
    const seen = shortenMessage({ role: "user", content: [picture, text(long("it"))] }, 300, "message 5");
    assert.match(JSON.stringify(seen), /\[image of message 5 left out\]/);
    const thought = { type: "thinking", thinking: long("thought"), thinkingSignature: "s" };
    const told = shortenMessage({ role: "assistant", content: [thought, text(long("it"))] }, 300, "message 6");
    assert.doesNotMatch(JSON.stringify(told), /thought/);
  });

  it("is not shown if it was all reasoning, but keeps its calls", () => {
    const thought = { type: "thinking", thinking: long("thought") };
    for (const role of ["user", "assistant"])
      assert.equal(shortenIfLeft({ role, content: [thought] }, 300, "message 6"), null);
    const calls = [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }];
    assert.deepEqual(shortenMessage({ role: "assistant", content: [thought], tool_calls: calls }, 300, "message 6"), {
      role: "assistant",
      content: null,
      tool_calls: calls,
    });
  });

  it("notes a picture however short it is", () => {
    const picture = { type: "image", data: "AAAA", mimeType: "image/png" };
    for (const tokensMax of [1_000, 30, 5, -5])
      assert.match(textOf(shortenMessage({ role: "user", content: [picture] }, tokensMax, "message 5")), /image of/);
  });

  it("keeps a picture whole or drops it", () => {
    const picture = { type: "image", data: "AAAA".repeat(40_000), mimeType: "image/png" };
    const shorter = shortenMessage(
      { role: "user", content: [picture, text(long("it").repeat(20))] },
      20_000,
      "message 5",
    );
    assert.ok(tokensOf(shorter) <= 20_000);
    assert.deepEqual(Array.isArray(shorter["content"]) && shorter["content"][0], picture);
  });

  it("keeps its tool results", () => {
    const content = Array.from({ length: 90 }, (_, at) => ({
      type: "tool_result",
      tool_use_id: `${at}`,
      content: "ok",
    }));
    assert.deepEqual(shortenMessage({ role: "user", content }, 20, "message 8")["content"], content);
  });

  it("becomes one text if it has too many blocks", () => {
    const content = Array.from({ length: 500 }, (_, at) => text(`piece ${at}`));
    const shorter = shortenMessage({ role: "user", content, timestamp: 5 }, 90, "message 7");
    assert.ok(tokensOf(shorter) <= 90);
    assert.match(textOf(shorter), /^piece 0[^]*left out[^]*piece 499$/);
    assert.equal(shorter["timestamp"], 5);
  });
});
