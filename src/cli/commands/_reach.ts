/** Resolves which conversations a command reads. Operators may read everything, even hidden ones by name. */

import type { Lcm } from "../../core/lcm.ts";
import { reachOf, type Reach } from "../../core/recall/scope.ts";
import { conversationWords, type OptionsOf, type OptionTable } from "./_options.ts";

export const reachOptions = {
  conversation: ["--conversation <name>", `search only ${conversationWords}`],
  family: ["--family <name>", "search only this conversation and the other segments of its session"],
} as const satisfies OptionTable;

export async function reachFor(lcm: Lcm, { conversation, family }: OptionsOf<typeof reachOptions>): Promise<Reach> {
  if (conversation !== undefined) return { kind: "conversation", conversations: [(await lcm.find(conversation)).id] };
  const reader = family === undefined ? null : (await lcm.find(family)).id;
  return await reachOf(lcm.store, { conversation: reader, policy: "all" }, {});
}

/** For commands that take ids. */
export async function everywhere({ store }: Lcm): Promise<Reach> {
  const all = await store.conversations({ includeHidden: true });
  return { kind: "all", conversations: all.map(({ id }) => id) };
}
