/** Tests sessions that a session starts: what is stored of them, what they are shown, and what their parent learns. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { makeScratch } from "../support/scratch.ts";
import { models, startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { startModelServer } from "./model-server.ts";
import type { Asked, ModelServer, Script } from "./model-server.ts";
import { recordedPlugin } from "./plugin.ts";
import type { EngineCall } from "./plugin.ts";
import { assertStored, segmentsOf, withStore } from "./stored.ts";
import { assertValid, requestsOf } from "./wire.ts";

const secret = "The word is xylophone.";

describe("child sessions on the host", () => {
  let server: ModelServer;
  let gateway: Gateway;
  let calls: () => readonly EngineCall[];

  /** A parent spawns what it is told to, a child searches for the word, and the recipient of a result repeats it. */
  const reply: Script = ({ session, prompt, results, tools }) => {
    if (session.includes(":subagent:")) {
      if (results.length > 0) return `The child is done: ${results.join().replaceAll(/\s+/g, " ").slice(0, 300)}`;
      if (!tools.includes("lcm_grep")) return "The child is done without tools.";
      return { kind: "answer", calls: [{ name: "lcm_grep", args: { pattern: "xylophone" } }] };
    }
    const [, context] = /^Spawn (isolated|fork)/.exec(prompt) ?? [];
    if (context === undefined || results.length > 0)
      return `Noted: ${/The child is done[^<]*/.exec(prompt)?.[0] ?? "nothing"}`;
    return { kind: "answer", calls: [{ name: "sessions_spawn", args: { task: "Count the ants.", context } }] };
  };
  const until = async <T>(look: () => T | undefined, what: string): Promise<T> => {
    const deadline = AbortSignal.timeout(60_000);
    for (;;) {
      const found = look();
      if (found !== undefined) return found;
      if (deadline.aborted) assert.fail(`${what} did not happen\n${gateway.log().slice(-3_000)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  /** Spawns a child, and waits until its parent has received the result. */
  const spawn = async (parent: string, context: "isolated" | "fork"): Promise<string> => {
    const before = server.asked.length;
    await gateway.chat(parent, `Spawn ${context} child.`);
    const since = (): readonly Asked[] => server.asked.slice(before);
    const child = await until(() => since().find(({ session }) => session.includes(":subagent:"))?.session, "a child");
    await until(
      () => requestsOf(since(), parent).find(({ prompt }) => prompt.includes("The child is done")),
      "the announcement",
    );
    return child;
  };
  const promptsOf = (session: string): readonly Asked[] => requestsOf(server.asked, session);
  const toolsOf = (session: string): readonly string[] =>
    (promptsOf(session)[0]?.tools ?? []).filter((name) => name.startsWith("lcm_"));
  const segmentsIn = async (session: string) => await withStore(gateway, async (lcm) => await segmentsOf(lcm, session));

  before(async () => {
    server = await startModelServer();
    server.script(reply);
    const recorded = recordedPlugin(makeScratch("children"), {
      ignoreSessionPatterns: ["agent:left:subagent:*"],
      statelessSessionPatterns: ["agent:reader:subagent:*"],
    });
    calls = recorded.calls;
    const { openai } = models;
    gateway = await startGateway({
      server,
      plugins: recorded.plugins,
      config: {
        agents: {
          defaults: { model: { primary: openai }, models: { [openai]: {} } },
          entries: { main: { default: true }, left: {}, reader: {} },
        },
        tools: { toolSearch: false },
      },
    });
  });
  after(async () => await server.close());

  describe("guarantee 25: scope holds, on the host, for a child without context", () => {
    const parent = "agent:main:isolated";
    let child: string;

    it("is a separate conversation", async () => {
      await gateway.chat(parent, secret);
      child = await spawn(parent, "isolated");
      const [segment, ...others] = await assertStored(gateway, child);
      assert.deepEqual(others, []);
      assert.equal(segment?.totals.messages, 4);
      assert.equal((await segmentsIn(parent)).length, 1);
    });

    it("sees nothing of its parent, finds nothing of it, and cannot walk down", () => {
      const [first, second] = promptsOf(child);
      assert(first && second);
      assert.doesNotMatch(JSON.stringify(first.body.messages), /xylophone/);
      assert.match(second.results.join(), /[Nn]o matches/);
      assert.deepEqual(toolsOf(child), [
        "lcm_describe",
        "lcm_expand_query",
        "lcm_grep",
        "lcm_map",
        "lcm_pin",
        "lcm_recent",
      ]);
    });

    it("reports to its parent, whose next turn stores that", async () => {
      const announced = promptsOf(parent).at(-1);
      assert(announced);
      assert.match(announced.prompt, /The child is done/);
      assert(announced.messages.some(({ text }) => text.includes(secret)));
      await gateway.chat(parent, "And now?");
      const asked = promptsOf(parent).at(-1);
      assert(asked);
      assertValid(asked);
      assert.equal(asked.messages.filter(({ text }) => text.startsWith("Noted: The child is done")).length, 1);
      await assertStored(gateway, parent);
      const commits = calls().filter(({ call, session }) => call === "commitTurn" && session === parent);
      assert.equal(commits.length, 3, "the announcement is not a committed turn");
    });
  });

  describe("guarantee 25: scope holds, on the host, for a child with its parent's context", () => {
    const parent = "agent:main:fork";
    let child: string;

    it("is stored with what it was given, as a separate conversation", async () => {
      await gateway.chat(parent, secret);
      child = await spawn(parent, "fork");
      const [segment, ...others] = await assertStored(gateway, child);
      assert.deepEqual(others, []);
      assert(segment !== undefined && segment.totals.messages > 4);
      assert.equal((await segmentsIn(parent)).length, 1);
    });

    it("is shown what it was given once, and may walk down", () => {
      const [first] = promptsOf(child);
      assert(first);
      assertValid(first);
      assert.equal(first.messages.filter(({ text }) => text.includes(secret)).length, 1);
      assert(toolsOf(child).includes("lcm_expand"));
    });

    it("loses that permission when it ends", async () => {
      await gateway.chat(parent, "And now?");
      await assertStored(gateway, parent);
      const ended = await until(
        () => calls().find(({ call, args }) => call === "onSubagentEnded" && args.childSessionKey === child),
        "its end",
      );
      assert.equal(ended.error, null);
    });
  });

  it("store nothing and have no tools where the operator ignores them", async () => {
    const parent = "agent:left:main";
    await gateway.chat(parent, secret);
    const child = await spawn(parent, "isolated");
    assert.deepEqual(toolsOf(child), []);
    assert.deepEqual(await segmentsIn(child), []);
    assert.equal((await segmentsIn(parent)).length, 1);
  });

  it("store nothing but have the tools where the operator makes them read-only", async () => {
    const parent = "agent:reader:main";
    await gateway.chat(parent, secret);
    const child = await spawn(parent, "isolated");
    assert(toolsOf(child).includes("lcm_grep"));
    assert.deepEqual(await segmentsIn(child), []);
  });

  it("are treated like a heartbeat: it is stored like any other turn", async () => {
    const session = "agent:main:main";
    await gateway.chat(session, "Hello.");
    const before = promptsOf(session).length;
    await gateway.rpc("wake", { mode: "now", text: "Look after the ants." });
    await until(() => promptsOf(session)[before], "a heartbeat");
    await gateway.chat(session, "And now?");
    const commits = calls().filter((each) => each.call === "commitTurn" && each.session === session);
    assert.deepEqual(
      commits.map(({ args }) => args.isHeartbeat === true),
      [false, true, false],
    );
    await assertStored(gateway, session);
  });
});
