/** Merges the conversations of another database file, such as an archive, into this one. */

import { existsSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { LcmError } from "../../core/base/errors.ts";
import { shellPath } from "../../core/base/format.ts";
import type { Merged } from "../../core/model/store.ts";
import { copyContents, placeOf, refuseLinks } from "../content/folder.ts";
import { isLink, notPlain } from "../content/plain-file.ts";
import { all, sql, text, type Script } from "../script.ts";
import { clashOfContent } from "../transfer/archives.ts";
import { mergeRows, readSource } from "../transfer/merge.ts";
import { identify } from "./file-kind.ts";
import { filesBeside, type DatabaseLocation } from "./location.ts";
import { columnsOf } from "./pragma.ts";
import { readOnlyUri } from "./read-only.ts";

export interface MergeDeps extends DatabaseLocation {
  readonly db: DatabaseSync;
  read<T>(script: () => Script<T>): Promise<T>;
  write<T>(script: () => Script<T>): Promise<T>;
}

export async function merge(deps: MergeDeps, from: DatabaseLocation): Promise<Merged> {
  checkMerge(deps.path, from.path);
  const filesDir = existsSync(from.filesDir) ? from.filesDir : filesBeside(from.path); // The latter for a backup.
  deps.db.prepare("ATTACH ? AS source").get(readOnlyUri(from.path)); // `run` throws if the last rowid is too large.
  try {
    const { contents } = await deps.read(() => readSource(from.path));
    await refuseTaken(deps, from.path, contents);
    // Files come first: a crash in between leaves files without a row, which doctor reports.
    if (isLink(filesDir)) throw notPlain(filesDir, "a symbolic link");
    await refuseLinks(filesDir, contents);
    const missing = await copyContents(filesDir, deps.filesDir, contents, true);
    return {
      ...(await deps.write(() => mergeRows(from.path, (table) => [...columnsOf(deps.db, table).keys()]))),
      files: contents.length - missing.length,
    };
  } finally {
    deps.db.exec("DETACH source");
  }
}

/** A row of a damaged or forged database may name content of a row here, which copying would replace. */
async function refuseTaken(deps: MergeDeps, from: string, contents: readonly string[]): Promise<void> {
  const here = await deps.read(() =>
    all(sql`SELECT storage_uri FROM main.large_files`, (row) => text(row, "storage_uri")),
  );
  const taken = new Set(here.map((storageUri) => placeOf(deps.filesDir, storageUri)).filter((place) => place !== null));
  const clash = contents.find((storageUri) => taken.has(placeOf(deps.filesDir, storageUri) ?? ""));
  if (clash === undefined) return;
  throw clashOfContent(from, clash);
}

/** Throws if `from` cannot be merged into the database at `path`, which need not exist. */
export function checkMerge(path: string, from: string): void {
  // On some systems a file's number is too large for a double.
  const [source, own] = [from, path].map((each) => statSync(each, { throwIfNoEntry: false, bigint: true }));
  if (source === undefined) throw new LcmError("not_found", `there is no file ${from}`);
  if (source.dev === own?.dev && source.ino === own.ino) {
    throw new LcmError("invalid", `${from} is the database itself`, { hint: "pass an archive or another database" });
  }
  checkSource(from);
}

/** Throws if a file cannot be merged into any database. */
export function checkSource(from: string): void {
  if (!existsSync(from)) throw new LcmError("not_found", `there is no file ${from}`);
  const kind = identify(from);
  if (kind === "current") return;
  const refusals = {
    older_program: [
      "was made by an older lossless-claw",
      `convert it with \`lcm adopt --db ${shellPath(from)}\`, then import it`,
    ],
    outdated: ["has an earlier format", `upgrade it with \`lcm status --db ${shellPath(from)}\`, then import it`],
    empty: ["is empty", "pass an archive or another database"],
  } as const;
  const [problem, hint] = refusals[kind];
  throw new LcmError("invalid", `${from} ${problem}`, { hint });
}
