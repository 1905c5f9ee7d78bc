/** Checks where a key fact is: in the prompt itself, one expand away, or in a message to be read by its id. */

import type { Assembly } from "../../core/assembly/assemble.ts";
import type { Expansion } from "../../core/recall/expand.ts";
import type { Lcm } from "../../core/lcm.ts";
import type { ConversationId, MessageId, SummaryId } from "../../core/model/types.ts";
import type { KeyFact } from "./five-weeks.ts";

export type Recollection =
  | { readonly kind: "context" }
  | { readonly kind: "expand"; readonly summary: SummaryId; readonly expansion: Expansion }
  | { readonly kind: "message"; readonly message: MessageId }
  | { readonly kind: "missing" };

/** Token limit of one expand. */
const expandTokens = 4_000;

export async function recollect(
  lcm: Lcm,
  conversation: ConversationId,
  { messages }: Assembly,
  fact: KeyFact,
): Promise<Recollection> {
  if (isInPrompt(messages, fact)) return { kind: "context" };
  const [stored] = await lcm.store.messages({ conversation, keys: [fact.saidIn] });
  if (stored === undefined || !holds(stored.text, fact)) return { kind: "missing" };
  const inMessage = { kind: "message", message: stored.id } as const;
  const summary = await summaryOver(lcm, conversation, stored.id);
  if (summary === null) return inMessage;
  const reach = { kind: "conversation", conversations: [conversation] } as const;
  const request = { summaryIds: [summary], reach, query: fact.question, tokenCap: expandTokens };
  const expansion = await lcm.expand({ ...request, includeMessages: true, maxDepth: depthMax });
  const isFound = expansion.items.some(({ text }) => holds(text, fact));
  return isFound ? { kind: "expand", summary, expansion } : inMessage;
}

/** Deep enough to reach the messages. */
const depthMax = 10;

/** All parts of an answer must be in one text, some of them perhaps at the start of a sentence. */
export const holds = (text: string, { answer }: Pick<KeyFact, "answer">): boolean =>
  answer.every((words) => text.toLowerCase().includes(words.toLowerCase()));

/** Whether one message of a prompt has the whole answer. */
export const isInPrompt = (messages: Assembly["messages"], fact: Pick<KeyFact, "answer">): boolean =>
  messages.some(({ content }) => holds(JSON.stringify(content), fact));

/** The summary in the context that covers this message. */
async function summaryOver({ store }: Lcm, conversation: ConversationId, id: MessageId): Promise<SummaryId | null> {
  const covering = await store.coveredBy(id);
  const shown = new Set((await store.context(conversation, { kind: "summary" })).map((each) => each.id));
  return covering.find((each) => shown.has(each)) ?? null;
}
