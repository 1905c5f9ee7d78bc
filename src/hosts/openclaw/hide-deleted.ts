/** Hides a session from recall when it is deleted in the host. Its rows stay until an operator prunes them. */

import type { HookEvent, SessionNames } from "./host-api.ts";
import type { Runtime } from "../shared/runtime.ts";
import { agentOf, serviceOf } from "./sessions.ts";

/** Never throws. A session started later under the same key stays visible. */
export async function hideDeleted(runtime: Runtime, event: HookEvent, context: SessionNames): Promise<void> {
  const sessionKey = event.sessionKey ?? context.sessionKey;
  const sessionId = event.sessionId ?? context.sessionId;
  if (sessionKey === undefined || sessionId === undefined) return;
  if (serviceOf(runtime.settings.values, sessionKey) !== "served") return;
  try {
    const { store } = await runtime.open();
    // In order, because one of its turns may still be being stored.
    await runtime.inOrder(sessionKey, async () => {
      const segments = await store.conversations({ sessionKey, agentId: context.agentId ?? agentOf(sessionKey) });
      const last = segments.reduce(
        (newest, each) => (each.sessionId === sessionId ? Math.max(newest, each.id) : newest),
        0,
      );
      for (const { id } of segments.filter((each) => each.id <= last)) await store.setHidden(id, true);
    });
  } catch (error) {
    runtime.note(`hiding the deleted session ${sessionKey} from recall`, error);
  }
}
