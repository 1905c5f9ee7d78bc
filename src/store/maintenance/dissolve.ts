/**
 * Undoing a fold: a summary's sources return to its place in the context. Ordinals after it move only as far as the
 * next gap that takes them, and in a context that was folded naturally there is always room.
 */

import { movesFor } from "../../core/maintenance/dissolve.ts";
import type { Move } from "../../core/maintenance/dissolve.ts";
import { assert, LcmError } from "../../core/base/errors.ts";
import type { ConversationId, SummaryId } from "../../core/model/types.ts";
import type { DissolvePlan } from "../../core/model/changes.ts";
import { forgetBefore, recorded, removeEntity, tiesOf } from "../journal/record.ts";
import type { Image } from "../journal/record.ts";
import { mustHave, reads } from "../conversation/reads.ts";
import { all, count, first, int, sql, text, textOrNull } from "../script.ts";
import type { Script, ScriptDeps, WriteScript } from "../script.ts";
import { adjustTotals } from "../totals.ts";

export const dissolve: WriteScript<"dissolve"> = function* (deps, plan, partOf) {
  yield* mustHave(plan.conversation);
  const { conversation, summary, ordinal, purge = false } = plan;
  if (ordinal !== null && (yield* summaryAt(conversation, ordinal))?.id !== summary) {
    return { kind: "stale", reason: `${summary} is no longer at place ${ordinal} of the context` };
  }
  const standing = purge ? yield* standsOn(plan) : null;
  if (standing !== null) return { kind: "stale", reason: standing };
  const row = purge ? yield* purgedRows(summary) : [];
  const linked = ordinal === null ? 0 : yield* linksOf(summary);
  const places = ordinal === null ? [] : yield* touchedPlaces(conversation, ordinal, linked);
  const watched = [
    ...places.map((place) => ({
      table: "context_items" as const,
      key: { conversation_id: conversation, ordinal: place },
    })),
    ...row.map(({ table, key }) => ({ table, key })),
  ];
  const step = { operation: "dissolve", conversation, subject: summary, partOf } as const;
  const [old] = purge ? yield* reads.summaries({ ids: [summary] }) : [];
  const { change, result } = yield* recorded(deps, step, watched, openUp(deps, plan));
  if ((old?.rewriteReason ?? null) !== null) yield* forgetBefore(summary);
  if (result.items < linked) {
    throw new LcmError("corrupt", `${linked - result.items} of the sources of ${summary} are not there`, {
      hint: `nothing was changed; \`lcm doctor ${conversation}\` tells more`,
    });
  }
  return { kind: "written", change, ...result };
};

function* openUp(
  deps: ScriptDeps,
  { conversation, summary, ordinal, purge = false }: DissolvePlan,
): Script<{ readonly items: number; readonly shifted: number }> {
  const returned = ordinal === null ? { items: 0, shifted: 0 } : yield* replaceItem(deps, conversation, ordinal);
  if (purge) {
    yield* removeEntity({ table: "summaries", key: { summary_id: summary } });
    yield* adjustTotals(deps, conversation, { summaries: -1 });
  }
  return returned;
}

/** What needs a summary that is to be purged. */
function* standsOn({ conversation, summary, ordinal }: DissolvePlan): Script<string | null> {
  const places = yield* count(sql`SELECT count(*) FROM context_items WHERE summary_id = ${summary}`);
  if (places > (ordinal === null ? 0 : 1)) return `${summary} is in the context`;
  const derived = yield* first(
    sql`SELECT summary_id FROM summary_parents WHERE parent_summary_id = ${summary} ORDER BY summary_id LIMIT 1`,
    (row) => text(row, "summary_id"),
  );
  if (derived !== null) return `${derived} was made from ${summary}`;
  const carried = yield* first(
    sql`SELECT summary_id, conversation_id FROM summaries WHERE carried_from = ${summary} LIMIT 1`,
    (row) => `${text(row, "summary_id")} of conversation ${int(row, "conversation_id")} was carried from ${summary}`,
  );
  if (carried !== null) return carried;
  const own = yield* count(
    sql`SELECT count(*) FROM summaries WHERE summary_id = ${summary} AND conversation_id = ${conversation}`,
  );
  return own === 1 ? null : `there is no ${summary} in conversation ${conversation}`;
}

function* purgedRows(summary: SummaryId): Script<readonly Pick<Image, "table" | "key">[]> {
  return [
    { table: "summaries", key: { summary_id: summary } },
    ...(yield* tiesOf("summary_messages", summary)),
    ...(yield* tiesOf("summary_parents", summary)),
  ];
}

/** The places that its sources take, and those that others move from and to. */
function* touchedPlaces(id: ConversationId, ordinal: number, wanted: number): Script<readonly number[]> {
  const moves = yield* roomFor(id, ordinal, wanted);
  const own = Array.from({ length: wanted }, (_, place) => ordinal + place);
  return [...new Set([...own, ...moves.flatMap(({ from, to }) => [from, to])])];
}

const linksOf = (summary: string): Script<number> =>
  count(
    sql`SELECT (SELECT count(*) FROM summary_messages WHERE summary_id = ${summary})
             + (SELECT count(*) FROM summary_parents WHERE summary_id = ${summary})`,
  );

const summaryAt = (id: ConversationId, ordinal: number): Script<{ id: string; tokens: number } | null> =>
  first(
    sql`SELECT summary_id, token_count FROM context_items c JOIN summaries s USING (summary_id)
        WHERE c.conversation_id = ${id} AND c.ordinal = ${ordinal}`,
    (row) => ({ id: text(row, "summary_id"), tokens: int(row, "token_count") }),
  );

/** Replaces the summary at a place by its sources. */
export function* replaceItem(
  deps: ScriptDeps,
  id: ConversationId,
  ordinal: number,
): Script<{ readonly items: number; readonly shifted: number }> {
  const summary = yield* summaryAt(id, ordinal);
  assert(summary !== null, "only a summary that is in the context can be opened up");
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
      hint: "it was carried over from an earlier conversation, or its links are damaged: `lcm doctor` tells",
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

/** Moves later items up until `wanted` places from `ordinal` on are free but for the first; tells how many moved. */
export function* makeRoom(id: ConversationId, ordinal: number, wanted: number): Script<number> {
  const moves = yield* roomFor(id, ordinal, wanted);
  for (const move of moves.toReversed()) {
    yield sql`UPDATE context_items SET ordinal = ${move.to} WHERE conversation_id = ${id} AND ordinal = ${move.from}`;
  }
  return moves.length;
}

/** Read in pages: mostly the first few have a gap among them. */
const pageSize = 1_000;

function* roomFor(id: ConversationId, ordinal: number, wanted: number): Script<readonly Move[]> {
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
