/**
 * The store's port: every read and write of a database, and the clock.
 *
 * Everything nondeterministic comes through a port, so a seed replays a whole run.
 */

import type {
  Changed,
  Copying,
  DerivedFacts,
  DissolvePlan,
  Extent,
  ForgetPlan,
  JournalFilter,
  ConversationFix,
  PartOf,
  PinPlan,
  Removed,
  RemovePlan,
  RewritePlan,
  Transplanted,
  TransplantPlan,
  Undone,
  UndoPlan,
  Written,
} from "./changes.ts";
import type {
  CallResult,
  CompactionRecord,
  ContextItem,
  Conversation,
  ConversationId,
  Entry,
  FileId,
  Grant,
  GrantId,
  JournalEntry,
  Level,
  Message,
  MessageId,
  NewCall,
  NewEntry,
  NewMessage,
  NewSummary,
  Pin,
  Role,
  Sources,
  StoredFile,
  Summary,
  SummaryId,
  Totals,
} from "./types.ts";

import type { DanglingReference, DatabaseFile, WholeDatabase } from "./database-file.ts";
import type { Outlines } from "./outlines.ts";
import type { NewPrompt, PastTexts, PromptEnd, PromptFilter, PromptRows, SummaryCall } from "./prompts.ts";
import type { SearchLimits, SearchRequest, SearchResult } from "./search.ts";
import type { Json } from "../base/json.ts";
import type { EmbedderRecord, NewVectors, PendingVectors, VectorTotals } from "./vectors.ts";
import type { Timestamp } from "../base/time.ts";

export type * from "./changes.ts";
export type { DanglingReference, DatabaseFile, Integrity, Merged, WholeDatabase } from "./database-file.ts";
export type * from "./embedder.ts";
export type * from "./language-model.ts";
export type * from "./prompts.ts";
export type * from "./search.ts";
export type * from "./vectors.ts";

export interface Clock {
  /** The current time. Never goes backwards within a process. */
  now(): Timestamp;
}

/** Identity of a session. Its segments share it. */
export interface SessionIdentity {
  readonly sessionId: string;
  readonly sessionKey?: string | null;
  readonly agentId?: string | null;
  /** Kept from when the session first named it; a later one does not replace it. */
  readonly folder?: string | null;
  /** The same for the session that started this one. */
  readonly parentSessionId?: string | null;
}

export interface SegmentOptions {
  /** Where it begins in the host's transcript; stored in the same transaction. */
  readonly hostCursor?: string;
  /** Carries over the summaries of the previous context that have at least this depth; none if left out. */
  readonly carryDepth?: number;
  /** The transcript line that begins it, as its first entry. If a segment already begins with it, that one is returned. */
  readonly begins?: NewEntry;
}

export interface ConversationFilter {
  readonly sessionId?: string;
  readonly sessionKey?: string;
  readonly agentId?: string;
  /** Only sessions of this folder and of folders inside it. */
  readonly folder?: string;
  /** Only sessions that this one started. */
  readonly parentSessionId?: string;
  /** The family of this conversation: all segments of its agent and session key, itself included. */
  readonly familyOf?: ConversationId;
  /** Only the segment to which the host is writing. */
  readonly active?: boolean;
  readonly includeHidden?: boolean;
  readonly limit?: number;
}

export interface AppendOptions {
  /** The position after these items in the host's transcript, or in imported files; stored in the same transaction. */
  readonly hostCursor?: string;
  readonly fileCursor?: string; // Ignored once a host has stored its own.
  /** The host's key of a whole turn. If the turn is already stored, nothing is written. */
  readonly turnKey?: string;
  /** Counts the user messages among these items as outside a committed turn. */
  readonly isCatchingUp?: boolean;
  /** How many messages the caller has read. If there are more or fewer by now, nothing is written. */
  readonly ifMessages?: number;
}

