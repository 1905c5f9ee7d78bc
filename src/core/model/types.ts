/** The nouns of the domain: conversations, messages, summaries, contexts, files, grants and the journal. */

import type { Timestamp } from "../base/time.ts";

declare const brand: unique symbol;
export type ConversationId = number & { readonly [brand]: "conversation" };
export type MessageId = number & { readonly [brand]: "message" };
export type SummaryId = `sum_${string}`;
export type FileId = `file_${string}`;
export type GrantId = `grant_${string}`;

export const isSummaryId = (text: string): text is SummaryId => /^sum_[0-9a-f]{16}$/.test(text);
export const isFileId = (text: string): text is FileId => /^file_[0-9a-f]{16}$/.test(text);

// ── Ids that name their conversation ─────────────────────────────────────────────────────────────────────────────────

/** How many numbers a conversation has: with 2^29 conversations, every id is still exact as a JavaScript number. */
export const numbersPerConversation = 2 ** 24;

/** The id of the row with this number in a conversation. */
export const idIn = (conversation: number, number: number): number => conversation * numbersPerConversation + number;

export const messageIdOf = (conversation: ConversationId, seq: number): MessageId =>
  idIn(conversation, seq) as MessageId;
/** 0 for a number that names no conversation. */
export const conversationIn = (id: MessageId): ConversationId =>
  Math.floor(id / numbersPerConversation) as ConversationId;
export const seqOf = (id: MessageId): number => id % numbersPerConversation;

/** `msg_1-42`: message 42 of conversation 1. */
export const messageName = (id: MessageId): `msg_${number}-${number}` => `msg_${conversationIn(id)}-${seqOf(id)}`;

/** Reads `msg_1-42`, `message 1-42`, `1-42`, or the id as a number, which is what JSON output contains. */
export function parseMessageId(text: string): MessageId | null {
  const [, conversation, seq, number] = /^(?:(?:msg_|message )?(\d{1,9})-(\d{1,8})|(\d{8,16}))$/.exec(text) ?? [];
  const id = number === undefined ? messageIdOf(Number(conversation) as ConversationId, Number(seq)) : Number(number);
  const isId = Number.isSafeInteger(id) && id > numbersPerConversation && Number(seq ?? 1) < numbersPerConversation;
  return isId && id % numbersPerConversation > 0 ? (id as MessageId) : null;
}

export const messageIdHint = "msg_1-42 is message 42 of conversation 1";

/** The 16 digits of a summary's or file's id: eight name its conversation, eight are random. */
export const idDigits = (conversation: ConversationId, hex16: string): string =>
  conversation.toString(16).padStart(8, "0") + hex16.slice(-8);

// ── Conversations ────────────────────────────────────────────────────────────────────────────────────────────────────

/** Updated by every write, so that reading them is cheap however long the conversation is. */
export interface Totals {
  /** Messages stored, and their estimated tokens, wherever they are now. */
  readonly messages: number;
  readonly messageTokens: number;
  readonly summaries: number;
  /** The current context: its items and tokens, and how many of them are raw messages. */
  readonly contextItems: number;
  readonly contextTokens: number;
  readonly contextMessages: number;
  readonly contextMessageTokens: number;
}

/** A segment: the messages between two resets of a session. All segments of an agent and session key are a family. */
export interface Conversation {
  readonly id: ConversationId;
  readonly sessionId: string;
  readonly sessionKey: string | null;
  readonly agentId: string | null;
  /** The working folder of the session, as the host named it; null if unknown. */
  readonly folder: string | null;
  /** The session that started this one, such as that of a sub-agent; null if none did. */
  readonly parentSessionId: string | null;
  /** Whether it is the newest segment of its session key, to which the host is writing. */
  readonly active: boolean;
  /** Hidden from recall because the host deleted the session. */
  readonly hidden: boolean;
  readonly title: string | null;
  readonly createdAt: Timestamp;
  readonly updatedAt: Timestamp;
  /** Time of the newest message, or null in an empty conversation. */
  readonly lastMessageAt: Timestamp | null;
  readonly totals: Totals;
  /** Incremented by every write to the conversation. */
  readonly revision: number;
  /** Opaque position in the host's transcript up to which everything is stored. */
  readonly hostCursor: string | null;
  /** The same for files that were imported; null if a host writes to it, or none was read whole line by line. Opaque. */
  readonly fileCursor: string | null;
  /** Incremented by every redaction: what was read before may contain redacted text. */
  readonly forgets: number;
  /** User messages outside a committed turn: the turn failed, or another engine served it. */
  readonly caughtUp: number;
  /** The prompt budget that the host last set, in tokens. */
  readonly promptBudget: number | null;
}

// ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export const roles = ["system", "user", "assistant", "tool"] as const;
/** The roles that the store distinguishes. The host's own role is in the envelope. */
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

/** One block of a message, from which the original block is rebuilt exactly. */
export interface Part {
  readonly type: PartType;
  /** The text of the block. The message's text is these, joined by newlines. */
  readonly text: string | null;
  /** Text of the block that is not part of the message's text, such as reasoning. */
  readonly kept: string | null;
  readonly toolCallId: string | null;
  readonly toolName: string | null;
  /** JSON text: what rebuilding needs beyond the fields above; null for the plainest blocks. */
  readonly metadata: string | null;
}

/** Why a message is outside the context: it is on a branch that the host left, or is a note, not content. */
export type Aside = "branch" | "note";

/** Text or bytes of a message that are stored in a file; the message has a short reference in their place. */
export interface MovedContent {
  readonly file: FileId;
  /** Path of the string in the host's message: keys and indexes. */
  readonly path: readonly (string | number)[];
  /** Range of the reference in that string. Replacing it with the file's content restores the original. */
  readonly from: number;
  readonly length: number;
}

/** Keys of messages that the proxy heard between a host and its model begin with this. No host's keys do. */
export const heardPrefix = "wire:";

/** Far above any message or summary; even a full conversation of such messages adds up to a safe integer. */
export const tokensMax = 2 ** 28;

/** A message ready to be stored. */
export interface NewMessage {
  /** The host's identity of the message, unique in its conversation. Content is never identity. */
  readonly key: string;
  readonly role: Role;
  readonly parts: readonly Part[];
  /** Estimated tokens in a prompt; a whole number up to `tokensMax`. */
  readonly tokens: number;
  readonly at: Timestamp;
  /** JSON text: the message without its content; null for `{"role":…,"content":…}` and nothing else. */
  readonly envelope: string | null;
  /** The transcript line around the message, without the message, as codec.ts encodes it; null if there was none. */
  readonly entry: string | null;
  /** Key of the transcript entry that it follows; undefined if the host keeps no tree. */
  readonly parentKey?: string | null;
  readonly aside?: Aside;
  /** Content that was moved to files, by path and place. */
  readonly moved?: readonly MovedContent[];
}

/**
 * Set if a row no longer says what was stored: its checksum differs. It is read as far as possible. Messages that are
 * asked for by id, as prompts do, are compared only if they make no sense.
 */
export interface Damage {
  readonly isDamaged?: true;
}

export interface Message extends Omit<NewMessage, "aside">, Damage {
  readonly id: MessageId;
  readonly conversation: ConversationId;
  readonly seq: number;
  readonly text: string;
  readonly parentKey: string | null;
  readonly aside: Aside | null;
  readonly moved: readonly MovedContent[];
}

/** A transcript line that is not a message: stored outside the context, so that the file can be exported in full. */
export interface NewEntry {
  readonly key: string;
  readonly type: string;
  readonly at: Timestamp | null;
  /** The whole line as JSON text. */
  readonly raw: string;
  readonly parentKey?: string | null;
}

export interface Entry extends NewEntry, Damage {
  /** The `seq` of the message it follows; 0 at the start. */
  readonly afterSeq: number;
}

// ── Pins ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A standing instruction: a user's own words that stay in prompts when their message is no longer shown. */
export interface Standing {
  /** Verbatim; what is left out in between is marked with `…`. */
  readonly words: string;
  /** Why it was pinned: the words of the cue, or what a person or the agent gave. */
  readonly reason: string;
}

