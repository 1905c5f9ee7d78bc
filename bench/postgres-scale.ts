/**
 * `npm run bench:scale`: measures on a server of its own what turns cost (log, space, dead rows), and computes from it
 * what 1,000 gateways with 1,000 conversations each ask of one server, and which limit comes first.
 */

import assert from "node:assert/strict";
import { openPostgres } from "../src/store/postgres/store.ts";
import { numbered, summary } from "../test/store-contract/ground.ts";
import { startMachine, type PostgresMachine } from "../test/support/postgres-machine.ts";
import { makeScratch } from "../test/support/scratch.ts";
import { createHost, toAppendable, turnWithTool } from "../test/support/scripted-host.ts";

/** Of one turn of four messages, folds and indexing included. */
interface Costs {
  readonly logBytes: number;
  readonly storedBytes: number;
  readonly indexBytes: number;
  readonly deadRows: number;
  readonly serverMs: number;
}

interface Load {
  readonly gateways: number;
  readonly conversations: number;
  readonly turnsPerHour: number;
  readonly connectionsEach: number;
}

/** What one server of a common size can take; a larger one has other numbers. */
const server = {
  connections: 500,
  logBytesPerSecond: 50e6,
  deadRowsPerSecond: 20_000,
  indexBytes: 64e9,
  processors: 16,
};

const [turnsMeasured, turnsPerFold] = [400, 5];
const load: Load = { gateways: 1_000, conversations: 1_000, turnsPerHour: 60, connectionsEach: 4 };
const secondsPerYear = 365 * 86_400;

const machine = await startMachine();
const costs = await measure(machine);
await machine.stop();
console.log(JSON.stringify({ costs, load, server }, null, 2));
for (const { name, years, atOnce } of limits(costs, load))
  console.log(
    `${name.padEnd(24)} ${(atOnce * 100).toFixed(1)}% of one server at once${years === null ? "" : `, full after ${years.toFixed(2)} years`}`,
  );

async function measure({ url, ...scaled }: PostgresMachine): Promise<Costs> {
  const store = await openPostgres({ url: `${url}?schema=scale`, filesDir: makeScratch("scale"), housekeeping: false });
  const { id } = await store.open({ sessionId: "s" });
  const one = async (text: string): Promise<number> => Number(Object.values((await scaled.query(text))[0] ?? {})[0]);
  const facts = async () => ({
    log: await one("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"),
    stored: await one(`SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
      WHERE relnamespace = 'scale'::regnamespace AND relkind = 'r'`),
    index: await one("SELECT pg_total_relation_size('scale.search_blocks')"),
    dead: await one("SELECT sum(n_tup_upd + n_tup_del) FROM pg_stat_user_tables WHERE schemaname = 'scale'"),
    busy: await one("SELECT active_time FROM pg_stat_database WHERE datname = 'postgres'"),
  });
  const before = await facts();
  const host = createHost("h");
  const words = numbered(500, (n) => `word${(n * 7_919) % 3_001}`);
  for (let turn = 0; turn < turnsMeasured; turn++) {
    const said = words.slice(turn % 440, (turn % 440) + 60).join(" ");
    const from = host.entries.length;
    for (const raw of turnWithTool(`call-${turn}`, `asked ${turn} ${said}`, `answered ${turn} ${said}`)) host.says(raw);
    await store.append(id, host.entries.slice(from).map(toAppendable), { turnKey: `t${turn}` });
    if (turn % turnsPerFold === turnsPerFold - 1) {
      const run = await store.context(id, { kind: "message", limit: 4 * turnsPerFold });
      assert.equal((await store.fold(id, run, summary(said))).kind, "written");
    }
  }
  while ((await store.index(1_000)) > 0);
  await store.close();
  const after = await facts();
  const each = (name: keyof typeof after): number => Math.round((after[name] - before[name]) / turnsMeasured);
  const serverMs = (after.busy - before.busy) / turnsMeasured;
  return {
    logBytes: each("log"),
    storedBytes: each("stored"),
    indexBytes: each("index"),
    deadRows: each("dead"),
    serverMs,
  };
}

/** How much of each resource is used at once, and when what grows reaches its limit. */
function limits(cost: Costs, { gateways, turnsPerHour, connectionsEach }: Load) {
  const perSecond = (gateways * turnsPerHour) / 3_600;
  const full = (bytes: number, most: number): number => most / (bytes * perSecond * secondsPerYear);
  return [
    { name: "connections", atOnce: (gateways * connectionsEach) / server.connections, years: null },
    { name: "processors", atOnce: (perSecond * cost.serverMs) / 1_000 / server.processors, years: null },
    { name: "log", atOnce: (perSecond * cost.logBytes) / server.logBytesPerSecond, years: null },
    { name: "autovacuum (dead rows)", atOnce: (perSecond * cost.deadRows) / server.deadRowsPerSecond, years: null },
    { name: "index in memory", atOnce: 0, years: full(cost.indexBytes, server.indexBytes) },
    { name: "disk of 16 TB", atOnce: 0, years: full(cost.storedBytes, 16e12) },
  ].toSorted((one, other) => other.atOnce - one.atOnce);
}