export interface Appended {
  /** Ids of the new messages, in order. */
  readonly messages: readonly MessageId[];
  /** Number of new entries outside the context. */
  readonly entries: number;
  /** Number of items already stored under their key. */
  readonly duplicates: number;
  /** Keys already stored with other content, which stays. */
  readonly differing: readonly string[];
  /** Whether the named turn had been stored before. `stale`: there are not `ifMessages` messages, and nothing was written. */
  readonly turn: "new" | "duplicate" | "unnamed" | "stale";
}

/** One item of a transcript, encoded for the store. */
export type Appendable =
  | { readonly kind: "message"; readonly message: NewMessage }
  | { readonly kind: "entry"; readonly entry: NewEntry };

export interface ContextWindow {
  /** Only items with a smaller (`before`) or larger (`after`) ordinal. */
  readonly before?: number;
  readonly after?: number;
  /** Only raw messages, or only summaries. */
  readonly kind?: ContextItem["kind"];
  readonly limit?: number;
  /** Which end a limit keeps; the result is oldest first either way. */
  readonly keep?: "oldest" | "newest";
}

export type MessageSelection =
  | { readonly ids: readonly MessageId[] }
  | { readonly conversation: ConversationId; readonly keys: readonly string[] }
  | {
      readonly conversation: ConversationId;
      readonly afterSeq?: number;
      readonly beforeSeq?: number;
      /** `since` is inclusive, `before` is exclusive. */
      readonly since?: Timestamp;
      readonly before?: Timestamp;
      readonly role?: Role;
      readonly limit?: number;
      readonly keep?: "oldest" | "newest";
    };

export interface PinFilter {
  /** Only what prompts may show: pinned, and not said on a branch that the host left. */
  readonly inForce?: boolean;
  readonly limit?: number;
}

export type SummarySelection =
  | { readonly ids: readonly SummaryId[] }
  | { readonly conversation: ConversationId; readonly depth?: number; readonly limit?: number };

export interface NewFile extends Pick<StoredFile, "conversation" | "name" | "mimeType" | "encoding" | "exploration"> {
  /** Base64 must be in canonical form, since reading returns that. */
  readonly content: string;
  /** The message that it is moved out of, which is about to be stored. */
  readonly message?: Pick<NewMessage, "key" | "at">;
  /** `conflict` if something was forgotten since this `forgets` of the conversation was read. */
  readonly forgets?: number;
}

/** A conversation with a copy of something that names a file, and the message, if it is one. */
export interface FileHolder {
  readonly conversation: ConversationId;
  readonly message: MessageId | null;
}

export interface LineRange {
  readonly fromLine: number;
  /** Inclusive; to the end if left out. */
  readonly toLine?: number;
  readonly charactersMax: number;
}

export type NewGrant = Pick<Grant, "conversations" | "tokenCap" | "expiresAt" | "parent">;

export type Spent =
  | { readonly kind: "granted"; readonly remaining: number }
  | { readonly kind: "refused"; readonly reason: "unknown" | "expired" | "revoked" | "exhausted" | "foreign" };

export interface UsageTotals {
  readonly calls: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Calls that were refused. */
  readonly failures: number;
  /** Calls without a recorded end: they are running, or their process died. */
  readonly open: number;
  /** Calls of embedding models, which are many and cheap, are counted and limited apart from the others. */
  readonly embedCalls: number;
  readonly embedTokens: number;
}

/** Limits of a call, checked in the transaction that records it. */
export interface CallBounds {
  /** Of embedding calls for one of these, of all others otherwise. */
  readonly callsMax: number;
  /** Calls since then count, also those dated up to two minutes ahead, by another machine; later dates are mistakes. */
  readonly windowSince: Timestamp;
  /** A credential rejected since then, with the same allowance, is not tried again; null to try anyway. */
  readonly breakerSince: Timestamp | null;
}

