/**
 * The contracts between the core and the world. A port says what it promises: whether it may throw, whether it is
 * atomic, what may be absent. Everything nondeterministic comes through here, so a seed replays a whole run.
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
  Role,
  Sources,
  StoredFile,
  Summary,
  SummaryId,
  Totals,
} from "./types.ts";

import type { DanglingReference, DatabaseFile } from "./database-file.ts";
import type { SearchLimits, SearchRequest, SearchResult } from "./search.ts";
import type { Timestamp } from "../base/time.ts";

export type * from "./changes.ts";
export type { DanglingReference, DatabaseFile, Integrity, Merged } from "./database-file.ts";
export type * from "./language-model.ts";
export type * from "./search.ts";

export interface Clock {
  /** The current time. Never goes backwards within a process. */
  now(): Timestamp;
}

// ── The store ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Identity of a session. Several conversations can carry the same: its segments. */
export interface SessionIdentity {
  readonly sessionId: string;
  readonly sessionKey?: string | null;
  readonly agentId?: string | null;
}

export interface SegmentOptions {
  /** The place in the host's transcript from which on it is this segment; stored in the same transaction. */
  readonly hostCursor?: string;
  /** The texts of the previous context's summaries of at least this depth are carried over; none if left out. */
  readonly carryDepth?: number;
  /** The line of the transcript that begins it, its first entry. A segment that begins with it already is returned. */
  readonly begins?: NewEntry;
}

export interface ConversationFilter {
  readonly sessionId?: string;
  readonly sessionKey?: string;
  readonly agentId?: string;
  /** The family of this conversation: all segments of its agent and session key, itself included. */
  readonly familyOf?: ConversationId;
  /** Only the segment that the host is writing to. */
  readonly active?: boolean;
  readonly includeHidden?: boolean;
  readonly limit?: number;
}

export interface AppendOptions {
  /** Position in the host's transcript that this append reaches; stored in the same transaction. */
  readonly hostCursor?: string;
  /** The host's key of a whole turn. An append that names one already stored writes nothing. */
  readonly turnKey?: string;
  /** What users said in it came outside a turn that the host committed, and is counted as such. */
  readonly isCatchingUp?: boolean;
}

export interface Appended {
  /** Ids of the messages that were new, in order. */
  readonly messages: readonly MessageId[];
  /** How many entries outside the context were new. */
  readonly entries: number;
  /** How many were already stored under their key. */
  readonly duplicates: number;
  /** Keys already stored with another content. What was stored stays. */
  readonly differing: readonly string[];
  /** Whether the named turn had been stored before. */
  readonly turn: "new" | "duplicate" | "unnamed";
}

/** One thing of a transcript, in the order in which the host wrote it. */
export type Appendable =
  | { readonly kind: "message"; readonly message: NewMessage }
  | { readonly kind: "entry"; readonly entry: NewEntry };

