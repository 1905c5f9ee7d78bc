/** Upgrades a database to schema 5: tables for recall, all empty at first. */

import type { DatabaseSync } from "node:sqlite";
import { tableNames } from "../pragma.ts";
import { indexes, tables } from "../schema.ts";
import { vocabularyTable } from "../search-index.ts";

const added = [
  "message_vectors",
  "embedders",
  "map_answers",
  "pins",
  "search_words",
] as const satisfies readonly (keyof typeof tables)[];

/** Call inside a transaction. A file that comes from schema 1 has the tables already. */
export function upgradeToVersion5(db: DatabaseSync): void {
  const present = tableNames(db);
  for (const name of added) {
    if (present.has(name)) continue;
    db.exec(tables[name]);
    for (const index of indexes) if (index.includes(` ON ${name} (`)) db.exec(index);
  }
  db.exec(vocabularyTable);
}
