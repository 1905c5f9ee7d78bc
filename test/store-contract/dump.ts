/** Dumps the rows of a store under test, past the port. */

import { tableNames } from "../../src/store/ownership.ts";
import { int, sql, statement, text } from "../../src/store/script.ts";
import { afterUndo, type Dump } from "../support/dump.ts";
import type { StoreUnderTest } from "./ground.ts";

/** All tables except those of the search index. */
export const dumpOf = async (subject: StoreUnderTest, path: string): Promise<Dump> => await read(subject, path, {});

/** Everything an undo promises to restore. */
export const dumpOfContent = async (subject: StoreUnderTest, path: string): Promise<Dump> =>
  await read(subject, path, afterUndo);

const read = async (subject: StoreUnderTest, path: string, leftOut: typeof afterUndo): Promise<Dump> =>
  await subject.raw(path, function* () {
    const tables: [string, readonly string[]][] = [];
    for (const name of tableNames.filter((each) => leftOut[each] !== "all")) {
      const columns = leftOut[name] ?? [];
      // Numbers are given only once, whatever is undone.
      const counted = name === "registry" ? "WHERE kind = 'session'" : "";
      const rows = yield statement(`SELECT * FROM ${name} ${counted}`);
      const told = rows.map((row) =>
        JSON.stringify(Object.fromEntries(Object.entries(row).filter(([column]) => !columns.includes(column)))),
      );
      tables.push([name, told.toSorted()]);
    }
    return Object.fromEntries(tables);
  });

/** The journal as stored. */
export const journalIn = async (subject: StoreUnderTest, path: string) =>
  await subject.raw(path, function* () {
    const rows = yield sql`SELECT change_id, before_json || after_json AS text FROM journal ORDER BY journal_id`;
    return rows.map((row) => ({ change: int(row, "change_id"), text: text(row, "text") }));
  });
