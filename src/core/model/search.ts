/**
 * What a search asks and answers: part of the store's port. A result says why it may be less than everything that
 * matches; one that says nothing is complete.
 */

import type { ConversationId, FileId, MessageId, Role, SummaryId } from "./types.ts";
import type { Timestamp } from "../base/time.ts";

export interface SearchRequest {
  readonly pattern: string;
  readonly mode: "regex" | "full_text";
  /** `both` is messages and summaries; `files` are the texts that were moved out of messages. */
  readonly scope: "messages" | "summaries" | "both" | "files";
  /** Conversations to search; undefined for all that are not hidden. */
  readonly conversations?: readonly ConversationId[];
  /** `since` is inclusive, `before` is exclusive. Summaries match by overlap of their range. */
  readonly since?: Timestamp;
  readonly before?: Timestamp;
  /** What does not lie below these summaries, or above, is not asked for, and need not be looked at. */
  readonly around?: readonly SummaryId[];
  /** What one of our own tools answered comes behind all else, unless words are asked for by recency. */
  readonly sort: "recency" | "relevance" | "hybrid";
  /** 1 to 200. */
  readonly limit: number;
}

export interface SearchLimits {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type SearchHit = {
  readonly conversation: ConversationId;
  /** The text around the match, cut from the stored text. */
  readonly snippet: string;
  readonly at: Timestamp;
  /** Comparable within one result only; 0 for regex hits. */
  readonly score: number;
} & (
  | { readonly kind: "message"; readonly id: MessageId; readonly role: Role; readonly seq: number }
  /** It is of the time from `earliestAt`, if that is known, to `at`. */
  | {
      readonly kind: "summary";
      readonly id: SummaryId;
      readonly depth: number;
      readonly earliestAt: Timestamp | null;
    }
  /** One hit per file and place; the line, from 1, is that of the match. */
  | { readonly kind: "file"; readonly id: FileId; readonly name: string | null; readonly line: number }
);

/** Why a result may be less than everything that matches. A result without one of these is complete. */
export type SearchCaveat =
  /** More matched than were asked for. */
  | { readonly kind: "limit"; readonly limit: number }
  /** Stopped by the time limit after this many rows, or files; `of` is how many there were to look at. */
  | { readonly kind: "time"; readonly timeoutMs: number; readonly scanned: number; readonly of: number }
  /** Only the newest matches of frequent words were ranked. */
  | { readonly kind: "newest_ranked"; readonly ranked: number }
  /** No row held every word; these hold some of them. */
  | { readonly kind: "partial_match"; readonly missing: readonly string[] }
  /** So many large texts lie in files; what they are about was searched, what they say was not. */
  | { readonly kind: "files"; readonly files: number }
  /** So many files could not be read. */
  | { readonly kind: "unreadable"; readonly files: number }
  /** Search is still being built; this many rows are not in it yet. */
  | { readonly kind: "unindexed"; readonly rows: number };

export interface SearchResult {
  readonly hits: readonly SearchHit[];
  readonly caveats: readonly SearchCaveat[];
}
