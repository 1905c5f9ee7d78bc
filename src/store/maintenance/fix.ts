/**
 * Applies a fix: writes the values that core/maintenance/plan-fix.ts derived, and deletes references to missing rows.
 * The database rejects a reference to a missing row, so an undo cannot restore it: its deletion is journalled separately
 * and is final. A summary keeps its links to missing messages, because nothing else records the loss.
 */

import { longestIncreasing } from "../../core/base/increasing.ts";
import type { ConversationFix, PartOf } from "../../core/model/changes.ts";
import type { ConversationId, SummaryId, Totals } from "../../core/model/types.ts";
import { journalGone, recordWork, replaceRows, tiesOf, type Columns, type Image } from "../journal/record.ts";
import { reindex, reindexRow } from "../search/indexing.ts";
import { mustHave } from "../conversation/reads.ts";
import { count, int, sql, statement, type Row, type Script, type ScriptDeps, type WriteScript } from "../script.ts";
import type { TotalsChange } from "../totals.ts";
import { orphaned, orphanedEntries, recount } from "./inspect-facts.ts";
import { referencesToMissing } from "../conversation/missing-rows.ts";

export const fix: WriteScript<"fix"> = function* (deps, plan, partOf) {
  const { conversation: id } = plan;
  if ((yield* mustHave(id)).revision !== plan.revision) {
    return { kind: "stale", reason: `conversation ${id} was written to in the meantime` };
  }
  const step = { operation: "fix", conversation: id, subject: `conversation ${id}` } as const;
  const highest = yield* count(sql`SELECT max(ordinal) FROM context_items WHERE conversation_id = ${id}`);
  let change = yield* deleteDangling(deps, id, partOf);
  const images = [
    ...plan.times.map(({ message, at }) => imageOf("messages", { message_id: message }, { created_at: at })),
    ...plan.summaries.map(factsImage),
    ...(yield* sourceImages(plan)),
    ...(plan.context === null ? [] : yield* contextImages(id, plan.context.items, highest)),
  ];
  const during = (): PartOf => ({ ...partOf, ...(change === undefined ? {} : { change }) });
  if (images.length > 0) change = yield* replaceRows(deps, { ...step, partOf: during() }, images);
  const totals = yield* totalsCorrection(id);
  if (totals !== null) change = yield* replaceRows(deps, { ...step, partOf: during() }, [], { totals });
  if (change === undefined) ({ change } = yield* recordWork(deps, { ...step, partOf }, [], indexRows(plan.unindexed)));
  else yield* indexRows(plan.unindexed);
  return { kind: "written", change };
};

function* indexRows(unindexed: ConversationFix["unindexed"]): Script<void> {
  for (const row of unindexed) {
    if (typeof row === "number") yield* reindex("messages", row);
    else yield* reindex("summaries", row);
  }
}

const imageOf = (table: Image["table"], key: Columns, columns: Columns | null): Image => ({ table, key, columns });

const factsImage = (facts: ConversationFix["summaries"][number]): Image =>
  imageOf(
    "summaries",
    { summary_id: facts.summary },
    {
      kind: facts.kind,
      depth: facts.depth,
      earliest_at: facts.earliestAt,
      latest_at: facts.latestAt,
      descendant_count: facts.descendants,
    },
  );

/** The difference between the counted and the recorded totals; null if they agree. */
function* totalsCorrection(id: ConversationId): Script<TotalsChange | null> {
  const { totals } = yield* mustHave(id);
  const counted = yield* recount(id);
  const names = (Object.keys(counted) as readonly (keyof Totals)[]).filter((name) => counted[name] !== totals[name]);
  return names.length === 0 ? null : Object.fromEntries(names.map((name) => [name, counted[name] - totals[name]]));
}

/** The last item keeps the highest ordinal, so that a new message does not take one that an undo needs. */
function* contextImages(
  id: ConversationId,
  items: NonNullable<ConversationFix["context"]>["items"],
  highest: number,
): Script<readonly Image[]> {
  const rows = yield sql`SELECT ordinal, message_id, summary_id FROM context_items WHERE conversation_id = ${id}
                         ORDER BY ordinal DESC`;
  const placeOf = new Map(rows.map((row) => [row["message_id"] ?? row["summary_id"], int(row, "ordinal")]));
  const places = placesFor(items.map((item) => placeOf.get(item.id) ?? null));
  const last = places.at(-1);
  if (last !== undefined && last < highest) places[places.length - 1] = highest;
  const taken = new Set(places);
  const key = (ordinal: number): Columns => ({ conversation_id: id, ordinal });
  return [
    ...rows
      .map((row) => int(row, "ordinal"))
      .filter((ordinal) => !taken.has(ordinal))
      .map((ordinal) => imageOf("context_items", key(ordinal), null)),
    ...items.flatMap(({ kind, id: ref }, at) => {
      const ordinal = places[at] ?? 0;
      if (placeOf.get(ref) === ordinal) return [];
      const [message, summary] = kind === "message" ? [ref, null] : [null, ref];
      return [imageOf("context_items", key(ordinal), { item_type: kind, message_id: message, summary_id: summary })];
    }),
  ];
}

