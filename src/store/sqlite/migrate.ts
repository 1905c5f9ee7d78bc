/** Creates the schema of a new database, and upgrades an outdated one step by step in one transaction. */

import type { DatabaseSync } from "node:sqlite";
import { LcmError } from "../../core/base/errors.ts";
import { kindOf } from "./file-kind.ts";
import { pragma } from "./pragma.ts";
import { inTransaction } from "./runner.ts";
import { applicationId, indexes, schemaVersion, tables, views } from "./schema.ts";
import { searchTables } from "./search-index.ts";
import { upgradeToVersion2 } from "./versions/version-2.ts";
import { upgradeToVersion3 } from "./versions/version-3.ts";
import { upgradeToVersion4 } from "./versions/version-4.ts";
import { upgradeToVersion5 } from "./versions/version-5.ts";
import { upgradeToVersion6 } from "./versions/version-6.ts";
import { upgradeToVersion7 } from "./versions/version-7.ts";

/** Upgrade steps by the schema version they result in. */
const steps: ReadonlyMap<number, (db: DatabaseSync) => void> = new Map([
  [2, upgradeToVersion2],
  [3, upgradeToVersion3],
  [4, upgradeToVersion4],
  [5, upgradeToVersion5],
  [6, upgradeToVersion6],
  [7, upgradeToVersion7],
]);

/** Safe if several processes open the database at once. */
export function migrate(db: DatabaseSync, path: string): void {
  db.exec("PRAGMA foreign_keys = OFF"); // Rows may refer to missing ones; `inspect` reports them.
  inTransaction(db, () => {
    const kind = kindOf(db, path);
    if (kind === "empty") createSchema(db);
    if (kind !== "outdated") return;
    for (let version = pragma(db, "user_version") + 1; version <= schemaVersion; version++) {
      const step = steps.get(version);
      if (step === undefined)
        throw new LcmError("corrupt", `${path} has schema ${version - 1}, which cannot be upgraded`);
      step(db);
      db.exec(`PRAGMA user_version = ${version}`);
    }
  });
}

export function createSchema(db: DatabaseSync): void {
  const statements = [...Object.values(tables), ...indexes, ...searchTables, ...Object.values(views)];
  for (const statement of statements) db.exec(statement);
  stampVersion(db);
}

export function stampVersion(db: DatabaseSync): void {
  db.exec(`PRAGMA application_id = ${applicationId}`);
  db.exec(`PRAGMA user_version = ${schemaVersion}`);
}
