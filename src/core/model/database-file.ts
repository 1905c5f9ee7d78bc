/** Parts of the store port: archives and checks of a whole database, and what needs a database file: backing it up. */

import { LcmError } from "../base/errors.ts";
import { formatCount } from "../base/format.ts";
import type { Archived } from "./changes.ts";
import type { ConversationId } from "./types.ts";

export interface DatabaseFile {
  /** Makes a consistent copy of the database and its stored files while others write. Throws `conflict` if `to` exists. */
  backup(to: string): Promise<BackedUp>;
}

export interface BackedUp {
  readonly path: string;
  readonly bytes: number;
  readonly files: number;
  /** Stored files that rows name and that the database no longer has as they were stored. */
  readonly lost: number;
}

/** Archives are SQLite files, whatever the database is. */
export interface WholeDatabase {
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
  /** Checks the whole database. */
  integrity(): Promise<Integrity>;
}

/** A move of all conversations from a file to a server, or back, one after the other. */
export interface Move {
  /** Oldest first. Throws `conflict` if there are other conversations at the target. */
  plan(): Promise<MovePlan>;
  /**
   * Copies one conversation whole, and compares every row of the copy. Throws `corrupt` if one differs. `onRows` is called
   * for rows on their way; if it throws, nothing of the conversation is copied.
   */
  copy(conversation: ConversationId, onRows: (table: string, rows: number) => void): Promise<MovedConversation>;
  /** Compares a conversation that is there already: the number of differing rows by table. */
  compare(conversation: ConversationId): Promise<Readonly<Record<string, number>>>;
  /** Copies what belongs to no conversation, such as the use of models. Idempotent. */
  finish(): Promise<void>;
  close(): Promise<void>;
}

export interface MovePlan {
  readonly conversations: readonly {
    readonly conversation: ConversationId;
    readonly title: string | null;
    readonly sessionKey: string | null;
    readonly sessionId: string;
    readonly messages: number;
    readonly summaries: number;
    /** Whether an earlier run has copied it. */
    readonly isThere: boolean;
  }[];
}

export interface MovedConversation {
  readonly rows: number;
  readonly files: number;
  /** Files whose content the source does not have. */
  readonly missingFiles: number;
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

/** What to do about a damaged file. */
export const recoverHint = "restore a backup with `lcm restore`, or recover the file with the sqlite3 shell's .recover";

/** What brings back stored content; texts of messages are not replaced by an import. */
export const transcriptToo = "an older backup can restore it, and so can its transcript, with `lcm import --again`";

/** Whether damage is in the search index alone, which follows from the rows. */
export const isInSearchIndex = (problem: string): boolean => /inverted index/.test(problem);

/** One message of the database engine as one line: it may list a hundred cells of one page. */
export function damageLine(problem: string): string {
  const [first = "", ...others] = problem.split("\n").filter((line) => !line.startsWith("***"));
  return others.length === 0 ? first : `${first} (and ${formatCount(others.length)} more)`;
}

/** What to use instead of our backups. */
export const backupsOfServer =
  "back it up with the tools of the database server: pg_dump, or its point-in-time recovery; `lcm move --to FILE` makes a copy in a file";

/** For callers that cannot do without it: throws `unavailable` if the store has no database file. */
export function databaseFileOf({ databaseFile }: { readonly databaseFile?: DatabaseFile }): DatabaseFile {
  if (databaseFile !== undefined) return databaseFile;
  throw new LcmError("unavailable", "this database is on a server, not in a file", { hint: backupsOfServer });
}
