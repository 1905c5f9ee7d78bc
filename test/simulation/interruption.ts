/** Interrupts writes, and takes snapshots of all rows to check that nothing of them is left. */

import type { DatabaseSync } from "node:sqlite";
import type { Script } from "../../src/store/script.ts";

/** The script up to this many statements, or to its end, and never to its commit. */
export function* brokenOff<T>(script: Script<T>, after: number, onWhole: () => void): Script<T> {
  let step = script.next();
  for (let done = 0; step.done !== true; done++) {
    if (done === after) throw new Error("broken off");
    step = script.next(yield step.value);
  }
  onWhole();
  throw new Error("broken off");
}

/** Every row, as one text. */
export function pictureOf(db: DatabaseSync): string {
  const tables = db
    .prepare(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%\\_fts%' ESCAPE '\\' ORDER BY name",
    )
    .all()
    .map(({ name }) => String(name));
  return JSON.stringify(
    [...tables, "messages_fts_docsize", "summaries_fts_docsize"].map((name) =>
      db
        .prepare(`SELECT * FROM ${name}`)
        .all()
        .map((row) => Object.values(row).map(String)),
    ),
  );
}
