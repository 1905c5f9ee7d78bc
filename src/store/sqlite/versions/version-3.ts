/**
 * Upgrades a database to schema 3: texts have checksums, conversations know whether they are indexed, and views have the
 * columns of the older program. It touches no message, so it takes no time; checksums are written later, in the background.
 */

import type { DatabaseSync } from "node:sqlite";
import { columnsOf, tableNames } from "../pragma.ts";
import { indexes, isIndexed, tables, views } from "../schema.ts";

const checked = ["messages", "summaries", "transcript_entries"];

/** Call inside a transaction. A file that comes from schema 1 has the columns and the table already. */
export function upgradeToVersion3(db: DatabaseSync): void {
  for (const table of checked)
    if (!columnsOf(db, table).has("checksum")) db.exec(`ALTER TABLE ${table} ADD COLUMN checksum INTEGER`);
  if (!columnsOf(db, "conversations").has("unindexed")) {
    db.exec(`DROP INDEX conversations_unindexed_idx;
      ALTER TABLE conversations ADD COLUMN unindexed INTEGER NOT NULL DEFAULT 1 CHECK (${isIndexed} OR unindexed = 1);
      UPDATE conversations SET unindexed = 0 WHERE ${isIndexed}`);
    db.exec(indexes.find((index) => index.includes("conversations_unindexed_idx")) ?? "");
  }
  if (!tableNames(db).has("checksum_backlog")) db.exec(tables.checksum_backlog);
  const wait = db.prepare("INSERT INTO checksum_backlog (table_name, after_id) VALUES (?, 0)");
  for (const table of checked) wait.run(table);
  for (const statement of Object.values(views)) db.exec(statement);
}
