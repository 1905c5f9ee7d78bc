/**
 * Shows stretches of a context by finer texts where there is room: a deep summary by those it was made from, a leaf by
 * its messages. Sweeps fold down to the target in the settings, and this fills a context that is smaller up to it: one
 * that was folded further than needed, or whose window has grown. No model is called, and the context stays as it is.
 *
 * The room depends on the size of the context in steps. So what is shown stays the same until the context has grown by a
 * step, and no state is kept between turns.
 */

import type { ContextItem, ConversationId, SummaryId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { costOf } from "./prompt-items.ts";

/** An item of the context, or a finer one in its place. */
export type ShownItem = ContextItem & {
  /** The summary of the context that it is shown in place of. */
  readonly within?: SummaryId;
};

/** Steps per budget. Fewer: what is shown stays longer; more: the target is met more closely. */
const stepsPerBudget = 8;

/** Tokens that finer texts may add to a context of this size. */
export function roomFor(contextTokens: number, targetTokens: number, budget: number): number {
  const step = budget / stepsPerBudget;
  return step > 0 ? Math.max(0, Math.floor((targetTokens - contextTokens) / step)) * step : 0;
}

/** Whether prompts must stay as small as the last compaction made them: somebody asked for it, or a prompt was rejected. */
export async function isKeptSmall(store: Pick<Store, "compactions">, conversation: ConversationId): Promise<boolean> {
  const [last] = await store.compactions(conversation, 1);
  return last !== undefined && (last.asked || last.mode === "until_under");
}

/** How many summaries are looked into at a time. */
const lookedInto = 4;

/** Level by level, the deepest first, and the newest first at each: everything by leaves before a leaf by its messages. */
export async function zoomIn(
  store: Pick<Store, "sourceItems">,
  context: readonly ContextItem[],
  room: number,
): Promise<readonly ShownItem[]> {
  let shown: readonly ShownItem[] = context;
  let left = room;
  const deepest = context.reduce((most, { depth }) => Math.max(most, depth), -1);
  for (let depth = deepest; depth >= 0 && left > 0; depth--) {
    const newestFirst = shown
      .flatMap((item) => (item.kind === "summary" && item.depth === depth ? [item] : []))
      .toReversed();
    const finer = new Map<unknown, readonly ContextItem[]>();
    look: for (let from = 0; from < newestFirst.length; from += lookedInto) {
      const some = newestFirst.slice(from, from + lookedInto);
      const sources = await store.sourceItems(some.map(({ id }) => id));
      for (const item of some) {
        const items = sources.get(item.id);
        if (items === undefined) continue; // It was carried over, or its sources are damaged.
        const extra = items.reduce((sum, each) => sum + costOf(each), -costOf(item));
        if (extra > left) break look; // An older stretch is never finer than a newer one of its depth.
        left -= extra;
        finer.set(item.id, items);
      }
    }
    shown = shown.flatMap((item): readonly ShownItem[] => {
      const { within = item.id, ordinal } = item;
      return finer.get(item.id)?.map((each) => ({ ...each, ordinal, within: within as SummaryId })) ?? [item];
    });
  }
  return shown;
}