export interface ContextWindow {
  /** Only items with a smaller (larger) ordinal. */
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

export type SummarySelection =
  | { readonly ids: readonly SummaryId[] }
  | { readonly conversation: ConversationId; readonly depth?: number; readonly limit?: number };

export interface NewFile extends Pick<StoredFile, "conversation" | "name" | "mimeType" | "encoding" | "exploration"> {
  /** Base64 must be the canonical form: what is read back is equal to what was given. */
  readonly content: string;
  /** What it is moved out of, about to be stored: the file has its time, and names it. */
  readonly message?: Pick<NewMessage, "key" | "at">;
}

/** A conversation that holds a copy of what names a file, and which message that is, if it is one. */
export interface FileHolder {
  readonly conversation: ConversationId;
  readonly message: MessageId | null;
}

export interface LineRange {
  readonly fromLine: number;
  /** The last one, included; to the end if left out. */
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
  /** Calls whose end was never recorded: under way, or their process died. */
  readonly open: number;
}

/** What a call must respect, checked in the transaction that records it. */
export interface CallBounds {
  readonly callsMax: number;
  /** Calls since then count against the maximum. */
  readonly windowSince: Timestamp;
  /** A credential refused since then is not tried again; null tries all the same. */
  readonly breakerSince: Timestamp | null;
}

export type CallAdmission =
  | { readonly kind: "granted"; readonly id: number }
  | { readonly kind: "refused"; readonly refusal: "ceiling" | "breaker"; readonly message: string };

/** A provider that does not accept our credential: refused with `auth`, and nothing answered since. */
export interface OpenBreaker {
  readonly provider: string;
  readonly model: string;
  readonly at: Timestamp;
}

/** Everything about one conversation that can be wrong, without texts: what `inspect` reads. */
export interface Skeleton {
  readonly conversation: Conversation;
  /** Totals as the rows themselves add up. */
  readonly recounted: Totals;
  readonly context: readonly ContextItem[];
  /** Parallel arrays over all messages, by seq. */
  readonly messageIds: readonly number[];
  readonly messageSeqs: readonly number[];
  readonly messageTimes: readonly string[];
  readonly messageTokens: readonly number[];
  /** Messages outside the invariant: notes, branches the host left. */
  readonly asides: ReadonlySet<number>;
  /** Messages that were copied from another conversation or came late: their order comes from the context. */
  readonly copies: ReadonlySet<number>;
  readonly summaries: readonly SummaryFacts[];
  /** Without messages that are gone. */
  readonly sources: ReadonlyMap<SummaryId, Sources>;
  /** References to rows that do not exist, or that belong to another conversation, but for those of `gone`. */
  readonly dangling: readonly DanglingReference[];
  /** Messages without a row, by the summary that was made from them; null where the context names them, or once did. */
  readonly gone: readonly { readonly message: MessageId; readonly summary: SummaryId | null }[];
  readonly search: {
    readonly missing: readonly (MessageId | SummaryId)[];
    readonly pending: number;
  };
  /** File ids whose content cannot be read back. */
  readonly missingFiles: readonly FileId[];
  /** Files with more or fewer bytes than were stored. */
  readonly alteredFiles: readonly { readonly id: FileId; readonly stored: number; readonly found: number }[];
  /** Files in its folder that no row names. */
  readonly orphanedFiles: number;
}

export interface SummaryFacts
  extends DerivedFacts, Pick<Summary, "id" | "tokens" | "level" | "carriedFrom" | "rewriteReason"> {
  readonly empty: boolean;
  /** Its text is called normal, and has the older program's mark of one that was cut short. */
  readonly marked: boolean;
  /** It is called normal, and holds control characters, or a lost one beside a digit. */
  readonly garbled: boolean;
  /** Nothing here need use it: it was dissolved, or nothing does and another conversation carries its text. */
  readonly released: boolean;
}

/** The summaries below one, each before what it was made from, in the order of the conversation. */
export interface Manifest {
  readonly rows: readonly ManifestRow[];
  /** Messages below the root and their tokens; null when not all of it was looked at. */
  readonly messages: { readonly count: number; readonly tokens: number } | null;
  /** Whether there are summaries that were not looked at. */
  readonly isBounded: boolean;
}

export interface ManifestRow extends Pick<Summary, "id" | "depth" | "tokens" | "earliestAt" | "latestAt"> {
  /** 1 for what the root was made from, 2 for what that was made from, … */
  readonly level: number;
  /** How its text begins. */
  readonly opening: string;
  /** Messages below it and their tokens; null when not all of it was looked at. */
  readonly messages: Manifest["messages"];
}

export interface StoreStatus {
  readonly path: string;
  readonly schemaVersion: number;
  readonly bytes: number;
  readonly conversations: number;
  readonly messages: number;
  readonly summaries: number;
  /** Summaries whose text could be better, by how it was made. */
  readonly belowNormal: Readonly<Record<Exclude<Level, "normal">, number>>;
  readonly files: number;
  /** Rows that search reads one by one because they are not indexed yet. */
  readonly unindexed: number;
}

/**
 * Every message, summary and context of one database.
 *
 * Every method is atomic, and no transaction is visible outside. A method throws `LcmError`: `not_found` for an id that
 * does not exist where one is required, `unavailable` when the database stays locked, `corrupt` when it cannot be read.
 * Work depends on what a call touches, never on how long the conversation is.
 */
export interface Store {
  // Reads.
  conversation(id: ConversationId): Promise<Conversation | null>;
  /** Newest activity first. */
  conversations(filter?: ConversationFilter): Promise<readonly Conversation[]>;
  /** The ordered refs that the model sees, oldest first. */
  context(conversation: ConversationId, window?: ContextWindow): Promise<readonly ContextItem[]>;
  /** By seq; for ids and keys, in the order asked, absent ones left out. */
  messages(selection: MessageSelection): Promise<readonly Message[]>;
  /** Lines of the transcript that are no messages, with `from <= afterSeq < to`. */
  entries(conversation: ConversationId, from: number, to: number): Promise<readonly Entry[]>;
  /** For ids, in the order asked, absent ones left out; else by depth, then time. */
  summaries(selection: SummarySelection): Promise<readonly Summary[]>;
  /** What each was made from, in order. */
  sources(ids: readonly SummaryId[]): Promise<ReadonlyMap<SummaryId, Sources>>;
  /** The summaries made from each. */
  derived(ids: readonly SummaryId[]): Promise<ReadonlyMap<SummaryId, readonly SummaryId[]>>;
  /** The summaries that stand for a message, its leaf first, then what was made from it. */
  coveredBy(message: MessageId): Promise<readonly SummaryId[]>;
  /** The summaries of later segments that carry its text over. */
  carriedBy(id: SummaryId): Promise<readonly SummaryId[]>;
  /** These and every summary below them, each once, deepest last. */
  closure(ids: readonly SummaryId[]): Promise<readonly SummaryId[]>;
  /** Summaries that the context does not show and nothing was made from: the deepest first, of each depth the newest. */
  unused(conversation: ConversationId, limit: number): Promise<readonly SummaryId[]>;
  /** What lies below a summary and what reading it would take; at most so many summaries are looked at. */
  manifest(root: SummaryId, summariesMax: number): Promise<Manifest>;
  search(request: SearchRequest, limits?: SearchLimits): Promise<SearchResult>;
  file(id: FileId): Promise<StoredFile | null>;
  files(conversation: ConversationId): Promise<readonly StoredFile[]>;
  /** Who of these names a file of another conversation, because it was copied; null stands for all that are not hidden. */
  holderOf(file: FileId, among: readonly ConversationId[] | null): Promise<FileHolder | null>;
  /** The content of a stored file, in its encoding. */
  fileContent(id: FileId): Promise<string>;
  /** Lines of a stored text, from 1; at most so many characters of them, and how many lines there are in all. */
  fileLines(id: FileId, range: LineRange): Promise<{ readonly text: string; readonly lines: number }>;
  grant(id: GrantId): Promise<Grant | null>;
  usageSince(since: Timestamp): Promise<UsageTotals>;
  openBreakers(since: Timestamp): Promise<readonly OpenBreaker[]>;
  /** Newest first. */
  compactions(conversation: ConversationId | null, limit: number): Promise<readonly CompactionRecord[]>;
  /** Newest first. */
  journal(filter: JournalFilter): Promise<readonly JournalEntry[]>;
  /** What taking back a change would revert, and what stands in its way. `not_found` if there is no such change. */
  planUndo(change: number, summary?: SummaryId): Promise<UndoPlan>;
  /** What a transplant would copy. `corrupt` where what is below the source's summaries is not all there. */
  planTransplant(source: ConversationId, target: ConversationId): Promise<Copying>;
  /** A draft kept for exactly this basis: what the model was asked. */
  draft(summary: SummaryId, basis: string): Promise<NewSummary | null>;
  /** What these conversations take. */
  extents(conversations: readonly ConversationId[]): Promise<readonly Extent[]>;
  status(): Promise<StoreStatus>;
  skeleton(conversation: ConversationId): Promise<Skeleton>;
  planForget(conversation: ConversationId | null, target: ForgetPlan["target"]): Promise<ForgetPlan>;

