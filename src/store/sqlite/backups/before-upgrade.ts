/** Copies a database before its schema is upgraded, so that one can go back to the version that wrote it. */

import { readdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { readDatabase } from "../file-kind.ts";
import { pragma } from "../pragma.ts";
import { backUpDatabase } from "./backup.ts";
import { backupPath, unusedPath } from "./copies.ts";

/** Without the stored files, which an upgrade leaves as they are. Copies made before earlier upgrades are deleted. */
export async function backUpBeforeUpgrade(path: string, now: string): Promise<void> {
  const version = readDatabase(path, (db) => pragma(db, "user_version"));
  const copy = unusedPath(`${backupPath(path, now)}-schema${version}`);
  await backUpDatabase(path, copy);
  const older = new RegExp(String.raw`\.backup-\d{8}T\d{6}Z-schema\d+(-\d+)?$`);
  for (const name of readdirSync(dirname(path))) {
    if (name.startsWith(`${basename(path)}.`) && older.test(name) && !name.endsWith(`-schema${version}`))
      rmSync(join(dirname(path), name), { force: true });
  }
}
