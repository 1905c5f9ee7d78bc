/** Reads pins (standing instructions), and writes those that are found by themselves, carried over or copied. */

import { mayHoldCue } from "../../core/messages/standing-cues.ts";
import { pinsIn } from "../../core/messages/standing.ts";
import { isAutomated } from "../../core/model/session-pattern.ts";
import { messageIdOf, pinOrigins, pinStates } from "../../core/model/types.ts";
import type { Conversation, ConversationId, MessageId, NewPin, Pin } from "../../core/model/types.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { asConversation, asMessage, time, wordOf } from "../rows.ts";
import { all, atOnce, count, int, sql, statement, text, type ReadScript, type Row, type Script } from "../script.ts";
import { isPending } from "../search/sources.ts";
import { mustHave, reads, rowsMax } from "./reads.ts";

const asOrigin = wordOf(pinOrigins);
const asState = wordOf(pinStates);

export const toPin = (row: Row): Pin => ({
  conversation: asConversation(int(row, "conversation_id")),
  message: asMessage(int(row, "message_id")),
  words: text(row, "words"),
  saidAt: time(row, "said_at"),
  state: asState(text(row, "state")),
  origin: asOrigin(text(row, "origin")),
  reason: text(row, "reason"),
  at: time(row, "at"),
});

/** A carried pin has no message in its own conversation, so nothing there can have set it aside. */
export const pins: ReadScript<"pins"> = function* (id, { inForce = false, limit } = {}) {
  const wanted = all(
    sql`SELECT p.* FROM pins p
          LEFT JOIN messages m ON m.message_id = p.message_id AND m.conversation_id = p.conversation_id
        WHERE p.conversation_id = ${id} AND (${Number(inForce)} = 0 OR (p.state = 'pinned' AND m.aside IS NULL))
        ORDER BY p.said_at DESC, p.message_id DESC LIMIT ${rowsMax(limit)}`,
    toPin,
  );
  const [found] = yield* atOnce([wanted, mustHave(id)]);
  return found;
};

/** Pins what was found by itself, unless a program wrote it. What is pinned or unpinned already stays as it is. */
export function* insertPins(
  {
    id,
    sessionKey,
    parentSessionId,
    now,
  }: Pick<Conversation, "id" | "sessionKey" | "parentSessionId"> & { readonly now: Timestamp },
  found: readonly NewPin[],
): Script<void> {
  // To a sub-agent, another agent speaks in the user's name.
  if (isAutomated(sessionKey) || parentSessionId !== null) return;
  for (const { message, words, saidAt, state, origin, reason } of found)
    yield sql`INSERT INTO pins (conversation_id, message_id, words, said_at, state, origin, reason, at)
              VALUES (${id}, ${message}, ${words}, ${saidAt}, ${state}, ${origin}, ${reason}, ${now})
              ON CONFLICT (conversation_id, message_id) DO NOTHING`;
}

/**
 * Pins what cues find in the messages after one number up to another. Storing a turn does not wait for it: it is done
 * soon after, and at the latest with the index. Not in what was folded: that was looked at then, and a prompt must not
 * change because of a message that left it long ago.
 */
export function* pinNew(now: Timestamp, id: ConversationId, after: number, newest: number): Script<void> {
  const said = yield sql`SELECT message_id, content FROM messages WHERE role = 'user' AND aside IS NULL
    AND message_id BETWEEN ${messageIdOf(id, after) + 1} AND ${messageIdOf(id, newest)}`;
  const ids = said.flatMap((row) => (mayHoldCue(text(row, "content")) ? asMessage(int(row, "message_id")) : []));
  if (ids.length === 0) return;
  const found: NewPin[] = [];
  for (const pin of pinsIn(yield* reads.messages({ ids })))
    if ((yield* count(sql`SELECT 1 FROM summary_messages WHERE message_id = ${pin.message} LIMIT 1`)) === 0)
      found.push(pin);
  if (found.length > 0) yield* insertPins({ ...(yield* mustHave(id)), now }, found);
}

/** Pins what is new in each conversation with rows past the index. `looked`: up to where each was looked at before. */
export function* pinPending(now: Timestamp, looked: Map<ConversationId, number>): Script<void> {
  const pending = yield* all(
    statement(`SELECT conversation_id, indexed_seq, next_seq - 1 AS newest FROM conversations WHERE ${isPending}`),
    (row) => ({
      id: asConversation(int(row, "conversation_id")),
      indexed: int(row, "indexed_seq"),
      newest: int(row, "newest"),
    }),
  );
  for (const { id, indexed, newest } of pending) {
    const after = Math.max(indexed, looked.get(id) ?? 0);
    if (after < newest) yield* pinNew(now, id, after, newest);
    looked.set(id, newest);
  }
}

/** More than fit any prompt. */
const carriedMax = 256;

export function* carryPins(now: Timestamp, from: ConversationId, to: ConversationId): Script<void> {
  const [row] = yield sql`SELECT indexed_seq, next_seq FROM conversations WHERE conversation_id = ${from}`;
  if (row !== undefined) yield* pinNew(now, from, int(row, "indexed_seq"), int(row, "next_seq") - 1);
  yield sql`INSERT INTO pins (conversation_id, message_id, words, said_at, state, origin, reason, at)
            SELECT ${to}, p.message_id, p.words, p.said_at, p.state, p.origin, p.reason, p.at FROM pins p
              LEFT JOIN messages m ON m.message_id = p.message_id AND m.conversation_id = p.conversation_id
            WHERE p.conversation_id = ${from} AND p.state = 'pinned' AND m.aside IS NULL
            ORDER BY p.said_at DESC, p.message_id DESC LIMIT ${carriedMax}`;
}

/** For copies of messages in another conversation. */
export function* copyPins(to: ConversationId, copies: ReadonlyMap<MessageId, MessageId>): Script<void> {
  const pairs = JSON.stringify([...copies]);
  yield sql`INSERT INTO pins (conversation_id, message_id, words, said_at, state, origin, reason, at)
            SELECT ${to}, c.other, p.words, p.said_at, p.state, p.origin, p.reason, p.at
            FROM pairs_in(${pairs}) c JOIN pins p ON p.message_id = c.one
            WHERE p.conversation_id = c.one >> 24`;
}
