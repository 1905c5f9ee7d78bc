/** What can be asked of the store: one script per question of the port, none of which changes anything. */

import { LcmError } from "../core/errors.ts";
import type {
  CompactionRecord,
  ContextItem,
  Conversation,
  ConversationId,
  Entry,
  FileId,
  Grant,
  GrantId,
  Message,
  MessageId,
  Sources,
  StoredFile,
  Summary,
  SummaryId,
  Timestamp,
} from "../core/model.ts";
import type {
  ContextWindow,
  ConversationFilter,
  MessageSelection,
  OpenBreaker,
  SummarySelection,
  UsageTotals,
} from "../core/ports.ts";
import {
  asMessage,
  asSummary,
  toCompaction,
  toContextItem,
  toConversation,
  toEntry,
  toGrant,
  toMessage,
  toOpenBreaker,
  toStoredFile,
  toSummary,
} from "./rows.ts";
import { all, first, int, sql, text } from "./script.ts";
import type { Row, Script } from "./script.ts";

/** SQLite's way of saying "no limit". */
const unlimited = -1;
const lowest = Number.MIN_SAFE_INTEGER;
const highest = Number.MAX_SAFE_INTEGER;

export function* conversation(id: ConversationId): Script<Conversation | null> {
  return yield* first(sql`SELECT * FROM conversations WHERE conversation_id = ${id}`, toConversation);
}

/** The conversation, or `not_found`. */
export function* mustHave(id: ConversationId): Script<Conversation> {
  const found = yield* conversation(id);
  if (found === null) {
    throw new LcmError("not_found", `there is no conversation ${id}`, { hint: "`lcm conversations` lists them" });
  }
  return found;
}

export function* conversations(filter: ConversationFilter = {}): Script<readonly Conversation[]> {
  const family = filter.familyOf === undefined ? null : yield* mustHave(filter.familyOf);
  const sessionKey = filter.sessionKey ?? family?.sessionKey ?? null;
  const sessionId = filter.sessionId ?? (family !== null && family.sessionKey === null ? family.sessionId : null);
  const agent = filter.agentId ?? (family === null || family.sessionKey === null ? null : family.agentId);
  return yield* all(
    sql`SELECT * FROM conversations
        WHERE (${sessionKey} IS NULL OR session_key = ${sessionKey})
          AND (${sessionId} IS NULL OR session_id = ${sessionId})
          AND (${family === null ? 0 : 1} = 0 OR ${sessionKey} IS NOT NULL OR session_key IS NULL)
          AND (${agent} IS NULL OR agent_id = ${agent})
          AND (${filter.active === undefined ? null : Number(filter.active)} IS NULL
               OR active = ${filter.active === undefined ? null : Number(filter.active)})
          AND (${filter.includeHidden === true ? 1 : 0} = 1 OR hidden = 0)
        ORDER BY coalesce(last_message_at, updated_at) DESC, conversation_id DESC
        LIMIT ${filter.limit ?? unlimited}`,
    toConversation,
  );
}

export function* context(id: ConversationId, window: ContextWindow = {}): Script<readonly ContextItem[]> {
  yield* mustHave(id);
  const { after = lowest, before = highest, kind = "any", keep = "oldest", limit = unlimited } = window;
  const items = yield* all({ parts: windows[kind][keep], values: [id, after, before, limit] }, toContextItem);
  return keep === "newest" ? items.toReversed() : items;
}

/** Items with larger ordinals than one and smaller than another, oldest first. */
export function* itemsBetween(id: ConversationId, after: number, before: number): Script<readonly ContextItem[]> {
  return yield* all({ parts: windows.any.oldest, values: [id, after, before, unlimited] }, toContextItem);
}

/**
 * One statement for each kind and each end, since a plan fits one of them: from the end that is kept, messages are
 * walked to along the context, past the summaries in between, which are few; summaries, which may be few among a
 * million messages, by an index of their own.
 */
