/**
 * Compares two large databases quickly: SQLite compares them row by row. `test/support/dump.ts` does the same for small
 * ones, and shows them.
 */

import { DatabaseSync } from "node:sqlite";
import { afterUndo } from "../support/dump.ts";

/** Keys, or the number, of rows that differ, by table; empty if none do. */
export function differences(path: string, original: string, of: "everything" | "content"): readonly string[] {
  const leftOut = of === "everything" ? {} : afterUndo;
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    db.prepare("ATTACH ? AS original").run(original);
    const tables = db.prepare("SELECT name FROM main.sqlite_schema WHERE type = 'table' ORDER BY name").all();
    return tables
      .map(({ name }) => String(name))
      .filter((table) => !/_fts|^sqlite_/.test(table) && leftOut[table] !== "all")
      .flatMap((table) => differencesIn(db, table, leftOut[table] ?? []));
  } finally {
    db.close();
  }
}

function differencesIn(db: DatabaseSync, table: string, leftOut: readonly string[] | "all"): readonly string[] {
  const columns = db.prepare(`PRAGMA main.table_info(${table})`).all();
  const primary = columns.filter(({ pk }) => Number(pk) > 0).map(({ name }) => String(name));
  const keys = primary.length === 0 ? ["rowid"] : primary;
  const compared = columns.map(({ name }) => String(name)).filter((name) => !leftOut.includes(name));
  const of = (alias: string, names: readonly string[]): string => names.map((name) => `${alias}.${name}`).join(", ");
  // Numbers are given only once, whatever is undone.
  const counted = table === "registry" ? "kind = 'session'" : "true";
  const same = keys.map((key) => `a.${key} = b.${key}`).join(" AND ");
  const others = db
    .prepare(
      `SELECT ${of("a", keys)} FROM main.${table} a LEFT JOIN original.${table} b ON ${same}
       WHERE ${counted.replace("kind", "a.kind")} AND (${of("a", compared)}) IS NOT (${of("b", compared)}) LIMIT 5`,
    )
    .all();
  // If all rows are in the other database, and the counts are equal, both are the same.
  const counts = ["main", "original"].map((schema) =>
    Number(db.prepare(`SELECT count(*) AS rows FROM ${schema}.${table} WHERE ${counted}`).get()?.["rows"]),
  );
  return [
    ...others.map((row) => `${table} ${JSON.stringify(row)}`),
    ...(counts[0] === counts[1] ? [] : [`${table}: ${counts.join(" rows, and not ")}`]),
  ];
}
