/** Where the messages of a soak are: in the gateway's own file, or on a server to which everything happens that can. */

import { existsSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { openPostgres } from "../../../src/store/postgres/store.ts";
import { startMachine, type PostgresMachine } from "../../support/postgres-machine.ts";
import type { Random } from "../../support/random.ts";
import { hold } from "../hold.ts";
import type { Gate } from "./gate.ts";
import type { Ledger } from "./ledger.ts";

export interface Sizes {
  readonly databaseMb: number;
  readonly walMb: number;
  /** Connections of ours to the server. */
  readonly connections: number;
}

export interface Ground {
  /** Null: the gateway has a file of its own. */
  readonly url: string | null;
  /** Does what goes wrong with it, while the gate is open. */
  disturb(gate: Gate, over: AbortSignal): Promise<void>;
  /** Whether it was away a moment ago: hosts then do without us. */
  readonly wasAway: () => boolean;
  /** Holds its write lock. */
  hold(seconds: number): Promise<void>;
  sizes(): Promise<Sizes>;
  /** When models were called, in milliseconds; checks what only the database itself can tell. */
  callTimes(): Promise<readonly number[]>;
  close(): Promise<void>;
}

export function createFileGround(path: () => string, ledger: Ledger): Ground {
  const sizeOf = (file: string): number => (existsSync(file) ? statSync(file).size / 2 ** 20 : 0);
  return {
    url: null,
    disturb: async () => undefined,
    wasAway: () => false,
    async hold(seconds) {
      const lock = await hold(path(), "BEGIN IMMEDIATE");
      ledger.event("the write lock is held", `for ${seconds} s`);
      await sleep(seconds * 1_000);
      await lock.release();
    },
    sizes: async () => ({ databaseMb: sizeOf(path()), walMb: sizeOf(`${path()}-wal`), connections: 0 }),
    async callTimes() {
      const db = new DatabaseSync(path(), { readOnly: true });
      try {
        const found = db.prepare("PRAGMA integrity_check").all();
        if (found[0]?.["integrity_check"] !== "ok")
          ledger.broken("the file is sound", JSON.stringify(found.slice(0, 5)));
        return timesIn(db.prepare(callsSql("main")).all());
      } finally {
        db.close();
      }
    },
    close: async () => undefined,
  };
}

const schema = "soak";
const callsSql = (of: string): string => `SELECT at FROM ${of}.model_usage ORDER BY at`;
const timesIn = (rows: readonly Readonly<Record<string, unknown>>[]): readonly number[] =>
  rows.map(({ at }) => Date.parse(String(at)));

/** Hosts notice late that it is back. */
const settleMs = 15_000;

export async function startServerGround(random: Random, ledger: Ledger, minutes: number): Promise<Ground> {
  const machine = await startMachine();
  const url = `${machine.url}?schema=${schema}`;
  await (await openPostgres({ url })).close();
  let awayUntil = 0;
  const away = (seconds = 0): void => {
    awayUntil = Math.max(awayUntil, performance.now() + seconds * 1_000 + settleMs);
  };
  let last: Sizes = { databaseMb: 0, walMb: 0, connections: 0 };
  return {
    url,
    async disturb(gate, over) {
      const given = { machine, random, ledger, away };
      await Promise.all([
        repeat(gate, over, async () => {
          await sleep(random.between(200, 5_000));
          return async () => await killConnection(given);
        }),
        repeat(gate, over, async () => {
          await sleep(1_000 * (minutes < 10 ? random.between(20, 45) : random.between(60, 240)), null, {
            signal: over,
          }).catch(() => undefined); // It is over.
          return async () => await endServer(given);
        }),
      ]);
    },
    wasAway: () => performance.now() < awayUntil,
    async hold(seconds) {
      ledger.event("the write lock is held", `for ${seconds} s`);
      away(seconds);
      const lock = `BEGIN; LOCK TABLE ${schema}.messages IN EXCLUSIVE MODE; SELECT pg_sleep(${seconds}); COMMIT`;
      await machine.query(lock).catch(() => undefined); // Its connection may be killed, too.
    },
    async sizes() {
      const rows = await machine.query(sizesSql).catch(() => []); // It may be down.
      const [{ database, wal, connections } = {}] = rows;
      if (database !== undefined)
        last = {
          databaseMb: Number(database) / 2 ** 20,
          walMb: Number(wal) / 2 ** 20,
          connections: Number(connections),
        };
      return last;
    },
    callTimes: async () => timesIn(await machine.query(callsSql(schema))),
    close: async () => await machine.crash(),
  };
}

const sizesSql = `SELECT pg_database_size(current_database()) AS database, (SELECT sum(size) FROM pg_ls_waldir()) AS wal,
  (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'lossless-claw' AND pid <> pg_backend_pid()) AS connections`;

/** `next` waits, and returns what to do then. */
async function repeat(gate: Gate, over: AbortSignal, next: () => Promise<() => Promise<void>>): Promise<void> {
  while (!over.aborted) {
    const work = await next();
    await gate.pass(async () => {
      if (!over.aborted) await work();
    });
  }
}

interface Disturbed {
  readonly machine: PostgresMachine;
  readonly random: Random;
  readonly ledger: Ledger;
  readonly away: (seconds?: number) => void;
}

async function killConnection({ machine, ledger }: Disturbed): Promise<void> {
  const some = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'lossless-claw' AND pid <> pg_backend_pid() ORDER BY state <> 'idle' DESC, random() LIMIT 1`;
  const killed = await machine.query(some).catch(() => []); // The server is just starting.
  if (killed.length > 0) ledger.count("server: connection killed");
}

async function endServer({ machine, random, ledger, away }: Disturbed): Promise<void> {
  const what = random.weighted({ crashed: 3, stopped: 1 });
  const seconds = random.pick([0, 0, 1, 3, 8, 15]);
  ledger.event(`server: ${what}`, `for ${seconds} s`);
  away(seconds + settleMs);
  await (what === "crashed" ? machine.crash() : machine.stop());
  await sleep(seconds * 1_000);
  await machine.start();
  ledger.event("server: started");
  away();
}
