/** The running totals of a conversation, moved by every write in its own transaction: nothing is ever counted again. */

import type { ConversationId, Totals } from "../core/model/types.ts";
import { int, sql } from "./script.ts";
import type { Row, Script, ScriptDeps } from "./script.ts";

export type TotalsChange = Partial<Totals>;

export function* adjustTotals(deps: Pick<ScriptDeps, "now">, id: ConversationId, by: TotalsChange): Script<void> {
  yield sql`UPDATE conversations SET
      message_count = message_count + ${by.messages ?? 0},
      message_tokens = message_tokens + ${by.messageTokens ?? 0},
      summary_count = summary_count + ${by.summaries ?? 0},
      context_items = context_items + ${by.contextItems ?? 0},
      context_tokens = context_tokens + ${by.contextTokens ?? 0},
      context_messages = context_messages + ${by.contextMessages ?? 0},
      context_message_tokens = context_message_tokens + ${by.contextMessageTokens ?? 0},
      updated_at = ${deps.now()}, revision = revision + 1
    WHERE conversation_id = ${id}`;
}

/** What rows add up to, wherever it is counted: of a whole conversation, or of what is about to change in it. */
export const totalsIn = (sums: Row): Totals => ({
  messages: int(sums, "messages"),
  messageTokens: int(sums, "message_tokens"),
  summaries: int(sums, "summaries"),
  contextItems: int(sums, "items"),
  contextTokens: int(sums, "tokens"),
  contextMessages: int(sums, "raw_items"),
  contextMessageTokens: int(sums, "raw_tokens"),
});
