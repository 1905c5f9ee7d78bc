/**
 * What belongs to a conversation: which rows of each table are its own. Whoever takes conversations out of a database or
 * brings them in goes by this one list, table by table.
 */

/** The conversations are given as a JSON list. */
const own = "conversation_id IN (SELECT value FROM json_each(?))";

/** Null for tables without rows of conversations. A schema with other tables than these does not compile. */
const conditions = {
  registry: "kind = 'session' AND number IN (SELECT value FROM json_each(?))",
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
  expansion_grants: null,
  model_usage: null,
  search_progress: null,
} as const satisfies Readonly<Record<string, string | null>>;

export type TableName = keyof typeof conditions;
export const tableNames = Object.keys(conditions) as readonly TableName[];

export interface Belonging {
  readonly table: TableName;
  /** A condition with one value, the list of conversations. */
  readonly isOwn: string;
}

/** In the order in which rows can come in, what is pointed to first; they go in the reverse one. */
export const belongings: readonly Belonging[] = tableNames.flatMap((table) => {
  const isOwn = conditions[table];
  return isOwn === null ? [] : [{ table, isOwn }];
});

/**
 * Copies of a transplant name the files of their originals. Where the owner of a file is away, it becomes one of the
 * first conversation that names it: no longer the file that was stored there with its content, so without its hash.
 */
export const giveFilesToHeirs = (isAway: (conversation: string) => string): string =>
  `UPDATE main.large_files SET conversation_id = heir.conversation_id, message_key = heir.message_key, content_hash = NULL
   FROM (SELECT f.value ->> 'file' AS file_id, m.conversation_id, m.message_key, min(m.message_id)
         FROM main.messages m, json_each(m.moved) f
         WHERE m.moved IS NOT NULL AND NOT (${isAway("m.conversation_id")}) GROUP BY 1) AS heir
   WHERE large_files.file_id = heir.file_id AND ${isAway("large_files.conversation_id")}`;
