/**
 * Who asks, and how far it may read: its own session unless it asks for more and the policy allows it. What lies beyond
 * is told apart from what does not exist by nothing, so that asking teaches nothing about it.
 */

import { LcmError } from "../base/errors.ts";
import type { Conversation, ConversationId, Summary } from "../model/types.ts";
import type { Store } from "../model/store.ts";

export interface Reader {
  /** The conversation that the reader is in; null for one outside, such as an operator. */
  readonly conversation: ConversationId | null;
  readonly policy: "own" | "agent" | "all";
  /** The agent that a reader is, whose own session is not stored, or not yet; its family is empty. */
  readonly agentId?: string;
}

/** What a reader asks for beyond its own session, in the words of the tools. */
export interface Asked {
  readonly conversationId?: number;
  readonly allConversations?: boolean;
}

export interface Reach {
  readonly kind: "family" | "conversation" | "agent" | "all" | "grant";
  /** null: every conversation that is not hidden. */
  readonly conversations: readonly ConversationId[] | null;
}

const everything: Reach = { kind: "all", conversations: null };

export async function reachOf(store: Store, reader: Reader, asked: Asked): Promise<Reach> {
  const { conversationId, allConversations = false } = asked;
  if (conversationId !== undefined && allConversations) {
    throw new LcmError("invalid", "conversationId and allConversations were both given", {
      hint: "name one conversation, or ask for all of them",
    });
  }
  if (reader.conversation === null && reader.policy !== "all" && reader.agentId === undefined) {
    throw new LcmError("denied", `a reader outside any session reads nothing (scopePolicy ${reader.policy})`, {
      hint: "scopePolicy all lets it read every session",
    });
  }
  if (allConversations) return await widest(store, reader);
  if (conversationId !== undefined) return await one(store, reader, conversationId);
  if (reader.conversation === null && reader.agentId === undefined) return everything;
  return { kind: "family", conversations: idsOf(await familyOf(store, reader.conversation)) };
}

/** Hidden conversations are outside, unless the reach names them. */
export async function isWithin(store: Store, reach: Reach, conversation: ConversationId): Promise<boolean> {
  if (reach.conversations !== null) return reach.conversations.includes(conversation);
  return (await store.conversation(conversation))?.hidden === false;
}

/** Newest activity first. */
export async function conversationsWithin(store: Store, { conversations }: Reach): Promise<readonly Conversation[]> {
  if (conversations === null) return await store.conversations();
  const named = new Set(conversations);
  return (await store.conversations({ includeHidden: true })).filter(({ id }) => named.has(id));
}

/** So many segments back a summary can have been carried from, one at a time. */
const carriesMax = 100;

/**
 * The summary of an earlier segment whose text this one carries over, and whose sources stand for it. Null if it was
 * not carried, or if the origin is gone, hidden, of another family, or beyond a grant.
 */
export async function originOf(store: Store, reach: Reach, carried: Summary): Promise<Summary | null> {
  if (carried.carriedFrom === null) return null;
  const family = idsOf(await familyOf(store, carried.conversation));
  let origin = carried;
  for (let carries = 0; origin.carriedFrom !== null && carries < carriesMax; carries++) {
    const [earlier] = await store.summaries({ ids: [origin.carriedFrom] });
    if (earlier === undefined || !family.includes(earlier.conversation)) return null;
    origin = earlier;
  }
  // Whoever may read a conversation may read its family; only a grant names each one that it opens.
  return reach.kind === "grant" && !(await isWithin(store, reach, origin.conversation)) ? null : origin;
}

async function widest(store: Store, reader: Reader): Promise<Reach> {
  if (reader.policy === "all") return everything;
  if (reader.policy === "own") {
    throw new LcmError("denied", "recall is kept to this session (scopePolicy own)", {
      hint: "leave allConversations out",
    });
  }
  const family = await familyOf(store, reader.conversation);
  const agentId = agentOf(reader, family);
  // A conversation of which no agent is known is nobody's, so it widens nobody's reach.
  const others = agentId === null ? [] : await store.conversations({ agentId });
  return { kind: "agent", conversations: [...new Set([...idsOf(family), ...idsOf(others)])] };
}

async function one(store: Store, reader: Reader, asked: number): Promise<Reach> {
  const found = await store.conversation(asked as ConversationId);
  if (found === null || !(await mayRead(store, reader, found))) {
    throw new LcmError("not_found", `there is no conversation ${asked}`, {
      hint: "leave conversationId out to read what is open to you",
    });
  }
  return { kind: "conversation", conversations: [found.id] };
}

async function mayRead(store: Store, reader: Reader, asked: Conversation): Promise<boolean> {
  const family = await familyOf(store, reader.conversation);
  if (family.some(({ id }) => id === asked.id)) return true;
  if (reader.policy === "own" || asked.hidden) return false;
  if (reader.policy === "all") return true;
  return asked.agentId !== null && asked.agentId === agentOf(reader, family);
}

const agentOf = ({ conversation, agentId }: Reader, family: readonly Conversation[]): string | null =>
  family.find(({ id }) => id === conversation)?.agentId ?? (conversation === null ? (agentId ?? null) : null);

/** The segments that are not hidden, and in any case the conversation itself: who speaks in it sees it anyway. */
async function familyOf(store: Store, conversation: ConversationId | null): Promise<readonly Conversation[]> {
  if (conversation === null) return [];
  const segments = await store.conversations({ familyOf: conversation, includeHidden: true });
  const agentId = segments.find(({ id }) => id === conversation)?.agentId;
  // The store takes a conversation of no known agent for a relative of everybody's; here it is nobody's.
  return segments.filter((each) => each.id === conversation || (!each.hidden && each.agentId === agentId));
}

const idsOf = (conversations: readonly Conversation[]): readonly ConversationId[] => conversations.map(({ id }) => id);
