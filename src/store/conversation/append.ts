/**
 * What changes a conversation while it is lived: opening it, appending to it, folding it. Each is one transaction, and
 * each keeps the running totals, so that nothing ever has to be counted again.
 */

import { textOfParts } from "../../core/messages/codec.ts";
import { LcmError } from "../../core/base/errors.ts";
import type {
  ContextItem,
  Conversation,
  ConversationId,
  MessageId,
  MovedContent,
  NewEntry,
  NewMessage,
  NewSummary,
  Part,
  SummaryId,
} from "../../core/model/types.ts";
import type { Appendable, SessionIdentity } from "../../core/model/store.ts";
import { rewind } from "./rewind.ts";
import { reindex } from "../journal/record.ts";
import { fillGap, freeLostNumber, gapOf, gapsFor, isLeft, lastOrdinal, noteGap, placeLate } from "./late-entries.ts";
import { itemsBetween, mustHave } from "./reads.ts";
import { agentOf, asMessage, asSummary, toConversation, toSummaryId } from "../rows.ts";
import { all, count, first, int, one, sql, statement, text } from "../script.ts";
import type { Script, ScriptDeps, Value, WriteScript } from "../script.ts";
import { adjustTotals } from "../totals.ts";
import { forgottenMark } from "../../core/model/types.ts";
import type { Timestamp } from "../../core/base/time.ts";

// ── Opening ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const open: WriteScript<"open"> = function* (deps, session) {
  const active = (yield* findActive(session)) ?? (yield* giveKey(deps, session));
  if (active === null) return yield* insertConversation(deps, session);
  // One that no host has written to yet is of whichever session of its key comes first.
  if (active.hostCursor !== null || active.sessionId === session.sessionId || session.sessionId === "") return active;
  yield sql`UPDATE conversations SET session_id = ${session.sessionId} WHERE conversation_id = ${active.id}`;
  return yield* mustHave(active.id);
};

/** What was stored under the session's id alone, by the older program's first versions or an import, goes on under its key. */
function* giveKey(deps: ScriptDeps, { sessionId, sessionKey, agentId }: SessionIdentity): Script<Conversation | null> {
  if (typeof sessionKey !== "string") return null;
  const nameless = yield* findActive({ sessionId });
  if (nameless === null) return null;
  yield sql`UPDATE conversations SET session_key = ${sessionKey}, updated_at = ${deps.now()}, revision = revision + 1,
              agent_id = coalesce(agent_id, ${agentId ?? agentOf(sessionKey)})
            WHERE conversation_id = ${nameless.id}`;
  return yield* mustHave(nameless.id);
}

export const openSession: WriteScript<"openSession"> = function* (deps, session) {
  const key = session.sessionKey ?? null;
  const known = yield* first(
    sql`SELECT * FROM conversations WHERE session_id = ${session.sessionId} AND (${key} IS NULL OR session_key = ${key})
        ORDER BY active DESC, conversation_id DESC LIMIT 1`,
    toConversation,
  );
  return known ?? (yield* openSegment(deps, session));
};

export const openSegment: WriteScript<"openSegment"> = function* (
  deps,
  session,
  { hostCursor, carryDepth, begins } = {},
) {
  const known = begins === undefined ? null : yield* findBegunWith(session, begins.key);
  if (known !== null) return known;
  const previous = yield* findActive(session);
  if (previous !== null) {
    yield sql`UPDATE conversations SET active = 0, updated_at = ${deps.now()}, revision = revision + 1
              WHERE conversation_id = ${previous.id}`;
  }
  const made = yield* insertConversation(deps, { ...session, agentId: session.agentId ?? previous?.agentId ?? null });
  if (hostCursor !== undefined)
    yield sql`UPDATE conversations SET host_cursor = ${hostCursor} WHERE conversation_id = ${made.id}`;
  if (begins !== undefined) {
    yield* insertEntry(made.id, begins, 0);
    // What was said before is of another segment: the next message hangs on this line, whatever that hung on.
    yield sql`UPDATE conversations SET head_key = ${begins.key} WHERE conversation_id = ${made.id}`;
  }
  if (previous !== null && carryDepth !== undefined) yield* carryOver(deps, previous.id, made.id, carryDepth);
  return yield* mustHave(made.id);
};

const findBegunWith = ({ sessionId, sessionKey = null }: SessionIdentity, key: string): Script<Conversation | null> =>
  first(
    sql`SELECT c.* FROM conversations c JOIN transcript_entries e USING (conversation_id)
        WHERE c.session_id = ${sessionId} AND c.session_key IS ${sessionKey} AND e.entry_key = ${key} AND e.after_seq = 0`,
    toConversation,
  );

