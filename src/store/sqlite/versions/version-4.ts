/** Upgrades a database to schema 4: a compaction knows whether somebody asked for it. */

import type { DatabaseSync } from "node:sqlite";
import { columnsOf } from "../pragma.ts";

/** Call inside a transaction. A file that comes from schema 1 has the column already. */
export function upgradeToVersion4(db: DatabaseSync): void {
  if (!columnsOf(db, "compactions").has("asked"))
    db.exec("ALTER TABLE compactions ADD COLUMN asked INTEGER NOT NULL DEFAULT 0");
}
