/**
 * Stores what a map answered as a file of JSON lines, one for each message. A file belongs to the reader's own conversation.
 * For a reader without one there is a file for each conversation, since whoever may read the one may not read the others.
 */

import { firstLine } from "../../base/excerpt.ts";
import { plural } from "../../base/format.ts";
import type { Store } from "../../model/store.ts";
import { conversationIn, mapMimeType, messageName } from "../../model/types.ts";
import type { ConversationId, StoredFile } from "../../model/types.ts";
import type { Mapped } from "./map.ts";

/** One line of the file. */
export const mapLine = ({ id, at, role, result }: Mapped): string =>
  JSON.stringify({ id: messageName(id), at, role, result });

/** Empty without results. Throws `conflict` if something was forgotten since the messages were read. */
export async function saveMap(
  store: Store,
  about: { readonly prompt: string; readonly results: readonly Mapped[]; readonly own?: ConversationId | null },
): Promise<readonly StoredFile[]> {
  const { prompt, results, own = null } = about;
  const files: StoredFile[] = [];
  for (const [conversation, mapped] of Map.groupBy(results, ({ id }) => own ?? conversationIn(id))) {
    const forgets = await forgetsOf(store, conversation, mapped);
    const task = firstLine(prompt, 200);
    files.push(
      await store.saveFile({
        conversation,
        name: "map.jsonl",
        mimeType: mapMimeType,
        encoding: "utf8",
        exploration: `What a model answered about ${plural(mapped.length, "message")}, a line of JSON each: ${task}`,
        content: `${mapped.map(mapLine).join("\n")}\n`,
        ...forgets,
      }),
    );
  }
  return files;
}

/** Forgetting counts in all conversations alike, so the own one has changed if the one that was read has. */
async function forgetsOf(store: Store, own: ConversationId, [first]: readonly Mapped[]) {
  const [read, kept] = [first && (await store.conversation(conversationIn(first.id))), await store.conversation(own)];
  return first && read && kept ? { forgets: kept.forgets + first.forgets - read.forgets } : {};
}
