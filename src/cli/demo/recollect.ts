/** Checks whether a key fact is still at hand: in the prompt itself, or one expand away. */

import type { Assembly } from "../../core/assembly/assemble.ts";
import type { Expansion } from "../../core/recall/expand.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { ConversationId, SummaryId } from "../../core/model/types.ts";
import type { KeyFact } from "./five-weeks.ts";

export type Recollection =
  | { readonly kind: "context" }
  | { readonly kind: "expand"; readonly summary: SummaryId; readonly expansion: Expansion }
  | { readonly kind: "lost" };

/** Token limit of one expand. */
const expandTokens = 4_000;

export async function recollect(
  lcm: Lcm,
  conversation: ConversationId,
  { messages }: Assembly,
  fact: KeyFact,
): Promise<Recollection> {
  if (messages.some(({ content }) => holds(JSON.stringify(content), fact))) return { kind: "context" };
  const summary = await summaryOver(lcm, conversation, fact.saidIn);
  if (summary === null) return { kind: "lost" };
  const reach = { kind: "conversation", conversations: [conversation] } as const;
  const request = { summaryIds: [summary], reach, query: fact.question, tokenCap: expandTokens };
  const expansion = await lcm.expand({ ...request, includeMessages: true, maxDepth: depthMax });
  const isFound = expansion.items.some(({ text }) => holds(text, fact));
  return isFound ? { kind: "expand", summary, expansion } : { kind: "lost" };
}

/** Deep enough to reach the messages. */
const depthMax = 10;

/** All parts of an answer must be in one text. */
export const holds = (text: string, { answer }: KeyFact): boolean => answer.every((words) => text.includes(words));

/** The summary in the context that covers the message with this key. */
async function summaryOver({ store }: Lcm, conversation: ConversationId, key: string): Promise<SummaryId | null> {
  const [message] = await store.messages({ conversation, keys: [key] });
  if (message === undefined) return null;
  const covering = await store.coveredBy(message.id);
  const shown = new Set((await store.context(conversation, { kind: "summary" })).map(({ id }) => id));
  return covering.find((id) => shown.has(id)) ?? null;
}
