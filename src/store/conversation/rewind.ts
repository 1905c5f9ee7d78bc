/**
 * Rewinds the context to an earlier message, from which the host continues. Every branch stays stored; the context shows
 * the active one. Messages of an abandoned branch are set aside, and return if the host goes back to them.
 *
 * The active branch is in the order of `seq`, except for messages marked as late: only their place in the context shows
 * where they belong.
 */

import { messageIdOf, type ConversationId } from "../../core/model/types.ts";
import { ordinalOf } from "./late-entries.ts";
import { reads } from "./reads.ts";
import { asSummary, idsOf } from "../rows.ts";
import { count, first, int, sql, text, textOrNull, type Row, type Script, type ScriptDeps } from "../script.ts";
import { adjustTotals } from "../totals.ts";
import { replaceItem } from "./places.ts";

export interface Rewound {
  readonly lastOrdinal: number;
  /** Removed context items whose message or summary is missing. The caller journals them, as a trace of the loss. */
  readonly gone: readonly Row[];
}

/** Makes the message with this key the newest of the context. Null if the key is unknown: the host never sent it. */
export function* rewind(deps: ScriptDeps, id: ConversationId, parentKey: string): Script<Rewound | null> {
  const path = yield* pathToActive(id, parentKey);
  if (path === null) return null;
  const gone = yield* cutAfter(deps, id, path.anchor);
  let lastOrdinal = yield* count(sql`SELECT max(ordinal) FROM context_items WHERE conversation_id = ${id}`);
  let newestSeq = path.returning.length === 0 ? 0 : yield* newestActive(id);
  for (const step of path.returning) {
    const isLate = step.seq < newestSeq;
    if (!isLate) newestSeq = step.seq;
    yield sql`UPDATE messages SET aside = NULL, late = CASE WHEN ${Number(isLate)} = 1 THEN 1 ELSE late END WHERE message_id = ${step.messageId}`;
    yield sql`INSERT INTO context_items (conversation_id, ordinal, item_type, message_id)
              VALUES (${id}, ${++lastOrdinal}, 'message', ${step.messageId})`;
    yield* adjustTotals(deps, id, {
      contextItems: 1,
      contextTokens: step.tokens,
      contextMessages: 1,
      contextMessageTokens: step.tokens,
    });
  }
  return { lastOrdinal, gone };
}

/** The seq of the newest message of the active branch, ignoring late ones and copies. */
const newestActive = (id: ConversationId): Script<number> =>
  count(
    sql`SELECT seq FROM messages WHERE message_id > ${idsOf(id).after} AND message_id < ${idsOf(id).before}
          AND aside IS NULL AND late IS NULL AND copied_from IS NULL ORDER BY message_id DESC LIMIT 1`,
  );

interface Path {
  readonly anchor: Anchor;
  /** Messages of an abandoned branch that return, oldest first; the `seq` of a late one is -1. */
  readonly returning: readonly { readonly messageId: number; readonly seq: number; readonly tokens: number }[];
}

/** The newest message that is kept; without a key, everything up to a `seq` is kept. */
interface Anchor {
  readonly key: string | null;
  readonly seq: number;
}

/** Follows parents from a key up to the active branch. */
function* pathToActive(id: ConversationId, from: string): Script<Path | null> {
  const returning: { messageId: number; seq: number; tokens: number }[] = [];
  const seen = new Set<string>();
  let oldestSeq = 0;
  let key: string | null = from;
  while (key !== null && !seen.has(key)) {
    seen.add(key);
    const step: { messageId: number; seq: number; aside: string | null; tokens: number; parent: string | null } | null =
      yield* first(
        sql`SELECT message_id, CASE WHEN late IS NULL THEN seq ELSE -1 END AS seq, aside, token_count, parent_key FROM messages
              WHERE conversation_id = ${id} AND message_key = ${key}
            UNION ALL
            SELECT 0, after_seq, NULL, 0, parent_key FROM transcript_entries
              WHERE conversation_id = ${id} AND entry_key = ${key}`,
        (row) => ({
          messageId: int(row, "message_id"),
          seq: int(row, "seq"),
          aside: textOrNull(row, "aside"),
          tokens: int(row, "token_count"),
          parent: textOrNull(row, "parent_key"),
        }),
      );
    if (step === null && key === from) return null;
    if (step === null) break;
    const isActive = step.messageId === 0 ? step.parent === null : step.aside === null;
    if (isActive) {
      const anchor = { key: step.messageId === 0 ? null : key, seq: step.seq };
      return { anchor, returning: returning.reverse() };
    }
    if (step.aside === "branch") returning.push({ messageId: step.messageId, seq: step.seq, tokens: step.tokens });
    key = step.parent;
    if (step.seq !== -1) oldestSeq = step.seq;
  }
  // The path ends at a message without a parent: it continues the active message before it.
  const anchorSeq = yield* count(
    sql`SELECT seq FROM messages WHERE message_id > ${idsOf(id).after} AND message_id < ${messageIdOf(id, oldestSeq)}
          AND aside IS NULL ORDER BY message_id DESC LIMIT 1`,
  );
  return { anchor: { key: null, seq: anchorSeq }, returning: returning.reverse() };
}

