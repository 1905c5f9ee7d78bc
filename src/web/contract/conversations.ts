/** The session and the list of conversations, as the explorer shows them. */

import type { Timestamp } from "../../core/base/time.ts";
import type { Conversation, ConversationId } from "../../core/model/types.ts";

// ── The session ──────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Session {
  readonly version: string;
  /** Where the database is, for people. */
  readonly path: string;
  /** Why nothing can be changed; null if it can (`--write`). */
  readonly readOnly: string | null;
  /** The time zone in which to show times. */
  readonly zone: string;
  /** The server's time. */
  readonly now: Timestamp;
  /** `provider/model` that would write summaries, and why a call would fail; null without a model. */
  readonly summariser: { readonly name: string; readonly problem: string | null } | null;
  /** Whether searches go by meaning, too. */
  readonly hasMeaning: boolean;
}

// ── Conversations ────────────────────────────────────────────────────────────────────────────────────────────────────

export interface ConversationRow {
  readonly conversation: Conversation;
  /** Its title, session key or session id. */
  readonly name: string;
  /** The same for all segments of an agent and session key. */
  readonly family: string;
  /** How many segments its family has. */
  readonly segments: number;
  /** What its whole context would take in a prompt, of this budget; a sweep is due above the threshold. */
  readonly promptTokens: number;
  readonly budget: number;
  readonly thresholdTokens: number;
  /** Why its latest compaction failed; null if it succeeded, or is too long ago. */
  readonly stalled: string | null;
}

export interface Conversations {
  /** Newest activity first. */
  readonly rows: readonly ConversationRow[];
  /** How many match; the rows are a page of them. */
  readonly count: number;
}

/** Messages that are evenly spaced by number, the first and the last included: number, and milliseconds since 1970. */
export type Pace = readonly (readonly [seq: number, ms: number])[];

export interface Activity {
  readonly conversation: ConversationId;
  /** Equally many messages lie between two neighbours: where these are close in time, there was much activity. */
  readonly pace: Pace;
  /** How many came since the time that was asked for. */
  readonly recent: number | null;
}
