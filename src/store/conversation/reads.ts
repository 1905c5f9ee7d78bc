/** Reads conversations, contexts, messages, summaries, files, grants and model usage. */

import { checkAmount, LcmError } from "../../core/base/errors.ts";
import { messageIdOf, numbersPerConversation } from "../../core/model/types.ts";
import type {
  ContextItem,
  Conversation,
  ConversationId,
  FileId,
  Message,
  MessageId,
  SummaryId,
} from "../../core/model/types.ts";
import {
  asSummary,
  toCompaction,
  toContextItem,
  toConversation,
  toEntry,
  toGrant,
  toMessage,
  toMessageUnchecked,
  toOpenBreaker,
  toStoredFile,
  toSummary,
  toSummaryId,
} from "../rows.ts";
import { all, first, int, one, sql, statement, text, textOrNull } from "../script.ts";
import type { ReadScripts, Row, Script, Statement } from "../script.ts";

/** For a LIMIT without an end. */
const unlimited = Number.MAX_SAFE_INTEGER;

/** All rows without a limit. SQLite would take a negative one for none, and fail on a fraction. */
export function rowsMax(limit = Infinity): number {
  if (limit === Infinity) return unlimited;
  checkAmount("the limit", limit);
  return limit;
}

const lowest = Number.MIN_SAFE_INTEGER;
const highest = Number.MAX_SAFE_INTEGER;

