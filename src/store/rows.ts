/** Converts rows to the types of the core. */

import { isDamaged } from "./checksums.ts";
import {
  conversationIn,
  levels,
  messageIdOf,
  numbersPerConversation,
  partTypes,
  roles,
  seqOf,
} from "../core/model/types.ts";
import type {
  Aside,
  CompactionRecord,
  ContextItem,
  Conversation,
  ConversationId,
  Damage,
  Entry,
  FileId,
  Grant,
  GrantId,
  Message,
  MessageId,
  MovedContent,
  Part,
  StoredFile,
  Summary,
  SummaryId,
} from "../core/model/types.ts";
import type { OpenBreaker } from "../core/model/store.ts";
import { int, text, textOrNull, type Row } from "./script.ts";
import type { Timestamp } from "../core/base/time.ts";

export const asConversation = (id: number): ConversationId => id as ConversationId;
export const asMessage = (id: number): MessageId => id as MessageId;
export const asSummary = (id: string): SummaryId => id as SummaryId;

/** The ids of a conversation's messages are between these two. */
export const idsOf = (id: ConversationId): { readonly after: MessageId; readonly before: MessageId } => ({
  after: messageIdOf(id, 0),
  before: messageIdOf(id, numbersPerConversation),
});

export const toSummaryId = (row: Row): SummaryId => asSummary(text(row, "summary_id"));

export { agentInKey as agentOf } from "../core/model/session-pattern.ts";

export const time = (row: Row, column: string): Timestamp => text(row, column) as Timestamp;
export const timeOrNull = (row: Row, column: string): Timestamp | null => textOrNull(row, column) as Timestamp | null;

/** Returns a function that checks a value against a list, as the table's CHECK does. A damaged row reads as the first word. */
export function wordOf<T extends string>(allowed: readonly [T, ...T[]]): (value: string, damage?: Damage) => T {
  const known = new Map<string, T>(allowed.map((word) => [word, word]));
  return (value, damage = {}) => {
    const found = known.get(value) ?? (damage.isDamaged === true ? allowed[0] : undefined);
    if (found === undefined) throw new TypeError(`${value} is not one of ${allowed.join(", ")}`);
    return found;
  };
}

export const asRole = wordOf(roles);
const asPartType = wordOf(partTypes);
export const asLevel = wordOf(levels);

export const toConversation = (row: Row): Conversation => ({
  id: asConversation(int(row, "conversation_id")),
  sessionId: text(row, "session_id"),
  sessionKey: textOrNull(row, "session_key"),
  agentId: textOrNull(row, "agent_id"),
  folder: textOrNull(row, "folder"),
  parentSessionId: textOrNull(row, "parent_session"),
  active: int(row, "active") === 1,
  hidden: int(row, "hidden") === 1,
  title: textOrNull(row, "title"),
  createdAt: time(row, "created_at"),
  updatedAt: time(row, "updated_at"),
  lastMessageAt: timeOrNull(row, "last_message_at"),
  totals: {
    messages: int(row, "message_count"),
    messageTokens: int(row, "message_tokens"),
    summaries: int(row, "summary_count"),
    contextItems: int(row, "context_items"),
    contextTokens: int(row, "context_tokens"),
    contextMessages: int(row, "context_messages"),
    contextMessageTokens: int(row, "context_message_tokens"),
  },
  revision: int(row, "revision"),
  ...cursorsIn(textOrNull(row, "host_cursor")),
  forgets: int(row, "forgets"),
  caughtUp: int(row, "caught_up"),
  promptBudget: row["prompt_budget"] === null ? null : int(row, "prompt_budget"),
});

/** One column holds either: an import stores a cursor only until a host does. */
const filesPrefix = "files:";
export const fileCursorToText = (cursor: string): string => `${filesPrefix}${cursor}`;

export const cursorsIn = (stored: string | null): Pick<Conversation, "hostCursor" | "fileCursor"> =>
  stored?.startsWith(filesPrefix) === true
    ? { hostCursor: null, fileCursor: stored.slice(filesPrefix.length) }
    : { hostCursor: stored, fileCursor: null };

export function toContextItem(row: Row): ContextItem {
  const place = { ordinal: int(row, "ordinal"), tokens: int(row, "token_count"), depth: int(row, "depth") };
  const summary = textOrNull(row, "summary_id");
  return summary === null
    ? { kind: "message", id: asMessage(int(row, "message_id")), ...place }
    : { kind: "summary", id: asSummary(summary), ...place };
}

/** The texts of the parts are slices of the message's text. */
export function toMessage(row: Row, parts: readonly Row[]): Message {
  return toMessageWith(row, parts, isDamaged("messages", row, parts) ? damaged : {});
}

/** For prompts, which read hundreds of messages at a time: the checksum is compared only if the row makes no sense. */
export function toMessageUnchecked(row: Row, parts: readonly Row[]): Message {
  try {
    return toMessageWith(row, parts, {});
  } catch {
    return toMessage(row, parts); // Throws the same again if the row is as it was stored.
  }
}

function toMessageWith(row: Row, parts: readonly Row[], damage: Damage): Message {
  const content = text(row, "content");
  const id = asMessage(int(row, "message_id"));
  return {
    id,
    conversation: conversationIn(id),
    seq: seqOf(id),
    key: text(row, "message_key"),
    role: asRole(text(row, "role"), damage),
    text: content,
    parts: toParts(content, parts, damage),
    tokens: int(row, "token_count"),
    at: time(row, "created_at"),
    envelope: textOrNull(row, "envelope"),
    entry: textOrNull(row, "entry"),
    parentKey: textOrNull(row, "parent_key"),
    aside: textOrNull(row, "aside") as Aside | null,
    moved: toMoved(textOrNull(row, "moved"), damage),
    ...damage,
  };
}

