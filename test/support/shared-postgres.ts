/** One PostgreSQL server for all tests of a run, with a database of its own for each file. */

import { after } from "node:test";
import { readAddress } from "../../src/core/base/database-place.ts";
import { openPool } from "../../src/store/postgres/pool.ts";
import { startPostgres, type PostgresServer } from "./postgres-server.ts";

/** Several files may run in one process, and ask for a database in the same millisecond. */
let databases = 0;

/** `npm test` starts the server; a file that runs alone starts its own. */
export async function usePostgres(): Promise<{ readonly url: string }> {
  const shared = process.env["LCM_TEST_POSTGRES"];
  const own: PostgresServer | null = shared === undefined ? await startPostgres() : null;
  const server = shared ?? own?.url ?? "";
  const database = `t_${process.pid}_${Date.now()}_${++databases}`;
  await onServer(server, `CREATE DATABASE ${database}`);
  after(async () => {
    if (shared !== undefined) await onServer(shared, `DROP DATABASE ${database} WITH (FORCE)`);
    await own?.stop();
  });
  const named = new URL(server);
  named.pathname = `/${database}`;
  return { url: named.href };
}

async function onServer(url: string, statement: string): Promise<void> {
  const pool = await openPool(readAddress(url), 1);
  try {
    const client = await pool.connect();
    try {
      await client.query(statement);
    } finally {
      client.release();
    }
  } finally {
    await pool.end();
  }
}
