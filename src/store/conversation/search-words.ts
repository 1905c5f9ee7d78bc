/** Stores the words that a model wrote for search, message by message, and indexes them with their message. */

import type { ConversationId, MessageId, SearchWords } from "../../core/model/types.ts";
import { reindexWords } from "../search/indexing.ts";
import { sql, type Script } from "../script.ts";

/** New words replace earlier ones: a leaf may be folded again, or rewritten. */
export function* insertSearchWords(id: ConversationId, found: readonly SearchWords[]): Script<void> {
  for (const { message, words } of found) {
    yield sql`INSERT INTO search_words (conversation_id, message_id, words) VALUES (${id}, ${message}, ${words})
              ON CONFLICT (conversation_id, message_id) DO UPDATE SET words = ${words}`;
    yield* reindexWords(message);
  }
}

/** For copies of messages in another conversation, which are indexed later. */
export function* copySearchWords(to: ConversationId, copies: ReadonlyMap<MessageId, MessageId>): Script<void> {
  yield sql`INSERT INTO search_words (conversation_id, message_id, words)
            SELECT ${to}, c.other, w.words
            FROM pairs_in(${JSON.stringify([...copies])}) c JOIN search_words w ON w.message_id = c.one`;
}
