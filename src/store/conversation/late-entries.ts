/**
 * Places entries that arrive after the entries that continue them, such as a line that was unreadable at first.
 * A stored child whose parent is missing leaves a gap. An entry that fills the gap goes before that child: it is not a
 * rewind, although it does not continue the newest entry.
 */

import type { ConversationId, MessageId } from "../../core/model/types.ts";
import { reads } from "./reads.ts";
import { all, count, first, int, sql, text, textOrNull, type Script } from "../script.ts";
import { makeRoom } from "./places.ts";
import { idsOf } from "../rows.ts";
import { referencesToMissing } from "./missing-rows.ts";

/** A missing parent, the child that names it, and the last entry that was placed before that child. */
export interface Gap {
  readonly parentKey: string;
  readonly childKey: string;
  lateKey: string | null;
}

/** No conversation has this id, so a lookup with it is free. */
const nowhere = -1;

type Linked = { readonly key: string; readonly parentKey?: string | null | undefined };

/** The gaps that these entries may fill. A host may leave many gaps, so the index is named: SQLite would scan them all. */
export function* gapsFor(id: ConversationId, entries: readonly Linked[]): Script<Gap[]> {
  const keys = entries.map(({ key }) => key);
  const parents = entries.flatMap(({ parentKey }) => parentKey ?? []);
  const hasRoot = entries.some(({ parentKey }) => parentKey === null);
  const gaps = yield* all(
    sql`SELECT * FROM missing_parents WHERE conversation_id = ${id} AND parent_key IN (SELECT value FROM texts_in(${keys}))
        UNION
        SELECT * FROM missing_parents INDEXED BY missing_parents_late_idx
          WHERE conversation_id = ${id} AND late_key IN (SELECT value FROM texts_in(${parents}))
        UNION
        SELECT * FROM (SELECT * FROM missing_parents INDEXED BY missing_parents_late_idx
                       WHERE conversation_id = ${hasRoot ? id : nowhere} AND late_key IS NULL LIMIT 1)`,
    (row) => ({
      parentKey: text(row, "parent_key"),
      childKey: text(row, "child_key"),
      lateKey: textOrNull(row, "late_key"),
    }),
  );
  return [...gaps];
}

export function* noteGap(
  id: ConversationId,
  { parentKey, childKey, lateKey = null }: Pick<Gap, "parentKey" | "childKey"> & Partial<Gap>,
): Script<Gap> {
  yield sql`INSERT INTO missing_parents (conversation_id, parent_key, child_key, late_key)
            VALUES (${id}, ${parentKey}, ${childKey}, ${lateKey}) ON CONFLICT DO NOTHING`;
  return { parentKey, childKey, lateKey };
}

/** The gap that an entry fills: it is the missing parent, continues what was placed there, or is the root. */
export function gapOf(
  gaps: readonly Gap[],
  { key, parentKey, kind }: Linked & { readonly kind: "message" | "entry" },
): Gap | null {
  const named =
    gaps.find((gap) => gap.parentKey === key) ?? gaps.find((gap) => gap.lateKey !== null && gap.lateKey === parentKey);
  if (named !== undefined || parentKey !== null || kind === "entry") return named ?? null;
  return gaps.find((gap) => gap.lateKey === null) ?? null;
}

/**
 * Moves a gap on to the entry that was placed in it. The missing parent itself closes the gap, and opens another if its
 * own parent is missing; an entry that the context does not show leaves that gap to the next child.
 */
export function* fillGap(
  id: ConversationId,
  gap: Gap,
  { key, parentKey }: Linked,
  isShown: boolean,
): Script<Gap | null> {
  if (gap.parentKey !== key) {
    gap.lateKey = key;
    yield sql`UPDATE missing_parents SET late_key = ${key}
              WHERE conversation_id = ${id} AND parent_key = ${gap.parentKey}`;
    return gap;
  }
  yield sql`DELETE FROM missing_parents WHERE conversation_id = ${id} AND parent_key = ${key}`;
  if (typeof parentKey !== "string" || (yield* isStored(id, parentKey))) return null;
  return yield* noteGap(id, { parentKey, childKey: isShown ? key : gap.childKey, lateKey: gap.lateKey });
}

function* isStored(id: ConversationId, key: string): Script<boolean> {
  const rows = yield sql`SELECT 1 FROM messages WHERE conversation_id = ${id} AND message_key = ${key}
    UNION ALL SELECT 1 FROM transcript_entries WHERE conversation_id = ${id} AND entry_key = ${key}`;
  return rows.length > 0;
}

/** Whether the child of a gap is on an abandoned branch. */
export function* isLeft(id: ConversationId, gap: Gap): Script<boolean> {
  return (yield* ordinalOf(id, gap.childKey)) === null;
}

/** Frees an ordinal just before the child; null if the child is on an abandoned branch. */
export function* placeLate(id: ConversationId, gap: Gap, messageId: number): Script<number | null> {
  const ordinal = yield* ordinalOf(id, gap.childKey);
  yield sql`UPDATE messages SET late = 1, aside = ${ordinal === null ? "branch" : null} WHERE message_id = ${messageId}`;
  if (ordinal !== null) yield* makeRoom(id, ordinal - 1, 2);
  return ordinal;
}

/** The ordinal of the context item that shows or covers an entry; for one that is not a message, of the next message. */
export function* ordinalOf(id: ConversationId, key: string): Script<number | null> {
  const child = yield* first(
    sql`SELECT message_id FROM messages WHERE conversation_id = ${id} AND message_key = ${key}
        UNION ALL
        SELECT (SELECT message_id FROM messages m WHERE m.message_id > ${idsOf(id).after} + e.after_seq
                  AND m.message_id < ${idsOf(id).before} ORDER BY m.message_id LIMIT 1)
          FROM transcript_entries e WHERE e.conversation_id = ${id} AND e.entry_key = ${key}`,
    (row) => row["message_id"] as MessageId | null,
  );
  if (child === null) return null;
  return yield* first(
    sql`SELECT ordinal FROM context_items
        WHERE conversation_id = ${id} AND summary_id IN (SELECT value FROM texts_in(${yield* reads.coveredBy(child)}))
        UNION ALL
        SELECT * FROM (SELECT ordinal FROM context_items WHERE conversation_id = ${id} AND message_id = ${child}
                       ORDER BY ordinal DESC LIMIT 1)
        LIMIT 1`,
    (row) => int(row, "ordinal"),
  );
}

/**
 * Frees the id of the newest message whose row was lost, so that it can be stored again under it. Null if that id is
 * not certain, or a summary covers it.
 */
export function* freeLostId(id: ConversationId): Script<{ messageId: MessageId; places: number } | null> {
  const newest = yield* count(
    sql`SELECT max(message_id) FROM messages WHERE message_id > ${idsOf(id).after} AND message_id < ${idsOf(id).before}`,
  );
  const [lost, ...others] = (yield* referencesToMissing(id)).gone.filter(({ message }) => message > newest);
  if (lost === undefined || others.length > 0 || lost.summary !== null) return null;
  const { message: messageId } = lost;
  yield sql`DELETE FROM message_parts WHERE message_id = ${messageId}`;
  const places =
    yield sql`DELETE FROM context_items WHERE conversation_id = ${id} AND message_id = ${messageId} RETURNING 1`;
  return { messageId, places: places.length };
}

export const lastOrdinal = (id: ConversationId): Script<number> =>
  count(sql`SELECT max(ordinal) FROM context_items WHERE conversation_id = ${id}`);
