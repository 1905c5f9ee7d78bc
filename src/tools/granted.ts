/** What a delegate's tools share: it asks in the words of the tools, and reads no further than its grant. */

import { LcmError } from "../core/errors.ts";
import type { Asked, Reach } from "../core/scope.ts";

/** The grant's reach, or the one conversation of it that was asked for. */
export function withinGrant(reach: Reach, { conversationId, allConversations }: Asked): Reach {
  if (allConversations === true) {
    throw new LcmError("denied", "a delegate reads only the conversations of its grant", {
      hint: "leave allConversations out",
    });
  }
  if (conversationId === undefined) return reach;
  const asked = reach.conversations?.filter((id) => id === conversationId) ?? [];
  if (asked.length > 0) return { ...reach, conversations: asked };
  throw new LcmError("not_found", `there is no conversation ${conversationId}`, { hint: "leave conversationId out" });
}
