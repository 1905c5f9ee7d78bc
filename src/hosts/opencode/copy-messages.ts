/**
 * Copies a session's messages from the host's database into our store, through the host's own server: what a prompt hook
 * is given has texts in it that the host makes up for one request only. A revert deletes messages there, so they are copied
 * before every request and at the end of every turn.
 */

import { isUnfinished } from "../shared/rows/opencode.ts";
import type { HostClient, HostMessageRow, SessionInfo } from "./host-api.ts";

/** What is known of a session between two copies. */
export interface Copied {
  readonly session: SessionInfo;
  /** The id of the newest message that is stored; null if none is. */
  readonly newest: string | null;
}

/** Rows to store: the session, then messages from one that is stored already, which the next ones continue. */
export interface NewRows {
  readonly session: SessionInfo;
  readonly messages: readonly HostMessageRow[];
}

/** How many of the newest messages are read at first; a turn seldom writes more. */
const readFirst = 16;

export async function readNew(client: HostClient, sessionId: string, copied: Copied | null): Promise<NewRows> {
  const path = { id: sessionId };
  const session = copied?.session ?? (await dataOf(client.session.get({ path })));
  if (copied?.newest) {
    const newest = await dataOf(client.session.messages({ path, query: { limit: readFirst } }));
    const from = newest.findIndex(({ info }) => info.id === copied.newest);
    if (from >= 0) return { session, messages: finished(newest.slice(from)) };
  }
  return { session, messages: finished(await dataOf(client.session.messages({ path }))) };
}

/** Without the answer that is being written: only the newest can be, an older one was cut off by the host's end. */
export function finished(messages: readonly HostMessageRow[]): readonly HostMessageRow[] {
  const last = messages.findLastIndex(({ info }) => info.role === "assistant");
  const newest = messages[last];
  return newest !== undefined && isUnfinished({ ...newest }) ? messages.slice(0, last) : messages;
}

async function dataOf<T>(answer: Promise<{ readonly data?: T; readonly error?: unknown }>): Promise<T> {
  const { data, error } = await answer;
  if (data === undefined) throw new Error(`OpenCode's server refused: ${JSON.stringify(error)}`);
  return data;
}
