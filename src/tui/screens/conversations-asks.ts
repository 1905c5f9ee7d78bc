/** What the list of conversations asks: which there are, and how well each is. */

import type { Conversation } from "../../core/model.ts";
import { promptTokens } from "../../core/render-summary.ts";
import type { Performers } from "../port.ts";

export interface ConversationsAsks {
  readonly conversations: { readonly ask: object; readonly told: readonly ConversationRow[] };
}

/** A conversation beside others. */
export interface ConversationRow {
  readonly conversation: Conversation;
  /** What its whole context would take in a prompt. */
  readonly promptTokens: number;
}

export const conversationsAsks: Performers<ConversationsAsks> = {
  async conversations(_ask, { port }) {
    const lcm = await port.reading();
    const found = await lcm.store.conversations({ includeHidden: true });
    return found.map((conversation) => ({ conversation, promptTokens: promptTokens(conversation.totals) }));
  },
};