const damaged: Damage = { isDamaged: true };

const toMoved = (json: string | null, damage: Damage): readonly MovedContent[] =>
  json === null ? [] : (parse(json, damage) as readonly MovedContent[]);

/** Of a damaged row, JSON that is none reads as an empty list. */
function parse(json: string, { isDamaged: isOfDamaged }: Damage): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    if (isOfDamaged === true) return [];
    throw error;
  }
}

function toParts(content: string, rows: readonly Row[], damage: Damage): readonly Part[] {
  // Messages of the older program may have a text without parts.
  if (rows.length === 0) return content === "" ? [] : [{ ...plain, text: content }];
  let from = 0;
  return rows.map((row) => {
    const length = row["text_length"];
    const own = typeof length === "number" ? content.slice(from, from + length) : null;
    if (own !== null) from += own.length + 1;
    return {
      type: asPartType(text(row, "part_type"), damage),
      text: own,
      kept: textOrNull(row, "text_content"),
      toolCallId: textOrNull(row, "tool_call_id"),
      toolName: textOrNull(row, "tool_name"),
      metadata: textOrNull(row, "metadata"),
    };
  });
}

const plain: Part = { type: "text", text: null, kept: null, toolCallId: null, toolName: null, metadata: null };

export const toEntry = (row: Row): Entry => ({
  key: text(row, "entry_key"),
  type: text(row, "entry_type"),
  at: timeOrNull(row, "created_at"),
  raw: text(row, "raw"),
  parentKey: textOrNull(row, "parent_key"),
  afterSeq: int(row, "after_seq"),
  ...damageOf("transcript_entries", row),
});

const damageOf = (table: "summaries" | "transcript_entries", row: Row): Damage =>
  isDamaged(table, row) ? damaged : {};

export const toSummary = (row: Row): Summary => toSummaryWith(row, damageOf("summaries", row));

const toSummaryWith = (row: Row, damage: Damage): Summary => ({
  ...damage,
  id: asSummary(text(row, "summary_id")),
  conversation: asConversation(int(row, "conversation_id")),
  depth: int(row, "depth"),
  text: text(row, "content"),
  tokens: int(row, "token_count"),
  level: asLevel(text(row, "level")),
  earliestAt: timeOrNull(row, "earliest_at"),
  latestAt: timeOrNull(row, "latest_at"),
  descendants: int(row, "descendant_count"),
  fileIds: toFileIds(text(row, "file_ids"), damage),
  model: textOrNull(row, "model"),
  createdAt: time(row, "created_at"),
  revision: int(row, "revision"),
  previousContext: textOrNull(row, "previous_context"),
  carriedFrom: textOrNull(row, "carried_from") as SummaryId | null,
  rewriteReason: textOrNull(row, "rewrite_reason"),
});

const toFileIds = (json: string, damage: Damage): readonly FileId[] => {
  const value = parse(json, damage);
  return Array.isArray(value) ? value.filter((id): id is FileId => typeof id === "string") : [];
};

const asEncoding = wordOf(["utf8", "base64"]);

export const toStoredFile = (row: Row): StoredFile => ({
  id: text(row, "file_id") as FileId,
  conversation: asConversation(int(row, "conversation_id")),
  name: textOrNull(row, "file_name"),
  mimeType: textOrNull(row, "mime_type"),
  bytes: Number(row["byte_size"] ?? 0),
  lines: row["line_count"] === null ? null : int(row, "line_count"),
  encoding: asEncoding(text(row, "encoding")),
  storageUri: text(row, "storage_uri"),
  exploration: textOrNull(row, "exploration_summary"),
  createdAt: time(row, "created_at"),
  messageKey: textOrNull(row, "message_key"),
});

export const toGrant = (row: Row): Grant => {
  const conversations: unknown = JSON.parse(text(row, "conversation_ids"));
  return {
    id: text(row, "grant_id") as GrantId,
    conversations: Array.isArray(conversations)
      ? conversations.filter((id) => typeof id === "number").map(asConversation)
      : [],
    tokenCap: int(row, "token_cap"),
    tokensUsed: int(row, "tokens_used"),
    issuedAt: time(row, "issued_at"),
    expiresAt: time(row, "expires_at"),
    revokedAt: timeOrNull(row, "revoked_at"),
    parent: textOrNull(row, "parent_grant_id") as GrantId | null,
  };
};

export const toOpenBreaker = (row: Row): OpenBreaker => ({
  provider: text(row, "provider"),
  model: text(row, "model"),
  at: time(row, "at"),
});

const asMode = wordOf(["incremental", "sweep", "until_under"]);

export const toCompaction = (row: Row): CompactionRecord => ({
  conversation: asConversation(int(row, "conversation_id")),
  at: time(row, "at"),
  mode: asMode(text(row, "mode")),
  asked: int(row, "asked") === 1,
  outcome: text(row, "outcome"),
  message: text(row, "message"),
  passes: int(row, "passes"),
  tokensBefore: int(row, "tokens_before"),
  tokensAfter: int(row, "tokens_after"),
  durationMs: int(row, "duration_ms"),
});
