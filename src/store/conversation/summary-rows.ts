/** Inserts the rows of new summaries, with their ids, sources and facts. */

import { idIn } from "../../core/model/types.ts";
import type { ContextItem, ConversationId, NewSummary, SummaryId } from "../../core/model/types.ts";
import { isDamaged, summaryChecksum } from "../checksums.ts";
import { checkNumber, freshDigits } from "../registry.ts";
import { atOnce, count, int, one, sql, text, type Row, type Script, type ScriptDeps } from "../script.ts";

/** What a summary of a run needs: its ids, and what its sources say of their times and of what is below them. */
interface Ground {
  readonly summaryId: SummaryId;
  readonly searchNumber: number;
  readonly facts: Row;
}

/** Read before the run is known to be unchanged, so that nobody waits for it afterwards. */
export function* groundOf(deps: ScriptDeps, id: ConversationId, run: readonly ContextItem[]): Script<Ground> {
  // A run of both is refused, but not yet.
  const messages = run.flatMap((item) => (item.kind === "message" ? [item.id] : []));
  const summaries = run.flatMap((item) => (item.kind === "summary" ? [item.id] : []));
  const range =
    messages.length > 0
      ? sql`SELECT min(created_at) AS earliest, max(created_at) AS latest, 0 AS below FROM messages
            WHERE message_id IN (SELECT value FROM numbers_in(${messages}))`
      : sql`SELECT min(earliest_at) AS earliest, max(latest_at) AS latest, sum(descendant_count + 1) AS below FROM summaries
            WHERE conversation_id = ${id} AND summary_id IN (SELECT value FROM texts_in(${summaries}))`;
  const [summaryId, last, facts] = yield* atOnce([
    freshSummaryId(deps, id),
    count(sql`SELECT last_summary FROM conversations WHERE conversation_id = ${id}`),
    one(range, (row) => row),
  ]);
  return { summaryId, searchNumber: last + 1, facts };
}

/** A summary of a run. The caller records its number with the totals, so that it is not given again. */
export function* insertSummary(
  deps: ScriptDeps,
  {
    id,
    run,
    summary,
  }: { readonly id: ConversationId; readonly run: readonly ContextItem[]; readonly summary: NewSummary },
  { summaryId, searchNumber, facts }: Ground,
): Script<void> {
  const sourceIds = run.map((item) => item.id);
  const depth = (run[0]?.depth ?? -1) + 1;
  const now = deps.now();
  const isLeaf = depth === 0;
  const fileIds = JSON.stringify(summary.fileIds);
  yield sql`INSERT INTO summaries (search_id, summary_id, conversation_id, kind, depth, content, token_count, earliest_at,
                                   latest_at, descendant_count, created_at, updated_at, file_ids, model, level,
                                   previous_context, checksum)
            VALUES (${idIn(id, checkNumber(id, searchNumber, "summaries"))}, ${summaryId}, ${id},
                    ${isLeaf ? "leaf" : "condensed"}, ${depth}, ${summary.text}, ${summary.tokens},
                    ${facts["earliest"] ?? null}, ${facts["latest"] ?? null}, ${facts["below"] ?? 0}, ${now}, ${now},
                    ${fileIds}, ${summary.model}, ${summary.level}, ${summary.previousContext},
                    ${summaryChecksum(summary.text, summary.previousContext, fileIds)})`;
  if (isLeaf) {
    yield sql`INSERT INTO summary_messages (conversation_id, summary_id, message_id, ordinal)
              SELECT ${id}, ${summaryId}, value, key FROM numbers_in(${sourceIds})`;
  } else {
    yield sql`INSERT INTO summary_parents (conversation_id, summary_id, parent_summary_id, ordinal)
              SELECT ${id}, ${summaryId}, value, key FROM texts_in(${sourceIds})`;
  }
}

/**
 * Copies the row of a summary, without its links. A carried summary names its original and no previous context; a
 * copied one keeps everything.
 */
export function* copySummary(
  deps: ScriptDeps,
  id: SummaryId,
  to: ConversationId,
  how: "carried" | "copied",
): Script<SummaryId> {
  const copy = yield* freshSummaryId(deps, to);
  const isCarried = Number(how === "carried");
  yield sql`INSERT INTO summaries (search_id, summary_id, conversation_id, kind, depth, content, token_count, earliest_at,
              latest_at, descendant_count, created_at, updated_at, file_ids, model, level, previous_context,
              carried_from, rewrite_reason, checksum)
            SELECT ${yield* freshSearchId(to)}, ${copy}, ${to}, kind, depth, content, token_count, earliest_at, latest_at,
              descendant_count, created_at, ${deps.now()}, file_ids, model, level, CASE WHEN ${isCarried} = 1 THEN NULL ELSE previous_context END,
              CASE WHEN ${isCarried} = 1 THEN coalesce(carried_from, summary_id) ELSE carried_from END, rewrite_reason,
              CASE WHEN ${isCarried} = 1 THEN ${yield* carriedChecksum(id)} ELSE checksum END
            FROM summaries WHERE summary_id = ${id}`;
  return copy;
}

/** Of its text without its previous context. A damaged text keeps a checksum that it does not match. */
function* carriedChecksum(id: SummaryId): Script<number | null> {
  const [row] = yield sql`SELECT content, previous_context, file_ids, checksum FROM summaries WHERE summary_id = ${id}`;
  if (row === undefined) return null;
  if (isDamaged("summaries", row)) return int(row, "checksum");
  return summaryChecksum(text(row, "content"), null, text(row, "file_ids"));
}

/** The number under which search knows a summary. */
export function* freshSearchId(id: ConversationId): Script<number> {
  const number = yield* count(
    sql`UPDATE conversations SET last_summary = last_summary + 1, unindexed = 1 WHERE conversation_id = ${id}
        RETURNING last_summary`,
  );
  return idIn(id, checkNumber(id, number, "summaries"));
}

function* freshSummaryId(deps: ScriptDeps, id: ConversationId): Script<SummaryId> {
  const digits = yield* freshDigits(deps, id, function* (digits) {
    return (yield* count(sql`SELECT 1 FROM summaries WHERE summary_id = ${`sum_${digits}`}`)) > 0;
  });
  return `sum_${digits}`;
}
