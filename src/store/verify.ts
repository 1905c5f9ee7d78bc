/** The facts that `inspect` judges: what the rows of a conversation add up to, and what in them points nowhere. */

import type { ConversationId, SummaryId } from "../core/model.ts";
import { levels } from "../core/model.ts";
import type { DanglingReference, Integrity, Skeleton, StoreStatus, SummaryFacts } from "../core/ports.ts";
import { unindexedRows } from "./indexing.ts";
import { context, groupSources, mustHave } from "./read.ts";
import { asSummary } from "./rows.ts";
import { schemaVersion } from "./schema.ts";
import { all, count, first, int, sql, text, textOrNull } from "./script.ts";
import type { Row, Script } from "./script.ts";

export function* skeleton(id: ConversationId): Script<Skeleton> {
  const conversation = yield* mustHave(id);
  const [sums = {}] = yield sql`SELECT
      (SELECT count(*) FROM messages WHERE conversation_id = ${id}) AS messages,
      (SELECT coalesce(sum(token_count), 0) FROM messages WHERE conversation_id = ${id}) AS message_tokens,
      (SELECT count(*) FROM summaries WHERE conversation_id = ${id}) AS summaries`;
  const items = yield* context(id);
  const raw = items.filter((item) => item.kind === "message");
  const sum = (of: readonly { readonly tokens: number }[]): number =>
    of.reduce((total, item) => total + item.tokens, 0);
  const facts = yield* summaryFacts(id);
  return {
    conversation,
    recounted: {
      messages: int(sums, "messages"),
      messageTokens: int(sums, "message_tokens"),
      summaries: int(sums, "summaries"),
      contextItems: items.length,
      contextTokens: sum(items),
      contextMessages: raw.length,
      contextMessageTokens: sum(raw),
    },
    context: items,
    ...(yield* messageFacts(id)),
    summaries: facts,
    sources: yield* allSources(
      id,
      facts.map((fact) => fact.id),
    ),
    dangling: yield* danglingIn(id),
    search: yield* searchFacts(id),
    missingFiles: [],
    orphanedFiles: 0,
  };
}

/** Columns as JSON arrays: a million rows come over as four strings instead of a million objects. */
function* messageFacts(
  id: ConversationId,
): Script<Pick<Skeleton, "messageIds" | "messageSeqs" | "messageTimes" | "messageTokens" | "asides" | "copies">> {
  const [columns = {}] = yield sql`SELECT json_group_array(message_id) AS ids, json_group_array(seq) AS seqs,
      json_group_array(created_at) AS times, json_group_array(token_count) AS tokens
    FROM (SELECT message_id, seq, created_at, token_count FROM messages WHERE conversation_id = ${id} ORDER BY seq)`;
  const [marked = {}] = yield sql`SELECT
      json_group_array(message_id) FILTER (WHERE aside IS NOT NULL) AS asides,
      json_group_array(message_id) FILTER (WHERE copied_from IS NOT NULL OR late IS NOT NULL) AS copies
    FROM messages WHERE conversation_id = ${id} AND (aside IS NOT NULL OR copied_from IS NOT NULL OR late IS NOT NULL)`;
  const numbers = (row: Row, column: string): readonly number[] =>
    JSON.parse(textOrNull(row, column) ?? "[]") as number[];
  return {
    messageIds: numbers(columns, "ids"),
    messageSeqs: numbers(columns, "seqs"),
    messageTimes: JSON.parse(textOrNull(columns, "times") ?? "[]") as readonly string[],
    messageTokens: numbers(columns, "tokens"),
    asides: new Set(numbers(marked, "asides")),
    copies: new Set(numbers(marked, "copies")),
  };
}

function* summaryFacts(id: ConversationId): Script<readonly SummaryFacts[]> {
  return yield* all(
    sql`SELECT *, length(trim(content)) = 0 AS empty FROM summaries WHERE conversation_id = ${id} ORDER BY search_id`,
    (row) => ({
      id: asSummary(text(row, "summary_id")),
      depth: int(row, "depth"),
      kind: text(row, "kind") === "leaf" ? ("leaf" as const) : ("condensed" as const),
      tokens: int(row, "token_count"),
      level: levels.find((level) => level === row["level"]) ?? "normal",
      earliestAt: textOrNull(row, "earliest_at"),
      latestAt: textOrNull(row, "latest_at"),
      descendants: int(row, "descendant_count"),
      carriedFrom: textOrNull(row, "carried_from") as SummaryId | null,
      rewriteReason: textOrNull(row, "rewrite_reason"),
      empty: int(row, "empty") === 1,
    }),
  );
}

function* allSources(id: ConversationId, ids: readonly SummaryId[]): Script<Skeleton["sources"]> {
  const messageRows =
    yield sql`SELECT l.summary_id, l.message_id FROM summary_messages l JOIN summaries s USING (summary_id)
    WHERE s.conversation_id = ${id} ORDER BY l.summary_id, l.ordinal`;
  const summaryRows =
    yield sql`SELECT p.summary_id, p.parent_summary_id FROM summary_parents p JOIN summaries s USING (summary_id)
    WHERE s.conversation_id = ${id} ORDER BY p.summary_id, p.ordinal`;
  return groupSources(ids, messageRows, summaryRows);
}

