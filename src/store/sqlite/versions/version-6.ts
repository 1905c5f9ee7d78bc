/** Upgrades a database to schema 6: a conversation knows the folder its session works in, and the session that started it. */

import type { DatabaseSync } from "node:sqlite";
import { columnsOf } from "../pragma.ts";

/** Call inside a transaction. A file that comes from schema 1 has the columns already. */
export function upgradeToVersion6(db: DatabaseSync): void {
  const present = columnsOf(db, "conversations");
  for (const column of ["folder", "parent_session"])
    if (!present.has(column)) db.exec(`ALTER TABLE conversations ADD COLUMN ${column} TEXT`);
}
