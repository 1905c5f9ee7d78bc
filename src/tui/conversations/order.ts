/** Which conversations are listed, and in what order. */

import type { Conversation } from "../../core/model/types.ts";
import { bareName } from "../../format/conversations.ts";
import type { ConversationRow } from "../../operator/conversations.ts";

export const sorts = ["activity", "messages", "tokens", "context", "name"] as const;
export type Sort = (typeof sorts)[number];

export interface Choice {
  /** Matched against title, session key, session id, number and agent. */
  readonly filter: string;
  readonly sort: Sort;
  /** Lists the segments of a session together. */
  readonly isGrouped: boolean;
  /** Lists only this agent's; empty: those without an agent; null: all. */
  readonly agent: string | null;
  readonly withHidden: boolean;
}

export interface Placed extends ConversationRow {
  /** Listed below the newest segment of its family. */
  readonly isEarlier: boolean;
  /** Its number in the family, from 1. */
  readonly segment: number;
  readonly segments: number;
}

export interface Listing {
  readonly placed: readonly Placed[];
  readonly agents: readonly string[];
  /** How many are not listed because they are hidden from recall. */
  readonly hidden: number;
  readonly idMax: number;
}

const agentOf = ({ agentId }: Conversation): string => agentId ?? "";

/** A family is all segments with the same agent and session key, or without a key, the same session. */
const familyOf = ({ agentId, sessionKey, sessionId }: Conversation): string =>
  sessionKey === null ? `id ${sessionId}` : `key ${agentId} ${sessionKey}`;

export function list(rows: readonly ConversationRow[], choice: Choice): Listing {
  const families = Map.groupBy(rows, ({ conversation }) => familyOf(conversation));
  const words = choice.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const isListed = ({ conversation }: ConversationRow): boolean =>
    (choice.withHidden || !conversation.hidden) &&
    (choice.agent === null || agentOf(conversation) === choice.agent) &&
    words.every((word) => searched(conversation).includes(word));
  const segments = new Map<number, number>();
  for (const family of families.values())
    for (const [at, { conversation }] of family.toSorted(byId).entries()) segments.set(conversation.id, at + 1);
  const place = (row: ConversationRow): Placed => {
    const { id } = row.conversation;
    const family = families.get(familyOf(row.conversation)) ?? [];
    return { ...row, isEarlier: false, segment: segments.get(id) ?? 1, segments: family.length };
  };
  const sorted = rows.filter(isListed).map(place).toSorted(orders[choice.sort]);
  return {
    placed: choice.isGrouped ? grouped(sorted) : sorted,
    agents: [...new Set(rows.map(({ conversation }) => agentOf(conversation)))].toSorted(),
    hidden: choice.withHidden ? 0 : rows.filter(({ conversation }) => conversation.hidden).length,
    idMax: rows.reduce((most, { conversation }) => Math.max(most, conversation.id), 0),
  };
}

const searched = ({ id, title, sessionKey, sessionId, agentId, folder }: Conversation): string =>
  [id, title, sessionKey, sessionId, agentId, folder].join("\n").toLowerCase();

const byId = ({ conversation: a }: ConversationRow, { conversation: b }: ConversationRow): number => a.id - b.id;

export const activityOf = ({ lastMessageAt, updatedAt }: Conversation): Conversation["updatedAt"] =>
  lastMessageAt ?? updatedAt;
const most =
  (of: (row: ConversationRow) => number) =>
  (a: ConversationRow, b: ConversationRow): number =>
    of(b) - of(a) || newest(a, b);

const newest = ({ conversation: a }: ConversationRow, { conversation: b }: ConversationRow): number =>
  activityOf(a) === activityOf(b) ? b.id - a.id : activityOf(a) < activityOf(b) ? 1 : -1;

const orders: Readonly<Record<Sort, (a: ConversationRow, b: ConversationRow) => number>> = {
  activity: newest,
  messages: most(({ conversation }) => conversation.totals.messages),
  tokens: most(({ conversation }) => conversation.totals.messageTokens),
  context: most(({ promptTokens, budget }) => promptTokens / Math.max(1, budget)),
  name: ({ conversation: a }, { conversation: b }) => {
    const [first, second] = [bareName(a).toLowerCase(), bareName(b).toLowerCase()];
    return first === second ? b.id - a.id : first < second ? -1 : 1;
  },
};

/** A family takes the place of its first segment in the order, and starts with its newest segment. */
function grouped(sorted: readonly Placed[]): readonly Placed[] {
  const families = Map.groupBy(sorted, ({ conversation }) => familyOf(conversation));
  return [...families.values()].flatMap((family) =>
    family
      .toSorted(byId)
      .toReversed()
      .map((each, at) => ({ ...each, isEarlier: at > 0 })),
  );
}
