/** Reads pragmas, table names and columns of an open database. */

import type { DatabaseSync } from "node:sqlite";

export const pragma = (db: DatabaseSync, name: string): number =>
  Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0] ?? 0);

export const tableNames = (db: DatabaseSync): ReadonlySet<string> =>
  new Set(
    db
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
      .all()
      .map((row) => String(row["name"])),
  );

/** The writable columns of a table with their declared types; empty if there is no such table. */
export const columnsOf = (db: DatabaseSync, table: string): ReadonlyMap<string, string> =>
  new Map(
    db
      .prepare("SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden = 0")
      .all(table)
      .map((row) => [String(row["name"]), String(row["type"])]),
  );

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;
