/**
 * Upgrades a database to schema 3: texts have checksums, and views have the columns of the older program. It touches no
 * row, so it takes no time; the rows get their checksums later, in the background.
 */

import type { DatabaseSync } from "node:sqlite";
import { columnsOf, tableNames } from "../pragma.ts";
import { tables, views } from "../schema.ts";

const checked = ["messages", "summaries", "transcript_entries"];

/** Call inside a transaction. A file that comes from schema 1 has the columns and the table already. */
export function upgradeToVersion3(db: DatabaseSync): void {
  for (const table of checked)
    if (!columnsOf(db, table).has("checksum")) db.exec(`ALTER TABLE ${table} ADD COLUMN checksum INTEGER`);
  if (!tableNames(db).has("checksum_backlog")) db.exec(tables.checksum_backlog);
  const wait = db.prepare("INSERT INTO checksum_backlog (table_name, after_id) VALUES (?, 0)");
  for (const table of checked) wait.run(table);
  for (const statement of Object.values(views)) db.exec(statement);
}
