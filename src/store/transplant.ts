/**
 * A deep copy of one conversation's summaries into another, with everything below them, in front of what the target
 * sees. Nothing refers across conversations afterwards but to stored files. Copies keep text, level and times, and get keys of
 * their own.
 */

import { LcmError } from "../core/errors.ts";
import type { ConversationId, SummaryId } from "../core/model.ts";
import type { Transplanted, TransplantPlan } from "../core/changes.ts";
import { journal, saysOfItself } from "./change.ts";
import type { Image } from "./change.ts";
import { mustHave } from "./read.ts";
import { asSummary } from "./rows.ts";
import { all, count, first, int, sql, text } from "./script.ts";
import type { Script } from "./script.ts";
import { adjustTotals } from "./totals.ts";
import type { ScriptDeps } from "./totals.ts";
import { freshSummaryId } from "./write.ts";

export function* transplant(
  deps: ScriptDeps,
  { source, target, summaries: planned }: TransplantPlan,
): Script<Transplanted> {
  if (source === target) throw new LcmError("invalid", "a conversation cannot be transplanted into itself");
  yield* mustHave(source);
  yield* mustHave(target);
  const shown = yield* all(
    sql`SELECT c.summary_id, s.token_count FROM context_items c JOIN summaries s USING (summary_id)
        WHERE c.conversation_id = ${source} ORDER BY c.ordinal`,
    (row) => ({ id: asSummary(text(row, "summary_id")), tokens: int(row, "token_count") }),
  );
  if (planned !== undefined && planned.join() !== shown.map(({ id }) => id).join()) {
    return { kind: "stale", reason: `other summaries are in the context of conversation ${source} now` };
  }
  if (shown.length === 0) return { kind: "empty" };
  const before = yield* saysOfItself(target);
  const existing = yield* all(
    sql`SELECT t.summary_id FROM summaries t WHERE t.conversation_id = ${target} AND t.content IN (
          SELECT s.content FROM context_items c JOIN summaries s USING (summary_id) WHERE c.conversation_id = ${source})
        ORDER BY t.search_id`,
    (row) => asSummary(text(row, "summary_id")),
  );
  if (existing.length > 0) return { kind: "duplicate", existing };

  const copies = yield* copySummaries(
    deps,
    shown.map((item) => item.id),
    target,
  );
  const copied = yield* copyMessages(deps, copies, target);
  const lowest = yield* first(
    sql`SELECT min(ordinal) AS ordinal FROM context_items WHERE conversation_id = ${target}`,
    (row) => row["ordinal"] as number | null,
  );
  const places = shown.map(({ id }, at): Image => ({
    table: "context_items",
    key: { conversation_id: target, ordinal: (lowest ?? 1) - shown.length + at },
    columns: { item_type: "summary", message_id: null, summary_id: copyOf(copies, id) },
  }));
  for (const { key, columns } of places) {
    yield sql`INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id)
              VALUES (${target}, ${key["ordinal"] ?? null}, 'summary', ${columns?.["summary_id"] ?? null})`;
  }
  yield* adjustTotals(deps, target, {
    messages: copied.ids.length,
    messageTokens: copied.tokens,
    summaries: copies.size,
    contextItems: shown.length,
    contextTokens: shown.reduce((sum, item) => sum + item.tokens, 0),
  });
  // Of the copies only what tells whether they are as they were made: the texts are where they were copied from.
  const made: readonly Image[] = [
    ...copied.ids.map((id) => ({ table: "messages", key: { message_id: id }, columns: {} }) as const),
    ...[...copies.values()].map(
      (id) => ({ table: "summaries", key: { summary_id: id }, columns: { revision: 0 } }) as const,
    ),
    ...places,
  ];
  const change = yield* journal(
    deps,
    { operation: "transplant", conversation: target, subject: `${source} → ${target}` },
    { rows: made.map((image) => ({ ...image, columns: null })), conversation: before },
    { rows: made, conversation: yield* saysOfItself(target) },
  );
  return {
    kind: "written",
    change,
    contextItems: shown.length,
    summaries: copies.size,
    messages: copied.ids.length,
  };
}

type Copies = ReadonlyMap<SummaryId, SummaryId>;

const copyOf = (copies: Copies, id: SummaryId): SummaryId => {
  const copy = copies.get(id);
  if (copy === undefined) throw new LcmError("corrupt", `${id} is a source of a summary, and was not reached`);
  return copy;
};

