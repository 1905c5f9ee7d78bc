/**
 * Merges the rows of another database, whose tables are reachable as `source`. A conversation keeps its number if that
 * is free here. The journal is not merged, because its change numbers are in use.
 */

import { LcmError } from "../../core/base/errors.ts";
import { shellPath } from "../../core/base/format.ts";
import type { Merged } from "../../core/model/store.ts";
import { numbersPerConversation, type ConversationId } from "../../core/model/types.ts";
import { ownedTables, type TableName } from "../ownership.ts";
import { freshNumber } from "../registry.ts";
import { asConversation } from "../rows.ts";
import { all, count, first, int, sql, statement, text, type Script } from "../script.ts";

type Conversations = readonly ConversationId[];

export interface Source {
  readonly fresh: Conversations;
  readonly known: Conversations;
  /** Storage URIs of files that are not here yet. */
  readonly contents: readonly string[];
}

export function* readSource(path: string): Script<Source> {
  const found = yield* all(
    sql`SELECT c.conversation_id, EXISTS (
          SELECT 1 FROM main.conversations h WHERE h.created_at = c.created_at
            AND (h.session_id = c.session_id OR h.session_key = c.session_key)
            AND (SELECT message_key FROM main.messages WHERE message_id > h.conversation_id << 24
                   AND message_id < (h.conversation_id + 1) << 24 ORDER BY message_id LIMIT 1)
             IS NOT DISTINCT FROM (SELECT message_key FROM source.messages WHERE message_id > c.conversation_id << 24
                   AND message_id < (c.conversation_id + 1) << 24 ORDER BY message_id LIMIT 1)
        ) AS is_known FROM source.conversations c ORDER BY c.conversation_id`,
    (row) => ({ id: asConversation(int(row, "conversation_id")), isKnown: int(row, "is_known") === 1 }),
  );
  const fresh = found.filter(({ isKnown }) => !isKnown).map(({ id }) => id);
  yield* refuseClash(path, fresh);
  const contents = yield* all(
    sql`SELECT storage_uri FROM source.large_files WHERE conversation_id IN (SELECT value FROM numbers_in(${fresh}))
          AND file_id NOT IN (SELECT file_id FROM main.large_files) ORDER BY file_id`,
    (row) => text(row, "storage_uri"),
  );
  return { fresh, known: found.filter(({ isKnown }) => isKnown).map(({ id }) => id), contents };
}

/** One database is a copy of the other, and both have used the same id since, for different things. */
function* refuseClash(path: string, fresh: Conversations): Script<void> {
  const clash = yield* first(
    sql`SELECT s.summary_id AS id, s.conversation_id AS there, h.conversation_id AS here
        FROM source.summaries s JOIN main.summaries h USING (summary_id)
        WHERE s.created_at = h.created_at AND s.conversation_id IN (SELECT value FROM numbers_in(${fresh}))
        UNION ALL
        SELECT f.file_id, f.conversation_id, h.conversation_id FROM source.large_files f JOIN main.large_files h USING (file_id)
        WHERE f.conversation_id IN (SELECT value FROM numbers_in(${fresh})) AND f.content_hash <> h.content_hash
        LIMIT 1`,
    (row) => ({ id: text(row, "id"), there: int(row, "there"), here: int(row, "here") }),
  );
  if (clash === null) return;
  const message = `${clash.id} of conversation ${clash.there} in ${path} already exists in conversation ${clash.here}`;
  const hint = `nothing was merged; export single conversations with \`lcm export --db ${shellPath(path)}\` and import these`;
  throw new LcmError("conflict", message, { hint });
}

/** A conversation's number in the source, and here. */
type Renumbered = Merged["conversations"][number];

export const notMerged: ReadonlySet<string> = new Set(["registry", "journal", "drafts", "map_answers"]);
/** Columns whose values are assigned again, in the same order. */
export const rowNumbers: ReadonlySet<string> = new Set(["entry_id", "compaction_id"]);

export function* mergeRows(
  path: string,
  columnsOf: (table: TableName) => readonly string[],
): Script<Omit<Merged, "files">> {
  const { fresh, known } = yield* readSource(path);
  const conversations = yield* renumber(fresh);
  const pairs = JSON.stringify(conversations.map(({ from, to }) => [from, to]));
  for (const { table } of ownedTables) {
    if (notMerged.has(table)) continue;
    const columns = columnsOf(table);
    const copied = columns.filter((name) => !rowNumbers.has(name));
    const isNew = table === "large_files" ? "WHERE it.file_id NOT IN (SELECT file_id FROM main.large_files)" : "";
    const [key, next] = columns;
    yield statement(
      `INSERT INTO main.${table} (${copied.join(", ")}) SELECT ${copied.map((name) => valueOf(name)).join(", ")}
       FROM pairs_in(?) AS p JOIN source.${table} AS it ON it.conversation_id = p.one ${isNew} ORDER BY it.${key}, it.${next}`,
      [pairs],
    );
  }
  // Rows of an earlier version may still be without checksums, and have any number here.
  yield sql`INSERT INTO main.checksum_backlog (table_name, after_id)
            SELECT table_name, 0 FROM source.checksum_backlog WHERE after_id IS NOT NULL
            ON CONFLICT (table_name) DO UPDATE SET after_id = 0`;
  const merged = conversations.map(({ to }) => to);
  yield sql`INSERT INTO registry (kind, session_key, agent_id, number)
            SELECT 'session', session_key, coalesce(agent_id, ''), conversation_id FROM conversations
            WHERE active = 1 AND session_key IS NOT NULL AND conversation_id IN (SELECT value FROM numbers_in(${merged}))`;
  yield* resolveOrigins(pairs);
  const isMerged = "conversation_id IN (SELECT value FROM numbers_in(?))";
  const rowsOf = (table: string) => count(statement(`SELECT count(*) FROM ${table} WHERE ${isMerged}`, [merged]));
  return { conversations, known, messages: yield* rowsOf("messages"), summaries: yield* rowsOf("summaries") };
}

