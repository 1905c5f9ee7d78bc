/**
 * Appends messages and other transcript entries to a conversation, each once, and shows the messages in its context.
 *
 * Each entry is classified first, by its key and its parent; then it is stored. One call is one transaction.
 */

import { textOfParts } from "../../core/messages/codec.ts";
import { checkAmount, LcmError } from "../../core/base/errors.ts";
import { forgottenMark, heardPrefix, messageIdOf, seqOf, tokensMax } from "../../core/model/types.ts";
import type { ConversationId, MessageId, MovedContent, NewEntry, NewMessage, Part } from "../../core/model/types.ts";
import type { Appendable, Appended, AppendOptions } from "../../core/model/store.ts";
import { reindex } from "../search/indexing.ts";
import { entryChecksum, messageChecksum } from "../checksums.ts";
import { checkNumber } from "../registry.ts";
import { int, sql, text, textOrNull, type Row, type Script, type ScriptDeps, type Statement } from "../script.ts";
import { cursorsIn, fileCursorToText } from "../rows.ts";
import { adjustTotals } from "../totals.ts";
import { isTimestamp, type Timestamp } from "../../core/base/time.ts";
import { fillGap, freeLostId, gapOf, gapsFor, isLeft, lastOrdinal, noteGap, placeLate } from "./late-entries.ts";
import type { Gap } from "./late-entries.ts";
import { behindHeard, findHeard, lineOf, type HeardPlace } from "./heard.ts";
import { rewind, type Rewound } from "./rewind.ts";

export function* append(
  deps: ScriptDeps,
  id: ConversationId,
  appended: readonly Appendable[],
  options: AppendOptions = {},
): Script<Appended & Pick<Rewound, "gone">> {
  for (const item of appended) if (item.kind === "message") checkMessage(item.message);
  const { end, known, isStoredTurn, hasHeard } = yield* startOf(deps, id, appended, options);
  if (options.ifMessages !== undefined && options.ifMessages !== end.messages)
    return { messages: [], entries: 0, duplicates: 0, differing: [], turn: "stale", gone: [] };
  if (isStoredTurn)
    return { messages: [], entries: 0, duplicates: appended.length, differing: [], turn: "duplicate", gone: [] };
  const stored: Stored = { messages: [], entries: 0, tokens: 0, shown: 0, shownTokens: 0, userMessages: 0, gone: [] };
  const differing: string[] = [];
  const heard = hasHeard ? yield* findHeard(id, appended, known) : null;
  for (const item of appended) {
    const { key } = linkOf(item);
    const same = known.get(key);
    if (same === undefined) {
      known.set(key, contentOf(item));
      const place = heard?.get(key);
      if (place === undefined) yield* store(deps, end, stored, item);
      else yield* storeBeside(end, stored, item, place);
      // A forgotten entry comes again with every replay, and stays forgotten.
    } else if (same !== contentOf(item) && !same.includes(forgottenMark)) differing.push(key);
  }
  yield* send(end);
  if (options.turnKey !== undefined) {
    yield sql`INSERT INTO turns (conversation_id, turn_key) VALUES (${id}, ${options.turnKey})`;
  }
  const totals = {
    messages: stored.messages.length,
    messageTokens: stored.tokens,
    contextItems: stored.shown,
    contextTokens: stored.shownTokens,
    contextMessages: stored.shown,
    contextMessageTokens: stored.shownTokens,
  };
  yield* adjustTotals({ now: () => end.now }, id, totals, {
    next_seq: end.nextSeq,
    // Only if it changes: writing the column would write its index, too.
    ...(end.isIndexed && stored.messages.length > 0 ? { unindexed: 1 } : {}),
    head_key: end.head,
    last_message_at: end.latest === "" ? null : end.latest,
    ...cursorAfter(end, options),
    ...(options.isCatchingUp === true ? { caught_up: end.caughtUp + stored.userMessages } : {}),
  });
  return {
    messages: stored.messages,
    entries: stored.entries,
    duplicates: appended.length - stored.messages.length - stored.entries,
    differing,
    turn: options.turnKey === undefined ? "unnamed" : "new",
    gone: stored.gone,
  };
}

