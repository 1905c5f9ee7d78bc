/**
 * Of each request, only what differs from the one before is read. That must not show: a proxy that reads every request from
 * its beginning finds the same in it, and sends the same bytes.
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Timestamp } from "../../src/core/base/time.ts";
import { readRequest, type Request } from "../../src/proxy/request.ts";
import { anthropic } from "../../src/proxy/wires/anthropic.ts";
import { chat } from "../../src/proxy/wires/chat.ts";
import { responses } from "../../src/proxy/wires/responses.ts";
import type { Wire } from "../../src/proxy/wires/wire.ts";
import { startProxyGround } from "../support/proxy-ground.ts";
import { createRandom, type Random } from "../support/random.ts";
import { ScriptedAgent, type AgentOptions } from "../support/scripted-agent.ts";

const wires = { anthropic, chat, responses };
const steps = 24;
const weights = { extend: 8, rewind: 2, edit: 2, trim: 1, compact: 1, retry: 2, long: 1 };

/** Each of its requests seems to come from another program, so that the proxy has none before it to compare with. */
class ForgottenAgent extends ScriptedAgent {
  override headers(kind: "turn" | "compaction"): Record<string, string> {
    return { ...super.headers(kind), "user-agent": `program-${this.sent}` };
  }
}

async function step(random: Random, agent: ScriptedAgent, number: number): Promise<void> {
  const kind = random.weighted(weights);
  const call = random.chance(0.3) ? `CALL read {"path":"file${number}"}` : "";
  const words = `Step ${number}: ${random.chance(0.2) ? "THINK" : ""} BIG ${random.between(1, 60)} ${call}`;
  const prompts = agent.prompts();
  if (kind === "rewind" && prompts.length > 1) agent.rewind(random.pick(prompts.slice(1)));
  if (kind === "trim") agent.trim();
  if (kind === "edit" && prompts.length > 2)
    agent.history = agent.history.with(random.pick(prompts.slice(1, -1)), agent.user(`Edited in step ${number}`));
  if (kind === "compact" && agent.history.length > 6) await agent.compact(random.pick([0, 1, 2]));
  if (kind === "retry") {
    agent.add(agent.user(words));
    await agent.send(agent.history);
    await agent.run();
    return;
  }
  // More than is read at once.
  await agent.prompt(kind === "long" ? `${words} ${"and so on, ".repeat(40_000)}` : words);
}

/** What a provider is sent by a proxy, without ids that are drawn at random. */
async function sentBy(Agent: typeof ScriptedAgent, wire: AgentOptions["wire"], seed: number) {
  let seconds = 1_900_000_000;
  const ground = await startProxyGround({
    tokensMax: 4_000,
    clock: { now: () => new Date(seconds++ * 1_000).toISOString() as Timestamp },
  });
  try {
    const random = createRandom(seed);
    const agent = new Agent({ base: () => ground.proxy.urlOf("model"), wire, sessionId: "s1" });
    const send = agent.send.bind(agent);
    agent.send = async (...request) => {
      const answer = await send(...request);
      // What is folded behind an answer must not depend on how soon the next request comes.
      await ground.settled();
      return answer;
    };
    for (let number = 1; number <= steps; number++) await step(random, agent, number);
    assert.deepEqual(ground.runtime.troubles, []);
    const { replaced = 0 } = ground.service.status().sessions[0] ?? {};
    return { replaced, bodies: ground.provider.requests.map(({ raw }) => withoutIds(raw)) };
  } finally {
    await ground.close();
  }
}

const withoutIds = (raw: string): string => raw.replaceAll(/\b(sum|file)_[0-9a-f]{16}\b/g, "$1_…");

function readWhole(wire: Wire, bytes: Buffer, last: Request | null): Request {
  const reading = readRequest(wire, bytes, last);
  for (;;) {
    const { done, value } = reading.next();
    if (done !== true) continue;
    assert.ok(value !== null, bytes.toString());
    return value;
  }
}

for (const wire of ["anthropic", "chat", "responses"] as const) {
  describe(`reading only what differs, over ${wire}`, () => {
    for (const seed of [11, 12]) {
      it(`sends what reading everything sends (seed ${seed})`, async () => {
        const [usual, forgotten] = [await sentBy(ScriptedAgent, wire, seed), await sentBy(ForgottenAgent, wire, seed)];
        assert.deepEqual(usual, forgotten);
        assert.ok(usual.replaced > 5, `${usual.replaced} replaced`);
      });
    }

    it("reads in slices, so that others are served in between", () => {
      const agent = new ScriptedAgent({ base: () => "", wire, sessionId: "s1" });
      for (let number = 0; number < 5_000; number++) agent.add(agent.user(`Step ${number} ${"of many ".repeat(20)}`));
      const bytes = Buffer.from(JSON.stringify(agent.body(agent.history)));
      const reading = readRequest(wires[wire], bytes, null);
      let slices = 0;
      while (reading.next().done !== true) slices++;
      // Once to find the messages, and once to read them.
      assert.ok(slices >= 2 * Math.floor(bytes.length / 300_000), `${slices} slices of ${bytes.length} bytes`);
    });

    it("finds the same in every request", () => {
      let [kept, read] = [0, 0];
      for (let seed = 1; seed <= 40; seed++) {
        const random = createRandom(seed);
        const agent = new ScriptedAgent({ base: () => "", wire, sessionId: "s1" });
        let last: Request | null = null;
        for (let number = 1; number <= 30; number++) {
          const at = random.below(agent.history.length + 1);
          if (random.chance(0.1)) agent.rewind(at);
          if (random.chance(0.1) && at < agent.history.length)
            agent.history = agent.history.with(at, agent.user(`Edited ${number}`));
          if (random.chance(0.8)) agent.add(agent.user(random.pick(["go on", `Step ${number} 😀 "\\`])));
          if (agent.history.length === 0) continue;
          const system = random.chance(0.1) ? { instructions: `Other words ${number}` } : {};
          const bytes = Buffer.from(JSON.stringify({ ...system, ...agent.body(agent.history) }));
          const request: Request = readWhole(wires[wire], bytes, last);
          const whole = readWhole(wires[wire], bytes, null);
          kept += request.scanned.keptElements;
          read += request.scanned.count - request.scanned.keptElements;
          assert.deepEqual(withoutKept(request), withoutKept(whole));
          last = request;
        }
      }
      assert.ok(kept > 3 * read, `${kept} kept, ${read} read`);
    });
  });
}

const withoutKept = ({ scanned, ...request }: Request): object => {
  const { keptElements: _, keptBytes: __, ...found } = scanned;
  return { ...request, found };
};
