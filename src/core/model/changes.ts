/**
 * The store's port for operators' changes: rewrite, dissolve, transplant, fix, undo, remove and forget.
 *
 * Every change is journalled, with the rows before it, in the same transaction.
 */

import type {
  ConversationId,
  FileId,
  JournalEntry,
  MessageId,
  NewPin,
  Operation,
  Ref,
  Sources,
  SummaryId,
  Totals,
} from "./types.ts";
import type { Timestamp } from "../base/time.ts";

/** A write is stale, and changes nothing, if what it was planned from has changed. */
export type Written<T = unknown> =
  | ({ readonly kind: "written" } & T)
  | { readonly kind: "stale"; readonly reason: string };

/** Groups writes: everything that one command changes is one change, with one number. */
export interface PartOf {
  /** The command's operation, if it differs from the write's: a repair consists of rewrites. */
  readonly operation?: Operation;
  /** The change to add to; a new one if left out. */
  readonly change?: number;
}

export interface Changed {
  readonly change: number;
}

export interface RewritePlan {
  readonly summary: SummaryId;
  readonly revision: number;
  /** `forgets` of the conversation when the sources were read: text redacted since must not come back. */
  readonly forgets?: number;
  /** The source summaries, with the revisions that were read. */
  readonly sources?: readonly { readonly summary: SummaryId; readonly revision: number }[];
}

export interface DissolvePlan {
  readonly conversation: ConversationId;
  readonly summary: SummaryId;
  /** Its place in the context; null for a summary outside it that is only purged. */
  readonly ordinal: number | null;
  /** Whether to delete its row, too. Stale if a summary was made from it. */
  readonly purge?: boolean;
}

export interface TransplantPlan {
  readonly source: ConversationId;
  readonly target: ConversationId;
  /** The planned summaries of the source's context, in order; if left out, whatever it has. */
  readonly summaries?: readonly SummaryId[];
}

/** What a transplant would copy, and what of it the target already has. */
export interface Copying {
  /** The summaries of the source's context, in order. */
  readonly summaries: readonly SummaryId[];
  /** Those of them that are new in the target's context. */
  readonly prepended: readonly SummaryId[];
  /** Number of copied summaries per depth, including all below, leaves first. */
  readonly depths: readonly { readonly depth: number; readonly summaries: number }[];
  readonly messages: number;
  /** Summaries of the target that a reset carried over from the source: they get their sources instead of a copy. */
  readonly carried: readonly SummaryId[];
  /** Those of them that leave the context, because a copied summary is made from them. */
  readonly covered: readonly SummaryId[];
  /** Summaries of the target with the same text, or for copies of the same messages. */
  readonly existing: readonly SummaryId[];
  /** Number of messages that the target already has, as copies or originals. */
  readonly copied: number;
}

export type Transplanted =
  | Written<
      Changed & {
        readonly contextItems: number;
        readonly summaries: number;
        readonly messages: number;
        readonly carried: number;
      }
    >
  /** The target already has some of it. */
  | ({ readonly kind: "duplicate" } & Pick<Copying, "existing" | "copied">)
  /** The source's context has no summary. */
  | { readonly kind: "empty" };

/** Facts of a summary that follow from its sources. Times are as stored, and may be invalid. */
export interface DerivedFacts {
  readonly kind: "leaf" | "condensed";
  readonly depth: number;
  readonly earliestAt: string | null;
  readonly latestAt: string | null;
  readonly descendants: number;
}

/** Corrections to a conversation that follow from other rows and need no decision. */
export interface ConversationFix {
  readonly conversation: ConversationId;
  /** Revision of the inspected conversation; stale if it has been written to since. */
  readonly revision: number;
  readonly times: readonly { readonly message: MessageId; readonly at: Timestamp }[];
  readonly summaries: readonly (DerivedFacts & { readonly summary: SummaryId })[];
  /** Correct sources, in order, of summaries with wrong ones; broken links are left out. */
  readonly sources: readonly (Sources & { readonly summary: SummaryId })[];
  /** The correct context, oldest first, and how it differs; null if it is correct. */
  readonly context: {
    readonly items: readonly Ref[];
    readonly added: number;
    readonly dropped: number;
    /** Whether the remaining items change their order. */
    readonly reordered: boolean;
  } | null;
  /** Whether to recompute the running totals. */
  readonly recount: boolean;
  /** Rows without a search entry. */
  readonly unindexed: readonly (MessageId | SummaryId)[];
}

export interface PinPlan {
  readonly conversation: ConversationId;
  readonly pin: NewPin;
  /** `forgets` of the conversation when the message was read: text redacted since must not come back. */
  readonly forgets: number;
}

export interface JournalFilter {
  readonly conversation?: ConversationId;
  readonly change?: number;
  /** Maximum number of changes, each with all its steps. */
  readonly limit?: number;
}

/** Something that depends on a change, so that it cannot be undone. */
export interface Obstacle {
  /** What has changed since: a summary, a message, or a conversation. */
  readonly subject: string;
  readonly message: string;
  /** The operator's change that is responsible, if any. */
  readonly change: number | null;
  /** The summary folded since then that is responsible, if any. */
  readonly cover: SummaryId | null;
}

export interface UndoPlan {
  readonly change: number;
  /** Set to undo only what the change did to this summary. */
  readonly summary: SummaryId | null;
  /** The steps to undo, newest first. */
  readonly entries: readonly JournalEntry[];
  readonly obstacles: readonly Obstacle[];
}

export type Undone =
  | (Changed & { readonly kind: "undone"; readonly entries: number })
  | { readonly kind: "blocked"; readonly obstacles: readonly Obstacle[] };

/** The size of a conversation, and what depends on it. */
export interface Extent {
  readonly conversation: ConversationId;
  readonly totals: Totals;
  /** Approximate size of its rows: what a vacuum would free. */
  readonly bytes: number;
  readonly files: number;
  readonly fileBytes: number;
  /** Conversations whose carried summaries could no longer be expanded. */
  readonly carriedBy: readonly ConversationId[];
  /** Conversations with wrong references to its rows, which prevent its removal. */
  readonly tiedTo: readonly ConversationId[];
}

/** The planned revisions; stale if a conversation has been written to since. */
export type RemovePlan = readonly { readonly conversation: ConversationId; readonly revision: number }[];

export interface Removed extends Changed {
  /** How much smaller the file became; 0 while another program has it open. */
  readonly bytes: number;
  /** Free space inside the file. */
  readonly reusable: number;
}

export interface Archived {
  readonly path: string;
  readonly bytes: number;
  readonly files: number;
}

/** What a redaction would change. The store computes it, the operator sees it, and applying it checks it again. */
export interface ForgetPlan {
  readonly target:
    | { readonly kind: "message"; readonly id: MessageId }
    | { readonly kind: "secret"; readonly text: string };
  readonly messages: readonly MessageId[];
  /** Summaries to mark for rewriting: they contain the secret, or represent a forgotten message. */
  readonly summaries: readonly SummaryId[];
  readonly files: readonly FileId[];
  readonly journal: readonly number[];
  readonly entries: number;
}
