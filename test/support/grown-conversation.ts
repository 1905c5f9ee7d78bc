/** Generates random conversations: turns with and without tools, folded here and there, to any depth. */

import type { ContextItem, Conversation } from "../../src/core/model/types.ts";
import type { Store } from "../../src/core/model/store.ts";
import { deliver, summary } from "../store-contract/ground.ts";
import type { Random } from "./random.ts";
import { createHost, turnWithTool, user } from "./scripted-host.ts";
import type { ScriptedHost } from "./scripted-host.ts";

export interface Grown {
  readonly conversation: Conversation;
  readonly host: ScriptedHost;
}

export async function growConversation(store: Store, name: string, random: Random): Promise<Grown> {
  const conversation = await store.open({ sessionId: name });
  const host = createHost(name);
  for (let turns = random.between(3, 10); turns > 0; turns--) {
    if (random.chance(0.3)) for (const raw of turnWithTool(`${name}${turns}`, "what?", "that")) host.says(raw);
    else host.says(user(`${name} says ${random.hex16()}`));
  }
  await deliver(store, conversation, host);
  for (let folds = random.between(2, 10); folds > 0; folds--) {
    const run = pickRun(await store.context(conversation.id), random);
    if (run.length > 0) await store.fold(conversation.id, run, summary(`${name} in short ${random.hex16()}`));
  }
  return { conversation, host };
}

/** Picks neighbours of one depth that a summary of one token would shorten; returns none if there are none. */
export function pickRun(context: readonly ContextItem[], random: Random): readonly ContextItem[] {
  const from = random.below(context.length);
  const depth = context[from]?.depth;
  const end = context.findIndex((item, at) => at > from && item.depth !== depth);
  const most = (end === -1 ? context.length : end) - from;
  const run = context.slice(from, from + random.between(1, Math.min(most, 5)));
  return run.reduce((sum, { tokens }) => sum + tokens, 0) > 1 ? run : [];
}
