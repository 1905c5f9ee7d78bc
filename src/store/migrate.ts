/**
 * What a file is, and making it what we need: fresh databases get the whole schema at once, our own older ones run the
 * numbered steps they lack, each in one transaction. A file that is not ours to write is told apart before it is
 * opened for writing, and is not touched.
 */

import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { LcmError } from "../core/errors.ts";
import { applicationId, indexes, schemaVersion, searchTables, tables } from "./schema.ts";

export type FileKind =
  /** No file, or one without a table. */
  | "empty"
  | "current"
  /** Ours, of an earlier version. */
  | "outdated"
  /** Made by the older program of the same name. */
  | "older_program";

/** Looks without touching. Throws for a file that we must leave alone. */
export function identify(path: string): FileKind {
  if (!existsSync(path) || statSync(path).size === 0) return "empty";
  if (!hasSqliteHeader(path)) {
    throw new LcmError("invalid", `${path} is not a database`, { hint: "name an lcm.db file with --db" });
  }
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return kindOf(db, path);
  } catch (cause) {
    if (cause instanceof LcmError) throw cause;
    throw new LcmError("corrupt", `${path} cannot be read as a database: ${messageOf(cause)}`, {
      cause,
      hint: "restore a backup with `lcm restore`, or recover the file with the sqlite3 shell's .recover",
    });
  } finally {
    db.close();
  }
}

function hasSqliteHeader(path: string): boolean {
  const file = openSync(path, "r");
  try {
    const header = Buffer.alloc(16);
    readSync(file, header, 0, 16, 0);
    return header.toString("latin1") === "SQLite format 3\0";
  } finally {
    closeSync(file);
  }
}

export function kindOf(db: DatabaseSync, path: string): FileKind {
  const version = pragma(db, "user_version");
  const names = tableNames(db);
  if (pragma(db, "application_id") === applicationId) {
    if (version > schemaVersion) {
      throw new LcmError("conflict", `${path} was made by a newer lossless-claw (schema ${version}, this one knows ${schemaVersion})`, {
        hint: "update lossless-claw, or restore a backup made by this version",
      });
    }
    return version === schemaVersion ? "current" : "outdated";
  }
  if (names.size === 0) return "empty";
  if (["conversations", "messages", "summaries", "context_items"].every((name) => names.has(name))) return "older_program";
  throw new LcmError("invalid", `${path} is a database, but not one of lossless-claw`, { hint: "name an lcm.db file with --db" });
}

/** Steps from one version of our schema to the next, by the version they lead to. */
const steps: ReadonlyMap<number, (db: DatabaseSync) => void> = new Map();

/** Brings an empty or outdated database to the present schema. Safe when several processes open it at once. */
export function migrate(db: DatabaseSync, path: string): void {
  inTransaction(db, () => {
    const kind = kindOf(db, path);
    if (kind === "empty") createSchema(db);
    if (kind !== "outdated") return;
    for (let version = pragma(db, "user_version") + 1; version <= schemaVersion; version++) {
      const step = steps.get(version);
      if (step === undefined) throw new LcmError("corrupt", `there is no step to schema ${version}`);
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

export function inTransaction(db: DatabaseSync, work: () => void): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    work();
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

export const pragma = (db: DatabaseSync, name: string): number =>
  Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0] ?? 0);

export const tableNames = (db: DatabaseSync): ReadonlySet<string> =>
  new Set(
    db
      .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
      .all()
      .map((row) => String(row["name"])),
  );

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
