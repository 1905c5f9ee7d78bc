/** Export: writes a conversation back as the lines of its transcript. */

import { messagesPerPage, restoreAvailable } from "./large-content.ts";
import type { ConversationId, MessageId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { entryToLine, messageToLine } from "../messages/transcript-line.ts";

/** A message that was exported with a reference in place of its content, and why. */
export interface Incomplete {
  readonly message: MessageId;
  readonly reason: string;
}

/** Yields the lines in the order they were stored; returns the messages that could not be restored. */
export async function* exportTranscript(
  store: Store,
  conversation: ConversationId,
): AsyncGenerator<string, readonly Incomplete[]> {
  const incomplete: Incomplete[] = [];
  for (let afterSeq = 0; ;) {
    const messages = await store.messages({ conversation, afterSeq, limit: messagesPerPage });
    const isLast = messages.length < messagesPerPage;
    const upto = isLast ? Number.MAX_SAFE_INTEGER : (messages.at(-1)?.seq ?? afterSeq);
    const entries = (await store.entries(conversation, afterSeq, upto)).toReversed();
    for (const message of messages) {
      while ((entries.at(-1)?.afterSeq ?? Infinity) < message.seq) yield* entries.splice(-1).map(entryToLine);
      const { raw, losses } = await restoreAvailable(store, message);
      const reason = losses.map((loss) => loss.message).join("; ");
      if (reason !== "") incomplete.push({ message: message.id, reason });
      yield messageToLine(message, raw);
      afterSeq = message.seq;
    }
    yield* entries.toReversed().map(entryToLine);
    if (isLast) return incomplete;
  }
}
