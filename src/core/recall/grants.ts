/**
 * Reading under a grant: nothing is handed out that was not paid for. Whoever holds a grant reads the conversations it
 * names and no others, until its tokens or its time are used up, or until it is revoked, even while it is reading.
 */

import { assert, checkWhole, LcmError } from "../base/errors.ts";
import type { ConversationId, GrantId } from "../model/types.ts";
import type { Spent, Store } from "../model/store.ts";
import type { Reach } from "./scope.ts";

/** What was read, and the tokens of it that each conversation gave. */
export interface GrantedRead<T> {
  readonly value: T;
  readonly charges: ReadonlyMap<ConversationId, number>;
}

/** Reads within the grant, at most `tokenCap` tokens; `denied` if it allows none, or is over when it is paid. */
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
  // Paying nothing asks whether it holds, and every grant that it was made from.
  const remaining = await pay(store, grant, first, 0);
  const tokensMax = Math.min(tokenCap ?? remaining, remaining);
  const { value, charges } = await read({ kind: "grant", conversations }, tokensMax);
  const total = [...charges.values()].reduce((sum, tokens) => sum + tokens, 0);
  assert(total <= tokensMax, `${total} tokens were read where ${tokensMax} were allowed`);
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
  unknown: "is not known",
  expired: "has expired",
  revoked: "was revoked",
  exhausted: "is used up",
  foreign: "does not reach that conversation",
};

const denied = (grant: GrantId, reason: keyof typeof reasons): LcmError =>
  new LcmError("denied", `grant ${grant} ${reasons[reason]}: nothing is read`, {
    hint: reason === "exhausted" ? "answer from what was read so far" : "lcm_expand_query opens a new one",
  });

/** What each conversation's part of a reading costs. */
export function chargesOf(
  read: readonly { readonly conversation: ConversationId; readonly tokens: number }[],
): ReadonlyMap<ConversationId, number> {
  const charges = new Map<ConversationId, number>();
  for (const { conversation, tokens } of read) charges.set(conversation, (charges.get(conversation) ?? 0) + tokens);
  return charges;
}
