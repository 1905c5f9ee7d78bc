/** Database files for other stores: archives that they write and merge, and files that conversations move from or to. */

import { existsSync, rmSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { openFolder } from "../content/folder.ts";
import { isLink, notPlain } from "../content/plain-file.ts";
import { tableNames } from "../ownership.ts";
import { count, statement } from "../script.ts";
import { copyContent, type ArchiveFiles, type OpenedFile } from "../transfer/archives.ts";
import type { RowFile } from "../transfer/rows.ts";
import { createDraft, finishDraft, readBack } from "./archive.ts";
import { writeWhole } from "./backups/backup.ts";
import { connect } from "./connect.ts";
import { defaultFilesDir, filesBeside, locationOf } from "./location.ts";
import { checkSource } from "./merge.ts";
import { columnsOf } from "./pragma.ts";
import { createRunner } from "./runner.ts";

export const archiveFiles: ArchiveFiles = {
  async write(to, replace, fill) {
    const location = locationOf(to);
    const isNew = !existsSync(location.filesDir);
    let files = 0;
    const write = async (draft: string): Promise<void> => {
      using db = createDraft(draft);
      const file = rowFileOf(db);
      const { content } = await fill(file);
      finishDraft(db);
      const counts = new Map(
        tableNames.map((table) => [table, file.run(count(statement(`SELECT count(*) FROM ${table}`)))]),
      );
      file.commit();
      const contents = readBack(draft, counts);
      if (isLink(location.filesDir)) throw notPlain(location.filesDir, "a symbolic link"); // It may lead elsewhere.
      files = contents.length - (await copyContent(content, openFolder(location.filesDir), contents)).length;
    };
    try {
      await writeWhole(to, "archive", write, replace);
    } catch (error) {
      if (isNew) rmSync(location.filesDir, { recursive: true, force: true }); // Nothing else would free its space.
      throw error;
    }
    return { path: location.path, bytes: statSync(to).size, files };
  },
  read(from) {
    checkSource(from);
    return openRowFile(from, true);
  },
};

/** Creates it if there is none, unless it is only read. */
export function openRowFile(path: string, readOnly: boolean): OpenedFile {
  const { filesDir } = locationOf(path);
  const folder = readOnly && !existsSync(filesDir) ? filesBeside(path) : defaultFilesDir(path); // The former for a backup.
  if (isLink(folder)) throw notPlain(folder, "a symbolic link");
  const db = connect(path, readOnly);
  return { file: rowFileOf(db), content: openFolder(folder), close: () => db.close() };
}

function rowFileOf(db: DatabaseSync): RowFile {
  const runner = createRunner(db);
  return {
    columnsOf: (table) => [...columnsOf(db, table).keys()],
    run: runner.run,
    begin(mode) {
      if (db.isTransaction) db.exec("ROLLBACK");
      db.exec(mode === "read" ? "BEGIN" : "BEGIN IMMEDIATE");
    },
    commit: () => db.exec("COMMIT"),
    rollback: () => db.isTransaction && db.exec("ROLLBACK"),
  };
}
