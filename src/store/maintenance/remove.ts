/** Deleting conversations with all that is theirs, in one transaction; and what they take, to know it before. */

import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId } from "../../core/model/types.ts";
import type { Changed, Extent, RemovePlan, Written } from "../../core/model/changes.ts";
import { belongings, giveFilesToHeirs } from "../ownership.ts";
import { journalled } from "../journal/record.ts";
import { reads } from "../conversation/reads.ts";
import { asConversation } from "../rows.ts";
import { all, int, one, sql, statement, text } from "../script.ts";
import type { ReadScript, Script, ScriptDeps } from "../script.ts";

// ── What conversations take ──────────────────────────────────────────────────────────────────────────────────────────

/** Measured: what a row takes beside its texts, in its table and in indexes; and search, in parts of what it indexes. */
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
};

function* bytesOf(id: ConversationId): Script<number> {
  let bytes = 0;
  for (const { table, isOwn } of belongings) {
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

/** A conversation among these, and another that feels its absence. */
interface Bond {
  readonly of: ConversationId;
  readonly by: ConversationId;
}

const toBond = (row: Parameters<typeof int>[0]): Bond => ({
  of: asConversation(int(row, "of_id")),
  by: asConversation(int(row, "by_id")),
});

const carriers = (ids: readonly ConversationId[]): Script<readonly Bond[]> =>
  all(
    sql`SELECT DISTINCT o.conversation_id AS of_id, c.conversation_id AS by_id
        FROM summaries c JOIN summaries o ON o.summary_id = c.carried_from
        WHERE o.conversation_id IN (SELECT value FROM json_each(${ids})) AND c.conversation_id <> o.conversation_id
        ORDER BY 1, 2`,
    toBond,
  );

/** What points to rows of these from outside. Nothing does in a sound database. */
function* ties(ids: readonly ConversationId[]): Script<readonly Bond[]> {
  const found = yield* all(
    sql`SELECT m.conversation_id AS of_id, s.conversation_id AS by_id FROM messages m
          JOIN summary_messages l USING (message_id) JOIN summaries s USING (summary_id)
          WHERE m.conversation_id IN (SELECT value FROM json_each(${ids})) AND s.conversation_id <> m.conversation_id
        UNION SELECT o.conversation_id, s.conversation_id FROM summaries o
          JOIN summary_parents p ON p.parent_summary_id = o.summary_id JOIN summaries s ON s.summary_id = p.summary_id
          WHERE o.conversation_id IN (SELECT value FROM json_each(${ids})) AND s.conversation_id <> o.conversation_id
        UNION SELECT coalesce(m.conversation_id, s.conversation_id), c.conversation_id FROM context_items c
          LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s USING (summary_id)
          WHERE coalesce(m.conversation_id, s.conversation_id) <> c.conversation_id
        ORDER BY 1, 2`,
    toBond,
  );
  const asked = new Set(ids);
  return found.filter(({ of }) => asked.has(of));
}

// ── Deleting them ────────────────────────────────────────────────────────────────────────────────────────────────────

/** `contents`: what of the files folder is nobody's any more, to be deleted once this is written. */
export function* remove(
  deps: ScriptDeps,
  plan: RemovePlan,
): Script<Written<Changed & { readonly contents: readonly string[] }>> {
  if (plan.length === 0) throw new LcmError("invalid", "no conversation is named that should be deleted");
  for (const { conversation: id, revision } of plan) {
    const known = yield* reads.conversation(id);
    if (known === null) return { kind: "stale", reason: `conversation ${id} is not there any more` };
    if (known.revision !== revision)
      return { kind: "stale", reason: `conversation ${id} was written to since this was planned` };
  }
  const ids = plan.map((each) => each.conversation);
  const tie = (yield* ties(ids)).find(({ by }) => !ids.includes(by));
  if (tie !== undefined) {
    throw new LcmError("conflict", `conversation ${tie.by} points to rows of conversation ${tie.of}, which cannot go`, {
      hint: "`lcm doctor` tells more; mend it, or let both go together",
    });
  }
  const subject = ids.length === 1 ? `conversation ${ids[0]}` : `${ids.length} conversations`;
  const step = { operation: "prune", conversation: null, subject } as const;
  const change = yield* journalled(deps, step, {}, { conversations: ids });
  yield* deps.leftovers.remove(ids);
  yield sql`DELETE FROM messages_fts WHERE rowid IN (
              SELECT message_id FROM messages WHERE conversation_id IN (SELECT value FROM json_each(${ids})))`;
  yield sql`DELETE FROM summaries_fts WHERE rowid IN (
              SELECT search_id FROM summaries WHERE conversation_id IN (SELECT value FROM json_each(${ids})))`;
  yield statement(
    giveFilesToHeirs((column) => `${column} IN (SELECT value FROM json_each(?))`),
    [ids, ids],
  );
  const contents = yield* all(
    sql`SELECT storage_uri FROM large_files WHERE conversation_id IN (SELECT value FROM json_each(${ids}))`,
    (row) => text(row, "storage_uri"),
  );
  for (const { table, isOwn } of belongings.toReversed()) yield statement(`DELETE FROM ${table} WHERE ${isOwn}`, [ids]);
  return { kind: "written", change, contents };
}