export const reads = {
  conversation: (id) => first(sql`SELECT * FROM conversations WHERE conversation_id = ${id}`, toConversation),

  *conversations(filter = {}) {
    const family = filter.familyOf === undefined ? null : yield* mustHave(filter.familyOf);
    const sessionKey = filter.sessionKey ?? family?.sessionKey ?? null;
    const sessionId = filter.sessionId ?? (family !== null && family.sessionKey === null ? family.sessionId : null);
    const agent = filter.agentId ?? (family === null || family.sessionKey === null ? null : family.agentId);
    const folder = filter.folder?.replace(/[/\\]+$/, "") ?? null;
    const parent = filter.parentSessionId ?? null;
    return yield* all(
      sql`SELECT * FROM conversations
          WHERE (${sessionKey} IS NULL OR session_key = ${sessionKey})
            AND (${sessionId} IS NULL OR session_id = ${sessionId})
            AND (${family === null ? 0 : 1} = 0 OR ${sessionKey} IS NOT NULL OR session_key IS NULL)
            AND (${agent} IS NULL OR agent_id = ${agent})
            AND (${folder} IS NULL OR folder = ${folder}
                 OR substr(folder, 1, length(${folder}) + 1) IN (${`${folder}/`}, ${`${folder}\\`}))
            AND (${parent} IS NULL OR parent_session = ${parent})
            AND (${filter.active === undefined ? null : Number(filter.active)} IS NULL
                 OR active = ${filter.active === undefined ? null : Number(filter.active)})
            AND (${filter.includeHidden === true ? 1 : 0} = 1 OR hidden = 0)
          ORDER BY coalesce(last_message_at, updated_at) DESC, conversation_id DESC
          LIMIT ${rowsMax(filter.limit)}`,
      toConversation,
    );
  },

  *context(id, window = {}) {
    const { after = lowest, before = highest, kind = "any", keep = "oldest", limit } = window;
    const items = yield* all(
      { parts: windows[kind][keep], values: [id, after, before, rowsMax(limit)] },
      toContextItem,
    );
    if (items.length === 0) yield* mustHave(id);
    return keep === "newest" ? items.toReversed() : items;
  },

  *messages(selection) {
    if ("ids" in selection) {
      const range = rangeOf(selection.ids);
      const rows = yield [
        range === null
          ? sql`SELECT * FROM messages WHERE message_id IN (SELECT value FROM numbers_in(${selection.ids}))`
          : sql`SELECT message_id, role, content, token_count, created_at, message_key, parent_key, envelope, entry, aside,
                       moved, checksum
                FROM messages WHERE message_id BETWEEN ${range.first} AND ${range.last}`,
        partsOf(selection.ids, range),
      ];
      const from = rows.findIndex((row) => row["part_type"] !== undefined);
      const [messages, parts] = from < 0 ? [rows, []] : [rows.slice(0, from), rows.slice(from)];
      return inOrder(selection.ids, join(messages, parts, toMessageUnchecked), ({ id }) => id);
    }
    if ("keys" in selection) {
      const rows = yield sql`SELECT * FROM messages WHERE conversation_id = ${selection.conversation}
        AND message_key IN (SELECT value FROM texts_in(${selection.keys}))`;
      return inOrder(selection.keys, yield* withParts(rows), ({ key }) => key);
    }
    const {
      conversation: id,
      afterSeq = lowest,
      beforeSeq = highest,
      since = "",
      before = "~",
      role = null,
    } = selection;
    const limit = rowsMax(selection.limit);
    const isNewest = selection.keep === "newest";
    const rows = yield statement(
      `SELECT * FROM messages WHERE message_id > ? AND message_id < ? AND created_at >= ? AND created_at < ?
         AND (? IS NULL OR role = ?) ORDER BY message_id ${isNewest ? "DESC" : "ASC"} LIMIT ?`,
      [idWithin(id, afterSeq), idWithin(id, beforeSeq), since, before, role, role, limit],
    );
    return yield* withParts(isNewest ? rows.toReversed() : rows);
  },

  entries: (id, from, to) =>
    all(
      sql`SELECT * FROM transcript_entries
          WHERE conversation_id = ${id} AND after_seq >= ${from} AND after_seq < ${to} ORDER BY after_seq, entry_id`,
      toEntry,
    ),

  *summaries(selection) {
    if ("ids" in selection) {
      const found = yield* all(
        sql`SELECT * FROM summaries WHERE summary_id IN (SELECT value FROM texts_in(${selection.ids}))`,
        toSummary,
      );
      return inOrder(selection.ids, found, ({ id }) => id);
    }
    const depth = selection.depth ?? null;
    return yield* all(
      sql`SELECT * FROM summaries WHERE conversation_id = ${selection.conversation} AND (${depth} IS NULL OR depth = ${depth})
          ORDER BY depth, earliest_at NULLS FIRST, created_at, search_id LIMIT ${rowsMax(selection.limit)}`,
      toSummary,
    );
  },

  *sources(ids) {
    // One JSON text per summary takes a fifth of the time of a row per source.
    const rows = yield sql`SELECT asked.value AS summary_id,
        (SELECT json_group_array(message_id ORDER BY ordinal) FROM summary_messages
         WHERE summary_id = asked.value) AS messages,
        (SELECT json_group_array(parent_summary_id ORDER BY ordinal) FROM summary_parents
         WHERE summary_id = asked.value) AS summaries
      FROM texts_in(${ids}) AS asked`;
    return new Map(
      rows.map((row) => [
        toSummaryId(row),
        {
          messages: JSON.parse(text(row, "messages")) as readonly MessageId[],
          summaries: JSON.parse(text(row, "summaries")) as readonly SummaryId[],
        },
      ]),
    );
  },

  *sourceItems(ids) {
    const rows = yield sql`SELECT s.summary_id AS of_summary, s.ordinal, s.message_id, NULL AS summary_id,
        m.token_count, -1 AS depth, m.message_id IS NOT NULL AND m.aside IS NULL AS is_usable
      FROM texts_in(${ids}) AS asked JOIN summary_messages s ON s.summary_id = asked.value
        LEFT JOIN messages m ON m.message_id = s.message_id
      UNION ALL
      SELECT p.summary_id, p.ordinal, NULL, p.parent_summary_id,
        s.token_count, s.depth, s.summary_id IS NOT NULL
      FROM texts_in(${ids}) AS asked JOIN summary_parents p ON p.summary_id = asked.value
        LEFT JOIN summaries s ON s.summary_id = p.parent_summary_id AND s.conversation_id = p.conversation_id
      ORDER BY of_summary, ordinal`;
    const bySummary = Map.groupBy(rows, (row) => asSummary(text(row, "of_summary")));
    return new Map(
      [...bySummary].flatMap(([id, sources]) =>
        sources.every((row) => int(row, "is_usable") === 1) ? [[id, sources.map(toContextItem)] as const] : [],
      ),
    );
  },

  *derived(ids) {
    const rows = yield sql`SELECT p.parent_summary_id, p.summary_id FROM summary_parents p
      WHERE p.parent_summary_id IN (SELECT value FROM texts_in(${ids})) ORDER BY p.summary_id`;
    const found = new Map<SummaryId, SummaryId[]>(ids.map((id) => [id, []]));
    for (const row of rows) {
      found.get(asSummary(text(row, "parent_summary_id")))?.push(toSummaryId(row));
    }
    return found;
  },

  coveredBy: (message) =>
    all(
      sql`WITH RECURSIVE above(summary_id) AS (
            SELECT summary_id FROM summary_messages WHERE message_id = ${message}
            UNION
            SELECT p.summary_id FROM summary_parents p JOIN above a ON p.parent_summary_id = a.summary_id
          )
          SELECT s.summary_id FROM above JOIN summaries s USING (summary_id) ORDER BY s.depth, s.search_id`,
      toSummaryId,
    ),

  carriedBy: (id) =>
    all(sql`SELECT summary_id FROM summaries WHERE carried_from = ${id} ORDER BY search_id`, toSummaryId),

  closure: (ids) =>
    all(
      sql`WITH RECURSIVE below(summary_id) AS (
            SELECT value FROM texts_in(${ids})
            UNION
            SELECT p.parent_summary_id FROM summary_parents p JOIN below b ON p.summary_id = b.summary_id
          )
          SELECT s.summary_id FROM below JOIN summaries s USING (summary_id) ORDER BY s.depth DESC, s.search_id`,
      toSummaryId,
    ),

  unused: (id, limit) =>
    all(
      sql`SELECT s.summary_id FROM summaries s WHERE s.conversation_id = ${id}
            AND NOT EXISTS (SELECT 1 FROM summary_parents p WHERE p.parent_summary_id = s.summary_id)
            AND NOT EXISTS (SELECT 1 FROM context_items c WHERE c.summary_id = s.summary_id)
          ORDER BY s.depth DESC, s.earliest_at DESC NULLS LAST LIMIT ${rowsMax(limit)}`,
      toSummaryId,
    ),

  file: (id) => first(sql`SELECT * FROM large_files WHERE file_id = ${id}`, toStoredFile),

  files: (id) =>
    all(sql`SELECT * FROM large_files WHERE conversation_id = ${id} ORDER BY created_at, file_number`, toStoredFile),

  grant: (id) => first(sql`SELECT * FROM expansion_grants WHERE grant_id = ${id}`, toGrant),

  usageSince: (since, until) =>
    one(
      sql`SELECT count(*) FILTER (WHERE purpose <> 'embed') AS calls,
                 coalesce(sum(input_tokens) FILTER (WHERE purpose <> 'embed'), 0) AS input,
                 coalesce(sum(output_tokens), 0) AS output,
                 count(*) FILTER (WHERE result NOT IN ('ok', 'open')) AS failures, count(*) FILTER (WHERE result = 'open') AS open,
                 count(*) FILTER (WHERE purpose = 'embed') AS embeds,
                 coalesce(sum(input_tokens) FILTER (WHERE purpose = 'embed'), 0) AS embedded
          FROM model_usage WHERE at BETWEEN ${since} AND ${until ?? "~"}`,
      (row) => ({
        calls: int(row, "calls"),
        inputTokens: int(row, "input"),
        outputTokens: int(row, "output"),
        failures: int(row, "failures"),
        open: int(row, "open"),
        embedCalls: int(row, "embeds"),
        embedTokens: int(row, "embedded"),
      }),
    ),

  openBreakers: (since, until) =>
    all(
      sql`SELECT u.provider, u.model, u.at
          FROM (SELECT DISTINCT provider FROM model_usage WHERE at BETWEEN ${since} AND ${until ?? "~"} AND result = 'auth') p
          JOIN model_usage u ON u.usage_id = (
            SELECT f.usage_id FROM model_usage f WHERE f.provider = p.provider AND f.result IN ('ok', 'auth')
            ORDER BY f.usage_id DESC LIMIT 1)
          WHERE u.result = 'auth' AND u.at BETWEEN ${since} AND ${until ?? "~"} ORDER BY u.provider`,
      toOpenBreaker,
    ),

  compactions: (id, limit) =>
    all(
      id === null
        ? sql`SELECT * FROM compactions ORDER BY compaction_id DESC LIMIT ${rowsMax(limit)}`
        : sql`SELECT * FROM compactions WHERE conversation_id = ${id} ORDER BY compaction_id DESC LIMIT ${rowsMax(limit)}`,
      toCompaction,
    ),
} satisfies ReadScripts;

