/**
 * What operators change, as contracts between the core and the store: what each plan names, what makes it stale, and how
 * it is taken back. Every change is journalled with what was there before, in the transaction that makes it.
 */

import type {
  ConversationId,
  FileId,
  JournalEntry,
  MessageId,
  Operation,
  Ref,
  Sources,
  SummaryId,
  Totals,
} from "./types.ts";
import type { Timestamp } from "../base/time.ts";

/** A write planned from a read that no longer holds is stale, and has changed nothing. */
export type Written<T = unknown> =
  | ({ readonly kind: "written" } & T)
  | { readonly kind: "stale"; readonly reason: string };

/** What a write is part of. Everything that one command changes is one change, with one number. */
export interface PartOf {
  /** What the command is called, if it is not what is done here: a repair is made of rewrites. */
  readonly operation?: Operation;
  /** The change that the command has begun already; a new one if left out. */
  readonly change?: number;
}

/** The number of the change that was made or added to. */
export interface Changed {
  readonly change: number;
}

// ── Rewriting, dissolving, transplanting ─────────────────────────────────────────────────────────────────────────────

export interface RewritePlan {
  readonly summary: SummaryId;
  readonly revision: number;
  /** `forgets` of the conversation when the sources were read: what was forgotten since must not come back. */
  readonly forgets?: number;
  /** The summaries that the text was written from, with the revision they had. */
  readonly sources?: readonly { readonly summary: SummaryId; readonly revision: number }[];
}

export interface DissolvePlan {
  readonly conversation: ConversationId;
  readonly summary: SummaryId;
  /** Its place in the context; null for one that is in no context and is only to be purged. */
  readonly ordinal: number | null;
  /** Whether its row goes too. Stale if something derives from it. */
  readonly purge?: boolean;
}

export interface TransplantPlan {
  readonly source: ConversationId;
  readonly target: ConversationId;
  /** The summaries of the source's context, in order, as they were when this was planned; whatever there is if left out. */
  readonly summaries?: readonly SummaryId[];
}

/** What a transplant takes along, and what of it the target holds already. */
export interface Copying {
  /** The summaries of the source's context, in order. */
  readonly summaries: readonly SummaryId[];
  /** How many there are of each depth, these and all below them, leaves first. */
  readonly depths: readonly { readonly depth: number; readonly summaries: number }[];
  readonly messages: number;
  /** Summaries of the target that say the same, or stand for copies of the same messages. */
  readonly existing: readonly SummaryId[];
  /** Messages that the target holds already: copies of these, or what these are copies of. */
  readonly copied: number;
}

export type Transplanted =
  | Written<Changed & { readonly contextItems: number; readonly summaries: number; readonly messages: number }>
  /** The target already holds some of it. */
  | ({ readonly kind: "duplicate" } & Pick<Copying, "existing" | "copied">)
  /** The source's context has no summary. */
  | { readonly kind: "empty" };

// ── ConversationFix ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What of a summary follows from its sources. Times are as they are written, which may be no times. */
export interface DerivedFacts {
  readonly kind: "leaf" | "condensed";
  readonly depth: number;
  readonly earliestAt: string | null;
  readonly latestAt: string | null;
  readonly descendants: number;
}

/** What of a conversation is mended without deciding anything: facts that follow from other rows. */
export interface ConversationFix {
  readonly conversation: ConversationId;
  /** Of the conversation when it was inspected; stale if it has been written to since. */
  readonly revision: number;
  readonly times: readonly { readonly message: MessageId; readonly at: Timestamp }[];
  readonly summaries: readonly (DerivedFacts & { readonly summary: SummaryId })[];
  /** Sources as they should be, in order, of summaries where they are not: links that lead nowhere are left out. */
  readonly sources: readonly (Sources & { readonly summary: SummaryId })[];
  /** The whole context as it should be, oldest first, and how it differs; null where it is right. */
  readonly context: {
    readonly items: readonly Ref[];
    readonly added: number;
    readonly dropped: number;
    /** Whether those that stay are in another order. */
    readonly reordered: boolean;
  } | null;
  /** Whether the running totals are set to what the rows add up to. */
  readonly recount: boolean;
  /** Rows without a search entry. */
  readonly unindexed: readonly (MessageId | SummaryId)[];
}

// ── The journal, and taking back ─────────────────────────────────────────────────────────────────────────────────────

export interface JournalFilter {
  readonly conversation?: ConversationId;
  readonly change?: number;
  /** The steps of at most so many changes. */
  readonly limit?: number;
}

/** What stands on a change, so that it cannot be taken back as things are. */
export interface Obstacle {
  /** What has changed since: a summary, a message, or a conversation. */
  readonly subject: string;
  readonly message: string;
  /** The change that did it, if it was an operator's. */
  readonly change: number | null;
  /** The summary that was folded since, if that is what did it. */
  readonly cover: SummaryId | null;
}

export interface UndoPlan {
  readonly change: number;
  /** Only what it did to this summary. */
  readonly summary: SummaryId | null;
  /** What is taken back, newest first. */
  readonly entries: readonly JournalEntry[];
  readonly obstacles: readonly Obstacle[];
}

export type Undone =
  | (Changed & { readonly kind: "undone"; readonly entries: number })
  | { readonly kind: "blocked"; readonly obstacles: readonly Obstacle[] };

// ── Pruning ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a conversation takes, and what else would feel its absence. */
export interface Extent {
  readonly conversation: ConversationId;
  readonly totals: Totals;
  /** Of its rows, about; a file is smaller by that once it is rewritten. */
  readonly bytes: number;
  readonly files: number;
  readonly fileBytes: number;
  /** Conversations whose carried summaries could no longer be expanded. */
  readonly carriedBy: readonly ConversationId[];
  /** Conversations that wrongly point to rows of it, which therefore cannot go. */
  readonly tiedTo: readonly ConversationId[];
}

/** Each with the revision it had when this was planned; stale if one has been written to since. */
export type RemovePlan = readonly { readonly conversation: ConversationId; readonly revision: number }[];

export interface Removed extends Changed {
  /** By how much the file became smaller; 0 while another program has it open. */
  readonly bytes: number;
  /** Free inside the file, for what is stored next. */
  readonly reusable: number;
}

export interface Archived {
  readonly path: string;
  readonly bytes: number;
  readonly files: number;
}

// ── Forgetting ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** What a removal would touch. Computed by the store, shown to the operator, and checked again when applied. */
export interface ForgetPlan {
  readonly target:
    | { readonly kind: "message"; readonly id: MessageId }
    | { readonly kind: "secret"; readonly text: string };
  readonly messages: readonly MessageId[];
  /** Summaries whose text holds the secret or that stand for a forgotten message; they are marked for rewrite. */
  readonly summaries: readonly SummaryId[];
  readonly files: readonly FileId[];
  readonly journal: readonly number[];
  readonly entries: number;
}
