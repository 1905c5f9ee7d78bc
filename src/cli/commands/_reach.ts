/** Resolves which conversation a command is about, or which ones it reads. Operators may read everything, even hidden ones by name. */

import { LcmError } from "../../core/base/errors.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { Conversation, Summary } from "../../core/model/types.ts";
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

/** The argument of commands that are about one conversation. */
export const conversationArgument = ["[conversation]", `${conversationWords}; optional if there is only one`] as const;

/** The conversation with this name, or that of the summary, or the only one. */
export async function chosenConversation(
  lcm: Lcm,
  name: string | undefined,
  summary: Summary | null = null,
): Promise<Conversation> {
  if (name === undefined && summary === null) return await onlyConversation(lcm);
  const conversation = await lcm.find(name ?? String(summary?.conversation));
  if (summary !== null && summary.conversation !== conversation.id) {
    throw new LcmError("not_found", `${summary.id} is not in conversation ${conversation.id}`, {
      hint: `it is in conversation ${summary.conversation}`,
    });
  }
  return conversation;
}

async function onlyConversation({ store }: Lcm): Promise<Conversation> {
  const all = await store.conversations({ includeHidden: true });
  const visible = all.filter(({ hidden }) => !hidden);
  const [first, ...others] = visible.length === 0 ? all : visible;
  if (first === undefined)
    throw new LcmError("not_found", "there are no conversations", {
      hint: "import some with `lcm import --discover` or `lcm import FILE…`",
    });
  if (others.length === 0) return first;
  throw new LcmError("invalid", `missing: which of ${others.length + 1} conversations`, {
    hint: "name one; `lcm conversations` lists them",
  });
}

/** For commands that take ids. */
export async function everywhere({ store }: Lcm): Promise<Reach> {
  const all = await store.conversations({ includeHidden: true });
  return { kind: "all", conversations: all.map(({ id }) => id) };
}
