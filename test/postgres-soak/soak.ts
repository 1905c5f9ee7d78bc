/**
 * Lets many processes use one database for some time while its connections are killed, its server is restarted and loses
 * its power, and its primary is replaced by the replica; then checks that nothing acknowledged is lost or doubled.
 */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { setTimeout as sleep } from "node:timers/promises";
import type { Store } from "../../src/core/model/store.ts";
import { openPostgres } from "../../src/store/postgres/store.ts";
import { checkSound, flattened } from "../support/lossless.ts";
import { startMachine, type PostgresMachine } from "../support/postgres-machine.ts";
import { makeScratch } from "../support/scratch.ts";
import { keyOf, messagesPerTurn, sharedSession, type Report, type WorkOrders } from "./worker.ts";

export interface SoakOptions {
  readonly processes: number;
  readonly seconds: number;
  readonly say: (line: string) => void;
}

export interface SoakResult {
  readonly figures: Readonly<Record<string, number>>;
  /** Turns that were acknowledged. */
  readonly acknowledged: number;
  readonly killed: number;
  /** Messages stored in the end. */
  readonly messages: number;
}

/** Turns acknowledged in a session, by their names, in order. */
type Acknowledged = Map<string, string[]>;

export async function soak({ processes, seconds, say }: SoakOptions): Promise<SoakResult> {
  const primary = await startMachine({ synchronous_standby_names: "second", synchronous_commit: "local" });
  const replica = await primary.replica("second");
  await primary.query("ALTER SYSTEM SET synchronous_commit = on");
  const hosts = [primary, replica].map(({ port }) => `127.0.0.1:${port}`).join();
  const url = `postgres://postgres@${hosts}/postgres?schema=soak&target_session_attrs=read-write`;
  const filesDir = makeScratch("soak");
  const acknowledged: Acknowledged = new Map();
  const figures: Record<string, number> = {};
  const workers = Array.from({ length: processes }, async (_, worker) => {
    const done = await runWorker({ url, filesDir, worker, seconds }, acknowledged);
    for (const [name, times] of Object.entries(done)) figures[name] = (figures[name] ?? 0) + times;
  });
  const over = new AbortController();
  const working = Promise.all(workers).finally(() => over.abort());
  const isBegun = (): boolean => acknowledged.size > processes;
  const disturbing = disturb({ primary, replica, seconds, say, isBegun }, over.signal);
  try {
    await working;
    const killed = await disturbing;
    const store = await openPostgres({ url, filesDir, housekeeping: false });
    const messages = await checkAll(store, acknowledged).finally(() => void store.close());
    const turns = [...acknowledged.values()].reduce((sum, { length }) => sum + length, 0);
    return { figures, acknowledged: turns, killed, messages };
  } finally {
    over.abort();
    await disturbing.catch(() => 0); // If it failed before a worker did, `disturbing` has been awaited above.
    for (const machine of [primary, replica]) await machine.crash();
  }
}

async function runWorker(orders: WorkOrders, acknowledged: Acknowledged): Promise<Readonly<Record<string, number>>> {
  const script = fileURLToPath(new URL("worker.ts", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(orders)], { stdio: ["ignore", "pipe", "pipe"] });
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (complaint += text));
  const ended = new Promise<number | null>((done) => child.on("close", done));
  let figures: Readonly<Record<string, number>> | null = null;
  for await (const line of createInterface(child.stdout)) {
    const report = JSON.parse(line) as Report;
    if ("done" in report) figures = report.done;
    else acknowledged.set(report.session, [...(acknowledged.get(report.session) ?? []), report.stored]);
  }
  assert.equal(await ended, 0, `worker ${orders.worker}: ${complaint}`);
  return figures ?? assert.fail(`worker ${orders.worker} has not ended: ${complaint}`);
}

interface Servers extends Pick<SoakOptions, "seconds" | "say"> {
  readonly primary: PostgresMachine;
  readonly replica: PostgresMachine;
  /** Whether each process has stored something. */
  readonly isBegun: () => boolean;
}

/** Returns how many connections were killed. */
async function disturb({ primary, replica, seconds, say, isBegun }: Servers, over: AbortSignal): Promise<number> {
  let [now, killed] = [primary, 0];
  while (!over.aborted && !isBegun()) await sleep(100);
  const started = performance.now();
  const restart = async (): Promise<void> => {
    await now.stop();
    await now.start();
  };
  const powerCut = async (): Promise<void> => {
    await now.crash();
    await now.start();
  };
  const replace = async (): Promise<void> => {
    await now.crash();
    replica.promote();
    now = replica;
  };
  const events: (readonly [number, string, () => Promise<void>])[] = [
    [0.2, "the server is restarted", restart],
    [0.35, "the server loses its power", powerCut],
    [0.5, "the primary is gone, its replica takes over", replace],
    [0.75, "the new primary loses its power", powerCut],
  ];
  while (!over.aborted) {
    const [event] = events;
    if (event !== undefined && performance.now() - started > event[0] * seconds * 1_000) {
      events.shift();
      say(`${Math.round((performance.now() - started) / 1_000)} s: ${event[1]}; ${killed} connections killed so far`);
      await event[2]();
    }
    killed += await killSome(now);
    await sleep(250);
  }
  assert.deepEqual(events, [], "everything has happened");
  return killed;
}

async function killSome(machine: PostgresMachine): Promise<number> {
  const some = machine.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'lossless-claw' AND pid <> pg_backend_pid() ORDER BY state <> 'idle' DESC, random() LIMIT 1`);
  return await some.then(
    (rows) => rows.length,
    () => 0, // It is just taking over.
  );
}

/** What was acknowledged is stored once, in its order, and the context of each conversation reaches all of it. */
async function checkAll(store: Store, acknowledged: Acknowledged): Promise<number> {
  let total = 0;
  for (const [session, turns] of acknowledged) {
    const [conversation] = await store.conversations({ sessionId: session });
    const { id } = conversation ?? assert.fail(`${session} is there`);
    const stored = await store.messages({ conversation: id });
    const keys = stored.map(({ key }) => key);
    assert.equal(new Set(keys).size, keys.length, `${session} has nothing twice`);
    for (const name of new Set(turns.map((turn) => turn.slice(0, turn.lastIndexOf(" "))))) {
      const own = turns.filter((turn) => turn.startsWith(`${name} `));
      const expected = own.flatMap((_, turn) =>
        Array.from({ length: messagesPerTurn }, (_, place) => keyOf(name, turn, place)),
      );
      assert.deepEqual(
        keys.filter((key) => key.startsWith(`${name}/`)),
        expected,
        `${session} has all turns of ${name}, in order`,
      );
    }
    const reached = await flattened(store, id);
    assert.deepEqual(
      reached.map((message) => message.id),
      stored.map((message) => message.id),
      `the context of ${session} represents all of it`,
    );
    total += stored.length;
  }
  assert.ok(acknowledged.has(sharedSession));
  await checkSound(store);
  return total;
}