  // Writes.
  /**
   * The active segment of this session, made if there is none. One of its id that had no key yet is given the key, and
   * one of its key that no host has written to is given the id.
   */
  open(session: SessionIdentity): Promise<Conversation>;
  /** The newest segment of exactly this session id (and key, if one is given), active or not; made if there is none. */
  openSession(session: SessionIdentity): Promise<Conversation>;
  /** A new segment of this session, empty but for what it carries over; the previous one is no longer active. */
  openSegment(session: SessionIdentity, options?: SegmentOptions): Promise<Conversation>;
  setTitle(conversation: ConversationId, title: string | null): Promise<void>;
  /** Hides a conversation from recall, or shows it again. Deletes nothing. */
  setHidden(conversation: ConversationId, hidden: boolean): Promise<void>;
  /** The host goes on with it under another session id. */
  setSession(conversation: ConversationId, sessionId: string): Promise<void>;
  /** Remembers what a prompt of it may take. Writes nothing if that is known already, and no revision changes. */
  setPromptBudget(conversation: ConversationId, tokens: number): Promise<void>;
  /** Idempotent by key. What is new is stored, appears in the context, and counts in the totals, or nothing is. */
  append(conversation: ConversationId, entries: readonly Appendable[], options?: AppendOptions): Promise<Appended>;
  /**
   * Replaces a run of the context by one summary that stands for exactly that run. Stale if the run has changed, or if
   * something was forgotten since `forgets` of the conversation was read.
   */
  fold(
    conversation: ConversationId,
    run: readonly ContextItem[],
    summary: NewSummary,
    forgets?: number,
  ): Promise<Written<{ readonly summary: SummaryId }>>;
  /** Puts a summary's sources back in its place. The summary's row stays, unless it is purged. */
  dissolve(
    plan: DissolvePlan,
    partOf?: PartOf,
  ): Promise<Written<Changed & { readonly items: number; readonly shifted: number }>>;
  /** New text for a summary, its id, sources and place unchanged. */
  rewrite(
    plan: RewritePlan,
    text: NewSummary,
    partOf?: PartOf,
  ): Promise<Written<Changed & { readonly revision: number }>>;
  /** Deep copy of the source's summaries, and all below them, in front of the target's context. */
  transplant(plan: TransplantPlan): Promise<Transplanted>;
  fix(plan: ConversationFix, partOf?: PartOf): Promise<Written<Changed>>;
  /** Rows that belong to nothing, and search entries without a row, in all of the file; null if there were none. */
  sweepOrphans(partOf?: PartOf): Promise<{ readonly change: number | null; readonly removed: number }>;
  /** Takes back a change, all of it or what it did to one summary, if nothing stands on it. Can be taken back itself. */
  undo(change: number, summary?: SummaryId): Promise<Undone>;
  /**
   * Keeps a draft under its basis, the newest few of each summary, until something is forgotten. Keeps nothing if
   * something was forgotten since `forgets` of the conversation was read.
   */
  saveDraft(summary: SummaryId, basis: string, draft: NewSummary, forgets?: number): Promise<void>;
  /** Deletes conversations with all that is theirs. What others still name of their files stays. */
  remove(plan: RemovePlan): Promise<Written<Removed>>;
  /** Removes what the plan names; stale if the rows have changed since. */
  forget(conversation: ConversationId | null, plan: ForgetPlan): Promise<Written<{ readonly removed: number }>>;
  /** Idempotent by content: the same in the same conversation is the file that is there already, unchanged. */
  saveFile(file: NewFile): Promise<StoredFile>;
  issueGrant(grant: NewGrant): Promise<Grant>;
  /** Takes tokens from a grant for reading one conversation, or says why not. */
  spendGrant(id: GrantId, conversation: ConversationId, tokens: number): Promise<Spent>;
  revokeGrant(id: GrantId): Promise<void>;
  /** Revokes every grant that has run out; tells how many. */
  sweepGrants(): Promise<number>;
  /** Records a model call before it is made, or says why it may not be made. So a call cut short is a row too. */
  beginCall(call: NewCall, bounds: CallBounds): Promise<CallAdmission>;
  endCall(id: number, result: CallResult): Promise<void>;
  recordCompaction(record: CompactionRecord): Promise<void>;
  /** Indexes up to this many rows for search; tells how many remain. */
  index(rowsMax: number): Promise<number>;

  /** Absent from a store that is not a file. */
  readonly databaseFile?: DatabaseFile;
  close(): Promise<void>;
}
