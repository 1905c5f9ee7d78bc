import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { messageToStore } from "../../core/content.ts";
import type { Json, MessageId, ConversationId, Timestamp } from "../../core/model.ts";
import { wordFinder } from "./grep.ts";
import { inShort } from "./messages.ts";
import { seconds } from "./options.ts";

describe("what is marked in a hit", () => {
  const marked = (pattern: string, line: string): readonly string[] =>
    wordFinder(pattern)(line).map(([from, to]) => line.slice(from, to));

  it("is a word in its other forms too", () => {
    assert.deepEqual(marked("migrations", "The migration was migrated; a migrant was not."), ["migration", "migrated"]);
    assert.deepEqual(marked("retry", "Retry, retries, retried."), ["Retry", "retries", "retried"]);
  });

  it("is not a part of another word", () => {
    assert.deepEqual(marked("cat", "cat category concat"), ["cat"]);
  });

  it("is found where there are no spaces", () => {
    assert.deepEqual(marked("旅館", "京都の旅館です"), ["旅館"]);
    assert.deepEqual(marked("👍", "ok👍"), ["👍"]);
  });

  it("is nothing where the pattern has no word", () => {
    assert.deepEqual(marked("!!", "a!!"), []);
  });
});

describe("a message in one line", () => {
  const lineOf = (...content: readonly Json[]): string => {
    const stored = messageToStore(
      { role: "assistant", content },
      { key: "k", at: "2026-02-17T07:37:00.000Z" as Timestamp },
    );
    const place = { id: 1 as MessageId, conversation: 1 as ConversationId, seq: 1, parentKey: null, aside: null };
    return inShort({ ...stored, ...place, text: "", moved: [] });
  };

  it("calls a block that says nothing by the host's own word for it", () => {
    assert.equal(lineOf({ type: "hologram", frames: [1] }, { type: "image", data: "aGVsbG8=" }), "[hologram]  [image]");
    assert.equal(lineOf({ type: "text", text: "see" }, { type: "input_audio", id: 3 }), "see  [input_audio]");
  });

  it("does not make up a word for a block that has none", () => {
    assert.equal(lineOf({ frames: [1] }, 42, null), "[unknown]  [unknown]  [unknown]");
  });

  it("shows such a word harmless and short", () => {
    assert.equal(lineOf({ type: "\u001b[31mred\nblock" }), "[␛[31mred block]");
    assert.equal(lineOf({ type: "x".repeat(1_000) }).length, 42);
  });
});

describe("a number of seconds", () => {
  it("is more than 0 and up to an hour", () => {
    assert.equal(seconds("0.5"), 0.5);
    assert.equal(seconds("3600"), 3_600);
    for (const text of ["0", "0.0", "3601", "-1", "soon", ""])
      assert.throws(() => seconds(text), /more than 0 and up to 3600/, text);
  });
});
