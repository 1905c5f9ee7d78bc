/** Opens a SQLite connection with our settings, creating or migrating the file first. */

import { chmodSync, existsSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { LcmError, errorText } from "../../core/base/errors.ts";
import { shellPath } from "../../core/base/format.ts";
import type { Durability } from "../../core/model/settings.ts";
import { makeFolder } from "../content/durable.ts";
import { identify, type FileKind } from "./file-kind.ts";
import { migrate } from "./migrate.ts";
import { openReadOnly } from "./read-only.ts";

/** SQLite would keep a nameless database in memory; ours has folders and threads beside it. A URL is not a path. */
function checkPath(path: string): void {
  const [, scheme] = /^([a-z][a-z0-9+.-]+:)\/\//i.exec(path) ?? [];
  // What follows may contain a password.
  const given = scheme === undefined ? JSON.stringify(path) : `a URL that begins with ${scheme}//`;
  if (scheme !== undefined || path.trim() === "" || path === ":memory:")
    throw new LcmError("invalid", `${given} is not the path of a database file`, {
      hint: "pass a path, such as lcm.db; a file in a temporary folder does for a test",
    });
}

/** Throws `conflict` for a file of the older program, which must be adopted first, and for an outdated one if read-only. */
export function connect(
  path: string,
  readOnly: boolean,
  durability: Durability = "full",
  kind: FileKind = identify(path),
): DatabaseSync {
  if (kind === "older_program") {
    throw new LcmError("conflict", `${path} was made by an older lossless-claw`, {
      hint: `convert it with \`lcm adopt --db ${shellPath(path)}\`, which makes a backup first`,
    });
  }
  if (readOnly && kind === "outdated") {
    throw new LcmError("conflict", `${path} has an earlier format and cannot be opened read-only`, {
      hint: `upgrade it with \`lcm status --db ${shellPath(path)}\` where you may write to it`,
    });
  }
  if (readOnly && !existsSync(path)) throw new LcmError("not_found", `there is no database at ${path}`);
  if (kind === "empty") {
    checkPath(path);
    makeFolderOf(path);
  }
  const isNew = !existsSync(path);
  const db = readOnly ? openReadOnly(path) : new DatabaseSync(path, { timeout: 10 });
  try {
    if (isNew) {
      chmodSync(path, 0o600);
      db.exec("PRAGMA page_size = 8192");
    }
    if (!readOnly) {
      // Housekeeping checkpoints the log between calls. A size limit of 0 truncates it whenever it restarts.
      db.exec("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 0");
      if (kind !== "current") migrate(db, path);
    }
    db.exec(
      `PRAGMA synchronous = ${durability}; PRAGMA foreign_keys = ON; PRAGMA cache_size = -16000; PRAGMA temp_store = MEMORY`,
    );
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function makeFolderOf(path: string): void {
  try {
    makeFolder(dirname(path));
  } catch (cause) {
    throw new LcmError("denied", `the folder for ${path} cannot be created: ${errorText(cause)}`, {
      cause,
      hint: "choose a writable place for the database",
    });
  }
}
