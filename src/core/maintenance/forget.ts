/** Plans what forgetting a message or a secret changes. */

import type { ConversationId, Message } from "../model/types.ts";
import type { ForgetPlan, Store } from "../model/store.ts";
import { forgetMessage } from "./redact.ts";

/** Empty if its messages are already forgotten, unless a later rewrite put old text into the journal. */
export async function planForget(
  store: Store,
  scope: ConversationId | null,
  target: ForgetPlan["target"],
): Promise<ForgetPlan> {
  const plan = await store.planForget(scope, target);
  if (target.kind === "secret" || plan.journal.length + plan.entries > 0) return plan;
  const messages = await store.messages({ ids: plan.messages });
  return messages.every(isForgotten) ? { ...plan, messages: [], summaries: [] } : plan;
}

/** A message that only quotes the mark differs in its envelope. */
function isForgotten(message: Message): boolean {
  const left = forgetMessage(message);
  return message.text === left.text && message.envelope === left.envelope && message.entry === left.entry;
}

export const forgetsNothing = (plan: ForgetPlan): boolean =>
  plan.messages.length + plan.summaries.length + plan.files.length + plan.journal.length + plan.entries === 0;
