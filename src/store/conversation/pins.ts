/** Reads pins (standing instructions), and writes those that are found by themselves, carried over or copied. */

import { isAutomated } from "../../core/model/session-pattern.ts";
import { pinOrigins, pinStates } from "../../core/model/types.ts";
import type { Conversation, ConversationId, MessageId, NewPin, Pin } from "../../core/model/types.ts";
import type { Timestamp } from "../../core/base/time.ts";
import { asConversation, asMessage, time, wordOf } from "../rows.ts";
import { all, int, sql, text, type ReadScript, type Row, type Script } from "../script.ts";
import { mustHave, rowsMax } from "./reads.ts";

const asOrigin = wordOf(pinOrigins);
const asState = wordOf(pinStates);

const toPin = (row: Row): Pin => ({
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
  yield* mustHave(id);
  return yield* all(
    sql`SELECT p.* FROM pins p
          LEFT JOIN messages m ON m.message_id = p.message_id AND m.conversation_id = p.conversation_id
        WHERE p.conversation_id = ${id} AND (${Number(inForce)} = 0 OR (p.state = 'pinned' AND m.aside IS NULL))
        ORDER BY p.said_at DESC, p.message_id DESC LIMIT ${rowsMax(limit)}`,
    toPin,
  );
};

/** Pins what was found by itself, unless a program wrote it. What is pinned or unpinned already stays as it is. */
export function* insertPins(
  { id, sessionKey, now }: Pick<Conversation, "id" | "sessionKey"> & { readonly now: Timestamp },
  found: readonly NewPin[],
): Script<void> {
  if (isAutomated(sessionKey)) return;
  for (const { message, words, saidAt, state, origin, reason } of found)
    yield sql`INSERT INTO pins (conversation_id, message_id, words, said_at, state, origin, reason, at)
              VALUES (${id}, ${message}, ${words}, ${saidAt}, ${state}, ${origin}, ${reason}, ${now})
              ON CONFLICT (conversation_id, message_id) DO NOTHING`;
}

/** More than fit any prompt. */
const carriedMax = 256;

export function* carryPins(from: ConversationId, to: ConversationId): Script<void> {
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
            SELECT ${to}, c.value ->> 1, p.words, p.said_at, p.state, p.origin, p.reason, p.at
            FROM json_each(${pairs}) c JOIN pins p ON p.message_id = c.value ->> 0
            WHERE p.conversation_id = (c.value ->> 0) >> 24`;
}
