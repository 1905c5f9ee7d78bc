import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { LcmError } from "../base/errors.ts";
import { messagesOfDocument, readTranscriptLine } from "./transcript-line.ts";
import type { Timestamp } from "../base/time.ts";

const now = "2026-11-15T08:37:00.000Z" as Timestamp;
const read = (value: unknown, position = 7) =>
  readTranscriptLine(typeof value === "string" ? value : JSON.stringify(value), position, now);

function itemOf(value: unknown, position?: number) {
  const line = read(value, position);
  assert.equal(line.kind, "item");
  return line.kind === "item" ? line : assert.fail();
}

describe("a line of a transcript", () => {
  it("is a message with its own id and its parent's", () => {
    const { item } = itemOf({
      type: "message",
      id: "e2",
      parentId: "e1",
      timestamp: "2026-01-01T00:00:00Z",
      message: { role: "user", content: "hi", timestamp: 1_767_225_600_500 },
    });
    assert.ok(item.kind === "message");
    assert.equal(item.key, "e2");
    assert.equal(item.parentKey, "e1");
    assert.equal(item.at, "2026-01-01T00:00:00.500Z", "the message's own time comes first");
  });

  it("is identified by its position if it has no id", () => {
    const { item } = itemOf(
      { type: "message", timestamp: "2026-01-01T00:00:00Z", message: { role: "user", content: "hi" } },
      12,
    );
    assert.ok(item.kind === "message");
    assert.equal(item.key, "@12");
    assert.equal(item.parentKey, undefined);
  });

  it("names the session in its header, and the header's key is never an entry's id", () => {
    const { item, sessionId } = itemOf({ type: "session", id: "abc", timestamp: "2026-01-01T00:00:00Z", cwd: "/" });
    assert.equal(sessionId, "abc");
    assert.ok(item.kind === "entry");
    assert.equal(item.entry.key, "session:abc");
  });

  it("is stored whole if it is not a message, so that nothing is lost", () => {
    const value = { type: "model_change", timestamp: "2026-01-01T00:00:00Z", provider: "x" };
    const { item } = itemOf(value);
    assert.ok(item.kind === "entry");
    assert.deepEqual(JSON.parse(item.entry.raw), value);
    assert.equal(item.entry.type, "model_change");
    const odd = itemOf({ type: "message", message: { no: "role" } });
    assert.ok(odd.item.kind === "entry");
  });

  it("is a plain chat message with an optional id and time", () => {
    const { item } = itemOf({ role: "assistant", content: "hello", id: 5, timestamp: "2026-01-01 10:00:00" });
    assert.ok(item.kind === "message");
    assert.equal(item.key, "5");
    assert.equal(item.at, "2026-01-01T10:00:00.000Z");
    const bare = itemOf({ role: "user", content: "hello" });
    assert.ok(bare.item.kind === "message");
    assert.equal(bare.item.at, now);
  });

  it("is blank, or malformed with a reason", () => {
    assert.equal(read("   ").kind, "blank");
    for (const torn of ['{"type":"mess', "[1,2", "42", '"text"', "null"]) {
      const line = read(torn);
      assert.ok(line.kind === "malformed" && line.reason.length > 0, torn);
    }
  });
});

describe("a whole JSON document", () => {
  it("is a list of messages, or an object with one", () => {
    assert.equal(messagesOfDocument([{ role: "user" }]).length, 1);
    assert.equal(messagesOfDocument({ messages: [1, 2] }).length, 2);
    assert.throws(
      () => messagesOfDocument({ other: [] }),
      (error) => error instanceof LcmError && error.hint !== undefined,
    );
  });
});