/** The conversation, or `not_found`. */
export function* mustHave(id: ConversationId): Script<Conversation> {
  const found = yield* reads.conversation(id);
  if (found === null) {
    throw new LcmError("not_found", `there is no conversation ${id}`, { hint: "run `lcm conversations` to list them" });
  }
  return found;
}

/** The id for a seq, clamped to the conversation's numbers. */
const idWithin = (id: ConversationId, seq: number): MessageId =>
  messageIdOf(id, Math.min(Math.max(seq, 0), numbersPerConversation));

/** Items between two ordinals, both excluded, oldest first. */
export const itemsBetween = (id: ConversationId, after: number, before: number): Script<readonly ContextItem[]> =>
  all({ parts: windows.any.oldest, values: [id, after, before, unlimited] }, toContextItem);

/**
 * One statement per kind and end, so that each gets a plan of its own: messages by walking the context from the kept end,
 * summaries, which may be few among a million messages, by their own index.
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

/** What was found, in the order of the request. */
function inOrder<Key, T>(asked: readonly Key[], found: readonly T[], keyOf: (each: T) => Key): readonly T[] {
  const known = new Map(found.map((each) => [keyOf(each), each]));
  return asked.map((key) => known.get(key)).filter((each) => each !== undefined);
}

function* withParts(rows: readonly Row[]): Script<readonly Message[]> {
  const ids = rows.map((row) => int(row, "message_id"));
  return join(rows, yield partsOf(ids, rangeOf(ids)), toMessage);
}

