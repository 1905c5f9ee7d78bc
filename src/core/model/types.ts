/**
 * The nouns. Everything else in the project is a verb over these; spec names stay on disk and on the wire, and only
 * the store and the tools translate.
 */

import type { Timestamp } from "../base/time.ts";
declare const brand: unique symbol;
export type ConversationId = number & { readonly [brand]: "conversation" };
export type MessageId = number & { readonly [brand]: "message" };
export type SummaryId = `sum_${string}`;
export type FileId = `file_${string}`;
export type GrantId = `grant_${string}`;

export const isSummaryId = (text: string): text is SummaryId => /^sum_[0-9a-f]{16}$/.test(text);
/** How a message is called where ids of all kinds stand side by side. */
export const messageName = (id: MessageId): `msg_${number}` => `msg_${id}`;
export const isFileId = (text: string): text is FileId => /^file_[0-9a-f]{16}$/.test(text);

// ── Conversations ────────────────────────────────────────────────────────────────────────────────────────────────────

/** Kept with the conversation by every write, so that asking costs nothing however long it is. */
export interface Totals {
  /** Messages stored, and their estimated tokens, wherever they are now. */
  readonly messages: number;
  readonly messageTokens: number;
  readonly summaries: number;
  /** What the context holds now: its items, its tokens, and how much of that is raw messages. */
  readonly contextItems: number;
  readonly contextTokens: number;
  readonly contextMessages: number;
  readonly contextMessageTokens: number;
}

/** A segment: what was said between two resets of one session. All segments of an agent and session key are a family. */
export interface Conversation {
  readonly id: ConversationId;
  readonly sessionId: string;
  readonly sessionKey: string | null;
  readonly agentId: string | null;
  /** The newest segment of its session key, the one that the host is writing to. */
  readonly active: boolean;
  /** Hidden from recall because the host deleted the session. */
  readonly hidden: boolean;
  readonly title: string | null;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
  /** Time of the newest message, or null in an empty conversation. */
  readonly lastMessageAt: Timestamp | null;
  readonly totals: Totals;
  /** Grows by one with every write to the conversation. */
  readonly revision: number;
  /** Opaque position in the host's transcript up to which everything is stored. */
  readonly hostCursor: string | null;
  /** Grows whenever something is forgotten: what was read before may hold it. */
  readonly forgets: number;
  /** Messages of users that came outside a committed turn: one that failed, or that another engine served. */
  readonly caughtUp: number;
  /** Tokens that the host last gave a prompt of it; null as long as none was named. */
  readonly promptBudget: number | null;
}

// ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export const roles = ["system", "user", "assistant", "tool"] as const;
/** What the store can tell apart. The host's own word for it survives in the envelope. */
export type Role = (typeof roles)[number];

export const partTypes = [
  "text",
  "reasoning",
  "tool",
  "patch",
  "file",
  "subtask",
  "compaction",
  "step_start",
  "step_finish",
  "snapshot",
  "agent",
  "retry",
] as const;
export type PartType = (typeof partTypes)[number];

/** One structured block of a message, from which the original block is rebuilt exactly. */
export interface Part {
  readonly type: PartType;
  /** What the block says. The message's text is these, joined by newlines; the text is stored only there. */
  readonly text: string | null;
  /** Text that belongs to the block but is not said: reasoning, or text that a database cannot hold as it is. */
  readonly kept: string | null;
  readonly toolCallId: string | null;
  readonly toolName: string | null;
  /** What rebuilding needs beyond the fields above; null for blocks of the plainest shape. JSON text. */
  readonly metadata: string | null;
}

/** Why a stored message is outside the context: on a branch that the host left, or a note that is not content. */
export type Aside = "branch" | "note";

/** Text or bytes of a message that lie in a file; the message says a short reference in their place. */
export interface MovedContent {
  readonly file: FileId;
  /** Where in the host's message the string is, as keys and indexes from the outside in. */
  readonly path: readonly (string | number)[];
  /** The reference's place in that string: the original is the string with this range replaced by the file's content. */
  readonly from: number;
  readonly length: number;
}

