/**
 * What the children of a session may read of it. One that goes on with its parent's context sees summaries of it, and so
 * it gets a grant to walk down from them: on the parent's family, for as long as it runs. One that begins with nothing
 * inherits nothing. The host hears of no failure here: a child without a grant works, it only cannot walk down.
 */

import type { GrantId } from "../../core/model/types.ts";
import type { NewGrant, Store } from "../../core/model/store.ts";
import { reachOf } from "../../core/recall/scope.ts";
import type { SpawnCall } from "./host-api.ts";
import type { Runtime } from "./runtime.ts";
import { agentOf, serviceOf } from "./sessions.ts";
import { findActive } from "./read-transcript.ts";
import { msToTimestamp, timestampToMs } from "../../core/base/time.ts";

/** For a child whose run has no end of its own: its grant is revoked when it ends, this is for one that never does. */
const ttlDefaultMs = 3_600_000;
/** A child begins to run a little after its grant was made. */
const graceMs = 60_000;

export async function grantFork(runtime: Runtime, call: SpawnCall): Promise<{ rollback(): Promise<void> } | undefined> {
  const { parentSessionKey, childSessionKey, contextMode, ttlMs = 0 } = call;
  const isOurs = serviceOf(runtime.settings.values, parentSessionKey) !== "left";
  if (contextMode !== "fork" || !isOurs) return undefined;
  const during = `${childSessionKey} was given leave to read`;
  const giving = runtime.inTurn(orderOf(childSessionKey), during, async () => {
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
  const given = await giving.catch((error: unknown) => {
    runtime.note(during, error);
    return { value: false };
  });
  return given?.value === false ? undefined : { rollback: async () => await endChild(runtime, childSessionKey) };
}

/**
 * The parent's turn waits for it, and so not for long. What is late is done all the same, in the child's own order: a
 * grant is given before it is revoked.
 */
const orderOf = (childSessionKey: string): string => `the grant of ${childSessionKey}`;

/** A parent that itself reads under a grant passes that on, and the store makes nothing wider of it. */
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

/** What a child that answers a question holds is looked after by the question. */
export async function endChild(runtime: Runtime, childSessionKey: string): Promise<void> {
  const order = orderOf(childSessionKey);
  await runtime.attempt(order, `${order} was revoked`, async () => {
    const held = runtime.grants.get(childSessionKey);
    if (held === undefined || held.tools !== undefined) return;
    runtime.grants.delete(childSessionKey);
    await (await runtime.open()).store.revokeGrant(held.grant);
  });
}