const windowOf = (filter: string, index = ""): Readonly<Record<"oldest" | "newest", readonly string[]>> => {
  const ordered = (order: "ASC" | "DESC"): readonly string[] => [
    `SELECT c.ordinal, c.message_id, c.summary_id, coalesce(m.token_count, s.token_count, 0) AS token_count,
            coalesce(s.depth, -1) AS depth
     FROM context_items AS c ${index}
     LEFT JOIN messages m ON m.message_id = c.message_id
     LEFT JOIN summaries s ON s.summary_id = c.summary_id
     WHERE ${filter} c.conversation_id = `,
    " AND c.ordinal > ",
    " AND c.ordinal < ",
    ` ORDER BY c.ordinal ${order} LIMIT `,
    "",
  ];
  return { oldest: ordered("ASC"), newest: ordered("DESC") };
};
const windows = {
  any: windowOf(""),
  message: windowOf("c.item_type = 'message' AND"),
  summary: windowOf("c.item_type = 'summary' AND", "INDEXED BY context_items_summaries_idx"),
} as const;

export function* messages(selection: MessageSelection): Script<readonly Message[]> {
  if ("ids" in selection) {
    const range = rangeOf(selection.ids);
    const rows =
      range === null
        ? yield sql`SELECT * FROM messages WHERE message_id IN (SELECT value FROM json_each(${JSON.stringify(selection.ids)}))`
        : yield sql`SELECT message_id, conversation_id, seq, role, content, token_count, created_at, message_key, parent_key,
                           envelope, entry, aside, moved
                    FROM messages WHERE message_id BETWEEN ${range.first} AND ${range.last}`;
    const found = yield* withParts(rows);
    const byId = new Map(found.map((message) => [message.id, message]));
    return selection.ids.map((id) => byId.get(id)).filter((message) => message !== undefined);
  }
  if ("keys" in selection) {
    const rows = yield sql`SELECT * FROM messages WHERE conversation_id = ${selection.conversation}
      AND message_key IN (SELECT value FROM json_each(${JSON.stringify(selection.keys)}))`;
    const byKey = new Map((yield* withParts(rows)).map((message) => [message.key, message]));
    return selection.keys.map((key) => byKey.get(key)).filter((message) => message !== undefined);
  }
  const { conversation: id, afterSeq = lowest, beforeSeq = highest, since = "", before = "~", role = null } = selection;
  const limit = selection.limit ?? unlimited;
  if (selection.keep === "newest") {
    const rows = yield sql`SELECT * FROM messages
      WHERE conversation_id = ${id} AND seq > ${afterSeq} AND seq < ${beforeSeq}
        AND created_at >= ${since} AND created_at < ${before} AND (${role} IS NULL OR role = ${role})
      ORDER BY seq DESC LIMIT ${limit}`;
    return yield* withParts(rows.toReversed());
  }
  const rows = yield sql`SELECT * FROM messages
    WHERE conversation_id = ${id} AND seq > ${afterSeq} AND seq < ${beforeSeq}
      AND created_at >= ${since} AND created_at < ${before} AND (${role} IS NULL OR role = ${role})
    ORDER BY seq LIMIT ${limit}`;
  return yield* withParts(rows);
}

function* withParts(rows: readonly Row[]): Script<readonly Message[]> {
  const ids = rows.map((row) => int(row, "message_id"));
  const range = rangeOf(ids);
  const parts =
    range === null
      ? yield sql`SELECT message_id, part_type, text_length, text_content, tool_call_id, tool_name, metadata
          FROM message_parts WHERE message_id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))
          ORDER BY message_id, ordinal`
      : yield sql`SELECT message_id, part_type, text_length, text_content, tool_call_id, tool_name, metadata
          FROM message_parts WHERE message_id BETWEEN ${range.first} AND ${range.last} ORDER BY message_id, ordinal`;
  const partsOf = Map.groupBy(parts, (part) => int(part, "message_id"));
  return rows.map((row) => toMessage(row, partsOf.get(int(row, "message_id")) ?? []));
}

/** Ids without a gap, as those of an uncompacted stretch are, can be read in one go, which is a third cheaper. */
function rangeOf(ids: readonly number[]): { readonly first: number; readonly last: number } | null {
  const [first] = ids;
  if (first === undefined || ids.some((id, at) => id !== first + at)) return null;
  return { first, last: first + ids.length - 1 };
}

