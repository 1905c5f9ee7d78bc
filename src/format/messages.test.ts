import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Timestamp } from "../core/base/time.ts";
import { messageToStore, textOfParts } from "../core/messages/codec.ts";
import type { Message } from "../core/model/types.ts";
import { inShort, sectionsOf } from "./messages.ts";

const text = (words: string) => ({ type: "text", text: words });
const messageOf = (...content: ReturnType<typeof text>[]): Message => {
  const origin = { key: "k", at: "2026-02-17T07:37:00.000Z" as Timestamp };
  const stored = messageToStore({ role: "user", content }, origin);
  return { ...stored, aside: null, text: textOfParts(stored.parts) } as unknown as Message;
};
const reminder = text("<system-reminder>\n99 tokens left\n</system-reminder>");

describe("a message with reminders of the host", () => {
  it("shows what the user said first, and in short nothing else", () => {
    const message = messageOf(reminder, text("Which build tool?"), reminder);
    assert.equal(inShort(message), "Which build tool?");
    assert.deepEqual(
      sectionsOf(message).map(({ kind }) => kind),
      ["said", "reminder", "reminder"],
    );
  });

  it("shows a reminder that stands alone", () => {
    assert.match(inShort(messageOf(reminder)), /99 tokens left/);
  });
});
