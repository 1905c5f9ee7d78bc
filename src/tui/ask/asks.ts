/** What the answer screen asks: the question itself. */

import { askWithin } from "../../agent-tools/expand-query.ts";
import { progressWords } from "../../agent-tools/text.ts";
import type { Lcm } from "../../core/lcm.ts";
import { conversationIn, type ConversationId, type MessageId, type SummaryId } from "../../core/model/types.ts";
import type { Answer } from "../../core/recall/ask-types.ts";
import { reachOf, type Reach } from "../../core/recall/scope.ts";
import type { ThoroughPlan } from "../../core/recall/map/thorough.ts";
import type { Spend } from "../../core/model-calls/metering.ts";
import type { NamedModel } from "../../format/model.ts";
import type { Doing } from "../../operator/port.ts";

export interface Answered {
  readonly answer: Answer;
  /** The model that answered; null without one. */
  readonly model: string | null;
  readonly sources: readonly AnswerSource[];
}

export type AnswerSource =
  | { readonly kind: "summaries"; readonly conversation: ConversationId; readonly at: SummaryId }
  | { readonly kind: "messages"; readonly conversation: ConversationId; readonly at: MessageId };

/** What reading every message would take. */
export interface PlannedReading {
  readonly plan: ThoroughPlan;
  readonly model: NamedModel | null;
  readonly spend: Spend;
}

interface Asked {
  readonly conversation: ConversationId | null;
  readonly question: string;
}

const reachOfAsked = async ({ store }: Lcm, conversation: ConversationId | null): Promise<Reach> =>
  conversation === null
    ? await reachOf(store, { conversation: null, policy: "all" }, {})
    : { kind: "conversation", conversations: [conversation] };

/** Of passages without an answer, a person reads less. */
const passageTokens = 600;

export const askAsks = {
  /** As `lcm ask` does. On a read-only database no model is called, since its calls are recorded. */
  async question({ conversation, question }: Asked, { port, signal, onProgress }: Doing): Promise<Answered> {
    const writer = port.readOnly === null ? await port.summariser() : null;
    const ask = async (lcm: Lcm): Promise<Answer> =>
      await askWithin(
        {
          prompt: question,
          query: question,
          reach: async () => await reachOfAsked(lcm, conversation),
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
  /** Through a connection with the model: what an earlier run was answered depends on it. */
  async planReading({ conversation, question }: Asked, { port, signal }: Doing): Promise<PlannedReading> {
    return await port.writing(async (lcm) => ({
      plan: await lcm.planThorough({ prompt: question, reach: await reachOfAsked(lcm, conversation), signal }),
      model: await port.summariser(),
      spend: await lcm.spend(),
    }));
  },
  /** As `lcm ask --thorough --apply` does. */
  async readAll({ conversation, question }: Asked, { port, signal, onProgress }: Doing): Promise<Answered> {
    const answer = await port.writing(async (lcm) =>
      lcm.thorough({
        prompt: question,
        reach: await reachOfAsked(lcm, conversation),
        signal,
        onProgress: (at) => onProgress({ done: at.done, of: at.of, words: progressWords(at), stops: true }),
      }),
    );
    const model = answer.by === "excerpts" ? null : ((await port.summariser())?.name ?? null);
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