export function* entries(id: ConversationId, from: number, to: number): Script<readonly Entry[]> {
  return yield* all(
    sql`SELECT * FROM transcript_entries
        WHERE conversation_id = ${id} AND after_seq >= ${from} AND after_seq < ${to} ORDER BY after_seq, entry_id`,
    toEntry,
  );
}

export function* summaries(selection: SummarySelection): Script<readonly Summary[]> {
  if ("ids" in selection) {
    const found = yield* all(
      sql`SELECT * FROM summaries WHERE summary_id IN (SELECT value FROM json_each(${JSON.stringify(selection.ids)}))`,
      toSummary,
    );
    const byId = new Map(found.map((summary) => [summary.id, summary]));
    return selection.ids.map((id) => byId.get(id)).filter((summary) => summary !== undefined);
  }
  const depth = selection.depth ?? null;
  return yield* all(
    sql`SELECT * FROM summaries WHERE conversation_id = ${selection.conversation} AND (${depth} IS NULL OR depth = ${depth})
        ORDER BY depth, earliest_at, created_at, search_id LIMIT ${selection.limit ?? unlimited}`,
    toSummary,
  );
}

export function* sources(ids: readonly SummaryId[]): Script<ReadonlyMap<SummaryId, Sources>> {
  const asked = JSON.stringify(ids);
  const messageRows = yield sql`SELECT summary_id, message_id FROM summary_messages
    WHERE summary_id IN (SELECT value FROM json_each(${asked})) ORDER BY summary_id, ordinal`;
  const summaryRows = yield sql`SELECT summary_id, parent_summary_id FROM summary_parents
    WHERE summary_id IN (SELECT value FROM json_each(${asked})) ORDER BY summary_id, ordinal`;
  return groupSources(ids, messageRows, summaryRows);
}

export function groupSources(
  ids: readonly SummaryId[],
  messageRows: readonly Row[],
  summaryRows: readonly Row[],
): ReadonlyMap<SummaryId, Sources> {
  const found = new Map<SummaryId, { messages: MessageId[]; summaries: SummaryId[] }>();
  for (const id of ids) found.set(id, { messages: [], summaries: [] });
  for (const row of messageRows)
    found.get(asSummary(text(row, "summary_id")))?.messages.push(asMessage(int(row, "message_id")));
  for (const row of summaryRows) {
    found.get(asSummary(text(row, "summary_id")))?.summaries.push(asSummary(text(row, "parent_summary_id")));
  }
  return found;
}

export function* derived(ids: readonly SummaryId[]): Script<ReadonlyMap<SummaryId, readonly SummaryId[]>> {
  const rows = yield sql`SELECT p.parent_summary_id, p.summary_id FROM summary_parents p
    WHERE p.parent_summary_id IN (SELECT value FROM json_each(${JSON.stringify(ids)})) ORDER BY p.summary_id`;
  const found = new Map<SummaryId, SummaryId[]>(ids.map((id) => [id, []]));
  for (const row of rows) {
    found.get(asSummary(text(row, "parent_summary_id")))?.push(asSummary(text(row, "summary_id")));
  }
  return found;
}

export function* coveredBy(message: MessageId): Script<readonly SummaryId[]> {
  return yield* all(
    sql`WITH RECURSIVE above(summary_id) AS (
          SELECT summary_id FROM summary_messages WHERE message_id = ${message}
          UNION
          SELECT p.summary_id FROM summary_parents p JOIN above a ON p.parent_summary_id = a.summary_id
        )
        SELECT s.summary_id FROM above JOIN summaries s USING (summary_id) ORDER BY s.depth, s.search_id`,
    (row) => asSummary(text(row, "summary_id")),
  );
}

export function* carriedBy(id: SummaryId): Script<readonly SummaryId[]> {
  return yield* all(sql`SELECT summary_id FROM summaries WHERE carried_from = ${id} ORDER BY search_id`, (row) =>
    asSummary(text(row, "summary_id")),
  );
}

