import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { messageFromStore, messageToStore, textOfParts } from "./content.ts";
import { forgetMessage, forgottenMark, redactJson, redactMessage, redactText } from "./forget.ts";
import type { ConversationId, JsonObject, Message, MessageId, Timestamp } from "./model.ts";

const at = "2026-01-01T00:00:00.000Z" as Timestamp;

function stored(raw: JsonObject): Message {
  const message = messageToStore(raw, { key: "k", at, entry: { type: "message", id: "k", note: "n", message: raw } });
  return {
    ...message,
    id: 1 as MessageId,
    conversation: 1 as ConversationId,
    seq: 1,
    parentKey: null,
    text: textOfParts(message.parts),
    aside: null,
  };
}

describe("forgetting", () => {
  it("leaves of a message only its place", () => {
    const left = forgetMessage(
      stored({
        role: "toolResult",
        toolCallId: "t",
        toolName: "read",
        content: [{ type: "text", text: "secret" }],
        details: { secret: 1 },
      }),
    );
    assert.deepEqual(messageFromStore({ ...left, role: "tool", at }), {
      role: "toolResult",
      toolCallId: "t",
      toolName: "read",
      content: forgottenMark,
    });
    assert.ok(!JSON.stringify(left).includes("secret"));
  });

  it("blots a secret out of text, thinking, arguments, envelopes and lines", () => {
    const secret = 'sk-"42"';
    const left = redactMessage(
      stored({
        role: "assistant",
        content: [
          { type: "text", text: `key ${secret}.` },
          { type: "thinking", thinking: secret },
          {
            type: "toolCall",
            id: "1",
            name: "x",
            arguments: { [secret]: [secret, { deep: JSON.stringify({ k: secret }) }] },
          },
          { type: "image", data: secret },
        ],
        note: secret,
      }),
      secret,
    );
    assert.ok(!JSON.stringify(left).includes("42"), JSON.stringify(left));
    const raw = messageFromStore({ ...left, role: "assistant", at });
    assert.equal((raw["content"] as { text: string }[])[0]?.text, `key ${forgottenMark}.`);
  });

  it("forgets a number and keeps the JSON around it", () => {
    assert.equal(redactJson('{"pin":12345,"other":1}', "12345"), `{"pin":"${forgottenMark}","other":1}`);
    assert.equal(redactJson(null, "12345"), null);
  });

  it("leaves nothing of any secret, and every message can still be rebuilt", () => {
    const word = fc.stringMatching(/^[a-z0-9"\\{}:, ]{4,12}$/);
    fc.assert(
      fc.property(word, fc.jsonValue(), (secret, value) => {
        const args = { a: secret, b: value as never, c: `x${secret}y` };
        const message = stored({
          role: "assistant",
          content: [
            { type: "text", text: `${secret}!${secret}` },
            { type: "toolCall", id: "1", name: "f", arguments: args },
          ],
        });
        const left = redactMessage(message, secret);
        const raw = messageFromStore({ ...left, role: "assistant", at });
        assert.ok(!redactText(secret, secret).includes(secret));
        assert.equal((raw["content"] as unknown[]).length, 2);
      }),
    );
  });
});
