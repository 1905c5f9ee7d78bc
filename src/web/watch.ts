/** Watches the database while somebody looks, and tells its listeners when it has changed. */

import type { ConversationId } from "../core/model/types.ts";
import type { Port } from "../operator/port.ts";
import type { Events } from "./contract.ts";

export type Event = {
  readonly [Name in keyof Events]: { readonly name: Name; readonly data: Events[Name] };
}[keyof Events];

interface Listener {
  readonly conversation: ConversationId | null;
  readonly tell: (event: Event) => void;
}

const beatMs = 500;

export function createWatch(port: Port) {
  const listeners = new Set<Listener>();
  let [known, timer, isLooking]: [string | null, NodeJS.Timeout | null, boolean] = [null, null, false];
  const look = async (): Promise<void> => {
    if (isLooking) return;
    isLooking = true;
    try {
      // A server's is empty until it has answered once. That answer counts as a change, because something may have been
      // written after the page was read and before the answer.
      const stamp = port.stamp() ?? gone;
      if (known !== null && stamp !== known) for (const each of listeners) each.tell(await changed(port, stamp, each));
      known = stamp;
    } catch {
      // It is being replaced, or cannot be read at the moment: the next look finds out.
    } finally {
      isLooking = false;
    }
  };
  return {
    /** Returns how to stop. */
    listen(conversation: ConversationId | null, tell: (event: Event) => void): () => void {
      const listener = { conversation, tell };
      listeners.add(listener);
      void look();
      timer ??= setInterval(() => void look(), beatMs);
      return () => {
        listeners.delete(listener);
        if (listeners.size > 0 || timer === null) return;
        clearInterval(timer);
        [timer, known] = [null, null];
      };
    },
    tellAll(event: Event): void {
      for (const { tell } of listeners) tell(event);
    },
    count: (): number => listeners.size,
  };
}

const gone = "gone";

async function changed(port: Port, stamp: string, { conversation }: Listener): Promise<Event> {
  if (stamp === gone) return { name: "replaced", data: {} };
  const { store } = await port.reading();
  const found = conversation === null ? null : await store.conversation(conversation);
  return { name: "changed", data: { stamp, revision: found?.revision ?? null } };
}
