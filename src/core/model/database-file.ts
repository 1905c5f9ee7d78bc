/** The optional part of the store port that needs a database file: back up, archive, merge and check it. */

import { LcmError } from "../base/errors.ts";
import type { Archived } from "./changes.ts";
import type { ConversationId } from "./types.ts";

export interface DatabaseFile {
  /** Makes a consistent copy of the database and its stored files while others write. Throws `conflict` if `to` exists. */
  backup(to: string): Promise<{ readonly path: string; readonly bytes: number; readonly files: number }>;
  /**
   * Writes a database with only these conversations and their stored files. It is read back and checked before it gets
   * its name. Throws `conflict` if `to` exists, unless `replace` is set.
   */
  archive(conversations: readonly ConversationId[], to: string, replace?: boolean): Promise<Archived>;
  /**
   * Copies the conversations of another database into this one, without their journal; those already here are skipped.
   * Ids that are taken are replaced. Throws `conflict` if a summary or file of theirs exists here in another conversation.
   */
  merge(from: string): Promise<Merged>;
  /** Checks the whole file. */
  integrity(): Promise<Integrity>;
}

export interface Merged {
  readonly conversations: readonly { readonly from: ConversationId; readonly to: ConversationId }[];
  /** Conversations of the other database that were skipped because they are already here. */
  readonly known: readonly ConversationId[];
  readonly messages: number;
  readonly summaries: number;
  readonly files: number;
}

export interface Integrity {
  /** Messages of the database engine; none if the file is intact. */
  readonly problems: readonly string[];
  /** References to missing rows, except those that are findings of a conversation. */
  readonly dangling: readonly DanglingReference[];
  /** The number of rows whose owner is missing, by table; tables without any are left out. */
  readonly orphanedRows: Readonly<Record<string, number>>;
  /** Search entries whose row is missing. */
  readonly orphanedSearchEntries: number;
  readonly exposures: readonly Exposure[];
  /** Rows of an earlier version that may have no checksum yet. */
  readonly unchecked: number;
}

/** A file or folder with something in it that other users may read or write. */
export interface Exposure {
  readonly path: string;
  /** To every user; otherwise only to the file's group, which may be intended. */
  readonly isToEveryone: boolean;
}

export interface DanglingReference {
  readonly table: string;
  readonly from: string;
  readonly to: string;
}

/** For callers that cannot do without it: throws `unavailable` if the store has no database file. */
export function databaseFileOf({ databaseFile }: { readonly databaseFile?: DatabaseFile }): DatabaseFile {
  if (databaseFile !== undefined) return databaseFile;
  throw new LcmError("unavailable", "this store has no database file of its own", {
    hint: "use the backup and export tools of its database server",
  });
}
