/** The store's port for searching: requests, hits, and caveats that say why a result may be incomplete. */

import type { ConversationId, FileId, MessageId, Role, SummaryId } from "./types.ts";
import type { TextRange } from "../base/excerpt.ts";
import type { Timestamp } from "../base/time.ts";
import type { MeaningQuery } from "./vectors.ts";

export interface SearchRequest {
  readonly pattern: string;
  /** The same question in other words, up to 5; what any of them finds is ranked together. Not for `regex` or `files`. */
  readonly also?: readonly string[];
  readonly mode: "regex" | "full_text";
  /** `both` is messages, with the best summaries listed apart; `files` are texts that were moved out of messages. */
  readonly scope: "messages" | "summaries" | "both" | "files";
  /** Conversations to search; undefined for all that are not hidden. */
  readonly conversations?: readonly ConversationId[];
  /** `since` is inclusive, `before` is exclusive. Summaries match by overlap of their range. */
  readonly since?: Timestamp;
  readonly before?: Timestamp;
  /** Only messages of these roles, after or before these messages, which are not included. Summaries never match. */
  readonly roles?: readonly Role[];
  readonly afterId?: MessageId;
  readonly beforeId?: MessageId;
  /** Search only what is below or above these summaries. */
  readonly around?: readonly SummaryId[];
  /** Ranks messages by meaning, too. Ignored by regular expressions, by time, and in files. */
  readonly meaning?: MeaningQuery;
  /** Calls and results of our own tools come last, except in a full-text search by time (newest or oldest first). */
  readonly sort: "recency" | "oldest" | "relevance" | "hybrid";
  /** 1 to 200. */
  readonly limit: number;
}

export interface SearchLimits {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

export type SearchHit = {
  readonly conversation: ConversationId;
  /** One line around the match, cut from the stored text. */
  readonly snippet: string;
  readonly at: Timestamp;
  /** Comparable within one result only; 0 for regex hits. */
  readonly score: number;
} & (
  | ({ readonly kind: "message"; readonly id: MessageId; readonly role: Role; readonly seq: number } & Focus)
  /** It covers the time from `earliestAt`, if known, to `at`. */
  | ({
      readonly kind: "summary";
      readonly id: SummaryId;
      readonly depth: number;
      readonly earliestAt: Timestamp | null;
    } & Focus)
  /** One hit per file and match; lines count from 1. */
  | { readonly kind: "file"; readonly id: FileId; readonly name: string | null; readonly line: number }
);

/** The best match in the stored text; empty if a message matches only through its neighbours. */
interface Focus {
  readonly focus: TextRange;
}

/** Why a result may be incomplete. A result without caveats is complete. */
export type SearchCaveat =
  /** More matched than the limit. */
  | { readonly kind: "limit"; readonly limit: number }
  /** Stopped by the time limit after `scanned` of `of` rows or files. */
  | { readonly kind: "time"; readonly timeoutMs: number; readonly scanned: number; readonly of: number }
  /** Only the newest matches of frequent words were ranked. */
  | { readonly kind: "newest_ranked"; readonly ranked: number }
  /** Nothing in reach has these words; similar ones that are there were searched for instead. */
  | { readonly kind: "corrected"; readonly words: readonly { readonly from: string; readonly to: string }[] }
  /** No row has every word; these have some. */
  | { readonly kind: "partial_match"; readonly missing: readonly string[] }
  /** The pattern was taken for a regular expression, matched nothing, and its words were searched for instead. */
  | { readonly kind: "as_words"; readonly words: string }
  /** This many large texts are in files: their previews were searched, their contents were not. */
  | { readonly kind: "files"; readonly files: number }
  /** This many files could not be read. */
  | { readonly kind: "unreadable"; readonly files: number }
  /** Messages were found by words alone, because the embedding model cannot be used. */
  | { readonly kind: "no_meaning"; readonly reason: string }
  /** This many of the messages were found by words alone, because they have no vector yet. */
  | { readonly kind: "unembedded"; readonly messages: number; readonly of: number }
  /** The message named as a bound is beyond the end of its conversation; `last` was taken instead. */
  | { readonly kind: "beyond_end"; readonly asked: MessageId; readonly last: MessageId }
  /** The index is being built; this many rows are not in it yet. */
  | { readonly kind: "unindexed"; readonly rows: number };

export type SummaryHit = Extract<SearchHit, { readonly kind: "summary" }>;

export interface SearchResult {
  readonly hits: readonly SearchHit[];
  /** With scope `both`: the few best summaries, leaves first; absent if none matches. */
  readonly summaries?: readonly SummaryHit[];
  readonly caveats: readonly SearchCaveat[];
}