/** What the call says about how far a transcript was read. */
function cursorAfter({ hasHost }: End, { hostCursor, fileCursor }: AppendOptions): { readonly host_cursor?: string } {
  if (hostCursor !== undefined) return { host_cursor: hostCursor };
  return fileCursor === undefined || hasHost ? {} : { host_cursor: fileCursorToText(fileCursor) };
}

function checkMessage({ key, tokens, at }: NewMessage): void {
  checkAmount(`the number of tokens of message ${key}`, tokens, tokensMax);
  if (!isTimestamp(at)) throw new LcmError("invalid", `the time of message ${key} is ${at}, not UTC with milliseconds`);
}

/** Where a conversation ends, which moves on with every entry. */
interface End {
  readonly id: ConversationId;
  nextSeq: number;
  /** Key of the newest entry, and what it was when the call began. */
  head: string | null;
  readonly headBefore: string | null;
  /** Time of the newest message; empty if there is none. */
  latest: string;
  /** The last place of the context. */
  ordinal: number;
  gaps: readonly Gap[];
  readonly caughtUp: number;
  readonly isIndexed: boolean;
  /** Whether a host has stored how far its transcript was read. */
  readonly hasHost: boolean;
  readonly messages: number;
  readonly now: Timestamp;
  /** Rows that nothing has needed yet. They are stored together, which saves a server most of the work. */
  unsent: Statement[];
}

interface Start {
  readonly end: End;
  /** Those of the keys that are stored already, each with its content. */
  readonly known: Map<string, string>;
  readonly isStoredTurn: boolean;
  /** Whether a proxy has stored something here. */
  readonly hasHeard: boolean;
}

function* startOf(
  deps: ScriptDeps,
  id: ConversationId,
  appended: readonly Appendable[],
  { turnKey }: AppendOptions,
): Script<Start> {
  const keys = appended.map((item) => linkOf(item).key);
  const rows = yield [
    sql`SELECT next_seq, head_key, last_message_at, caught_up, unindexed, message_count, host_cursor,
               (SELECT max(ordinal) FROM context_items WHERE conversation_id = ${id}) AS last_ordinal,
               EXISTS (SELECT 1 FROM missing_parents WHERE conversation_id = ${id}) AS has_gaps,
               EXISTS (SELECT 1 FROM turns WHERE conversation_id = ${id} AND turn_key = ${turnKey ?? null}) AS is_stored,
               EXISTS (SELECT 1 FROM messages WHERE conversation_id = ${id} AND message_key >= ${heardPrefix}
                         AND message_key < ${behindHeard}) AS has_heard
        FROM conversations WHERE conversation_id = ${id}`,
    sql`SELECT message_key AS key, content FROM messages
        WHERE conversation_id = ${id} AND message_key IN (SELECT value FROM texts_in(${keys}))
      UNION ALL SELECT entry_key, raw FROM transcript_entries
        WHERE conversation_id = ${id} AND entry_key IN (SELECT value FROM texts_in(${keys}))`,
  ];
  const [row, ...stored] = rows;
  if (row?.["next_seq"] === undefined) throw new LcmError("not_found", `there is no conversation ${id}`);
  const end = {
    nextSeq: int(row, "next_seq"),
    head: textOrNull(row, "head_key"),
    headBefore: textOrNull(row, "head_key"),
    latest: textOrNull(row, "last_message_at") ?? "",
    ordinal: (row["last_ordinal"] ?? 0) as number,
    caughtUp: int(row, "caught_up"),
    isIndexed: int(row, "unindexed") === 0,
    hasHost: cursorsIn(textOrNull(row, "host_cursor")).hostCursor !== null,
    messages: int(row, "message_count"),
    gaps: int(row, "has_gaps") === 1 ? yield* gapsFor(id, appended.map(linkOf)) : [],
  };
  return {
    end: { id, ...end, now: deps.now(), unsent: [] },
    known: new Map(stored.map((each) => [text(each, "key"), text(each, "content")])),
    isStoredTurn: int(row, "is_stored") === 1,
    hasHeard: int(row, "has_heard") === 1,
  };
}

