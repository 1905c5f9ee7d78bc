/** Archives of a database that is not a file: its conversations, in a database file, and back. */

import type { ContentStore } from "../../core/model/content-store.ts";
import type { Archived } from "../../core/model/changes.ts";
import { LcmError } from "../../core/base/errors.ts";
import { shellPath } from "../../core/base/format.ts";
import type { ConversationId } from "../../core/model/types.ts";
import type { TableName } from "../ownership.ts";
import { all, sql, statement, text, type Row, type Script } from "../script.ts";
import { notMerged } from "./merge.ts";
import { copyOut, insertions, ownedNames, pagesIn, yieldAll, type RowFile } from "./rows.ts";

/** What a store that is not a file needs of those that are. */
export interface ArchiveFiles {
  /** Writes a new file: a draft that `fill` gets is checked, and then gets its name. Returns how many files it has. */
  write(to: string, replace: boolean, fill: (draft: RowFile) => Promise<ArchivedContent>): Promise<Archived>;
  /** Opens a file to be read. Throws `invalid` if it cannot be merged. */
  read(from: string): OpenedFile;
}

export interface ArchivedContent {
  readonly content: ContentStore;
}

export interface OpenedFile {
  readonly file: RowFile;
  readonly content: ContentStore;
  readonly close: () => void;
}

/** In one snapshot of the database: the conversations, and what an archive has besides. */
export function* archiveRows(ids: readonly ConversationId[], draft: RowFile): Script<void> {
  draft.begin("write"); // Once more if the script is run again.
  for (const id of ids) yield* copyOut(id, draft);
  const copy = (table: TableName, rows: readonly Row[]): void =>
    draft.run(yieldAll(insertions(table, draft.columnsOf(table), rows)));
  copy("registry", yield sql`SELECT kind, session_key, agent_id, number FROM registry WHERE kind <> 'session'`);
  copy("checksum_backlog", yield sql`SELECT table_name, after_id FROM checksum_backlog`);
  const named = draft.run(filesNamed());
  const columns = draft.columnsOf("large_files");
  const read = `SELECT ${columns.join(", ")} FROM large_files WHERE file_id IN (SELECT value FROM texts_in(?)) ORDER BY file_id`;
  copy("large_files", yield statement(read, [named]));
}

/** Files of other conversations that messages here name, as copies do. */
const filesNamed = (): Script<readonly string[]> =>
  all(
    sql`SELECT DISTINCT f.value ->> 'file' AS file_id FROM messages m, objects_in(m.moved) f
        WHERE m.moved IS NOT NULL AND f.value ->> 'file' NOT IN (SELECT file_id FROM large_files)`,
    (row) => text(row, "file_id"),
  );

/** The tables of a file as temporary ones, which the transaction leaves nothing of. */
export function* uploadSource(file: RowFile): Script<void> {
  const tables = [...ownedNames.filter((name) => !notMerged.has(name)), "checksum_backlog" as const];
  for (const table of tables) yield statement(`CREATE TEMP TABLE source_${table} (LIKE ${table}) ON COMMIT DROP`);
  // Each database numbers its files by itself.
  yield statement("ALTER TABLE source_large_files ALTER COLUMN file_number DROP NOT NULL");
  for (const id of file.run(conversationIds())) {
    for (const table of ownedNames) {
      if (notMerged.has(table)) continue;
      for (const rows of pagesIn(file, table, id)) yield insertions(`source_${table}`, file.columnsOf(table), rows);
    }
  }
  const backlog = file.run(rowsOf(sql`SELECT table_name, after_id FROM checksum_backlog`));
  yield insertions("source_checksum_backlog", ["table_name", "after_id"], backlog);
  yield statement("CREATE INDEX ON source_messages (message_id)");
  yield statement("CREATE INDEX ON source_summaries (summary_id)");
}

export function* rowsOf(asked: ReturnType<typeof statement>): Script<readonly Row[]> {
  return yield asked;
}

export const conversationIds = (): Script<readonly ConversationId[]> =>
  all(
    sql`SELECT conversation_id FROM conversations ORDER BY conversation_id`,
    (row) => row["conversation_id"] as ConversationId,
  );

/** Copies contents from one place to another, byte by byte. Returns the URIs of those that are missing. */
export async function copyContent(
  from: ContentStore,
  to: ContentStore,
  uris: readonly string[],
): Promise<readonly string[]> {
  const missing: string[] = [];
  for (const storageUri of uris) {
    const odd = await from.oddity(storageUri);
    if (odd !== null)
      throw new LcmError("denied", `${storageUri} is ${odd}, and links are never followed`, {
        hint: "replace it by the file that belongs there, or remove it",
      });
    const facts = await from.facts(storageUri);
    if (facts === null) missing.push(storageUri);
    else if ((await to.facts(storageUri))?.bytes !== facts.bytes)
      await to.replace(storageUri, await from.read({ id: "file_", storageUri, encoding: "base64" }), "base64");
  }
  return missing;
}

export const contentsOf = (ids: readonly ConversationId[] | null): Script<readonly string[]> =>
  all(
    ids === null
      ? sql`SELECT storage_uri FROM large_files ORDER BY file_id`
      : sql`SELECT storage_uri FROM large_files WHERE conversation_id IN (SELECT value FROM numbers_in(${ids}))
            ORDER BY file_id`,
    (row) => text(row, "storage_uri"),
  );

/** The file would replace content of a row here. */
export const clashOfContent = (from: string, storageUri: string): LcmError =>
  new LcmError("conflict", `${from} would replace the stored file ${storageUri}, which another file here uses`, {
    hint: `nothing was merged; export single conversations with \`lcm export --db ${shellPath(from)}\` and import these`,
  });
