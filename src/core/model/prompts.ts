/**
 * Records of prompts: what each was made of, not its bytes. A prompt mostly repeats the one before, so its *head*, which is
 * everything but where the newest messages end, is stored once for all prompts that share it.
 */

import type { Timestamp } from "../base/time.ts";
import type { ConversationId, MessageId, Pin, Summary, SummaryId } from "./types.ts";

/** How our part of a prompt is written. Raise it whenever the same items would give other bytes. */
export const renderingVersion = 1;

/** Messages with these numbers, in order, except notes; without `to`, up to the last message that the prompt shows. */
export interface HeadRun {
  readonly from: number;
  readonly to?: number;
  /** Absent from the last run of a head, which grows. */
  readonly bytes?: number;
  /** The summary of the context in whose place it is shown. */
  readonly within?: SummaryId;
  /** Of a single message: set if it is shown again, in full, although a summary represents it. */
  readonly again?: true;
  /** Of a single message: the limits that it was shortened to, and whether it is shown without its tool results. */
  readonly cuts?: readonly number[];
  readonly bare?: true;
}

export interface HeadSummary {
  readonly summary: SummaryId;
  /** Digest of what the prompt shows of it, since its text may be rewritten. */
  readonly digest: string;
  readonly bytes: number;
  readonly within?: SummaryId;
}

export type HeadItem = HeadRun | HeadSummary;

export const isHeadSummary = (item: HeadItem): item is HeadSummary => "summary" in item;

/** What prompts have in common until the next fold, eviction, rewrite or change of model. */
export interface PromptHead {
  /** How it was rendered, and the number that the conversation had: ids are part of the bytes. */
  readonly version: number;
  readonly conversation: number;
  readonly model?: string;
  /** Set if the prompt was not ours: why. Everything below is then empty. */
  readonly hosts?: string;
  readonly items: readonly HeadItem[];
  /** What was added to the system prompt. */
  readonly guidance?: { readonly digest: string; readonly bytes: number };
  /** Bytes of the note that comes first, if there is one. */
  readonly note?: number;
  readonly standing?: {
    readonly pins: readonly { readonly message: MessageId; readonly digest: string }[];
    readonly left: number;
    readonly bytes: number;
  };
  readonly evicted?: { readonly items: number; readonly tokens: number };
  readonly finer?: { readonly items: number; readonly tokens: number };
  /** For each call without a result: 1 if the result is stored, but not shown. */
  readonly unanswered?: string;
  /** How many messages at the end were left out, because the host has them itself. */
  readonly dropped?: number;
  /** Messages in whose place the host showed something else, or nothing. */
  readonly hidden?: readonly number[];
  readonly edited?: readonly number[];
}

/** A prompt ready to be recorded. */
export interface NewPrompt {
  readonly at: Timestamp;
  /** A head as JSON text. */
  readonly head: string;
  /** How many messages the conversation had when the prompt was built; null if unknown, then those stored up to `at`. */
  readonly stored: number | null;
  /** The last message that it shows; 0 if it shows none. */
  readonly lastSeq: number;
  /** How many of the last messages were its fresh tail. */
  readonly tail: number;
  readonly tokens: number;
  readonly budget: number;
  readonly bytes: number;
  /** The first 32 digits of the SHA-256 of its bytes; empty if the prompt was not ours. */
  readonly hash: string;
  /** Messages of the running turn that the host added itself, and their tokens. */
  readonly live: number;
  readonly liveTokens: number;
  /** Prompts older than this are no longer kept; null to keep all. */
  readonly keepSince: Timestamp | null;
}

/** What came of a prompt, where the host tells. */
export interface PromptEnd {
  readonly outcome: "answered" | "overflow";
  /** Prompt tokens that the provider counted, and how many of these it had cached; null if unknown. */
  readonly counted: number | null;
  readonly cached: number | null;
  /** The host's name of the turn. */
  readonly turn: string | null;
}

/** A recorded prompt. Prompts of a conversation are numbered from 1. */
export interface PromptRow extends Omit<NewPrompt, "head" | "stored" | "keepSince">, Omit<PromptEnd, "outcome"> {
  readonly conversation: ConversationId;
  readonly number: number;
  /** The newest message that was stored when the prompt was built; the answer comes after it. */
  readonly newestSeq: number;
  readonly outcome: PromptEnd["outcome"] | null;
}

export interface PromptRecord extends PromptRow {
  readonly head: PromptHead;
}

export interface PromptFilter {
  /** Only prompts with these numbers, both included. */
  readonly from?: number;
  readonly to?: number;
  /** Only prompts that were built up to then. */
  readonly until?: Timestamp;
  readonly since?: Timestamp;
  /** Only prompts that were built before the message with this number was stored. */
  readonly beforeSeq?: number;
  readonly turn?: string;
  readonly limit?: number;
  readonly keep?: "oldest" | "newest";
}

/** Prompts by number, and the heads that they have, each from this number on. */
export interface PromptRows {
  readonly rows: readonly PromptRow[];
  readonly heads: readonly { readonly since: number; readonly head: string }[];
}

/** A summary as it once was, with the summaries that it was made from. */
export interface PastSummary {
  readonly summary: Summary;
  readonly sources: readonly SummaryId[];
}

export interface PastTexts {
  readonly summaries: readonly PastSummary[];
  readonly pins: readonly Pin[];
}

/** A model call that wrote a summary. */
export interface SummaryCall {
  readonly at: Timestamp;
  readonly inputTokens: number;
  readonly outputTokens: number;
}
