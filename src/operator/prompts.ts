/** Reads the recorded prompts, and one of them with what changed from the one before. */

import { LcmError } from "../core/base/errors.ts";
import type { Lcm } from "../core/lcm.ts";
import type { ConversationId, MessageId } from "../core/model/types.ts";
import type { Comparison } from "../core/seen/compare.ts";
import type { Seen } from "../core/seen/find-seen.ts";
import type { Rebuilt } from "../core/seen/rebuild.ts";
import type { PromptStats } from "../core/seen/stats.ts";
import { idsOf, itemsOf, type PromptItem } from "../format/context.ts";
import { reads, type OfConversation } from "./port.ts";

interface PromptsAsked extends OfConversation {
  readonly limit: number;
  /** The message whose prompt is looked for. */
  readonly behind: MessageId | null;
}

export interface Prompts {
  readonly stats: PromptStats;
  /** The number of the prompt behind that message; null if none is recorded. */
  readonly behind: number | null;
  readonly isMore: boolean;
}

export interface PromptDetail {
  readonly seen: Seen;
  readonly rebuilt: Rebuilt;
  readonly items: readonly PromptItem[];
  /** What changed from the prompt before; null if there is none to compare with. */
  readonly changes: Comparison | null;
}

export const promptsAsks = {
  prompts: reads(async (lcm, { conversation, limit, behind }: PromptsAsked): Promise<Prompts> => {
    const stats = await lcm.promptStats({ conversation, limit });
    return {
      stats,
      behind: behind === null ? null : await numberBehind(lcm, behind),
      isMore: (stats.prompts[0]?.number ?? 1) > 1,
    };
  }),

  promptDetail: reads(
    async (lcm, { conversation, number }: OfConversation & { readonly number: number }): Promise<PromptDetail> => {
      const seen = await lcm.findPrompt({ conversation, number });
      const rebuilt = await lcm.rebuild(seen.record);
      const ids = idsOf(rebuilt.assembly.report);
      const items = itemsOf(rebuilt.assembly, {
        summaries: await lcm.store.summaries({ ids: ids.summaries }),
        messages: await lcm.store.messages({ ids: ids.messages }),
      });
      return { seen, rebuilt, items, changes: await changesTo(lcm, conversation, seen) };
    },
  ),
};

async function numberBehind(lcm: Lcm, message: MessageId): Promise<number | null> {
  try {
    return (await lcm.findPrompt({ message })).record.number;
  } catch (error) {
    if (error instanceof LcmError && error.code === "not_found") return null;
    throw error;
  }
}

/** What changed from the prompt before; null if there is none to compare with. */
export async function changesTo(lcm: Lcm, conversation: ConversationId, { record }: Seen): Promise<Comparison | null> {
  const [before] = await lcm.prompts(conversation, { to: record.number - 1, limit: 1, keep: "newest" });
  const isOurs = before !== undefined && before.head.hosts === undefined && record.head.hosts === undefined;
  return isOurs ? await lcm.comparePrompts(before, record) : null;
}
