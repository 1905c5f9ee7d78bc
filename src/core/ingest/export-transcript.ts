/** Export: writes a conversation back as the lines of its transcript. */

import { errorText } from "../base/errors.ts";
import { messagesPerPage, restoreAvailable } from "./large-content.ts";
import { messageName, type ConversationId, type Entry, type Message } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { entryToLine, messageToLine } from "../messages/transcript-line.ts";

/** A message or other entry that was not exported as it was stored, and why. */
export interface Incomplete {
  readonly subject: string;
  readonly reason: string;
}

/** Yields the lines in the order they were stored; returns what could not be exported whole. */
export async function* exportTranscript(
  store: Store,
  conversation: ConversationId,
): AsyncGenerator<string, readonly Incomplete[]> {
  const incomplete: Incomplete[] = [];
  const linesOf = (entry: Entry): readonly string[] => {
    const isLine = entry.isDamaged !== true || isJson(entry.raw);
    const reason = isLine ? damage : notRebuilt;
    if (entry.isDamaged === true) incomplete.push({ subject: `entry ${entry.key}`, reason });
    return isLine ? [entryToLine(entry)] : [];
  };
  for (let afterSeq = 0; ;) {
    const messages = await store.messages({ conversation, afterSeq, limit: messagesPerPage });
    const isLast = messages.length < messagesPerPage;
    const upto = isLast ? Number.MAX_SAFE_INTEGER : (messages.at(-1)?.seq ?? afterSeq);
    const entries = (await store.entries(conversation, afterSeq, upto)).toReversed();
    for (const message of messages) {
      while ((entries.at(-1)?.afterSeq ?? Infinity) < message.seq) yield* entries.splice(-1).flatMap(linesOf);
      const { line, reason } = await exportMessage(store, message);
      if (reason !== "") incomplete.push({ subject: messageName(message.id), reason });
      if (line !== null) yield line;
      afterSeq = message.seq;
    }
    yield* entries.toReversed().flatMap(linesOf);
    if (isLast) return incomplete;
  }
}

const damage = "its stored text does not match its checksum";
const notRebuilt = `${damage}, and it cannot be rebuilt`;

function isJson(line: string): boolean {
  try {
    JSON.parse(line);
    return true;
  } catch {
    return false; // The caller says why the line is left out.
  }
}

/** Without a line if a message is so damaged that it cannot be rebuilt. */
async function exportMessage(
  store: Store,
  message: Message,
): Promise<{ readonly line: string | null; readonly reason: string }> {
  const damages = message.isDamaged === true ? [damage] : [];
  try {
    const { raw, losses } = await restoreAvailable(store, message);
    return { line: messageToLine(message, raw), reason: [...damages, ...losses.map(errorText)].join("; ") };
  } catch (error) {
    if (damages.length === 0) throw error;
    return { line: null, reason: notRebuilt };
  }
}
