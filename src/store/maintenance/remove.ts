/** Deletes conversations with all their rows in one transaction, and estimates the space they take. */

import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId } from "../../core/model/types.ts";
import type { Changed, Extent, RemovePlan, Written } from "../../core/model/changes.ts";
import { ownedTables, reassignFiles } from "../ownership.ts";
import { journalStep } from "../journal/record.ts";
import { reads } from "../conversation/reads.ts";
import { asConversation } from "../rows.ts";
import { all, int, one, sql, statement, text } from "../script.ts";
import type { ReadScript, Row, Script, ScriptDeps } from "../script.ts";

/** Measured: bytes of a row besides its texts, including indexes; and the search index, as a share of indexed text. */
const bytesPerRow = 60;
const searchShare = 0.45;

export const extents: ReadScript<"extents"> = function* (ids) {
  const carried = yield* carriers(ids);
  const tied = yield* ties(ids);
  const found: Extent[] = [];
  for (const id of ids) {
    const known = yield* reads.conversation(id);
    if (known === null) continue;
    const files = yield* one(
      sql`SELECT count(*) AS files, coalesce(sum(byte_size), 0) AS bytes FROM large_files WHERE conversation_id = ${id}`,
      (row) => ({ files: int(row, "files"), fileBytes: int(row, "bytes") }),
    );
    found.push({
      conversation: id,
      totals: known.totals,
      bytes: yield* bytesOf(id),
      ...files,
      carriedBy: carried.filter(({ of }) => of === id).map(({ by }) => by),
      tiedTo: tied.filter(({ of }) => of === id).map(({ by }) => by),
    });
  }
  return found;
};

const textColumns: Readonly<Partial<Record<string, readonly string[]>>> = {
  messages: ["content", "message_key", "message_key", "parent_key", "envelope", "entry", "moved"],
  message_parts: ["text_content", "tool_call_id", "tool_name", "metadata"],
  summaries: ["content", "previous_context", "file_ids"],
  large_files: ["exploration_summary", "storage_uri"],
  transcript_entries: ["entry_key", "entry_key", "parent_key", "raw"],
  turns: ["turn_key"],
  journal: ["before_json", "after_json"],
  message_vectors: ["bits"],
  pins: ["words", "reason"],
  search_words: ["words"],
  prompt_heads: ["head_json"],
};

function* bytesOf(id: ConversationId): Script<number> {
  let bytes = 0;
  for (const { table, isOwn } of ownedTables) {
    const columns = textColumns[table] ?? [];
    const lengths = ["0", ...columns.map((name) => `coalesce(octet_length(${name}), 0)`)].join(" + ");
    const searched = columns.includes("content") ? `octet_length(content) * ${searchShare}` : "0";
    const [row = {}] = yield statement(
      `SELECT coalesce(sum(${bytesPerRow} + ${lengths} + ${searched}), 0) AS bytes FROM ${table} WHERE ${isOwn}`,
      [[id]],
    );
    bytes += int(row, "bytes");
  }
  return Math.round(bytes);
}

/** Another conversation (`by`) refers to one of these (`of`). */
interface Reference {
  readonly of: ConversationId;
  readonly by: ConversationId;
}

const toReference = (row: Row): Reference => ({
  of: asConversation(int(row, "of_id")),
  by: asConversation(int(row, "by_id")),
});

const carriers = (ids: readonly ConversationId[]): Script<readonly Reference[]> =>
  all(
    sql`SELECT DISTINCT o.conversation_id AS of_id, c.conversation_id AS by_id
        FROM summaries c JOIN summaries o ON o.summary_id = c.carried_from
        WHERE o.conversation_id IN (SELECT value FROM numbers_in(${ids})) AND c.conversation_id <> o.conversation_id
        ORDER BY 1, 2`,
    toReference,
  );

/** Links and context items of other conversations that refer to rows of these. A sound database has none. */
function* ties(ids: readonly ConversationId[]): Script<readonly Reference[]> {
  const found = yield* all(
    sql`SELECT m.conversation_id AS of_id, s.conversation_id AS by_id FROM messages m
          JOIN summary_messages l USING (message_id) JOIN summaries s USING (summary_id)
          WHERE m.conversation_id IN (SELECT value FROM numbers_in(${ids})) AND s.conversation_id <> m.conversation_id
        UNION SELECT o.conversation_id, s.conversation_id FROM summaries o
          JOIN summary_parents p ON p.parent_summary_id = o.summary_id JOIN summaries s ON s.summary_id = p.summary_id
          WHERE o.conversation_id IN (SELECT value FROM numbers_in(${ids})) AND s.conversation_id <> o.conversation_id
        UNION SELECT coalesce(m.conversation_id, s.conversation_id), c.conversation_id FROM context_items c
          LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
          WHERE coalesce(m.conversation_id, s.conversation_id) <> c.conversation_id
        ORDER BY 1, 2`,
    toReference,
  );
  return found.filter(({ of }) => ids.includes(of));
}

/** `contents`: stored files without an owner, to be deleted once this is written. */
export function* remove(
  deps: ScriptDeps,
  plan: RemovePlan,
): Script<Written<Changed & { readonly contents: readonly string[] }>> {
  if (plan.length === 0) throw new LcmError("invalid", "no conversations to delete");
  for (const { conversation: id, revision } of plan) {
    const known = yield* reads.conversation(id);
    if (known === null) return { kind: "stale", reason: `conversation ${id} no longer exists` };
    if (known.revision !== revision)
      return { kind: "stale", reason: `conversation ${id} was written to in the meantime` };
  }
  const ids = plan.map((each) => each.conversation);
  const tie = (yield* ties(ids)).find(({ by }) => !ids.includes(by));
  if (tie !== undefined) {
    const hint = "run `lcm doctor` for details; fix it, or delete both together";
    throw new LcmError("conflict", `conversation ${tie.by} refers to rows of conversation ${tie.of}`, { hint });
  }
  const subject = ids.length === 1 ? `conversation ${ids[0]}` : `${ids.length} conversations`;
  const step = { operation: "prune", conversation: null, subject } as const;
  const change = yield* journalStep(deps, step, {}, { conversations: ids });
  yield* deps.leftovers.remove(ids);
  yield sql`DELETE FROM messages_fts WHERE rowid IN (
              SELECT message_id FROM messages WHERE conversation_id IN (SELECT value FROM numbers_in(${ids})))`;
  yield sql`DELETE FROM summaries_fts WHERE rowid IN (
              SELECT search_id FROM summaries WHERE conversation_id IN (SELECT value FROM numbers_in(${ids})))`;
  yield statement(
    reassignFiles((column) => `${column} IN (SELECT value FROM numbers_in(?))`),
    [ids, ids],
  );
  const contents = yield* all(
    sql`SELECT storage_uri FROM large_files WHERE conversation_id IN (SELECT value FROM numbers_in(${ids}))`,
    (row) => text(row, "storage_uri"),
  );
  for (const { table, isOwn } of ownedTables.toReversed())
    yield statement(`DELETE FROM ${table} WHERE ${isOwn}`, [ids]);
  return { kind: "written", change, contents };
}
