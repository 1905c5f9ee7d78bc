/** Finds a conversation by its number, session key or session id, or fails with a hint. */

import type { Store } from "./store.ts";
import type { Conversation, ConversationId } from "./types.ts";
import { LcmError } from "../base/errors.ts";

/** A session key or id finds the newest segment. */
export async function findConversation(store: Store, name: string): Promise<Conversation> {
  if (/^\d{1,15}$/.test(name)) {
    const found = await store.conversation(Number(name) as ConversationId);
    if (found !== null) return found;
  }
  for (const filter of [{ sessionKey: name }, { sessionId: name }]) {
    const segments = await store.conversations({ ...filter, includeHidden: true });
    const newest = segments.find(({ active }) => active) ?? segments[0];
    if (newest !== undefined) return newest;
  }
  throw unknown(name);
}

export async function mustFind(store: Store, id: ConversationId): Promise<Conversation> {
  const found = await store.conversation(id);
  if (found === null) throw unknown(id);
  return found;
}

export const unknown = (name: string | number): LcmError =>
  new LcmError("not_found", `there is no conversation ${name}`, { hint: "list them with `lcm conversations`" });
