/**
 * Tests the real gateway when its provider refuses, and when it is killed at work. One kill hits several sessions, each
 * at another moment of its turn.
 */

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, it } from "node:test";
import { createRandom } from "../support/random.ts";
import { makeScratch } from "../support/scratch.ts";
import { startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { echo, startModelServer } from "./model-server.ts";
import type { ModelServer } from "./model-server.ts";
import { recordedPlugin } from "./plugin.ts";
import { assertStored, withStore } from "./stored.ts";

const session = (name: string): string => `agent:main:${name}`;

/** Folds soon, so that a fold is under way when the gateway dies. */
const settings = { contextTarget: 0, freshTailCount: 4, leafChunkTokens: 600, leafTargetTokens: 100 };
const summary = "They said a great many words, one after the other, and all of them were counted and written down.";
const long = (word: string): string => Array.from({ length: 120 }, (_, at) => `${word}${at}`).join(" ");

describe("guarantees 1 and 2: nothing is lost, nothing is doubled, on the host", () => {
  let server: ModelServer;
  let gateway: Gateway;
  let recorded: ReturnType<typeof recordedPlugin>;

  before(async () => {
    server = await startModelServer();
    recorded = recordedPlugin(makeScratch("crash"), settings);
    gateway = await startGateway({ server, plugins: recorded.plugins });
  });
  after(async () => await server.close());

  it("stores a turn that the provider refused with the next one, and counts it", async () => {
    const key = session("refused");
    await gateway.turn(key, "the first");
    for (const text of ["refused once", "refused twice"]) {
      server.script(() => ({ kind: "error", status: 400, error: { message: "not today" } }));
      assert.equal((await gateway.turn(key, text)).status, 400);
    }
    server.script(echo);
    assert.equal((await gateway.turn(key, "and now?")).text, "You said: and now?");
    const said = gateway.transcript(key).flatMap(({ message }) => (message?.role === "user" ? [message.content] : []));
    assert.deepEqual(said, ["the first", "refused once", "refused twice", "and now?"]);
    const [segment] = await assertStored(gateway, key);
    assert.equal(segment?.caughtUp, 2);
    await gateway.turn(key, "thank you");
    const [later] = await assertStored(gateway, key);
    assert.equal(later?.caughtUp, 2, "and only once");
  });

  /** After a kill: the host resumes its work, every session sends one more message, and all of it is stored. */
  const recover = async (keys: readonly string[]): Promise<void> => {
    recorded.fault({});
    server.script((asked) => (asked.kind === "completion" ? summary : echo(asked)));
    await gateway.start();
    for (const key of keys) {
      const turn = await gateway.turn(key, "still there?");
      assert.equal(turn.text, "You said: still there?");
      await assertStored(gateway, key);
    }
  };

  const until = async (isSo: () => boolean | Promise<boolean>): Promise<void> => {
    const deadline = AbortSignal.timeout(60_000);
    while (!(await isSo())) {
      deadline.throwIfAborted();
      await sleep(5);
    }
  };

  it("survives a kill while a model thinks, between two tools, while old messages are folded, and before a turn is stored", async () => {
    const keys = ["thinking", "tools", "folding", "unstored"].map(session);
    const [thinking = "", tools = "", folding = "", unstored = ""] = keys;
    const hung = new Set<string>();
    for (const key of [thinking, tools]) await gateway.turn(key, "a quiet day");
    server.script((asked) => {
      const { kind, session: key, results } = asked;
      if (key === folding || key === unstored) return echo(asked);
      if (key === tools && results.length === 0)
        return { kind: "answer", text: "I look.", calls: [{ name: "lcm_grep", args: { pattern: "quiet" } }] };
      hung.add(kind === "completion" ? "a summary" : key);
      return { kind: "hang" };
    });
    for (let turn = 0; turn < 4; turn++) await gateway.turn(folding, long(`word${turn}-`));
    await until(() => hung.has("a summary"));
    recorded.fault({ commitTurn: "hang" });
    const turns = [thinking, tools, unstored].map((key) => assert.rejects(gateway.turn(key, "until it dies")));
    await until(
      () => hung.size === 3 && gateway.transcript(unstored).some(({ message }) => message?.role === "assistant"),
    );
    await gateway.kill9();
    await Promise.all(turns);
    await recover(keys);
    for (const key of [thinking, tools, unstored]) {
      const said = gateway.transcript(key).filter(({ message }) => message?.content === "until it dies");
      assert.equal(said.length, 1);
    }
    // The fold that died is made again.
    await until(async () => (await assertStored(gateway, folding)).some(({ totals }) => totals.summaries > 0));
  });

  const countMessages = async (): Promise<number> =>
    await withStore(gateway, async ({ store }) => (await store.status()).messages);

  it("survives a kill just after a turn was stored, with other sessions talking", async () => {
    const random = createRandom(1);
    const keys = [1, 2, 3, 4].map((nth) => session(`talking-${nth}`));
    server.script(async (asked) => {
      await sleep(random.below(300));
      return echo(asked);
    });
    const turns = keys.map(async (key) => {
      for (let turn = 0; ; turn++) await gateway.turn(key, `turn ${turn}`);
    });
    const broken = turns.map((turn) => assert.rejects(turn));
    const enough = (await countMessages()) + 6 * 2;
    await until(async () => (await countMessages()) >= enough);
    await sleep(random.below(5));
    await gateway.kill9();
    await Promise.all(broken);
    await recover(keys);
  });
});
