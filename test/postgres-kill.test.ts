/** Kills writers to one server, and their connections, and lets two of them write at once. */

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openPostgres } from "../src/store/postgres/store.ts";
import { messagesPerTurn } from "./crash/writer.ts";
import {
  kills,
  messagesOf,
  reading,
  startWriter,
  testKills,
  testTwoWriters,
  turnsStored,
  type KilledStore,
} from "./crash/kills.ts";
import { checkSound } from "./support/lossless.ts";
import { startMachine, type PostgresMachine } from "./support/postgres-machine.ts";
import { makeScratch } from "./support/scratch.ts";

let machine: PostgresMachine;
let filesDir = "";
before(async () => {
  machine = await startMachine();
  filesDir = makeScratch("kill");
});
after(async () => await machine.stop());

const turnsPerWriter = 30;
let databases = 0;
const server: KilledStore = {
  withinMs: 800,
  withDatabase: async (test) => await test(`${machine.url}?schema=killed${++databases}`),
  open: async (url) => await openPostgres({ url, filesDir, housekeeping: false, connectionsMax: 2 }),
  filesDir: () => filesDir,
  bytes: async (url) => await reading(server, url, async (store) => (await store.status()).bytes),
};

describe("guarantee 37: what was acknowledged survives kill -9 of the client", () => testKills(server));

describe("guarantee 37: a writer whose connections are killed finishes", () => {
  it(`${kills} times at least: nothing is lost, doubled or left half done`, async (t) => {
    await server.withDatabase(async (path) => {
      let killed = 0;
      let stored = 0;
      for (let round = 0; killed < kills; round++) {
        const orders = {
          path,
          filesDir,
          sessionId: "killed",
          name: `round${round}`,
          turns: turnsPerWriter,
          inThread: round % 2 === 1,
        };
        const writer = startWriter(orders);
        const over = new AbortController();
        const ended = writer.ended.finally(() => over.abort());
        await writer.began;
        while (!over.signal.aborted) {
          const rows = await machine.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE application_name = 'lossless-claw' AND pid <> pg_backend_pid() AND state <> 'idle' LIMIT 1`);
          killed += rows.length;
          await sleep(60);
        }
        assert.deepEqual(await ended, { acknowledged: turnsPerWriter, code: 0, signal: null, complaint: "" });
        stored += turnsPerWriter;
      }
      await reading(server, path, async (store) => {
        const messages = await messagesOf(store, "killed");
        assert.equal(messages.length, stored * messagesPerTurn);
        for (let round = 0; round * turnsPerWriter < stored; round++)
          assert.equal(await turnsStored(store, messages, `round${round}`), turnsPerWriter);
        await checkSound(store);
      });
      t.diagnostic(`${killed} connections killed, ${stored} turns stored`);
    });
  });
});

describe("guarantee 37: two processes write to one server", () => testTwoWriters(server));
