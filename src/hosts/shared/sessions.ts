/**
 * Names the conversation of a host's session. Imports, hooks and plugins all open it by this name, so they meet in one
 * conversation, whichever of them comes first.
 */

import type { SessionIdentity } from "../../core/model/store.ts";
import type { HostName } from "./rows/row-format.ts";

export interface HostSession {
  readonly host: HostName;
  /** The host's own id of the session; a sub-agent has its own. */
  readonly sessionId: string;
  readonly folder?: string | null;
  /** The session that started this one. */
  readonly parentSessionId?: string | null;
}

/** Any program that the proxy serves is named in the same way. */
type AnySession = Omit<HostSession, "host"> & { readonly host: string };

export const hostSession = ({ host, sessionId, folder, parentSessionId }: AnySession): SessionIdentity => ({
  sessionId,
  sessionKey: `${host}:${sessionId}`,
  agentId: host,
  folder: folder ?? null,
  parentSessionId: parentSessionId ?? null,
});