const toDangling = (row: Row): DanglingReference => ({
  table: text(row, "table_name"),
  from: String(row["from_id"]),
  to: String(row["to_id"]),
});

/** References out of this conversation, or to nothing. */
function* danglingIn(id: ConversationId): Script<readonly DanglingReference[]> {
  return yield* all(
    sql`SELECT 'context_items' AS table_name, c.ordinal AS from_id, c.message_id AS to_id FROM context_items c
          LEFT JOIN messages m ON m.message_id = c.message_id
          WHERE c.conversation_id = ${id} AND c.message_id IS NOT NULL AND m.conversation_id IS NOT c.conversation_id
        UNION ALL
        SELECT 'context_items', c.ordinal, c.summary_id FROM context_items c
          LEFT JOIN summaries s ON s.summary_id = c.summary_id
          WHERE c.conversation_id = ${id} AND c.summary_id IS NOT NULL AND s.conversation_id IS NOT c.conversation_id
        UNION ALL
        SELECT 'summary_messages', l.summary_id, l.message_id FROM summary_messages l JOIN summaries s USING (summary_id)
          LEFT JOIN messages m ON m.message_id = l.message_id
          WHERE s.conversation_id = ${id} AND m.conversation_id IS NOT s.conversation_id
        UNION ALL
        SELECT 'summary_parents', p.summary_id, p.parent_summary_id FROM summary_parents p JOIN summaries s USING (summary_id)
          LEFT JOIN summaries t ON t.summary_id = p.parent_summary_id
          WHERE s.conversation_id = ${id} AND t.conversation_id IS NOT s.conversation_id`,
    toDangling,
  );
}

function* searchFacts(id: ConversationId): Script<Skeleton["search"]> {
  const missing = yield* all(
    sql`SELECT 'message ' || m.message_id AS name FROM messages m
          LEFT JOIN messages_fts_docsize d ON d.id = m.message_id
          WHERE m.conversation_id = ${id} AND d.id IS NULL
            AND m.message_id <= (SELECT indexed_upto FROM search_progress WHERE source = 'messages')
        UNION ALL
        SELECT s.summary_id FROM summaries s LEFT JOIN summaries_fts_docsize d ON d.id = s.search_id
          WHERE s.conversation_id = ${id} AND d.id IS NULL
            AND s.search_id <= (SELECT indexed_upto FROM search_progress WHERE source = 'summaries')`,
    (row) => text(row, "name"),
  );
  const pending = yield* count(
    sql`SELECT count(*) FROM messages WHERE conversation_id = ${id}
          AND message_id > (SELECT indexed_upto FROM search_progress WHERE source = 'messages')`,
  );
  return { missing, pending };
}

export function* status(): Script<Omit<StoreStatus, "path">> {
  const found = yield* first(
    sql`SELECT count(*) AS conversations, coalesce(sum(message_count), 0) AS messages,
          coalesce(sum(summary_count), 0) AS summaries, (SELECT count(*) FROM large_files) AS files,
          (SELECT page_count * page_size FROM pragma_page_count, pragma_page_size) AS bytes FROM conversations`,
    (row) => ({
      schemaVersion,
      bytes: int(row, "bytes"),
      conversations: int(row, "conversations"),
      messages: int(row, "messages"),
      summaries: int(row, "summaries"),
      files: int(row, "files"),
    }),
  );
  const levels = yield sql`SELECT level, count(*) AS summaries FROM summaries WHERE level <> 'normal' GROUP BY level`;
  const belowNormal = {
    aggressive: 0,
    extractive: 0,
    truncated: 0,
    ...Object.fromEntries(levels.map((row) => [text(row, "level"), int(row, "summaries")])),
  };
  const unindexed = yield* unindexedRows();
  const none = { schemaVersion, bytes: 0, conversations: 0, messages: 0, summaries: 0, files: 0 };
  return { ...none, ...found, belowNormal, unindexed };
}

export function* integrity(): Script<Integrity> {
  const checked = yield sql`PRAGMA quick_check(20)`;
  const problems = checked.map((row) => String(Object.values(row)[0])).filter((sentence) => sentence !== "ok");
  const dangling = yield* all(
    sql`SELECT "table" AS table_name, coalesce(rowid, '?') AS from_id, parent AS to_id FROM pragma_foreign_key_check`,
    toDangling,
  );
  const orphanedSearchEntries = yield* count(
    sql`SELECT (SELECT count(*) FROM messages_fts_docsize d LEFT JOIN messages m ON m.message_id = d.id
                WHERE m.message_id IS NULL)
             + (SELECT count(*) FROM summaries_fts_docsize d LEFT JOIN summaries s ON s.search_id = d.id
                WHERE s.search_id IS NULL)`,
  );
  return { problems, dangling, orphanedSearchEntries };
}
