/**
 * Any sequence of what agents do (go on, rewind, edit, trim, compact, fork, resume, retry, give up), with thoughts, pictures,
 * calls at once and tools that are loaded by a search, gives bodies that a strict provider takes, stores each message once,
 * and changes nothing outside the messages. `SEEDS=1000 npx node --test test/proxy/any-sequence.test.ts` tries more.
 */

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  agentOn,
  findingsIn,
  saidBy,
  startProxyGround,
  storedPieces,
  type ProxyGround,
} from "../support/proxy-ground.ts";
import { createRandom, type Random } from "../support/random.ts";
import type { ScriptedAgent } from "../support/scripted-agent.ts";
import { violationsIn, type WireName } from "../support/strict-provider.ts";

const steps = 40;
const weights = {
  extend: 12,
  edit: 2,
  regenerate: 1,
  trim: 1,
  compact: 1,
  fork: 1,
  restart: 1,
  resume: 1,
  retry: 2,
  abort: 1,
  fault: 1,
};

async function step(random: Random, ground: ProxyGround, agents: ScriptedAgent[], number: number): Promise<string> {
  const agent = random.pick(agents);
  const kind = random.weighted(weights);
  const prompts = agent.prompts();
  const tool = random.pick(["read", "read", "look", "search"]);
  const call = random.chance(0.4) ? `CALL ${tool} {"path":"file${number}"}${random.chance(0.3) ? " TWICE" : ""}` : "";
  const picture = random.chance(0.15) ? Buffer.from(`picture ${number}`).toString("base64") : undefined;
  const think = random.chance(0.2) ? "THINK" : "";
  // Some prompts are said again and again; but in the place of another one, the same words are a retry.
  const words =
    kind !== "edit" && random.chance(0.15)
      ? "go on"
      : `Step ${number}: ${think} BIG ${random.between(1, 80)} ${call} about topic ${number}`;
  switch (kind) {
    case "extend":
      await agent.prompt(words, picture);
      break;
    case "edit":
      if (prompts.length > 1) agent.rewind(random.pick(prompts.slice(1)));
      await agent.prompt(words, picture);
      break;
    case "regenerate":
      if (prompts.length > 1) {
        agent.rewind((prompts.at(-1) ?? 0) + 1);
        await agent.run();
      }
      break;
    case "trim":
      agent.trim();
      await agent.prompt(words, picture);
      break;
    case "compact":
      if (agent.history.length > 6) await agent.compact(random.pick([0, 1, 2]));
      await agent.prompt(words, picture);
      break;
    case "fork":
      if (agents.length < 4) agents.push(agent.fork(`s${agents.length + 1}`));
      break;
    case "restart":
      await ground.restart();
      break;
    case "resume":
      agent.resume();
      await agent.prompt(words, picture);
      break;
    case "retry": {
      agent.add(agent.user(words, picture));
      await agent.send(agent.history);
      await agent.run();
      break;
    }
    case "abort": {
      agent.add(agent.user(words, picture));
      ground.provider.faults.push({ kind: "hang" });
      const asked = ground.provider.requests.length;
      const abort = new AbortController();
      const sent = agent.send(agent.history, "turn", abort.signal).catch(() => null);
      while (ground.provider.requests.length === asked) await sleep(5);
      abort.abort();
      await sent;
      await agent.run();
      break;
    }
    case "fault": {
      agent.add(agent.user(words, picture));
      ground.provider.faults.push({ kind: "die" });
      await agent.send(agent.history).catch(() => null);
      await agent.run();
    }
  }
  await ground.settled();
  return `${agent.options.sessionId} ${kind}`;
}

/** What is in one list and not in the other, or more often. */
function differences(stored: readonly string[], said: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const piece of stored) counts.set(piece, (counts.get(piece) ?? 0) + 1);
  for (const piece of said) counts.set(piece, (counts.get(piece) ?? 0) - 1);
  return [...counts].flatMap(([piece, count]) =>
    count === 0 ? [] : [`${count > 0 ? "+" : ""}${count} ${piece.slice(0, 60)}`],
  );
}

/** The fields of a body but for its messages. */
const outside = (wire: WireName, raw: string): string => {
  const { [wire === "responses" ? "input" : "messages"]: _, ...rest } = JSON.parse(raw) as Record<string, unknown>;
  return JSON.stringify(rest);
};

const { SEED, SEEDS = "6" } = process.env;
const seeds = SEED === undefined ? Array.from({ length: Number(SEEDS) }, (_, at) => at + 1) : [Number(SEED)];

for (const wire of ["anthropic", "chat", "responses"] as const) {
  describe(`any sequence of steps over ${wire}`, () => {
    for (const seed of seeds) {
      it(`is stored once and refused never (seed ${seed})`, async () => {
        const random = createRandom(seed * 97 + wire.length);
        const tokensMax = random.pick([2_500, 4_000, 8_000]);
        const ground = await startProxyGround({ tokensMax });
        const agents = [agentOn(ground, wire, "s1")];
        const done: string[] = [];
        try {
          await agents[0]?.prompt("the first prompt");
          await ground.settled();
          for (let number = 1; number <= steps; number++) {
            done.push(await step(random, ground, agents, number));
            const refused = ground.provider.requests.filter(({ violations }) => violations.length > 0);
            assert.deepEqual(
              refused.map(({ violations }) => violations),
              [],
              done.join(", "),
            );
            assert.deepEqual(ground.runtime.troubles, [], done.join(", "));
          }
          const [first] = ground.provider.requests;
          const lasts = new Set(agents.flatMap((agent) => [...agent.lasts]));
          for (const { raw, body } of ground.provider.requests) {
            if (body.tools !== undefined) assert.equal(outside(wire, raw), outside(wire, first?.raw ?? ""));
            const last = JSON.stringify((body.input ?? body.messages).at(-1));
            // Two pictures at once do not fit the others.
            if (tokensMax === 8_000)
              assert.ok(lasts.has(last), `${last.slice(0, 400)} is sent last, but was not said last`);
          }
          for (const agent of agents) {
            const stored = await storedPieces(ground, agent.options.sessionId ?? "");
            assert.deepEqual(differences(stored, saidBy(agent)), [], `${agent.options.sessionId}: ${done.join(", ")}`);
          }
          assert.deepEqual(await findingsIn(ground), []);
        } finally {
          await ground.close();
        }
      });
    }
  });
}

describe("the strict provider", () => {
  it("refuses what a real one refuses", () => {
    const user = { role: "user", content: "hello" };
    const call = { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "read", input: {} }] };
    assert.equal(violationsIn("anthropic", { messages: [user] }).length, 0);
    assert.ok(violationsIn("anthropic", { messages: [call] }).length > 0);
    assert.ok(violationsIn("anthropic", { messages: [user, call, user] }).length > 0);
    assert.ok(violationsIn("chat", { messages: [{ role: "tool", tool_call_id: "c1", content: "" }] }).length > 0);
    assert.ok(violationsIn("responses", { input: [{ type: "function_call_output", call_id: "c1" }] }).length > 0);
  });
});
