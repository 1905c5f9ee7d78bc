/**
 * Kills writers at random moments, over and over, on one database. `KILLS=120` kills more often, `SEED=7` changes the
 * moments.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { restoreMessage } from "../../src/core/ingest/large-content.ts";
import type { Message } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { checkSound, flattened } from "../support/lossless.ts";
import { createRandom } from "../support/random.ts";
import { acknowledgement, keyOf, messagesPerTurn, turnOf } from "./writer.ts";
import type { Orders } from "./writer.ts";

export const kills = Number(process.env["KILLS"] ?? 15);
const seed = Number(process.env["SEED"] ?? 1);

/** The store whose writers are killed. */
export interface KilledStore {
  /** Runs a test on a database that does not exist yet. */
  withDatabase(test: (path: string) => Promise<void>): Promise<void>;
  readonly open: (path: string) => Promise<Store>;
  bytes(path: string): Promise<number>;
  /** A writer is killed within this time after its first turn. */
  readonly withinMs: number;
  /** Where large content is, unless it is beside the database. */
  readonly filesDir?: () => string;
}

/** How a writer ended, and how many turns it acknowledged. */
interface Ended {
  readonly acknowledged: number;
  readonly code: number | null;
  readonly signal: string | null;
  readonly complaint: string;
}

interface Writer {
  readonly ended: Promise<Ended>;
  /** Resolves with the first acknowledgement, or when it ends without one. */
  readonly began: Promise<void>;
  kill(): void;
}

export function startWriter(orders: Orders): Writer {
  const script = fileURLToPath(new URL("writer.ts", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(orders)], { stdio: ["ignore", "pipe", "pipe"] });
  const began = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<Ended>();
  let said = "";
  let complaint = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said += text;
    began.resolve();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => (complaint += text));
  child.on("error", ended.reject);
  child.on("close", (code, signal) => {
    const lines = said.split("\n").slice(0, -1);
    lines.forEach((line, turn) => assert.equal(line, acknowledgement(turn)));
    began.resolve();
    ended.resolve({ acknowledged: lines.length, code, signal, complaint });
  });
  return { began: began.promise, ended: ended.promise, kill: () => child.kill("SIGKILL") };
}

const placeOf = ({ filesDir }: KilledStore, path: string): Pick<Orders, "path" | "filesDir"> =>
  filesDir === undefined ? { path } : { path, filesDir: filesDir() };

export async function reading<T>({ open }: KilledStore, path: string, read: (store: Store) => Promise<T>): Promise<T> {
  const store = await open(path);
  try {
    return await read(store);
  } finally {
    await store.close();
  }
}

export const messagesOf = async (store: Store, sessionId: string): Promise<readonly Message[]> => {
  const [conversation] = await store.conversations({ sessionId });
  return conversation === undefined ? [] : await store.messages({ conversation: conversation.id });
};

/** How many turns of a writer are stored: whole, in order, equal to what it sent, from the first on. */
export async function turnsStored(store: Store, messages: readonly Message[], name: string): Promise<number> {
  const own = messages.filter(({ key }) => key.startsWith(`${name}/`));
  const turns = Math.ceil(own.length / messagesPerTurn);
  assert.equal(own.length, turns * messagesPerTurn, `half a turn of ${name} is stored`);
  for (let turn = 0; turn < turns; turn++) {
    for (const [place, raw] of turnOf(name, turn).entries()) {
      const message = own[turn * messagesPerTurn + place];
      assert.ok(message !== undefined && message.key === keyOf(name, turn, place));
      assert.deepEqual(await restoreMessage(store, message), raw);
    }
  }
  return turns;
}

export function testKills(subject: KilledStore): void {
  it(`${kills} kills of writers to one database`, async (t) => {
    await subject.withDatabase(async (path) => {
      const random = createRandom(seed);
      const count = { acknowledged: 0, stored: 0, beforeTheFirst: 0, unacknowledged: 0 };
      const stored: number[] = [];
      for (let round = 0; round < kills; round++) {
        const name = `round${round}`;
        const writer = startWriter({
          ...placeOf(subject, path),
          sessionId: "killed",
          name,
          turns: 100_000,
          inThread: round % 2 === 1,
        });
        // Now and then while it is still opening the file.
        if (random.chance(0.85)) await writer.began;
        await sleep(random.below(subject.withinMs));
        writer.kill();
        const { acknowledged, signal, complaint } = await writer.ended;
        assert.equal(signal, "SIGKILL", complaint);

        await reading(subject, path, async (store) => {
          const messages = await messagesOf(store, "killed");
          const turns = await turnsStored(store, messages, name);
          assert.ok(
            turns === acknowledged || turns === acknowledged + 1,
            `round ${round}: ${acknowledged} turns were acknowledged, ${turns} are stored`,
          );
          stored.push(turns);
          // Nothing stored before is gone, and the context still represents all of it.
          assert.equal(messages.length, messagesPerTurn * stored.reduce((sum, each) => sum + each, 0));
          const [conversation] = await store.conversations({ sessionId: "killed" });
          if (conversation !== undefined) {
            const reached = await flattened(store, conversation.id);
            assert.deepEqual(
              reached.map(({ id }) => id),
              messages.map(({ id }) => id),
            );
          }
          await checkSound(store);
          count.acknowledged += acknowledged;
          count.stored += turns;
          if (turns > acknowledged) count.unacknowledged += 1;
          if (acknowledged === 0) count.beforeTheFirst += 1;
        });
      }
      await reading(subject, path, async (store) => {
        const messages = await messagesOf(store, "killed");
        for (const [round, turns] of stored.entries())
          assert.equal(await turnsStored(store, messages, `round${round}`), turns);
      });
      t.diagnostic(
        `${kills} kills: ${count.acknowledged} turns acknowledged, ${count.stored} stored, ${count.unacknowledged} stored but not ` +
          `acknowledged, ${count.beforeTheFirst} kills before the first; ${await subject.bytes(path)} bytes`,
      );
      assert.ok(count.acknowledged > kills, "there was something to lose");
    });
  });
}

export function testTwoWriters(subject: KilledStore): void {
  const turns = 40;

  for (const [where, sessions] of [
    ["the same conversation", ["shared", "shared"]],
    ["different conversations", ["one", "two"]],
  ] as const) {
    it(`to ${where}: nothing is lost or doubled, and both finish`, async () => {
      await subject.withDatabase(async (path) => {
        // Neither database nor schema exists yet: they also race there.
        const writers = sessions.map((sessionId, index) =>
          startWriter({ ...placeOf(subject, path), sessionId, name: `writer${index}`, turns, inThread: index === 1 }),
        );
        for (const ended of await Promise.all(writers.map((writer) => writer.ended))) {
          assert.deepEqual(ended, { acknowledged: turns, code: 0, signal: null, complaint: "" });
        }
        await reading(subject, path, async (store) => {
          for (const [index, sessionId] of sessions.entries()) {
            const messages = await messagesOf(store, sessionId);
            assert.equal(await turnsStored(store, messages, `writer${index}`), turns);
          }
          assert.equal((await store.status()).messages, 2 * turns * messagesPerTurn);
          await checkSound(store);
        });
      });
    });
  }
}