export const pinOrigins = ["cue", "model", "person", "agent"] as const;
/** Who pinned or unpinned it last. Cues and models never change what a person or the agent decided. */
export type PinOrigin = (typeof pinOrigins)[number];

export const pinStates = ["pinned", "unpinned"] as const;

export interface Pin extends Standing {
  /** The conversation whose prompts show it. A new segment carries the pins of the one before. */
  readonly conversation: ConversationId;
  /** Where it was said; of an earlier segment if it was carried over. */
  readonly message: MessageId;
  readonly saidAt: Timestamp;
  readonly origin: PinOrigin;
  readonly state: (typeof pinStates)[number];
  readonly at: Timestamp;
}

// ── Summaries and the context ────────────────────────────────────────────────────────────────────────────────────────

export const levels = ["normal", "aggressive", "extractive", "truncated"] as const;
/** How a summary was written. Anything below normal can be rewritten later. */
export type Level = (typeof levels)[number];

export type MessageRef = { readonly kind: "message"; readonly id: MessageId };
export type SummaryRef = { readonly kind: "summary"; readonly id: SummaryId };
export type Ref = MessageRef | SummaryRef;

/** One item of the context. Ordinals have gaps. */
export type ContextItem = Ref & {
  readonly ordinal: number;
  readonly tokens: number;
  /** -1 for a raw message. */
  readonly depth: number;
};

/** A pin ready to be stored. */
export type NewPin = Omit<Pin, "conversation" | "at">;

/** A summary ready to be stored. Its depth, time range and descendants follow from the run that it replaces. */
export interface NewSummary {
  readonly text: string;
  readonly tokens: number;
  readonly level: Level;
  readonly model: string | null;
  /** The `previous_context` of its prompt; null if there was none, or if it was not recorded. */
  readonly previousContext: string | null;
  readonly fileIds: readonly FileId[];
  /** Of a leaf: standing instructions in its messages. What is pinned or unpinned already stays as it is. */
  readonly pins?: readonly NewPin[];
  /** Of a leaf that a model wrote: how somebody might ask for what its messages say. */
  readonly searchWords?: readonly SearchWords[];
}

/** Words by which a message is found and that it does not have itself. They are never shown as said. */
export interface SearchWords {
  readonly message: MessageId;
  readonly words: string;
}

/** Text that represents its sources: a leaf (depth 0) messages, a condensed summary those of the depth below. */
export interface Summary extends Omit<NewSummary, "pins" | "searchWords">, Damage {
  readonly id: SummaryId;
  readonly conversation: ConversationId;
  readonly depth: number;
  /** Time range of the messages below it. */
  readonly earliestAt: Timestamp | null;
  readonly latestAt: Timestamp | null;
  /** Number of summaries below it, at all depths. */
  readonly descendants: number;
  readonly createdAt: Timestamp;
  /** Incremented by every rewrite; a rewrite planned for an older revision is stale. */
  readonly revision: number;
  /** The summary of an earlier segment whose text it carries over; it then has no sources of its own. */
  readonly carriedFrom: SummaryId | null;
  /** Why its text no longer matches its sources, if so. */
  readonly rewriteReason: string | null;
}

/** The sources of a summary, in order: messages of a leaf, summaries of a condensed one. */
export interface Sources {
  readonly messages: readonly MessageId[];
  readonly summaries: readonly SummaryId[];
}

// ── Files, grants, usage, journal ────────────────────────────────────────────────────────────────────────────────────

export type FileEncoding = "utf8" | "base64";

/** The type of files with what a map answered: a line of JSON per message. */
export const mapMimeType = "application/x-lcm-map+jsonl";

