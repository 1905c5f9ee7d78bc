/** How far a command reads: an operator may see everything, also what is hidden from recall if it is named. */

import type { Lcm } from "../../core/lcm.ts";
import { reachOf } from "../../core/scope.ts";
import type { Reach } from "../../core/scope.ts";

export interface ReachOptions {
  readonly conversation?: string;
  readonly family?: string;
}

export async function reachFor(lcm: Lcm, { conversation, family }: ReachOptions): Promise<Reach> {
  if (conversation !== undefined) return { kind: "conversation", conversations: [(await lcm.find(conversation)).id] };
  const reader = family === undefined ? null : (await lcm.find(family)).id;
  return await reachOf(lcm.store, { conversation: reader, policy: "all" }, {});
}

/** For who names an id. */
export async function everywhere({ store }: Lcm): Promise<Reach> {
  const all = await store.conversations({ includeHidden: true });
  return { kind: "all", conversations: all.map(({ id }) => id) };
}
