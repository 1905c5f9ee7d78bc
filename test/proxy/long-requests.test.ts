/** A long conversation that the proxy sees for the first time: nobody waits for it longer than the deadline. */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { agentOn, saidBy, startProxyGround, storedPieces, type ProxyGround } from "../support/proxy-ground.ts";
import type { ScriptedAgent } from "../support/scripted-agent.ts";

function longAgent(ground: ProxyGround, messages: number): ScriptedAgent {
  const agent = agentOn(ground, "anthropic", "long");
  for (let number = 0; number < messages; number += 2) {
    agent.add(agent.user(`Prompt ${number}: ${"words about the task at hand, ".repeat(6)}`));
    agent.add({
      role: "assistant",
      content: [{ type: "text", text: `Answer ${number}: ${"and so on. ".repeat(12)}` }],
    });
  }
  agent.add(agent.user("The prompt at the end"));
  return agent;
}

/** Until the proxy has dealt with this many requests of the session, in time or not. */
async function dealtWith(ground: ProxyGround, requests: number): Promise<void> {
  const status = () => ground.service.status().sessions.find(({ session }) => session === "long");
  while ((status()?.requests ?? 0) < requests) await sleep(5);
  await ground.settled();
}

describe("a long request that is new to the proxy", () => {
  it("goes on unchanged at the deadline, is stored all the same, and the next one gets our prompt", async () => {
    const hasty = await startProxyGround({ patienceMs: 1 });
    const agent = longAgent(hasty, 4_000);
    try {
      await agent.send(agent.history);
      assert.equal(hasty.provider.requests[0]?.raw, JSON.stringify(agent.body(agent.history)));
      await dealtWith(hasty, 1);
      assert.equal(hasty.service.status().sessions[0]?.whyUnchanged, "it could not be read in time");
      assert.equal((await storedPieces(hasty, "long")).length, agent.history.length);
      const [conversation] = await (await hasty.lcm()).store.conversations({ sessionId: "long" });
      assert.ok((conversation?.totals.summaries ?? 0) > 0, "what made it late is folded behind it");
    } finally {
      await hasty.close();
    }
    const ground = await startProxyGround({ path: hasty.path });
    try {
      const resumed = agentOn(ground, "anthropic", "long");
      resumed.history = agent.history;
      await resumed.run();
      await dealtWith(ground, 1);
      assert.equal(ground.service.status().sessions[0]?.replaced, 1);
      assert.deepEqual(await storedPieces(ground, "long"), saidBy(resumed));
    } finally {
      await ground.close();
    }
  });

  it("keeps no other session waiting", async () => {
    const ground = await startProxyGround();
    try {
      const agent = longAgent(ground, 8_000);
      const done = new AbortController();
      const long = agent.send(agent.history).finally(() => done.abort());
      const other = agentOn(ground, "anthropic", "other");
      let answers = 0;
      for (; !done.signal.aborted; answers++) await other.prompt(`Small prompt ${answers}`);
      await long;
      assert.ok(answers > 10, `${answers} answers meanwhile`);
      assert.deepEqual(ground.runtime.troubles, []);
    } finally {
      await ground.close();
    }
  });
});