const partsOf = (ids: readonly number[], range: ReturnType<typeof rangeOf>): Statement =>
  range === null
    ? sql`SELECT message_id, part_type, text_length, text_content, tool_call_id, tool_name, metadata
          FROM message_parts WHERE message_id IN (SELECT value FROM numbers_in(${ids}))
          ORDER BY message_id, ordinal`
    : sql`SELECT message_id, part_type, text_length, text_content, tool_call_id, tool_name, metadata
          FROM message_parts WHERE message_id BETWEEN ${range.first} AND ${range.last} ORDER BY message_id, ordinal`;

function join(rows: readonly Row[], parts: readonly Row[], decode: typeof toMessage): readonly Message[] {
  const byMessage = Map.groupBy(parts, (part) => int(part, "message_id"));
  return rows.map((row) => decode(row, byMessage.get(int(row, "message_id")) ?? []));
}

/** Consecutive ids, as of messages that were not folded, are read as a range, which is a third cheaper. */
function rangeOf(ids: readonly number[]): { readonly first: number; readonly last: number } | null {
  const [first] = ids;
  if (first === undefined || ids.some((id, at) => id !== first + at)) return null;
  return { first, last: first + ids.length - 1 };
}

/** The file of a conversation with this content. */
export const fileWith = (id: ConversationId, contentHash: string): Statement =>
  sql`SELECT * FROM large_files WHERE conversation_id = ${id} AND content_hash = ${contentHash}`;

/** The hash of a file's content; null if it is not known. */
export const hashOf = (id: FileId): Script<string | null> =>
  first(sql`SELECT content_hash FROM large_files WHERE file_id = ${id}`, (row) => textOrNull(row, "content_hash"));

/** Those of these ids that are stored files. */
export const storedAmong = (ids: readonly FileId[]): Script<readonly FileId[]> =>
  all(
    sql`SELECT file_id FROM large_files WHERE file_id IN (SELECT value FROM texts_in(${ids}))`,
    (row) => text(row, "file_id") as FileId,
  );
