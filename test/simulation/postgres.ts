/** A PostgreSQL schema as the store of a simulated life. Lives follow each other on one server. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { readAddress } from "../../src/store/postgres/address.ts";
import { openPool } from "../../src/store/postgres/pool.ts";
import { createRunner } from "../../src/store/postgres/runner.ts";
import { createSearchIndex } from "../../src/store/postgres/search-index.ts";
import { openPostgres } from "../../src/store/postgres/store.ts";
import { noLeftovers } from "../../src/store/script.ts";
import { termsVersion } from "../../src/store/search/tokenize.ts";
import type { PostgresMachine } from "../support/postgres-machine.ts";
import type { LifeDatabase, LifeDeps, SimulatedStore } from "./database.ts";

const schema = "life";
/** Most crashes end all connections; one in so many ends the server. */
const crashesPerPowerCut = 8;

const tables = `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = '${schema}' AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> 'lcm_schema' ORDER BY 1`;

export const postgres = (machine: () => PostgresMachine): SimulatedStore => ({
  testFile: "test/postgres-simulation.test.ts",
  begin: async (folder, deps) => await lifeOn(machine(), folder, deps),
});

let crashes = 0;

async function lifeOn(machine: PostgresMachine, folder: string, deps: LifeDeps): Promise<LifeDatabase> {
  const url = `${machine.url}?schema=${schema}`;
  const open: LifeDatabase["open"] = async () =>
    await openPostgres({ url, ...deps, housekeeping: false, filesDir: join(folder, "files"), connectionsMax: 2 });
  await (await open()).close();
  const names = (await machine.query(tables)).map(({ name }) => `${schema}.${String(name)}`);
  // Faster than TRUNCATE, which makes new files of everything.
  await machine.query(`SET session_replication_role = replica; ${names.map((name) => `DELETE FROM ${name}`).join("; ")};
    INSERT INTO ${schema}.search_progress (version) VALUES (${termsVersion})`);
  const pool = await openPool(readAddress(url), 1);
  const runner = createRunner({ pool, schema, lockTimeoutMs: 60_000 });
  const rows = names.map(
    (name) => `SELECT '${name}' AS name, string_agg(row::text, chr(10) ORDER BY row::text) AS rows FROM ${name} AS row`,
  );
  return {
    leftovers: noLeftovers,
    searchIndex: createSearchIndex(schema),
    open,
    async crash() {
      crashes += 1;
      if (crashes % crashesPerPowerCut === 0) {
        await machine.crash();
        await machine.start();
        return "the server";
      }
      const killed = await machine.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'lossless-claw'`,
      );
      return `${killed.length} connections`;
    },
    picture: async () => JSON.stringify(await machine.query(`${rows.join(" UNION ALL ")} ORDER BY name`)),
    breakOff: async (script) => await assert.rejects(runner.write(null, script), /broken off/),
    end: async () => await pool.end(),
  };
}
