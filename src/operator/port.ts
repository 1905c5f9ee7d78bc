/** What a person's surface needs from outside: a database, a model, the host's transcripts. */

import type { Lcm } from "../core/lcm.ts";
import type { ProxyReport } from "../core/model/proxy-report.ts";
import type { ConversationId } from "../core/model/types.ts";
import type { Restorable, Restored, RestorePlan } from "../format/restore.ts";
import type { Status } from "../format/status.ts";
import type { TemplateName, Templates } from "../core/prompts/summary.ts";
import type { Timestamp } from "../core/base/time.ts";

export interface Port {
  /** The database's path, as shown to the user. */
  readonly path: string;
  /** Why nothing can be changed; null if it can. */
  readonly readOnly: string | null;
  /** For reading, on its own thread. A new one after the file was replaced; throws `not_found` while there is none. */
  reading(): Promise<Lcm>;
  /** After corrupt or failed reads: the next reading opens the file again. */
  renew(): void;
  /** Nothing is under way: idle connections may be closed. */
  rest(): void;
  /**
   * Runs work that writes; throws `denied` on a read-only database. Before it changes something it calls `backUp`, which
   * makes a copy the first time and returns its path.
   */
  writing<T>(work: (lcm: Lcm, backUp: () => Promise<string | null>) => Promise<T>): Promise<T>;
  /** Makes a copy beside the database. Throws `denied` on a read-only database. */
  backUp(): Promise<{ readonly path: string; readonly bytes: number }>;
  /** The model that would write summaries; null without one. */
  summariser(): Promise<Writer | null>;
  /** The prompt templates, and what is wrong with unusable files. */
  prompts(): Promise<Prompts>;
  /** The folder of the host's transcripts. */
  readonly sessions: string;
  /** Newest first. */
  transcripts(): Promise<readonly Transcript[]>;
  /** Imports one as `lcm import` does, and returns its report. An error from `onProgress` stops it between two lines. */
  importTranscript(transcript: Transcript, onProgress: (progress: Progress) => void): Promise<string>;
  /** Where an export goes: this path, by default a new file in the current folder. Throws if there is no folder for it. */
  exportTarget(conversation: ConversationId, path: string | null): ExportTarget;
  /** Writes it as `lcm export` does; the file is complete or unchanged. `onLines` gets the lines written so far. */
  exportTranscript(
    conversation: ConversationId,
    path: string,
    onLines: (lines: number) => void,
    signal: AbortSignal,
  ): Promise<{ readonly lines: number; readonly incomplete: number }>;
  /** A new file beside the database, for an archive. */
  archivePath(): string;
  /** Copies beside the database, oldest first; works even if the database is damaged or missing. */
  restorable(): Promise<readonly Restorable[]>;
  planRestore(from: string): Promise<RestorePlan>;
  /** Replaces the database. Throws `denied` on a read-only one. */
  restore(plan: RestorePlan): Promise<Restored>;
  /** The time zone in which people type times. */
  readonly zone: string;
  surroundings(): Promise<Surroundings>;
  /** Changes with every write to the file, by any process; null if there is no file. Cheap. */
  stamp(): string | null;
}

export interface ExportTarget {
  readonly path: string;
  /** Whether a file would be replaced. */
  readonly exists: boolean;
}

export interface Writer {
  /** `provider/model`. */
  readonly name: string;
  readonly from: string;
  /** The environment variables that may hold its provider's key. */
  readonly keyVariables: readonly string[];
  /** Why a call would fail, as far as is known beforehand. */
  readonly problem: string | null;
}

export interface Prompts {
  readonly templates: Templates;
  readonly problems: ReadonlyMap<TemplateName, Error>;
}

export interface Surroundings extends Pick<Status, "settings" | "misplaced" | "prompts" | "backups"> {
  /** The oldest first. */
  readonly proxies: readonly ProxyReport[];
}

export interface Transcript {
  readonly path: string;
  readonly bytes: number;
  readonly modifiedAt: Timestamp;
  readonly sessionId: string;
  readonly agentId: string | null;
  /** The conversation that holds it, or part of it. */
  readonly conversation: ConversationId | null;
  /** Whether all of it is stored. */
  readonly isStored: boolean;
}

export interface Trouble {
  readonly message: string;
  readonly hint: string | null;
}

export interface Failure extends Trouble {
  readonly code: string;
}

export interface Progress {
  readonly done: number;
  readonly of: number | null;
  readonly words: string;
  /** Whether it can be stopped here, and what is done is kept. */
  readonly stops?: true;
}

export interface OfConversation {
  readonly conversation: ConversationId;
}

export interface Doing {
  readonly port: Port;
  /** Aborted when the answer is no longer needed. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/** For an ask that only reads. */
export const reads =
  <A extends object, T>(read: (lcm: Lcm, ask: A, doing: Doing) => Promise<T>) =>
  async (ask: A, doing: Doing): Promise<T> =>
    await read(await doing.port.reading(), ask, doing);
