/** Identifies a database file without changing it: ours, outdated, made by the older program, or damaged. */

import { closeSync, openSync, readSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { LcmError, errorText } from "../../core/base/errors.ts";
import { damageLine, isInSearchIndex, recoverHint } from "../../core/model/database-file.ts";
import { isBusy, isDenied, isRollbackDenied } from "./errors.ts";
import { immutableUri, openReadOnly } from "./read-only.ts";
import { columnsOf, pragma, tableNames } from "./pragma.ts";
import { applicationId, schemaVersion } from "./schema.ts";

export type FileKind =
  /** No file, or one without tables. */
  | "empty"
  | "current"
  /** Ours, with an earlier schema. */
  | "outdated"
  /** Made by the older program of the same name. */
  | "older_program";

/** Throws for a file that is not ours, and SQLite's own error for a locked one, which the caller can wait out. */
export function identify(path: string): FileKind {
  if (!hasBytes(path)) return "empty";
  if (!hasSqliteHeader(path)) {
    throw new LcmError("invalid", `${path} is not a database`, {
      hint: "pass an lcm.db file; if it was one, `lcm restore` lists its backups",
    });
  }
  try {
    return readDatabase(path, (db) => kindOf(db, path));
  } catch (cause) {
    if (cause instanceof LcmError || isBusy(cause)) throw cause;
    throw unreadable(path, cause);
  }
}

function hasBytes(path: string): boolean {
  const facts = fileSystem(path, () => statSync(path, { throwIfNoEntry: false }));
  if (facts === undefined) return false;
  if (facts.isFile()) return facts.size > 0;
  throw new LcmError("invalid", `${path} is ${facts.isDirectory() ? "a folder" : "not a file"}, not a database`, {
    hint: "pass an lcm.db file",
  });
}

export function hasSqliteHeader(path: string): boolean {
  return fileSystem(path, () => {
    const file = openSync(path, "r");
    try {
      const header = Buffer.alloc(16);
      readSync(file, header, 0, 16, 0);
      return header.toString("latin1") === "SQLite format 3\0";
    } finally {
      closeSync(file);
    }
  });
}

function fileSystem<T>(path: string, ask: () => T): T {
  try {
    return ask();
  } catch (cause) {
    throw cannotRead(path, "read", cause);
  }
}

const cannotRead = (path: string, what: "read" | "opened", cause: unknown): LcmError =>
  new LcmError("denied", `${path} cannot be ${what}: ${errorText(cause)}`, {
    cause,
    hint: "check who owns the file and its folder",
  });

/**
 * Reads a database and leaves nothing beside it, not even the empty log that SQLite creates for a file in WAL mode. Only
 * if a writer crashed is the file opened for writing, so that SQLite can roll back the unfinished transaction.
 */
export function readDatabase<T>(path: string, read: (db: DatabaseSync) => T): T {
  const hasLog = ["-wal", "-journal"].some(
    (suffix) => (statSync(path + suffix, { throwIfNoEntry: false })?.size ?? 0) > 0,
  );
  const immutable = immutableUri(path);
  if (!hasLog) {
    try {
      return readWith(new DatabaseSync(immutable, { readOnly: true }), read);
    } catch (error) {
      // Another process may have just begun to write. The attempt below waits for it, and fails too on a damaged file.
      if (error instanceof LcmError) throw error;
    }
  }
  try {
    return readWith(new DatabaseSync(path, { readOnly: true }), read);
  } catch (error) {
    if (!isRollbackDenied(error)) {
      if (isDenied(error)) return readWith(openReadOnly(path), read);
      throw error;
    }
  }
  try {
    readWith(new DatabaseSync(immutable, { readOnly: true }), read);
  } catch (error) {
    // A file that is not ours must be refused before anything in it is rolled back. Other errors come from half-written pages.
    if (error instanceof LcmError) throw error;
  }
  return readWith(new DatabaseSync(path), read);
}

function readWith<T>(db: DatabaseSync, read: (db: DatabaseSync) => T): T {
  using open = db;
  return read(open);
}

const unreadable = (path: string, cause: unknown): LcmError =>
  isDenied(cause)
    ? cannotRead(path, "opened", cause)
    : new LcmError("corrupt", `${path} cannot be read as a database: ${errorText(cause)}`, {
        cause,
        hint: recoverHint,
      });

/** Reads every page. Throws `corrupt` for damage, except in the search index, which can be rebuilt. */
export function checkWhole(path: string): void {
  const problems = (db: DatabaseSync): readonly string[] =>
    db
      .prepare("PRAGMA quick_check(100)")
      .all()
      .map((row) => String(Object.values(row)[0]));
  let sentences: readonly string[];
  try {
    sentences = readWith(openReadOnly(path), problems);
  } catch (cause) {
    if (isBusy(cause)) throw cause;
    throw unreadable(path, cause);
  }
  const damage = sentences.find((sentence) => sentence !== "ok" && !isInSearchIndex(sentence));
  if (damage === undefined) return;
  throw new LcmError("corrupt", `${path} is damaged and was left unchanged: ${damageLine(damage)}`, {
    hint: recoverHint,
  });
}

export function kindOf(db: DatabaseSync, path: string): FileKind {
  const version = pragma(db, "user_version");
  const application = pragma(db, "application_id");
  if (application === applicationId) {
    if (version > schemaVersion) {
      throw new LcmError(
        "conflict",
        `${path} was made by a newer lossless-claw (schema ${version}; this version supports up to ${schemaVersion})`,
        { hint: "update lossless-claw, or restore a backup made by this version" },
      );
    }
    return version === schemaVersion ? "current" : "outdated";
  }
  if (application === 0 && isOlderProgram(db)) return "older_program";
  if (application === 0 && tableNames(db).size === 0) return "empty";
  throw new LcmError("invalid", `${path} is a database, but not a lossless-claw database`, {
    hint: "pass an lcm.db file",
  });
}

/** Columns that every version of the older program had. */
const olderColumns = {
  conversations: ["conversation_id", "session_id"],
  messages: ["message_id", "conversation_id", "seq", "role", "content", "created_at"],
  summaries: ["summary_id", "conversation_id", "kind", "content", "created_at"],
  context_items: ["conversation_id", "ordinal", "item_type", "message_id", "summary_id"],
} as const;

const isOlderProgram = (db: DatabaseSync): boolean =>
  Object.entries(olderColumns).every(([table, columns]) => {
    const present = columnsOf(db, table);
    return columns.every((column) => present.has(column));
  });
