import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { blocksIn } from "./blocks.ts";

const reminder = { type: "text", text: "<system-reminder>\n99 tokens left\n</system-reminder>" };
const said = { type: "text", text: "Which build tool?" };
const kindsIn = (role: string, ...content: (typeof said)[]) =>
  blocksIn({ role, content }, new Set()).map(({ kind }) => kind);

describe("the blocks of a message", () => {
  it("tell a reminder of the host from what the user said beside it", () => {
    assert.deepEqual(kindsIn("user", reminder, said, reminder), ["reminder", "text", "reminder"]);
    assert.deepEqual(kindsIn("user", reminder), ["text"]);
    assert.deepEqual(kindsIn("assistant", reminder, said), ["text", "text"]);
  });
});
