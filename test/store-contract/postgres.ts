/** PostgreSQL as a store under test: each path is a schema, with large content in a folder beside the path. */

import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { readAddress } from "../../src/store/postgres/address.ts";
import { openPool, type Pool } from "../../src/store/postgres/pool.ts";
import { createRunner } from "../../src/store/postgres/runner.ts";
import { openPostgres } from "../../src/store/postgres/store.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { archiveFiles } from "../../src/store/sqlite/row-file.ts";
import { statement } from "../../src/store/script.ts";
import { isOnDisk, type StoreUnderTest } from "./ground.ts";

/** `server` is the URL of a database, known when the first test runs; `settings` are added to the URL of each schema. */
export function postgres(server: () => string, settings = ""): StoreUnderTest & { close(): Promise<void> } {
  const schemas = new Map<string, string>();
  let pool: Promise<Pool> | null = null;
  const urlOf = (path: string): string => {
    const schema = `t_${createHash("sha256").update(path).digest("hex").slice(0, 16)}`;
    schemas.set(path, schema);
    return `${server()}?schema=${schema}${settings}`;
  };
  const query = async (text: string, values: readonly unknown[] = []) => {
    const client = await (pool ??= openPool(readAddress(server()), 2)).then((each) => each.connect());
    try {
      return (await client.query({ text, values })).rows;
    } finally {
      client.release();
    }
  };
  return {
    // Archives are files on any store.
    open: async (path) =>
      existsSync(path)
        ? await openSqlite({ path })
        : await openPostgres({
            url: urlOf(path),
            filesDir: join(dirname(path), "lcm-files"),
            connectionsMax: 2,
            archives: archiveFiles,
            tableBytesMax: 0, // The suite also tests what lies in the folder.
          }),
    async raw(path, script) {
      pool ??= openPool(readAddress(server()), 2);
      const runner = createRunner({ pool: await pool, schema: readAddress(urlOf(path)).schema, lockTimeoutMs: 5_000 });
      return await runner.write(null, function* () {
        yield statement("SET LOCAL session_replication_role = replica");
        return yield* script();
      });
    },
    async isKept(folder, word) {
      if (isOnDisk(folder, word)) return true;
      const type = typeof word === "string" ? "text" : "bytea";
      for (const [path, schema] of schemas) {
        if (dirname(path) !== folder) continue;
        const columns = await query(
          `SELECT c.table_name AS t, c.column_name AS n FROM information_schema.columns c JOIN information_schema.tables t
             USING (table_schema, table_name) WHERE c.table_schema = $1 AND c.data_type = $2 AND t.table_type = 'BASE TABLE'`,
          [schema, type],
        );
        for (const { t, n } of columns) {
          const held = `SELECT 1 FROM ${schema}.${String(t)} WHERE position($1::${type} in ${String(n)}) > 0 LIMIT 1`;
          if ((await query(held, [word])).length > 0) return true;
        }
      }
      return false;
    },
    shownPath: (path) => readAddress(urlOf(path)).shown,
    close: async () => await (await pool)?.end(),
  };
}
