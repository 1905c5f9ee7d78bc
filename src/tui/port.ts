/**
 * The outside, as the terminal UI sees it: a database to read and perhaps to write, a model, the host's transcripts. And
 * what performing an ask is.
 */

import type { Lcm } from "../core/lcm.ts";
import type { ConversationId } from "../core/model/types.ts";
import type { Status } from "../format/status.ts";
import type { TemplateName, Templates } from "../core/prompts/summary.ts";
import type { Timestamp } from "../core/base/time.ts";

/** What performs asks. Whoever opens the terminal UI gives it this. */
export interface Port {
  /** The database's path, as a person would write it. */
  readonly path: string;
  /** Why nothing can be changed; null where it can. */
  readonly readOnly: string | null;
  /**
   * For reading, on a thread of its own. It is another one after the file at the path was replaced; `not_found` while
   * there is none.
   */
  reading(): Promise<Lcm>;
  /** What was read makes no sense, or nothing can be read: the next reading begins anew. */
  renew(): void;
  /** Nothing is under way: connections that are no longer used can be closed. */
  rest(): void;
  /**
   * One piece of work that writes. What is about to change something calls `backUp` first: it makes a copy the first
   * time, and answers where that is. `denied` where the database is read-only.
   */
  writing<T>(work: (lcm: Lcm, backUp: () => Promise<string | null>) => Promise<T>): Promise<T>;
  /** A copy of the database beside it, and how large it is. `denied` where the database is read-only. */
  backUp(): Promise<{ readonly path: string; readonly bytes: number }>;
  /** Who would write summaries; null if nobody would. */
  summariser(): Promise<Writer | null>;
  /** What it is asked with, and what is wrong with files that cannot be used. */
  prompts(): Promise<Prompts>;
  /** Where the host's transcripts are looked for. */
  readonly sessions: string;
  /** Those that there are, the newest first. */
  transcripts(): Promise<readonly Transcript[]>;
  /** Stores one, as `lcm import` does, and says what came of it; what `onProgress` throws ends it between two lines. */
  importTranscript(transcript: Transcript, onProgress: (progress: Progress) => void): Promise<string>;
  surroundings(): Promise<Surroundings>;
  /** Another value after every change of the file, by whomever; null where there is none. Cheap. */
  stamp(): string | null;
}

export interface Writer {
  /** `provider/model`. */
  readonly name: string;
  readonly from: string;
  /** The variables that its provider's key is looked for in. */
  readonly keyVariables: readonly string[];
  /** Why it cannot be asked, as far as is known without asking; null if nothing is. */
  readonly problem: string | null;
}

export interface Prompts {
  readonly templates: Templates;
  readonly problems: ReadonlyMap<TemplateName, Error>;
}

/** What is set, and the copies that lie beside the database. */
export type Surroundings = Pick<Status, "settings" | "prompts" | "backups">;

export interface Transcript {
  readonly path: string;
  readonly bytes: number;
  readonly modifiedAt: Timestamp;
  readonly sessionId: string;
  readonly agentId: string | null;
  /** The conversation that it is stored in, or part of it. */
  readonly conversation: ConversationId | null;
  /** Whether all of it is. */
  readonly isStored: boolean;
}

// ── Asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What stands in the way, and what can be done about it. */
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
}

/** What is asked of one conversation. */
export interface OfConversation {
  readonly conversation: ConversationId;
}

/** What performing an ask gets. */
export interface Doing {
  readonly port: Port;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/** Performs an ask that only reads. */
export const reads =
  <A extends object, T>(read: (lcm: Lcm, ask: A, doing: Doing) => Promise<T>) =>
  async (ask: A, doing: Doing): Promise<T> =>
    await read(await doing.port.reading(), ask, doing);
