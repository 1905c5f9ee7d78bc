/** What the list of conversations asks: which there are, and how well each is. */

import type { Inspection } from "../../core/maintenance/inspect.ts";
import type { Conversation, ConversationId } from "../../core/model/types.ts";
import { groupsOf } from "../../format/findings.ts";
import type { FindingGroup } from "../../format/findings.ts";
import { reads } from "../port.ts";
import type { OfConversation } from "../port.ts";
import { promptBudgetDefault, promptTokens } from "../../core/model/prompt-cost.ts";

/** A conversation beside others. */
export interface ConversationRow {
  readonly conversation: Conversation;
  /** What its whole context would take in a prompt, and what a prompt may take. */
  readonly promptTokens: number;
  readonly budget: number;
  /** Above it a sweep is due. */
  readonly thresholdTokens: number;
  /** Why its newest compaction did not end well; null if it did, or if that is long ago. */
  readonly stalled: string | null;
}

export interface Checkup {
  /** What was checked: a conversation that was written to since may be otherwise. */
  readonly revision: number;
  readonly groups: readonly FindingGroup[];
  readonly checked: Inspection["checked"];
  /** Errors and warnings. */
  readonly count: number;
}

const compactionsLookedAt = 200;

export const conversationsAsks = {
  conversations: reads(async ({ store, settings }): Promise<readonly ConversationRow[]> => {
    const found = await store.conversations({ includeHidden: true });
    const stalled = new Map<ConversationId, string | null>();
    for (const { conversation, outcome, message } of await store.compactions(null, compactionsLookedAt))
      if (!stalled.has(conversation)) stalled.set(conversation, isStalled(outcome) ? message : null);
    return found.map((conversation) => {
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
  /** Everything about one is checked, as `lcm doctor` does: that takes as long as it is. */
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
