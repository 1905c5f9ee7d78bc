/**
 * Decides which conversations a reader may read: its own session or project, or more if requested and the policy allows it.
 * Anything beyond that reach is indistinguishable from something that does not exist.
 */

import { LcmError } from "../base/errors.ts";
import { conversationIn, messageName } from "../model/types.ts";
import type { Conversation, ConversationId, Message, MessageId, Summary } from "../model/types.ts";
import type { Store } from "../model/store.ts";

export interface Reader {
  /** The conversation that the reader is in; null for a reader outside any session, such as an operator. */
  readonly conversation: ConversationId | null;
  readonly policy: "own" | "agent" | "all";
  /** The agent of a reader whose own session is not stored (yet); its family is empty. */
  readonly agentId?: string;
  /** The reader's project: by default it reads the sessions of this folder too, as far as its policy allows. */
  readonly folder?: string;
}

/** What a reader requests beyond its own session, named like the tool arguments. */
export interface ReachRequest {
  readonly conversationId?: number;
  readonly allConversations?: boolean;
}

export interface Reach {
  readonly kind: "family" | "project" | "conversation" | "agent" | "all" | "grant";
  /** null: every conversation that is not hidden. */
  readonly conversations: readonly ConversationId[] | null;
}

const everything: Reach = { kind: "all", conversations: null };

export async function reachOf(store: Store, reader: Reader, asked: ReachRequest): Promise<Reach> {
  const { conversationId, allConversations = false } = asked;
  if (conversationId !== undefined && allConversations) {
    throw new LcmError("invalid", "conversationId and allConversations exclude each other", {
      hint: "pass only one of them",
    });
  }
  if (reader.conversation === null && reader.policy !== "all" && reader.agentId === undefined) {
    throw new LcmError("denied", `a reader outside any session cannot read anything (scopePolicy ${reader.policy})`, {
      hint: "set scopePolicy to all to let it read every session",
    });
  }
  if (allConversations) return await widest(store, reader);
  if (conversationId !== undefined) return await one(store, reader, conversationId);
  if (reader.folder !== undefined && reader.policy !== "own") return await projectOf(store, reader, reader.folder);
  if (reader.conversation === null && reader.agentId === undefined) return everything;
  return { kind: "family", conversations: idsOf(await familyOf(store, reader.conversation)) };
}

/** Hidden conversations are outside unless the reach names them. */
export async function isWithin(store: Store, reach: Reach, conversation: ConversationId): Promise<boolean> {
  if (reach.conversations !== null) return reach.conversations.includes(conversation);
  return (await store.conversation(conversation))?.hidden === false;
}

export async function lastMessage(store: Store, conversation: ConversationId): Promise<Message | undefined> {
  return (await store.messages({ conversation, limit: 1, keep: "newest" }))[0];
}

export const endWords = (last: MessageId): string =>
  `conversation ${conversationIn(last)} ends with ${messageName(last)}`;

/** Newest activity first. */
export async function conversationsWithin(store: Store, { conversations }: Reach): Promise<readonly Conversation[]> {
  if (conversations === null) return await store.conversations();
  const named = new Set(conversations);
  return (await store.conversations({ includeHidden: true })).filter(({ id }) => named.has(id));
}

/** Segments to follow back along a carried summary. */
const carriesMax = 100;

/**
 * The summary of an earlier segment whose text this one carries over, and which has the sources. Null if it was not
 * carried, or if the origin is gone, hidden, of another family, or beyond a grant.
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
  // The right to read a conversation includes its family, except under a grant, which lists each conversation.
  return reach.kind === "grant" && !(await isWithin(store, reach, origin.conversation)) ? null : origin;
}

async function widest(store: Store, reader: Reader): Promise<Reach> {
  if (reader.policy === "all") return everything;
  if (reader.policy === "own") {
    throw new LcmError("denied", "only this session can be read (scopePolicy own)", {
      hint: "leave out allConversations",
    });
  }
  const family = await familyOf(store, reader.conversation);
  const agentId = agentOf(reader, family);
  // A conversation without a known agent does not widen any reach.
  const others = agentId === null ? [] : await store.conversations({ agentId });
  return { kind: "agent", conversations: [...new Set([...idsOf(family), ...idsOf(others)])] };
}

/** The sessions of a folder that the reader may read, and its own, wherever that is. */
async function projectOf(store: Store, reader: Reader, folder: string): Promise<Reach> {
  const family = await familyOf(store, reader.conversation);
  const inside = (await store.conversations({ folder })).filter((each) => mayRead(reader, family, each));
  return { kind: "project", conversations: [...new Set([...idsOf(family), ...idsOf(inside)])] };
}

async function one(store: Store, reader: Reader, asked: number): Promise<Reach> {
  const conversation = await store.conversation(asked as ConversationId);
  if (conversation === null || !mayRead(reader, await familyOf(store, reader.conversation), conversation)) {
    throw new LcmError("not_found", `there is no conversation ${asked}`, {
      hint: "leave out conversationId to read everything you may read",
    });
  }
  return { kind: "conversation", conversations: [conversation.id] };
}

function mayRead(reader: Reader, family: readonly Conversation[], asked: Conversation): boolean {
  if (family.some(({ id }) => id === asked.id)) return true;
  if (reader.policy === "own" || asked.hidden) return false;
  if (reader.policy === "all") return true;
  return asked.agentId !== null && asked.agentId === agentOf(reader, family);
}

const agentOf = ({ conversation, agentId }: Reader, family: readonly Conversation[]): string | null =>
  family.find(({ id }) => id === conversation)?.agentId ?? (conversation === null ? (agentId ?? null) : null);

/** The segments that are not hidden, plus the conversation itself: whoever speaks in it sees it anyway. */
async function familyOf(store: Store, conversation: ConversationId | null): Promise<readonly Conversation[]> {
  if (conversation === null) return [];
  const segments = await store.conversations({ familyOf: conversation, includeHidden: true });
  const agentId = segments.find(({ id }) => id === conversation)?.agentId;
  // The store counts a conversation without a known agent into every family; here it belongs to none.
  return segments.filter((each) => each.id === conversation || (!each.hidden && each.agentId === agentId));
}

const idsOf = (conversations: readonly Conversation[]): readonly ConversationId[] => conversations.map(({ id }) => id);