export type CallAdmission =
  | { readonly kind: "granted"; readonly id: number }
  | { readonly kind: "refused"; readonly refusal: "ceiling" | "breaker"; readonly message: string };

/** A provider that rejected our credential, with no success since. */
export interface OpenBreaker {
  readonly provider: string;
  readonly model: string;
  readonly at: Timestamp;
}

/** What a model answered about a message. */
export interface MapAnswer {
  readonly message: MessageId;
  readonly answer: Json;
  /** `forgets` of the conversation before the message was read. */
  readonly forgets: number;
}

/** Everything about a conversation that can be wrong, without texts. `inspect` reads it. */
export interface Skeleton {
  readonly conversation: Conversation;
  /** Totals computed from the rows. */
  readonly recounted: Totals;
  readonly context: readonly ContextItem[];
  /** Parallel arrays over all messages, by seq. */
  readonly messageIds: readonly number[];
  readonly messageSeqs: readonly number[];
  readonly messageTimes: readonly string[];
  readonly messageTokens: readonly number[];
  /** Messages outside the invariant: notes, and branches that the host left. */
  readonly asides: ReadonlySet<number>;
  /** Messages that were copied or came late, so that their order follows the context. */
  readonly copies: ReadonlySet<number>;
  readonly summaries: readonly SummaryFacts[];
  /** Without missing messages. */
  readonly sources: ReadonlyMap<SummaryId, Sources>;
  /** References to rows that are missing or belong to another conversation, except for those of `gone`. */
  readonly dangling: readonly DanglingReference[];
  /** Missing messages, with the summary made from them; null if the context names them, or once did. */
  readonly gone: readonly { readonly message: MessageId; readonly summary: SummaryId | null }[];
  readonly search: { readonly missing: readonly (MessageId | SummaryId)[]; readonly pending: number };
  /** File ids whose content cannot be read back. */
  readonly missingFiles: readonly FileId[];
  /** Files with more or fewer bytes than stored. */
  readonly alteredFiles: readonly { readonly id: FileId; readonly stored: number; readonly found: number }[];
  /** What is in the files folder in the place of content, such as `a symbolic link`, and is never read. */
  readonly oddFiles: readonly { readonly id: FileId; readonly what: string }[];
  /** Files in its folder that no row names. */
  readonly orphanedFiles: number;
}

export interface SummaryFacts
  extends DerivedFacts, Pick<Summary, "id" | "tokens" | "level" | "carriedFrom" | "rewriteReason"> {
  readonly empty: boolean;
  /** Its level is normal, but its text has the older program's mark of truncation. */
  readonly marked: boolean;
  /** Its level is normal, but its text has control characters, or a lost one beside a digit. */
  readonly garbled: boolean;
  /** It may be unused here: it was dissolved, or another conversation carries its text. */
  readonly released: boolean;
}

/** The summaries below one, in conversation order, each before its sources. */
export interface Manifest {
  readonly rows: readonly ManifestRow[];
  /** Messages below the root and their tokens; null if not everything was read. */
  readonly messages: { readonly count: number; readonly tokens: number } | null;
  /** Whether some summaries were not read. */
  readonly isBounded: boolean;
}

export interface ManifestRow extends Pick<Summary, "id" | "depth" | "tokens" | "earliestAt" | "latestAt"> {
  /** 1 for the sources of the root, 2 for theirs, and so on. */
  readonly level: number;
  /** The beginning of its text. */
  readonly opening: string;
  /** Messages below it and their tokens; null if not everything was read. */
  readonly messages: Manifest["messages"];
}

export interface StoreStatus {
  readonly path: string;
  readonly schemaVersion: number;
  readonly bytes: number;
  readonly conversations: number;
  readonly messages: number;
  readonly summaries: number;
  /** Number of summaries below the normal level, which could be rewritten. */
  readonly belowNormal: Readonly<Record<Exclude<Level, "normal">, number>>;
  readonly files: number;
  /** Rows that are not indexed yet, which search reads one by one. */
  readonly unindexed: number;
  /** For search by meaning, by model; empty without an embedder. */
  readonly vectors: readonly VectorTotals[];
  readonly embedders: readonly EmbedderRecord[];
}

