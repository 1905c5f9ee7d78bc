/** Describes backups, and what restoring one replaces. */

import { formatBytes, listed, plural } from "../core/base/format.ts";
import { oneLine } from "./safe-text.ts";
import type { Backup } from "./status.ts";

/** `contents` is null unless the file has the current format. */
export interface DatabaseFacts extends Backup {
  /** Stored files that a backup should hold and does not. */
  readonly missingFiles: number;
  readonly format: "current" | "outdated" | "older_program" | "newer" | "damaged" | "no_database";
  readonly contents: { readonly conversations: number; readonly messages: number; readonly summaries: number } | null;
}

export interface Restorable extends DatabaseFacts {
  readonly kind: "backup" | "set-aside";
}

export interface RestorePlan {
  readonly from: DatabaseFacts;
  readonly replaces: DatabaseFacts | null;
  readonly to: string;
}

export interface Restored {
  /** Where the previous database was moved; null if there was none. */
  readonly replaced: string | null;
  readonly files: number;
  /** Stored files that the restored rows name and that the backup does not hold. */
  readonly missing: number;
  /** Older set-aside files that were removed. */
  readonly pruned: readonly string[];
}

export const backupLine = (copy: Restorable): string => `${kindWords[copy.kind]}  ${factsLine(copy)}`;

const kindWords: Readonly<Record<Restorable["kind"], string>> = { backup: "backup   ", "set-aside": "set aside" };

export const isSound = ({ format, missingFiles }: DatabaseFacts): boolean =>
  format !== "damaged" && format !== "no_database" && missingFiles === 0;

export const restoreLines = ({ from, replaces, to }: RestorePlan): readonly string[] => [
  `restore   ${factsLine(from)}`,
  replaces === null ? `to        ${to}, which does not exist yet` : `replaces  ${factsLine(replaces)}`,
];

export const formatWords: Readonly<Record<DatabaseFacts["format"], string>> = {
  current: "current format",
  outdated: "earlier format",
  older_program: "made by an older lossless-claw",
  newer: "made by a newer lossless-claw",
  damaged: "damaged",
  no_database: "not a database",
};

function factsLine({ path, bytes, format, contents, missingFiles }: DatabaseFacts): string {
  const place = oneLine(path);
  const lacking = missingFiles === 0 ? "" : `; incomplete: ${plural(missingFiles, "stored file")} missing`;
  if (contents === null) return `${place} (${formatBytes(bytes)}, ${formatWords[format]}${lacking})`;
  const counts = listed([
    plural(contents.conversations, "conversation"),
    plural(contents.messages, "message"),
    plural(contents.summaries, "summary", "summaries"),
  ]);
  return `${place} (${formatBytes(bytes)}: ${counts}${lacking})`;
}

export const restoredLines = ({ to }: RestorePlan, { files, missing, replaced }: Restored): readonly string[] => [
  `restored ${to}`,
  ...(files > 0 ? [`with ${plural(files, "stored file")}`] : []),
  ...(missing > 0 ? [`without ${plural(missing, "stored file")} that the backup does not hold`] : []),
  ...(replaced === null ? [] : [`the previous database is now ${replaced}`]),
];
