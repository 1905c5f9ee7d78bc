/**
 * Tests a session that another engine serves for a while: the host's own, before ours and while ours is disabled. Ours
 * catches up on all of it, and loses nothing while it is off.
 */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { startModelServer } from "./model-server.ts";
import type { Asked, ModelServer } from "./model-server.ts";
import { ourPlugin } from "./plugin.ts";
import { assertStored, hasStore, segmentsOf, withStore } from "./stored.ts";
import { assertLiveOnce, assertValid, requestsOf } from "./wire.ts";

const session = "agent:main:switching";
const legacy = { enabled: false };

describe("a session that other engines have served", () => {
  let server: ModelServer;
  let gateway: Gateway;
  const said: string[] = [];
  const say = async (text: string): Promise<Asked> => {
    said.push(text);
    assert.deepEqual(await gateway.turn(session, text), { status: 200, text: `Noted: ${text}` });
    const asked = requestsOf(server.asked, session).at(-1);
    assert.ok(asked);
    assertValid(asked);
    assertLiveOnce(asked, text);
    return asked;
  };
  /** Everything that was ever said, in order, with tool results. */
  const assertWhole = ({ messages }: Asked): void => {
    const users = messages.filter(({ role }) => role === "user").map(({ text }) => text);
    assert.equal(users.length, said.length);
    for (const [at, text] of said.entries()) assert.ok(users[at]?.includes(`] ${text}`), `${at}: ${users[at]}`);
    assert.equal(messages.filter(({ role }) => role === "tool").length, said.length);
  };
  /** Everything that our store contains. */
  const stored = async (): Promise<readonly unknown[]> =>
    await withStore(gateway, async (lcm) => {
      const segments = await segmentsOf(lcm, session);
      return await Promise.all(segments.map(async ({ id }) => [id, await Array.fromAsync(lcm.export(id))]));
    });

  before(async () => {
    server = await startModelServer();
    server.script(({ results, prompt }) =>
      results.length === 0
        ? { kind: "answer", thinking: "Which session?", calls: [{ name: "session_status", args: {} }] }
        : `Noted: ${prompt}`,
    );
    gateway = await startGateway({ server, plugins: legacy });
    for (const text of ["one", "two", "three", "four"]) await say(text);
    assert.equal(hasStore(gateway), false);
  });
  after(async () => await server.close());

  it("guarantee 6: the first bootstrap imports everything, on the host, and the model sees all of it", async () => {
    await gateway.restart({ plugins: ourPlugin() });
    assertWhole(await say("five"));
    const [segment] = await assertStored(gateway, session);
    assert.equal(segment?.caughtUp, 4);
    assertWhole(await say("six"));
    await assertStored(gateway, session);
  });

  it("guarantee 7: no event deletes rows: disabling the plugin changes nothing, on the host", async () => {
    const before = await stored();
    await gateway.restart({ plugins: ourPlugin({}, { enabled: false }) });
    assertWhole(await say("seven"));
    assertWhole(await say("eight"));
    assert.deepEqual(await stored(), before);
  });

  it("guarantee 1: every message the host sent is stored once, on the host, whichever engine served it", async () => {
    await gateway.restart({ plugins: ourPlugin() });
    assertWhole(await say("nine"));
    const [segment, ...others] = await assertStored(gateway, session);
    assert.deepEqual(others, []);
    assert.equal(segment?.caughtUp, 6);
  });
});
