/** Reads the status of a database: what is stored, how full the contexts are, compactions, model usage. */

import type { Lcm } from "./lcm.ts";
import type { CompactionRecord, Conversation, ConversationId } from "./model/types.ts";
import type { StoreStatus, UsageTotals } from "./model/store.ts";
import type { Spend } from "./model-calls/metering.ts";
import { dayMs, timeAfter } from "./base/time.ts";
import type { Due } from "./compaction/due.ts";

export interface DatabaseStatus {
  readonly store: StoreStatus;
  readonly totals: { readonly tokens: number; readonly contextTokens: number; readonly hidden: number };
  /** The one with the newest message. */
  readonly newest: Conversation | null;
  readonly pressures: readonly Pressure[];
  /** Newest first. */
  readonly compactions: readonly CompactionRecord[];
  /** In the last 24 hours. */
  readonly usage: UsageTotals;
  readonly spend: Spend;
  /** The configured embedding model; null if search goes by words alone. */
  readonly embedder: string | null;
}

/** How full the context of an active conversation is. */
export interface Pressure extends Due {
  readonly conversation: ConversationId;
}

export async function readStatus(lcm: Lcm, compactionsMax = 1): Promise<DatabaseStatus> {
  const { store } = lcm;
  const now = lcm.clock.now();
  const conversations = await store.conversations({ includeHidden: true });
  return {
    store: await store.status(),
    totals: totalsOf(conversations),
    newest: conversations.find(({ lastMessageAt }) => lastMessageAt !== null) ?? null,
    pressures: await pressuresOf(lcm),
    compactions: await store.compactions(null, compactionsMax),
    usage: await store.usageSince(timeAfter(now, -dayMs), now),
    spend: await lcm.spend(),
    embedder: lcm.settings.embedder,
  };
}

/** Bounds the work; the host compacts the others anyway. */
const pressuresMax = 200;

async function pressuresOf(lcm: Lcm): Promise<readonly Pressure[]> {
  const pressures: Pressure[] = [];
  for (const { id, lastMessageAt } of await lcm.store.conversations({ active: true, limit: pressuresMax }))
    if (lastMessageAt !== null) pressures.push({ conversation: id, ...(await lcm.due(id)) });
  return pressures;
}

function totalsOf(conversations: readonly Conversation[]): DatabaseStatus["totals"] {
  const sum = (of: (conversation: Conversation) => number): number =>
    conversations.reduce((total, conversation) => total + of(conversation), 0);
  return {
    tokens: sum(({ totals }) => totals.messageTokens),
    contextTokens: sum(({ totals }) => totals.contextTokens),
    hidden: sum(({ hidden }) => Number(hidden)),
  };
}
