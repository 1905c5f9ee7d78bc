/**
 * Reads under a grant, and charges what was read to it.
 * Nothing is returned before it is paid for, so a grant that expires or is revoked during a read yields nothing.
 */

import { assert, checkWhole, LcmError } from "../base/errors.ts";
import type { ConversationId, GrantId } from "../model/types.ts";
import type { Spent, Store } from "../model/store.ts";
import type { Reach } from "./scope.ts";

/** What was read, and the tokens read from each conversation. */
export interface GrantedRead<T> {
  readonly value: T;
  readonly charges: ReadonlyMap<ConversationId, number>;
}

/** Reads at most `tokenCap` tokens; `denied` if the grant is not valid before or after the read. */
export async function readGranted<T>(
  store: Store,
  grant: GrantId,
  tokenCap: number | undefined,
  read: (reach: Reach, tokensMax: number) => Promise<GrantedRead<T>>,
): Promise<T> {
  checkWhole("tokenCap", tokenCap);
  const conversations = (await store.grant(grant))?.conversations ?? [];
  const [first] = conversations;
  if (first === undefined) throw denied(grant, "unknown");
  // Spending 0 tokens checks the grant and all its parents.
  const remaining = await pay(store, grant, first, 0);
  const tokensMax = Math.min(tokenCap ?? remaining, remaining);
  const { value, charges } = await read({ kind: "grant", conversations }, tokensMax);
  const total = [...charges.values()].reduce((sum, tokens) => sum + tokens, 0);
  assert(total <= tokensMax, `${total} tokens were read, but only ${tokensMax} were allowed`);
  for (const [conversation, tokens] of charges.size === 0 ? [[first, 0] as const] : charges)
    await pay(store, grant, conversation, tokens);
  return value;
}

async function pay(store: Store, grant: GrantId, conversation: ConversationId, tokens: number): Promise<number> {
  const spent = await store.spendGrant(grant, conversation, tokens);
  if (spent.kind === "refused") throw denied(grant, spent.reason);
  return spent.remaining;
}

const reasons: Readonly<Record<Extract<Spent, { readonly kind: "refused" }>["reason"], string>> = {
  unknown: "does not exist",
  expired: "has expired",
  revoked: "was revoked",
  exhausted: "is used up",
  foreign: "does not cover that conversation",
};

const denied = (grant: GrantId, reason: keyof typeof reasons): LcmError =>
  new LcmError("denied", `grant ${grant} ${reasons[reason]}`, {
    hint: reason === "exhausted" ? "answer from what you have read so far" : "call lcm_expand_query to open a new one",
  });

export function chargesOf(
  read: readonly { readonly conversation: ConversationId; readonly tokens: number }[],
): ReadonlyMap<ConversationId, number> {
  const charges = new Map<ConversationId, number>();
  for (const { conversation, tokens } of read) charges.set(conversation, (charges.get(conversation) ?? 0) + tokens);
  return charges;
}
