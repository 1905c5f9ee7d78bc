/** The store's port for overviews: messages and summaries without their texts, and how a conversation lies in time. */

import type { Timestamp } from "../base/time.ts";
import type { Aside, ConversationId, MessageId, Role, Summary, SummaryId } from "./types.ts";

/** Numbers of messages, both ends included. */
export interface NumberRange {
  readonly from: number;
  readonly to: number;
}

/** A message without its text. */
export interface MessageOutline {
  readonly id: MessageId;
  readonly role: Role;
  readonly tokens: number;
  readonly at: Timestamp;
  readonly aside: Aside | null;
  /** Whether something in it was redacted. */
  readonly isForgotten: boolean;
  /** The leaves that were made from it; more than one if one was dissolved. */
  readonly leaves: readonly SummaryId[];
}

/** A summary without its text. */
export interface SummaryOutline extends Pick<
  Summary,
  "id" | "depth" | "tokens" | "level" | "earliestAt" | "latestAt" | "createdAt" | "carriedFrom" | "rewriteReason"
> {
  /** The first and last message of a leaf; null for others. */
  readonly messages: readonly [first: MessageId, last: MessageId] | null;
  /** The summaries made directly from it. */
  readonly derived: readonly SummaryId[];
}

/** When a message was sent. */
export interface PaceMark {
  readonly id: MessageId;
  readonly at: Timestamp;
}

/** How many messages have one weight: those with the same number divided by this. */
export const messagesPerWeight = 256;

/** The tokens of up to 256 neighbouring messages. */
export interface Weight {
  /** Their numbers begin at this times 256. */
  readonly block: number;
  readonly tokens: number;
}

/** A part of the store's port. The cost of each call depends on what it returns, except for `weights`. */
export interface Outlines {
  /** Messages that are evenly spaced by number, up to `marks` of them, with both ends of the range. */
  pace(conversation: ConversationId, marks: number, range?: NumberRange): Promise<readonly PaceMark[]>;
  /** Reads every message of these numbers, but no text of it. Blocks without messages are left out. */
  weights(conversation: ConversationId, range: NumberRange): Promise<readonly Weight[]>;
  /** By number. */
  messageOutlines(conversation: ConversationId, range: NumberRange): Promise<readonly MessageOutline[]>;
  /** All of a conversation, in the order in which they were made. */
  summaryOutlines(conversation: ConversationId): Promise<readonly SummaryOutline[]>;
}
