/** Gives out ids and numbers, and records which conversation is active in each session. */

import { LcmError } from "../core/base/errors.ts";
import { idDigits, numbersPerConversation, type ConversationId } from "../core/model/types.ts";
import { count, sql, type Script, type ScriptDeps } from "./script.ts";

/** A new number for a conversation or a change. Numbers are never reused. */
export const freshNumber = (kind: "conversations" | "changes"): Script<number> =>
  count(
    sql`INSERT INTO registry (kind, number) VALUES (${kind}, 1)
        ON CONFLICT (kind, session_key, agent_id) DO UPDATE SET number = registry.number + 1 RETURNING number`,
  );

/** A number for a row of a conversation. Throws if the conversation has used all of them. */
export function checkNumber(id: ConversationId, number: number, rows: "messages" | "summaries" = "messages"): number {
  if (number < numbersPerConversation) return number;
  const message = `conversation ${id} is full: it has had ${numbersPerConversation - 1} ${rows}`;
  throw new LcmError("unavailable", message, { hint: "reset the session: messages that follow go to a new segment" });
}

/** The 16 digits of a new summary's or file's id in a conversation. */
export function* freshDigits(
  deps: ScriptDeps,
  id: ConversationId,
  isTaken: (digits: string) => Script<boolean>,
): Script<string> {
  const triesMax = 8;
  for (let tries = 0; tries < triesMax; tries++) {
    const digits = idDigits(id, deps.hex16());
    if (!(yield* isTaken(digits))) return digits;
  }
  throw new LcmError("unavailable", `no free id in ${triesMax} tries`, {
    hint: "the source of random ids repeats itself",
  });
}

/** Makes this the conversation that the session writes to. A session without a key is not recorded. */
export function* activate(id: ConversationId, sessionKey: string | null, agent: string | null): Script<void> {
  if (sessionKey === null) return;
  yield sql`INSERT INTO registry (kind, session_key, agent_id, number)
            VALUES ('session', ${sessionKey}, ${agent ?? ""}, ${id})
            ON CONFLICT (kind, session_key, agent_id) DO UPDATE SET number = excluded.number`;
}

export function* deactivate(id: ConversationId, sessionKey: string | null): Script<void> {
  yield sql`DELETE FROM registry WHERE kind = 'session' AND session_key = ${sessionKey} AND number = ${id}`;
}
