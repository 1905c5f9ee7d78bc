/** Export: writes a conversation back as the lines of its transcript. */

import { errorText } from "../base/errors.ts";
import { isObject, type Json } from "../base/json.ts";
import type { HostMessage } from "../messages/codec.ts";
import { comparable, isTelling, saidIn } from "../messages/said.ts";
import { messagesPerPage, restoreAvailable } from "./large-content.ts";
import { heardPrefix, messageName, type ConversationId, type Entry, type Message } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { entryToLine, messageToLine } from "../messages/transcript-line.ts";

/** A message or other entry that was not exported as it was stored, and why. */
export interface Incomplete {
  readonly subject: string;
  readonly reason: string;
}

/**
 * Yields the lines in the order they were stored; returns what could not be exported whole. Branches that the host left can
 * be left out: some hosts delete them.
 */
export async function* exportTranscript(
  store: Store,
  conversation: ConversationId,
  isWithBranches = true,
): AsyncGenerator<string, readonly Incomplete[]> {
  const incomplete: Incomplete[] = [];
  const isTold = createRepetitions(store, conversation);
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
      afterSeq = message.seq;
      if (message.aside === "branch" && !isWithBranches) continue;
      if (await isTold(message)) continue;
      const { line, reason } = await exportMessage(store, message);
      if (reason !== "") incomplete.push({ subject: messageName(message.id), reason });
      if (line !== null) yield line;
    }
    yield* entries.toReversed().flatMap(linesOf);
    if (isLast) return incomplete;
  }
}

/**
 * Whether a line of the host says what a message of the proxy says: the line is then exported alone, so that a transcript
 * whose lines are all there comes back as it was. Each line stands for one message.
 */
function createRepetitions(store: Store, conversation: ConversationId): (message: Message) => Promise<boolean> {
  let lines: Promise<Map<string, number>> | null = null;
  const readLines = async (): Promise<Map<string, number>> => {
    const counts = new Map<string, number>();
    for (const { raw } of await store.entries(conversation, 0, Number.MAX_SAFE_INTEGER))
      for (const piece of saidInLine(raw)) counts.set(piece, (counts.get(piece) ?? 0) + 1);
    return counts;
  };
  return async (message) => {
    if (!message.key.startsWith(heardPrefix)) return false;
    const counts = await (lines ??= readLines());
    const pieces = wordsOf((await restoreAvailable(store, message)).raw);
    if (pieces.length === 0 || !pieces.every((piece) => (counts.get(piece) ?? 0) > 0)) return false;
    for (const piece of pieces) counts.set(piece, (counts.get(piece) ?? 0) - 1);
    return true;
  };
}

/** Thoughts, too: they tell nothing apart, but must not be lost. */
const wordsOf = (message: HostMessage): readonly string[] =>
  saidIn(message)
    .filter((said) => said.kind === "reasoning" || isTelling(said))
    .map(comparable);

/** Hosts write a message, or a block of one, as a line or into a field of it. What is not understood repeats nothing. */
function saidInLine(line: string): readonly string[] {
  if (!isJson(line)) return [];
  const row = JSON.parse(line) as Json;
  if (!isObject(row)) return [];
  const { message, payload } = row;
  const said = isObject(message) ? message : isObject(payload) ? payload : row;
  return wordsOf(typeof said["role"] === "string" ? said : { role: "assistant", content: [said] });
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
