/** Lists which rows of each table belong to a conversation, for archiving, merging and deleting. */

/** The parameter is a JSON list of conversations. */
const own = "conversation_id IN (SELECT value FROM numbers_in(?))";

/** Null for tables without rows of conversations. A schema with other tables does not compile. */
const conditions = {
  registry: "kind = 'session' AND number IN (SELECT value FROM numbers_in(?))",
  conversations: own,
  messages: own,
  message_parts: own,
  summaries: own,
  summary_messages: own,
  summary_parents: own,
  context_items: own,
  large_files: own,
  transcript_entries: own,
  turns: own,
  missing_parents: own,
  compactions: own,
  journal: own,
  drafts: own,
  map_answers: own,
  message_vectors: own,
  pins: own,
  search_words: own,
  prompts: own,
  prompt_heads: own,
  expansion_grants: null,
  model_usage: null,
  embedders: null,
  search_progress: null,
  checksum_backlog: null,
} as const satisfies Readonly<Record<string, string | null>>;

export type TableName = keyof typeof conditions;
export const tableNames = Object.keys(conditions) as readonly TableName[];

/** In insertion order: referenced tables first. Delete in reverse order. */
export const ownedTables = tableNames.flatMap((table) => {
  const isOwn = conditions[table];
  return isOwn === null ? [] : [{ table, isOwn }];
});

/**
 * Transplanted copies refer to the files of their originals. A file whose owner is gone moves to the first conversation
 * that refers to it, without its hash, because that conversation did not store this content itself.
 */
export const reassignFiles = (isGone: (conversation: string) => string): string =>
  `UPDATE main.large_files SET conversation_id = heir.conversation_id, message_key = heir.message_key, content_hash = NULL
   FROM (SELECT named.file_id, m.conversation_id, m.message_key FROM main.messages m JOIN (
           SELECT f.value ->> 'file' AS file_id, min(m.message_id) AS message_id
           FROM main.messages m, objects_in(m.moved) f
           WHERE m.moved IS NOT NULL AND NOT (${isGone("m.conversation_id")}) GROUP BY f.value ->> 'file'
         ) AS named ON m.message_id = named.message_id) AS heir
   WHERE large_files.file_id = heir.file_id AND ${isGone("large_files.conversation_id")}`;
