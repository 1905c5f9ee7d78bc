/** Reads the facts that `inspect` checks: recounted totals, links, dangling references and the search index. */

import type { ContextItem, ConversationId, MessageId, SummaryId, Totals } from "../../core/model/types.ts";
import { levels } from "../../core/model/types.ts";
import type { Integrity, Skeleton, StoreStatus, SummaryFacts } from "../../core/model/store.ts";
import { backlogRows } from "../checksums.ts";
import { embedderRecords, vectorTotals } from "../search/meaning/vectors.ts";
import { unindexedRows } from "../search/indexing.ts";
import { mustHave, reads } from "../conversation/reads.ts";
import { asMessage, idsOf, toSummaryId } from "../rows.ts";
import { tableNames } from "../ownership.ts";
import {
  all,
  count,
  one,
  int,
  sql,
  statement,
  text,
  textOrNull,
  type Row,
  type Script,
  type Statement,
} from "../script.ts";
import { totalsIn } from "../totals.ts";
import { danglingIn, referencesToMissing, toDangling } from "../conversation/missing-rows.ts";

export function* skeleton(id: ConversationId): Script<Skeleton> {
  const conversation = yield* mustHave(id);
  const items = yield* reads.context(id);
  const { back, ...graph } = yield* summaryGraph(id);
  const released = yield* releasedOf(id, graph.summaries, items, graph.sources);
  return {
    ...graph,
    conversation,
    recounted: yield* recount(id),
    context: items,
    summaries: graph.summaries.map((fact) => ({ ...fact, released: released.has(fact.id) })),
    dangling: [
      ...(yield* danglingIn(id)),
      ...back.flatMap(({ message, summary }) =>
        summary === null ? [] : [{ table: "summary_messages", from: summary, to: String(message) }],
      ),
    ],
    search: yield* searchFacts(id),
    missingFiles: [],
    alteredFiles: [],
    oddFiles: [],
    orphanedFiles: 0,
  };
}

/** The rows that depth, range and descendants of summaries are derived from. */
export function* summaryGraph(id: ConversationId) {
  const summaries = yield* summaryFacts(id);
  const { gone, back } = yield* referencesToMissing(id);
  const sources = yield* sourcesLeft(
    summaries.map((fact) => fact.id),
    new Set(gone.map(({ message }) => message)),
  );
  return { ...(yield* messageFacts(id)), summaries, sources, gone, back };
}

export const recount = (id: ConversationId): Script<Totals> =>
  one(
    sql`SELECT count(*) AS items, coalesce(sum(coalesce(m.token_count, s.token_count)), 0) AS tokens,
      count(*) FILTER (WHERE c.item_type = 'message') AS raw_items, coalesce(sum(m.token_count), 0) AS raw_tokens,
      (SELECT count(*) FROM messages WHERE conversation_id = ${id}) AS messages,
      (SELECT coalesce(sum(token_count), 0) FROM messages WHERE conversation_id = ${id}) AS message_tokens,
      (SELECT count(*) FROM summaries WHERE conversation_id = ${id}) AS summaries
    FROM context_items c LEFT JOIN messages m USING (conversation_id, message_id)
      LEFT JOIN summaries s USING (conversation_id, summary_id)
    WHERE c.conversation_id = ${id}`,
    totalsIn,
  );

