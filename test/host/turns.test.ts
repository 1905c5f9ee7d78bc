/** Tests ordinary turns on the real host: what is called, what is stored, and what the model gets to see. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { makeScratch } from "../support/scratch.ts";
import { models, startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { echo, startModelServer } from "./model-server.ts";
import type { Asked, ModelServer, Script } from "./model-server.ts";
import { recordedPlugin } from "./plugin.ts";
import type { EngineCall } from "./plugin.ts";
import { assertStored, hasStore, withStore } from "./stored.ts";
import { assertLiveOnce, assertValid, requestsOf } from "./wire.ts";

const formats = ["openai", "anthropic"] as const;

/** Thinks, searches twice, and then reports what it has found. */
const lookTwice =
  (pattern: string): Script =>
  ({ results }) =>
    results.length < 2
      ? {
          kind: "answer",
          thinking: `I look for ${pattern}.`,
          text: results.length === 0 ? "One moment." : "",
          calls: [{ name: "lcm_grep", args: { pattern } }],
        }
      : `Found: ${results.join(" and ").replaceAll(/\s+/g, " ").slice(0, 200)}`;

describe("turns on the host", () => {
  let server: ModelServer;
  let gateway: Gateway;
  let calls: () => readonly EngineCall[];
  const asked = (session: string): readonly Asked[] => requestsOf(server.asked, session);
  /** By engine, and so by turn. */
  const ordersOf = (session: string): readonly string[] => {
    const made = calls().filter((each) => each.session === session);
    const engines = new Set(made.map(({ engine }) => engine));
    return [...engines].map((engine) =>
      calls()
        .filter((each) => each.engine === engine && each.call !== "dispose")
        .map(({ call }) => call)
        .join(" "),
    );
  };
  const disposed = async (count: number): Promise<void> => {
    const deadline = AbortSignal.timeout(20_000);
    while (calls().filter(({ call }) => call === "dispose").length < count) {
      deadline.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };

  before(async () => {
    server = await startModelServer();
    const recorded = recordedPlugin(makeScratch("turns"));
    calls = recorded.calls;
    gateway = await startGateway({ server, plugins: recorded.plugins });
  });
  after(async () => await server.close());

  it("opens no database before the first message", () => {
    assert.deepEqual(calls(), []);
    assert.equal(hasStore(gateway), false);
  });

  it("is called in the order that the engine is built for, and never fails", async () => {
    const session = "agent:main:order";
    server.script(echo);
    assert.equal((await gateway.turn(session, "the first")).text, "You said: the first");
    assert.equal((await gateway.turn(session, "the second")).text, "You said: the second");
    server.script(lookTwice("first"));
    assert.match((await gateway.turn(session, "look")).text, /^Found: .*the first/);
    await disposed(3);
    assert.deepEqual(ordersOf(session), [
      "assemble assemble commitTurn maintain",
      "bootstrap maintain assemble assemble commitTurn maintain",
      "bootstrap maintain assemble assemble assemble assemble commitTurn maintain",
    ]);
    assert.deepEqual(
      calls().flatMap(({ error }) => error ?? []),
      [],
    );
    const [, second] = calls().filter(({ call }) => call === "bootstrap");
    assert.equal(second?.result.importedMessages, 0, "the turn before was committed already");
  });

  describe("guarantee 1: every message the host sent is stored once, on the host", () => {
    it("with its thinking, its calls and their results, in both wire formats", async () => {
      const session = "agent:main:kinds";
      for (const format of [...formats, ...formats]) {
        server.script(lookTwice("picture"));
        const turn = await gateway.turn(session, `paint me a picture in ${format}`, { model: models[format] });
        assert.equal(turn.status, 200, turn.text);
      }
      const [segment] = await assertStored(gateway, session);
      assert.equal(segment?.totals.messages, 4 * 6);
      assert.equal(segment?.caughtUp, 0);
    });

    it("however often the same text repeats", async () => {
      const session = "agent:main:ping";
      server.script(() => "pong");
      for (let turn = 0; turn < 5; turn++) await gateway.turn(session, "ping");
      const [segment] = await assertStored(gateway, session);
      assert.equal(segment?.totals.messages, 10);
    });
  });

  describe("guarantee 13: always a valid array, on the host", () => {
    it("also when the provider changes in the middle of a session with thinking and tools", async () => {
      const session = "agent:main:switch";
      for (let turn = 0; turn < 6; turn++) {
        const model = models[formats[turn % 2] ?? "openai"];
        server.script(lookTwice("cobalt"));
        assert.equal((await gateway.turn(session, `cobalt ${turn}`, { model })).status, 200);
      }
      const requests = asked(session);
      assert.equal(requests.length, 18);
      for (const request of requests) assertValid(request);
      const last = requests.at(-1);
      assert.equal(last?.messages.filter(({ role }) => role === "tool").length, 12);
      await assertStored(gateway, session);
    });
  });

  describe("guarantee 14: the live turn appears exactly once, last, unchanged, on the host", () => {
    it("in every request of a turn", async () => {
      const session = "agent:main:live";
      for (const word of ["amber", "basalt", "cedar"]) {
        server.script(lookTwice(word));
        const from = asked(session).length;
        await gateway.turn(session, `tell me of ${word} and again of ${word}`);
        const requests = asked(session).slice(from);
        assert.equal(requests.length, 3);
        for (const request of requests) assertLiveOnce(request, `tell me of ${word} and again of ${word}`);
      }
      // Each earlier turn comes before it, once.
      const said =
        asked(session)
          .at(-1)
          ?.messages.map(({ role, text }) => (role === "user" ? text : "")) ?? [];
      const order = said.flatMap((text) => /amber|basalt|cedar/.exec(text)?.[0] ?? []);
      assert.deepEqual(order, ["amber", "basalt", "cedar"]);
    });
  });

  it("offers its tools on the wire, and the one for delegates only to delegates", () => {
    const tools = asked("agent:main:order").at(-1)?.tools ?? [];
    const ours = tools.filter((name) => name.startsWith("lcm_"));
    assert.deepEqual(ours.toSorted(), [
      "lcm_describe",
      "lcm_expand_query",
      "lcm_grep",
      "lcm_map",
      "lcm_pin",
      "lcm_recent",
    ]);
  });

  it("does not mention recall while the model sees everything", async () => {
    const [request] = asked("agent:main:live");
    assert.doesNotMatch(request?.system ?? "", /Memory of this conversation/);
    const prompts = calls().filter(({ call }) => call === "assemble");
    assert.equal(prompts.filter(({ result }) => result.systemPromptAddition !== undefined).length, 0);
    await withStore(gateway, async ({ store }) => assert.equal((await store.status()).summaries, 0));
  });
});
