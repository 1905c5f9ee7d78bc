/**
 * A session that its people delete in the host is no longer found by recall. Its rows stay: removing them is the
 * operator's, by a command of its own.
 */

import type { HookEvent, SessionNames } from "./host-api.ts";
import type { Runtime } from "./runtime.ts";
import { agentOf, serviceOf } from "./sessions.ts";

/** Never throws. What was begun under the same key since is another session, and stays to be found. */
export async function hideDeleted(runtime: Runtime, event: HookEvent, context: SessionNames): Promise<void> {
  const sessionKey = event.sessionKey ?? context.sessionKey;
  const sessionId = event.sessionId ?? context.sessionId;
  if (sessionKey === undefined || sessionId === undefined) return;
  if (serviceOf(runtime.settings.values, sessionKey) !== "served") return;
  try {
    const { store } = await runtime.open();
    // A turn of it may be on its way into the store.
    await runtime.inOrder(sessionKey, async () => {
      const segments = await store.conversations({ sessionKey, agentId: context.agentId ?? agentOf(sessionKey) });
      const last = segments.reduce(
        (newest, each) => (each.sessionId === sessionId ? Math.max(newest, each.id) : newest),
        0,
      );
      for (const { id } of segments.filter((each) => each.id <= last)) await store.setHidden(id, true);
    });
  } catch (error) {
    runtime.note(`${sessionKey}, which was deleted, was hidden from recall`, error);
  }
}