/**
 * The text of a summary goes on standing in front, as a row of its own that names the original; what lies below it stays
 * where it is. Costs what is carried.
 */
function* carryOver(deps: ScriptDeps, from: ConversationId, to: ConversationId, depth: number): Script<void> {
  const shown = yield* all(
    sql`SELECT c.summary_id, s.token_count FROM context_items c JOIN summaries s USING (summary_id)
        WHERE c.conversation_id = ${from} AND c.item_type = 'summary' AND s.depth >= ${depth} ORDER BY c.ordinal`,
    (row) => ({ id: toSummaryId(row), tokens: int(row, "token_count") }),
  );
  for (const [at, { id }] of shown.entries()) {
    const copy = yield* copySummary(deps, id, to, "carried");
    yield sql`INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id)
              VALUES (${to}, ${at + 1}, 'summary', ${copy})`;
  }
  const contextTokens = shown.reduce((sum, { tokens }) => sum + tokens, 0);
  yield* adjustTotals(deps, to, { summaries: shown.length, contextItems: shown.length, contextTokens });
}

/** The row alone. What is carried names its original, and was written after nothing; what is copied is all that it was. */
export function* copySummary(
  deps: ScriptDeps,
  id: SummaryId,
  to: ConversationId,
  how: "carried" | "copied",
): Script<SummaryId> {
  const copy = yield* freshSummaryId(deps);
  const isCarried = Number(how === "carried");
  yield sql`INSERT INTO summaries (summary_id, conversation_id, kind, depth, content, token_count, earliest_at, latest_at,
              descendant_count, created_at, updated_at, file_ids, model, level, previous_context, carried_from,
              rewrite_reason, search_id)
            SELECT ${copy}, ${to}, kind, depth, content, token_count, earliest_at, latest_at, descendant_count,
              created_at, ${deps.now()}, file_ids, model, level, iif(${isCarried}, NULL, previous_context),
              iif(${isCarried}, coalesce(carried_from, summary_id), carried_from), rewrite_reason,
              ${yield* freshSearchId(to)}
            FROM summaries WHERE summary_id = ${id}`;
  return copy;
}

function* findActive({ sessionId, sessionKey, agentId }: SessionIdentity): Script<Conversation | null> {
  if (typeof sessionKey === "string") {
    const agent = agentId ?? agentOf(sessionKey);
    return yield* first(
      sql`SELECT * FROM conversations WHERE session_key = ${sessionKey} AND (${agent} IS NULL OR agent_id IS ${agent}) AND active = 1
          ORDER BY conversation_id DESC LIMIT 1`,
      toConversation,
    );
  }
  return yield* first(
    sql`SELECT * FROM conversations WHERE session_id = ${sessionId} AND session_key IS NULL AND active = 1
        ORDER BY conversation_id DESC LIMIT 1`,
    toConversation,
  );
}

function* insertConversation(deps: ScriptDeps, session: SessionIdentity): Script<Conversation> {
  if (session.sessionId === "") throw new LcmError("invalid", "a conversation needs a session id that is not empty");
  const now = deps.now();
  const key = session.sessionKey ?? null;
  const agent = session.agentId ?? agentOf(key);
  return yield* one(
    sql`INSERT INTO conversations (session_id, session_key, agent_id, created_at, updated_at)
        VALUES (${session.sessionId}, ${key}, ${agent}, ${now}, ${now}) RETURNING *`,
    toConversation,
  );
}

export const setTitle: WriteScript<"setTitle"> = (deps, id, title) => set(deps, id, "title", title);
export const setHidden: WriteScript<"setHidden"> = (deps, id, hidden) => set(deps, id, "hidden", Number(hidden));
/** The host goes on with it under another id. */
export const setSession: WriteScript<"setSession"> = (deps, id, sessionId) => set(deps, id, "session_id", sessionId);

function* set(deps: ScriptDeps, id: ConversationId, column: string, value: Value): Script<void> {
  yield* mustHave(id);
  yield statement(
    `UPDATE conversations SET ${column} = ?, updated_at = ?, revision = revision + 1 WHERE conversation_id = ?`,
    [value, deps.now(), id],
  );
}

/** What it may take is no change of what it holds: neither its revision nor its time moves. */
export const setPromptBudget: WriteScript<"setPromptBudget"> = function* (_, id, tokens) {
  if (!Number.isSafeInteger(tokens) || tokens < 1) {
    throw new LcmError("invalid", `${tokens} is no number of tokens that a prompt may take`);
  }
  const { promptBudget } = yield* mustHave(id);
  if (promptBudget === tokens) return;
  yield sql`UPDATE conversations SET prompt_budget = ${tokens} WHERE conversation_id = ${id}`;
};

