/**
 * Provides databases of the older program: two real ones, and scripts that bring them into states these two lack. Also
 * compares two databases row by row.
 */

import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { SQLOutputValue } from "node:sqlite";
import { fileURLToPath } from "node:url";

export type FixtureVersion = "0.1.0" | "0.15.3";
export const fixtureVersions: readonly FixtureVersion[] = ["0.1.0", "0.15.3"];

/** A writable copy of a fixture. */
export function copyFixture(version: FixtureVersion, folder: string, name = "lcm.db"): string {
  const path = join(folder, name);
  copyFileSync(fileURLToPath(new URL(`../../test/fixtures/lcm-${version}.db`, import.meta.url)), path);
  chmodSync(path, 0o644);
  return path;
}

/** Writes to a database without any safeguards, as years of use and other programs may have done. */
export function tamper(path: string, work: (db: DatabaseSync) => void): string {
  const db = new DatabaseSync(path, { enableForeignKeyConstraints: false, defensive: false });
  try {
    work(db);
  } finally {
    db.close();
  }
  return path;
}

export type Row = Readonly<Record<string, SQLOutputValue>>;

/** Rows as plain objects, integers as BigInt. Leaves no new file beside the database. */
export function rowsOf(path: string, statement: string): readonly Row[] {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    const prepared = db.prepare(statement);
    prepared.setReadBigInts(true);
    return prepared.all().map((row) => ({ ...row }));
  } finally {
    db.close();
  }
}

export const tablesOf = (path: string): readonly string[] =>
  rowsOf(path, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name").map(
    (row) => String(row["name"]),
  );

export const columnsOf = (path: string, table: string): readonly string[] =>
  rowsOf(path, `SELECT name FROM pragma_table_xinfo('${table}') ORDER BY cid`).map((row) => String(row["name"]));

type Contents = Readonly<Record<string, readonly string[]>>;

/**
 * Everything in a database, table by table, in an order that does not depend on the file's layout. With the contents of
 * an earlier version, only the tables and columns that it had.
 */
export function contentsOf(path: string, earlier?: Contents): Contents {
  const line = (row: Row): string =>
    JSON.stringify(row, (_, value: unknown) =>
      typeof value === "bigint"
        ? `${value}n`
        : value instanceof Uint8Array
          ? Buffer.from(value).toString("hex")
          : value,
    );
  const columns = (table: string): string => {
    const [row] = earlier?.[table] ?? [];
    return row === undefined
      ? "*"
      : Object.keys(JSON.parse(row) as Row)
          .map((name) => `"${name}"`)
          .join(", ");
  };
  return Object.fromEntries(
    // The vocabulary is a view of the index.
    tablesOf(path)
      .filter((table) => !table.endsWith("_vocab") && (earlier === undefined || Object.hasOwn(earlier, table)))
      .map((table) => [
        table,
        rowsOf(path, `SELECT ${columns(table)} FROM "${table}"`)
          .map(line)
          .toSorted(),
      ]),
  );
}

export const hashOf = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex");

const copied = [
  "conversations",
  "messages",
  "message_parts",
  "summaries",
  "summary_messages",
  "summary_parents",
  "context_items",
];

/** Copies a fixture's only conversation many times, each copy with its own ids. */
export function multiply(path: string, times: number): string {
  return tamper(path, (db) => {
    db.exec("PRAGMA synchronous = OFF; BEGIN");
    const most = Number(db.prepare("SELECT max(message_id) AS most FROM messages").get()?.["most"]);
    const summary = (column: string): string => `printf('sum_%08x', k) || substr(${column}, 13)`;
    const changed: Readonly<Record<string, string>> = {
      conversation_id: "conversation_id + k",
      session_id: "session_id || ':' || k",
      session_key: "session_key || ':' || k",
      message_id: `message_id + k * ${most}`,
      part_id: "part_id || ':' || k",
      summary_id: summary("summary_id"),
      parent_summary_id: summary("parent_summary_id"),
    };
    for (const table of copied) {
      const columns = db
        .prepare("SELECT name FROM pragma_table_info(?)")
        .all(table)
        .map((row) => String(row["name"]));
      const values = columns.map((column) => changed[column] ?? column);
      db.exec(`CREATE TEMP TABLE base AS SELECT * FROM ${table};
        INSERT INTO ${table} (${columns.join(", ")}) SELECT ${values.join(", ")} FROM base, (
          WITH RECURSIVE numbers (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM numbers WHERE k < ${times - 1})
          SELECT k FROM numbers) ORDER BY k;
        DROP TABLE base`);
    }
    db.exec("COMMIT");
  });
}

/** Rebuilds a table with its columns reordered, or with fewer or more of them; the rows stay. */
export function reshape(
  db: DatabaseSync,
  table: string,
  columns: (present: readonly string[]) => readonly string[],
): void {
  const found = db.prepare('SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?)').all(table);
  const names = found.map((row) => String(row["name"]));
  const wanted = columns(names);
  const definition = (name: string): string => {
    const row = found.find((candidate) => candidate["name"] === name);
    const { type = "", dflt_value: otherwise = null } = row ?? {};
    return `"${name}" ${String(type)}${row?.["notnull"] === 1 ? " NOT NULL" : ""}${otherwise === null ? "" : ` DEFAULT (${String(otherwise)})`}`;
  };
  const key = found.filter((row) => Number(row["pk"]) > 0).toSorted((a, b) => Number(a["pk"]) - Number(b["pk"]));
  const primary = key.length === 0 ? "" : `, PRIMARY KEY (${key.map((row) => String(row["name"])).join(", ")})`;
  const carried = wanted
    .filter((name) => names.includes(name))
    .map((name) => `"${name}"`)
    .join(", ");
  db.exec(`PRAGMA legacy_alter_table = ON;
    ALTER TABLE ${table} RENAME TO reshaped;
    CREATE TABLE ${table} (${wanted.map(definition).join(", ")}${primary});
    INSERT INTO ${table} (${carried}) SELECT ${carried} FROM reshaped;
    DROP TABLE reshaped`);
}