/** Reads columns as JSON arrays: a million rows are four strings instead of a million objects. */
function* messageFacts(
  id: ConversationId,
): Script<Pick<Skeleton, "messageIds" | "messageSeqs" | "messageTimes" | "messageTokens" | "asides" | "copies">> {
  const [columns = {}] = yield sql`SELECT json_group_array(message_id) AS ids, json_group_array(seq) AS seqs,
      json_group_array(created_at) AS times, json_group_array(token_count) AS tokens
    FROM (SELECT message_id, seq, created_at, token_count FROM messages
          WHERE message_id > ${idsOf(id).after} AND message_id < ${idsOf(id).before} ORDER BY message_id)`;
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

/** The older program's marker is at either end, so only the ends of long texts are read. */
const summaryFacts = (id: ConversationId): Script<readonly Omit<SummaryFacts, "released">[]> =>
  all(
    sql`SELECT summary_id, depth, kind, token_count, level, earliest_at, latest_at, descendant_count, carried_from,
          rewrite_reason, length(trim(content)) = 0 AS empty,
          level = 'normal' AND is_garbled(content) AS garbled, CASE WHEN level <> 'normal' THEN ''
            WHEN length(content) <= 800 THEN content ELSE substr(content, 1, 400) || '…' || right(content, 400) END AS ends
        FROM summaries WHERE conversation_id = ${id} ORDER BY search_id`,
    (row) => ({
      id: toSummaryId(row),
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
      garbled: int(row, "garbled") === 1,
      marked: isTruncated(text(row, "ends")),
    }),
  );

/** Summaries that were dissolved, or are used only by another conversation that carries them. */
function* releasedOf(
  id: ConversationId,
  facts: readonly { readonly id: SummaryId }[],
  items: readonly ContextItem[],
  sources: Skeleton["sources"],
): Script<ReadonlySet<string>> {
  const used = new Set<MessageId | SummaryId>(items.map((item) => item.id));
  for (const { summaries } of sources.values()) for (const source of summaries) used.add(source);
  const unused = facts.map((fact) => fact.id).filter((each) => !used.has(each));
  const dissolved = yield sql`SELECT subject AS id FROM journal
    WHERE operation = 'dissolve' AND conversation_id = ${id} AND undone_by IS NULL`;
  const carried =
    unused.length === 0
      ? []
      : yield sql`SELECT carried_from AS id FROM summaries
          WHERE carried_from IN (SELECT value FROM texts_in(${unused}))`;
  return new Set([...dissolved, ...carried].map((row) => text(row, "id")));
}

/** Leaves out missing messages, which are findings of their own. */
function* sourcesLeft(ids: readonly SummaryId[], gone: ReadonlySet<number>): Script<Skeleton["sources"]> {
  const sources = yield* reads.sources(ids);
  const left = [...sources].map(
    ([id, { messages, summaries }]) =>
      [id, { messages: messages.filter((each) => !gone.has(each)), summaries }] as const,
  );
  return gone.size === 0 ? sources : new Map(left);
}

function* searchFacts(id: ConversationId): Script<Skeleton["search"]> {
  const missing = yield* all(
    sql`SELECT m.message_id, NULL AS summary_id FROM conversations c JOIN messages m USING (conversation_id)
          LEFT JOIN messages_fts_docsize d ON d.id = m.message_id
          WHERE c.conversation_id = ${id} AND m.seq <= c.indexed_seq AND d.id IS NULL
        UNION ALL
        SELECT NULL, s.summary_id FROM conversations c JOIN summaries s USING (conversation_id)
          LEFT JOIN summaries_fts_docsize d ON d.id = s.search_id
          WHERE c.conversation_id = ${id} AND s.search_id <= ${id} * 16777216 + c.indexed_summary AND d.id IS NULL`,
    (row) => (row["message_id"] === null ? toSummaryId(row) : asMessage(int(row, "message_id"))),
  );
  const pending = yield* count(
    sql`SELECT count(*) FROM conversations c JOIN messages m USING (conversation_id)
        WHERE c.conversation_id = ${id} AND m.seq > c.indexed_seq`,
  );
  return { missing, pending };
}

/** `bytes` returns the size of the database. */
export function* status(schemaVersion: number, bytes: Statement): Script<Omit<StoreStatus, "path">> {
  const found = yield* one(
    sql`SELECT count(*) AS conversations, coalesce(sum(message_count), 0) AS messages,
          coalesce(sum(summary_count), 0) AS summaries, (SELECT count(*) FROM large_files) AS files
        FROM conversations`,
    (row) => ({
      schemaVersion,
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
  return {
    ...found,
    bytes: yield* count(bytes),
    belowNormal,
    unindexed: yield* unindexedRows(),
    vectors: yield* vectorTotals(),
    embedders: yield* embedderRecords(),
  };
}

/** What rows tell. The store adds what its engine finds, and who may read the file. */
export function* integrity(): Script<Pick<Integrity, "orphanedRows" | "orphanedSearchEntries" | "unchecked">> {
  const counts: Record<string, number> = {};
  for (const [table, isOrphan] of Object.entries(orphaned)) {
    const rows = yield* count(statement(`SELECT count(*) FROM ${table} WHERE ${isOrphan}`));
    if (rows > 0) counts[table] = rows;
  }
  const { messages, summaries } = yield* orphanedEntries();
  const orphanedSearchEntries = messages.length + summaries.length;
  return { orphanedRows: counts, orphanedSearchEntries, unchecked: yield* backlogRows() };
}

/** What the engine of a database file finds: damaged pages, and references to missing rows. */
export function* engineCheck(): Script<Pick<Integrity, "problems" | "dangling">> {
  const checked = yield sql`PRAGMA quick_check(20)`;
  const problems = checked.map((row) => String(Object.values(row)[0])).filter((sentence) => sentence !== "ok");
  const dangling = yield* all(
    sql`SELECT t.value AS table_name, coalesce(f.rowid, '?') AS from_id, f.parent AS to_id
        FROM json_each(${owners}) t, pragma_foreign_key_check(t.value) f`,
    toDangling,
  );
  return { problems, dangling };
}

const isWithout = (table: string, owner: string, key: string): string =>
  `NOT EXISTS (SELECT 1 FROM ${owner} AS o WHERE o.conversation_id = ${table}.conversation_id AND o.${key} = ${table}.${key})`;

/** Conditions for parts, links and context items whose owner does not exist. */
export const orphaned = {
  message_parts: isWithout("message_parts", "messages", "message_id"),
  summary_messages: isWithout("summary_messages", "summaries", "summary_id"),
  summary_parents: isWithout("summary_parents", "summaries", "summary_id"),
  context_items: isWithout("context_items", "conversations", "conversation_id"),
} as const;
const owners = tableNames.filter((name) => !(name in orphaned));

/** Ids in the search index without a row. */
export function* orphanedEntries(): Script<{
  readonly messages: readonly number[];
  readonly summaries: readonly number[];
}> {
  const id = (row: Row): number => int(row, "id");
  return {
    messages: yield* all(
      sql`SELECT d.id FROM messages_fts_docsize d LEFT JOIN messages m ON m.message_id = d.id WHERE m.message_id IS NULL`,
      id,
    ),
    summaries: yield* all(
      sql`SELECT d.id FROM summaries_fts_docsize d LEFT JOIN summaries s ON s.search_id = d.id WHERE s.search_id IS NULL`,
      id,
    ),
  };
}

/** The older program put a marker at one end of a text if its model had failed. */
export const isTruncated = (text: string): boolean => truncatedAtAnEnd.test(text);

export const marker = String.raw`\[(?:LCM fallback summary[^\]]*|Truncated from \d+ tokens|Truncated for context management)\]`;

const truncatedAtAnEnd = new RegExp(`^\\s*${marker}|${marker}\\s*$`);