export interface StoredFile {
  readonly id: FileId;
  readonly conversation: ConversationId;
  readonly name: string | null;
  readonly mimeType: string | null;
  readonly bytes: number;
  readonly lines: number | null;
  /** Text is utf8, bytes are base64. */
  readonly encoding: FileEncoding;
  /** Path relative to the files folder; never taken from a caller. */
  readonly storageUri: string;
  readonly exploration: string | null;
  /** Time of the message that it was moved out of, otherwise when it was saved. */
  readonly createdAt: Timestamp;
  /** Key of that message; the first, if several have the same content. Null if unknown. */
  readonly messageKey: string | null;
}

/** Permission for a delegate: what it may read, how much, and until when. */
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
  /** The provider rejected the credential. */
  "auth",
  "rate_limit",
  /** The provider failed. */
  "overloaded",
  "unreachable",
  "timeout",
  /** The caller cancelled, or the deadline of the whole operation passed. */
  "cancelled",
  /** The prompt is too long for the model. */
  "too_long",
  /** The provider's content filter rejected the text. */
  "filtered",
  /** The provider has no such model. */
  "unknown_model",
  /** The request was rejected for another reason. */
  "rejected",
  /** Not called: there is no usable credential for the provider. */
  "no_credential",
  /** Not called: the spend ceiling is reached. */
  "ceiling",
  /** Not called: the provider recently rejected the credential. */
  "breaker",
] as const;
/** Why a model did not answer. Derived from a status, never from the text of a message. */
export type Refusal = (typeof refusals)[number];

/** The refusal for an HTTP status. Out of credit (402) counts as `auth`: the account must be fixed. */
export function refusalByStatus(status: number): Refusal {
  const named = statuses.get(status);
  if (named !== undefined) return named;
  // A success status without an answer is a failure of the provider, too.
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

export type CallPurpose = "leaf" | "condensed" | "file" | "expand" | "rewrite" | "map" | "embed";

/** A model call about to be made. */
export interface NewCall {
  readonly conversation: ConversationId | null;
  readonly purpose: CallPurpose;
  readonly provider: string;
  readonly model: string;
}

export interface CallResult {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly result: "ok" | Refusal;
  readonly durationMs: number;
}

/** One compaction that folded something, or failed to. */
export interface CompactionRecord {
  readonly conversation: ConversationId;
  readonly at: Timestamp;
  readonly mode: "incremental" | "sweep" | "until_under";
  /** A person or a host asked for it. Prompts stay as small as it made them, until one is due by itself. */
  readonly asked: boolean;
  /** The kind of its outcome, and a sentence about it. */
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
  "pin",
  "unpin",
  "undo",
  /** These two cannot be undone, except from a backup or an archive. */
  "forget",
  "prune",
] as const;
/** Operations that change stored data. */
export type Operation = (typeof operations)[number];

/** One step of a change, with the rows before and after it, so that it can be shown and undone. */
export interface JournalEntry {
  readonly id: number;
  /** The change that it belongs to: everything that one command did. Changes are numbered from 1. */
  readonly change: number;
  readonly at: Timestamp;
  readonly operation: Operation;
  readonly conversation: ConversationId | null;
  /** What it changed: a summary's id, or a few words. */
  readonly subject: string;
  /** The rows before and after; empty if no longer known. */
  readonly before: Touched;
  readonly after: Touched;
  /** Whether it corrected running totals. */
  readonly hasTotals: boolean;
  /** The change that it undoes. */
  readonly undoes: number | null;
  /** The change that undid it, if any. */
  readonly undoneBy: number | null;
  /** Summaries that a redaction marked, and conversations that a prune removed. */
  readonly marked: readonly SummaryId[];
  readonly removed: readonly ConversationId[];
}

/** The rows before, or after, a step. */
export interface Touched {
  /** Summaries that exist on this side; text and tokens are null if the step did not change them. */
  readonly summaries: readonly {
    readonly id: SummaryId;
    readonly text: string | null;
    readonly tokens: number | null;
  }[];
  /** The items at the changed places of the context. */
  readonly places: readonly (MessageId | SummaryId)[];
  /** Number of changed rows of each kind. */
  readonly rows: Readonly<Record<"summaries" | "messages" | "links" | "places", number>>;
}

export const forgottenMark = "[forgotten]";