export function* closure(ids: readonly SummaryId[]): Script<readonly SummaryId[]> {
  return yield* all(
    sql`WITH RECURSIVE below(summary_id) AS (
          SELECT value FROM json_each(${JSON.stringify(ids)})
          UNION
          SELECT p.parent_summary_id FROM summary_parents p JOIN below b ON p.summary_id = b.summary_id
        )
        SELECT s.summary_id FROM below JOIN summaries s USING (summary_id) ORDER BY s.depth DESC, s.search_id`,
    (row) => asSummary(text(row, "summary_id")),
  );
}

export function* unused(id: ConversationId, limit: number): Script<readonly SummaryId[]> {
  return yield* all(
    sql`SELECT s.summary_id FROM summaries s WHERE s.conversation_id = ${id}
          AND NOT EXISTS (SELECT 1 FROM summary_parents p WHERE p.parent_summary_id = s.summary_id)
          AND NOT EXISTS (SELECT 1 FROM context_items c WHERE c.summary_id = s.summary_id)
        ORDER BY s.depth DESC, s.earliest_at DESC LIMIT ${limit}`,
    (row) => asSummary(text(row, "summary_id")),
  );
}

export function* file(id: FileId): Script<StoredFile | null> {
  return yield* first(sql`SELECT * FROM large_files WHERE file_id = ${id}`, toStoredFile);
}

export function* files(id: ConversationId): Script<readonly StoredFile[]> {
  return yield* all(
    sql`SELECT * FROM large_files WHERE conversation_id = ${id} ORDER BY created_at, rowid`,
    toStoredFile,
  );
}

/** The file of a conversation that was stored with this content, if there is one. */
export function* fileWith(id: ConversationId, contentHash: string): Script<StoredFile | null> {
  return yield* first(
    sql`SELECT * FROM large_files WHERE conversation_id = ${id} AND content_hash = ${contentHash}`,
    toStoredFile,
  );
}

export function* grant(id: GrantId): Script<Grant | null> {
  return yield* first(sql`SELECT * FROM expansion_grants WHERE grant_id = ${id}`, toGrant);
}

export function* usageSince(since: Timestamp): Script<UsageTotals> {
  const totals = yield* first(
    sql`SELECT count(*) AS calls, coalesce(sum(input_tokens), 0) AS input, coalesce(sum(output_tokens), 0) AS output,
               coalesce(sum(result NOT IN ('ok', 'open')), 0) AS failures, coalesce(sum(result = 'open'), 0) AS open
        FROM model_usage WHERE at >= ${since}`,
    (row) => ({
      calls: int(row, "calls"),
      inputTokens: int(row, "input"),
      outputTokens: int(row, "output"),
      failures: int(row, "failures"),
      open: int(row, "open"),
    }),
  );
  return totals ?? { calls: 0, inputTokens: 0, outputTokens: 0, failures: 0, open: 0 };
}

export function* openBreakers(since: Timestamp): Script<readonly OpenBreaker[]> {
  return yield* all(
    sql`SELECT u.provider, u.model, u.at
        FROM (SELECT DISTINCT provider FROM model_usage WHERE at >= ${since} AND result = 'auth') p
        JOIN model_usage u ON u.usage_id = (
          SELECT f.usage_id FROM model_usage f WHERE f.provider = p.provider AND f.result IN ('ok', 'auth')
          ORDER BY f.usage_id DESC LIMIT 1)
        WHERE u.result = 'auth' AND u.at >= ${since} ORDER BY u.provider`,
    toOpenBreaker,
  );
}

export function* compactions(id: ConversationId | null, limit: number): Script<readonly CompactionRecord[]> {
  return yield* all(
    id === null
      ? sql`SELECT * FROM compactions ORDER BY compaction_id DESC LIMIT ${limit}`
      : sql`SELECT * FROM compactions WHERE conversation_id = ${id} ORDER BY compaction_id DESC LIMIT ${limit}`,
    toCompaction,
  );
}

/** Those of these ids that are files' of ours. */
export function* storedAmong(ids: readonly FileId[]): Script<readonly FileId[]> {
  return yield* all(
    sql`SELECT * FROM large_files WHERE file_id IN (SELECT value FROM json_each(${JSON.stringify(ids)}))`,
    (row) => toStoredFile(row).id,
  );
}