// ── Appending ────────────────────────────────────────────────────────────────────────────────────────────────────────

export const append: WriteScript<"append"> = function* (deps, id, appended, options = {}) {
  const place = yield* first(
    sql`SELECT next_seq, head_key, last_message_at,
               (SELECT seq FROM sqlite_sequence WHERE name = 'messages') AS last_id,
               (SELECT max(ordinal) FROM context_items WHERE conversation_id = ${id}) AS last_ordinal,
               EXISTS (SELECT 1 FROM missing_parents WHERE conversation_id = ${id}) AS has_gaps
        FROM conversations WHERE conversation_id = ${id}`,
    (row) => ({
      seq: int(row, "next_seq"),
      head: row["head_key"] as string | null,
      latest: (row["last_message_at"] ?? "") as string,
      lastId: (row["last_id"] ?? 0) as number,
      ordinal: (row["last_ordinal"] ?? 0) as number,
      hasGaps: int(row, "has_gaps") === 1,
    }),
  );
  if (place === null) throw new LcmError("not_found", `there is no conversation ${id}`);
  if (options.turnKey !== undefined && (yield* isStoredTurn(id, options.turnKey))) {
    return { messages: [], entries: 0, duplicates: appended.length, differing: [], turn: "duplicate" };
  }
  const known = yield* storedKeys(id, appended);
  const now = deps.now();
  const totals = { messages: 0, messageTokens: 0, contextItems: 0, contextTokens: 0, userMessages: 0 };
  const stored: MessageId[] = [];
  const differing: string[] = [];
  let entryCount = 0;
  const newestKey = place.head;
  let gaps = place.hasGaps ? yield* gapsFor(id, appended.map(linkOf)) : [];
  for (const item of appended) {
    const { key, parentKey } = linkOf(item);
    const same = known.get(key);
    if (same !== undefined) {
      // What was forgotten comes again with every replay, and stays forgotten.
      if (same !== contentOf(item) && !same.includes(forgottenMark)) differing.push(key);
      continue;
    }
    known.set(key, contentOf(item));
    const lost = key === newestKey && item.kind === "message" ? yield* freeLostNumber(id) : null;
    totals.contextItems -= lost?.places ?? 0;
    const filled = gapOf(gaps, key, parentKey, item.kind);
    // What continues the newest entry is the newest, also where it is what a branch that was left had been missing.
    const isNewest = filled !== null && parentKey === place.head && (yield* isLeft(id, filled));
    const gap = isNewest ? null : filled;
    if (gap === null && typeof parentKey === "string" && parentKey !== place.head) {
      const moved = yield* rewind(deps, id, parentKey);
      if (moved === null) gaps = [...gaps, yield* noteGap(id, parentKey, key)];
      else place.ordinal = moved.lastOrdinal;
    }
    if (gap === null) place.head = key;
    if (filled !== null) {
      const isShown = item.kind === "message" && item.message.aside === undefined;
      const open = yield* fillGap(id, filled, linkOf(item), isShown);
      gaps = [...gaps.filter((each) => each !== filled), ...(open === null ? [] : [open])];
    }
    if (item.kind === "entry") {
      yield* insertEntry(id, item.entry, place.seq - 1);
      entryCount += 1;
      continue;
    }
    const { message } = item;
    const messageId = lost?.messageId ?? asMessage(place.lastId + 1);
    place.lastId = Math.max(place.lastId, messageId);
    yield* insertMessage(messageId, id, place.seq++, message, now);
    if (lost !== null) yield* reindex({ table: "messages", key: { message_id: messageId } });
    stored.push(messageId);
    totals.messages += 1;
    totals.messageTokens += message.tokens;
    totals.userMessages += message.role === "user" ? 1 : 0;
    if (message.at > place.latest) place.latest = message.at;
    if (message.aside !== undefined) continue;
    const ordinal = gap === null ? place.ordinal + 1 : yield* placeLate(id, gap, messageId);
    if (ordinal === null) continue;
    yield sql`INSERT INTO context_items (conversation_id, ordinal, item_type, message_id)
              VALUES (${id}, ${ordinal}, 'message', ${messageId})`;
    place.ordinal = gap === null ? ordinal : yield* lastOrdinal(id);
    totals.contextItems += 1;
    totals.contextTokens += message.tokens;
  }
  if (options.turnKey !== undefined) {
    yield sql`INSERT INTO turns (conversation_id, turn_key) VALUES (${id}, ${options.turnKey})`;
  }
  yield sql`UPDATE conversations SET
      message_count = message_count + ${totals.messages},
      message_tokens = message_tokens + ${totals.messageTokens},
      context_items = context_items + ${totals.contextItems},
      context_tokens = context_tokens + ${totals.contextTokens},
      context_messages = context_messages + ${totals.contextItems},
      context_message_tokens = context_message_tokens + ${totals.contextTokens},
      next_seq = ${place.seq}, head_key = ${place.head},
      last_message_at = ${place.latest === "" ? null : place.latest},
      host_cursor = coalesce(${options.hostCursor ?? null}, host_cursor),
      caught_up = caught_up + ${options.isCatchingUp === true ? totals.userMessages : 0},
      updated_at = ${now}, revision = revision + 1
    WHERE conversation_id = ${id}`;
  return {
    messages: stored,
    entries: entryCount,
    duplicates: appended.length - stored.length - entryCount,
    differing,
    turn: options.turnKey === undefined ? "unnamed" : "new",
  };
};

