/**
 * Finds the stored files that copied messages and summaries refer to. A file belongs to one conversation; a transplant
 * does not copy it. Access to a copy includes the files it refers to; a mention in a text grants no access.
 */

import type { ConversationId, FileId, MessageId } from "../../core/model/types.ts";
import type { FileHolder } from "../../core/model/store.ts";
import { asConversation, asMessage } from "../rows.ts";
import { all, int, sql, text, type ReadScript, type Script } from "../script.ts";

/** Each file that these conversations refer to, with one conversation that does; null means all that are not hidden. */
export function* sharedFiles(
  among: readonly ConversationId[] | null,
  only: FileId | null = null,
): Script<ReadonlyMap<FileId, FileHolder>> {
  const holders = yield* all(
    // The older program named files in the text of messages, where anyone can write an id. There the message must be a
    // copy from the file's own conversation. The file ids of summaries keep that search short.
    sql`WITH reach(id) AS (
          SELECT conversation_id FROM conversations WHERE CASE WHEN ${among} IS NULL THEN hidden = 0
            ELSE conversation_id IN (SELECT value FROM numbers_in(${among})) END
        )
        SELECT f.value ->> 'file' AS file_id, m.conversation_id, m.message_id
        FROM reach CROSS JOIN messages m ON m.conversation_id = reach.id AND m.moved IS NOT NULL
          CROSS JOIN objects_in(m.moved) f
        WHERE ${only} IS NULL OR f.value ->> 'file' = ${only}
        UNION ALL
        SELECT l.file_id, s.conversation_id, NULL
        FROM reach CROSS JOIN summaries s ON s.conversation_id = reach.id AND s.file_ids <> '[]'
          CROSS JOIN texts_in(s.file_ids) f
          CROSS JOIN large_files l ON l.file_id = f.value AND l.conversation_id <> s.conversation_id
        WHERE (${only} IS NULL OR l.file_id = ${only}) AND (
          EXISTS (SELECT 1 FROM summaries o WHERE o.summary_id = s.carried_from AND o.conversation_id = l.conversation_id)
          OR EXISTS (SELECT 1 FROM messages m JOIN messages o ON o.message_id = m.copied_from
                     WHERE m.conversation_id = s.conversation_id AND m.message_key >= 'copy:' AND m.message_key < 'copy;'
                       AND o.conversation_id = l.conversation_id AND instr(m.content, l.file_id)))`,
    (row) => ({
      file: text(row, "file_id") as FileId,
      conversation: asConversation(int(row, "conversation_id")),
      message: row["message_id"] === null ? null : asMessage(int(row, "message_id")),
    }),
  );
  const shared = new Map<FileId, { conversation: ConversationId; message: MessageId | null }>();
  for (const { file, ...holder } of holders) if (!shared.has(file)) shared.set(file, holder);
  return shared;
}

export const holderOf: ReadScript<"holderOf"> = function* (file, among) {
  return (yield* sharedFiles(among, file)).get(file) ?? null;
};
