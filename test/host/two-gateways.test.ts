/** Tests two gateways, as on two machines, that share one database on a server. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { echo, startModelServer } from "./model-server.ts";
import type { ModelServer } from "./model-server.ts";
import { ourPlugin } from "./plugin.ts";
import { assertStored, withStore } from "./stored.ts";

describe("guarantee 37: two gateways on one database", () => {
  let model: ModelServer;
  let gateways: readonly Gateway[] = [];
  const turnsEach = 5;

  before(async () => {
    model = await startModelServer();
    model.script(echo);
    const database = `${process.env["LCM_TEST_POSTGRES"]}?schema=shared`; // Of the server that run.ts has started.
    // The second finds the tables that the first has made.
    for (let at = 0; at < 2; at++)
      gateways = [...gateways, await startGateway({ server: model, plugins: ourPlugin(), database })];
  });
  after(async () => {
    for (const gateway of gateways) await gateway.stop();
    await model.close();
  });

  const talk = async (gateway: Gateway, session: string, name: string): Promise<void> => {
    for (let turn = 0; turn < turnsEach; turn++) {
      const { status, text } = await gateway.turn(session, `${name} ${turn}`);
      assert.equal(status, 200, text);
    }
  };

  it("talk at once: each keeps the transcripts of both", async () => {
    await Promise.all(
      gateways.map(async (gateway, at) => await talk(gateway, `agent:main:harbour-${at}`, `word${at}`)),
    );
    for (const [at, gateway] of gateways.entries()) await assertStored(gateway, `agent:main:harbour-${at}`);
    const counts = gateways.map(
      async (gateway) => await withStore(gateway, async ({ store }) => (await store.status()).messages),
    );
    assert.deepEqual(await Promise.all(counts), [4 * turnsEach, 4 * turnsEach]);
  });

  it("may use the same name for a session: each continues its own", async () => {
    const session = "agent:main:same";
    for (let round = 0; round < 2; round++)
      await Promise.all(
        gateways.map(async (gateway, at) => await talk(gateway, session, `round${round} machine${at}`)),
      );
    const [first] = gateways;
    assert(first);
    const texts = await withStore(first, async (lcm) => {
      const segments = await lcm.store.conversations({ sessionKey: session, includeHidden: true });
      const said = segments.map(async ({ id }) => {
        const lines = (await Array.fromAsync(lcm.export(id))).map((line) => JSON.parse(line));
        assert.deepEqual(
          (await lcm.inspect(id)).filter(({ severity }) => severity !== "info"),
          [],
        );
        return lines.flatMap(({ message }) => (message?.role === "user" ? [JSON.stringify(message.content)] : []));
      });
      return await Promise.all(said);
    });
    assert.equal(texts.length, 2);
    for (const segment of texts) {
      assert.equal(segment.length, 2 * turnsEach);
      const machines = new Set(segment.map((text) => /machine\d/.exec(text)?.[0]));
      assert.equal(machines.size, 1, [...machines].join());
    }
  });
});