function* isStoredTurn(id: ConversationId, turnKey: string): Script<boolean> {
  return (yield* count(sql`SELECT 1 FROM turns WHERE conversation_id = ${id} AND turn_key = ${turnKey}`)) === 1;
}

/** Keys already taken, each with the content it came with. */
function* storedKeys(id: ConversationId, appended: readonly Appendable[]): Script<Map<string, string>> {
  const keys = appended.map((item) => linkOf(item).key);
  const rows = yield sql`SELECT message_key AS key, content FROM messages
      WHERE conversation_id = ${id} AND message_key IN (SELECT value FROM json_each(${keys}))
    UNION ALL SELECT entry_key, raw FROM transcript_entries
      WHERE conversation_id = ${id} AND entry_key IN (SELECT value FROM json_each(${keys}))`;
  return new Map(rows.map((row) => [text(row, "key"), text(row, "content")]));
}

const linkOf = (item: Appendable): NewMessage | NewEntry => (item.kind === "message" ? item.message : item.entry);

const contentOf = (item: Appendable): string =>
  item.kind === "message" ? textOfParts(item.message.parts) : item.entry.raw;

function* insertMessage(
  messageId: MessageId,
  id: ConversationId,
  seq: number,
  message: NewMessage,
  now: Timestamp,
): Script<void> {
  yield sql`INSERT INTO messages (message_id, conversation_id, seq, role, content, token_count, created_at, stored_at,
                                  message_key, parent_key, envelope, entry, aside, moved)
            VALUES (${messageId}, ${id}, ${seq}, ${message.role}, ${textOfParts(message.parts)}, ${message.tokens},
                    ${message.at}, ${Date.parse(now)}, ${message.key}, ${message.parentKey ?? null}, ${message.envelope},
                    ${message.entry}, ${message.aside ?? null}, ${movedToText(message.moved)})`;
  yield* insertParts(messageId, message.parts);
}

export function* insertParts(messageId: MessageId, parts: readonly Part[]): Script<void> {
  for (const [ordinal, part] of parts.entries()) {
    yield sql`INSERT INTO message_parts (message_id, ordinal, part_type, text_length, text_content, tool_call_id,
                                         tool_name, metadata)
              VALUES (${messageId}, ${ordinal}, ${part.type}, ${part.text === null ? null : part.text.length},
                      ${part.kept}, ${part.toolCallId}, ${part.toolName}, ${part.metadata})`;
  }
}

export const movedToText = (moved: readonly MovedContent[] = []): string | null =>
  moved.length === 0 ? null : JSON.stringify(moved);

function* insertEntry(id: ConversationId, entry: NewEntry, afterSeq: number): Script<void> {
  yield sql`INSERT INTO transcript_entries (conversation_id, entry_key, parent_key, after_seq, entry_type, created_at, raw)
            VALUES (${id}, ${entry.key}, ${entry.parentKey ?? null}, ${afterSeq}, ${entry.type}, ${entry.at}, ${entry.raw})`;
}

