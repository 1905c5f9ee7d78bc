/**
 * What a file is, and making it what we need: fresh databases get the whole schema at once, our own older ones run the
 * numbered steps they lack, each in one transaction. A file that is not ours to write is told apart before it is
 * opened for writing, and is not touched.
 */

import { closeSync, openSync, readSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { LcmError } from "../../core/base/errors.ts";
import { applicationId, indexes, schemaVersion, searchTables, tables } from "./schema.ts";

export type FileKind =
  /** No file, or one without a table. */
  | "empty"
  | "current"
  /** Ours, of an earlier version. */
  | "outdated"
  /** Made by the older program of the same name. */
  | "older_program";

/**
 * Looks without touching. Throws for a file that we must leave alone. A lock that another process holds passes through
 * as SQLite's own error, for the caller to wait out.
 */
export function identify(path: string): FileKind {
  if (!hasBytes(path)) return "empty";
  if (!hasSqliteHeader(path)) {
    throw new LcmError("invalid", `${path} is not a database`, { hint: "name an lcm.db file" });
  }
  try {
    return look(path, (db) => kindOf(db, path));
  } catch (cause) {
    if (cause instanceof LcmError || isBusy(cause)) throw cause;
    throw unreadable(path, cause);
  }
}

/** False for no file, and for one with nothing in it. */
function hasBytes(path: string): boolean {
  const found = fileSystem(path, () => statSync(path, { throwIfNoEntry: false }));
  if (found === undefined) return false;
  if (found.isFile()) return found.size > 0;
  throw new LcmError("invalid", `${path} is ${found.isDirectory() ? "a folder" : "not a file"}, not a database`, {
    hint: "name an lcm.db file",
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
    throw new LcmError("denied", `${path} cannot be read: ${messageOf(cause)}`, {
      cause,
      hint: "check who owns the file and its folder",
    });
  }
}

/**
 * Reads a database and leaves nothing behind, not even the empty log that SQLite puts beside a file in WAL mode. Only
 * where somebody died while writing, the file is opened for writing: SQLite then undoes what they had begun.
 */
function look<T>(path: string, read: (db: DatabaseSync) => T): T {
  const hasLog = ["-wal", "-journal"].some(
    (suffix) => (statSync(path + suffix, { throwIfNoEntry: false })?.size ?? 0) > 0,
  );
  const asItLies = pathToFileURL(path);
  asItLies.searchParams.set("immutable", "1");
  if (!hasLog) {
    try {
      return readWith(new DatabaseSync(asItLies, { readOnly: true }), read);
    } catch (error) {
      // Perhaps somebody began to write this very moment. The way below waits for them; a damaged file fails there too.
      if (error instanceof LcmError) throw error;
    }
  }
  try {
    return readWith(new DatabaseSync(path, { readOnly: true }), read);
  } catch (error) {
    if (errcodeOf(error) !== sqliteReadonlyRollback) throw error;
  }
  try {
    readWith(new DatabaseSync(asItLies, { readOnly: true }), read);
  } catch (error) {
    // What is not ours is told apart before anything in it is undone; half-written pages may not be readable at all.
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
    ? new LcmError("denied", `${path} cannot be opened: ${messageOf(cause)}`, {
        cause,
        hint: "check who owns the file and its folder",
      })
    : new LcmError("corrupt", `${path} cannot be read as a database: ${messageOf(cause)}`, {
        cause,
        hint: "restore a backup with `lcm restore`, or recover the file with the sqlite3 shell's .recover",
      });

/** Reads every page of a database. Throws `corrupt` for one that is damaged; damaged search can be built again. */
export function checkWhole(path: string): void {
  const problems = (db: DatabaseSync): readonly string[] =>
    db
      .prepare("PRAGMA quick_check(100)")
      .all()
      .map((row) => String(Object.values(row)[0]));
  let found: readonly string[];
  try {
    found = readWith(new DatabaseSync(path, { readOnly: true }), problems);
  } catch (cause) {
    if (isBusy(cause)) throw cause;
    throw unreadable(path, cause);
  }
  const damage = found.find((sentence) => sentence !== "ok" && !/inverted index/.test(sentence));
  if (damage === undefined) return;
  throw new LcmError("corrupt", `${path} is damaged, and was not touched: ${damage.replaceAll("\n", " ")}`, {
    hint: "restore a backup with `lcm restore`, or recover the file with the sqlite3 shell's .recover",
  });
}

const sqliteReadonlyRollback = 776;

export const errcodeOf = (error: unknown): number | null =>
  error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode : null;

const isOf = (codes: readonly number[], error: unknown): boolean => codes.includes((errcodeOf(error) ?? 0) & 0xff);
export const sqliteBusy = 5;
const sqliteLocked = 6;
export const isBusy = (error: unknown): boolean => isOf([sqliteBusy, sqliteLocked], error);
/** PERM, READONLY and CANTOPEN. */
const isDenied = (error: unknown): boolean => isOf([3, 8, 14], error);

export function kindOf(db: DatabaseSync, path: string): FileKind {
  const version = pragma(db, "user_version");
  const application = pragma(db, "application_id");
  if (application === applicationId) {
    if (version > schemaVersion) {
      throw new LcmError(
        "conflict",
        `${path} was made by a newer lossless-claw (schema ${version}, this one knows ${schemaVersion})`,
        {
          hint: "update lossless-claw, or restore a backup made by this version",
        },
      );
    }
    return version === schemaVersion ? "current" : "outdated";
  }
  if (application === 0 && isOlderProgram(db)) return "older_program";
  if (application === 0 && tableNames(db).size === 0) return "empty";
  throw new LcmError("invalid", `${path} is a database, but not one of lossless-claw`, {
    hint: "name an lcm.db file",
  });
}

/** Every version of the older program had these; the rest came and went. */
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

export type Begin = "BEGIN" | "BEGIN IMMEDIATE";

export function inTransaction<T>(db: DatabaseSync, work: () => T, begin: Begin = "BEGIN IMMEDIATE"): T {
  db.exec(begin);
  try {
    const result = work();
    db.exec("COMMIT");
    return result;
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

/** Columns that can be written, with their declared types; none of a table that does not exist. */
export const columnsOf = (db: DatabaseSync, table: string): ReadonlyMap<string, string> =>
  new Map(
    db
      .prepare("SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden = 0")
      .all(table)
      .map((row) => [String(row["name"]), String(row["type"])]),
  );

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