/** Ids follow the number of their conversation. Files keep theirs, because texts and the files folder contain them. */
function valueOf(name: string): string {
  switch (name) {
    case "conversation_id":
      return "p.other";
    case "message_id":
      // What is carried over names a message of another conversation; see resolveOrigins.
      return `CASE WHEN it.message_id >> 24 = p.one THEN it.message_id + (p.other - p.one) * ${numbersPerConversation} ELSE it.message_id END`;
    case "search_id":
      return `it.${name} + (p.other - p.one) * ${numbersPerConversation}`;
    case "summary_id":
    case "parent_summary_id":
      return renamed(`it.${name}`, "p.one", "p.other");
    case "active":
      return isStillActive;
    case "unindexed":
      return "1";
    case "indexed_seq":
    case "indexed_summary":
      return "0"; // The search index is not copied.
    default:
      return `it.${name}`;
  }
}

/** SQL for a summary's id with another conversation's number. Ids of earlier versions contain no number and stay. */
const renamed = (id: string, from: string, to: string): string =>
  `CASE WHEN ${isNumbered(id, from)} THEN 'sum_' || hex8(${to}) || substr(${id}, 13) ELSE ${id} END`;

const isNumbered = (id: string, conversation: string): string =>
  `substr(${id}, 1, 12) = 'sum_' || hex8(${conversation})`;

/** A session has one active segment: the one here stays active. */
const isStillActive = `CASE WHEN it.active = 1 AND NOT EXISTS (SELECT 1 FROM main.conversations h WHERE h.active = 1
  AND h.session_key IS NOT DISTINCT FROM it.session_key AND coalesce(h.agent_id, '') = coalesce(it.agent_id, '')
  AND (it.session_key IS NOT NULL OR h.session_id = it.session_id)) THEN 1 ELSE 0 END`;

/**
 * A conversation keeps its number if that is free here. It is not free if a message here would then count as a copy of
 * one it was not copied from: forgetting a message also forgets its copies.
 */
function* renumber(ids: Conversations): Script<readonly Renumbered[]> {
  const taken = yield* all(
    sql`SELECT value AS id FROM numbers_in(${ids}) WHERE value IN (SELECT conversation_id FROM main.conversations)
          OR EXISTS (SELECT 1 FROM main.messages h JOIN source.messages it ON it.message_id = h.copied_from
                     WHERE h.copied_from > value << 24 AND h.copied_from < (value + 1) << 24 AND h.content <> it.content)`,
    (row) => int(row, "id"),
  );
  const free = ids.filter((id) => !taken.includes(id));
  yield sql`INSERT INTO registry (kind, number) VALUES ('conversations', ${Math.max(0, ...free)})
            ON CONFLICT (kind, session_key, agent_id) DO UPDATE SET number = greatest(registry.number, excluded.number)`;
  const renumbered: Renumbered[] = [];
  for (const from of ids) {
    const to = free.includes(from) ? from : asConversation(yield* freshNumber("conversations"));
    renumbered.push({ from, to });
  }
  return renumbered;
}

/**
 * Sets the origin of transplanted copies: a message merged with them, the same message here, or a deleted one that may be
 * merged later, because ids are never reused. If the origin is unknown here, the copy's own id, negated.
 */
function* resolveOrigins(pairs: string): Script<void> {
  const number = "WITH number AS (SELECT p.one AS was, p.other AS becomes FROM pairs_in(?) AS p)";
  const isMerged = "it.conversation_id IN (SELECT becomes FROM number)";
  yield statement(
    `${number} UPDATE messages AS it SET copied_from = coalesce(
      (SELECT it.copied_from + (becomes - was) * ${numbersPerConversation} FROM number
       WHERE was = it.copied_from >> 24 AND it.copied_from > 0),
      (SELECT o.message_id FROM messages o
       WHERE o.message_id = it.copied_from AND o.content = it.content AND o.created_at = it.created_at),
      (SELECT it.copied_from FROM registry r LEFT JOIN conversations c ON c.conversation_id = it.copied_from >> 24
       WHERE r.kind = 'conversations' AND it.copied_from > 0 AND it.copied_from >> 24 <= r.number
         AND (c.next_seq IS NULL OR it.copied_from & 16777215 < c.next_seq)
         AND NOT EXISTS (SELECT 1 FROM messages o WHERE o.message_id = it.copied_from)),
      -message_id)
    WHERE copied_from IS NOT NULL AND ${isMerged}`,
    [pairs],
  );
  yield statement(
    `${number} UPDATE pins AS it SET message_id = message_id + (number.becomes - number.was) * ${numbersPerConversation}
     FROM number WHERE ${isMerged} AND number.was = it.message_id >> 24 AND it.message_id >> 24 <> it.conversation_id`,
    [pairs],
  );
  yield statement(
    `${number} UPDATE summaries AS it SET carried_from = (
       SELECT s.summary_id FROM number JOIN summaries s ON s.conversation_id = number.becomes
         AND s.summary_id = 'sum_' || hex8(number.becomes) || substr(it.carried_from, 13)
       WHERE ${isNumbered("it.carried_from", "number.was")})
     WHERE ${isMerged} AND carried_from NOT IN (SELECT summary_id FROM summaries)
       AND EXISTS (SELECT 1 FROM number WHERE ${isNumbered("it.carried_from", "number.was")})`,
    [pairs],
  );
}
