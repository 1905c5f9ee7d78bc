/** Numbers and session keys that must be unique across all conversations. */

import type { ConversationId } from "../core/model/types.ts";
import { count, sql } from "./script.ts";
import type { Script } from "./script.ts";

/** A number that was never given before to a conversation, or to an operator's change. */
export const freshNumber = (kind: "conversations" | "changes"): Script<number> =>
  count(
    sql`INSERT INTO registry (kind, number) VALUES (${kind}, 1)
        ON CONFLICT (kind, session_key, agent_id) DO UPDATE SET number = number + 1 RETURNING number`,
  );

/** Makes this the conversation that the session's host writes to. A session without a key has no entry. */
export function* activate(id: ConversationId, sessionKey: string | null, agent: string | null): Script<void> {
  if (sessionKey === null) return;
  yield sql`INSERT INTO registry (kind, session_key, agent_id, number)
            VALUES ('session', ${sessionKey}, ${agent ?? ""}, ${id})
            ON CONFLICT (kind, session_key, agent_id) DO UPDATE SET number = excluded.number`;
}

export function* deactivate(id: ConversationId, sessionKey: string | null): Script<void> {
  yield sql`DELETE FROM registry WHERE kind = 'session' AND session_key = ${sessionKey} AND number = ${id}`;
}
