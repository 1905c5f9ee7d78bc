/**
 * Dissolves a summary: replaces it in the context with its sources, and with `purge` deletes it.
 * Later items move only as far as the next gap in the ordinals. Where items were folded, there is always room.
 */

import { plural } from "../../core/base/format.ts";
import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId, SummaryId } from "../../core/model/types.ts";
import type { DissolvePlan } from "../../core/model/changes.ts";
import { forgetBefore, recordWork, removeEntity, tiesOf, type Image } from "../journal/record.ts";
import { mustHave, reads } from "../conversation/reads.ts";
import { count, first, int, sql, text, type Script, type ScriptDeps, type WriteScript } from "../script.ts";
import { adjustTotals } from "../totals.ts";
import { replaceItem, roomFor, summaryAt } from "../conversation/places.ts";

export const dissolve: WriteScript<"dissolve"> = function* (deps, plan, partOf) {
  yield* mustHave(plan.conversation);
  const { conversation, summary, ordinal, purge = false } = plan;
  if (ordinal !== null && (yield* summaryAt(conversation, ordinal))?.id !== summary) {
    return { kind: "stale", reason: `${summary} is no longer at place ${ordinal} of the context` };
  }
  const obstacle = purge ? yield* purgeObstacle(plan) : null;
  if (obstacle !== null) return { kind: "stale", reason: obstacle };
  const rows = purge ? yield* purgedRows(summary) : [];
  const linked = ordinal === null ? 0 : yield* linksOf(summary);
  const places = ordinal === null ? [] : yield* touchedPlaces(conversation, ordinal, linked);
  const watched = [
    ...places.map((place) => ({
      table: "context_items" as const,
      key: { conversation_id: conversation, ordinal: place },
    })),
    ...rows.map(({ table, key }) => ({ table, key })),
  ];
  const step = { operation: "dissolve", conversation, subject: summary, partOf } as const;
  const [old] = purge ? yield* reads.summaries({ ids: [summary] }) : [];
  const { change, result } = yield* recordWork(deps, step, watched, returnSources(deps, plan));
  if ((old?.rewriteReason ?? null) !== null) yield* forgetBefore(summary);
  if (result.items < linked) {
    const hint = `nothing was changed; run \`lcm doctor ${conversation}\` for details`;
    throw new LcmError("corrupt", `${summary} has ${plural(linked - result.items, "missing source")}`, { hint });
  }
  return { kind: "written", change, ...result };
};

function* returnSources(
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

/** Why a summary cannot be deleted; null if it can. */
function* purgeObstacle({ conversation, summary, ordinal }: DissolvePlan): Script<string | null> {
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

/** The ordinals that the sources take, and those that later items move from and to. */
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
