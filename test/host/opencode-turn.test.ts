/** One long turn of the real OpenCode in a small window: its question stays word for word in every request. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { startModelServer } from "./model-server.ts";
import { assertStored, tokensOfRequest, turnsOf } from "./opencode-script.ts";
import { createHome, openCodePlugin, removeHome, startOpenCode } from "./opencode-server.ts";

const window = 32_000;
const turnMs = 10 * 60_000;

describe("guarantee 12: one turn of a hundred tool calls in OpenCode", () => {
  it("shows the question word for word in every request, until the answer", async (test) => {
    const calls = 100;
    const model = await startModelServer();
    const limit = { context: window, output: 2_000 };
    const home = createHome({ modelUrl: model.url, plugin: openCodePlugin(), limit });
    const host = await startOpenCode(home);
    try {
      const session = await host.createSession();
      let steps = 0;
      model.script(({ tools }) => {
        if (tools.length === 0) return "A title.";
        const command = `printf 'harbour ${++steps} lantern %.0s' $(seq 100)`;
        const call = { name: "bash", args: { command, description: "count" } };
        return { kind: "answer", text: `Step ${steps}.`, ...(steps <= calls ? { calls: [call] } : {}) };
      });
      const question = `Count ${calls} times, and say which of the numbers are <prime> & "round". ${"quince ".repeat(150)}end`;
      await host.prompt(session, question, turnMs);
      const asked = turnsOf(model.asked);
      assert.equal(asked.length, calls + 1);
      for (const [at, each] of asked.entries()) {
        const { ours, bytes } = tokensOfRequest(each);
        assert.ok(Math.max(ours, bytes) <= window, `request ${at + 1} has ${ours} tokens, ${bytes} by its bytes`);
        const shown = each.messages.filter(({ role, text }) => role === "user" && text === question);
        assert.equal(shown.length, 1, `request ${at + 1}`);
      }
      const { conversation } = await assertStored(home, session);
      assert.ok(conversation.totals.summaries > 2, `${conversation.totals.summaries} summaries`);
      test.diagnostic(`${asked.length} requests of one turn, ${conversation.totals.summaries} summaries`);
    } finally {
      await host.kill();
      removeHome(home);
      await model.close();
    }
  });
});
