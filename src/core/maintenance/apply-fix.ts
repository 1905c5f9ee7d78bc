/** Setting right what needs no decision, in one conversation or in a whole database, while others write to it. */

import type { Changed, Mending, Written } from "../model/changes.ts";
import { LcmError } from "../base/errors.ts";
import { planFix } from "./plan-fix.ts";
import { eachConversation } from "./inspect.ts";
import type { InspectProgress } from "./inspect.ts";
import type { ConversationId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { applyOrReplan } from "./apply-or-replan.ts";

export interface FixPlan {
  readonly conversations: readonly Mending[];
  /** In the rest of the file: rows that belong to nothing, and search entries without a row. */
  readonly orphans: { readonly rows: number; readonly searchEntries: number };
}

export const isNothing = ({ conversations, orphans }: FixPlan): boolean =>
  conversations.length + orphans.rows + orphans.searchEntries === 0;

/** Of one conversation, or of all and the file. */
export async function planFixes(
  store: Store,
  only: ConversationId | null,
  onProgress: (progress: InspectProgress) => void = () => undefined,
): Promise<FixPlan> {
  const conversations: Mending[] = [];
  for await (const id of eachConversation(store, only, onProgress)) {
    const plan = planFix(await store.skeleton(id));
    if (plan !== null) conversations.push(plan);
  }
  if (only !== null) return { conversations, orphans: { rows: 0, searchEntries: 0 } };
  const integrity = await store.databaseFile?.integrity();
  const rows = Object.values(integrity?.orphanedRows ?? {}).reduce((sum, each) => sum + each, 0);
  return { conversations, orphans: { rows, searchEntries: integrity?.orphanedSearchEntries ?? 0 } };
}

export interface FixWatch {
  readonly onProgress?: (progress: InspectProgress) => void;
  /** The conversation was written to meanwhile: this is done instead, or nothing. */
  readonly onReplan?: (conversation: ConversationId, plan: Mending | null) => void;
}

export interface Fixed {
  /** Null if nothing was left to do. */
  readonly change: number | null;
  readonly conversations: readonly ConversationId[];
  /** Rows that belonged to nothing, and search entries without a row. */
  readonly removed: number;
}

/** Each conversation is mended at once or not at all; everything together is one change. */
export async function applyFixes(store: Store, plan: FixPlan, watch: FixWatch = {}): Promise<Fixed> {
  const { conversations, orphans } = plan;
  const mended: ConversationId[] = [];
  let change: number | null = null;
  for (const [done, planned] of conversations.entries()) {
    const { conversation } = planned;
    watch.onProgress?.({ conversation, done, of: conversations.length });
    const made = await mendOne(store, planned, change, watch);
    if (made === null) continue;
    change = made;
    mended.push(conversation);
  }
  if (orphans.rows + orphans.searchEntries === 0) return { change, conversations: mended, removed: 0 };
  const swept = await store.sweepOrphans(change === null ? {} : { change });
  return { change: change ?? swept.change, conversations: mended, removed: swept.removed };
}

/** The number of the change; null where nothing was left to mend. */
async function mendOne(
  store: Store,
  planned: Mending,
  change: number | null,
  { onReplan }: FixWatch,
): Promise<number | null> {
  const { conversation } = planned;
  const before = change === null ? "nothing was changed" : `what was mended before is change ${change}`;
  const { done } = await applyOrReplan<Mending | null, { readonly kind: "nothing" } | Written<Changed>>(planned, {
    apply: async (plan) =>
      plan === null ? { kind: "nothing" } : await store.mend(plan, change === null ? {} : { change }),
    replan: async () => planFix(await store.skeleton(conversation)),
    onReplan: (plan) => onReplan?.(conversation, plan),
    giveUp: () =>
      new LcmError("conflict", `conversation ${conversation} was written to again and again; ${before}`, {
        hint: "run it again when the host is quieter",
      }),
  });
  return done.kind === "written" ? done.change : null;
}
