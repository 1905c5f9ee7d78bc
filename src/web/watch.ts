/** Watches the database while somebody looks, and tells its listeners when it has changed. */

import { LcmError } from "../core/base/errors.ts";
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
      const watched = [...listeners].flatMap(({ conversation }) => conversation ?? []);
      const stamp = await stampOf(port, watched);
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
/** Of a store without a file, this many of the newest conversations are compared. */
const comparedMax = 200;

async function stampOf(port: Port, watched: readonly ConversationId[]): Promise<string> {
  const stamp = port.stamp();
  if (stamp !== null) return stamp;
  try {
    const { store } = await port.reading();
    const newest = await store.conversations({ includeHidden: true, limit: comparedMax });
    const prompts = watched.map(async (id) => (await store.prompts(id, { limit: 1, keep: "newest" })).rows[0]?.number);
    return JSON.stringify([newest.map(({ id, revision }) => [id, revision]), await Promise.all(prompts)]);
  } catch (error) {
    if (error instanceof LcmError && error.code === "not_found") return gone;
    throw error;
  }
}

async function changed(port: Port, stamp: string, { conversation }: Listener): Promise<Event> {
  if (stamp === gone) return { name: "replaced", data: {} };
  const { store } = await port.reading();
  const found = conversation === null ? null : await store.conversation(conversation);
  return { name: "changed", data: { stamp, revision: found?.revision ?? null } };
}
