/** Changes places in the context: replaces a summary with its sources, and frees ordinals between neighbours. */

import type { ConversationId, SummaryId } from "../../core/model/types.ts";
import { all, first, int, sql, text, textOrNull, type Script, type ScriptDeps } from "../script.ts";
import { assert, LcmError } from "../../core/base/errors.ts";
import { adjustTotals } from "../totals.ts";
import { movesFor, type Move } from "../../core/maintenance/dissolve.ts";
export const summaryAt = (id: ConversationId, ordinal: number): Script<{ id: string; tokens: number } | null> =>
  first(
    sql`SELECT summary_id, token_count FROM context_items c JOIN summaries s USING (summary_id)
        WHERE c.conversation_id = ${id} AND c.ordinal = ${ordinal}`,
    (row) => ({ id: text(row, "summary_id"), tokens: int(row, "token_count") }),
  );

export function* replaceItem(
  deps: ScriptDeps,
  id: ConversationId,
  ordinal: number,
): Script<{ readonly items: number; readonly shifted: number }> {
  const summary = yield* summaryAt(id, ordinal);
  assert(summary !== null, "only a summary in the context can be replaced by its sources");
  const sources = yield* all(
    sql`SELECT l.ordinal, l.message_id, NULL AS summary_id, m.token_count FROM summary_messages l
          JOIN messages m USING (message_id) WHERE l.summary_id = ${summary.id}
        UNION ALL
        SELECT p.ordinal, NULL, p.parent_summary_id, s.token_count FROM summary_parents p
          JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = ${summary.id}
        ORDER BY 1`,
    (row) => ({
      message: row["message_id"] ?? null,
      summary: textOrNull(row, "summary_id") as SummaryId | null,
      tokens: int(row, "token_count"),
    }),
  );
  if (sources.length === 0) {
    throw new LcmError("invalid", `${summary.id} has no sources to return to the context`, {
      hint: "it was carried over from an earlier conversation, or its links are damaged: run `lcm doctor`",
    });
  }
  const shifted = yield* makeRoom(id, ordinal, sources.length);
  yield sql`DELETE FROM context_items WHERE conversation_id = ${id} AND ordinal = ${ordinal}`;
  let place = ordinal;
  for (const source of sources) {
    yield sql`INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, summary_id)
              VALUES (${id}, ${place++}, ${source.message === null ? "summary" : "message"}, ${source.message},
                      ${source.summary})`;
  }
  const tokens = sources.reduce((sum, source) => sum + source.tokens, 0);
  const messages = sources.filter((source) => source.message !== null);
  yield* adjustTotals(deps, id, {
    contextItems: sources.length - 1,
    contextTokens: tokens - summary.tokens,
    contextMessages: messages.length,
    contextMessageTokens: messages.reduce((sum, source) => sum + source.tokens, 0),
  });
  return { items: sources.length, shifted };
}

/** Moves later items up until `wanted` ordinals from `ordinal` on are free, except the first; returns how many moved. */
export function* makeRoom(id: ConversationId, ordinal: number, wanted: number): Script<number> {
  const moves = yield* roomFor(id, ordinal, wanted);
  for (const move of moves.toReversed()) {
    yield sql`UPDATE context_items SET ordinal = ${move.to} WHERE conversation_id = ${id} AND ordinal = ${move.from}`;
  }
  return moves.length;
}

/** Read in pages: the first few ordinals usually have a gap. */
export const pageSize = 1_000;

export function* roomFor(id: ConversationId, ordinal: number, wanted: number): Script<readonly Move[]> {
  const moves: Move[] = [];
  for (let last = ordinal, settled = false; !settled;) {
    const later = yield* all(
      sql`SELECT ordinal FROM context_items WHERE conversation_id = ${id} AND ordinal > ${last}
          ORDER BY ordinal LIMIT ${pageSize}`,
      (row) => int(row, "ordinal"),
    );
    const crowded = movesFor(later, ordinal + wanted + moves.length);
    moves.push(...crowded);
    settled = crowded.length < pageSize;
    last = later.at(-1) ?? last;
  }
  return moves;
}
