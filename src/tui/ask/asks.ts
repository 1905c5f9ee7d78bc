/** What the answer screen asks: the question itself. */

import { askWithin } from "../../agent-tools/expand-query.ts";
import { progressWords } from "../../agent-tools/text.ts";
import type { Lcm } from "../../core/lcm.ts";
import { conversationIn, type ConversationId, type MessageId, type SummaryId } from "../../core/model/types.ts";
import type { Answer } from "../../core/recall/ask-types.ts";
import { reachOf } from "../../core/recall/scope.ts";
import type { Doing } from "../port.ts";

export interface Answered {
  readonly answer: Answer;
  /** The model that answered; null without one. */
  readonly model: string | null;
  readonly sources: readonly AnswerSource[];
}

export type AnswerSource =
  | { readonly kind: "summaries"; readonly conversation: ConversationId; readonly at: SummaryId }
  | { readonly kind: "messages"; readonly conversation: ConversationId; readonly at: MessageId };

/** Of passages without an answer, a person reads less. */
const passageTokens = 600;

export const askAsks = {
  /** As `lcm ask` does. On a read-only database no model is called, since its calls are recorded. */
  async question(
    { conversation, question }: { readonly conversation: ConversationId | null; readonly question: string },
    { port, signal, onProgress }: Doing,
  ): Promise<Answered> {
    const writer = port.readOnly === null ? await port.summariser() : null;
    const ask = async (lcm: Lcm): Promise<Answer> =>
      await askWithin(
        {
          prompt: question,
          query: question,
          reach: async () =>
            conversation === null
              ? await reachOf(lcm.store, { conversation: null, policy: "all" }, {})
              : { kind: "conversation", conversations: [conversation] },
          ...(writer === null && { maxTokens: passageTokens }),
        },
        {
          lcm,
          reader: { conversation: null, policy: "all" },
          zone: port.zone,
          signal,
          onProgress: (at) => onProgress({ done: 0, of: null, words: progressWords(at) }),
        },
      );
    const answer = await (writer === null ? ask(await port.reading()) : port.writing(ask));
    const model = answer.by === "excerpts" ? null : (writer?.name ?? null);
    return { answer, model, sources: await sourcesOf(await port.reading(), answer) };
  },
};

async function sourcesOf({ store }: Lcm, { citedIds, citedMessages }: Answer): Promise<readonly AnswerSource[]> {
  const summaries = await store.summaries({ ids: citedIds });
  return [
    ...summaries.map(({ id: at, conversation }) => ({ kind: "summaries", conversation, at }) as const),
    ...citedMessages.map((at) => ({ kind: "messages", conversation: conversationIn(at), at }) as const),
  ];
}
