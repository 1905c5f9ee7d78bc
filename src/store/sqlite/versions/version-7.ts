/** Upgrades a database to schema 7: tables for records of prompts, empty at first. */

import type { DatabaseSync } from "node:sqlite";
import { tableNames } from "../pragma.ts";
import { tables } from "../schema.ts";

/** Call inside a transaction. A file that comes from schema 1 has the tables already. */
export function upgradeToVersion7(db: DatabaseSync): void {
  const present = tableNames(db);
  for (const name of ["prompts", "prompt_heads"] as const) if (!present.has(name)) db.exec(tables[name]);
}
