/** Dumps every row of a database, for tests that nothing, or nothing else, has changed. */

import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";

/** Rows by table, each as JSON text, sorted. */
export type Dump = Readonly<Record<string, readonly string[]>>;

/** What a change and its undo may leave behind: the record of them, and numbers that are used only once. */
export const afterUndo: Readonly<Record<string, readonly string[] | "all">> = {
  journal: "all",
  drafts: "all",
  map_answers: "all",
  model_usage: "all",
  search_progress: "all",
  conversations: ["revision", "next_seq", "last_summary", "indexed_seq", "indexed_summary", "unindexed"],
};

/** All tables except those of the search index. */
export const dumpOf = (path: string): Dump => read(path, {});

/** Everything an undo promises to restore. */
export const dumpOfContent = (path: string): Dump => read(path, afterUndo);

function read(path: string, leftOut: typeof afterUndo): Dump {
  const db = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
  try {
    const named = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
    const names = named.map(({ name }) => String(name));
    const tables = names.filter((name) => !/_fts|^sqlite_/.test(name) && leftOut[name] !== "all");
    return Object.fromEntries(
      tables.map((name) => {
        const columns = leftOut[name] ?? [];
        // Numbers are given only once, whatever is undone.
        const counted = name === "registry" ? "WHERE kind = 'session'" : "";
        const rows = db.prepare(`SELECT * FROM ${name} ${counted}`).all();
        const told = rows.map((row) =>
          JSON.stringify(Object.fromEntries(Object.entries(row).filter(([column]) => !columns.includes(column)))),
        );
        return [name, told.toSorted()];
      }),
    );
  } finally {
    db.close();
  }
}

/** Asserts that every table has the same rows, and otherwise shows the rows that only one dump has. */
export function assertSameRows(now: Dump, before: Dump, words = "the rows are as they were"): void {
  const only = (one: Dump, other: Dump): readonly string[] =>
    Object.entries(one).flatMap(([table, rows]) => {
      const known = new Set(other[table]);
      return rows.filter((row) => !known.has(row)).map((row) => `${table} ${row}`);
    });
  assert.deepEqual({ more: only(now, before), missing: only(before, now) }, { more: [], missing: [] }, words);
}

/** The names of the tables that differ. */
export const tablesChanged = (before: Dump, after: Dump): readonly string[] =>
  Object.keys({ ...before, ...after }).filter((name) => before[name]?.join("\n") !== after[name]?.join("\n"));
