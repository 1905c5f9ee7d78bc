/** Creates the schema of a new database and brings an outdated one up to date, step by step in one transaction. */

import type { DatabaseSync } from "node:sqlite";
import { LcmError } from "../../core/base/errors.ts";
import { kindOf } from "./file-kind.ts";
import { pragma } from "./pragma.ts";
import { inTransaction } from "./runner.ts";
import { applicationId, indexes, schemaVersion, tables } from "./schema.ts";
import { searchTables } from "./search-index.ts";
import { upgradeToVersion2 } from "./version-2.ts";

/** Steps from one version of our schema to the next, by the version they lead to. */
const steps: ReadonlyMap<number, (db: DatabaseSync) => void> = new Map([[2, upgradeToVersion2]]);

/** Brings an empty or outdated database to the present schema. Safe when several processes open it at once. */
export function migrate(db: DatabaseSync, path: string): void {
  db.exec("PRAGMA foreign_keys = OFF"); // Rows may refer to others that are lost: `inspect` reports them.
  inTransaction(db, () => {
    const kind = kindOf(db, path);
    if (kind === "empty") createSchema(db);
    if (kind !== "outdated") return;
    for (let version = pragma(db, "user_version") + 1; version <= schemaVersion; version++) {
      const step = steps.get(version);
      if (step === undefined)
        throw new LcmError("corrupt", `${path} has schema ${version - 1}, from which no step leads on`);
      step(db);
      db.exec(`PRAGMA user_version = ${version}`);
    }
  });
}

export function createSchema(db: DatabaseSync): void {
  for (const statement of [...Object.values(tables), ...indexes, ...searchTables]) db.exec(statement);
  stampVersion(db);
}

export function stampVersion(db: DatabaseSync): void {
  db.exec(`PRAGMA application_id = ${applicationId}`);
  db.exec(`PRAGMA user_version = ${schemaVersion}`);
}
