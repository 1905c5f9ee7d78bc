/** Reads the list of conversations, and checks one. */

import type { Inspection } from "../core/maintenance/inspect.ts";
import type { Conversation, ConversationId } from "../core/model/types.ts";
import { groupsOf, type FindingGroup } from "../format/findings.ts";
import { reads, type OfConversation } from "./port.ts";
import { promptBudgetDefault, promptTokens } from "../core/model/prompt-cost.ts";

export interface ConversationRow {
  readonly conversation: Conversation;
  /** What its whole context would take in a prompt. */
  readonly promptTokens: number;
  readonly budget: number;
  /** A sweep is due above this. */
  readonly thresholdTokens: number;
  /** Why its latest compaction failed; null if it succeeded, or is too long ago. */
  readonly stalled: string | null;
}

export interface Checkup {
  /** Of the conversation when it was checked. */
  readonly revision: number;
  readonly groups: readonly FindingGroup[];
  readonly checked: Inspection["checked"];
  /** Errors and warnings. */
  readonly count: number;
}

const compactionsLookedAt = 200;

export const conversationsAsks = {
  conversations: reads(async ({ store, settings }): Promise<readonly ConversationRow[]> => {
    const conversations = await store.conversations({ includeHidden: true });
    const stalled = new Map<ConversationId, string | null>();
    for (const { conversation, outcome, message } of await store.compactions(null, compactionsLookedAt))
      if (!stalled.has(conversation)) stalled.set(conversation, isStalled(outcome) ? message : null);
    return conversations.map((conversation) => {
      const budget = conversation.promptBudget ?? promptBudgetDefault;
      return {
        conversation,
        promptTokens: promptTokens(conversation.totals),
        budget,
        thresholdTokens: Math.floor(settings.contextThreshold * budget),
        stalled: stalled.get(conversation.id) ?? null,
      };
    });
  }),
  /** Checks one conversation as `lcm doctor` does; takes longer the longer it is. */
  checkup: reads(async (lcm, { conversation }: OfConversation): Promise<Checkup> => {
    const revision = (await lcm.store.conversation(conversation))?.revision ?? 0;
    const { findings, checked } = await lcm.examine(conversation);
    return {
      revision,
      groups: await groupsOf(lcm.store, findings),
      checked,
      count: findings.filter(({ severity }) => severity !== "info").length,
    };
  }),
};

const isStalled = (outcome: string): boolean => outcome === "failed" || outcome === "waiting";