/** Sources before what was made from them, so that every link finds its copy. */
function* copySummaries(deps: ScriptDeps, roots: readonly SummaryId[], target: ConversationId): Script<Copies> {
  const ids = yield* all(
    sql`WITH RECURSIVE below(summary_id) AS (
          SELECT value FROM json_each(${JSON.stringify(roots)})
          UNION
          SELECT p.parent_summary_id FROM summary_parents p JOIN below b ON p.summary_id = b.summary_id
        )
        SELECT s.summary_id FROM below JOIN summaries s USING (summary_id) ORDER BY s.depth, s.created_at, s.search_id`,
    (row) => asSummary(text(row, "summary_id")),
  );
  const copies = new Map<SummaryId, SummaryId>();
  for (const id of ids) {
    const copy = yield* freshSummaryId(deps);
    copies.set(id, copy);
    yield sql`INSERT INTO summaries (summary_id, conversation_id, kind, depth, content, token_count, earliest_at, latest_at,
                descendant_count, created_at, updated_at, file_ids, model, level, previous_context, carried_from,
                rewrite_reason, search_id)
              SELECT ${copy}, ${target}, kind, depth, content, token_count, earliest_at, latest_at, descendant_count,
                created_at, ${deps.now()}, file_ids, model, level, previous_context, carried_from, rewrite_reason,
                (SELECT coalesce(max(search_id), 0) + 1 FROM summaries)
              FROM summaries WHERE summary_id = ${id}`;
    const links = yield* all(
      sql`SELECT parent_summary_id, ordinal FROM summary_parents WHERE summary_id = ${id} ORDER BY ordinal`,
      (row) => ({ source: asSummary(text(row, "parent_summary_id")), ordinal: int(row, "ordinal") }),
    );
    for (const link of links) {
      yield sql`INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
                VALUES (${copy}, ${copyOf(copies, link.source)}, ${link.ordinal})`;
    }
  }
  return copies;
}

/** Each message once, however many summaries stand for it, with its parts. */
function* copyMessages(
  deps: ScriptDeps,
  copies: Copies,
  target: ConversationId,
): Script<{ ids: readonly number[]; tokens: number }> {
  const ids = JSON.stringify([...copies.keys()]);
  const originals = yield* all(
    sql`SELECT DISTINCT m.message_id, m.token_count, m.created_at, m.conversation_id, m.seq FROM summary_messages l
          JOIN messages m USING (message_id)
        WHERE l.summary_id IN (SELECT value FROM json_each(${ids})) ORDER BY m.conversation_id, m.seq`,
    (row) => ({ id: int(row, "message_id"), tokens: int(row, "token_count"), at: text(row, "created_at") }),
  );
  let seq = yield* count(sql`SELECT next_seq FROM conversations WHERE conversation_id = ${target}`);
  let messageId = yield* count(sql`SELECT seq FROM sqlite_sequence WHERE name = 'messages'`);
  const copyOfMessage = new Map<number, number>();
  const batch = deps.hex16();
  for (const original of originals) {
    copyOfMessage.set(original.id, ++messageId);
    yield sql`INSERT INTO messages (message_id, conversation_id, seq, role, content, token_count, created_at, stored_at,
                message_key, envelope, entry, aside, moved, copied_from)
              SELECT ${messageId}, ${target}, ${seq++}, role, content, token_count, created_at, ${Date.parse(deps.now())},
                ${`copy:${batch}:${original.id}`}, envelope, entry, NULL, moved, message_id
              FROM messages WHERE message_id = ${original.id}`;
    yield sql`INSERT INTO message_parts (message_id, ordinal, part_type, text_length, text_content, tool_call_id, tool_name,
                metadata)
              SELECT ${messageId}, ordinal, part_type, text_length, text_content, tool_call_id, tool_name, metadata
              FROM message_parts WHERE message_id = ${original.id}`;
  }
  for (const [id, copy] of copies) {
    const links = yield* all(
      sql`SELECT message_id, ordinal FROM summary_messages WHERE summary_id = ${id} ORDER BY ordinal`,
      (row) => ({ message: int(row, "message_id"), ordinal: int(row, "ordinal") }),
    );
    for (const link of links) {
      const message = copyOfMessage.get(link.message);
      if (message === undefined) throw new LcmError("corrupt", `message ${link.message} is linked, and was not copied`);
      yield sql`INSERT INTO summary_messages (summary_id, message_id, ordinal) VALUES (${copy}, ${message}, ${link.ordinal})`;
    }
  }
  const newest = originals.reduce((latest, { at }) => (at > latest ? at : latest), "");
  yield sql`UPDATE conversations SET next_seq = ${seq}, last_message_at = nullif(max(coalesce(last_message_at, ''), ${newest}), '')
            WHERE conversation_id = ${target}`;
  return { ids: [...copyOfMessage.values()], tokens: originals.reduce((sum, original) => sum + original.tokens, 0) };
}