/** What a call has stored so far: `shown` in the context. */
interface Stored {
  readonly messages: MessageId[];
  entries: number;
  tokens: number;
  shown: number;
  shownTokens: number;
  userMessages: number;
  readonly gone: Row[];
}

// ── Classifying an entry ─────────────────────────────────────────────────────────────────────────────────────────────

/** `fills`: the gap that the entry closes or narrows. */
type Arrival =
  /** Continues the newest entry, or has no parent. */
  | { readonly kind: "newest"; readonly fills: Gap | null }
  /** Belongs before an entry that was stored earlier. */
  | { readonly kind: "late"; readonly fills: Gap }
  /** Continues another entry than the newest: the host went back, or that entry is not stored yet. */
  | { readonly kind: "rewind"; readonly to: string; readonly fills: null };

function* classify({ id, gaps, head }: End, item: Appendable): Script<Arrival> {
  const { key, parentKey } = linkOf(item);
  const fills = gapOf(gaps, { key, parentKey, kind: item.kind });
  // An entry that continues the newest one is the newest, even if an abandoned branch was missing it.
  if (fills !== null && parentKey === head && (yield* isLeft(id, fills))) return { kind: "newest", fills };
  if (fills !== null) return { kind: "late", fills };
  return typeof parentKey === "string" && parentKey !== head
    ? { kind: "rewind", to: parentKey, fills }
    : { kind: "newest", fills };
}

// ── Storing it ───────────────────────────────────────────────────────────────────────────────────────────────────────

function* store(deps: ScriptDeps, end: End, stored: Stored, item: Appendable): Script<void> {
  const { id } = end;
  const { key, parentKey } = linkOf(item);
  const isNext = typeof parentKey !== "string" || parentKey === end.head;
  if (!isNext || end.gaps.length > 0 || key === end.headBefore) yield* send(end);
  const lost = key === end.headBefore && item.kind === "message" ? yield* freeLostId(id) : null;
  stored.shown -= lost?.places ?? 0;
  const arrival = yield* classify(end, item);
  if (arrival.kind === "rewind") {
    const moved = yield* rewind(deps, id, arrival.to);
    if (moved === null) end.gaps = [...end.gaps, yield* noteGap(id, { parentKey: arrival.to, childKey: key })];
    else {
      end.ordinal = moved.lastOrdinal;
      stored.gone.push(...moved.gone);
    }
  }
  if (arrival.kind !== "late") end.head = key;
  const { fills } = arrival;
  if (fills !== null) {
    const isShown = item.kind === "message" && item.message.aside === undefined;
    const open = yield* fillGap(id, fills, linkOf(item), isShown);
    end.gaps = [...end.gaps.filter((gap) => gap !== fills), ...(open === null ? [] : [open])];
  }
  if (item.kind === "entry") {
    yield* insertEntry(id, item.entry, end.nextSeq - 1);
    stored.entries += 1;
    return;
  }
  const { message } = item;
  const messageId = lost?.messageId ?? messageIdOf(id, checkNumber(id, end.nextSeq));
  end.nextSeq = Math.max(end.nextSeq, seqOf(messageId) + 1);
  end.unsent.push(...messageRows(messageId, id, message, end.now));
  if (lost !== null || arrival.kind === "late") yield* send(end);
  if (lost !== null) yield* reindex("messages", messageId);
  stored.messages.push(messageId);
  stored.tokens += message.tokens;
  stored.userMessages += message.role === "user" ? 1 : 0;
  if (message.at > end.latest) end.latest = message.at;
  if (message.aside !== undefined) return;
  const ordinal = arrival.kind === "late" ? yield* placeLate(id, arrival.fills, messageId) : end.ordinal + 1;
  if (ordinal === null) return;
  end.unsent.push(sql`INSERT INTO context_items (conversation_id, ordinal, item_type, message_id)
                      VALUES (${id}, ${ordinal}, 'message', ${messageId})`);
  // Left unsent, it would put its table before the messages that follow.
  if (lost !== null || arrival.kind === "late") yield* send(end);
  end.ordinal = arrival.kind === "late" ? yield* lastOrdinal(id) : ordinal;
  stored.shown += 1;
  stored.shownTokens += message.tokens;
}