/**
 * Every message, summary and context of one database.
 *
 * Every method is atomic, and no transaction is visible outside. A method throws `LcmError`: `not_found` for an id that
 * does not exist where one is required, `unavailable` when the database stays locked, `corrupt` when it cannot be read.
 * Work depends on what a call touches, never on how long the conversation is.
 */
export interface Store extends Outlines, WholeDatabase {
  // Reads.
  conversation(id: ConversationId): Promise<Conversation | null>;
  /** Newest activity first. */
  conversations(filter?: ConversationFilter): Promise<readonly Conversation[]>;
  /** Oldest first. */
  context(conversation: ConversationId, window?: ContextWindow): Promise<readonly ContextItem[]>;
  /** By seq; for ids and keys, in the given order, without missing ones. */
  messages(selection: MessageSelection): Promise<readonly Message[]>;
  /** Transcript lines that are not messages, with `from <= afterSeq < to`. */
  entries(conversation: ConversationId, from: number, to: number): Promise<readonly Entry[]>;
  /** For ids, in the given order, without missing ones; otherwise by depth, then time. */
  summaries(selection: SummarySelection): Promise<readonly Summary[]>;
  sources(ids: readonly SummaryId[]): Promise<ReadonlyMap<SummaryId, Sources>>;
  /** The sources of each as items of a context; without those of which one is missing or was set aside. */
  sourceItems(ids: readonly SummaryId[]): Promise<ReadonlyMap<SummaryId, readonly ContextItem[]>>;
  /** The summaries made directly from each. */
  derived(ids: readonly SummaryId[]): Promise<ReadonlyMap<SummaryId, readonly SummaryId[]>>;
  /** The summaries that represent a message: its leaf, then those made from it. */
  coveredBy(message: MessageId): Promise<readonly SummaryId[]>;
  /** The summaries of later segments that carry its text over. */
  carriedBy(id: SummaryId): Promise<readonly SummaryId[]>;
  /** These and every summary below them, each once, deepest last. */
  closure(ids: readonly SummaryId[]): Promise<readonly SummaryId[]>;
  /** Summaries that are neither in the context nor a source: the deepest first, then the newest. */
  unused(conversation: ConversationId, limit: number): Promise<readonly SummaryId[]>;
  /** What is below a summary, and how much it is to read. Reads at most `summariesMax` summaries. */
  manifest(root: SummaryId, summariesMax: number): Promise<Manifest>;
  /** Standing instructions, the newest first. */
  pins(conversation: ConversationId, filter?: PinFilter): Promise<readonly Pin[]>;
  search(request: SearchRequest, limits?: SearchLimits): Promise<SearchResult>;
  file(id: FileId): Promise<StoredFile | null>;
  files(conversation: ConversationId): Promise<readonly StoredFile[]>;
  /** Finds a conversation that names a file of another one, as a copy does. `among`: null for all that are not hidden. */
  holderOf(file: FileId, among: readonly ConversationId[] | null): Promise<FileHolder | null>;
  fileContent(id: FileId): Promise<string>;
  /** The path of the file that has the content, for people; null if it is not in a file. */
  filePath(id: FileId): Promise<string | null>;
  /** Lines of a stored text, and the number of lines in the file. */
  fileLines(id: FileId, range: LineRange): Promise<{ readonly text: string; readonly lines: number }>;
  grant(id: GrantId): Promise<Grant | null>;
  /** Calls dated after `until` are left out: a clock was ahead. */
  usageSince(since: Timestamp, until?: Timestamp): Promise<UsageTotals>;
  openBreakers(since: Timestamp, until?: Timestamp): Promise<readonly OpenBreaker[]>;
  /** Newest first. */
  compactions(conversation: ConversationId | null, limit: number): Promise<readonly CompactionRecord[]>;
  /** Newest first. */
  journal(filter: JournalFilter): Promise<readonly JournalEntry[]>;
  /** What undoing a change would revert, and what prevents it. `not_found` if there is no such change. */
  planUndo(change: number, summary?: SummaryId): Promise<UndoPlan>;
  /** `corrupt` if something below the source's summaries is missing. */
  planTransplant(source: ConversationId, target: ConversationId): Promise<Copying>;
  /** A draft saved for exactly this basis (the prompt). */
  draft(summary: SummaryId, basis: string): Promise<NewSummary | null>;
  /** What a model answered about each message when it was asked exactly this (the basis); without those not answered. */
  mapAnswers(basis: string, messages: readonly MessageId[]): Promise<ReadonlyMap<MessageId, Json>>;
  /** Recorded prompts by number, with their heads. */
  prompts(conversation: ConversationId, filter?: PromptFilter): Promise<PromptRows>;
  /** The numbers of notes between two messages, both excluded. */
  noteNumbers(conversation: ConversationId, afterSeq: number, beforeSeq: number): Promise<readonly number[]>;
  /**
   * Summaries and pins as they were before changes that the journal still has, of which some were undone; the newest
   * first. Those that exist only now are not among them.
   */
  pastTexts(conversation: ConversationId): Promise<PastTexts>;
  /** Summary calls between these times, by conversation if one is given. */
  summaryCalls(conversation: ConversationId, since: Timestamp): Promise<readonly SummaryCall[]>;
  extents(conversations: readonly ConversationId[]): Promise<readonly Extent[]>;
  status(): Promise<StoreStatus>;
  skeleton(conversation: ConversationId): Promise<Skeleton>;
  planForget(conversation: ConversationId | null, target: ForgetPlan["target"]): Promise<ForgetPlan>;
  /** Up to `rowsMax` messages of one conversation without a vector of this model; null if there are none. */
  pendingVectors(model: string, rowsMax: number): Promise<PendingVectors | null>;

