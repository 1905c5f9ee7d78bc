import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Json } from "../../core/base/json.ts";
import { LiveTurn } from "./live-turn.ts";

describe("a live turn", () => {
  it("is found after messages that are nested too deeply, and counts what it costs", () => {
    let deep: Json = "leaf";
    for (let level = 0; level < 20_000; level++) deep = { 0: deep };
    const before = { role: "user", content: [{ type: "tree", root: deep }] };
    const now = { role: "assistant", content: [{ type: "text", text: "Let me see." }], details: deep };
    const call = { sessionId: "s", messages: [before], prompt: "Next?", tokenBudget: 8_000 };
    const turn = new LiveTurn();
    turn.attemptOf(call);
    assert.equal(turn.unstoredTokens, 0);
    turn.attempt = null;
    turn.attemptOf({ ...call, messages: [before, now] });
    assert.ok(turn.unstoredTokens > 20_000, `${turn.unstoredTokens} tokens`);
    assert.deepEqual(turn.append([], 0).messages.length, 1);
  });
});
