/** Notices writes of any process without reading a table. */

import { readAddress } from "../../core/base/database-place.ts";
import { translateError } from "./errors.ts";
import { openPool } from "./pool.ts";

/** `read` returns a text that changes whenever a transaction that wrote something has ended, in any database of the server. */
export async function createWatcher(url: string): Promise<{ read(): Promise<string>; close(): Promise<void> }> {
  const pool = await openPool(readAddress(url), 1);
  return {
    async read() {
      try {
        const client = await pool.connect();
        try {
          const { rows } = await client.query("SELECT pg_current_snapshot()::text AS snapshot");
          return String(rows[0]?.["snapshot"]);
        } finally {
          client.release();
        }
      } catch (error) {
        throw translateError(error);
      }
    },
    close: async () => await pool.end(),
  };
}