/** Table by table, since rows of one table that follow each other are one statement of a server. */
function* send(end: End): Script<void> {
  const byTable = Map.groupBy(end.unsent, ({ parts }) => parts);
  end.unsent = [];
  if (byTable.size > 0) yield [...byTable.values()].flat();
}

/** A line of the host beside what the proxy stored: the context and its newest entry stay. */
function* storeBeside(end: End, stored: Stored, item: Appendable, place: HeardPlace): Script<void> {
  const entry = item.kind === "entry" ? item.entry : place.kind === "same" ? lineOf(item.message, place) : null;
  if (item.kind === "entry" || entry !== null) {
    if (entry !== null) yield* insertEntry(end.id, entry, end.nextSeq - 1);
    stored.entries += 1;
    return;
  }
  const messageId = messageIdOf(end.id, checkNumber(end.id, end.nextSeq++));
  yield messageRows(messageId, end.id, { ...item.message, aside: "note" }, end.now);
  stored.messages.push(messageId);
  stored.tokens += item.message.tokens;
}

const linkOf = (item: Appendable): NewMessage | NewEntry => (item.kind === "message" ? item.message : item.entry);

const contentOf = (item: Appendable): string =>
  item.kind === "message" ? textOfParts(item.message.parts) : item.entry.raw;

/** The statements that store a message with its parts. */
function messageRows(
  id: MessageId,
  conversation: ConversationId,
  message: NewMessage,
  now: Timestamp,
): readonly Statement[] {
  const { role, parts, envelope, entry } = message;
  const content = textOfParts(parts);
  const moved = movedToText(message.moved);
  const checksum = messageChecksum({ role, content, envelope, entry, moved }, parts);
  return [
    sql`INSERT INTO messages (message_id, conversation_id, role, content, token_count, created_at, stored_at,
                              message_key, parent_key, envelope, entry, aside, moved, checksum)
        VALUES (${id}, ${conversation}, ${role}, ${content}, ${message.tokens}, ${message.at}, ${Date.parse(now)},
                ${message.key}, ${message.parentKey ?? null}, ${envelope}, ${entry}, ${message.aside ?? null}, ${moved},
                ${checksum})`,
    ...partRows(id, conversation, parts),
  ];
}

export const partRows = (id: MessageId, conversation: ConversationId, parts: readonly Part[]): readonly Statement[] =>
  parts.map(
    (part, ordinal) =>
      sql`INSERT INTO message_parts (conversation_id, message_id, ordinal, part_type, text_length, text_content,
                                     tool_call_id, tool_name, metadata)
          VALUES (${conversation}, ${id}, ${ordinal}, ${part.type}, ${part.text === null ? null : part.text.length},
                  ${part.kept}, ${part.toolCallId}, ${part.toolName}, ${part.metadata})`,
  );

export const movedToText = (moved: readonly MovedContent[] = []): string | null =>
  moved.length === 0 ? null : JSON.stringify(moved);

export function* insertEntry(id: ConversationId, entry: NewEntry, afterSeq: number): Script<void> {
  yield sql`INSERT INTO transcript_entries (conversation_id, entry_key, parent_key, after_seq, entry_type, created_at, raw,
                                            checksum)
            VALUES (${id}, ${entry.key}, ${entry.parentKey ?? null}, ${afterSeq}, ${entry.type}, ${entry.at}, ${entry.raw},
                    ${entryChecksum(entry.raw)})`;
}
