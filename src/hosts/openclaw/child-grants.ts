/**
 * Grants that let forked sub-agents expand their parent's summaries while they run. A child that starts without its
 * parent's context gets none. Failures are only recorded: a child without a grant works, but cannot expand.
 */

import type { GrantId } from "../../core/model/types.ts";
import type { NewGrant, Store } from "../../core/model/store.ts";
import { reachOf } from "../../core/recall/scope.ts";
import type { SpawnCall } from "./host-api.ts";
import type { Runtime } from "../shared/runtime.ts";
import { agentOf, serviceOf } from "./sessions.ts";
import { findActive } from "./segments.ts";
import { msToTimestamp, timestampToMs } from "../../core/base/time.ts";

/** For a child without a time limit. Its grant is revoked when it ends; this covers one that never does. */
const ttlDefaultMs = 3_600_000;
/** A child starts a little after its grant is issued. */
const graceMs = 60_000;

export async function grantFork(runtime: Runtime, call: SpawnCall): Promise<{ rollback(): Promise<void> } | undefined> {
  const { parentSessionKey, childSessionKey, contextMode, ttlMs = 0 } = call;
  const isOurs = serviceOf(runtime.settings.values, parentSessionKey) !== "left";
  if (contextMode !== "fork" || !isOurs) return undefined;
  const doing = `issuing ${queueOf(childSessionKey)}`;
  const issuing = runtime.inTurn(queueOf(childSessionKey), doing, async () => {
    const { store, clock, settings } = await runtime.open();
    const inherited = await inheritanceOf(store, call, runtime.grants.get(parentSessionKey)?.grant);
    if (inherited.conversations.length === 0) return false;
    const { id: grant } = await store.issueGrant({
      ...inherited,
      tokenCap: settings.maxExpandTokens,
      expiresAt: msToTimestamp(timestampToMs(clock.now()) + (ttlMs > 0 ? ttlMs + graceMs : ttlDefaultMs)),
    });
    runtime.grants.set(childSessionKey, { grant });
    return true;
  });
  const issued = await issuing.catch((error: unknown) => {
    runtime.note(doing, error);
    return { value: false };
  });
  return issued?.value === false ? undefined : { rollback: async () => await endChild(runtime, childSessionKey) };
}

/** A queue per child: even if the parent's turn stops waiting, a grant is issued before it is revoked. */
const queueOf = (childSessionKey: string): string => `the grant of ${childSessionKey}`;

/** A parent that reads under a grant passes it on; the store never widens it. */
async function inheritanceOf(
  store: Store,
  { parentSessionKey, parentSessionId = "" }: SpawnCall,
  parent: GrantId | undefined,
): Promise<Pick<NewGrant, "conversations" | "parent">> {
  if (parent !== undefined) return { conversations: (await store.grant(parent))?.conversations ?? [], parent };
  const place = { agentId: agentOf(parentSessionKey), sessionKey: parentSessionKey, sessionId: parentSessionId };
  const active = await findActive(store, place);
  if (active === null) return { conversations: [], parent: null };
  const { conversations } = await reachOf(store, { conversation: active.id, policy: "own" }, {});
  return { conversations: conversations ?? [], parent: null };
}

/** The grant of a child that answers a question is left alone: the question itself ends it. */
export async function endChild(runtime: Runtime, childSessionKey: string): Promise<void> {
  const queue = queueOf(childSessionKey);
  await runtime.attempt(queue, `revoking ${queue}`, async () => {
    const issued = runtime.grants.get(childSessionKey);
    if (issued === undefined || issued.tools !== undefined) return;
    runtime.grants.delete(childSessionKey);
    await (await runtime.open()).store.revokeGrant(issued.grant);
  });
}
