/** Records stored files: their ids and the rows that describe them. */

import { LcmError } from "../../core/base/errors.ts";
import type { ConversationId, FileId, StoredFile } from "../../core/model/types.ts";
import type { NewFile } from "../../core/model/store.ts";
import { fileWith, mustHave, storedAmong } from "../conversation/reads.ts";
import { freshDigits } from "../registry.ts";
import { toStoredFile } from "../rows.ts";
import { one, sql, type Script, type ScriptDeps } from "../script.ts";

/** A file whose content is already stored. */
type SavedFile = Omit<NewFile, "content"> &
  Pick<StoredFile, "id" | "bytes" | "lines" | "storageUri"> & { readonly contentHash: string };

export const freshFileId = function* (deps: ScriptDeps, conversation: ConversationId): Script<FileId> {
  const digits = yield* freshDigits(deps, conversation, function* (digits) {
    return (yield* storedAmong([`file_${digits}`])).length > 0;
  });
  return `file_${digits}`;
};

/** If two calls store the same content at once, one file remains; the second call gets that one. */
export function* recordFile(deps: ScriptDeps, file: SavedFile): Script<StoredFile> {
  const { forgets } = yield* mustHave(file.conversation);
  if (file.forgets !== undefined && file.forgets !== forgets)
    throw new LcmError("conflict", "something was forgotten since this was read", { hint: "run it again" });
  yield sql`INSERT INTO large_files (file_id, conversation_id, file_name, mime_type, byte_size, line_count, storage_uri,
                                     encoding, content_hash, exploration_summary, created_at, message_key)
            VALUES (${file.id}, ${file.conversation}, ${file.name}, ${file.mimeType}, ${file.bytes}, ${file.lines},
                    ${file.storageUri}, ${file.encoding}, ${file.contentHash}, ${file.exploration},
                    ${file.message?.at ?? deps.now()}, ${file.message?.key ?? null})
            ON CONFLICT (conversation_id, content_hash) DO NOTHING`;
  return yield* one(fileWith(file.conversation, file.contentHash), toStoredFile);
}
