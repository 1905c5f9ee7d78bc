import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { newestFitting, sumTokens } from "./prompts.ts";

describe("the host's own messages, when ours cannot be shown", () => {
  const user = { role: "user", content: "go on" };
  const call = { role: "assistant", content: [{ type: "toolCall", id: "c1", name: "bash", arguments: {} }] };

  it("fit with what stands in for results that are missing", () => {
    const messages = [{ role: "user", content: "long ago ".repeat(500) }, user, call, user];
    const own = sumTokens(messages.slice(1));
    for (let budget = own; budget < own + 40; budget++) {
      const shown = newestFitting(messages, budget);
      assert.ok(sumTokens(shown) <= budget, `${sumTokens(shown)} of ${budget}`);
      assert.deepEqual(shown.at(-1), user);
    }
  });
});