// ── Folding ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export const fold: WriteScript<"fold"> = function* (deps, id, run, summary, forgets) {
  const head = run[0];
  const tail = run.at(-1);
  if (head === undefined || tail === undefined) throw new LcmError("invalid", "a run to fold holds at least one item");
  const conversation = yield* mustHave(id);
  if (forgets !== undefined && conversation.forgets !== forgets)
    return { kind: "stale", reason: "something was forgotten since the run was read" };
  const shown = yield* itemsBetween(id, head.ordinal - 1, tail.ordinal + 1);
  if (!isSameRun(shown, run)) return { kind: "stale", reason: "the context has changed where the run was" };
  const depth = head.depth;
  if (shown.some((item) => item.depth !== depth)) {
    throw new LcmError("invalid", "a run to fold is all messages, or all summaries of one depth");
  }
  const tokens = shown.reduce((sum, item) => sum + item.tokens, 0);
  if (summary.tokens >= tokens) {
    throw new LcmError("invalid", `a summary of ${summary.tokens} tokens does not shorten a run of ${tokens}`);
  }
  const summaryId = yield* insertSummary(deps, id, depth + 1, shown, summary);
  yield sql`DELETE FROM context_items
            WHERE conversation_id = ${id} AND ordinal BETWEEN ${head.ordinal} AND ${tail.ordinal}`;
  yield sql`INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id)
            VALUES (${id}, ${head.ordinal}, 'summary', ${summaryId})`;
  const isLeaf = depth === -1;
  yield* adjustTotals(deps, id, {
    summaries: 1,
    contextItems: 1 - shown.length,
    contextTokens: summary.tokens - tokens,
    contextMessages: isLeaf ? -shown.length : 0,
    contextMessageTokens: isLeaf ? -tokens : 0,
  });
  return { kind: "written", summary: summaryId };
};

/** An item whose tokens are others than when the run was read says something else now: rewritten, or forgotten in part. */
const isSameRun = (shown: readonly ContextItem[], run: readonly ContextItem[]): boolean =>
  shown.length === run.length && shown.every((item, at) => item.id === run[at]?.id && item.tokens === run[at].tokens);

function* insertSummary(
  deps: ScriptDeps,
  id: ConversationId,
  depth: number,
  run: readonly ContextItem[],
  summary: NewSummary,
): Script<SummaryId> {
  const summaryId = yield* freshSummaryId(deps);
  const sourceIds = run.map((item) => item.id);
  const now = deps.now();
  const isLeaf = depth === 0;
  const range = isLeaf
    ? sql`SELECT min(created_at) AS earliest, max(created_at) AS latest, 0 AS below FROM messages
          WHERE message_id IN (SELECT value FROM json_each(${sourceIds}))`
    : sql`SELECT min(earliest_at) AS earliest, max(latest_at) AS latest, sum(descendant_count + 1) AS below FROM summaries
          WHERE summary_id IN (SELECT value FROM json_each(${sourceIds}))`;
  const [facts] = yield range;
  yield sql`INSERT INTO summaries (summary_id, conversation_id, kind, depth, content, token_count, earliest_at, latest_at,
                                   descendant_count, created_at, updated_at, file_ids, model, level, previous_context,
                                   search_id)
            VALUES (${summaryId}, ${id}, ${isLeaf ? "leaf" : "condensed"}, ${depth}, ${summary.text}, ${summary.tokens},
                    ${facts?.["earliest"] ?? null}, ${facts?.["latest"] ?? null}, ${facts?.["below"] ?? 0}, ${now}, ${now},
                    ${JSON.stringify(summary.fileIds)}, ${summary.model}, ${summary.level}, ${summary.previousContext},
                    ${yield* freshSearchId(id)})`;
  if (isLeaf) {
    yield sql`INSERT INTO summary_messages (summary_id, message_id, ordinal)
              SELECT ${summaryId}, value, key FROM json_each(${sourceIds})`;
  } else {
    yield sql`INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
              SELECT ${summaryId}, value, key FROM json_each(${sourceIds})`;
  }
  return summaryId;
}

/** Numbers of a conversation's summaries rise in the order in which they are made, and are never used twice. */
const freshSearchId = (id: ConversationId): Script<number> =>
  count(sql`UPDATE conversations SET last_summary = last_summary + 1 WHERE conversation_id = ${id}
            RETURNING conversation_id * 16777216 + last_summary`);

/** Sixteen digits collide once in a great while; then the next sixteen are taken. */
function* freshSummaryId(deps: ScriptDeps): Script<SummaryId> {
  const triesMax = 8;
  for (let tries = 0; tries < triesMax; tries++) {
    const candidate = asSummary(`sum_${deps.hex16()}`);
    if ((yield* count(sql`SELECT 1 FROM summaries WHERE summary_id = ${candidate}`)) === 0) return candidate;
  }
  throw new LcmError("unavailable", `no free summary id in ${triesMax} tries`, {
    hint: "the source of ids repeats itself",
  });
}
