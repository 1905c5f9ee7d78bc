/** Adjusts a conversation's running totals in the transaction of each write, so that nothing is recounted. */

import type { ConversationId, Totals } from "../core/model/types.ts";
import { int, statement, type Row, type Script, type ScriptDeps, type Value } from "./script.ts";

export type TotalsChange = Partial<Totals>;

/** Also sets other columns of the conversation, in the same statement. */
export function* adjustTotals(
  deps: Pick<ScriptDeps, "now">,
  id: ConversationId,
  by: TotalsChange,
  set: Readonly<Record<string, Value>> = {},
): Script<void> {
  const others = Object.keys(set).map((column) => `${column} = ?, `);
  yield statement(
    `UPDATE conversations SET ${others.join("")}
       message_count = message_count + ?, message_tokens = message_tokens + ?, summary_count = summary_count + ?,
       context_items = context_items + ?, context_tokens = context_tokens + ?, context_messages = context_messages + ?,
       context_message_tokens = context_message_tokens + ?, updated_at = ?, revision = revision + 1
     WHERE conversation_id = ?`,
    [
      ...Object.values(set),
      by.messages ?? 0,
      by.messageTokens ?? 0,
      by.summaries ?? 0,
      by.contextItems ?? 0,
      by.contextTokens ?? 0,
      by.contextMessages ?? 0,
      by.contextMessageTokens ?? 0,
      deps.now(),
      id,
    ],
  );
}

/** Totals from counted sums, of a whole conversation or of rows about to change. */
export const totalsIn = (sums: Row): Totals => ({
  messages: int(sums, "messages"),
  messageTokens: int(sums, "message_tokens"),
  summaries: int(sums, "summaries"),
  contextItems: int(sums, "items"),
  contextTokens: int(sums, "tokens"),
  contextMessages: int(sums, "raw_items"),
  contextMessageTokens: int(sums, "raw_tokens"),
});