function* sourceImages({ conversation, sources }: ConversationFix): Script<readonly Image[]> {
  const images: Image[] = [];
  for (const { summary, messages, summaries } of sources) {
    for (const [table, column, ids] of [
      ["summary_messages", "message_id", messages],
      ["summary_parents", "parent_summary_id", summaries],
    ] as const) {
      const missing = table === "summary_messages" ? yield* missingMessages(summary) : new Set();
      const ties = (yield* tiesOf(table, summary)).filter(({ key }) => !missing.has(key[column]));
      const placeOf = new Map(ties.map(({ key, columns }) => [key[column], Number(columns?.["ordinal"])]));
      const places = placesFor(ids.map((id) => placeOf.get(id) ?? null));
      const wanted = new Set<unknown>(ids);
      for (const { key } of ties) if (!wanted.has(key[column])) images.push(imageOf(table, key, null));
      for (const [at, id] of ids.entries()) {
        const ordinal = places[at] ?? 0;
        if (placeOf.get(id) === ordinal) continue;
        images.push(imageOf(table, { summary_id: summary, [column]: id }, { ordinal, conversation_id: conversation }));
      }
    }
  }
  return images;
}

const missingMessages = function* (summary: SummaryId): Script<ReadonlySet<unknown>> {
  const rows = yield sql`SELECT message_id FROM summary_messages WHERE summary_id = ${summary}
                           AND message_id NOT IN (SELECT message_id FROM messages)`;
  return new Set(rows.map((row) => row["message_id"]));
};

/** Increasing ordinals that keep as many of the present ones as possible; null for a new item. */
function placesFor(before: readonly (number | null)[]): number[] {
  const stays = longestIncreasing(before);
  const first = before.findIndex((_, at) => stays.has(at));
  let last = first === -1 ? 0 : (before[first] ?? 0) - first - 1;
  return before.map((place, at) => (last = stays.has(at) && place !== null && place > last ? place : last + 1));
}

/** Returns the number of the change if it has begun. */
function* deleteDangling(deps: ScriptDeps, id: ConversationId, partOf: PartOf | undefined): Script<number | undefined> {
  const back = (yield* referencesToMissing(id)).back.map(({ message }) => message);
  const gone = {
    context_items: yield sql`DELETE FROM context_items WHERE conversation_id = ${id}
        AND CASE item_type
          WHEN 'message' THEN message_id NOT IN (SELECT message_id FROM messages WHERE conversation_id = ${id})
          ELSE summary_id NOT IN (SELECT summary_id FROM summaries WHERE conversation_id = ${id}) END RETURNING *`,
    summary_messages: yield sql`DELETE FROM summary_messages
        WHERE conversation_id = ${id} AND (message_id IN (SELECT value FROM numbers_in(${back}))
          OR message_id IN (SELECT message_id FROM messages WHERE conversation_id <> ${id})) RETURNING *`,
    summary_parents: yield sql`DELETE FROM summary_parents
        WHERE conversation_id = ${id} AND parent_summary_id NOT IN (
          SELECT summary_id FROM summaries WHERE conversation_id = ${id}) RETURNING *`,
  };
  if (Object.values(gone).every((rows) => rows.length === 0)) return partOf?.change;
  return yield* journalGone(deps, `references to nothing in conversation ${id}, which stay removed`, gone, partOf);
}

export const sweepOrphans: WriteScript<"sweepOrphans"> = function* (deps, partOf) {
  const gone: Record<string, readonly Row[]> = {};
  for (const [table, isOrphan] of Object.entries(orphaned))
    gone[table] = yield statement(`DELETE FROM ${table} WHERE ${isOrphan} RETURNING *`);
  const entries = yield* orphanedEntries();
  for (const entry of entries.messages) yield* reindexRow("messages", entry, null);
  for (const entry of entries.summaries) yield* reindexRow("summaries", entry, null);
  const removed = [...Object.values(gone), entries.messages, entries.summaries].flat().length;
  if (removed === 0) return { change: null, removed };
  return { change: yield* journalGone(deps, "what belonged to nothing, and stays removed", gone, partOf), removed };
};