/** A message ready to be stored. */
export interface NewMessage {
  /** The host's identity of it, unique in its conversation. Content is never identity. */
  readonly key: string;
  readonly role: Role;
  readonly parts: readonly Part[];
  /** Estimated tokens of what the model would see. */
  readonly tokens: number;
  readonly at: Timestamp;
  /** The original message without its content. JSON text; null means `{"role":…,"content":…}` and nothing else. */
  readonly envelope: string | null;
  /** The transcript line around the message, without the message: see content.ts; null if there was none. */
  readonly entry: string | null;
  /** Key of the transcript entry this one continues; undefined where the host keeps no tree. */
  readonly parentKey?: string | null;
  readonly aside?: Aside;
  /** What of it was moved out to files, in order of path and place. */
  readonly moved?: readonly MovedContent[];
}

/** A message as it stands in the store. */
export interface Message extends Omit<NewMessage, "aside"> {
  readonly id: MessageId;
  readonly conversation: ConversationId;
  readonly seq: number;
  readonly text: string;
  readonly parentKey: string | null;
  readonly aside: Aside | null;
  readonly moved: readonly MovedContent[];
}

/** A line of a transcript that is not a message: kept, outside the context, so that nothing of the file is lost. */
export interface NewEntry {
  readonly key: string;
  readonly type: string;
  readonly at: Timestamp | null;
  /** The whole line as JSON text. */
  readonly raw: string;
  readonly parentKey?: string | null;
}

export interface Entry extends NewEntry {
  /** The `seq` of the message it follows; 0 at the start. */
  readonly afterSeq: number;
}

// ── Summaries and the context ────────────────────────────────────────────────────────────────────────────────────────

export const levels = ["normal", "aggressive", "extractive", "truncated"] as const;
/** How a summary's text was made. Anything below normal can be redone later. */
export type Level = (typeof levels)[number];

export type MessageRef = { readonly kind: "message"; readonly id: MessageId };
export type SummaryRef = { readonly kind: "summary"; readonly id: SummaryId };
export type Ref = MessageRef | SummaryRef;

/** One place of the context. The ordinal is an order, not an index: there are gaps. */
export type ContextItem = Ref & {
  readonly ordinal: number;
  readonly tokens: number;
  /** Depth of a summary; -1 for a raw message. */
  readonly depth: number;
};

/** A summary about to be folded in. Depth, time range and descendants follow from the run it replaces. */
export interface NewSummary {
  readonly text: string;
  readonly tokens: number;
  readonly level: Level;
  readonly model: string | null;
  /** The `previous_context` its prompt was given; null when none was, or when it was not recorded. */
  readonly previousContext: string | null;
  readonly fileIds: readonly FileId[];
}

/** Text that stands for its sources: a leaf (depth 0) of messages, or a condensed one of summaries one depth below. */
export interface Summary extends NewSummary {
  readonly id: SummaryId;
  readonly conversation: ConversationId;
  readonly depth: number;
  /** Time range of the messages below it. */
  readonly earliestAt: Timestamp | null;
  readonly latestAt: Timestamp | null;
  /** Summaries below it, counted through. */
  readonly descendants: number;
  readonly createdAt: Timestamp;
  /** Grows with every rewrite; a rewrite planned against an older one is stale. */
  readonly revision: number;
  /** The summary of an earlier segment whose text this one carries over; such a one has no sources of its own. */
  readonly carriedFrom: SummaryId | null;
  /** Why its text no longer fits its sources, if it does not. */
  readonly rewriteReason: string | null;
}

/** What a summary was made from, in order: messages of a leaf, summaries of a condensed one. */
export interface Sources {
  readonly messages: readonly MessageId[];
  readonly summaries: readonly SummaryId[];
}

// ── Files, grants, usage, journal ────────────────────────────────────────────────────────────────────────────────────

export type FileEncoding = "utf8" | "base64";

export interface StoredFile {
  readonly id: FileId;
  readonly conversation: ConversationId;
  readonly name: string | null;
  readonly mimeType: string | null;
  readonly bytes: number;
  readonly lines: number | null;
  /** How the content is told as a string: text as it is, bytes as base64. */
  readonly encoding: FileEncoding;
  /** Where the content lies, relative to the files folder; never taken from a caller. */
  readonly storageUri: string;
  readonly exploration: string | null;
  /** Time of the message it was moved out of; of a file from nowhere, when it was saved. */
  readonly createdAt: Timestamp;
  /** Key of that message, in the same conversation; of several with the same content, the first. Null where unknown. */
  readonly messageKey: string | null;
}

