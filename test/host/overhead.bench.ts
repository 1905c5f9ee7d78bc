/**
 * Measures what the engine adds to a turn in the real host, after a short and a long history: `npm run bench:host`.
 * Each turn has one tool call; the engine's calls are timed from outside and added up per turn.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { createLcm } from "../../src/core/lcm.ts";
import { messageToStore } from "../../src/core/messages/codec.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { makeScratch } from "../support/scratch.ts";
import { corpusEntry } from "../../bench/corpus.ts";
import { startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { startModelServer } from "./model-server.ts";
import { recordedPlugin } from "./plugin.ts";
import type { EngineCall } from "./plugin.ts";
import type { Timestamp } from "../../src/core/base/time.ts";

const sizes = [1_000, 100_000];
const turns = 40;
const warmUp = 5;

describe("the engine's share of a turn", async () => {
  const server = await startModelServer();
  server.script(({ kind, results }) =>
    kind === "completion"
      ? "They spoke of many things."
      : results.length === 0
        ? { kind: "answer", calls: [{ name: "lcm_describe", args: { id: "msg_1-1" } }] }
        : "Noted.",
  );
  after(async () => await server.close());

  for (const size of sizes) {
    it(`after ${size} messages`, async (t) => {
      const session = `agent:main:past-${size}`;
      const recorded = recordedPlugin(makeScratch(`overhead-${size}`));
      const gateway = await startGateway({ server, plugins: recorded.plugins });
      assert.equal((await gateway.turn(session, "hello")).text, "Noted.");
      await gateway.stop();
      await giveAPast(gateway, session, size);
      await gateway.start();
      for (let turn = 0; turn < warmUp; turn++) await gateway.turn(session, `warm up ${turn}`);
      const from = recorded.calls().length;
      const started = performance.now();
      for (let turn = 0; turn < turns; turn++) await gateway.turn(session, `What was ${turn}?`);
      const wholeMs = (performance.now() - started) / turns;
      await gateway.stop();
      const calls = recorded.calls().slice(from);
      assert.deepEqual(
        calls.flatMap(({ error }) => error ?? []),
        [],
      );
      const engines = [...new Set(calls.map(({ engine }) => engine))].slice(0, turns);
      const of = (name: RegExp): readonly number[] =>
        engines.map((engine) => sum(calls.filter((call) => call.engine === engine && name.test(call.call))));
      for (const [what, name] of parts) {
        const times = of(name).toSorted((a, b) => a - b);
        t.diagnostic(
          `${size} messages: ${what} ${median(times).toFixed(1)} ms (p95 ${(times[Math.floor(0.95 * times.length)] ?? 0).toFixed(1)})`,
        );
      }
      t.diagnostic(`${size} messages: a whole turn ${wholeMs.toFixed(0)} ms`);
    });
  }
});

const parts = [
  ["commit and all assemblies", /^(commitTurn|assemble)$/],
  ["with catching up and maintenance", /^(bootstrap|commitTurn|assemble|maintain)$/],
] as const;

const sum = (calls: readonly EngineCall[]): number => calls.reduce((total, { ms }) => total + ms, 0);
const median = (sorted: readonly number[]): number => sorted[Math.floor(sorted.length / 2)] ?? 0;

/** Adds this many messages before the session, folded as they would have been. */
async function giveAPast(gateway: Gateway, sessionKey: string, size: number): Promise<void> {
  const store = await openSqlite({ path: join(gateway.state, "lcm.db") });
  const lcm = createLcm({ store, clock: { now: () => new Date().toISOString() as Timestamp } });
  const [conversation] = await store.conversations({ sessionKey });
  assert(conversation);
  for (let n = 0; n < size; n += 1_000) {
    const items = Array.from({ length: Math.min(1_000, size - n) }, (_, at) => {
      const { message } = corpusEntry(n + at) as { message: { role: string } };
      const origin = {
        key: `past-${n + at}`,
        at: new Date(1_700_000_000_000 + (n + at) * 1_000).toISOString() as Timestamp,
      };
      return { kind: "message" as const, message: messageToStore(message, origin) };
    });
    await store.append(conversation.id, items);
    await store.index(8_000);
  }
  const { outcome } = await lcm.compact({ conversation: conversation.id, mode: "sweep" });
  assert.equal(outcome.kind, "settled");
  await lcm.close();
}
