/**
 * Rewinds. A host can go back to an earlier message and continue from there. Every branch stays stored; the context
 * holds the active one: the messages from the root to the newest. Messages on a branch that was left are set aside,
 * and return if the host goes back to them.
 *
 * Parents are stored before their children, so the active branch is always in the order of `seq`.
 */

import type { ConversationId } from "../core/model.ts";
import { replaceItem } from "./dissolve.ts";
import { count, first, int, sql, textOrNull } from "./script.ts";
import type { Script } from "./script.ts";
import { adjustTotals } from "./totals.ts";
import type { ScriptDeps } from "./totals.ts";

/**
 * Makes the message behind `parentKey` the newest of the context. Null when that key is unknown, or already is it: then
 * the host tells us of a parent we were never given, and continuing is all that can be done.
 */
export function* rewind(
  deps: ScriptDeps,
  id: ConversationId,
  parentKey: string,
): Script<{ lastOrdinal: number } | null> {
  const path = yield* pathToActive(id, parentKey);
  if (path === null) return null;
  yield* cutAfter(deps, id, path.anchor);
  let lastOrdinal = yield* count(sql`SELECT max(ordinal) FROM context_items WHERE conversation_id = ${id}`);
  for (const step of path.returning) {
    yield sql`UPDATE messages SET aside = NULL WHERE message_id = ${step.messageId}`;
    yield sql`INSERT INTO context_items (conversation_id, ordinal, item_type, message_id)
              VALUES (${id}, ${++lastOrdinal}, 'message', ${step.messageId})`;
    yield* adjustTotals(deps, id, {
      contextItems: 1,
      contextTokens: step.tokens,
      contextMessages: 1,
      contextMessageTokens: step.tokens,
    });
  }
  return { lastOrdinal };
}

interface Path {
  readonly anchor: Anchor;
  /** Messages of a branch left earlier that come back, oldest first. */
  readonly returning: readonly { readonly messageId: number; readonly tokens: number }[];
}

/** The newest message of the active branch that is kept. One that came late has no place in the order of `seq`. */
interface Anchor {
  readonly key: string | null;
  /** What was said up to here is kept; -1 when only the key tells. */
  readonly seq: number;
}

/** Follows parents from a key up to the active branch. */
function* pathToActive(id: ConversationId, from: string): Script<Path | null> {
  const returning: { messageId: number; tokens: number }[] = [];
  const seen = new Set<string>();
  let oldestSeq = 0;
  let key: string | null = from;
  while (key !== null && !seen.has(key)) {
    seen.add(key);
    const step: { messageId: number; seq: number; aside: string | null; tokens: number; parent: string | null } | null =
      yield* first(
        sql`SELECT message_id, iif(late IS NULL, seq, -1) AS seq, aside, token_count, parent_key FROM messages
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
    if (isActive) return { anchor: { key, seq: step.seq }, returning: returning.reverse() };
    if (step.aside === "branch") returning.push({ messageId: step.messageId, tokens: step.tokens });
    key = step.parent;
    oldestSeq = step.seq;
  }
  // The way ends at a message that names no parent: what was said before it is what it continues.
  const anchorSeq = yield* count(
    sql`SELECT max(seq) FROM messages WHERE conversation_id = ${id} AND seq < ${oldestSeq} AND aside IS NULL`,
  );
  return { anchor: { key: null, seq: anchorSeq }, returning: returning.reverse() };
}

/** Takes everything after a message out of the context. A summary that reaches across the cut is dissolved first. */
function* cutAfter(deps: ScriptDeps, id: ConversationId, anchor: Anchor): Script<void> {
  for (;;) {
    const last = yield* first(
      sql`SELECT c.ordinal, c.message_id, c.summary_id, m.seq, m.message_key, m.late, m.copied_from, coalesce(m.token_count, s.token_count, 0) AS tokens
          FROM context_items c
          LEFT JOIN messages m ON m.message_id = c.message_id
          LEFT JOIN summaries s ON s.summary_id = c.summary_id
          WHERE c.conversation_id = ${id} ORDER BY c.ordinal DESC LIMIT 1`,
      (row) => row,
    );
    if (last === null) return;
    const ordinal = int(last, "ordinal");
    const tokens = int(last, "tokens");
    const summary = textOrNull(last, "summary_id");
    if (summary === null) {
      const isEarlier = int(last, "seq") <= anchor.seq && last["late"] === null;
      if (isEarlier || last["message_key"] === anchor.key || last["copied_from"] !== null) return;
      yield sql`DELETE FROM context_items WHERE conversation_id = ${id} AND ordinal = ${ordinal}`;
      yield sql`UPDATE messages SET aside = 'branch' WHERE message_id = ${int(last, "message_id")}`;
      yield* adjustTotals(deps, id, {
        contextItems: -1,
        contextTokens: -tokens,
        contextMessages: -1,
        contextMessageTokens: -tokens,
      });
      continue;
    }
    // Only a summary of messages that are leaving is opened up; what it stood for is then cut item by item.
    const newest = yield* count(
      sql`WITH RECURSIVE below(summary_id) AS (
            VALUES (${summary})
            UNION SELECT p.parent_summary_id FROM summary_parents p JOIN below b ON p.summary_id = b.summary_id
          )
          SELECT max(m.seq) FROM below JOIN summary_messages l USING (summary_id) JOIN messages m USING (message_id)
          WHERE m.copied_from IS NULL AND m.late IS NULL`,
    );
    if (newest <= anchor.seq) return;
    yield* replaceItem(deps, id, ordinal);
  }
}
