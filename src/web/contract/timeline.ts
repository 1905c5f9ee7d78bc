/** The timeline of a conversation: messages and summaries as nodes, as fine as the screen can show. */

import type { Timestamp } from "../../core/base/time.ts";
import type {
  Aside,
  Conversation,
  ConversationId,
  MessageId,
  Role,
  Summary,
  SummaryId,
} from "../../core/model/types.ts";
import type { Pace } from "./conversations.ts";

export type NodeState =
  /** Shown by the prompt. */
  | "prompt"
  /** In the context, and shown by what it was made from, because there is room. */
  | "context"
  /** In the context, but it does not fit the prompt. */
  | "evicted"
  /** Represented by a summary above it. */
  | "below"
  /** Outside the context: a dissolved summary, a note, or a branch that the host left. */
  | "outside"
  /** Redacted, in whole or in part. */
  | "forgotten";

/** Depth -1. */
export interface MessageNode {
  readonly id: MessageId;
  readonly seq: number;
  readonly role: Role;
  readonly at: Timestamp;
  readonly tokens: number;
  readonly state: NodeState;
  readonly aside: Aside | null;
  /** The leaf that was made from it. */
  readonly leaf: SummaryId | null;
}

/** Neighbouring messages in one cell. `tokens` is null if it is only known roughly. */
export interface MessageBucket {
  readonly from: number;
  readonly to: number;
  readonly earliestAt: Timestamp;
  readonly latestAt: Timestamp;
  readonly tokens: number | null;
  /** How many of them have which state; those with none are left out. */
  readonly states: Readonly<Partial<Record<NodeState, number>>>;
}

export interface SummaryNode {
  readonly id: SummaryId;
  readonly depth: number;
  /** The messages below it. */
  readonly from: number;
  readonly to: number;
  readonly earliestAt: Timestamp;
  readonly latestAt: Timestamp;
  readonly tokens: number;
  readonly level: Summary["level"];
  readonly state: NodeState;
  /** Carries over a summary of an earlier segment; it lies at the beginning. */
  readonly isCarried: boolean;
  /** Whether its text no longer matches its sources. */
  readonly isStale: boolean;
  /** When it was folded. */
  readonly createdAt: Timestamp;
  /** The summary made from it; null at the top. */
  readonly above: SummaryId | null;
}

/** Neighbouring summaries of one depth that are narrower than a cell. */
export interface SummaryBucket {
  readonly depth: number;
  readonly from: number;
  readonly to: number;
  readonly count: number;
  readonly tokens: number;
  readonly states: Readonly<Partial<Record<NodeState, number>>>;
}

export type MarkKind = "reset" | "fold" | "rewrite" | "change" | "forgotten" | "pin";

/** Something that happened at a place; near ones of a kind are one mark. */
export interface Mark {
  readonly kind: MarkKind;
  readonly seq: number;
  readonly at: Timestamp;
  readonly count: number;
  /** A sentence about it, or about the first. */
  readonly words: string;
  /** What to open: a summary, a message, or the number of a change. */
  readonly of: SummaryId | MessageId | { readonly change: number } | null;
}

/** The part of a conversation between two numbers, as fine as the asked cells. Every call reads about the same amount. */
export interface Timeline {
  readonly conversation: Conversation;
  readonly name: string;
  /** The first and last number; null if there are no messages. */
  readonly extent: { readonly from: number; readonly to: number } | null;
  /** What follows is about these numbers. */
  readonly window: { readonly from: number; readonly to: number };
  /** Times of numbers in the window; in between, interpolate. */
  readonly pace: Pace;
  /** The prompt that states are about: a recorded one, or (null) the one that would be sent now. */
  readonly prompt: number | null;
  /** The deepest summary of the whole conversation; -1 if it has none. */
  readonly depthMax: number;
  /** Each message, if the window has few; else null, and there are buckets. */
  readonly messages: readonly MessageNode[] | null;
  readonly buckets: readonly MessageBucket[];
  readonly summaries: readonly SummaryNode[];
  readonly summaryBuckets: readonly SummaryBucket[];
  readonly marks: readonly Mark[];
  /** The segments before and after this one. */
  readonly before: ConversationId | null;
  readonly after: ConversationId | null;
}