/** Removes everything after the anchor from the context. A summary that reaches across the cut is dissolved first. */
function* cutAfter(deps: ScriptDeps, id: ConversationId, anchor: Anchor): Script<readonly Row[]> {
  const gone: Row[] = [];
  let place = anchor.key === null ? null : yield* ordinalOf(id, anchor.key);
  for (;;) {
    const last = yield* first(
      sql`SELECT c.ordinal, c.message_id, c.summary_id, m.seq, m.late, m.copied_from,
            coalesce(m.token_count, s.token_count, 0) AS tokens, coalesce(m.seq, s.depth) IS NULL AS is_gone
          FROM context_items c
          LEFT JOIN messages m ON m.message_id = c.message_id
          LEFT JOIN summaries s ON s.summary_id = c.summary_id
          WHERE c.conversation_id = ${id} ORDER BY c.ordinal DESC LIMIT 1`,
      (row) => row,
    );
    if (last === null) return gone;
    const ordinal = int(last, "ordinal");
    const tokens = int(last, "tokens");
    const summary = textOrNull(last, "summary_id");
    if (place !== null && ordinal < place) return gone;
    const isGone = int(last, "is_gone") === 1;
    if (summary === null || isGone) {
      const isEarlier = !isGone && int(last, "seq") <= anchor.seq && last["late"] === null;
      if (place === null ? isEarlier || last["copied_from"] !== null : ordinal === place) return gone;
      const cut =
        yield sql`DELETE FROM context_items WHERE conversation_id = ${id} AND ordinal = ${ordinal} RETURNING *`;
      if (isGone) gone.push(...cut);
      yield sql`UPDATE messages SET aside = 'branch' WHERE message_id = ${last["message_id"] ?? null}`;
      yield* adjustTotals(deps, id, {
        contextItems: -1,
        contextTokens: -tokens,
        contextMessages: summary === null ? -1 : 0,
        contextMessageTokens: -tokens,
      });
      continue;
    }
    // A summary that covers leaving messages is replaced by its sources, which are then cut one by one.
    const isKept =
      place === null
        ? (yield* newestSeqBelow(summary)) <= anchor.seq
        : ordinal === place && (yield* lastKeyBelow(summary)) === anchor.key;
    if (isKept) return gone;
    if (!(yield* hasSources(summary))) {
      // Its sources are missing, and all came after the cut.
      yield sql`DELETE FROM context_items WHERE conversation_id = ${id} AND ordinal = ${ordinal}`;
      yield* adjustTotals(deps, id, { contextItems: -1, contextTokens: -tokens });
      continue;
    }
    yield* replaceItem(deps, id, ordinal);
    if (ordinal === place && anchor.key !== null) place = yield* ordinalOf(id, anchor.key);
  }
}

function* hasSources(summary: string): Script<boolean> {
  const rows = yield sql`SELECT 1 FROM summary_messages JOIN messages USING (message_id) WHERE summary_id = ${summary}
    UNION ALL SELECT 1 FROM summary_parents p JOIN summaries s ON s.summary_id = p.parent_summary_id
      WHERE p.summary_id = ${summary} LIMIT 1`;
  return rows.length > 0;
}

function* newestSeqBelow(summary: string): Script<number> {
  const below = yield* reads.closure([asSummary(summary)]);
  return yield* count(
    sql`SELECT max(m.seq) FROM summary_messages l JOIN messages m USING (message_id)
        WHERE l.summary_id IN (SELECT value FROM texts_in(${below})) AND m.copied_from IS NULL AND m.late IS NULL`,
  );
}

/** The key of the last message that a summary covers. */
const lastKeyBelow = (summary: string): Script<string | null> =>
  first(
    sql`WITH RECURSIVE last(summary_id) AS (
          VALUES (${summary})
          UNION SELECT (SELECT p.parent_summary_id FROM summary_parents p WHERE p.summary_id = l.summary_id
                        ORDER BY p.ordinal DESC LIMIT 1)
          FROM last l WHERE l.summary_id IS NOT NULL
        )
        SELECT m.message_key FROM last JOIN summary_messages s USING (summary_id) JOIN messages m USING (message_id)
        ORDER BY s.ordinal DESC LIMIT 1`,
    (row) => text(row, "message_key"),
  );