/** What a delegate may read, how much of it, and until when. */
export interface Grant {
  readonly id: GrantId;
  readonly conversations: readonly ConversationId[];
  readonly tokenCap: number;
  readonly tokensUsed: number;
  readonly issuedAt: Timestamp;
  readonly expiresAt: Timestamp;
  readonly revokedAt: Timestamp | null;
  readonly parent: GrantId | null;
}

export const refusals = [
  /** The provider does not accept the credential. */
  "auth",
  "rate_limit",
  /** The provider's own trouble. */
  "overloaded",
  "unreachable",
  "timeout",
  /** Whoever asked has withdrawn, or the deadline of the whole operation has passed. */
  "cancelled",
  /** The prompt is longer than the model takes. */
  "too_long",
  /** The provider will not answer this text. */
  "filtered",
  /** The provider has no such model, whatever is asked of it. */
  "unknown_model",
  /** The request is wrong in another way. */
  "rejected",
  /** Not asked: there is no credential for the provider, or none that can be used. */
  "no_credential",
  /** Not asked: the calls of this window are used up. */
  "ceiling",
  /** Not asked: the provider refused the credential a short while ago. */
  "breaker",
] as const;
/** Why a model did not answer. Told by status, never by words of a message. */
export type Refusal = (typeof refusals)[number];

/** By the status of a provider's answer. Out of credit is a matter of the account, like a key that is not accepted. */
export function refusalByStatus(status: number): Refusal {
  const named = statuses.get(status);
  if (named !== undefined) return named;
  // An answer that says "fine" and is none is the provider's trouble as well.
  return status >= 400 && status < 500 ? "rejected" : "overloaded";
}

const statuses: ReadonlyMap<number, Refusal> = new Map([
  [401, "auth"],
  [402, "auth"],
  [403, "auth"],
  [404, "unknown_model"],
  [408, "timeout"],
  [413, "too_long"],
  [429, "rate_limit"],
]);

/** What a model is asked for. */
export type CallPurpose = "leaf" | "condensed" | "file" | "expand" | "rewrite";

/** A model call about to be made. */
export interface NewCall {
  readonly conversation: ConversationId | null;
  readonly purpose: CallPurpose;
  readonly provider: string;
  readonly model: string;
}

/** What became of it. */
export interface CallResult {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly result: "ok" | Refusal;
  readonly durationMs: number;
}

/** One compaction that folded something or could not, whatever started it. */
export interface CompactionRecord {
  readonly conversation: ConversationId;
  readonly at: Timestamp;
  readonly mode: "incremental" | "sweep" | "until_under";
  /** The name of its outcome, and a sentence about it. */
  readonly outcome: string;
  readonly message: string;
  readonly passes: number;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly durationMs: number;
}

export const operations = [
  "rewrite",
  "repair",
  "dissolve",
  "transplant",
  "fix",
  "undo",
  /** These two cannot be taken back: whoever wants that has a backup, or an archive. */
  "forget",
  "prune",
] as const;
/** What an operator does to what is stored. */
export type Operation = (typeof operations)[number];

/** One step of a change with what was there before, so that it can be shown and undone. */
export interface JournalEntry {
  readonly id: number;
  /** The change that it is a step of: everything that one command has done. Changes are counted from 1. */
  readonly change: number;
  readonly at: Timestamp;
  readonly operation: Operation;
  readonly conversation: ConversationId | null;
  /** What it was done to: a summary's id, or a few words. */
  readonly subject: string;
  /** The rows that were changed, as they were and as they became; empty where that is not known any more. */
  readonly before: Touched;
  readonly after: Touched;
  /** Whether running totals were set right. */
  readonly hasTotals: boolean;
  /** The change that it takes back. */
  readonly undoes: number | null;
  /** The change that took it back; null while it holds. */
  readonly undoneBy: number | null;
  /** What a forgetting has marked, or a prune removed. */
  readonly marked: readonly SummaryId[];
  readonly removed: readonly ConversationId[];
}

/** The rows of one side of a step. */
export interface Touched {
  /** Those that are there on this side; text and tokens are null where something else of them was touched. */
  readonly summaries: readonly {
    readonly id: SummaryId;
    readonly text: string | null;
    readonly tokens: number | null;
  }[];
  /** What stands in the touched places of the context. */
  readonly places: readonly (MessageId | SummaryId)[];
  /** How many rows of each kind were touched, there or not. */
  readonly rows: Readonly<Record<"summaries" | "messages" | "links" | "places", number>>;
}

export const forgottenMark = "[forgotten]";
