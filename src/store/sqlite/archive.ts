/**
 * Archives conversations: copies them and their files into a new database while other processes write.
 * The copy is a snapshot, and is read back before the file gets its name.
 */

import { existsSync, rmSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { LcmError } from "../../core/base/errors.ts";
import type { Archived } from "../../core/model/changes.ts";
import type { ConversationId } from "../../core/model/types.ts";
import { removeDeadDrafts, writeWhole } from "./backups/backup.ts";
import type { DatabaseLocation } from "./location.ts";
import { inSqlite } from "../dialect.ts";
import { ownedTables, reassignFiles } from "../ownership.ts";
import { copyContents, refuseLinks } from "../content/folder.ts";
import { isLink, notPlain } from "../content/plain-file.ts";
import { createSchema } from "./migrate.ts";
import { columnsOf } from "./pragma.ts";
import { checkWhole } from "./file-kind.ts";
import { readOnlyUri } from "./read-only.ts";
import { inTransaction } from "./runner.ts";

export async function archive(
  from: DatabaseLocation,
  conversations: readonly ConversationId[],
  to: DatabaseLocation,
  replace: boolean,
): Promise<Archived> {
  let files = 0;
  const write = async (draft: string): Promise<void> => {
    removeDeadDrafts(dirname(to.path), basename(to.path));
    const contents = readBack(draft, copyRows(from.path, conversations, draft));
    await refuseLinks(from.filesDir, contents); // The originals may be deleted next.
    if (isLink(to.filesDir)) throw notPlain(to.filesDir, "a symbolic link"); // It may lead to the originals.
    files = contents.length - (await copyContents(from.filesDir, to.filesDir, contents, true)).length;
  };
  const isNew = !existsSync(to.filesDir);
  try {
    await writeWhole(to.path, "archive", write, replace);
  } catch (error) {
    if (isNew) rmSync(to.filesDir, { recursive: true, force: true }); // On a full disk nothing else would free its space.
    throw error;
  }
  return { path: to.path, bytes: statSync(to.path).size, files };
}

type Counts = ReadonlyMap<string, number>;

/** In one transaction, which sees a snapshot of the source. Returns the number of rows by table. */
function copyRows(from: string, conversations: readonly ConversationId[], draft: string): Counts {
  using db = createDraft(draft);
  db.prepare("ATTACH ? AS source").run(readOnlyUri(from));
  const counts = new Map<string, number>();
  const copy = (table: string, condition: string, ...values: readonly string[]): void => {
    const columns = [...columnsOf(db, table).keys()].join(", ");
    const insert = `INSERT INTO main.${table} (${columns}) SELECT ${columns} FROM source.${table} WHERE ${condition}`;
    counts.set(table, (counts.get(table) ?? 0) + Number(db.prepare(inSqlite(insert)).run(...values).changes));
  };
  inTransaction(db, () => {
    for (const { table, isOwn } of ownedTables) copy(table, isOwn, JSON.stringify(conversations));
    copy("registry", "kind <> 'session'"); // So that numbers are not reused.
    copy("checksum_backlog", "true");
    copy(
      "large_files",
      `file_id NOT IN (SELECT file_id FROM main.large_files) AND file_id IN (
         SELECT f.value ->> 'file' FROM main.messages m, json_each(m.moved) f WHERE m.moved IS NOT NULL)`,
    );
    finishDraft(db);
  });
  return counts;
}

/** An empty database. Foreign keys are checked after copying. */
export function createDraft(draft: string): DatabaseSync {
  const db = new DatabaseSync(draft, { timeout: 10_000 });
  db.exec("PRAGMA page_size = 8192; PRAGMA foreign_keys = OFF");
  inTransaction(db, () => createSchema(db));
  return db;
}

/** Once all rows are there. */
export function finishDraft(db: DatabaseSync): void {
  db.exec(inSqlite(reassignFiles((column) => `${column} NOT IN (SELECT conversation_id FROM main.conversations)`)));
  db.exec("UPDATE main.conversations SET indexed_seq = 0, indexed_summary = 0, unindexed = 1"); // The search index is not copied.
}

/** Checks the copy, because the originals may be deleted next. Returns the storage URIs of its files. */
export function readBack(draft: string, copied: Counts): readonly string[] {
  checkWhole(draft);
  using db = new DatabaseSync(draft, { readOnly: true });
  for (const [table, rows] of copied) {
    const there = Number(db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.["rows"]);
    if (there !== rows) throw new LcmError("corrupt", `the archive contains ${there} of ${rows} rows of ${table}`);
  }
  const stray = db.prepare("PRAGMA foreign_key_check").get();
  if (stray !== undefined) {
    const message = `rows of ${String(stray["table"])} refer to rows outside these conversations`;
    throw new LcmError("conflict", message, { hint: "run `lcm doctor` to find and fix them" });
  }
  return db
    .prepare("SELECT storage_uri FROM large_files ORDER BY file_id")
    .all()
    .map((row) => String(row["storage_uri"]));
}