  // Writes.
  /**
   * The active segment of this session, created if there is none. A segment of its id without a key gets the key, and
   * one of its key that no host has written to gets the id.
   */
  open(session: SessionIdentity): Promise<Conversation>;
  /** The newest segment of this session id (and key, if given), active or not; created if there is none. */
  openSession(session: SessionIdentity): Promise<Conversation>;
  /** A new segment, empty except for what it carries over. The previous one is no longer active. */
  openSegment(session: SessionIdentity, options?: SegmentOptions): Promise<Conversation>;
  setTitle(conversation: ConversationId, title: string | null): Promise<void>;
  /** Hides a conversation from recall, or shows it again. Deletes nothing. */
  setHidden(conversation: ConversationId, hidden: boolean): Promise<void>;
  /** Continues the conversation under another session id. */
  setSession(conversation: ConversationId, sessionId: string): Promise<void>;
  /** Does not change the revision. */
  setPromptBudget(conversation: ConversationId, tokens: number): Promise<void>;
  /**
   * Idempotent by key. New items are stored, added to the context and counted in the totals, all or none. What a message
   * of a host says that the proxy has stored already becomes an entry under the host's key, not a second message.
   */
  append(conversation: ConversationId, entries: readonly Appendable[], options?: AppendOptions): Promise<Appended>;
  /**
   * Replaces a run of the context by one summary of exactly that run, and pins what it found there. Stale if the run has changed, or if something was
   * forgotten since `forgets` of the conversation was read.
   */
  fold(
    conversation: ConversationId,
    run: readonly ContextItem[],
    summary: NewSummary & { readonly forgets?: number },
  ): Promise<Written<{ readonly summary: SummaryId }>>;
  /** Puts a summary's sources back in its place. The summary's row stays, unless purged. */
  dissolve(
    plan: DissolvePlan,
    partOf?: PartOf,
  ): Promise<Written<Changed & { readonly items: number; readonly shifted: number }>>;
  /** Replaces a summary's text; its id, sources and place stay. */
  rewrite(
    plan: RewritePlan,
    text: NewSummary,
    partOf?: PartOf,
  ): Promise<Written<Changed & { readonly revision: number }>>;
  /** Pins or unpins what a message says. Stale if something was forgotten since. */
  pin(plan: PinPlan, partOf?: PartOf): Promise<Written<Changed>>;
  /** Copies the source's summaries, and everything below them, to the front of the target's context. */
  transplant(plan: TransplantPlan): Promise<Transplanted>;
  fix(plan: ConversationFix, partOf?: PartOf): Promise<Written<Changed>>;
  /** Removes rows that belong to nothing, and search entries without a row. No change if there are none. */
  sweepOrphans(partOf?: PartOf): Promise<{ readonly change: number | null; readonly removed: number }>;
  /** Undoes a change, or what it did to one summary, if nothing depends on it. An undo can be undone. */
  undo(change: number, summary?: SummaryId): Promise<Undone>;
  /**
   * Saves a draft under its basis, and keeps the newest few of each summary until something is forgotten. Saves nothing
   * if something was forgotten since `forgets` of the conversation was read.
   */
  saveDraft(summary: SummaryId, basis: string, draft: NewSummary & { readonly forgets?: number }): Promise<void>;
  /**
   * Saves answers about messages under their basis, all at once, and keeps the newest few of each message until something
   * is forgotten. Leaves out messages that no longer exist, and those read before something was forgotten.
   */
  saveMapAnswers(basis: string, answers: readonly MapAnswer[]): Promise<void>;
  /** Deletes conversations with everything in them, except files that others still name. */
  remove(plan: RemovePlan): Promise<Written<Removed>>;
  /** Stale if the rows have changed since the plan. */
  forget(conversation: ConversationId | null, plan: ForgetPlan): Promise<Written<{ readonly removed: number }>>;
  /** Idempotent by content: a conversation stores the same content once, and the first description stays. */
  saveFile(file: NewFile): Promise<StoredFile>;
  issueGrant(grant: NewGrant): Promise<Grant>;
  /** Takes tokens from a grant for reading one conversation, or returns why not. */
  spendGrant(id: GrantId, conversation: ConversationId, tokens: number): Promise<Spent>;
  revokeGrant(id: GrantId): Promise<void>;
  /** Revokes every expired grant; returns how many. */
  sweepGrants(): Promise<number>;
  /** Records a model call before it is made, so that an interrupted call counts, or refuses it. */
  beginCall(call: NewCall, bounds: CallBounds): Promise<CallAdmission>;
  endCall(id: number, result: CallResult): Promise<void>;
  recordCompaction(record: CompactionRecord): Promise<void>;
  /** Records a prompt; returns its number. Does not change the revision. */
  recordPrompt(conversation: ConversationId, prompt: NewPrompt): Promise<number>;
  /** Records what came of a prompt; nothing if it is not kept. */
  endPrompt(conversation: ConversationId, number: number, end: PromptEnd): Promise<void>;
  /** Stale if something was forgotten, or other vectors were stored, since the messages were read. */
  saveVectors(vectors: NewVectors): Promise<Written<{ readonly made: number }>>;
  /** Removes the vectors of every model but this one; all, if it is null. Returns how many models had some. */
  dropVectors(except: string | null): Promise<number>;
  /** Records how many texts an embedder has embedded, and why it failed; null if it did not. */
  recordEmbedder(record: Omit<EmbedderRecord, "at">): Promise<void>;
  /** Indexes up to `rowsMax` rows for search; returns how many remain. */
  index(rowsMax: number): Promise<number>;

  /** Absent from a store that is not a file. */
  readonly databaseFile?: DatabaseFile;
  close(): Promise<void>;
}
