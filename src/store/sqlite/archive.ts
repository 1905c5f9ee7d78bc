/**
 * Conversations in a file of their own: a database like any other, with nothing else in it. Copied table by table as they
 * are at one moment, while others write, and read back before the file gets its name.
 */

import { statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { LcmError } from "../../core/base/errors.ts";
import type { Archived } from "../../core/model/changes.ts";
import type { ConversationId } from "../../core/model/types.ts";
import { removeDeadDrafts, writeWhole } from "./backup.ts";
import { belongings, giveFilesToHeirs } from "../ownership.ts";
import { copyContent } from "../content/folder.ts";
import { createSchema } from "./migrate.ts";
import { columnsOf } from "./pragma.ts";
import { checkWhole } from "./file-kind.ts";
import { inTransaction } from "./runner.ts";

/** A database and its files. */
export interface Place {
  readonly path: string;
  readonly filesDir: string;
}

export async function archive(
  from: Place,
  conversations: readonly ConversationId[],
  to: Place,
  replace: boolean,
): Promise<Archived> {
  let files = 0;
  await writeWhole(
    to.path,
    "archive",
    async (draft) => {
      removeDeadDrafts(dirname(to.path), basename(to.path));
      const copied = copyRows(from.path, conversations, draft);
      for (const storageUri of readBack(draft, copied))
        if (await copyContent(from.filesDir, to.filesDir, storageUri)) files += 1;
    },
    replace,
  );
  return { path: to.path, bytes: statSync(to.path).size, files };
}

/** As a name under which SQLite opens it only to read. */
export function readOnlyName(path: string): string {
  const url = pathToFileURL(path);
  url.searchParams.set("mode", "ro");
  return url.href;
}

type Counts = ReadonlyMap<string, number>;

/** All within one transaction, which sees the source as it is at its beginning. How many rows of which table. */
function copyRows(from: string, conversations: readonly ConversationId[], draft: string): Counts {
  using db = new DatabaseSync(draft, { timeout: 10_000 });
  db.exec("PRAGMA page_size = 8192; PRAGMA foreign_keys = OFF"); // They are checked all at once afterwards.
  inTransaction(db, () => createSchema(db));
  db.prepare("ATTACH ? AS source").run(readOnlyName(from));
  const counts = new Map<string, number>();
  const copy = (table: string, condition: string, ...values: readonly string[]): void => {
    const columns = [...columnsOf(db, table).keys()].join(", ");
    const words = `INSERT INTO main.${table} (${columns}) SELECT ${columns} FROM source.${table} WHERE ${condition}`;
    counts.set(table, (counts.get(table) ?? 0) + Number(db.prepare(words).run(...values).changes));
  };
  inTransaction(db, () => {
    for (const { table, isOwn } of belongings) copy(table, isOwn, JSON.stringify(conversations));
    copy("registry", "kind <> 'session'"); // So numbers that were given once are not given again.
    copy(
      "large_files",
      `file_id NOT IN (SELECT file_id FROM main.large_files) AND file_id IN (
         SELECT f.value ->> 'file' FROM main.messages m, json_each(m.moved) f WHERE m.moved IS NOT NULL)`,
    );
    db.exec(giveFilesToHeirs((column) => `${column} NOT IN (SELECT conversation_id FROM main.conversations)`));
    db.exec("UPDATE main.conversations SET indexed_seq = 0, indexed_summary = 0"); // The search index is not copied.
  });
  return counts;
}

/** Whatever is deleted afterwards is deleted because it is here. What belongs into the files folder. */
function readBack(draft: string, copied: Counts): readonly string[] {
  checkWhole(draft);
  using db = new DatabaseSync(draft, { readOnly: true });
  for (const [table, rows] of copied) {
    const there = Number(db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.["rows"]);
    if (there !== rows) throw new LcmError("corrupt", `the archive holds ${there} of ${rows} rows of ${table}`);
  }
  const stray = db.prepare("PRAGMA foreign_key_check").get();
  if (stray !== undefined) {
    const message = `rows of ${String(stray["table"])} point to something that is not in these conversations`;
    throw new LcmError("conflict", message, { hint: "`lcm doctor` tells which, and how to mend it" });
  }
  return db
    .prepare("SELECT storage_uri FROM large_files ORDER BY file_id")
    .all()
    .map((row) => String(row["storage_uri"]));
}
