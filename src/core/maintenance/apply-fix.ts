/** Plans and applies fixes for one conversation or a whole database, while others write to it. */

import type { Changed, ConversationFix, Written } from "../model/changes.ts";
import { LcmError } from "../base/errors.ts";
import { isInSearchIndex, recoverHint, type Integrity } from "../model/database-file.ts";
import { planFix } from "./plan-fix.ts";
import { eachConversation, type InspectProgress } from "./inspect.ts";
import type { ConversationId } from "../model/types.ts";
import type { Store } from "../model/store.ts";
import { applyOrReplan } from "./apply-or-replan.ts";

export interface FixPlan {
  readonly conversations: readonly ConversationFix[];
  /** In the rest of the file: orphaned rows, and search entries without a row. */
  readonly orphans: { readonly rows: number; readonly searchEntries: number };
}

export const isNothing = ({ conversations, orphans }: FixPlan): boolean =>
  conversations.length + orphans.rows + orphans.searchEntries === 0;

/** For one conversation, or for all of them and the file. Throws `corrupt` for a damaged file. */
export async function planFixes(
  store: Store,
  only: ConversationId | null,
  onProgress: (progress: InspectProgress) => void = () => undefined,
): Promise<FixPlan> {
  const integrity = await store.integrity();
  refuseDamaged(integrity);
  const conversations: ConversationFix[] = [];
  for await (const id of eachConversation(store, only, onProgress)) {
    const plan = planFix(await store.skeleton(id));
    if (plan !== null) conversations.push(plan);
  }
  if (only !== null) return { conversations, orphans: { rows: 0, searchEntries: 0 } };
  const rows = Object.values(integrity.orphanedRows).reduce((sum, each) => sum + each, 0);
  return { conversations, orphans: { rows, searchEntries: integrity.orphanedSearchEntries } };
}

/** Writing into damaged pages can destroy what is still readable, and each backup of them would displace a whole one. */
function refuseDamaged({ problems }: Integrity): void {
  if (problems.every(isInSearchIndex)) return;
  throw new LcmError("corrupt", "the database is damaged, so fixes are not written into it; nothing was changed", {
    hint: recoverHint,
  });
}

export interface FixWatch {
  readonly onProgress?: (progress: InspectProgress) => void;
  /** Called if a conversation changed meanwhile, with the new plan; null if nothing is left to fix. */
  readonly onReplan?: (conversation: ConversationId, plan: ConversationFix | null) => void;
}

export interface Fixed {
  /** Null if nothing was left to fix. */
  readonly change: number | null;
  readonly conversations: readonly ConversationId[];
  /** Orphaned rows and search entries. */
  readonly removed: number;
}

/** Fixes each conversation atomically; everything together is one change. */
export async function applyFixes(store: Store, plan: FixPlan, watch: FixWatch = {}): Promise<Fixed> {
  const { conversations, orphans } = plan;
  const fixed: ConversationId[] = [];
  let change: number | null = null;
  for (const [done, planned] of conversations.entries()) {
    const { conversation } = planned;
    watch.onProgress?.({ conversation, done, of: conversations.length });
    const made = await fixOne(store, planned, change, watch);
    if (made === null) continue;
    change = made;
    fixed.push(conversation);
  }
  if (orphans.rows + orphans.searchEntries === 0) return { change, conversations: fixed, removed: 0 };
  const swept = await store.sweepOrphans(change === null ? {} : { change });
  return { change: change ?? swept.change, conversations: fixed, removed: swept.removed };
}

/** The number of the change; null if nothing was left to fix. */
async function fixOne(
  store: Store,
  planned: ConversationFix,
  change: number | null,
  { onReplan }: FixWatch,
): Promise<number | null> {
  const { conversation } = planned;
  const before = change === null ? "nothing was changed" : `the conversations before it were fixed as change ${change}`;
  const { done } = await applyOrReplan<ConversationFix | null, { readonly kind: "nothing" } | Written<Changed>>(
    planned,
    {
      apply: async (plan) =>
        plan === null ? { kind: "nothing" } : await store.fix(plan, change === null ? {} : { change }),
      replan: async () => planFix(await store.skeleton(conversation)),
      onReplan: (plan) => onReplan?.(conversation, plan),
      giveUp: () =>
        new LcmError("conflict", `conversation ${conversation} kept changing; ${before}`, {
          hint: "run it again when the host is less busy",
        }),
    },
  );
  return done.kind === "written" ? done.change : null;
}
