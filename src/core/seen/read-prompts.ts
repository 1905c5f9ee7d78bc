/** Reads recorded prompts with their heads. */

import { isSummaryId, idDigits, messageIdOf, conversationIn, seqOf } from "../model/types.ts";
import type { ConversationId, MessageId, SummaryId } from "../model/types.ts";
import type { HeadItem, PromptFilter, PromptHead, PromptRecord } from "../model/prompts.ts";
import type { Store } from "../model/store.ts";

export async function readPrompts(
  store: Pick<Store, "prompts">,
  conversation: ConversationId,
  filter?: PromptFilter,
): Promise<readonly PromptRecord[]> {
  const { rows, heads } = await store.prompts(conversation, filter);
  const parsed = heads.map(({ since, head }) => ({
    since,
    head: renumbered(JSON.parse(head) as PromptHead, conversation),
  }));
  let at = 0;
  return rows.flatMap((row) => {
    while ((parsed[at + 1]?.since ?? Infinity) <= row.number) at++;
    const head = parsed[at]?.head;
    return head === undefined ? [] : [{ ...row, head }];
  });
}

/** The ids as they are now: a merge may have given the conversation another number. */
function renumbered(head: PromptHead, conversation: ConversationId): PromptHead {
  const before = head.conversation as ConversationId;
  if (before === conversation) return head;
  const summaryOf = (id: SummaryId): SummaryId => {
    const moved: string = `sum_${idDigits(conversation, id.slice(4))}`;
    return id.startsWith(`sum_${idDigits(before, "").padStart(8, "0")}`) && isSummaryId(moved) ? moved : id;
  };
  const messageOf = (id: MessageId): MessageId =>
    conversationIn(id) === before ? messageIdOf(conversation, seqOf(id)) : id;
  const items = head.items.map((item): HeadItem => {
    const within = item.within === undefined ? {} : { within: summaryOf(item.within) };
    return "summary" in item ? { ...item, summary: summaryOf(item.summary), ...within } : { ...item, ...within };
  });
  const { standing } = head;
  if (standing === undefined) return { ...head, items };
  const pins = standing.pins.map((pin) => ({ ...pin, message: messageOf(pin.message) }));
  return { ...head, items, standing: { ...standing, pins } };
}
