/** Finds references to missing rows, and missing messages that an import has brought back. */

import type { DanglingReference, Skeleton } from "../../core/model/store.ts";
import { all, int, sql, text, type Row, type Script } from "../script.ts";
import type { ConversationId, MessageId } from "../../core/model/types.ts";
import { asMessage, toSummaryId } from "../rows.ts";

export const toDangling = (row: Row): DanglingReference => ({
  table: text(row, "table_name"),
  from: String(row["from_id"]),
  to: String(row["to_id"]),
});

/** References to missing rows, or to rows of other conversations. */
export const danglingIn = (id: ConversationId): Script<readonly DanglingReference[]> =>
  all(
    sql`SELECT 'context_items' AS table_name, CAST(c.ordinal AS TEXT) AS from_id, CAST(c.message_id AS TEXT) AS to_id FROM context_items c
          LEFT JOIN messages m ON m.message_id = c.message_id
          WHERE c.conversation_id = ${id} AND c.message_id IS NOT NULL AND m.conversation_id IS DISTINCT FROM c.conversation_id
        UNION ALL
        SELECT 'context_items', CAST(c.ordinal AS TEXT), c.summary_id FROM context_items c
          LEFT JOIN summaries s ON s.summary_id = c.summary_id
          WHERE c.conversation_id = ${id} AND c.summary_id IS NOT NULL AND s.conversation_id IS DISTINCT FROM c.conversation_id
        UNION ALL
        SELECT 'summary_messages', l.summary_id, CAST(l.message_id AS TEXT) FROM summary_messages l
          JOIN messages m ON m.message_id = l.message_id
          WHERE l.summary_id IN (SELECT summary_id FROM summaries WHERE conversation_id = ${id})
            AND m.conversation_id IS DISTINCT FROM l.conversation_id
        UNION ALL
        SELECT 'summary_parents', p.summary_id, p.parent_summary_id FROM summary_parents p
          LEFT JOIN summaries s ON s.summary_id = p.parent_summary_id
          WHERE p.summary_id IN (SELECT summary_id FROM summaries WHERE conversation_id = ${id})
            AND s.conversation_id IS DISTINCT FROM p.conversation_id`,
    toDangling,
  );

/**
 * References to missing messages: still gone, or brought back by an import under another number. A fix removes such an
 * item from the context; the journal then still names it.
 */
export function* referencesToMissing(
  id: ConversationId,
): Script<{ readonly gone: Skeleton["gone"]; readonly back: Skeleton["gone"] }> {
  const named = yield* all(
    sql`WITH named (message_id, summary_id) AS (
          SELECT l.message_id, l.summary_id FROM summary_messages l JOIN summaries s USING (summary_id)
            WHERE s.conversation_id = ${id}
          UNION ALL
          SELECT message_id, NULL FROM context_items WHERE conversation_id = ${id} AND message_id IS NOT NULL
          UNION ALL
          SELECT json_number(item.value, '$.message_id'), NULL
            FROM journal j, objects_at(j.before_json, '$.gone.context_items') item
            WHERE j.operation = 'fix' AND json_number(item.value, '$.conversation_id') = ${id}
              AND json_number(item.value, '$.message_id') IS NOT NULL)
        SELECT n.message_id, n.summary_id FROM named n LEFT JOIN messages m USING (message_id)
          WHERE m.message_id IS NULL GROUP BY n.message_id, n.summary_id ORDER BY n.message_id`,
    (row) => ({
      message: asMessage(int(row, "message_id")),
      summary: row["summary_id"] === null ? null : toSummaryId(row),
    }),
  );
  const back = named.length === 0 ? new Set() : yield* cameBack(id, [...new Set(named.map(({ message }) => message))]);
  return {
    gone: named.filter(({ message }) => !back.has(message)),
    back: named.filter(({ message }) => back.has(message)),
  };
}

/** Those whose next message now has a parent that was stored after it, with no gap before that parent. */
function* cameBack(id: ConversationId, ids: readonly MessageId[]): Script<ReadonlySet<unknown>> {
  // One walk over the conversation: a query per missing message would read as far every time.
  const rows = yield sql`WITH walked AS (
        SELECT id, is_gone, min(CASE WHEN is_gone = 0 THEN id END) OVER (ORDER BY id DESC) AS follower FROM (
          SELECT message_id AS id, 0 AS is_gone FROM messages WHERE conversation_id = ${id}
          UNION ALL SELECT value, 1 FROM numbers_in(${ids})))
      SELECT walked.id FROM walked
      JOIN messages next ON next.message_id = walked.follower
      JOIN messages back ON back.conversation_id = ${id} AND back.message_key = next.parent_key
        AND back.message_id > next.message_id
      WHERE walked.is_gone = 1 AND (back.parent_key IS NULL OR EXISTS (
        SELECT 1 FROM messages WHERE conversation_id = ${id} AND message_key = back.parent_key))`;
  return new Set(rows.map((row) => row["id"]));
}
